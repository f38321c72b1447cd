"""Images that are to go with a message: paths that were pasted or dropped, and the line above the prompt that shows them.

A terminal hands over a dropped file as its path, in quotes, with backslashes or as an address. Only a paste that is nothing
but paths of images that are there is taken for them; all else is text. What a file is, the server decides by its bytes.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from textual.content import Content
from textual.widgets import Static

from palaver.tui.text import docks, words
from palaver.tui.text.safe import visible

SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".gif", ".webp"))
MOST_IMAGES = 10
"""The server's bounds on a message and on an image."""
IMAGE_BYTES = 10 * 1024 * 1024
PASTED_CHARACTERS = 20_000
"""Ten paths of the longest kind; what is longer is a text."""
_ABSOLUTE = ("/", "~/", "./", "../", "file://")
"""A bare name is a word, also when a file happens to be called so."""


@dataclass(frozen=True, slots=True)
class Attachment:
    path: Path
    size_bytes: int

    @property
    def label(self) -> str:
        return f"{visible(self.path.name)} ({words.size(self.size_bytes)})"


def images_in(pasted: str) -> list[Attachment]:
    """The images that a paste names; none when it is anything else."""
    text = pasted.strip()
    if not text or len(text) > PASTED_CHARACTERS or "\x00" in text:
        return []
    for names in _readings(text):
        found = [_image(name) for name in names]
        if found and all(found):
            return [one for one in found if one is not None]
    return []


def _readings(text: str) -> list[list[str]]:
    """As it stands, a line each, and as a shell would read it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    try:
        words_of_shell = shlex.split(text)
    except ValueError:
        words_of_shell = []
    return [lines, words_of_shell]


def _image(name: str) -> Attachment | None:
    if not name.startswith(_ABSOLUTE):
        return None
    place = unquote(urlsplit(name).path) if name.startswith("file://") else name
    path = Path(place)
    try:
        path = path.expanduser()
        if path.suffix.lower() not in SUFFIXES or not path.is_file():
            return None
        return Attachment(path, path.stat().st_size)
    except (OSError, RuntimeError, ValueError):
        return None


class Attached(Static):
    """One line a few names; shown only while there are any."""

    DEFAULT_CSS = """
    Attached { height: auto; padding: 0 1 0 3; color: $ink-soft; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.images: tuple[Attachment, ...] = ()
        self.display = False

    def hold(self, images: Sequence[Attachment]) -> None:
        self.images = tuple(images)
        self.display = bool(self.images)
        self.refresh(layout=True)

    def add(self, images: Sequence[Attachment]) -> str:
        """Those there is room for; what is to be said of the others."""
        known = {one.path for one in self.images}
        fitting = [one for one in images if one.size_bytes <= IMAGE_BYTES and one.path not in known]
        self.hold((*self.images, *fitting)[:MOST_IMAGES])
        if len(known) + len(fitting) > MOST_IMAGES:
            return docks.Composer.TOO_MANY_IMAGES
        return docks.Composer.IMAGE_TOO_LARGE if any(one.size_bytes > IMAGE_BYTES for one in images) else ""

    def remove_last(self) -> bool:
        had = bool(self.images)
        self.hold(self.images[:-1])
        return had

    def render(self) -> Content:
        return Content("▣ " + "  ▣ ".join(one.label for one in self.images))

    def on_click(self) -> None:
        self.remove_last()

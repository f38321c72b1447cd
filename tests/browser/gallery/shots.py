"""What the documentation has pictures of. A shot is a place or state of the page, how to get there, and what it shows."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from tests.browser.gallery.harbour import Harbour
from tests.browser.visitor import Visitor

Look = Literal["light", "dark", "phone"]
Play = Callable[[Harbour], Awaitable[Visitor]]
Then = Callable[[Visitor], Awaitable[None]]

ALL: tuple[Look, ...] = ("light", "dark", "phone")
LIGHT: tuple[Look, ...] = ("light",)
HANDY: tuple[Look, ...] = ("light", "phone")
BOTH: tuple[Look, ...] = ("light", "dark")


@dataclass(frozen=True)
class Shot:
    name: str
    section: str
    caption: str
    play: Play
    looks: tuple[Look, ...]
    on_phone: Then | None = None
    """Done once the window is as narrow as a phone: what was open closes with a change of layout."""

    @property
    def pixels(self) -> int:
        """A phone's picture without twice the pixels looks like none of a phone."""
        return 2 if "phone" in self.looks else 1


SHOTS: dict[str, Shot] = {}
"""In the order of the gallery."""


def shot(
    section: str, caption: str, looks: tuple[Look, ...] = LIGHT, on_phone: Then | None = None
) -> Callable[[Play], Play]:
    def keep(play: Play) -> Play:
        name = play.__name__.replace("_", "-")
        assert name not in SHOTS, f"two pictures are called {name}"
        SHOTS[name] = Shot(name, section, caption, play, looks, on_phone)
        return play

    return keep

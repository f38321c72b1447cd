"""One line of keys and what they do; each is also a thing to click. Shared by docks and screens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from textual import events
from textual.content import Content
from textual.style import Style
from textual.widgets import Static


@dataclass(frozen=True, slots=True)
class Key:
    key: str
    label: str
    run: Callable[[], object] | None = field(default=None, compare=False)
    is_heard: bool = True
    """False: shown, and deaf for now."""


class KeyLine(Static):
    DEFAULT_CSS = """
    KeyLine { height: auto; color: $ink-soft; }
    """

    def __init__(self, keys: Sequence[Key] = (), *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._keys = tuple(keys)

    @property
    def keys(self) -> tuple[Key, ...]:
        return self._keys

    def show(self, keys: Sequence[Key]) -> None:
        given = tuple(keys)
        changed, self._keys = given != self._keys, given
        if changed:
            self.refresh(layout=True)

    def render(self) -> Content:
        return Content("   ").join(_said(key, at) for at, key in enumerate(self._keys))

    def on_click(self, event: events.Click) -> None:
        at = event.style.meta.get("press")
        if isinstance(at, int) and at < len(self._keys) and (run := self._keys[at].run) and self._keys[at].is_heard:
            event.stop()
            run()


def _said(key: Key, at: int) -> Content:
    # A key and its label are never torn apart by the end of a line.
    label = f" {key.label}".replace(" ", "\N{NO-BREAK SPACE}")
    quiet = "" if key.is_heard else "$ink-faint"
    said = Content.assemble((key.key, quiet or "bold $ink"), (label, quiet))
    return said.stylize(Style.from_meta({"press": at}))

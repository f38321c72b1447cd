"""One line of keys and what they do; each is also a thing to click. Shared by docks and screens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.style import Style
from textual.widgets import Static

_BETWEEN = "   "


@dataclass(frozen=True, slots=True)
class Key:
    key: str
    label: str
    run: Callable[[], object] | None = field(default=None, compare=False)
    is_heard: bool = True
    """False: shown, and deaf for now."""
    writes: bool = False
    """It changes something: who may only read is not offered it."""


def offer_keys(keys: Sequence[Key], *, may_write: bool) -> list[Key]:
    return [key for key in keys if may_write or not key.writes]


class KeyLine(Static):
    """A key and its label are never torn apart: they go to the next line together, or are left out of a single one."""

    DEFAULT_CSS = """
    KeyLine { height: auto; color: $ink-soft; }
    """

    def __init__(
        self,
        keys: Sequence[Key] = (),
        *,
        is_quiet: bool = False,
        has_one_line: bool = False,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._keys = tuple(keys)
        self._is_quiet = is_quiet
        self._has_one_line = has_one_line

    @property
    def keys(self) -> tuple[Key, ...]:
        return self._keys

    def show(self, keys: Sequence[Key]) -> None:
        given = tuple(keys)
        changed, self._keys = given != self._keys, given
        if changed:
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows(width))

    def render(self) -> Content:
        between = Content(_BETWEEN)
        return Content("\n").join(between.join(row) for row in self._rows(self.content_size.width))

    def _rows(self, width: int) -> list[list[Content]]:
        rows: list[list[Content]] = [[]]
        used = 0
        for at, key in enumerate(self._keys):
            said = self._render_key(key, at)
            more = said.cell_length + (len(_BETWEEN) if rows[-1] else 0)
            if rows[-1] and used + more > width:
                if self._has_one_line:
                    break
                rows.append([])
                used, more = 0, said.cell_length
            rows[-1].append(said)
            used += more
        return rows

    def _render_key(self, key: Key, at: int) -> Content:
        quiet = "" if key.is_heard else "$ink-faint"
        strong = "$ink-soft" if self._is_quiet else "bold $ink"
        said = Content.assemble((key.key, quiet or strong), (f" {key.label}", quiet))
        return said.stylize(Style.from_meta({"press": at}))

    def on_click(self, event: events.Click) -> None:
        at = event.style.meta.get("press")
        if isinstance(at, int) and at < len(self._keys) and (run := self._keys[at].run) and self._keys[at].is_heard:
            event.stop()
            self.call_later(run)

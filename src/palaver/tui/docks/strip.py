"""A short list above the composer with a cursor in it: what waits, what runs. One line each, those around the cursor.

The cursor and the keys are there for someone who came in with F6; else a letter belongs to the message that is written. A
subclass says how a line reads and which keys there are, and gives the items anew with `hold`.
"""

from typing import ClassVar, Generic, Protocol, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widgets import Static

from palaver.tui.docks.keyline import Key, KeyLine
from palaver.tui.text import docks


class Listed(Protocol):
    @property
    def id(self) -> str: ...


ItemT = TypeVar("ItemT", bound=Listed)


class Strip(Vertical, Generic[ItemT], can_focus=True):
    DEFAULT_CSS = """
    Strip {
        height: auto; padding: 0 1; color: $ink-soft; border-left: outer $line-strong;
        &:focus { border-left: thick $live; }
        .lead { height: auto; color: $wait; }
        .items { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("escape", "leave", show=False),
    ]
    SHOWN = 5
    """More would push the conversation off a small screen; the list moves with its cursor."""

    class Left(Message):
        """Whoever was in it wants to go on writing."""

    def __init__(self) -> None:
        super().__init__(classes="region")
        self.may_write = True
        """Else it is there to be read."""
        self.conversation = ""
        self.items: tuple[ItemT, ...] = ()
        self._at = 0
        self.display = False

    # -- for the kinds of strips

    def line(self, item: ItemT, at: int, *, here: bool) -> Content:
        """How one reads; `here`: the cursor is on it."""
        raise NotImplementedError

    def keys(self) -> list[Key]:
        """What can be done now."""
        return []

    def lead(self) -> str:
        """What is said of all of them, above."""
        return ""

    def is_worth_showing(self) -> bool:
        return bool(self.items)

    # -- what all of them do

    def compose(self) -> ComposeResult:
        yield Static(classes="lead")
        yield Static(classes="items")
        yield KeyLine()

    @property
    def item(self) -> ItemT | None:
        return self.items[self._at] if self._at < len(self.items) else None

    def hold(self, conversation: str, items: tuple[ItemT, ...]) -> None:
        """The cursor stays with its item, wherever that moved and whichever of the others went."""
        chosen = self.item
        if conversation != self.conversation:
            self.conversation, self._at = conversation, 0
        self.items = items
        if chosen is not None:
            self._at = next((at for at, item in enumerate(items) if item.id == chosen.id), self._at)
        self._go_to(self._at)

    def _go_to(self, at: int) -> None:
        self._at = max(0, min(at, len(self.items) - 1))
        self.draw()

    def draw(self) -> None:
        had_focus = self.has_focus
        self.display = self.is_worth_showing()
        if had_focus and not self.display:
            self.post_message(self.Left())
        if not self.query(KeyLine):
            return
        lead, items, keys = self.query_one(".lead", Static), self.query_one(".items", Static), self.query_one(KeyLine)
        said = self.lead()
        lead.update(Content(said))
        lead.display = bool(said)
        items.update(self._lines())
        items.display = bool(self.items)
        keys.show(self.keys() if self.may_write else ())
        keys.display = bool(keys.keys)

    def _lines(self) -> Content:
        first = max(0, min(self._at - self.SHOWN + 1 if self.has_focus else 0, len(self.items) - self.SHOWN))
        shown = list(enumerate(self.items))[first : first + self.SHOWN]
        lines = [self._mark(item, at) for at, item in shown]
        if (left := len(self.items) - first - len(shown)) > 0:
            lines.append(Content.styled(f"  {docks.more(left)}", "$ink-faint"))
        return Content("\n").join(lines)

    def _mark(self, item: ItemT, at: int) -> Content:
        here = self.has_focus and at == self._at
        mark = Content.styled("▸ " if here else "  ", "bold $live")
        return (mark + self.line(item, at, here=here)).stylize(Style.from_meta({"item": at}))

    def watch_has_focus(self, has_focus: bool) -> None:
        # Not `on_focus`: that is called before the focus counts as here, and would draw what was.
        super().watch_has_focus(has_focus)
        self.draw()

    def on_click(self, event: events.Click) -> None:
        at = event.style.meta.get("item")
        if isinstance(at, int):
            self._go_to(at)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        return self.may_write or action in ("move", "leave")

    def action_move(self, by: int) -> None:
        self._go_to(self._at + by)

    def action_leave(self) -> None:
        self.post_message(self.Left())

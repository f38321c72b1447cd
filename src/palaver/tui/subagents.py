"""The subagents of a conversation beside its transcript, as a tree. Told with `show`; Enter opens one.

Shown by the conversation screen where there is room. What waits for a person at any depth is marked here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import RenderResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from palaver.schema.view import Listing, State, Subagent
from palaver.tui.docks.keyline import Key
from palaver.tui.intents import OpenConversation
from palaver.tui.text import rows, words
from palaver.tui.text.docks import Regions
from palaver.tui.text.safe import one_line, visible
from palaver.tui.transcript.canvas import cut

_SIGNS = {
    "running": ("●", "$live"),
    "waiting": ("◆", "$wait"),
    "completed": ("✓", "$good"),
    "failed": ("✗", "$bad"),
    "cancelled": ("◇", "$ink-faint"),
}


@dataclass(frozen=True, slots=True)
class Member:
    conversation: str
    agent: str
    task: str
    state: str
    depth: int
    detail: str = ""


def members_of(state: State, listings: Sequence[Listing], waiting: frozenset[str]) -> list[Member]:
    """This conversation's subagents, in the order they began, each followed by its own."""
    below: dict[str, list[Listing]] = {}
    for listing in listings:
        if listing.parent and listing.parent_kind == "subagent":
            below.setdefault(listing.parent, []).append(listing)
    members: list[Member] = []
    for child in state.subagents:
        members.append(_member(child, waiting))
        members += _descendants(child.conversation, below, waiting, 1)
    return members


def _member(child: Subagent, waiting: frozenset[str]) -> Member:
    is_over = child.status != "running"
    status = child.status if is_over else "waiting" if child.conversation in waiting else "running"
    over = is_over and child.started_at is not None and child.finished_at is not None
    time = words.duration((child.finished_at or 0) - (child.started_at or 0)) if over else None
    detail = words.join(rows.SUBAGENT_STATES[status], time, words.money(child.cost_usd) if child.cost_usd else None)
    return Member(child.conversation, child.agent, child.task, status, 0, detail)


def _descendants(parent: str, below: dict[str, list[Listing]], waiting: frozenset[str], depth: int) -> list[Member]:
    members: list[Member] = []
    for listing in sorted(below.get(parent, ()), key=lambda known: known.created_at):
        status = "waiting" if listing.id in waiting else "running" if listing.turn else "completed"
        if listing.status == "error":
            status = "failed"
        detail = rows.SUBAGENT_STATES[status]
        members.append(Member(listing.id, listing.agent, listing.title, status, depth, detail))
        members += _descendants(listing.id, below, waiting, depth + 1)
    return members


class Family(Widget, can_focus=True):
    DEFAULT_CSS = """
    Family {
        width: 36; height: 1fr; border-left: solid $line; padding: 0 1; background: $paper-side; color: $ink-soft;
        &:focus { border-left: solid $live; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("enter,o", "open", show=False),
    ]
    KEYS: ClassVar = (Key("↑↓", Regions.CHOOSE), Key("Enter", Regions.ENTER))

    def __init__(self) -> None:
        super().__init__(classes="region")
        self._members: list[Member] = []
        self._names: Mapping[str, str] = {}
        self._at = 0
        self.display = False

    @property
    def members(self) -> Sequence[Member]:
        return self._members

    def show(self, members: list[Member], names: Mapping[str, str], *, has_room: bool) -> None:
        self.display = has_room and bool(members)
        if members == self._members and names is self._names:
            return
        self._members, self._names = members, names
        self._at = max(0, min(self._at, len(members) - 1))
        self.refresh()

    def render(self) -> RenderResult:
        width = self.content_size.width
        lines = [Content.styled(rows.SUBAGENTS, "bold $ink"), Content("")]
        room = max(1, (self.content_size.height - 2) // 2)
        first = max(0, min(self._at - room + 1, len(self._members) - room))
        for at, member in list(enumerate(self._members))[first : first + room]:
            lines += self._lines(at, member, width)
        return Content("\n").join(lines)

    def _lines(self, at: int, member: Member, width: int) -> list[Content]:
        sign, colour = _SIGNS[member.state]
        indent = "  " * min(member.depth, 6)
        here = self.has_focus and at == self._at
        name = visible(self._names.get(member.agent, member.agent))
        head = Content.assemble(
            (f"{indent}{sign} ", colour),
            (cut(name, width - len(indent) - 4), "bold $live" if here else "$ink"),
        )
        tail = cut(f"{member.detail}", max(0, width - head.cell_length - 3))
        head += Content.styled(f" · {tail}", colour if member.state in ("waiting", "failed") else "$ink-faint")
        task = cut(f"{indent}  {one_line(member.task)}", width)
        press = Style.from_meta({"member": at})
        return [head.stylize(press), Content.styled(task, "$ink-faint").stylize(press)]

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        at = event.style.meta.get("member")
        if isinstance(at, int):
            self._at = at
            self.action_open()

    def action_move(self, by: int) -> None:
        self._at = max(0, min(len(self._members) - 1, self._at + by))
        self.refresh()

    def action_open(self) -> None:
        if self._members:
            self.post_message(OpenConversation(self._members[self._at].conversation))

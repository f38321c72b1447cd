"""Plans: one that is proposed, to be approved, revised or rejected; and the one under way, in a line that opens to its steps."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static

from palaver.clock import Clock
from palaver.core.text.approval_text import Shown, approval_lines, plan_lines
from palaver.schema.commands import ResolveRequest
from palaver.schema.view import Plan, PlanItem, State
from palaver.tui.docks.card import RequestCard, digit_key
from palaver.tui.docks.keyline import Key
from palaver.tui.docks.request_choice import Asked
from palaver.tui.keys import Digit
from palaver.tui.text import docks, words
from palaver.tui.text.safe import visible

GOING_ON: Final = ("ask", "accept_edits")
"""How a plan may be carried out. Wider modes are chosen for the conversation, not in passing."""

_TONES: Final = {
    "pending": "$ink-soft",
    "in_progress": "bold $live",
    "done": "$ink-soft",
    "skipped": "$ink-faint",
    "stopped": "bold $wait",
}


def is_put_down(state: State) -> bool:
    """Whether the turn that carried the plan out was cut short, and nobody goes on with it at the moment."""
    plan, last = state.plan, state.last_turn
    if plan is None or plan.status not in ("approved", "executing") or state.turn is not None or last is None:
        return False
    is_left = any(item.status in ("pending", "in_progress") for item in plan.items)
    return is_left and last.outcome in ("interrupted", "failed", "limited")


def items_content(items: Sequence[PlanItem], *, is_stopped: bool = False) -> Content:
    """The steps with a sign each; the sign alone tells the state. `is_stopped`: what was under way stands still."""
    return Content("\n").join(_step(item, is_stopped=is_stopped) for item in items)


def _step(item: PlanItem, *, is_stopped: bool) -> Content:
    state = "stopped" if is_stopped and item.status == "in_progress" else item.status
    return Content.assemble(
        (f"{docks.Plan.SIGNS[state]} {visible(item.title)}", _TONES[state]),
        (f"  {docks.Plan.STOPPED_HERE}" if state == "stopped" else "", "$wait"),
        (f"  {visible(item.description)}" if item.description else "", "$ink-faint"),
    )


class PlanCard(RequestCard):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "mode", show=False),
        Binding("left", "turn(-1)", show=False),
        Binding("right", "turn(1)", show=False),
    ]

    def __init__(self, asked: Asked, clock: Clock) -> None:
        super().__init__(asked, clock)
        self.mode = 0

    def lines(self) -> list[Shown]:
        request = self.asked.request
        return plan_lines(request.plan) if request.plan is not None else approval_lines(request.preview, None)

    def choices(self) -> list[Key]:
        said = docks.PlanRequest
        return [
            digit_key(self, 1, said.APPROVE, allows=True),
            digit_key(self, 2, said.REVISE),
            digit_key(self, 3, said.REJECT),
        ]

    def more_choices(self) -> list[Key]:
        mode = f"{docks.PlanRequest.MODE}: {words.Modes.NAMES[GOING_ON[self.mode]]}"
        return [
            *([Key("M", mode, self.action_mode)] if self.asked.is_resting else []),
            *self.turning(),
        ]

    def answer(self, digit: Digit) -> None:
        request = self.asked.request.id
        if digit == 1:
            # A turn that still runs goes on in its own mode.
            given = {"mode": GOING_ON[self.mode]} if self.asked.is_resting else None
            self.reply(ResolveRequest(request=request, verdict="allow", input=given))
        elif digit == 3:
            self.reply(ResolveRequest(request=request, verdict="deny", then="stop"))
        elif self.is_heard and not self.has_stage:
            self.call_next(self._ask_what)

    async def _ask_what(self) -> None:
        note = Input(placeholder=docks.PlanRequest.REVISE_LABEL)
        await self.open_stage(note, focus=note)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if said := event.value.strip():
            self.reply(ResolveRequest(request=self.asked.request.id, verdict="deny", text=said))

    def stage_keys(self) -> list[Key]:
        return [Key("Enter", docks.PlanRequest.REVISE_SEND), *super().stage_keys()]

    def action_mode(self) -> None:
        self.mode = (self.mode + 1) % len(GOING_ON)
        self.retell()


class PlanLine(Static, can_focus=True):
    """The plan under way. Enter or O opens its steps."""

    DEFAULT_CSS = """
    PlanLine {
        height: auto; max-height: 30vh; padding: 0 1; color: $ink-soft; border-left: outer $line-strong;
        &:focus { border-left: thick $live; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,o,space", "open_or_close", show=False)]
    KEYS: ClassVar = (Key("O", docks.Regions.OPEN),)

    def __init__(self) -> None:
        super().__init__(classes="region")
        self.display = False
        self.plan: Plan | None = None
        self.is_stopped = False
        self.is_open = False

    def show(self, state: State) -> None:
        is_stopped = is_put_down(state)
        is_same = state.plan is self.plan and is_stopped == self.is_stopped
        if is_same and self.display == self._is_worth_showing:
            return
        self.plan, self.is_stopped = state.plan, is_stopped
        self.display = self._is_worth_showing
        self.refresh(layout=True)

    @property
    def _is_worth_showing(self) -> bool:
        plan = self.plan
        return plan is not None and plan.status != "planned" and bool(plan.items)

    def render(self) -> Content:
        if self.plan is None:
            return Content("")
        items = self.plan.items
        done, skipped = (sum(item.status == status for item in items) for status in ("done", "skipped"))
        current = next((item.title for item in items if item.status == "in_progress"), self.plan.summary)
        progress = words.join(
            docks.Plan.STOPPED if self.is_stopped else None,
            docks.Plan.progress(done, len(items), skipped),
        )
        line = Content.assemble(
            (f"{'▾' if self.is_open else '▸'} {docks.Plan.HEADING}", "bold $ink"),
            (f"  {visible(current)}", ""),
            (f"  {progress}", "$wait" if self.is_stopped else "$ink-faint"),
        )
        steps = items_content(items, is_stopped=self.is_stopped)
        return Content("\n").join([line, steps]) if self.is_open else line

    def action_open_or_close(self) -> None:
        self.is_open = not self.is_open
        self.refresh(layout=True)

    def on_click(self) -> None:
        self.action_open_or_close()

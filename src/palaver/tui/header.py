"""The top line: what conversation this is, who answers, what it is doing, how full its context is. Told with `show`."""

from rich.cells import cell_len
from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget

from palaver.schema.view import State, Status
from palaver.tui.terminal_title import SIGNS
from palaver.tui.text import rows, words
from palaver.tui.text.safe import one_line, visible
from palaver.tui.transcript.canvas import cut

_COLOURS: dict[Status, str] = {
    "idle": "$ink-faint",
    "generating": "$live",
    "executing_tools": "$live",
    "paused": "$wait",
    "waiting_ide": "$wait",
    "waiting_user_input": "$wait",
    "completed": "$good",
    "error": "$bad",
}

FULL = 0.9
FILLING = 0.75
"""From here on the meter is worth a look."""
_BAR_CELLS = 8


class Header(Widget):
    DEFAULT_CSS = """
    Header { height: 1; background: $paper-side; color: $ink-soft; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._state = State()
        self._agent = ""
        self._past: int | None = None

    def show(self, state: State, name: str, past_seq: int | None = None) -> None:
        """`name` is the agent's; `past_seq`: an earlier moment is shown."""
        key = (state.title, state.status, state.context, state.cost_usd, state.turn and state.turn.model, name)
        known = self._state
        same = (known.title, known.status, known.context, known.cost_usd, known.turn and known.turn.model, self._agent)
        changed = key != same or past_seq != self._past or state.params is not known.params
        self._state, self._agent, self._past = state, name, past_seq
        if changed:
            self.refresh()

    def render(self) -> RenderResult:
        state, width = self._state, self.content_size.width
        right = Content("  ").join(part for part in (self._mode(), self._meter(), self._status()) if part)
        room = max(10, width - right.cell_length - 2)
        title = cut(one_line(state.title) or rows.NO_TITLE, room)
        left = Content.styled(title, "bold $ink")
        agent = words.join(self._agent, visible(state.turn.model or "") if state.turn else None)
        if room - cell_len(title) > 8 and agent:
            left += Content.styled(f"  {cut(agent, room - cell_len(title) - 2)}", "$ink-faint")
        return left + Content(" " * max(1, width - left.cell_length - right.cell_length)) + right

    def _status(self) -> Content:
        if self._past is not None:
            return Content.styled(f"◷ {rows.as_of(self._past)}", "bold $wait")
        status = self._state.status
        return Content.styled(f"{SIGNS[status]} {words.Status.WORDS[status]}", _COLOURS[status])

    def _mode(self) -> Content:
        mode = self._state.params.get("mode")
        if not isinstance(mode, str) or mode not in words.Modes.NAMES or mode == "ask":
            return Content("")
        colour = "$bad" if mode == "full" else "$wait"
        return Content.styled(words.Modes.NAMES[mode], colour)

    def _meter(self) -> Content:
        context, cost = self._state.context, self._state.cost_usd
        turn_cost = self._state.turn.cost_usd if self._state.turn else 0.0
        spent = Content.styled(words.money(cost + turn_cost), "$ink-faint") if cost + turn_cost else Content("")
        if context is None:
            return spent
        if not context.window_tokens:
            used = Content.styled(rows.used_tokens(context.used_tokens), "$ink-faint")
            return used + "  " + spent if spent else used
        share = min(1.0, context.used_tokens / context.window_tokens)
        colour = "$bad" if share >= FULL else "$wait" if share >= FILLING else "$ink-faint"
        full = max(1, round(share * _BAR_CELLS)) if share else 0
        meter = Content.assemble(
            ("━" * full, colour),
            ("━" * (_BAR_CELLS - full), "$line-strong"),
            (f" {words.percent(share)}", colour),
        )
        return meter + (Content("  ") + spent if spent else Content(""))

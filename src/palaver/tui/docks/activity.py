"""What the running turn does, in words and time, and how things stand with the server. Nothing runs, nothing is said."""

import math

from textual.content import Content
from textual.widgets import Static

from palaver.clock import Clock
from palaver.core.state import messages_of_turn, open_requests, open_tools
from palaver.schema.view import COMPRESSING, State, TextBlock, ThinkingBlock, ToolBlock, Turn
from palaver.tui.connection import Connection
from palaver.tui.text import docks, words
from palaver.tui.text.safe import one_line, visible
from palaver.tui.transcript.calls import doing

STALLED_MS = 30_000
"""Silence that is worth a word. Tools and people may take longer; they are shown as what they are."""
PATIENCE_S = 2.0
"""A hiccup of the connection shorter than this is nobody's business."""
FAREWELL_S = 4.0
""" "Caught up" is read in passing."""


class ActivityLine(Static):
    DEFAULT_CSS = """
    ActivityLine { height: 1; padding: 0 1; color: $ink-soft; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._state: State | None = None
        self._is_connected = True
        self._is_stopping: str | None = None
        self._waits_below = False
        self._phase = ""
        self._phase_since_ms = 0
        self._retry_since_ms = 0
        self.display = False

    def on_mount(self) -> None:
        self.set_interval(1, self.tick)

    def show(self, state: State, *, waits_below: bool = False) -> None:
        before = self._state.turn if self._state else None
        if (
            state.turn is not None
            and state.turn.retry is not None
            and (before is None or before.retry != state.turn.retry)
        ):
            # The log does not date it; what counts is when it was seen here.
            self._retry_since_ms = self._clock.now_ms()
        if state.turn is None or before is None or before.id != state.turn.id:
            # The last thing one turn did and the first of the next may have the same words, and not the same time.
            self._phase = ""
        self._state, self._waits_below = state, waits_below
        if state.turn is None or state.turn.id != self._is_stopping:
            self._is_stopping = None
        self.tick()

    def stopping(self) -> None:
        """A stop was asked for, and is not in the log yet."""
        if self._state is not None and self._state.turn is not None:
            self._is_stopping = self._state.turn.id
            self.tick()

    def connected(self, is_connected: bool) -> None:
        """Without a connection this is what was last heard, not what happens now."""
        self._is_connected = is_connected
        self.tick()

    def tick(self) -> None:
        self.display = self._state is not None and self._state.turn is not None
        if self.display:
            self.refresh()

    def render(self) -> Content:
        state = self._state
        if state is None or state.turn is None:
            return Content("")
        now_ms = self._clock.now_ms()
        waits = self._waits_below or bool(open_requests(state))
        what, since_ms = self._doing(state, state.turn, now_ms, waits=waits)
        if what != self._phase:
            self._phase, self._phase_since_ms = what, now_ms if self._phase else state.turn.started_at
        timed = not waits and state.turn.retry is None
        time = words.running_time(now_ms - (since_ms or self._phase_since_ms)) if timed else None
        tone = "$ink-faint" if not self._is_connected else "bold $wait" if waits else "bold $live"
        stalled = self._stall_text(state, now_ms, waits=waits)
        return Content.assemble(
            ("▲ " if waits else "● ", tone),
            (words.join(what, time), "" if self._is_connected else "$ink-faint"),
            (f"  {stalled}" if stalled else "", "$wait"),
            (f"   {self._usage_text(state.turn)}", "$ink-faint"),
        )

    def _doing(self, state: State, turn: Turn, now_ms: int, *, waits: bool) -> tuple[str, int | None]:
        if self._is_stopping is not None:
            return docks.Activity.STOPPING, None
        if waits:
            return docks.Activity.WAITING, None
        if state.status == "waiting_ide":
            return docks.Activity.WAITING_EDITOR, None
        if turn.retry is not None:
            left_s = math.ceil(turn.retry.after_s - (now_ms - self._retry_since_ms) / 1000)
            said = docks.Activity.retrying(left_s, turn.retry.attempt, turn.retry.of)
            reason = docks.Activity.because(visible(turn.retry.reason))
            return (f"{said}: {words.in_typographic_quotes(reason)}" if reason else said), None
        return _describe_activity(state, turn)

    def _stall_text(self, state: State, now_ms: int, *, waits: bool) -> str:
        turn, silent_ms = state.turn, now_ms - state.updated_at
        if waits or not self._is_connected or silent_ms <= STALLED_MS or turn is None or turn.retry is not None:
            return ""
        tool = running_tool(state)
        return (
            ""
            if tool is not None and tool.status == "running"
            else docks.Activity.stalled(words.running_time(silent_ms))
        )

    def _usage_text(self, turn: Turn) -> str:
        usage = turn.usage
        counted = usage.input_tokens + usage.output_tokens > 0
        return words.join(
            words.money(turn.cost_usd) if turn.cost_usd > 0 else None,
            docks.Activity.spent(usage.input_tokens, usage.output_tokens) if counted else None,
        )


def running_tool(state: State) -> ToolBlock | None:
    """The call that runs; of several the one that started last, and while none runs the next one."""
    tools = [tool for _, tool in open_tools(state)]
    running = [tool for tool in tools if tool.status == "running"]
    return max(running, key=lambda tool: tool.started_at or 0) if running else next(iter(tools), None)


def _describe_activity(state: State, turn: Turn) -> tuple[str, int | None]:
    tool = running_tool(state)
    if tool is not None and tool.status in ("running", "called"):
        return one_line(doing(tool)), tool.started_at
    if turn.detail == COMPRESSING:
        return docks.Activity.COMPACTING, None
    if turn.detail:
        return one_line(turn.detail), None
    messages = messages_of_turn(state, turn.id)
    newest = messages[-1].blocks[-1] if messages and messages[-1].blocks else None
    if isinstance(newest, TextBlock) and newest.status == "streaming":
        return docks.Activity.WRITING, None
    match turn.activity:
        case "model_loading":
            return docks.Activity.LOADING, None
        case "thinking":
            return docks.Activity.THINKING, None
        case "calling_tool":
            return docks.Activity.CALLING, None
        case "working" | "idle":
            thinks = isinstance(newest, ThinkingBlock) and newest.status == "streaming"
            return (docks.Activity.THINKING if thinks else docks.Activity.WORKING), None


class ConnectionLine(Static):
    """One line for the top edge when the connection is in trouble, and one when it is over. Short troubles are not said."""

    DEFAULT_CSS = """
    ConnectionLine { height: 1; padding: 0 1; background: $panel; color: $ink-soft; text-wrap: nowrap; text-overflow: ellipsis; }
    ConnectionLine.is-trouble { background: $wait-soft; color: $wait; }
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._connection = Connection("open")
        self._since_s = clock.monotonic_s()
        self._was_trouble_seen = False
        self.display = False

    def on_mount(self) -> None:
        self.set_interval(0.5, self.tick)

    def show(self, connection: Connection) -> None:
        if connection.kind != self._connection.kind and not (_is_trouble(connection) and _is_trouble(self._connection)):
            self._since_s = self._clock.monotonic_s()
        self._connection = connection
        self.tick()

    def tick(self) -> None:
        for_s = self._clock.monotonic_s() - self._since_s
        kind = self._connection.kind
        if _is_trouble(self._connection):
            self._was_trouble_seen = self._was_trouble_seen or for_s >= PATIENCE_S
        elif kind in ("open", "caught_up") and for_s >= FAREWELL_S:
            self._was_trouble_seen = False
        self.display = self._was_trouble_seen or kind in ("version_mismatch", "signed_out", "gone")
        self.set_class(kind not in ("connecting", "catching_up", "caught_up", "open"), "is-trouble")
        if self.display:
            self.refresh()

    def render(self) -> Content:
        return Content(self._words())

    def _words(self) -> str:
        connection, said = self._connection, docks.Connection
        match connection.kind:
            case "connecting":
                return said.CONNECTING
            case "reconnecting":
                left_ms = (connection.retry_at_ms or 0) - self._clock.now_ms()
                heard = connection.heard_at_ms
                return words.join(
                    said.reconnecting(math.ceil(left_ms / 1000)),
                    said.last_heard(words.clock(heard), connection.seq) if heard else None,
                    visible(connection.reason) if connection.reason else None,
                )
            case "catching_up":
                return said.catching_up(connection.events) if connection.events else said.CATCHING_UP
            case "open" | "caught_up":
                return said.caught_up(connection.events) if connection.events else said.AGAIN
            case "version_mismatch":
                return said.VERSION
            case "signed_out":
                return said.SIGNED_OUT
            case "gone":
                return said.GONE


def _is_trouble(connection: Connection) -> bool:
    return connection.kind in ("connecting", "reconnecting")

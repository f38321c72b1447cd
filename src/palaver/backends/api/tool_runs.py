"""Tool calls that run: their live output, their results, and their end with the turn.

Used by the calls once each has its grant and the grant is on disk. Calls given together run together. A tool that raises,
or is cancelled by its own doing, still has exactly one result. Closing the iteration cancels every tool and waits for it.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from palaver.backends.base import Turn
from palaver.journal import Journal
from palaver.schema.events import FilesChanged, KnownEvent, ToolFinished, ToolOutputDelta
from palaver.schema.view import Outcome, ToolError
from palaver.tools.base import Letter, Passage, Reply, Report, ToolResult, Workplace
from palaver.tools.redact import Redactor
from palaver.tools.toolbox import Toolbox

OUTBOX_EVENTS = 64
"""Output that waits to be recorded. When it is full the tools wait: nobody is faster than the log."""
OUTPUT_EVENT_CHARS = 32_768
"""The longest fragment of output in one event: an event may hold 256 KiB, and a character up to six bytes of JSON."""
RESULT_CHARS = 65_536
"""The longest result kept in the event. A tool cuts its own output; this is for those that do not."""
CLEANUP_S = 5.0
"""For cancelled tools to end what they started, before the turn goes on without them."""

logger = Journal(__name__)


@dataclass(frozen=True, slots=True)
class Granted:
    """A call that may run, under this grant and for exactly this proposal."""

    call: str
    name: str
    arguments: Mapping[str, Any]
    hash: str
    grant: str
    request: str | None = None
    reads_only: bool = False
    edited: bool = False
    """The person changed the arguments."""
    editors: bool = False
    """The client executes it, and returns its result as a command."""


EndTurn = Callable[[Outcome, str | None], None]


async def run_together(
    calls: Sequence[Granted], turn: Turn, toolbox: Toolbox, mode: str, end_turn: EndTurn
) -> AsyncGenerator[KnownEvent, None]:
    """`end_turn` is told when a tool wants the turn to be over once it has its result."""
    running = _Running(turn, toolbox, mode, end_turn)
    tasks = [asyncio.create_task(running.run(call), name=f"tool {call.name} {call.call}") for call in calls]
    try:
        left = len(tasks)
        while left:
            event = await running.outbox.get()
            left -= isinstance(event, ToolFinished)
            yield event
            if taken := running.taken.pop(id(event), None):
                taken.set()
    finally:
        running.closing = True
        for task in tasks:
            task.cancel()
        await _wait_for_end(tasks)


async def _wait_for_end(tasks: Sequence["asyncio.Task[None]"]) -> None:
    _, left = await asyncio.wait(tasks, timeout=CLEANUP_S)
    if left:
        logger.warning("tools did not end in time", tools=[task.get_name() for task in left], waited_s=CLEANUP_S)


class _Host:
    """Implements `tools.base.Host` for the calls that run together."""

    def __init__(self, turn: Turn, running: "_Running", toolbox: Toolbox, end_turn: EndTurn) -> None:
        self._turn = turn
        self._running = running
        self._toolbox = toolbox
        self._end_turn = end_turn

    @property
    def conversation(self) -> str:
        return self._turn.conversation

    async def emit(self, event: KnownEvent) -> None:
        # Nobody takes events any more once the calls are over; what is said then belongs to no turn.
        if not self._running.closing:
            # Until it is on its way to the log: a process may end at once, and its end must not be told before its start.
            taken = self._running.taken[id(event)] = asyncio.Event()
            await self._running.outbox.put(event)
            await taken.wait()

    async def search(self, query: str, limit: int) -> Sequence[Passage]:
        return await self._turn.search(query, limit)

    def end_turn(self, outcome: Outcome, summary: str | None = None) -> None:
        if not self._running.closing:
            self._end_turn(outcome, summary)

    async def process_ended(self, process: str, exit_code: int | None, text: str) -> None:
        # Said to the agent, hence to the log: whatever the process wrote.
        await self._turn.process_ended(process, exit_code, Redactor(self._toolbox.environment).redact(text))

    async def delegate(self, agent: str | None, prompt: str, call: str) -> Report:
        return await self._turn.delegate(agent, prompt, call)

    async def write_to(self, letter: Letter, call: str) -> Reply:
        return await self._turn.write_to(letter, call)


class _Running:
    def __init__(self, turn: Turn, toolbox: Toolbox, mode: str, end_turn: EndTurn) -> None:
        self._turn = turn
        self._toolbox = toolbox
        self._mode = mode
        self._host = _Host(turn, self, toolbox, end_turn)
        self.outbox: asyncio.Queue[KnownEvent] = asyncio.Queue(OUTBOX_EVENTS)
        self.taken: dict[int, asyncio.Event] = {}
        """Set once an event has left the outbox, by the event's identity."""
        self.closing = False

    async def run(self, call: Granted) -> None:
        began_ms = self._turn.now_ms()
        result, effect = await self._result(call)
        if result.changes:
            await self.outbox.put(
                FilesChanged(files=result.changes, call=call.call, truncated_count=result.changes_left_out)
            )
        await self.outbox.put(
            finish_call(
                call.call,
                result,
                effect=effect,
                duration_ms=max(0, self._turn.now_ms() - began_ms),
            )
        )

    async def _result(self, call: Granted) -> tuple[ToolResult, Literal["done", "none", "unknown"]]:
        place = Workplace(
            root=self._turn.project,
            output=self._output_of(call),
            spill=self._turn.store_blob,
            programs=self._turn.programs,
            host=self._host,
            call=call.call,
            mode=self._mode,
        )
        try:
            result = await self._toolbox.run(call.name, call.arguments, place, call.hash)
            result = await self._limit(_result_for_model(call, result))
        except asyncio.CancelledError:
            if self.closing:
                raise
            return ToolResult(ok=False, error="The tool was cancelled from within; its effect is unknown."), "unknown"
        except Exception as error:  # a tool must not end the turn: whatever it raises is its result
            logger.exception("tool crashed", tool=call.name, call=call.call)
            return ToolResult(ok=False, error=f"The tool crashed ({error!r}); its effect is unknown."), "unknown"
        return result, "none" if result.error_code == "changed" and not result.ok else "done"

    def _output_of(self, call: Granted) -> Any:
        async def output(text: str, stream: Literal["stdout", "stderr"]) -> None:
            for at in range(0, len(text), OUTPUT_EVENT_CHARS):
                piece = text[at : at + OUTPUT_EVENT_CHARS]
                await self.outbox.put(ToolOutputDelta(call=call.call, text=piece, stream=stream))

        return output

    async def _limit(self, result: ToolResult) -> ToolResult:
        size = len(result.output)
        if size <= RESULT_CHARS:
            return result
        half = RESULT_CHARS // 2
        middle = f"\n[… {size - 2 * half:,} characters left out …]\n"
        blob = result.blob or await self._turn.store_blob(result.output.encode(), "text/plain; charset=utf-8")
        return replace(result, output=result.output[:half] + middle + result.output[-half:], truncated=True, blob=blob)


def _result_for_model(call: Granted, result: ToolResult) -> ToolResult:
    """The model must know that what ran is not what it asked for."""
    if not call.edited:
        return result
    note = f"(The person changed the arguments to {msgspec.json.encode(call.arguments).decode()})"
    return replace(result, output=f"{note}\n{result.output}")


def finish_call(
    call: str,
    result: ToolResult,
    *,
    effect: Literal["done", "none", "unknown"] = "done",
    duration_ms: int | None = None,
) -> ToolFinished:
    error = None if result.ok else ToolError(code=result.error_code, message=result.error or "The tool failed.")
    return ToolFinished(
        call=call,
        ok=result.ok,
        output=result.output,
        error=error,
        effect=effect,
        truncated=result.truncated,
        blob=result.blob,
        total_lines=result.total_lines,
        total_bytes=result.total_bytes,
        exit_code=result.exit_code,
        duration_ms=duration_ms,
    )

"""One turn with a running Claude Code: what it is told, what it says, what it asks, and how it is stopped.

Used by `backend`. Everything that happens comes through the program's inbox in one order, so a request never precedes the
call it is about, and a grant is on disk before the program hears the yes.

A stop cancels the task that reads `events`. The program is then interrupted by its own means and drained until it rests;
one that does not rest in time, or has something of this turn left in the background, is let go with all it started.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from palaver.approval.program_calls import Judging
from palaver.backends.base import Turn
from palaver.backends.claude.approvals import OwnQuestion
from palaver.backends.claude.events import Reading
from palaver.backends.claude.process import Ask, ClaudeProgram, Hooked, Signal, Withdrawn
from palaver.backends.claude.process_tree import family
from palaver.backends.claude.results import redacted
from palaver.backends.claude.tools import OwnCall
from palaver.backends.claude.turn_requests import Answered, Decided, Requests
from palaver.backends.excerpts import fitting
from palaver.backends.process import to_the_end
from palaver.backends.turn_input import GO_ON, Briefing, Words, words_of
from palaver.context.handover import mark
from palaver.errors import AgentError, Exited
from palaver.journal import Journal
from palaver.schema.errors import WireError
from palaver.schema.events import (
    KnownEvent,
    RequestOpened,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from palaver.schema.view import Outcome
from palaver.tools.redact import Redactor

STOP_S = 1.5
"""For an interrupted program to rest; the runner's ladder must still fit into the 2 s after which nothing may be left."""
LOOK_S = 0.02
RULES_S = 0.25
"""After a call was put to the program's rules: by then it has asked, or it runs."""

LATEST = 8
"""Messages among which stands what a turn is about that nobody asked for: a process ended, a plan was approved."""

WAITS = frozenset({"sent", "queued"})
"""Of a message: the program has not begun with it."""

logger = Journal(__name__)


@dataclass(frozen=True, slots=True)
class _Runs:
    call: str


class Conduct:
    def __init__(self, turn: Turn, program: ClaudeProgram, brief: Briefing, record: str, judging: Judging) -> None:
        self._turn = turn
        self._program = program
        self._brief = brief
        self._record = record
        self._began_ms = turn.now_ms()
        self._reading = Reading(turn.new_id, self._mark, program.tasks, program.cost_usd, turn.project)
        self._redactor = Redactor(program.spec.environment)
        self._requests = Requests(turn, program, self._reading, judging)
        self._tasks: set[asyncio.Task[None]] = set()
        self._sent: dict[str, str] = {}
        """What the program was told and has not done with, and how far it is."""
        self._carried: set[str] = set()
        """Calls of our own tools that this turn has taken up."""
        self._before: set[int] = set()
        """Processes that the program had when the turn began."""

    async def events(self) -> AsyncGenerator[KnownEvent, None]:
        program = self._program
        program.turn, program.resting = self._turn, False
        program.is_ruled = self._requests.is_ruled
        self._before = family(program.pid)
        settled = False
        try:
            async with aclosing(self._all()) as events:
                async for event in events:
                    yield event
            settled = True
        except AgentError:
            # It said why, and rests: nothing is left to interrupt.
            settled = True
            raise
        finally:
            program.cost_usd = self._reading.cost_usd
            there = {message.id for message in self._turn.history}
            # Of a stopped turn an empty answer may be gone a moment later.
            program.known.update(one for one in self._reading.answers if settled or one in there)
            await to_the_end(self._leave(settled))
            program.resting = True

    async def _all(self) -> AsyncGenerator[KnownEvent, None]:
        if await self._program.woke():
            # It began by itself: first what it has to say, so that a message is not folded into that.
            async with aclosing(self._until_rest()) as events:
                async for event in events:
                    yield event
        else:
            self._program.forget()
        words = await self._words()
        while words is not None:
            self._reading.begin()
            await self._send(words)
            async with aclosing(self._until_rest()) as events:
                async for event in events:
                    yield event
            delivered = () if self._reading.failure or self._requests.declined else await self._turn.deliveries()
            words = await words_of(self._turn, delivered) if delivered else None
        yield self._finish()

    async def _words(self) -> Words | None:
        """What the turn asks; None when the program has said by itself what there is to say."""
        if self._brief.asked:
            return (await words_of(self._turn, self._brief.asked)).after(self._record)
        if self._reading.result is not None:
            return None
        told = [message for message in self._turn.history[-LATEST:] if message.role == "event"]
        words = await words_of(self._turn, told)
        return (words if words.text else Words(GO_ON)).after(self._record)

    async def _send(self, words: Words) -> None:
        told = str(uuid.uuid4())
        self._sent[told] = "sent"
        await self._program.say(words, told)
        said = [message.id for message in self._turn.history if not message.hidden and message.status != "superseded"]
        self._program.known.update(said)

    # -- reading

    async def _until_rest(self) -> AsyncGenerator[KnownEvent, None]:
        """Everything until the program rests. Ends by its own word, or, for an old one, by its result."""
        while True:
            item = await self._program.next()
            match item:
                case dict():
                    for event in self._reading.read(item):
                        shown = redacted(event, self._redactor)
                        yield await fitting(shown, self._turn) if isinstance(shown, ToolFinished) else shown
                        if isinstance(event, ToolStarted | ToolFinished):
                            await self._steer()
                    if self._is_rest(item):
                        return
                case Ask():
                    for event in await self._requests.asked(item):
                        yield event
                case Hooked():
                    self._hold(self._watch(item.call), f"call {item.call}")
                case Withdrawn():
                    for event in self._requests.withdrawn(item.ask):
                        yield event
                case Signal(what=Answered() as told):
                    for event in await self._requests.resolved(told):
                        yield event
                    # The grant is on disk before the program hears of it.
                    await self._turn.committed()
                    self._requests.answer(told.ask, told.resolved)
                    await self._steer()
                case Signal(what=Decided() as decided):
                    await self._turn.committed()
                    self._requests.answer(decided.ask, decided.resolved)
                case Signal(what=_Runs() as running):
                    for event in self._reading.started(running.call):
                        yield event
                        await self._steer()
                case Signal(what=OwnQuestion() as question):
                    self._put(question)
                case Signal(what=OwnCall() as own):
                    self._carry_out(own)
                case Exited():
                    raise item
                case _:
                    pass

    def _is_rest(self, line: dict[str, Any]) -> bool:
        result = self._reading.result
        if line.get("type") == "command_lifecycle":
            self._program.tells_messages = True
            self._follow(str(line.get("command_uuid")), str(line.get("state")))
        if result is None:
            return False
        if self._program.tells_state:
            idle = line.get("subtype") == "session_state_changed" and line.get("state") == "idle"
            # One that was sent as it came to rest is taken up next.
            return idle and not (self._program.tells_messages and WAITS & set(self._sent.values()))
        return line.get("type") == "result" and not result.own

    def _follow(self, told: str, state: str) -> None:
        if told in self._sent:
            if state in (*WAITS, "started"):
                self._sent[told] = state
            else:
                del self._sent[told]

    async def _steer(self) -> None:
        """A boundary: what was said meanwhile goes to the program, which takes it in with the next result."""
        if delivered := await self._turn.deliveries():
            await self._send(await words_of(self._turn, delivered))

    # -- tools of ours

    def _put(self, question: OwnQuestion) -> None:
        call = next(
            (one for one in reversed(self._reading.calls.values()) if one.name.endswith("ask_user") and not one.ended),
            None,
        )
        request = replace(
            question.request,
            request=self._turn.new_id(),
            call=call.id if call else None,
            agent=self._turn.agent.id,
        )
        self._hold(self._ask(question, request), f"question {request.request}")

    def _carry_out(self, own: OwnCall) -> None:
        """The program does not say which of its calls this is; of equal ones it makes no difference."""
        name = own.tool.spec.name
        call = next(
            (
                one
                for one in self._reading.calls.values()
                if one.name.endswith(f"__{name}") and one.input == own.given and one.id not in self._carried
            ),
            None,
        )
        known = call.id if call is not None else self._turn.new_id()
        self._carried.add(known)
        self._hold(own.carry_out(self._turn, known), f"{name} {known}")

    def _hold(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, question: OwnQuestion, request: RequestOpened) -> None:
        resolved = await self._turn.request(request)
        if not question.answer.done():
            question.answer.set_result(resolved)

    async def _watch(self, theirs: str) -> None:
        """A call that its rules have before them: has the program asked by now, or does it run?"""
        await asyncio.sleep(RULES_S)
        call = self._reading.calls.get(theirs)
        if call is None or call.asked or call.started or call.ended:
            return
        with suppress(Exception):
            # A question that is on its way comes before this answer, however slow both of us are.
            await self._program.connected.get_mcp_status()
        self._program.inbox.put_nowait(Signal(_Runs(theirs)))

    # -- the end

    def _finish(self) -> TurnFinished:
        result = self._reading.result
        outcome: Outcome = "yielded" if self._program.tasks else "completed"
        if self._requests.declined:
            outcome = "interrupted"
        elif result is not None and result.limited:
            outcome = "limited"
        elif result is not None and result.failed:
            raise result.error(self._reading.failure)
        return TurnFinished(
            outcome=outcome,
            duration_ms=max(0, self._turn.now_ms() - self._began_ms),
            error=WireError(code="limit_reached", message=result.text) if result and outcome == "limited" else None,
            summary=self._requests.declined,
        )

    async def _leave(self, settled: bool) -> None:
        """Bounded: waiting for cancelled tasks, then for the program to rest."""
        tasks = [*self._requests.tasks, *self._tasks]
        for task in tasks:
            task.cancel()
        # Both at once: whoever works for this turn takes as long to end as the program itself.
        await asyncio.gather(_wait_for_end(tasks), *([] if settled else [self._stop()]))

    async def _stop(self) -> None:
        program = self._program
        left = self._reading.new_tasks
        for task in left:
            # The conversation has written down that they are stopped.
            program.tasks.pop(task, None)
        if left or WAITS & set(self._sent.values()):
            # Something of the turn would go on: a background task, or a message that is yet to be taken up.
            program.broken = True
            return
        try:
            async with asyncio.timeout(STOP_S):
                if program.running:
                    await program.connected.interrupt()
                while program.running or not program.inbox.empty():
                    await program.next()
                while family(program.pid, self._before):  # noqa: ASYNC110 - a process tells nobody that it ends
                    await asyncio.sleep(LOOK_S)
        except Exception as failure:  # noqa: BLE001 - whatever the SDK raises, the program is let go
            logger.info(
                "claude is let go after a stop: something would go on",
                pid=program.pid,
                reason=str(failure) or "too slow",
            )
            program.broken = True

    def _mark(self, at: str | None, cost_usd: float | None) -> dict[str, Any]:
        return mark(
            "claude",
            self._program.session or "",
            conversation=self._turn.conversation,
            at=at,
            cost_usd=cost_usd,
        )


async def _wait_for_end(tasks: Sequence["asyncio.Task[None]"]) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=STOP_S)

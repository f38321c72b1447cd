"""One turn with Codex: its lines, the person's answers and messages, until Codex says that it is over.

Made by the backend for each turn. Lines and answers come through one inbox, in the order they arrive. Messages for the
running turn are steered into it at each result; what comes too late begins another of Codex's turns inside this one.

When it is stopped, the program's own interrupt is sent, its commands are ended, and what still arrives is dropped up to its
end-of-turn mark. A program that does not come to rest is given up. A late line carries its turn's id and is never another's.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, assert_never

from msgspec.structs import replace

from palaver.approval.program_calls import Judging
from palaver.backends.base import Turn
from palaver.backends.codex.events import Translator
from palaver.backends.codex.failure import failure_of
from palaver.backends.codex.modes import Conduct
from palaver.backends.codex.own_calls import OwnCalls
from palaver.backends.codex.process import AppServer, Call, Gone, Json, Line, Refused, Thread
from palaver.backends.codex.turn_input import input_items, opening
from palaver.backends.codex.turn_requests import Answered, Requests
from palaver.backends.process import to_the_end
from palaver.context.plan_text import plan_of
from palaver.core.state import messages_of_turn
from palaver.errors import AgentError, Exited, ProtocolBroken
from palaver.journal import Journal
from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    KnownEvent,
    RequestOpened,
    ToolFinished,
    TurnFinished,
)
from palaver.schema.view import Outcome, TextBlock
from palaver.tools.base import Tool

SETTLE_S = 1.5
"""It answers an interrupt within milliseconds. One that has not come to rest by then is stuck, and serves nobody."""
RESULT_CHARS = 32_768
"""Of a result in its event, beginning and end; the whole goes to a blob."""
STEER_S = 5.0
"""A message that cannot be steered in by then begins a turn of its own."""

logger = Journal(__name__)


class CodexTurn:
    def __init__(
        self,
        turn: Turn,
        server: AppServer,
        thread: Thread,
        conduct: Conduct,
        judging: Judging,
        give_up: Callable[[], Awaitable[None]],
        own_tools: Sequence[Tool] = (),
    ) -> None:
        """`own_tools` are those of ours that Codex may call."""
        self._turn = turn
        self._server = server
        self._thread = thread
        self._conduct = conduct
        self._give_up = give_up
        self._inbox: asyncio.Queue[Line | Gone | Answered] = thread.listen()
        self._translator = Translator(
            session=thread.id,
            conversation=turn.conversation,
            project=turn.project,
            new_id=turn.new_id,
            total=thread.total,
            grant=conduct.grant,
        )
        self._requests = Requests(
            turn, server, conduct, judging, self._translator, self._inbox.put, self._interrupt, self._steer_in
        )
        self._own = OwnCalls(turn, server, own_tools, self._translator.calls)
        self._starting: Call | None = None
        self._running: str | None = None
        """Codex's id of its turn, while it runs."""
        self._late: list[Json] = []
        """Said too late to be steered in."""
        self._steered: dict[str, list[Json]] = {}
        """Taken by Codex and not yet seen by its model: a turn that ends just then forgets them."""
        self._spent = Usage()
        self._began_ms = turn.now_ms()

    async def events(self, record: str) -> AsyncGenerator[KnownEvent, None]:
        """The whole turn, beginning with what Codex has not seen and what was said."""
        try:
            said = await opening(self._turn, record)
            while said:
                await self._begin(said)
                async with aclosing(self._until_over()) as events:
                    async for event in events:
                        if isinstance(event, AnswerFinished) and event.usage:
                            self._spent += event.usage
                        yield await self._limit(event)
                said = await self._more()
            for event in self._finish():
                yield event
        finally:
            await to_the_end(self._leave())

    # -- Codex's turns

    async def _begin(self, said: list[Json]) -> None:
        wanted: Json = {"threadId": self._thread.id, "input": said}
        wanted |= self._conduct.of_turn(self._thread.settings, self._thread.model)
        self._starting = self._server.prepare("turn/start", wanted)
        try:
            result = await self._server.answer_of(self._starting, send=True)
        except Refused as refused:
            self._starting = None
            raise failure_of({"message": refused.message}) from refused
        self._thread.settings = self._conduct
        self._running = self._translator.turn = _turn_id(result)
        self._starting = None

    async def _until_over(self) -> AsyncGenerator[KnownEvent, None]:
        while self._running is not None:
            line = await self._inbox.get()
            match line:
                case Gone():
                    raise Exited(line.reason)
                case Answered():
                    events = self._requests.decided(line)
                case Line(id=None):
                    events = self._handle(line)
                case Line(method="item/tool/call", id=int() | str() as request):
                    await self._own.begin(request, line.params)
                    continue
                case Line():
                    events = self._requests.ask_person(line)
                case _:
                    assert_never(line)
            async with aclosing(events):
                async for event in events:
                    yield event

    async def _handle(self, line: Line) -> AsyncGenerator[KnownEvent, None]:
        if line.method == "serverRequest/resolved":
            if withdrawn := self._requests.withdrawn(line.params.get("requestId")):
                yield withdrawn
            return
        if line.params.get("turnId", self._running) != self._running:
            return  # Of a turn that was stopped, or of one that nobody here began.
        if line.method == "item/started":
            self._mark_seen(line.params.get("item"))
        events = (
            await self._over(line.params.get("turn"))
            if line.method == "turn/completed"
            else self._translator.take(line.method, line.params)
        )
        for event in events:
            yield event
        if self._running and any(isinstance(event, ToolFinished) for event in events):
            # A model call follows, and sees what joins now. After the last word Codex would take a message and not answer.
            said = await input_items(self._turn, await self._turn.deliveries())
            await self._steer_in(said)

    def _mark_seen(self, item: Any) -> None:
        match item:
            case {"type": "userMessage", "clientId": str(name)}:
                self._steered.pop(name, None)
            case _:
                pass

    async def _over(self, ended: Any) -> list[KnownEvent]:
        match ended:
            case {"id": str(name), "status": str(status)} if name == self._running:
                self._running = None
                if status == "failed":
                    error = ended.get("error")
                    raise failure_of(error if isinstance(error, dict) else self._translator.failure)
                if status == "interrupted" and self._requests.declined is None:
                    self._requests.declined = "Codex broke the turn off."
                return self._translator.ended(status == "completed", await self._terminals())
            case _:
                return []

    async def _terminals(self) -> frozenset[str]:
        """The items whose commands go on in the background."""
        if not self._translator.left_running:
            return frozenset()
        found = await self._server.terminals_of(self._thread.id)
        self._thread.terminals |= found
        return found

    async def _more(self) -> list[Json]:
        """What is left to be said in this turn."""
        if self._requests.declined is not None:
            return []
        late = [*self._late, *(part for said in self._steered.values() for part in said)]
        self._late.clear()
        self._steered.clear()
        return [*late, *await input_items(self._turn, await self._turn.deliveries())]

    async def _steer_in(self, said: list[Json]) -> None:
        if not said:
            return
        name = self._turn.new_id()
        wanted = {
            "threadId": self._thread.id,
            "expectedTurnId": self._running,
            "input": said,
            "clientUserMessageId": name,
        }
        self._steered[name] = said
        try:
            await self._server.call("turn/steer", wanted, limit_s=STEER_S)
        except (Refused, AgentError) as error:
            logger.debug("a message came too late to be steered in", why=str(error))
            self._late += self._steered.pop(name, [])

    def _finish(self) -> list[KnownEvent]:
        events: list[KnownEvent] = []
        outcome: Outcome = "completed"
        if self._requests.declined is not None:
            outcome = "interrupted"
        elif self._conduct.planning and (plan := plan_of(self._translator.plan_text or self._last_text())):
            outcome = "plan"
            events.append(RequestOpened(request=self._turn.new_id(), kind="plan", title=plan.summary, plan=plan))
        over = self._translator.left_over
        ended = TurnFinished(
            outcome=outcome,
            duration_ms=max(0, self._turn.now_ms() - self._began_ms),
            usage=self._spent + over if over != Usage() else Usage(),
            summary=self._requests.declined,
        )
        return [*events, ended]

    def _last_text(self) -> str:
        answers = [m for m in messages_of_turn(self._turn.state, self._turn.id) if m.role == "assistant"]
        return "\n\n".join(block.text for m in answers[-1:] for block in m.blocks if isinstance(block, TextBlock))

    async def _limit(self, event: KnownEvent) -> KnownEvent:
        if not isinstance(event, ToolFinished) or len(event.output) <= RESULT_CHARS:
            return event
        half = RESULT_CHARS // 2
        middle = f"\n[… {len(event.output) - 2 * half:,} characters left out …]\n"
        blob = await self._turn.store_blob(event.output.encode(errors="replace"), "text/plain; charset=utf-8")
        output = event.output[:half] + middle + event.output[-half:]
        return replace(event, output=output, truncated=True, blob=blob)

    # -- the end

    async def _leave(self) -> None:
        waiting = [*self._requests.let_go(), *self._own.tasks]
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting, timeout=SETTLE_S)
        try:
            if self._server.alive and (self._running or (self._starting and self._starting.sent)):
                await self._stop()
        finally:
            self._thread.inbox = None

    async def _stop(self) -> None:
        try:
            async with asyncio.timeout(SETTLE_S):
                if self._starting is not None:
                    self._running = _turn_id(await asyncio.shield(self._starting.answer))
                await self._interrupt()
                await self._drain()
                # A stopped command goes on as a background terminal until this.
                await self._server.call("thread/backgroundTerminals/clean", {"threadId": self._thread.id})
                self._thread.terminals = frozenset()
        except TimeoutError:
            logger.warning("codex did not come to rest; it is ended", pid=self._server.pid)
            await self._give_up()
        except (Refused, AgentError) as error:
            logger.debug("nothing was left to stop", why=str(error))

    async def _interrupt(self) -> None:
        wanted = {"threadId": self._thread.id, "turnId": self._running}
        await self._server.post(self._server.prepare("turn/interrupt", wanted))

    async def _drain(self) -> None:
        """To the end-of-turn mark. What is asked on the way is not answered with a yes."""
        while True:
            line = await self._inbox.get()
            match line:
                case Gone():
                    return
                case Line(method="turn/completed", params={"turn": {"id": str(name)}}) if name == self._running:
                    return
                case Line(id=int() | str()):
                    assert line.id is not None
                    await self._server.refuse(line.id, "The turn was stopped.")
                case _:
                    pass


def _turn_id(result: Json) -> str:
    match result:
        case {"turn": {"id": str(name)}}:
            return name
        case _:
            raise ProtocolBroken("Codex did not say which turn it began.")

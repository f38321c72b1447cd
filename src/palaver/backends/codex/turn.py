"""One turn with Codex: its lines, the person's answers and messages, until Codex says that it is over.

Made by the backend for each turn. Lines and answers come through one inbox, in the order they arrive. Messages for the
running turn are steered into it at each result; what comes too late begins another of Codex's turns inside this one.

When it is stopped, the program's own interrupt is sent, its commands are ended, and what still arrives is dropped up to its
end-of-turn mark. A program that does not come to rest is given up. A late line carries its turn's id and is never another's.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, assert_never

import structlog
from msgspec.structs import replace

from palaver.backends.base import Turn
from palaver.backends.codex.asking import Asked, asked, is_allowed
from palaver.backends.codex.conduct import Conduct
from palaver.backends.codex.failure import failure_of
from palaver.backends.codex.judging import judged, offered
from palaver.backends.codex.rpc import AppServer, Call, Gone, Json, Line, Refused, Thread
from palaver.backends.codex.spoken import opening, spoken
from palaver.backends.codex.translate import DECLINED, Translator
from palaver.backends.judging import Judging
from palaver.backends.own_tools import OVER, carried_out
from palaver.backends.process import to_the_end
from palaver.context.proposed_plan import plan_of
from palaver.core.state import messages_of_turn
from palaver.errors import AgentError, Exited, ProtocolBroken
from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    GrantAdded,
    KnownEvent,
    RequestOpened,
    RequestResolved,
    ToolFinished,
    TurnFinished,
)
from palaver.schema.view import Outcome, TextBlock
from palaver.tools.base import Tool, ToolResult
from palaver.tools.policy import Verdict

SETTLE_S = 1.5
"""It answers an interrupt within milliseconds. One that has not come to rest by then is stuck, and serves nobody."""
RESULT_CHARS = 32_768
"""Of a result in its event, beginning and end; the whole goes to a blob."""
STEER_S = 5.0
"""A message that cannot be steered in by then begins a turn of its own."""

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Answered:
    """A person answered what Codex asked under this id."""

    request: int | str
    resolved: RequestResolved


@dataclass(slots=True)
class _Open:
    asked: Asked
    task: "asyncio.Task[None]"


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
        self._judging = judging
        self._give_up = give_up
        self._own_tools = {tool.spec.name: tool for tool in own_tools}
        self._own_calls: set[asyncio.Task[None]] = set()
        self._inbox: asyncio.Queue[Line | Gone | _Answered] = thread.listen()
        self._translator = Translator(
            session=thread.id,
            conversation=turn.conversation,
            project=turn.project,
            new_id=turn.new_id,
            total=thread.total,
            grant=conduct.grant,
        )
        self._starting: Call | None = None
        self._running: str | None = None
        """Codex's id of its turn, while it runs."""
        self._open: dict[int | str, _Open] = {}
        self._late: list[Json] = []
        """Said too late to be steered in."""
        self._steered: dict[str, list[Json]] = {}
        """Taken by Codex and not yet seen by its model: a turn that ends just then forgets them."""
        self._declined: str | None = None
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
                        yield await self._bounded(event)
                said = await self._more()
            for event in self._finished():
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
                case _Answered():
                    events = self._decided(line)
                case Line(id=None):
                    events = self._heard(line)
                case Line():
                    events = self._asked(line)
                case _:
                    assert_never(line)
            async with aclosing(events):
                async for event in events:
                    yield event

    async def _heard(self, line: Line) -> AsyncGenerator[KnownEvent, None]:
        if line.method == "serverRequest/resolved":
            if withdrawn := self._withdrawn(line.params.get("requestId")):
                yield withdrawn
            return
        if line.params.get("turnId", self._running) != self._running:
            return  # Of a turn that was stopped, or of one that nobody here began.
        if line.method == "item/started":
            self._seen(line.params.get("item"))
        events = (
            await self._over(line.params.get("turn"))
            if line.method == "turn/completed"
            else self._translator.take(line.method, line.params)
        )
        for event in events:
            yield event
        if self._running and any(isinstance(event, ToolFinished) for event in events):
            # A model call follows, and sees what joins now. After the last word Codex would take a message and not answer.
            said = await spoken(self._turn, await self._turn.deliveries())
            await self._steer_in(said)

    def _seen(self, item: Any) -> None:
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
                if status == "interrupted" and self._declined is None:
                    self._declined = "Codex broke the turn off."
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
        if self._declined is not None:
            return []
        late = [*self._late, *(part for said in self._steered.values() for part in said)]
        self._late.clear()
        self._steered.clear()
        return [*late, *await spoken(self._turn, await self._turn.deliveries())]

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

    def _finished(self) -> list[KnownEvent]:
        events: list[KnownEvent] = []
        outcome: Outcome = "completed"
        if self._declined is not None:
            outcome = "interrupted"
        elif self._conduct.planning and (plan := plan_of(self._translator.plan_text or self._said())):
            outcome = "plan"
            events.append(RequestOpened(request=self._turn.new_id(), kind="plan", title=plan.summary, plan=plan))
        over = self._translator.left_over
        ended = TurnFinished(
            outcome=outcome,
            duration_ms=max(0, self._turn.now_ms() - self._began_ms),
            usage=self._spent + over if over != Usage() else Usage(),
            summary=self._declined,
        )
        return [*events, ended]

    def _said(self) -> str:
        answers = [m for m in messages_of_turn(self._turn.state, self._turn.id) if m.role == "assistant"]
        return "\n\n".join(block.text for m in answers[-1:] for block in m.blocks if isinstance(block, TextBlock))

    async def _bounded(self, event: KnownEvent) -> KnownEvent:
        if not isinstance(event, ToolFinished) or len(event.output) <= RESULT_CHARS:
            return event
        half = RESULT_CHARS // 2
        middle = f"\n[… {len(event.output) - 2 * half:,} characters left out …]\n"
        blob = await self._turn.store_blob(event.output.encode(errors="replace"), "text/plain; charset=utf-8")
        output = event.output[:half] + middle + event.output[-half:]
        return replace(event, output=output, truncated=True, blob=blob)

    # -- what Codex asks

    async def _asked(self, line: Line) -> AsyncGenerator[KnownEvent, None]:
        assert line.id is not None
        if line.method == "item/tool/call":
            await self._own_call(line.id, line.params)
            return
        call = self._translator.calls.get(str(line.params.get("itemId")))
        question = asked(
            line.method,
            line.params,
            call,
            request=self._turn.new_id(),
            agent=self._turn.agent.id,
            project=self._turn.project,
            sandbox=self._conduct.box,
        )
        if question is None:
            logger.info("codex asked what nobody can answer", method=line.method)
            await self._server.refuse(line.id, f"This client cannot answer {line.method}.")
            return
        # In mode auto it asks only for what its sandbox does not let it do.
        leaves = self._conduct.mode == "auto"
        found = judged(self._judging, self._turn, question, leaves_sandbox=leaves)
        if found is not None and found.verdict.decision != "ask":
            for event in self._ruled(question, found.verdict):
                yield event
            await self._turn.committed()
            await self._server.reply(line.id, _by_rule(question, found.verdict))
            return
        if found is not None:
            question = offered(self._judging, self._turn, question, found)
        waiting = asyncio.create_task(self._ask(line.id, question.opened), name=f"request {line.id} of codex")
        self._open[line.id] = _Open(question, waiting)

    def _ruled(self, question: Asked, verdict: Verdict) -> list[KnownEvent]:
        """A rule, a grant or the mode decides; nobody is asked."""
        call = question.call
        if verdict.decision == "deny_abort":
            self._declined = verdict.why
        if call is not None and verdict.decision != "allow":
            call.declined = verdict.why
        return (
            self._translator.started(call, verdict.grant, hash=question.opened.hash) if call and verdict.grant else []
        )

    async def _ask(self, request: int | str, opened: RequestOpened) -> None:
        resolved = await self._turn.request(opened)
        await self._inbox.put(_Answered(request, resolved))

    async def _decided(self, answered: _Answered) -> AsyncGenerator[KnownEvent, None]:
        known = self._open.pop(answered.request, None)
        if known is None:
            return  # Withdrawn in the meantime.
        question, resolved = known.asked, answered.resolved
        opened, call = question.opened, question.call
        if is_allowed(resolved):
            if call is not None:
                for event in self._translator.started(call, f"request:{opened.request}", opened.request, opened.hash):
                    yield event
            if resolved.scope != "once" and 0 <= resolved.offer < len(opened.offers) and question.match is not None:
                grant = GrantAdded(
                    tool=opened.tool or "",
                    scope=resolved.scope,
                    match=opened.offers[resolved.offer].match,
                    agent=opened.agent,
                    request=opened.request,
                )
                yield await self._judging.grants.keep(self._turn, grant)
            # The grant is on disk before the first effect.
            await self._turn.committed()
        await self._server.reply(answered.request, question.answer(resolved))
        if opened.kind == "approval" and not is_allowed(resolved):
            await self._refused(question, resolved)

    async def _refused(self, question: Asked, resolved: RequestResolved) -> None:
        if question.call is not None:
            said = f" They said: {resolved.text}" if resolved.text else ""
            question.call.declined = f"{DECLINED}{said}" if resolved.status == "answered" else NOBODY
        if resolved.then == "stop":
            self._declined = f"{question.opened.title or 'A request'} was declined."
            if "decision" not in question.accepted:
                # Its answer has no word for "and stop".
                await self._interrupt()
        elif resolved.text:
            # A refusal carries no words of its own.
            await self._steer_in([{"type": "text", "text": f"(On declining the last call:) {resolved.text}"}])

    def _withdrawn(self, request: Any) -> RequestResolved | None:
        known = self._open.pop(request, None)
        if known is None or known.task.done():
            return None
        known.task.cancel()
        return RequestResolved(request=known.asked.opened.request, status="cancelled")

    # -- our own tools

    async def _own_call(self, request: int | str, params: Json) -> None:
        name, arguments = str(params.get("tool")), params.get("arguments")
        tool = self._own_tools.get(name)
        if tool is None:
            await self._server.reply(request, _told(ToolResult(ok=False, error=f"There is no tool “{name}” here.")))
            return
        known = self._translator.calls.get(str(params.get("callId")))
        call = known.call if known else self._turn.new_id()
        given = arguments if isinstance(arguments, dict) else {}
        work = self._answer_own(request, carried_out(tool, given, self._turn, call))
        task = asyncio.create_task(work, name=f"{name} of codex")
        self._own_calls.add(task)
        task.add_done_callback(self._own_calls.discard)

    async def _answer_own(self, request: int | str, work: Coroutine[Any, Any, ToolResult]) -> None:
        """Whatever happens, there is an answer: Codex waits for it."""
        result = OVER
        try:
            result = await work
        finally:
            await self._server.reply(request, _told(result))

    # -- the end

    async def _leave(self) -> None:
        waiting = [*(known.task for known in self._open.values()), *self._own_calls]
        self._open.clear()
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


NOBODY = "Nobody answered in time; it was not run."


def _by_rule(question: Asked, verdict: Verdict) -> Json:
    if verdict.decision == "allow":
        return question.accepted
    return {"decision": "cancel" if verdict.decision == "deny_abort" else "decline"}


def _told(result: ToolResult) -> Json:
    text = result.output if result.ok else result.error or ""
    return {"contentItems": [{"type": "inputText", "text": text}], "success": result.ok}


def _turn_id(result: Json) -> str:
    match result:
        case {"turn": {"id": str(name)}}:
            return name
        case _:
            raise ProtocolBroken("Codex did not say which turn it began.")

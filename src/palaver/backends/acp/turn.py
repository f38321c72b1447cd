"""One turn of an ACP agent, from its prompt to its end: what it says, what it asks, what a stop leaves.

Used by the backend. It drives the link and yields what the translation makes of it. A stop answers open permissions itself,
cancels the agent's turn, and ends the process when that takes too long or a running tool was left behind.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from palaver.approval.policy import Mode
from palaver.approval.program_calls import Judging, mode_of
from palaver.backends.acp.approvals import Answered, Choice, answer_of, choice_of, describe, grant_of
from palaver.backends.acp.events import Call, Translation, usage_of
from palaver.backends.acp.own_calls import OwnTurn
from palaver.backends.acp.process import Heard, Link, Over, Permission, Update
from palaver.backends.acp.session import Session
from palaver.backends.acp.tools import OwnCall
from palaver.backends.base import Turn
from palaver.backends.excerpts import fitting
from palaver.backends.process import to_the_end
from palaver.backends.turn_input import briefing, words_of
from palaver.clock import Clock
from palaver.context.handover import mark
from palaver.journal import Journal
from palaver.schema.errors import WireError
from palaver.schema.events import KnownEvent, RequestResolved, ToolFinished, TurnFinished
from palaver.schema.view import Outcome
from palaver.tasks import TaskOwner, wait_first

SETTLE_S = 1.5
"""For an agent to end a cancelled turn; then its process is ended."""
LET_GO_S = 0.5
"""For a question that is withdrawn. All clean-up together must end before the conversation goes on without it."""
TURN_S = 24 * 3600.0
"""Of one prompt: a turn may wait for a person over night. A stop ends it at any time."""
SILENT_S = 3.0
"""opencode calls a tool in progress before it asks for permission: a fifth of a second before, and more than one where ten
others want the processor. Only after this, or its first output, does a call count as begun that nobody was asked about."""

logger = Journal(__name__)


class Conduct:
    def __init__(self, turn: Turn, link: Link, judging: Judging, own: OwnTurn, clock: Clock) -> None:
        self._turn = turn
        self._clock = clock
        self._link = link
        self._own = own
        self._by = f"acp:{turn.agent.id}"
        self._judging = judging
        mode = mode_of(turn)
        self._mode: Mode = "ask" if mode == "full" and not judging.policy.full_enabled else mode
        self._decided: list[Choice] = []
        self._began_ms = turn.now_ms()
        self._asked: dict[asyncio.Task[RequestResolved], Choice] = {}
        self._said = Translation(turn.new_id, turn.agent.model, link.past)
        self._stopped: str | None = None
        self._silent_since_s: float | None = None

    async def events(self) -> AsyncGenerator[KnownEvent, None]:
        turn, link = self._turn, self._link
        brief = briefing(turn, self._by)
        # Its own modes know nothing of our rules: where there are some it asks, and the policy answers by the mode.
        asks = self._mode != "plan" and self._judging.restricts(turn)
        record = await Session(turn, link, brief, "ask" if asks else self._mode).ready()
        words = (await words_of(turn, brief.asked)).after(record)
        images = words.images if link.can("promptCapabilities", "image") else ()
        if len(images) < len(words.images):
            logger.info("an agent cannot see images; they are left out", agent=link.name)
        content: list[Mapping[str, Any]] = [{"type": "text", "text": text} for text in words.blocks]
        content += [{"type": "image", "data": image.base64, "mimeType": image.mime} for image in images]
        link.turns += 1
        link.known |= {message.id for message in turn.state.messages}
        inbox = link.prompt(content, TURN_S)
        settled = False
        try:
            async with aclosing(self._listen(inbox)) as events:
                async for event in events:
                    yield await fitting(event, turn) if isinstance(event, ToolFinished) else event
                    settled = settled or isinstance(event, TurnFinished)
            settled = True
        finally:
            await to_the_end(self._leave(inbox, settled))

    async def _listen(self, inbox: "asyncio.Queue[Heard]") -> AsyncGenerator[KnownEvent, None]:
        while True:
            heard = await self._next(inbox)
            match heard:
                case None if self._silence_left_s() == 0.0:
                    for event in self._said.start_silent():
                        yield event
                case None:
                    pass
                case Update():
                    for event in self._said.update(heard.told):
                        yield event
                case Permission():
                    for event in self._permission(heard):
                        yield event
                case OwnCall():
                    self._own.heard(heard)
                case Answered():
                    async with aclosing(self._answer(heard)) as events:
                        async for event in events:
                            yield event
                case Over():
                    for event in self._over(heard):
                        yield event
                    return
            for own, call in self._own.pair(self._said):
                for event in self._own_call(own, call):
                    yield event
            for taken_back in self._own.withdraw():
                yield taken_back

    async def _next(self, inbox: "asyncio.Queue[Heard]") -> Heard | Answered | None:
        """What happens next: the policy or a person decided, the agent says something or gives a call up, or a tool has been
        at work a while."""
        if self._decided:
            return Answered(self._decided.pop(0), None)
        limits_s = [left_s for left_s in (self._silence_left_s(), self._own.left_s()) if left_s is not None]
        if limits_s and min(limits_s) == 0.0:
            return None
        async with TaskOwner() as tasks:
            hearing = tasks.start(self._link.heard(inbox), f"hear {self._link.name}")
            others = [tasks.start(self._own.given_up(), "a call is given up")]
            others += [tasks.start(self._clock.sleep(left_s), "the agent is silent") for left_s in limits_s]
            await wait_first(hearing, *others, *self._asked)
            if hearing.done():
                return hearing.result()
        for task, choice in self._asked.items():
            if task.done():
                del self._asked[task]
                return Answered(choice, task.result())
        return None

    def _silence_left_s(self) -> float | None:
        now_s = self._clock.monotonic_s()
        if not self._said.silent:
            self._silent_since_s = None
            return None
        if self._silent_since_s is None:
            self._silent_since_s = now_s
        return max(0.0, self._silent_since_s + SILENT_S - now_s)

    # -- permissions

    def _permission(self, heard: Permission) -> list[KnownEvent]:
        told = heard.told.get("toolCall")
        call, events = self._said.asking(told if isinstance(told, Mapping) else {})
        tool = self._own.tool_of(call)
        judged = (
            self._judging.judge(self._turn, *describe(call, self._turn.project))
            if tool is None
            else self._own.judged(tool, call)
        )
        scopes = self._judging.grants.scopes(self._turn)
        self._put(choice_of(heard, call, self._turn, judged, scopes))
        return events

    def _own_call(self, own: OwnCall, call: Call) -> list[KnownEvent]:
        """A tool of ours is called; the agent may have asked already whether it may."""
        tool = self._own.tool_called(own)
        # Begun without having asked means only that the agent says so; rules still decide.
        if (call.asked and call.started) or tool is None:
            self._own.begin(own, call.id)
            return []
        _, events = self._said.asking({"toolCallId": call.theirs, "rawInput": dict(own.given)})
        self._put(choice_of(own, call, self._turn, self._own.judged(tool, call)))
        return events

    def _put(self, choice: Choice) -> None:
        if choice.verdict.decision == "ask":
            task = asyncio.create_task(self._turn.request(choice.request), name=f"permission {choice.call.id}")
            self._asked[task] = choice
        else:
            self._decided.append(choice)

    async def _answer(self, answered: Answered) -> AsyncGenerator[KnownEvent, None]:
        choice, resolved = answered.choice, answered.resolved
        option, refusal = answer_of(choice, resolved)
        if refusal is None:
            if lasting := grant_of(choice, resolved):
                yield await self._judging.grants.keep(self._turn, lasting)
            request = resolved.request if resolved else None
            grant = f"request:{request}" if request else choice.verdict.grant
            for event in self._said.start(choice.call, grant, request):
                yield event
            # On disk before the agent may begin: whatever happens now, the log knows under which grant.
            await self._turn.committed()
        else:
            for event in self._said.refuse(choice.call, refusal):
                yield event
            stops = resolved.then == "stop" if resolved else choice.verdict.decision == "deny_abort"
            if stops:
                self._stopped = f"{choice.request.title or choice.call.name} was declined."
        self._tell(choice, option, refusal)
        if self._stopped is not None:
            await self._link.cancel(SETTLE_S)

    def _tell(self, choice: Choice, option: Mapping[str, Any], refusal: str | None) -> None:
        match choice.answer:
            case OwnCall() as own:
                if refusal is None:
                    self._own.begin(own, choice.call.id)
                else:
                    self._own.refuse(own, refusal)
            case answer if not answer.done():
                answer.set_result(option)
            case _:
                pass

    # -- the end

    def _over(self, over: Over) -> list[KnownEvent]:
        link, said = self._link, self._said
        if over.error is not None and self._stopped is None:
            raise over.error
        reason = str(over.result.get("stopReason") or "end_turn")
        cost = None
        if said.cost_usd is not None:
            cost = max(0.0, said.cost_usd - link.cost_usd)
            link.cost_usd = said.cost_usd
        provider = mark(
            self._by,
            link.session or "",
            turns=link.turns,
            conversation=self._turn.conversation,
            cost_usd=link.cost_usd,
        )
        words = {"end_turn": "stop", "max_tokens": "length", "refusal": "refusal", "cancelled": "interrupted"}
        events = said.finish(words.get(reason, "other"), usage_of(over.result.get("usage")), cost, provider)
        link.known |= set(said.answers)
        return [*events, self._finish(reason)]

    def _finish(self, reason: str) -> TurnFinished:
        outcome: Outcome = "completed"
        error: WireError | None = None
        match reason:
            case "cancelled":
                outcome = "interrupted"
            case "max_tokens" | "max_turn_requests":
                outcome = "limited"
                error = WireError(code="limit_reached", message=f"{self._link.name} reached a limit. Tell it to go on.")
            case "refusal":
                outcome = "failed"
                error = WireError(
                    code="provider_refused", message="The model declined to answer this. Say it differently."
                )
            case _:
                pass
        if self._stopped is not None:
            outcome, error = "interrupted", None
        return TurnFinished(
            outcome=outcome,
            duration_ms=max(0, self._turn.now_ms() - self._began_ms),
            error=error,
            summary=self._stopped,
        )

    async def _leave(self, inbox: "asyncio.Queue[Heard]", settled: bool) -> None:
        """Nothing of this turn is left when the next one begins."""
        link = self._link
        for task in self._asked:
            task.cancel()
        if self._asked:
            await asyncio.wait(self._asked, timeout=LET_GO_S)
        await self._own.close()
        if not settled:
            ended = await link.cancel(SETTLE_S)
            while not inbox.empty():
                heard = inbox.get_nowait()
                if isinstance(heard, Update):
                    self._said.update(heard.told)
            # codex-acp leaves a cancelled command running and says nothing of it.
            left = any(call.started or call.at_work for call in self._said.open_calls)
            link.spoiled = not ended or left
            link.known |= set(self._said.answers) & {message.id for message in self._turn.state.messages}
        link.hush()
        link.past |= self._said.seen

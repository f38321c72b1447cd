"""What Codex asks for in one turn: judged, put to a person where the policy says so, answered, taken back.

Used by the turn, through whose inbox the answers come, in one order with what Codex says. A grant is on disk before Codex
hears of it.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from palaver.approval.policy import Verdict
from palaver.approval.program_calls import Judging
from palaver.backends.base import Turn
from palaver.backends.codex.approvals import Asked, is_allowed, request_of
from palaver.backends.codex.events import DECLINED, Translator
from palaver.backends.codex.modes import Conduct
from palaver.backends.codex.process import AppServer, Json, Line
from palaver.backends.codex.proposals import judge_question, with_scopes
from palaver.journal import Journal
from palaver.schema.events import GrantAdded, KnownEvent, RequestOpened, RequestResolved

NOBODY = "Nobody answered in time; it was not run."

logger = Journal(__name__)


@dataclass(frozen=True, slots=True)
class Answered:
    """A person answered what Codex asked under this id."""

    request: int | str
    resolved: RequestResolved


@dataclass(slots=True)
class _Open:
    asked: Asked
    task: "asyncio.Task[None]"


class Requests:
    def __init__(
        self,
        turn: Turn,
        server: AppServer,
        conduct: Conduct,
        judging: Judging,
        translator: Translator,
        put: Callable[[Answered], Awaitable[None]],
        interrupt: Callable[[], Awaitable[None]],
        steer_in: Callable[[list[Json]], Awaitable[None]],
    ) -> None:
        """`put` takes a person's answer into the turn's inbox; the others are what a refusal may want of the turn."""
        self._turn = turn
        self._server = server
        self._conduct = conduct
        self._judging = judging
        self._translator = translator
        self._put = put
        self._interrupt = interrupt
        self._steer_in = steer_in
        self._open: dict[int | str, _Open] = {}
        self.declined: str | None = None
        """Why the turn ends: a person or a rule said no, and wants no more."""

    def let_go(self) -> "list[asyncio.Task[None]]":
        """Forgets those that wait for a person, for the turn to end them."""
        waiting = [known.task for known in self._open.values()]
        self._open.clear()
        return waiting

    async def ask_person(self, line: Line) -> AsyncGenerator[KnownEvent, None]:
        assert line.id is not None
        call = self._translator.calls.get(str(line.params.get("itemId")))
        question = request_of(
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
        # In mode auto it asks only for what its sandbox does not let it do; by rules of ours also for the rest, and whether
        # a command is of the one or the other sort it does not say.
        leaves = self._conduct.mode == "auto"
        found = judge_question(self._judging, self._turn, question, leaves_sandbox=leaves)
        if found is not None and found.verdict.decision != "ask":
            for event in self._apply_verdict(question, found.verdict):
                yield event
            await self._turn.committed()
            await self._server.reply(line.id, _by_rule(question, found.verdict))
            return
        if found is not None:
            question = with_scopes(self._judging, self._turn, question, found)
        waiting = asyncio.create_task(self._ask(line.id, question.opened), name=f"request {line.id} of codex")
        self._open[line.id] = _Open(question, waiting)

    def _apply_verdict(self, question: Asked, verdict: Verdict) -> list[KnownEvent]:
        """A rule, a grant or the mode decides; nobody is asked."""
        call = question.call
        if verdict.decision == "deny_abort":
            self.declined = verdict.why
        if call is not None and verdict.decision != "allow":
            call.declined = verdict.why
        return (
            self._translator.started(call, verdict.grant, hash=question.opened.hash) if call and verdict.grant else []
        )

    async def _ask(self, request: int | str, opened: RequestOpened) -> None:
        resolved = await self._turn.request(opened)
        await self._put(Answered(request, resolved))

    async def decided(self, answered: Answered) -> AsyncGenerator[KnownEvent, None]:
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
            await self._refuse(question, resolved)

    async def _refuse(self, question: Asked, resolved: RequestResolved) -> None:
        if question.call is not None:
            said = f" They said: {resolved.text}" if resolved.text else ""
            question.call.declined = f"{DECLINED}{said}" if resolved.status == "answered" else NOBODY
        if resolved.then == "stop":
            self.declined = f"{question.opened.title or 'A request'} was declined."
            if "decision" not in question.accepted:
                # Its answer has no word for "and stop".
                await self._interrupt()
        elif resolved.text:
            # A refusal carries no words of its own.
            await self._steer_in([{"type": "text", "text": f"(On declining the last call:) {resolved.text}"}])

    def withdrawn(self, request: Any) -> RequestResolved | None:
        known = self._open.pop(request, None)
        if known is None or known.task.done():
            return None
        known.task.cancel()
        return RequestResolved(request=known.asked.opened.request, status="cancelled")


def _by_rule(question: Asked, verdict: Verdict) -> Json:
    if verdict.decision == "allow":
        return question.accepted
    return {"decision": "cancel" if verdict.decision == "deny_abort" else "decline"}

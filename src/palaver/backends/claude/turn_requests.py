"""What Claude Code asks for in one turn: judged, put to a person where the policy says so, answered, taken back.

Used by the conduct of a turn, through which everything comes in one order. A call that may run is started in the log before
the program hears the yes; the conduct waits for the disk in between.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from palaver.approval.program_calls import Judging
from palaver.backends.base import Turn
from palaver.backends.claude.approvals import (
    PLAN,
    QUESTION,
    command_grant,
    find_covering,
    grants_of,
    is_command,
    mode_taken,
    permission_result,
    request_of,
)
from palaver.backends.claude.events import Call, Reading
from palaver.backends.claude.process import Ask, ClaudeProgram, Signal
from palaver.backends.claude.proposals import judge_call
from palaver.backends.own_tools import NOT_WANTED
from palaver.errors import PalaverError
from palaver.journal import Journal
from palaver.schema.events import KnownEvent, RequestOpened, RequestResolved, ToolStarted

logger = Journal(__name__)


@dataclass(frozen=True, slots=True)
class Answered:
    ask: Ask
    request: RequestOpened
    resolved: RequestResolved


@dataclass(frozen=True, slots=True)
class Decided:
    """Nobody need be asked: a rule, a grant or the mode says it already."""

    ask: Ask
    resolved: RequestResolved


class Requests:
    def __init__(self, turn: Turn, program: ClaudeProgram, reading: Reading, judging: Judging) -> None:
        self._turn = turn
        self._program = program
        self._reading = reading
        self._judging = judging
        self._waiting: dict[int, tuple[Ask, RequestOpened, asyncio.Task[None]]] = {}
        self.declined: str | None = None
        """Why the turn ends: a person or a rule said no, and wants no more."""

    @property
    def tasks(self) -> "list[asyncio.Task[None]]":
        """Those that wait for a person."""
        return [task for _, _, task in self._waiting.values()]

    async def asked(self, ask: Ask) -> list[KnownEvent]:
        if ask.answer.done():
            return []
        theirs = ask.context.tool_use_id
        own = self._reading.calls.get(theirs or "")
        if own is not None:
            own.asked = True
        if (decided := self._decide(ask)) is not None:
            grant, resolved = decided
            self._program.inbox.put_nowait(Signal(Decided(ask, resolved)))
            if own is None:
                return []
            if resolved.verdict == "allow":
                return [self._start(own, grant)]
            own.denied = True
            return []
        call = self._reading.call_of(theirs)
        request = request_of(
            ask,
            request=self._turn.new_id(),
            call=call.id if call else None,
            agent=self._turn.agent.id,
            root=self._turn.project,
            nested=own is None,
            scopes=self._judging.grants.scopes(self._turn),
        )
        # What was said before is on disk first: a request must find its call.
        await self._turn.committed()
        task = asyncio.create_task(self._wait(ask, request), name=f"request {request.request}")
        self._waiting[id(ask)] = ask, request, task
        return []

    def _decide(self, ask: Ask) -> tuple[str, RequestResolved] | None:
        """What holds already, and under which grant: the policy's word, or a yes given for the conversation."""
        if ask.tool in (QUESTION, PLAN):
            return None
        verdict = judge_call(self._judging, self._turn, ask.tool, ask.input).verdict
        match verdict.decision:
            case "allow":
                return verdict.grant, RequestResolved(request="", status="answered", verdict="allow")
            case "deny_continue":
                return "", RequestResolved(request="", status="answered", verdict="deny", text=verdict.why)
            case "deny_abort":
                self.declined = verdict.why
                return "", RequestResolved(request="", status="answered", verdict="deny", then="stop", text=verdict.why)
            case "ask":
                pass
        granted = {(grant.tool, grant.match) for grant in self._turn.state.grants if grant.scope == "conversation"}
        place = find_covering(ask, granted)
        if place is None:
            return None
        # Said again to the program, which has forgotten it since it was started anew.
        again = RequestResolved(request="", status="answered", verdict="allow", scope="conversation", offer=place)
        return "grant:conversation", again

    async def _wait(self, ask: Ask, request: RequestOpened) -> None:
        try:
            resolved = await self._turn.request(request)
        except PalaverError as failure:
            # It could not even be asked; the program must not wait for ever.
            logger.warning("a request could not be opened", request=request.request, reason=failure.message)
            resolved = RequestResolved(request=request.request, status="cancelled")
        self._program.inbox.put_nowait(Signal(Answered(ask, request, resolved)))

    def is_ruled(self, tool: str, given: Mapping[str, Any]) -> bool:
        """Whether a rule of ours denies a call or says to ask, whatever the program's own rules and mode say."""
        return tool not in (QUESTION, PLAN) and judge_call(self._judging, self._turn, tool, given).verdict.by_rule

    async def resolved(self, told: Answered) -> list[KnownEvent]:
        ask, resolved = told.ask, told.resolved
        if self._waiting.pop(id(ask), None) is None or ask.answer.done():
            return []
        own = self._reading.calls.get(ask.context.tool_use_id or "")
        if resolved.status != "answered" or resolved.verdict == "deny":
            if own is not None:
                own.denied = True
            if resolved.then == "stop":
                self.declined = f"{told.request.title or ask.tool} was declined."
            return []
        events: list[KnownEvent] = [*grants_of(ask, resolved, self._turn.agent.id)]
        if is_command(ask) and (grant := command_grant(resolved, told.request)):
            events.append(await self._judging.grants.keep(self._turn, grant))
        if own is not None:
            events.append(self._start(own, f"request:{told.request.request}", told.request))
        return events

    def _start(self, call: Call, grant: str, request: RequestOpened | None = None) -> ToolStarted:
        call.started = True
        return ToolStarted(
            call=call.id,
            grant=grant,
            request=request.request if request else None,
            hash=request.hash if request else None,
        )

    def answer(self, ask: Ask, resolved: RequestResolved) -> None:
        if not ask.answer.done():
            self._program.grants.update((grant.tool, grant.match) for grant in grants_of(ask, resolved, ""))
            self._program.raised = mode_taken(ask, resolved) or self._program.raised
            ask.answer.set_result(permission_result(ask, resolved))

    def withdrawn(self, ask: Ask) -> list[KnownEvent]:
        known = self._waiting.pop(id(ask), None)
        if known is None:
            return []
        _, request, task = known
        task.cancel()
        return [RequestResolved(request=request.request, status="cancelled", text=NOT_WANTED)]

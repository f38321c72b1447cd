"""The open tool calls of a conversation, each brought to its one result.

Used by the loop before every model call, so a call of a turn that a restart ended takes the same way as one of a moment
ago. All requests of a batch are open at once; calls run in order, neighbours together when they only read, when the files
they write are known and none is shared, or when the editor executes them. What is approved is proposed again before it
runs, and asked again when it changed.

Must never: run a call twice, run one before its grant is on disk, or leave one without a result.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import PurePosixPath

from palaver.approval.policy import Mode, Rule
from palaver.approval.turn_grants import Grants
from palaver.backends.api.proposals import Allowed, Approved, Asked, Entry, Judging, Question, denial
from palaver.backends.api.tool_rate import ToolRate, limit_of, tool_rate
from palaver.backends.api.tool_runs import CLEANUP_S, Granted, finish_call, run_together
from palaver.backends.base import Turn
from palaver.core.state import open_tools
from palaver.schema.events import (
    GrantAdded,
    KnownEvent,
    RequestResolved,
    ToolFinished,
    ToolStarted,
    TurnStatus,
)
from palaver.schema.view import Outcome
from palaver.tools.agents.plan import SPEC as PLAN_SPEC
from palaver.tools.base import ToolSpec
from palaver.tools.toolbox import Toolbox

PLAN = PLAN_SPEC.name
TOGETHER = 8
"""Calls that run at once: enough to hide waiting, few enough for a small machine."""
OPEN_AT_ONCE = 16
"""Requests of one batch that wait for a person together: half of what a conversation may hold."""
SECOND_PLAN = (
    "Not proposed: another plan of the same answer is, and a person can answer only one. "
    "Put all that you mean into one plan."
)


class Calls:
    """One turn's dealings with tools. Afterwards `stopped`, `forbidden` and `ending` say whether the turn must end."""

    def __init__(self, turn: Turn, toolbox: Toolbox, mode: Callable[[], Mode], grants: Grants) -> None:
        self._turn = turn
        self._toolbox = toolbox
        self._mode = mode
        self._grants = grants
        self._judging = Judging(turn, toolbox, mode, grants)
        self._round = 0
        self._waiting: dict[str, asyncio.Task[RequestResolved]] = {}
        self.stopped: str | None = None
        """A person declined a call and wants no more; why, in words."""
        self.ending: tuple[Outcome, str | None] | None = None
        """A tool ended the turn: how, and its summary."""

    @property
    def forbidden(self) -> str | None:
        """A rule forbids a call and ends the turn; why, in words."""
        return self._judging.forbidden

    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told of, in the mode of the moment."""
        return self._judging.specs()

    async def finish_open(self) -> AsyncGenerator[KnownEvent, None]:
        """Every call without a result gets one. What was yielded before must be committed."""
        tools = [tool for message, tool in open_tools(self._turn.state) if message.status != "superseded"]
        if not tools:
            return
        yield TurnStatus(status="calling_tool", detail=", ".join(dict.fromkeys(tool.name for tool in tools)))
        entries: list[Entry] = []
        rate = self._tool_rate()
        for tool in tools:
            # A call that was begun, or that a person was asked about, was let through before.
            if rate is not None and tool.status == "called" and tool.request is None and len(entries) >= rate.left:
                yield denial(tool.call, rate.refusal, "rate_limit_tools")
                continue
            judged = await self._judging.first_look(tool, self._round)
            if isinstance(judged, ToolFinished):
                yield judged
            elif self._is_second_proposal(tool.name, entries):
                yield denial(tool.call, SECOND_PLAN)
            else:
                entries.append(judged)
        try:
            async with aclosing(self._work_off(entries)) as events:
                async for event in events:
                    yield event
        finally:
            await self._stop_waiting()
        for entry in entries:
            yield denial(entry.tool.call, "Not run: a rule ended this turn.")

    def _tool_rate(self) -> ToolRate | None:
        limit = limit_of({**self._turn.agent.params, **self._turn.params})
        return tool_rate(self._turn.state, limit, self._turn.now_ms()) if limit else None

    def _is_second_proposal(self, name: str, entries: list[Entry]) -> bool:
        """Proposing a plan ends the turn to wait for an answer to it; to two at once nobody could give one."""
        return name == PLAN and self._mode() == "plan" and any(entry.tool.name == PLAN for entry in entries)

    async def _work_off(self, entries: list[Entry]) -> AsyncGenerator[KnownEvent, None]:
        """Takes entries off the list as they get their results. A rule that ends the turn leaves the rest."""
        while entries and not self.forbidden:
            self._open_requests(entries)
            head = entries[0]
            match head:
                case Asked() | Question():
                    async with aclosing(self._decisions(entries)) as events:
                        async for event in events:
                            yield event
                case Approved():
                    confirmed = await self._judging.confirm(head, self._round)
                    if isinstance(confirmed, Granted):
                        entries.pop(0)
                        async with aclosing(self._run([confirmed])) as events:
                            async for event in events:
                                yield event
                    elif isinstance(confirmed, ToolFinished):
                        entries.pop(0)
                        yield confirmed
                    else:
                        entries[0] = confirmed
                case Allowed() if head.round != self._round and not self._reads(head):
                    # Something ran since it was judged; what it would do now may be something else.
                    judged = await self._judging.judge(head.tool, head.arguments, self._round)
                    if isinstance(judged, ToolFinished):
                        entries.pop(0)
                        yield judged
                    else:
                        entries[0] = judged
                case Allowed():
                    group = self._leading(entries)
                    del entries[: len(group)]
                    async with aclosing(self._run(group)) as events:
                        async for event in events:
                            yield event

    # -- asking

    def _open_requests(self, entries: list[Entry]) -> None:
        for entry in entries:
            if len(self._waiting) >= OPEN_AT_ONCE and entry is not entries[0]:
                return
            if isinstance(entry, Asked | Question) and entry.request.request not in self._waiting:
                self._waiting[entry.request.request] = asyncio.create_task(
                    self._turn.request(entry.request), name=f"request {entry.request.request}"
                )

    async def _decisions(self, entries: list[Entry]) -> AsyncGenerator[KnownEvent, None]:
        """Waits for the next decisions, whichever call they are about, and applies them."""
        await asyncio.wait(self._waiting.values(), return_when=asyncio.FIRST_COMPLETED)
        for entry in list(entries):
            if not isinstance(entry, Asked | Question):
                continue
            task = self._waiting.get(entry.request.request)
            if task is None or not task.done():
                continue
            del self._waiting[entry.request.request]
            place = entries.index(entry)
            resolved = task.result()
            refused = resolved.status != "answered" or resolved.verdict == "deny"
            if refused or isinstance(entry, Question):
                del entries[place]
                if refused and resolved.then == "stop":
                    self.stopped = f"{entry.request.title or entry.tool.name} was declined."
                yield (
                    _result_of_answer(entry, resolved)
                    if isinstance(entry, Question)
                    else _result_of_denial(entry, resolved)
                )
            else:
                # Arguments that the person changed have another hash, so they are asked for once more before they run.
                changed = resolved.input if isinstance(resolved.input, dict) else entry.arguments
                entries[place] = Approved(entry.tool, changed, entry.request)
                if resolved.scope != "once" and changed == entry.arguments:
                    async with aclosing(self._stand(entry, resolved, entries)) as events:
                        async for event in events:
                            yield event

    async def _stand(
        self, entry: Asked, resolved: RequestResolved, entries: list[Entry]
    ) -> AsyncGenerator[KnownEvent, None]:
        """A lasting yes: on record, and an answer to every request that waits here and that it covers.

        What was allowed in other conversations meanwhile answers nothing that waits here.
        """
        offered = entry.request.offers
        if not 0 <= resolved.offer < len(offered):
            return
        grant = GrantAdded(
            tool=entry.tool.name,
            scope=resolved.scope,
            match=offered[resolved.offer].match,
            agent=self._turn.agent.id,
            request=resolved.request,
        )
        yield await self._grants.keep(self._turn, grant)
        # From here on the grant is part of the view, by which every call is judged.
        await self._turn.committed()
        given = [Rule(tool=grant.tool, decision=grant.decision, match=grant.match, source="conversation")]
        for other in entries:
            if not isinstance(other, Asked) or other.request.request not in self._waiting:
                continue
            verdict = self._judging.verdict(other.tool.name, other.proposal, given)
            if verdict.decision == "allow" and not self._waiting[other.request.request].done():
                # Resolved like any other answer; a person who was faster has been recorded first, and counts.
                yield RequestResolved(
                    request=other.request.request, status="answered", verdict="allow", text=verdict.why
                )

    async def _stop_waiting(self) -> None:
        tasks = list(self._waiting.values())
        self._waiting.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLEANUP_S)

    # -- running

    def _leading(self, entries: list[Entry]) -> list[Granted]:
        """The first call, and the neighbours that may run with it."""
        group: list[Allowed] = []
        for entry in entries[:TOGETHER]:
            if not isinstance(entry, Allowed) or not self._joins(entry, group):
                break
            group.append(entry)
        return [self._judging.granted(one.tool, one.arguments, one.proposal, one.grant, None) for one in group]

    def _joins(self, entry: Allowed, group: list[Allowed]) -> bool:
        if not group:
            return True
        first = group[0]
        if self._judging.is_editors(first.tool.name):
            return self._judging.is_editors(entry.tool.name) and entry.round == self._round
        if self._reads(first):
            return self._reads(entry)
        if self._reads(entry) or self._judging.is_editors(entry.tool.name) or entry.round != self._round:
            return False
        writes = [one.proposal.writes for one in (*group, entry)]
        return _share_nothing([paths for paths in writes if paths is not None]) and None not in writes

    def _reads(self, entry: Allowed) -> bool:
        return self._judging.reads(entry.tool.name, entry.proposal)

    async def _run(self, group: list[Granted]) -> AsyncGenerator[KnownEvent, None]:
        for call in group:
            yield ToolStarted(
                call=call.call,
                grant=call.grant,
                request=call.request,
                hash=call.hash,
                sandbox=None if call.editors else self._toolbox.sandbox,
            )
        # The grant is on disk before the first effect: whatever happens now, nobody runs this call again.
        await self._turn.committed()
        self._round += not all(call.reads_only for call in group)
        if group[0].editors:
            for call in group:
                # In whatever order they come in: one that is there already is not waited for.
                await self._turn.result_of(call.call)
            return
        async with aclosing(run_together(group, self._turn, self._toolbox, self._mode(), self._end_turn)) as events:
            async for event in events:
                yield event

    def _end_turn(self, outcome: Outcome, summary: str | None = None) -> None:
        self.ending = (outcome, summary)


def _result_of_answer(entry: Question, resolved: RequestResolved) -> ToolFinished:
    try:
        return finish_call(entry.tool.call, entry.asking.answered(entry.arguments, resolved), effect="none")
    except Exception as failure:  # noqa: BLE001 - the border of what tools may be
        return denial(entry.tool.call, f"The answer could not be understood ({failure}).", "tool_error")


def _result_of_denial(entry: Asked, resolved: RequestResolved) -> ToolFinished:
    call = entry.tool.call
    match resolved.status:
        case "expired":
            return denial(call, "Nobody answered in time; it was not run.", "interaction_timeout")
        case "answered":
            return denial(call, f"The person declined this call; it was not run.{_words_of(resolved)}")
        case _:
            return denial(call, resolved.text or "The question was withdrawn; it was not run.")


def _words_of(resolved: RequestResolved) -> str:
    return f" They said: {resolved.text}" if resolved.text else ""


def _share_nothing(writes: list[tuple[str, ...]]) -> bool:
    """Whether no path of one is, or lies beneath, a path of another."""
    taken: list[PurePosixPath] = []
    for paths in writes:
        own = [PurePosixPath(path) for path in paths]
        if any(new.is_relative_to(old) or old.is_relative_to(new) for new in own for old in taken):
            return False
        taken += own
    return True

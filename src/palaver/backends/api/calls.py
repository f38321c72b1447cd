"""The open tool calls of a conversation, each brought to its one result.

Used by the loop before every model call, so a call of a turn that a restart ended takes the same way as one of a moment
ago. All requests of a batch are open at once; calls run in order, neighbours that only read together. What is approved is
proposed again before it runs, and asked again when it changed.

Must never: run a call twice, run one before its grant is on disk, or leave one without a result.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from palaver.backends.api.grants import Grants
from palaver.backends.api.running import CLEANUP_S, Granted, finished, run_together
from palaver.backends.base import Turn
from palaver.core.settle import interrupted_result
from palaver.core.state import find_request, open_tools
from palaver.schema.events import (
    GrantAdded,
    KnownEvent,
    RequestOpened,
    RequestResolved,
    ToolFinished,
    ToolStarted,
    TurnStatus,
)
from palaver.schema.view import Request, ToolBlock, ToolError
from palaver.tools.base import Proposal, ToolResult
from palaver.tools.policy import Mode, standing_grant
from palaver.tools.toolbox import Toolbox

TOGETHER = 8
"""Calls that read at once: enough to hide waiting, few enough for a small machine."""
OPEN_AT_ONCE = 16
"""Requests of one batch that wait for a person together: half of what a conversation may hold."""
SHOWN_ARGUMENTS_CHARS = 500


@dataclass(frozen=True, slots=True)
class _Allowed:
    """May run without asking. `round` says which effects its proposal had seen."""

    tool: ToolBlock
    arguments: Mapping[str, Any]
    proposal: Proposal
    grant: str
    round: int


@dataclass(frozen=True, slots=True)
class _Asked:
    """Waits for a person."""

    tool: ToolBlock
    arguments: Mapping[str, Any]
    proposal: Proposal
    request: RequestOpened


@dataclass(frozen=True, slots=True)
class _Approved:
    """A person said yes to what stood in `request`."""

    tool: ToolBlock
    arguments: Mapping[str, Any]
    request: RequestOpened


_Entry = _Allowed | _Asked | _Approved


class Calls:
    """One turn's dealings with tools. Afterwards `stopped` and `forbidden` say whether the turn must end."""

    def __init__(self, turn: Turn, toolbox: Toolbox, mode: Callable[[], Mode], grants: Grants) -> None:
        self._turn = turn
        self._toolbox = toolbox
        self._mode = mode
        self._grants = grants
        self._round = 0
        self._waiting: dict[str, asyncio.Task[RequestResolved]] = {}
        self.stopped: str | None = None
        """A person declined a call and wants no more; why, in words."""
        self.forbidden: str | None = None
        """A rule forbids a call and ends the turn; why, in words."""

    async def finish_open(self) -> AsyncGenerator[KnownEvent, None]:
        """Every call without a result gets one. What was yielded before must be committed."""
        tools = [tool for message, tool in open_tools(self._turn.state) if message.status != "superseded"]
        if not tools:
            return
        yield TurnStatus(status="calling_tool", detail=", ".join(dict.fromkeys(tool.name for tool in tools)))
        entries: list[_Entry] = []
        for tool in tools:
            judged = await self._first_look(tool)
            if isinstance(judged, ToolFinished):
                yield judged
            else:
                entries.append(judged)
        try:
            async with aclosing(self._work_off(entries)) as events:
                async for event in events:
                    yield event
        finally:
            await self._stop_waiting()
        for entry in entries:
            yield denied(entry.tool.call, "Not run: a rule ended this turn.")

    async def _work_off(self, entries: list[_Entry]) -> AsyncGenerator[KnownEvent, None]:
        """Takes entries off the list as they get their results. A rule that ends the turn leaves the rest."""
        while entries and not self.forbidden:
            self._open_requests(entries)
            head = entries[0]
            match head:
                case _Asked():
                    async with aclosing(self._decisions(entries)) as events:
                        async for event in events:
                            yield event
                case _Approved():
                    confirmed = await self._confirm(head)
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
                case _Allowed() if head.round != self._round and not _reads(head, self._toolbox):
                    # Something ran since it was judged; what it would do now may be something else.
                    judged = await self._judge(head.tool, head.arguments)
                    if isinstance(judged, ToolFinished):
                        entries.pop(0)
                        yield judged
                    else:
                        entries[0] = judged
                case _Allowed():
                    group = self._leading(entries)
                    del entries[: len(group)]
                    async with aclosing(self._run(group)) as events:
                        async for event in events:
                            yield event

    # -- judging

    async def _first_look(self, tool: ToolBlock) -> _Entry | ToolFinished:
        if tool.status in ("running", "input"):
            # Never again: it may have done anything, or was never wholly asked for.
            return interrupted_result(tool, self._turn.id)
        if not isinstance(tool.input, dict):
            return finished(tool.call, _bad_arguments(tool), effect="none")
        request = find_request(self._turn.state, tool.request) if tool.request else None
        asked = request.input if request is not None and isinstance(request.input, dict) else tool.input
        return await self._judge(tool, asked, request)

    async def _judge(
        self, tool: ToolBlock, arguments: Mapping[str, Any], request: Request | None = None
    ) -> _Entry | ToolFinished:
        proposal = await self._toolbox.propose(tool.name, arguments, self._turn.project)
        if isinstance(proposal, ToolResult):
            return finished(tool.call, proposal, effect="none")
        verdict = self._toolbox.verdict(tool.name, proposal, self._mode(), self._grants.of(self._turn.conversation))
        match verdict.decision:
            case "deny_abort":
                self.forbidden = verdict.why
                return denied(tool.call, verdict.why)
            case "deny_continue":
                return denied(tool.call, verdict.why)
            case "allow" if request is None:
                return _Allowed(tool, arguments, proposal, verdict.grant, self._round)
            case _:
                opened = self._request(tool, arguments, proposal, verdict.why) if request is None else _again(request)
                return _Asked(tool, arguments, proposal, opened)

    async def _confirm(self, entry: _Approved) -> Granted | _Entry | ToolFinished:
        """Just before it runs: is it still what the person said yes to?"""
        tool = entry.tool
        judged = await self._judge(tool, entry.arguments)
        match judged:
            case _Allowed(proposal=proposal) | _Asked(proposal=proposal) if proposal.hash == entry.request.hash:
                request = entry.request.request
                return self._granted(tool, entry.arguments, proposal, f"request:{request}", request)
            case _:
                return judged

    # -- asking

    def _request(self, tool: ToolBlock, arguments: Mapping[str, Any], proposal: Proposal, why: str) -> RequestOpened:
        return RequestOpened(
            request=self._turn.new_id(),
            kind="approval",
            call=tool.call,
            agent=self._turn.agent.id,
            tool=tool.name,
            input=dict(arguments),
            hash=proposal.hash,
            title=proposal.title,
            preview=proposal.preview,
            risk=proposal.risk or why,
            sandbox=self._toolbox.sandbox,
            scopes=("once", "conversation"),
        )

    def _open_requests(self, entries: list[_Entry]) -> None:
        for entry in entries:
            if len(self._waiting) >= OPEN_AT_ONCE and entry is not entries[0]:
                return
            if isinstance(entry, _Asked) and entry.request.request not in self._waiting:
                self._waiting[entry.request.request] = asyncio.create_task(
                    self._turn.request(entry.request), name=f"request {entry.request.request}"
                )

    async def _decisions(self, entries: list[_Entry]) -> AsyncGenerator[KnownEvent, None]:
        """Waits for the next decisions, whichever call they are about, and applies them."""
        await asyncio.wait(self._waiting.values(), return_when=asyncio.FIRST_COMPLETED)
        for entry in list(entries):
            if not isinstance(entry, _Asked):
                continue
            task = self._waiting.get(entry.request.request)
            if task is None or not task.done():
                continue
            del self._waiting[entry.request.request]
            place = entries.index(entry)
            resolved = task.result()
            if resolved.status == "answered" and resolved.verdict == "allow":
                # Arguments that the person changed have another hash, so they are asked for once more before they run.
                changed = resolved.input if isinstance(resolved.input, dict) else entry.arguments
                entries[place] = _Approved(entry.tool, changed, entry.request)
                for event in self._stand(entry, resolved, entries):
                    yield event
            else:
                del entries[place]
                if resolved.then == "stop":
                    self.stopped = f"{entry.request.title or entry.tool.name} was declined."
                yield _declined(entry.tool.call, resolved)

    def _stand(self, entry: _Asked, resolved: RequestResolved, entries: list[_Entry]) -> list[KnownEvent]:
        """A yes for the whole conversation: on record, and an answer to every waiting request that it covers."""
        if resolved.scope == "once":
            return []
        grant = standing_grant(self._toolbox.tools[entry.tool.name].spec, entry.proposal)
        self._grants.add(self._turn.conversation, grant)
        events: list[KnownEvent] = [
            GrantAdded(
                tool=grant.tool,
                scope=resolved.scope,
                match=grant.match,
                agent=self._turn.agent.id,
                request=resolved.request,
            )
        ]
        given = self._grants.of(self._turn.conversation)
        for other in entries:
            if not isinstance(other, _Asked) or other.request.request not in self._waiting:
                continue
            verdict = self._toolbox.verdict(other.tool.name, other.proposal, self._mode(), given)
            if verdict.decision == "allow" and not self._waiting[other.request.request].done():
                # Resolved like any other answer; a person who was faster has been recorded first, and counts.
                events.append(
                    RequestResolved(request=other.request.request, status="answered", verdict="allow", text=verdict.why)
                )
        return events

    async def _stop_waiting(self) -> None:
        tasks = list(self._waiting.values())
        self._waiting.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLEANUP_S)

    # -- running

    def _leading(self, entries: list[_Entry]) -> list[Granted]:
        """The first call, and with one that only reads the neighbours that only read."""
        group: list[Granted] = []
        for entry in entries[:TOGETHER]:
            if not isinstance(entry, _Allowed) or (group and not _reads(entry, self._toolbox)):
                break
            group.append(self._granted(entry.tool, entry.arguments, entry.proposal, entry.grant, None))
            if not _reads(entry, self._toolbox):
                break
        return group

    def _granted(
        self, tool: ToolBlock, arguments: Mapping[str, Any], proposal: Proposal, grant: str, request: str | None
    ) -> Granted:
        return Granted(
            call=tool.call,
            name=tool.name,
            arguments=arguments,
            hash=proposal.hash,
            grant=grant,
            request=request,
            reads_only=proposal.reads_only or self._toolbox.tools[tool.name].spec.reads_only,
            edited=dict(arguments) != tool.input,
        )

    async def _run(self, group: list[Granted]) -> AsyncGenerator[KnownEvent, None]:
        for call in group:
            yield ToolStarted(
                call=call.call,
                grant=call.grant,
                request=call.request,
                hash=call.hash,
                sandbox=self._toolbox.sandbox,
            )
        # The grant is on disk before the first effect: whatever happens now, nobody runs this call again.
        await self._turn.committed()
        self._round += not all(call.reads_only for call in group)
        async with aclosing(run_together(group, self._turn, self._toolbox)) as events:
            async for event in events:
                yield event


def denied(call: str, message: str, code: str = "tool_denied") -> ToolFinished:
    return ToolFinished(call=call, ok=False, error=ToolError(code=code, message=message), effect="none")


def _declined(call: str, resolved: RequestResolved) -> ToolFinished:
    said = f" They said: {resolved.text}" if resolved.text else ""
    match resolved.status:
        case "expired":
            return denied(call, "Nobody answered in time; it was not run.", "interaction_timeout")
        case "cancelled" | "superseded":
            return denied(call, "The question was withdrawn; it was not run.")
        case _:
            return denied(call, f"The person declined this call; it was not run.{said}")


def _reads(entry: _Allowed, toolbox: Toolbox) -> bool:
    return entry.proposal.reads_only or toolbox.tools[entry.tool.name].spec.reads_only


def _again(request: Request) -> RequestOpened:
    """The request as it was opened, to be waited for under the same id."""
    return RequestOpened(
        request=request.id,
        kind=request.kind,
        call=request.call,
        agent=request.agent,
        tool=request.tool,
        input=request.input,
        hash=request.hash,
        title=request.title,
        risk=request.risk,
        sandbox=request.sandbox,
        preview=request.preview,
        scopes=request.scopes,
        expires_at=request.expires_at,
    )


def _bad_arguments(tool: ToolBlock) -> ToolResult:
    sent = str(tool.input)
    shown = sent if len(sent) <= SHOWN_ARGUMENTS_CHARS else sent[:SHOWN_ARGUMENTS_CHARS] + "…"
    return ToolResult(
        ok=False,
        error_code="bad_arguments",
        error=f"The arguments of {tool.name} must be one JSON object; nothing was done. They were: {shown}",
    )

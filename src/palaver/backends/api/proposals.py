"""What becomes of a tool call before anything runs: refused at once, allowed, put to a person, or a question itself.

Used by the calls, for each call of a batch and again just before it runs. It proposes and judges; it opens no request,
records nothing and runs nothing. An editor's tools are judged by the same rules; their effects are the editor's.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from msgspec.structs import replace as with_fields

from palaver.approval.policy import Grant, Mode, Verdict, offers, rules_of
from palaver.approval.turn_grants import Grants
from palaver.backends.api.tool_runs import Granted, finish_call
from palaver.backends.base import Turn
from palaver.core.settle import result_of_interruption
from palaver.core.state import EDITOR_GRANT, find_request
from palaver.schema.events import RequestOpened, ToolFinished
from palaver.schema.view import Request, ToolBlock, ToolError
from palaver.tools.base import Asking, Proposal, ToolResult, ToolSpec
from palaver.tools.proposal import fingerprint, shorten, visible
from palaver.tools.shell.command_line import command_lines, texts_in
from palaver.tools.toolbox import Toolbox

SHOWN_ARGUMENTS_CHARS = 500


@dataclass(frozen=True, slots=True)
class Allowed:
    """May run without asking. `round` says which effects its proposal had seen."""

    tool: ToolBlock
    arguments: Mapping[str, Any]
    proposal: Proposal
    grant: str
    round: int


@dataclass(frozen=True, slots=True)
class Asked:
    """Waits for a person."""

    tool: ToolBlock
    arguments: Mapping[str, Any]
    proposal: Proposal
    request: RequestOpened


@dataclass(frozen=True, slots=True)
class Approved:
    """A person said yes to what stood in `request`."""

    tool: ToolBlock
    arguments: Mapping[str, Any]
    request: RequestOpened


@dataclass(frozen=True, slots=True)
class Question:
    """Waits for a person whose answer is the result."""

    tool: ToolBlock
    arguments: Mapping[str, Any]
    asking: Asking
    request: RequestOpened


Entry = Allowed | Asked | Approved | Question


class Judging:
    """Over the calls of one turn. `forbidden` is set once a rule ends the turn; why, in words."""

    def __init__(self, turn: Turn, toolbox: Toolbox, mode: Callable[[], Mode], grants: Grants) -> None:
        self._turn = turn
        self._toolbox = toolbox.governed(turn.project, rules_of(turn.agent.policy, "agent"))
        self._mode = mode
        self._grants = grants
        self.forbidden: str | None = None

    # -- what there is

    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told of: the toolbox's, and what the editor declared under names of its own."""
        mode = self._mode()
        return (*self._toolbox.specs(mode), *(() if mode == "plan" else self._editor_tools().values()))

    def spec(self, name: str) -> ToolSpec:
        if known := self._toolbox.tools.get(name):
            return known.spec
        # An editor may take its tools back while their calls wait; then nothing is known of them.
        return self._editor_tools().get(name) or ToolSpec(name, "", {})

    def is_editors(self, name: str) -> bool:
        return name in self._editor_tools()

    def _editor_tools(self) -> dict[str, ToolSpec]:
        declared = self._turn.params.get("ide_tools")
        if not isinstance(declared, list | tuple):
            return {}
        return {
            spec.name: spec
            for spec in map(_editor_tool, declared)
            if spec is not None and spec.name not in self._toolbox.tools
        }

    # -- judging

    async def first_look(self, tool: ToolBlock, round: int) -> Entry | ToolFinished:
        if tool.status in ("running", "input"):
            # Never again: it may have done anything, or was never wholly asked for.
            return result_of_interruption(tool, self._turn.id)
        if not isinstance(tool.input, dict):
            return finish_call(tool.call, _bad_arguments(tool), effect="none")
        request = find_request(self._turn.state, tool.request) if tool.request else None
        asked = request.input if request is not None and isinstance(request.input, dict) else tool.input
        return await self.judge(tool, asked, round, request)

    async def judge(
        self, tool: ToolBlock, arguments: Mapping[str, Any], round: int, request: Request | None = None
    ) -> Entry | ToolFinished:
        if asking := self._toolbox.asking(tool.name):
            return self._question(tool, arguments, asking, request)
        proposal = await self._propose(tool.name, arguments)
        if isinstance(proposal, ToolResult):
            return finish_call(tool.call, proposal, effect="none")
        verdict = self.verdict(tool.name, proposal)
        if refused := self._refuse(tool, verdict):
            return refused
        if verdict.decision == "allow" and request is None:
            return Allowed(tool, arguments, proposal, verdict.grant, round)
        opened = again(request) if request is not None else self._request(tool, arguments, proposal, verdict.why)
        return Asked(tool, arguments, proposal, opened)

    async def confirm(self, entry: Approved, round: int) -> Granted | Entry | ToolFinished:
        """Just before it runs: is it still what the person said yes to?"""
        judged = await self.judge(entry.tool, entry.arguments, round)
        match judged:
            case Allowed(proposal=proposal) | Asked(proposal=proposal) if proposal.hash == entry.request.hash:
                request = entry.request.request
                return self.granted(entry.tool, entry.arguments, proposal, f"request:{request}", request)
            case _:
                return judged

    def verdict(self, name: str, proposal: Proposal, grants: Iterable[Grant] | None = None) -> Verdict:
        """By all that was granted, or by these grants alone."""
        mode = self._mode()
        spec = self.spec(name)
        if self.is_editors(name):
            # The editor asks its own user; ours have a word by rules, and plan mode keeps it from everything.
            spec = replace(spec, reads_only=mode != "plan")
        rules = rules_of(self._turn.params.get("policy"), "conversation")
        given = self._grants.of(self._turn) if grants is None else grants
        return self._toolbox.policy.verdict(spec, proposal, mode, given, rules)

    def granted(
        self, tool: ToolBlock, arguments: Mapping[str, Any], proposal: Proposal, grant: str, request: str | None
    ) -> Granted:
        editors = self.is_editors(tool.name)
        return Granted(
            call=tool.call,
            name=tool.name,
            arguments=arguments,
            hash=proposal.hash,
            grant=EDITOR_GRANT if editors else grant,
            request=request,
            reads_only=self.reads(tool.name, proposal),
            edited=dict(arguments) != tool.input,
            editors=editors,
        )

    def reads(self, name: str, proposal: Proposal) -> bool:
        return not self.is_editors(name) and (proposal.reads_only or self.spec(name).reads_only)

    # -- small parts

    async def _propose(self, name: str, arguments: Mapping[str, Any]) -> Proposal | ToolResult:
        if not self.is_editors(name):
            return await self._toolbox.propose(name, arguments, self._turn.project)
        text = msgspec.json.encode(arguments, order="deterministic").decode()
        return Proposal(
            title=f"{name} in the editor",
            hash=fingerprint(f"editor {name}", arguments, self._turn.project, {}),
            preview=shorten(visible(text)),
            match=text,
            commands=command_lines(arguments),
            texts=texts_in(arguments),
        )

    def _refuse(self, tool: ToolBlock, verdict: Verdict) -> ToolFinished | None:
        if verdict.decision == "deny_abort":
            self.forbidden = verdict.why
        return denial(tool.call, verdict.why) if verdict.decision in ("deny_abort", "deny_continue") else None

    def _question(
        self, tool: ToolBlock, arguments: Mapping[str, Any], asking: Asking, request: Request | None
    ) -> Question | ToolFinished:
        # Asking harms nobody, so only a denial has a word here.
        verdict = self.verdict(tool.name, Proposal(title=tool.name, hash="", reads_only=True))
        if refused := self._refuse(tool, verdict):
            return refused
        if request is not None:
            return Question(tool, arguments, asking, again(request))
        asked = self._toolbox.ask(asking, arguments)
        if isinstance(asked, ToolResult):
            return finish_call(tool.call, asked, effect="none")
        opened = with_fields(
            asked, request=self._turn.new_id(), call=tool.call, agent=self._turn.agent.id, tool=tool.name
        )
        return Question(tool, arguments, asking, opened)

    def _request(self, tool: ToolBlock, arguments: Mapping[str, Any], proposal: Proposal, why: str) -> RequestOpened:
        offered = offers(self.spec(tool.name), proposal)
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
            scopes=self._grants.scopes(self._turn) if offered else ("once",),
            offers=offered,
        )


def denial(call: str, message: str, code: str = "tool_denied") -> ToolFinished:
    return ToolFinished(call=call, ok=False, error=ToolError(code=code, message=message), effect="none")


def again(request: Request) -> RequestOpened:
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
        offers=request.offers,
        questions=request.questions,
        plan=request.plan,
        expires_at=request.expires_at,
    )


def _editor_tool(declared: Any) -> ToolSpec | None:
    if not isinstance(declared, dict) or not isinstance(declared.get("name"), str):
        return None
    parameters = declared.get("parameters")
    return ToolSpec(
        name=declared["name"],
        description=str(declared.get("description") or ""),
        parameters=parameters if isinstance(parameters, dict) and parameters else {"type": "object", "properties": {}},
    )


def _bad_arguments(tool: ToolBlock) -> ToolResult:
    sent = str(tool.input)
    shown = sent if len(sent) <= SHOWN_ARGUMENTS_CHARS else sent[:SHOWN_ARGUMENTS_CHARS] + "…"
    return ToolResult(
        ok=False,
        error_code="bad_arguments",
        error=f"The arguments of {tool.name} must be one JSON object; nothing was done. They were: {shown}",
    )

"""The tools an agent may use in one place, with the policy over them.

The API loop calls, for each tool call of a model: `propose`, then `verdict`; on `ask` it opens a request bound to the
proposal's hash; it commits `tool.started` with the grant; then `run` with that hash. `run` proposes again and refuses
when what would happen is no longer what was allowed. Nothing here asks a person, records an event or keeps state.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeGuard, cast

import msgspec

from palaver.approval.policy import COMMAND_TOOL, Grant, Mode, Policy, Rule, Verdict
from palaver.approval.standing_grants import StandingGrants
from palaver.backends.program_lookup import ProgramLookup
from palaver.errors import Forbidden, PalaverError
from palaver.journal import Journal
from palaver.schema.events import RequestOpened
from palaver.tools.agents.agents_message import AgentsMessage
from palaver.tools.agents.ask_user import AskUser
from palaver.tools.agents.knowledge import Remember, SearchConversations
from palaver.tools.agents.plan import PlanTool
from palaver.tools.agents.task import NAME as TASK
from palaver.tools.agents.task import Known, TaskTool
from palaver.tools.agents.turn_end import FinishTask, YieldTurn
from palaver.tools.arguments import failure_of
from palaver.tools.base import Asking, Proposal, Tool, ToolResult, ToolSpec, Workplace
from palaver.tools.effects import check_effects
from palaver.tools.files.edit import Edit
from palaver.tools.files.file_names import file_names
from palaver.tools.files.glob import Glob
from palaver.tools.files.grep import Grep
from palaver.tools.files.held_folder import check_folder
from palaver.tools.files.list import List
from palaver.tools.files.patch import Patch
from palaver.tools.files.read import Read
from palaver.tools.files.write import Write
from palaver.tools.redact import Redactor
from palaver.tools.shell.background import Processes
from palaver.tools.shell.processes import ShellOutput, ShellStop
from palaver.tools.shell.sandbox import Sandbox, probe, unsandboxed
from palaver.tools.shell.sandbox_level import Level
from palaver.tools.shell.shell import Shell
from palaver.tools.thread_pool import run_in_pool
from palaver.tools.web.fetch import Fetch

_READ_FILES = frozenset({"read", "list", "glob", "grep"})
"""Tools whose `match` is a path."""

logger = Journal(__name__)


@dataclass(frozen=True, slots=True)
class Toolbox:
    tools: Mapping[str, Tool | Asking]
    policy: Policy = field(default_factory=Policy)
    sandbox: str = field(default_factory=lambda: unsandboxed().words)
    """What holds a running tool, in words for the person who approves."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """The server's own, read once by the composition root. See `Workplace.environment`."""
    standing: StandingGrants | None = None
    """What people allowed for agents and projects."""

    def only(self, names: Iterable[str]) -> "Toolbox":
        """The same box with these tools alone (an agent's `tools`). Unknown names are ignored."""
        return replace(self, tools={name: self.tools[name] for name in names if name in self.tools})

    def governed(self, project: Path, rules: Iterable[Rule]) -> "Toolbox":
        """The same box under the policy of one folder and one agent."""
        return replace(self, policy=self.policy.at(project, rules))

    def delegating(self, folder: Path, deepest: bool) -> "Toolbox":
        """The same box with a `task` and an `agents_message` that know the agents of a folder; where nobody may stand
        below, without the task."""
        tools = {
            name: tool.within(folder) if isinstance(tool, TaskTool | AgentsMessage) else tool
            for name, tool in self.tools.items()
        }
        if deepest:
            tools.pop(TASK, None)
        return replace(self, tools=tools)

    def with_tools(self, tools: Iterable[Tool | Asking]) -> "Toolbox":
        """The same box with more tools (an MCP server's, say). A name that is taken stays with the tool that has it."""
        return replace(self, tools={**{tool.spec.name: tool for tool in tools}, **self.tools})

    def specs(self, mode: Mode) -> tuple[ToolSpec, ...]:
        """What the model is told of. In plan mode only what reads, or can (one simple reading command in a shell)."""
        specs = (tool.spec for tool in self.tools.values())
        return tuple(spec for spec in specs if mode != "plan" or spec.reads_only or spec.name == COMMAND_TOOL)

    def asking(self, name: str) -> Asking | None:
        """The tool of that name, if its call is itself a question to a person."""
        tool = self.tools.get(name)
        return tool if tool is not None and is_asking(tool) else None

    def ask(self, tool: Asking, arguments: Mapping[str, Any]) -> RequestOpened | ToolResult:
        """The question, or at once the failed result of arguments that make no sense."""
        try:
            return tool.ask(arguments)
        except Exception as failure:  # noqa: BLE001 - the border of what tools may be; logged there
            return _broken(tool.spec.name, failure)

    def _running(self, name: str) -> Tool | None:
        tool = self.tools.get(name)
        return None if tool is None or is_asking(tool) else cast(Tool, tool)

    async def propose(self, name: str, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        """What the call would do, or at once the failed result of a call that makes no sense."""
        tool = self._running(name)
        if tool is None:
            return _unknown_tool(name, self.tools)
        try:
            # In a thread: a proposal reads the files it would change.
            proposal = await run_in_pool(_propose, tool, arguments, root)
        except Exception as failure:  # noqa: BLE001 - the border of what tools may be; logged there
            return _broken(name, failure)
        if isinstance(proposal, ToolResult):
            return _redacted(proposal, Redactor(self.environment))
        # A person sees all that they approve; only the values of the environment are struck.
        redact = Redactor(self.environment).redact_values
        preview = proposal.preview and redact(proposal.preview)
        paths = await run_in_pool(file_names, root, _files_of(tool.spec, proposal))
        return replace(proposal, title=redact(proposal.title), preview=preview, paths=paths)

    def verdict(
        self, name: str, proposal: Proposal, mode: Mode, grants: Iterable[Grant] = (), rules: Iterable[Rule] = ()
    ) -> Verdict:
        return self.policy.verdict(self.tools[name].spec, proposal, mode, grants, rules)

    async def run(
        self, name: str, arguments: Mapping[str, Any], place: Workplace, approved_hash: str | None = None
    ) -> ToolResult:
        """Run the call to its result. Cancelling ends everything it started before the cancellation goes on.

        With `approved_hash`, what would happen now must still be what was allowed; else the result has the error code
        `changed`, nothing has run, and the caller asks again. A failed result may still carry output.
        """
        tool = self._running(name)
        if tool is None:
            return _unknown_tool(name, self.tools)
        if approved_hash is not None:
            now = await self.propose(name, arguments, place.root)
            if isinstance(now, ToolResult):
                return now
            if now.hash != approved_hash:
                return ToolResult(
                    ok=False,
                    error_code="changed",
                    error="What this call would change is no longer what was approved; nothing was done. Try again.",
                )
        place = replace(place, environment={**self.environment, **place.environment})
        try:
            # Whatever the tool: a turn whose folder is another by now works on something that nobody chose for it.
            check_folder(place.root)
        except Forbidden as refusal:
            return failure_of(refusal)
        try:
            return _redacted(await tool.run(arguments, place), Redactor(place.environment))
        except PalaverError:
            # Not the tool's: the log or the conversation behind `place` failed.
            raise
        except Exception as failure:  # noqa: BLE001 - the border of what tools may be; logged there
            return _broken(name, failure)


def _propose(tool: Tool, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
    try:
        check_folder(root)
    except Forbidden as refusal:
        return failure_of(refusal)
    return tool.propose(arguments, root)


def _files_of(spec: ToolSpec, proposal: Proposal) -> tuple[str, ...]:
    """The files that a call of a file tool is about."""
    if spec.edits_only or spec.name in _READ_FILES:
        return proposal.writes or ((proposal.match,) if proposal.match else ())
    return ()


def is_asking(tool: Tool | Asking) -> TypeGuard[Asking]:
    return hasattr(tool, "ask")


def built_in_tools(
    sandbox: Sandbox,
    processes: Processes | None = None,
    new_id: Callable[[], str] | None = None,
    agents: Known | None = None,
) -> tuple[Tool | Asking, ...]:
    """Without `processes` nothing runs in the background, without `new_id` no plan can be proposed, without `agents` there
    is nobody to give a task to or to write to."""
    files: tuple[Tool, ...] = (Read(), List(), Glob(), Grep(), Edit(), Write(), Patch())
    background: tuple[Tool, ...] = (ShellOutput(processes), ShellStop(processes)) if processes is not None else ()
    plan: tuple[Tool, ...] = (PlanTool(new_id),) if new_id is not None else ()
    people: tuple[Tool | Asking, ...] = (AskUser(), YieldTurn(), FinishTask())
    known: tuple[Tool, ...] = (SearchConversations(), Remember())
    others: tuple[Tool, ...] = (TaskTool(agents), AgentsMessage(agents)) if agents is not None else ()
    tools = (*files, Shell(sandbox, processes=processes), *background, Fetch(), *known, *plan, *people, *others)
    check_effects(tool.spec for tool in tools)
    return tools


async def open_toolbox(
    environment: Mapping[str, str],
    *,
    rules: Sequence[Rule] = (),
    full_enabled: bool = False,
    hidden: Sequence[Path] = (),
    standing: StandingGrants | None = None,
    processes: Processes | None = None,
    new_id: Callable[[], str] | None = None,
    agents: Known | None = None,
    strongest: Level = "bubblewrap",
    programs: ProgramLookup | None = None,
) -> Toolbox:
    """The built-in tools with the strongest sandbox that works here and may be used. `hidden` is what no sandboxed
    command may see."""
    sandbox = await probe(environment, hidden, strongest=strongest, programs=programs)
    policy = Policy(rules=tuple(rules), sandboxed=sandbox.level != "none", full_enabled=full_enabled)
    if programs is not None:
        policy = replace(policy, can_be_planted=lambda name: programs.can_be_planted(name, environment))
    tools = {tool.spec.name: tool for tool in built_in_tools(sandbox, processes, new_id, agents)}
    return Toolbox(tools=tools, policy=policy, sandbox=sandbox.words, environment=environment, standing=standing)


def _redacted(result: ToolResult, redactor: Redactor) -> ToolResult:
    """What a result says beside its output, which the tool itself redacted before it cut it."""
    changes = tuple(
        msgspec.structs.replace(change, diff=change.diff and redactor.redact(change.diff)) for change in result.changes
    )
    return replace(result, error=result.error and redactor.redact(result.error), changes=changes)


def _broken(name: str, failure: Exception) -> ToolResult:
    logger.exception("a tool failed in an unforeseen way", tool=name)
    return ToolResult(ok=False, error=f"{name} failed in an unforeseen way ({type(failure).__name__}: {failure}).")


def _unknown_tool(name: str, known: Iterable[str]) -> ToolResult:
    return ToolResult(
        ok=False, error_code="unknown_tool", error=f"There is no tool {name!r}. There are: {', '.join(sorted(known))}."
    )

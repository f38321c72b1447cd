"""Claude Code as a backend: takes a turn, finds or starts the conversation's program, and lets it work.

A turn lasts until the program rests by its own word: a message that joined it, a subagent in the background, and what the
program does when that one ends are all part of it. A command left running in the background ends the turn as `yielded`;
when the command ends, the conversation starts the next turn by itself, and that turn reads what the program, which woke up
on its own, has begun to say.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from pathlib import Path

from palaver.approval.policy import Mode, Policy, as_mode
from palaver.approval.program_calls import Judging
from palaver.approval.standing_grants import StandingGrants
from palaver.approval.turn_grants import Grants
from palaver.backends.base import Capabilities, Turn
from palaver.backends.claude.installation import executable
from palaver.backends.claude.process import ClaudeProgram, Resume, SessionUnknown, Spec, environment_of, start_program
from palaver.backends.claude.turn import Conduct
from palaver.backends.own_tools import offer_tools
from palaver.backends.program_pool import Programs, Row
from palaver.backends.project_settings import CLAUDE, FolderSettings, NoTrust, SettingsTrust, settings_of
from palaver.backends.turn_input import Briefing, all_known, briefing, still_said
from palaver.clock import Clock
from palaver.errors import ProtocolBroken
from palaver.installation import places_in
from palaver.schema.events import KnownEvent
from palaver.schema.records import AgentRecord, PolicyRule
from palaver.tools.mcp.launch import started_elsewhere
from palaver.tools.toolbox import Toolbox

NAME = "claude"

CAPABILITIES = Capabilities(thinking=True, steer=True, approvals=True, fork=True, images=True, usage=True)

PROJECT_SOURCES = frozenset({"project", "local"})
"""Of its settings: those that lie in the folder it works in."""

ANSWER_S = 20.0
"""It answers in milliseconds; a machine under load in a second or two."""

MODES: Mapping[Mode, str] = {
    "plan": "plan",
    "ask": "default",
    "accept_edits": "acceptEdits",
    # No sandbox of ours holds what it does, so more than edits is still asked for.
    "auto": "acceptEdits",
    # Everything is asked, and allowed here: each call has its grant on record, and root needs no flag.
    "full": "default",
}


class ClaudeBackend:
    name = NAME

    def __init__(
        self,
        environment: Mapping[str, str],
        clock: Clock,
        *,
        policy: Policy | None = None,
        standing: StandingGrants | None = None,
        others: Toolbox | None = None,
        trust: SettingsTrust | None = None,
    ) -> None:
        """`others` holds the tools by which an agent reaches the others: to give a task, to write a message. `trust` says in
        which folders a project's settings are taken in."""
        self._trust = trust or NoTrust()
        self._environment = environment
        self._others = others
        self._judging = Judging(policy, Grants(standing))
        self._programs: Programs[ClaudeProgram] = Programs(NAME, clock)
        self._closing = False

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    def table(self) -> list[Row]:
        return self._programs.table()

    async def let_go(self, conversation: str, *, even_busy: bool = False) -> bool:
        return await self._programs.let_go(conversation, even_busy=even_busy)

    async def run(self, turn: Turn) -> AsyncIterator[KnownEvent]:
        brief = briefing(turn, NAME)
        mode = mode_of(turn)
        folder = await settings_of(CLAUDE, turn.project, self._environment.get("HOME"), self._trust)
        for notice in folder.notice(turn):
            yield notice
        async with AsyncExitStack() as stack:
            program, record = await self._program(stack, turn, brief, MODES[mode], folder)
            await _set_mode(program, MODES[mode])
            conduct = Conduct(turn, program, brief, record, self._judging)
            async with aclosing(conduct.events()) as events:
                async for event in events:
                    yield event

    async def close(self) -> None:
        self._closing = True
        await self._programs.close()

    async def _program(
        self, stack: AsyncExitStack, turn: Turn, brief: Briefing, mode: str, folder: FolderSettings
    ) -> tuple[ClaudeProgram, str]:
        """The live program when it knows what it should and nothing else, else a new one; and what it must be told."""
        spec = await asyncio.to_thread(self._spec, turn, folder)
        grants = {(grant.tool, grant.match) for grant in turn.state.grants}
        resume = _resume(turn, brief)

        def fits(program: ClaudeProgram) -> bool:
            # A rule that was taken back is forgotten only by a new program.
            if program.spec != spec or not program.grants <= grants or not still_said(program.known, turn.state):
                return False
            return all_known(program.known, turn) or (brief.session is not None and program.session == brief.session)

        def start(resume: Resume | None) -> AbstractAsyncContextManager[ClaudeProgram]:
            return start_program(spec, mode, resume, lambda: self._closing, offer_tools(self._others, turn))

        try:
            using = self._programs.use(turn.conversation, lambda: start(resume), fits, turn.agent.id)
            program = await stack.enter_async_context(using)
        except SessionUnknown:
            using = self._programs.use(turn.conversation, lambda: start(None), fits, turn.agent.id)
            return await stack.enter_async_context(using), brief.whole
        if program.known:
            return program, "" if all_known(program.known, turn) else brief.unseen
        if resume is not None and not resume.fork:
            program.cost_usd = float(brief.marked.get("cost_usd") or 0.0)
        return program, brief.unseen if resume is not None else brief.whole

    def _spec(self, turn: Turn, folder: FolderSettings) -> Spec:
        agent = turn.agent
        seen = environment_of(self._environment, agent.environment)
        command = agent.command[:1] or (str(executable(self._environment, turn.programs.project_folders())),)
        (program,), environment = turn.programs.prepare(command, seen)
        return Spec(
            executable=Path(program),
            cwd=turn.project,
            environment=environment,
            instructions=agent.system_prompt,
            model=str(turn.params.get("model") or agent.model or "") or None,
            tools=agent.tools,
            denied=(
                *(_deny_rule(rule) for rule in agent.policy if rule.decision.startswith("deny")),
                *map(_keep_rule, places_in(turn.project)),
            ),
            settings=_setting_sources(agent, folder),
            servers=tuple(
                started_elsewhere(one, turn.project, environment, turn.programs) for one in agent.mcp_servers
            ),
        )


def mode_of(turn: Turn) -> Mode:
    """The message's own mode first, then the conversation's, then the agent's."""
    active = turn.state.turn
    return as_mode((active.mode if active else None) or turn.params.get("mode") or turn.agent.mode)


async def _set_mode(program: ClaudeProgram, mode: str) -> None:
    """Said every time: the program leaves a mode by itself when a plan is approved."""
    wanted = program.raised if program.raised and mode == "default" else mode
    try:
        async with asyncio.timeout(ANSWER_S):
            await program.connected.set_permission_mode(wanted)  # type: ignore[arg-type]
    except Exception as failure:
        program.broken = True
        raise ProtocolBroken(f"Claude Code did not take the mode {wanted}: {failure}") from failure


def _resume(turn: Turn, brief: Briefing) -> Resume | None:
    if brief.session is None:
        return None
    of = brief.marked.get("conversation")
    at = brief.marked.get("at")
    return Resume(
        brief.session,
        at=at if isinstance(at, str) else None,
        # A branch goes on from what it shares with the conversation it came from, and leaves that one alone.
        fork=of is not None and of != turn.conversation,
    )


def _keep_rule(place: Path) -> str:
    """Against edits of what this server runs: its mode acceptEdits asks nobody."""
    if set("(),*?[") & set(str(place)):
        return "Edit"
    return f"Edit(/{place}/**)" if place.is_dir() else f"Edit(/{place})"


def _deny_rule(rule: PolicyRule) -> str:
    """As the program writes a rule. One whose match it would read as several denies the whole tool instead."""
    if rule.match is None or set("(),") & set(rule.match):
        return rule.tool
    return f"{rule.tool}({rule.match})"


def _setting_sources(agent: AgentRecord, folder: FolderSettings) -> str:
    """Whose settings are read: a project's only where it is trusted, whatever the record wishes."""
    wished = str(agent.params.get("setting_sources", "user,project,local")).split(",")
    return ",".join(one for one in map(str.strip, wished) if folder.trusted or one not in PROJECT_SOURCES) or "user"

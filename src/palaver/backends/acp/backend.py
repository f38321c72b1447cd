"""Agents that speak ACP, as a backend: one process a conversation, its session resumed where the agent can.

Chosen for agent records with backend `acp`; the record's `command` says what to start. It keeps the processes; `conduct` is
what happens in a turn.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from palaver.approval.policy import Policy
from palaver.approval.program_calls import Judging
from palaver.approval.standing_grants import StandingGrants
from palaver.approval.turn_grants import Grants
from palaver.backends.acp.own_calls import OwnTurn
from palaver.backends.acp.process import Link, start_agent
from palaver.backends.acp.turn import Conduct
from palaver.backends.base import Capabilities, Turn
from palaver.backends.own_tools import OwnCalls, offer_tools
from palaver.backends.process import allowed_environment
from palaver.backends.program_lookup import runs_packages
from palaver.backends.program_pool import Programs, Row
from palaver.backends.project_settings import NoTrust, SettingsTrust, acp_program, settings_of
from palaver.backends.turn_input import still_said
from palaver.clock import Clock
from palaver.errors import NotInstalled
from palaver.schema.events import KnownEvent, TurnStatus
from palaver.tools.toolbox import Toolbox


class AcpBackend:
    name = "acp"

    def __init__(
        self,
        clock: Clock,
        environment: Mapping[str, str],
        *,
        policy: Policy | None = None,
        standing: StandingGrants | None = None,
        others: Toolbox | None = None,
        trust: SettingsTrust | None = None,
    ) -> None:
        """`environment` is the server's own; agents see what is allowed of it, and what their records add. `others` holds
        the tools of ours that they are offered. `trust` says in which folders a project's settings are taken in."""
        self._trust = trust or NoTrust()
        self._environment = environment
        self._judging = Judging(policy, Grants(standing))
        self._others = others
        self._clock = clock
        self._programs: Programs[Link] = Programs("acp", clock)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(deltas=True, thinking=True, approvals=True, fork=True, images=True, usage=True)

    def table(self) -> list[Row]:
        return self._programs.table()

    async def let_go(self, conversation: str, *, even_busy: bool = False) -> bool:
        return await self._programs.let_go(conversation, even_busy=even_busy)

    async def close(self) -> None:
        await self._programs.close()

    async def run(self, turn: Turn) -> AsyncGenerator[KnownEvent, None]:
        agent = turn.agent
        if not agent.command:
            raise NotInstalled(f"The agent {agent.name} does not say how to start it: give its record a `command`.")
        tools = offer_tools(self._others, turn)
        specs = [tool.spec for tool in tools]
        names = tuple(spec.name for spec in specs)
        folder = await settings_of(acp_program(agent.command), turn.project, self._environment.get("HOME"), self._trust)
        folder.check_startable(turn.project)
        for notice in folder.notice(turn):
            yield notice
        told = await asyncio.to_thread(folder.environment, agent.environment, self._environment.get("HOME"))
        how_to_install = f"So {agent.name} cannot be started: install it, or correct the `command` of its record."
        seen = allowed_environment(self._environment, told)
        folder_to_start_in = turn.project
        if runs_packages(agent.command):
            # It is told the project in the session; npx would take the agent itself from there.
            folder_to_start_in = await asyncio.to_thread(turn.programs.empty_folder)
        command, environment = await asyncio.to_thread(turn.programs.prepare, agent.command, seen, how_to_install)
        identity = (command, tuple(sorted(told.items())), turn.project, names)
        if not any(row.conversation == turn.conversation for row in self._programs.table()):
            yield TurnStatus(status="working", detail=f"Starting {agent.name}")
        program = self._programs.use(
            turn.conversation,
            lambda: start_agent(command, folder_to_start_in, environment, identity, specs),
            lambda link: link.identity == identity and still_said(link.known, turn.state),
            agent.id,
        )
        try:
            own = OwnTurn(turn, OwnCalls(turn, tools), self._judging, self._clock)
            async with program as link:
                conduct = Conduct(turn, link, self._judging, own, self._clock)
                async with aclosing(conduct.events()) as events:
                    async for event in events:
                        yield event
        except NotInstalled as missing:
            if "palaver[" in missing.message:
                raise
            raise NotInstalled(
                f"{agent.command[0]} was not found, so {agent.name} cannot be started. Install it, or correct the "
                "`command` of its record."
            ) from missing

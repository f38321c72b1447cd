"""The `codex` backend: a turn at a time in each conversation, any number of conversations at once.

It holds the program and nothing else: which thread a conversation goes on with is read off the log each time, so losing the
program, or the server, loses nothing.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

from palaver.approval.policy import Policy
from palaver.approval.program_calls import Judging
from palaver.approval.standing_grants import StandingGrants
from palaver.approval.turn_grants import Grants
from palaver.backends.base import Capabilities, Turn
from palaver.backends.codex.events import NAME
from palaver.backends.codex.installation import codex_environment, codex_options, find_codex
from palaver.backends.codex.modes import conduct_of
from palaver.backends.codex.process import AppServer, app_server
from palaver.backends.codex.process_pool import Shared
from palaver.backends.codex.threads import open_thread
from palaver.backends.codex.turn import CodexTurn
from palaver.backends.own_tools import offer_tools
from palaver.backends.program_lookup import ProgramLookup
from palaver.backends.program_pool import IDLE_S, Programs, Row
from palaver.backends.project_settings import CODEX, NoTrust, SettingsTrust, folders_upward, settings_of
from palaver.clock import Clock
from palaver.schema.events import KnownEvent
from palaver.schema.records import AgentRecord, McpServer
from palaver.tools.mcp.launch import started_elsewhere
from palaver.tools.toolbox import Toolbox


class CodexBackend:
    name = NAME

    def __init__(
        self,
        clock: Clock,
        environment: Mapping[str, str],
        *,
        policy: Policy | None = None,
        standing: StandingGrants | None = None,
        others: Toolbox | None = None,
        idle_s: float = IDLE_S,
        trust: SettingsTrust | None = None,
    ) -> None:
        """`environment` is the server's own; the program sees only what it may. `others` holds the tools of ours that it
        is offered. `trust` says in which folders a project's settings are taken in."""
        self._trust = trust or NoTrust()
        self._environment = environment
        self._judging = Judging(policy, Grants(standing))
        self._others = others
        self._programs: Programs[AppServer] = Programs(NAME, clock, idle_s)
        self._shared: dict[str, Shared] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            deltas=True, thinking=True, steer=True, approvals=True, resume=False, fork=True, images=True, usage=True
        )

    async def run(self, turn: Turn) -> AsyncGenerator[KnownEvent, None]:
        lock = self._turns.setdefault(turn.conversation, asyncio.Lock())
        folder = await settings_of(CODEX, turn.project, self._environment.get("HOME"), self._trust)
        for notice in folder.notice(turn):
            yield notice
        argv, environment = await asyncio.to_thread(self._launch_command, turn.agent, turn.programs)
        shared = self._program_of(argv, environment, folder.trusted)
        # A turn that was stopped may still be leaving when the next one comes.
        async with lock, shared.use() as server:
            home = self._environment.get("HOME")
            covered, others = await asyncio.to_thread(_project_folders, turn.project, home, folder.trusted)
            wished = conduct_of(turn, self._judging.policy.full_enabled, self._judging.restricts(turn))
            servers = await asyncio.to_thread(_servers, turn, environment)
            conduct = replace(wished, trusted=covered, untrusted=others, servers=servers)
            tools = offer_tools(self._others, turn)
            opened = await open_thread(server, turn, conduct, [tool.spec for tool in tools])
            # It listens from here on, with no wait between: a thread that nobody listens to may be let go.
            give_up = partial(shared.drop, server)
            running = CodexTurn(turn, server, opened.thread, conduct, self._judging, give_up, tools)
            async with aclosing(running.events(opened.record)) as events:
                async for event in events:
                    yield event

    async def close(self) -> None:
        await self._programs.close()

    def table(self) -> list[Row]:
        """The processes that run. They are no conversation's own."""
        return self._programs.table()

    async def let_go(self, conversation: str, *, even_busy: bool = False) -> bool:
        return await self._programs.let_go(conversation, even_busy=even_busy)

    def _program_of(self, argv: tuple[str, ...], environment: Mapping[str, str], trusted: bool) -> Shared:
        """One for all that start it alike. Trusted folders have their own: a thread keeps what it was opened with for as
        long as its program lives."""
        key = f"{NAME} {hash((argv, tuple(sorted(environment.items())), trusted)):x}"
        if key not in self._shared:
            self._shared[key] = Shared(self._programs, key, partial(_start, argv, environment))
        return self._shared[key]

    def _launch_command(self, agent: AgentRecord, programs: ProgramLookup) -> tuple[tuple[str, ...], dict[str, str]]:
        """Command and environment, with no program of a project. Blocking; raises NotInstalled."""
        seen = codex_environment(self._environment, agent.environment)
        command = agent.command or (str(find_codex(self._environment, programs.project_folders())),)
        return programs.prepare((*command, *codex_options(self._environment)), seen)


def _servers(turn: Turn, environment: Mapping[str, str]) -> tuple[McpServer, ...]:
    return tuple(started_elsewhere(one, turn.project, environment, turn.programs) for one in turn.agent.mcp_servers)


def _start(argv: Sequence[str], environment: Mapping[str, str]) -> AbstractAsyncContextManager[AppServer]:
    home = Path(environment.get("HOME", "/"))
    return app_server(argv, environment, home if home.is_dir() else Path("/"))


def _project_folders(project: Path, home: str | None, trusted: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The folder and every one above it, as named and as they really are: those that the person's trust covers, and the others.

    All of them, because any may be what Codex looks up: it reads settings in each from the root of the project down, the
    person's own markers say where that root is, and in Codex itself the person may have trusted any of them. Blocking.
    """
    real = Path(os.path.realpath(project))
    every = dict.fromkeys(map(str, (project, real, *project.parents, *real.parents)))
    covered = {str(project), *map(str, folders_upward(project, home))} if trusted else set[str]()
    return tuple(one for one in every if one in covered), tuple(one for one in every if one not in covered)

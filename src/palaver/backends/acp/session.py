"""The session that a turn of an ACP agent talks in: taken up, copied or begun; its mode and model; what it is told first.

Used by the conduct of a turn, before the prompt. It asks the agent through the link and knows no events.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from palaver.approval.policy import Mode
from palaver.backends.acp.approvals import by_mode
from palaver.backends.acp.process import HANDSHAKE_S, Link
from palaver.backends.base import Turn
from palaver.backends.turn_input import Briefing, all_known
from palaver.errors import AgentError, ProviderRefused
from palaver.journal import Journal
from palaver.schema.records import McpServer
from palaver.tools.mcp.launch import started_elsewhere

PLAN_ONLY = "[Only a plan is wanted now: look and think, but change nothing and run nothing.]"
"""For an agent without a plan mode. Whatever it asks for beyond reading is refused; what it does unasked, it must leave."""

logger = Journal(__name__)


class Session:
    def __init__(self, turn: Turn, link: Link, brief: Briefing, mode: Mode) -> None:
        self._turn = turn
        self._link = link
        self._brief = brief
        self._mode = mode

    async def ready(self) -> str:
        """Opens it, sets mode and model. What must be said first in it."""
        record = await self._open()
        await self._set_mode()
        await self._set_model()
        if self._mode == "plan" and by_mode("plan", self._link.offered("mode")) is None:
            return f"{record}\n\n{PLAN_ONLY}".lstrip()
        return record

    async def _open(self) -> str:
        turn, link, brief = self._turn, self._link, self._brief
        if link.session is not None:
            return "" if all_known(link.known, turn) else brief.unseen
        servers = [server for one in await asyncio.to_thread(self._servers) if (server := self._describe(one))]
        if link.door is not None:
            servers.append(link.door.server)
        if brief.session is not None and (known := await self._resume(brief.session, servers)):
            link.session = known
            link.known |= {message.id for message in turn.state.messages if message.turn != turn.id}
            return brief.unseen
        said = await link.ask("session/new", {"cwd": str(turn.project), "mcpServers": servers}, HANDSHAKE_S)
        session = said.get("sessionId")
        if not isinstance(session, str):
            raise ProviderRefused(f"{link.name} began no session. Is it logged in?")
        link.opened(session, said)
        link.turns, link.cost_usd = 0, 0.0
        told = [part for part in (turn.agent.system_prompt, brief.whole) if part]
        return "\n\n".join(told)

    async def _resume(self, session: str, servers: Sequence[Any]) -> str | None:
        """The session of before, or a copy of it where another conversation goes on with it. None: begin anew."""
        turn, link, brief = self._turn, self._link, self._brief
        elsewhere = brief.marked.get("conversation") not in (None, turn.conversation)
        if elsewhere and not link.can("sessionCapabilities", "fork"):
            return None
        if not (link.can("loadSession") or link.can("sessionCapabilities", "resume")):
            return None
        turns = brief.marked.get("turns")
        try:
            told = await link.load(session, turn.project, servers)
            if told is not None and isinstance(turns, int) and told > turns + brief.since:
                # It remembers more than was said here: something was taken back since.
                return None
            if elsewhere:
                params = {"sessionId": session, "cwd": str(turn.project), "mcpServers": list(servers)}
                said = await link.ask("session/fork", params, HANDSHAKE_S)
                copied = said.get("sessionId")
                if not isinstance(copied, str):
                    return None
                link.opened(copied, said)
                session = copied
        except AgentError as failure:
            if not link.alive:
                raise
            logger.info("a session could not be resumed; a new one is told everything", reason=failure.message)
            return None
        link.turns = turns if isinstance(turns, int) else 0
        cost = brief.marked.get("cost_usd")
        link.cost_usd = float(cost) if isinstance(cost, int | float) else 0.0
        return session

    async def _set_mode(self) -> None:
        link = self._link
        wanted = by_mode(self._mode, link.offered("mode"))
        if wanted is None:
            return
        try:
            await link.choose("mode", wanted)
        except AgentError as failure:
            # It then asks more often than wished, or works where it was only to plan.
            if self._mode == "plan":
                raise ProviderRefused(f"{link.name} would not go into plan mode: {failure.message}") from failure
            logger.warning("an agent refused a mode", agent=link.name, mode=wanted, reason=failure.message)

    async def _set_model(self) -> None:
        link, given = self._link, self._turn.params.get("model")
        wanted = given if isinstance(given, str) and given else self._turn.agent.model
        if wanted is None or "model" not in link.settings:
            return
        known = link.offered("model")
        if wanted not in known:
            raise ProviderRefused(f"{link.name} has no model {wanted}. It has: {', '.join(known[:20])}.")
        await link.choose("model", wanted)

    def _servers(self) -> list[McpServer]:
        turn, environment = self._turn, self._link.environment
        return [started_elsewhere(one, turn.project, environment, turn.programs) for one in turn.agent.mcp_servers]

    def _describe(self, server: McpServer) -> Mapping[str, Any] | None:
        if server.url:
            headers = [{"name": name, "value": value} for name, value in server.headers.items()]
            http = {"type": "http", "name": server.name, "url": server.url, "headers": headers}
            return http if self._link.can("mcpCapabilities", "http") else None
        if not server.command:
            return None
        environment = [{"name": name, "value": value} for name, value in server.environment.items()]
        command, *arguments = server.command
        return {"name": server.name, "command": command, "args": arguments, "env": environment}

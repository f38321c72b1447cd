"""The client: commands that survive a lost connection, and a view that follows its conversation through any number of them.

Used by the command line and the terminal UI, and meant for anybody's programs. Put together from its parts, one a noun of the
protocol: `conversations`, `following`, `agents`, `runs`, `projects`, all over one `connection`.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from palaver.client.agents import Agents, BackendError, BackendInfo, ProcessInfo, TrialError, Tried
from palaver.client.connection import Unreachable
from palaver.client.conversations import Conversations, Hit, Imported, TakenOver, WaitingRequest
from palaver.client.follow import Followed, Following
from palaver.client.projects import Projects
from palaver.client.runs import RunContext, RunInfo, Runs, RunSummary
from palaver.client.transport import Transport

__all__ = [
    "BackendError",
    "BackendInfo",
    "Client",
    "Followed",
    "Hit",
    "Imported",
    "ProcessInfo",
    "RunContext",
    "RunInfo",
    "RunSummary",
    "TakenOver",
    "TrialError",
    "Tried",
    "Unreachable",
    "WaitingRequest",
]


class Client(Conversations, Following, Agents, Runs, Projects):
    @classmethod
    @asynccontextmanager
    async def connect(cls, base_url: str, token: str, *, name: str | None = None) -> AsyncIterator["Client"]:
        """`name`: what this client is called in the log, letters of ASCII; one of its own when none is given."""
        http = Transport()
        try:
            yield cls(base_url, token, http, name)
        finally:
            await http.close()

    async def health(self) -> Mapping[str, Any]:
        return await self._get("/api/health", dict[str, Any])

    async def about(self) -> Mapping[str, Any]:
        """The server's `name` and `version`."""
        return await self._get("/api/about", dict[str, Any])

    async def session(self) -> Mapping[str, Any]:
        """Who one is here: `user`, `roles`, and what the server says of itself."""
        return await self._get("/api/session", dict[str, Any])

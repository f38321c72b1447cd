"""Runs: the turns of a whole server, as it tells a client of them. A part of `Client`."""

from msgspec import Struct

from palaver.client.connection import Connection
from palaver.schema.view import Message


class RunInfo(Struct):
    """A turn among all turns of a server. `parent` is the run it works for."""

    run: str
    conversation: str
    status: str
    project: str | None = None
    agent: str = ""
    backend: str = ""
    parent: str | None = None
    trigger: str = "message"
    exchange: str | None = None
    detail: str | None = None
    started_at: int = 0
    ended_at: int | None = None
    cost_usd: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0


class _Runs(Struct):
    items: list[RunInfo]


class RunSummary(Struct):
    message_count: int
    user_messages: int
    agent_messages: int
    system_messages: int
    started_at: int
    ended_at: int | None = None


class RunContext(Struct):
    """What was said in a run; `messages` only when asked for."""

    run: RunInfo
    summary: RunSummary
    messages: list[Message] | None = None


class _Cancelled(Struct):
    cancelled: list[str]


class Runs(Connection):
    async def runs(
        self,
        *,
        conversation: str | None = None,
        project: str | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> list[RunInfo]:
        """Newest first; `before` names the run that the page before ended with."""
        query = {"conversation": conversation, "project": project, "limit": limit, "before": before}
        return (await self._get("/api/runs", _Runs, query)).items

    async def run(self, run: str) -> RunInfo:
        return await self._get(f"/api/runs/{run}", RunInfo)

    async def children_of_run(self, run: str) -> list[RunInfo]:
        return (await self._get(f"/api/runs/{run}/children", _Runs)).items

    async def run_context(self, run: str, *, raw: bool = False) -> RunContext:
        return await self._get(f"/api/runs/{run}/context", RunContext, {"view": "raw" if raw else "summary"})

    async def cancel_run(self, run: str) -> list[str]:
        """Stops it and all that works for it; which ones were stopped. Repeated when the connection breaks: it is safe."""
        return (await self._send("POST", f"/api/runs/{run}/cancel", b"", _Cancelled)).cancelled

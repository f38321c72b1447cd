"""The client: commands that survive a lost connection, and a view that follows its conversation through any number of them.

Used by the command line and the terminal UI, and meant for anybody's programs. Commands carry a client request id, so a
command whose answer was lost is simply sent again; following holds a folded view and continues at its seq.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import aiohttp
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from palaver.client.agents import AgentDetails, AgentInfo, Agents
from palaver.client.projects import (
    MissionInfo,
    Missions,
    NamedAgent,
    OverrideInfo,
    PastMission,
    ProjectInfo,
    Projects,
    TreeInfo,
)
from palaver.client.sse import server_sent
from palaver.core.evolve import fold
from palaver.errors import REFUSALS, LogUnavailable, PalaverError, StorageFull
from palaver.schema.commands import Accepted, Command, CreateConversation
from palaver.schema.errors import WireError
from palaver.schema.events import Event, decode_event
from palaver.schema.view import Listing, Message, Request, State

SILENCE_S = 40.0
"""Two heartbeats and a bit: a stream silent for longer is dead, whatever TCP thinks."""
ANSWER_S = 30.0
TEST_S = 90.0
"""A test turn takes a minute at most, and what it started must end."""
TRIES = 6
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
PAGE = 500
"""As many rows of the list as a server gives at once."""

T = TypeVar("T")


class Unreachable(PalaverError):
    code = "unavailable"
    retryable = True


class _Listings(Struct):
    items: list[Listing]
    next_cursor: str | None = None


class _Messages(Struct):
    items: list[Message]


class WaitingRequest(Struct):
    """`conversation` is where it is answered, `root` the one at the top of its tree."""

    conversation: str
    request: Request
    title: str = ""
    agent: str = ""
    root: str | None = None
    parent_kind: str | None = None


class _Requests(Struct):
    items: list[WaitingRequest]


class Hit(Struct):
    conversation: str
    message: str
    seq: int
    role: str
    before: str
    match: str
    after: str
    title: str = ""


class _Hits(Struct):
    items: list[Hit]


class BackendError(Struct):
    message: str
    ts: int = 0


class BackendInfo(Struct):
    """What runs agents, and whether it can. ACP agents have one each, named `acp:AGENT`."""

    name: str
    title: str = ""
    ready: bool = True
    installed: bool = True
    version: str | None = None
    summary: str = ""
    fix: str | None = None
    login: str | None = None
    capabilities: dict[str, bool] | None = None
    agents: tuple[str, ...] = ()
    processes: int = 0
    last_error: BackendError | None = None


class _Backends(Struct):
    items: list[BackendInfo]


class TrialError(Struct):
    code: str
    message: str


class Tried(Struct):
    """How a test turn went."""

    ok: bool
    text: str = ""
    duration_ms: int = 0
    error: TrialError | None = None


class ProcessInfo(Struct):
    """A program of an agent, or a process that one left in the background."""

    kind: str
    command: str = ""
    pid: int | None = None
    conversation: str | None = None
    title: str = ""
    agent: str | None = None
    backend: str | None = None
    started_at: int | None = None
    busy: bool = False
    idle_s: float = 0.0


class _Processes(Struct):
    items: list[ProcessInfo]


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


class Imported(Struct):
    """What was made of a file, or would be."""

    format: str
    title: str
    agent: str
    message_count: int
    conversation: str | None = None
    project: str | None = None
    left_out: tuple[str, ...] = ()


class TakenOver(Struct):
    """What became of a conversation that another program kept, or would."""

    program: str
    session: str
    conversation: str
    outcome: str
    title: str = ""
    message_count: int = 0
    added: int = 0
    note: str | None = None


class _TakenOver(Struct):
    items: list[TakenOver]


class _SnapshotFrame(Struct):
    seq: int
    state: State


@dataclass(frozen=True, slots=True)
class Followed:
    """The view after some events arrived. `events` is empty when the view came as a whole (a snapshot)."""

    state: State
    events: tuple[Event, ...] = ()


class Client:
    def __init__(self, base_url: str, token: str, http: aiohttp.ClientSession) -> None:
        self._base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._http = http

    @classmethod
    @asynccontextmanager
    async def connect(cls, base_url: str, token: str) -> AsyncIterator["Client"]:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_connect=5)) as http:
            yield cls(base_url, token, http)

    # -- commands

    async def create(self, body: CreateConversation) -> Accepted:
        if body.client_request_id is None and body.id is None:
            body = replace(body, client_request_id=str(uuid4()))
        return await self._send("POST", "/api/conversations", body, Accepted)

    async def command(self, conversation: str, command: Command) -> Accepted:
        """On disk when it returns, exactly once, also when the connection broke on the way."""
        if command.client_request_id is None:
            command = replace(command, client_request_id=str(uuid4()))
        return await self._send("POST", f"/api/conversations/{conversation}/commands", command, Accepted)

    async def bring(
        self,
        file: bytes,
        *,
        format: str | None = None,
        title: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        dry_run: bool = False,
    ) -> Imported:
        """Make a conversation from an exported file, or only say what it would be. Made once, whatever breaks."""
        wishes = {"format": format, "title": title, "agent": agent, "project": project}
        query = {name: value for name, value in wishes.items() if value is not None}
        query |= {"dry_run": str(dry_run).lower(), "client_request_id": str(uuid4())}
        return await self._send("POST", "/api/conversations/import", file, Imported, query)

    async def take_over(
        self, conversations: bytes, *, agent: str | None = None, dry_run: bool = False
    ) -> list[TakenOver]:
        """Conversations that another program kept, one JSON object a line, become ours. What is known is not made again."""
        query = {"dry_run": str(dry_run).lower(), **({"agent": agent} if agent else {})}
        return (await self._send("POST", "/api/import/conversations", conversations, _TakenOver, query)).items

    # -- reading

    async def export(self, conversation: str, format: str) -> AsyncGenerator[bytes, None]:
        """A conversation as a file, in pieces. Raises Unreachable when it breaks off: half a file is no file."""
        url = f"{self._base_url}/api/conversations/{conversation}/export"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=SILENCE_S)
        try:
            async with self._http.get(
                url, headers=self._headers, params={"format": format}, timeout=timeout
            ) as response:
                if response.status >= 400:
                    raise _error(response.status, await response.read())
                async for piece in response.content.iter_any():
                    yield piece
        except (aiohttp.ClientError, TimeoutError, OSError) as failure:
            raise self._unreachable(failure) from failure

    async def every_conversation(self) -> AsyncGenerator[Listing, None]:
        """All of them, the archived and the subagents' too, newest first."""
        cursor: str | None = None
        while True:
            query = {"limit": PAGE, "archived": "all", "children": "true", "cursor": cursor}
            page = await self._get("/api/conversations", _Listings, query)
            for listing in page.items:
                yield listing
            cursor = page.next_cursor
            if cursor is None:
                return

    async def snapshot(self, conversation: str, tail: int = 100) -> State:
        return await self._get(f"/api/conversations/{conversation}/snapshot", State, {"tail": tail})

    async def messages(self, conversation: str, before_seq: int, limit: int = 100) -> list[Message]:
        query = {"before": before_seq, "limit": limit}
        return (await self._get(f"/api/conversations/{conversation}/messages", _Messages, query)).items

    async def conversations(
        self, limit: int = 50, query: str | None = None, *, root: str | None = None
    ) -> list[Listing]:
        """With `root` one conversation and all that began from it, subagents too; else without those."""
        found = await self._get("/api/conversations", _Listings, {"limit": limit, "query": query, "root": root})
        return found.items

    async def requests(self) -> list[WaitingRequest]:
        return (await self._get("/api/requests", _Requests)).items

    async def search(self, query: str, limit: int = 20) -> list[Hit]:
        return (await self._get("/api/search", _Hits, {"q": query, "limit": limit})).items

    async def agents(self, project: str | None = None) -> list[AgentInfo]:
        return (await self._get("/api/agents", Agents, {"project": project})).items

    async def last_used_agent(self, project: str | None = None) -> str | None:
        """What a person chose last, to be offered first."""
        return (await self._get("/api/agents", Agents, {"project": project})).last_used

    async def agent(self, agent: str, project: str | None = None) -> AgentDetails:
        return await self._get(f"/api/agents/{quote(agent, safe='')}", AgentDetails, {"project": project})

    async def create_agent(self, **fields: Any) -> AgentDetails:
        """Not tried again when the connection breaks: the second try would find its id taken."""
        return await self._request("POST", "/api/agents", AgentDetails, data=msgspec.json.encode(fields))

    async def update_agent(self, agent: str, **fields: Any) -> AgentDetails:
        """Changes what is given; None clears a field."""
        return await self._send("PATCH", f"/api/agents/{quote(agent, safe='')}", fields, AgentDetails)

    async def delete_agent(self, agent: str) -> None:
        await self._body("DELETE", f"/api/agents/{quote(agent, safe='')}")

    async def trust_agent(self, project: str, agent: str, hash: str | None) -> AgentInfo:
        """Let these bytes of a project's agent work there; None takes the trust back."""
        body = {"project": project, "agent": agent, "hash": hash}
        return await self._send("POST", "/api/agents/trust", body, AgentInfo)

    async def backends(self) -> list[BackendInfo]:
        return (await self._get("/api/backends", _Backends)).items

    async def test(self, agent: str) -> Tried:
        """One real turn with an agent. Not tried again when the connection breaks: it may cost money."""
        return await self._request("POST", f"/api/agents/{agent}/test", Tried, limit_s=TEST_S)

    async def processes(self) -> list[ProcessInfo]:
        return (await self._get("/api/processes", _Processes)).items

    async def end_process(self, pid: int) -> None:
        """Raises Conflict when a turn runs in it."""
        await self._body("DELETE", f"/api/processes/{pid}")

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

    # -- projects

    async def projects(self) -> list[ProjectInfo]:
        return (await self._get("/api/projects", Projects)).items

    async def mission(self, project: str) -> MissionInfo:
        return await self._get("/api/projects/mission", MissionInfo, {"project": project})

    async def missions(self, project: str, limit: int = 50) -> list[PastMission]:
        """Those it has and had, the latest first."""
        return (await self._get("/api/projects/missions", Missions, {"project": project, "limit": limit})).items

    async def set_mission(
        self, project: str, text: str, agents: Sequence[NamedAgent] = (), *, budget_usd: float | None = None
    ) -> MissionInfo:
        body = {"text": text, "agents": agents, "budget_usd": budget_usd, "client_request_id": str(uuid4())}
        return await self._send("PUT", "/api/projects/mission", body, MissionInfo, {"project": project})

    async def clear_mission(self, project: str) -> MissionInfo:
        return await self._request("DELETE", "/api/projects/mission", MissionInfo, {"project": project})

    async def override(self, project: str, agent: str) -> OverrideInfo:
        return await self._get("/api/projects/override", OverrideInfo, {"project": project, "agent": agent})

    async def set_override(self, project: str, agent: str, changes: Mapping[str, str | int | None]) -> OverrideInfo:
        """`idle_prompt`, `idle_interval_s`: only what is given changes, None takes one back."""
        query = {"project": project, "agent": agent}
        return await self._send("PUT", "/api/projects/override", changes, OverrideInfo, query)

    async def tree(self, project: str, path: str = ".", depth: int = 1) -> TreeInfo:
        return await self._get("/api/projects/tree", TreeInfo, {"project": project, "path": path, "depth": depth})

    async def health(self) -> Mapping[str, Any]:
        return await self._get("/api/health", dict[str, Any])

    async def follow(self, conversation: str, state: State | None = None) -> AsyncGenerator[Followed, None]:
        """The conversation's view, now and after every change, through reconnects and restarts of the server.

        Ends only by the caller, or when the conversation is gone or the token refused.
        """
        view = state or await self.snapshot(conversation)
        yield Followed(view)
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                async for followed in self._stream(conversation, view):
                    view, pause_s = followed.state, FIRST_PAUSE_S
                    yield followed
            except (aiohttp.ClientError, TimeoutError, OSError, Unreachable):
                pass
            await asyncio.sleep(pause_s)
            pause_s = min(LONGEST_PAUSE_S, pause_s * 2)

    async def _stream(self, conversation: str, view: State) -> AsyncGenerator[Followed, None]:
        url = f"{self._base_url}/api/conversations/{conversation}/events"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=SILENCE_S)
        query = {"after": str(view.seq)}
        async with self._http.get(url, headers=self._headers, params=query, timeout=timeout) as response:
            if response.status >= 400:
                raise _error(response.status, await response.read())
            async for sent in server_sent(response.content.iter_any()):
                if sent is None:
                    continue
                if sent.event == "snapshot":
                    frame = msgspec.json.decode(sent.data, type=_SnapshotFrame)
                    view = frame.state
                    yield Followed(view)
                    continue
                event = decode_event(sent.data)
                if event.seq > view.seq:
                    view = fold(view, (event,))
                    yield Followed(view, (event,))

    # -- the wire

    async def _get(self, path: str, kind: type[T], query: Mapping[str, object] | None = None) -> T:
        params = {key: str(value) for key, value in (query or {}).items() if value is not None}
        return await self._request("GET", path, kind, params=params)

    async def _send(
        self, method: str, path: str, body: object, kind: type[T], params: Mapping[str, str] | None = None
    ) -> T:
        pause_s = FIRST_PAUSE_S
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        for attempt in range(1, TRIES + 1):
            try:
                return await self._request(method, path, kind, params, data)
            except (Unreachable, LogUnavailable):
                if attempt == TRIES:
                    raise
                await asyncio.sleep(pause_s)
                pause_s = min(LONGEST_PAUSE_S, pause_s * 2)
        raise AssertionError("unreachable")

    async def _request(
        self,
        method: str,
        path: str,
        kind: type[T],
        params: Mapping[str, str] | None = None,
        data: bytes | None = None,
        limit_s: float = ANSWER_S,
    ) -> T:
        return msgspec.json.decode(await self._body(method, path, params, data, limit_s), type=kind)

    async def _body(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        data: bytes | None = None,
        limit_s: float = ANSWER_S,
    ) -> bytes:
        headers = {**self._headers, "Content-Type": "application/json"} if data is not None else self._headers
        timeout = aiohttp.ClientTimeout(total=limit_s, sock_connect=5)
        try:
            async with self._http.request(
                method,
                self._base_url + path,
                headers=headers,
                params=params,
                data=data and BytesIO(data),
                timeout=timeout,
            ) as response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as failure:
            raise self._unreachable(failure) from failure
        if response.status >= 400:
            raise _error(response.status, body)
        return body

    def _unreachable(self, failure: Exception) -> Unreachable:
        return Unreachable(
            f"No answer from {self._base_url} ({str(failure) or type(failure).__name__}). "
            "Is the server running? Start it with `palaver serve`."
        )


def _error(status: int, body: bytes) -> PalaverError:
    try:
        wire = msgspec.json.decode(body, type=WireError)
    except msgspec.MsgspecError:
        wire = WireError(code="internal", message=f"The server answered {status} without saying why.")
    kind: type[PalaverError] = REFUSALS.get(wire.code, PalaverError)
    if status == 503:
        kind = LogUnavailable
    elif status == 507:
        kind = StorageFull
    return kind(wire.message, **wire.details)

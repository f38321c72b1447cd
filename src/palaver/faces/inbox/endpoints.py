"""The addresses `/mcp/human/{session_id}` and `/mcp/assistant/{session_id}`, behind the gate like every other. Without an
id they lead to the server's default inbox.

Opened by the composition root. The gate has looked at Host, Origin and token; here the token's side is looked at, and
whether there is such a conversation. Then MCP's own transport takes over. Whatever it holds open counts as a stream of its
token, and ends with it. The package is loaded at the first knock.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, ClassVar

import msgspec
from litestar import asgi
from litestar.handlers import ASGIRouteHandler
from litestar.types import Message, Receive, Scope, Send

from palaver.errors import Forbidden, Gone, LogUnavailable, NotFound, PalaverError
from palaver.faces.http.errors import body_of, refuse
from palaver.faces.http.open_streams import StreamEnded
from palaver.faces.http.sse import SEND_S
from palaver.faces.http.stall import Hanging
from palaver.faces.inbox.caller import VISIT, Visit
from palaver.faces.inbox.default import default_inbox
from palaver.faces.rights import INBOX_MEMBERS, Side, may_act
from palaver.faces.server import CLIENT_CHARS, ServerParts
from palaver.journal import Journal
from palaver.people.authentication import Principal
from palaver.schema.errors import ErrorCode

logger = Journal(__name__)

ASSISTANT, HUMAN = "/mcp/assistant", "/mcp/human"
NOT_NOW = -32000
"""JSON-RPC's code for errors of a server's own kind; `data` says which."""


class NotOffered(PalaverError):
    code: ClassVar[ErrorCode] = "not_installed"
    status = 501


class InboxDoors:
    def __init__(self, server: ServerParts) -> None:
        self._server = server
        self._opening: asyncio.Task[dict[Side, Any]] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def routes(self) -> list[ASGIRouteHandler]:
        async def human(scope: Scope, receive: Receive, send: Send) -> None:
            await self._serve("human", scope, receive, send)

        async def assistant(scope: Scope, receive: Receive, send: Send) -> None:
            await self._serve("assistant", scope, receive, send)

        # Mounts: Litestar 2.25 has no parameters in the path of an application.
        return [
            asgi(path, is_mount=True, copy_scope=False)(door) for path, door in ((HUMAN, human), (ASSISTANT, assistant))
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self._closed = True
            tasks = {task for task in (self._opening, self._keeping) if task is not None}
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    # -- one request

    async def _serve(self, side: Side, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(send)
        try:
            visit = await self._visit(side, scope)
            manager = (await self._managers())[side]
            async with self._server.streams.open(visit.caller) as stream:
                answer.writes = Hanging(send, stream)
                await _until_hangs(manager.handle_request(_for_mcp(scope, visit), receive, answer.send), answer.writes)
        except StreamEnded:
            await answer.end()
        except TimeoutError:
            logger.info("an inbox's client hangs and was let go", conversation=scope["path"])
        except PalaverError as refusal:
            await refuse(scope, receive, send, refusal, _error_body(refusal) if refusal.retryable else None)

    async def _visit(self, side: Side, scope: Scope) -> Visit:
        caller: Principal = scope["auth"]
        if not may_act(side, "read", caller.kind):
            other = "people" if side == "human" else "agents"
            raise Forbidden(f"This server is for {other}; the token “{caller.name}” is not one of theirs.", side=side)
        named = (value for name, value in scope["headers"] if name == b"palaver-client")
        client = next(named, b"").decode("latin-1")[:CLIENT_CHARS] or None
        conversation = scope["path"].strip("/")
        if not conversation:
            conversation, begun = await default_inbox(self._server.log)
            return Visit(conversation, caller, client, begun)
        listing = await self._server.log.listing(conversation)
        if listing is None:
            raise NotFound("No such conversation.", conversation=conversation)
        if listing.deleted:
            raise Gone("This conversation was deleted.", conversation=conversation)
        return Visit(conversation, caller, client)

    # -- the servers behind it

    async def _managers(self) -> dict[Side, Any]:
        if self._closed:
            raise LogUnavailable("The server is shutting down; try again in a moment.")
        if self._opening is None or (self._opening.done() and self._opening.exception() is not None):
            self._opening = asyncio.create_task(self._open(), name="open the inbox servers")
        return await asyncio.shield(self._opening)

    async def _open(self) -> dict[Side, Any]:
        try:
            # In a thread: it takes a second, in which nobody else should wait.
            servers = await asyncio.to_thread(importlib.import_module, "palaver.faces.inbox.servers")
        except ImportError as missing:
            raise NotOffered(
                "Chat over MCP is not installed here. Install it with: pip install 'palaver[mcp]'"
            ) from missing
        opened: asyncio.Future[dict[Side, Any]] = asyncio.get_running_loop().create_future()
        self._keeping = asyncio.create_task(self._keep(servers, opened), name="keep the inbox servers")
        return await opened

    async def _keep(self, servers: Any, opened: "asyncio.Future[dict[Side, Any]]") -> None:
        """The sessions live in task groups, which one task must open and close."""
        async with AsyncExitStack() as stack:
            managers: dict[Side, Any] = {}
            for side in INBOX_MEMBERS:
                manager = servers.session_manager(side, self._server)
                await stack.enter_async_context(manager.run())
                managers[side] = manager
            opened.set_result(managers)
            await asyncio.Event().wait()


def _error_body(refusal: PalaverError) -> bytes:
    """As every error of ours, and as JSON-RPC has it: a client of MCP reads nothing else, and should know to try again."""
    own = msgspec.json.decode(body_of(refusal), type=dict[str, Any])
    error = {"code": NOT_NOW, "message": refusal.message, "data": own}
    return msgspec.json.encode({**own, "jsonrpc": "2.0", "id": None, "error": error})


class _Answer:
    """What was sent so far, so that a stream which is ended from here ends as HTTP wants it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._open = False
        self.writes = Hanging(send)

    async def send(self, message: Message) -> None:
        self._open = message["type"] == "http.response.start" or bool(message.get("more_body"))
        await self.writes.send_bytes(message, len(message["body"]) if message["type"] == "http.response.body" else 0)

    async def end(self) -> None:
        if self._open:
            with suppress(TimeoutError):
                async with asyncio.timeout(SEND_S):
                    await self._send({"type": "http.response.body", "body": b"", "more_body": False})


async def _until_hangs(work: Coroutine[Any, Any, None], writes: Hanging) -> None:
    """Raises TimeoutError when the client takes nothing any more, whatever its connection says."""
    serving = asyncio.create_task(work, name="serve an inbox")
    try:
        while not serving.done():
            await asyncio.wait({serving}, timeout=SEND_S)
            if writes.look() and not serving.done():
                raise TimeoutError
    finally:
        serving.cancel()
        await asyncio.wait({serving})
    await serving


def _for_mcp(scope: Scope, visit: Visit) -> Any:
    from palaver.faces.inbox.servers import session_owner

    return {**scope, VISIT: visit, "user": session_owner(visit.caller)}

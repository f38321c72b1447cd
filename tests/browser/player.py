"""A server that plays one golden log to the page, event by event, and breaks off whenever it is told to.

Speaks the little of docs/protocol/native.md that the page asks for. Every event is followed by a new title in the list that
names its number: a page that shows the title has folded the event, because it takes lines in order. So no test has to
guess how long drawing takes.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from mimetypes import guess_type
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import WSMsgType, web
from msgspec.structs import replace

import palaver
from palaver.conversation.index_rows import listing_of
from palaver.core.fold.evolve import evolve
from palaver.faces.http.gate import CONTENT_SECURITY_POLICY
from palaver.schema.events import decode_event
from palaver.schema.view import State

PAGE = Path(palaver.__file__).parent / "web_dist"
GOLDEN = Path(__file__).parents[1] / "golden"
EPOCH = "golden"
WAIT_S = 30.0

AGENT = {
    "id": "default",
    "name": "Assistant",
    "description": "",
    "backend": "api",
    "model": None,
    "ready": True,
    "note": None,
}

Json = dict[str, Any]


@cache
def page_files() -> dict[str, tuple[str, bytes]]:
    """The built page, read once: one that is built anew meanwhile must not be half of a test."""
    files = (path for path in PAGE.rglob("*") if path.is_file())
    return {
        f"/{path.relative_to(PAGE).as_posix()}": (guess_type(path.name)[0] or "text/plain", path.read_bytes())
        for path in files
    }


class Player:
    def __init__(self, lines: Sequence[bytes]) -> None:
        self.lines = list(lines)
        self.states = [State()]
        for line in self.lines:
            self.states.append(evolve(self.states[-1], decode_event(line)))
        self.conversation = self.states[-1].conversation
        self.head = 1
        """Everything up to here has happened. An empty conversation has at least begun."""
        self.repeats = 0
        """How many events before the cursor are sent again to whoever comes back."""
        self.url = ""
        self.greeted = 0
        self._open: dict[web.WebSocketResponse, web.Request] = {}
        self._following: set[web.WebSocketResponse] = set()
        self._changed = asyncio.Condition()

    @classmethod
    def of(cls, name: str) -> "Player":
        return cls((GOLDEN / f"{name}.jsonl").read_bytes().splitlines())

    @staticmethod
    def mark(seq: int) -> str:
        """What the window's title holds once the page shows the log up to here."""
        return f"at {seq}."

    # -- what happens

    async def play(self, to_seq: int) -> None:
        """Events happen, and whoever is connected hears of them."""
        fresh = self.lines[self.head : to_seq]
        self.head = to_seq
        await self._tell(*fresh, self._listed())

    async def play_swapped(self) -> None:
        """The next two events happen, and arrive the wrong way round, with the one before them once more.

        Without a title: the page has to ask again for what it missed, and the answer brings it.
        """
        before, first, second = self.lines[self.head - 1 : self.head + 2]
        self.head += 2
        await self._tell(before, second, first)

    async def cut(self) -> None:
        """Every connection breaks at once."""
        for request in self._open.values():
            if request.transport is not None:
                request.transport.abort()
        self._open.clear()
        self._following.clear()

    async def followed(self) -> None:
        """Until somebody follows the conversation."""
        async with asyncio.timeout(WAIT_S), self._changed:
            await self._changed.wait_for(lambda: bool(self._following))

    async def _tell(self, *lines: bytes) -> None:
        for socket in list(self._following):
            await self._send(socket, *lines)

    # -- the socket

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("palaver",))
        await socket.prepare(request)
        self._open[socket] = request
        self.greeted += 1
        hello = {"type": "hello", "epoch": EPOCH, "version": palaver.__version__, "server": "golden"}
        await self._send(socket, msgspec.json.encode(hello))
        try:
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    await self._answer(socket, msgspec.json.decode(message.data))
        finally:
            self._open.pop(socket, None)
            self._following.discard(socket)
        return socket

    async def _answer(self, socket: web.WebSocketResponse, asked: Json) -> None:
        match asked["type"]:
            case "subscribe":
                await self._send(socket, *self._replay(asked.get("after")), self._caught_up(), self._listed())
                async with self._changed:
                    self._following.add(socket)
                    self._changed.notify_all()
            case "ping":
                await self._send(socket, msgspec.json.encode({"type": "pong", "nonce": asked["nonce"]}))
            case _:
                pass

    def _replay(self, after: int | None) -> list[bytes]:
        if after is not None:
            return self.lines[max(0, after - self.repeats) : self.head]
        snapshot = {"type": "snapshot", "conversation": self.conversation, "seq": self.head}
        return [msgspec.json.encode(snapshot | {"reason": "start", "epoch": EPOCH, "state": self.states[self.head]})]

    def _caught_up(self) -> bytes:
        return msgspec.json.encode({"type": "caught_up", "conversation": self.conversation, "seq": self.head})

    def _listed(self) -> bytes:
        return msgspec.json.encode({"type": "listed", "items": [self._listing()], "pos": self.head})

    def _listing(self) -> Any:
        return replace(listing_of(self.states[self.head]), title=self.mark(self.head), pos=self.head)

    async def _send(self, socket: web.WebSocketResponse, *lines: bytes) -> None:
        if not socket.closed and socket in self._open:
            await socket.send_str(b"\n".join(lines).decode())

    # -- the rest of the server

    async def page(self, request: web.Request) -> web.Response:
        kind, body = page_files().get(request.path) or page_files()["/index.html"]
        headers = {"content-security-policy": CONTENT_SECURITY_POLICY, "content-type": kind}
        return web.Response(body=body, headers=headers)

    async def ask(self, request: web.Request) -> web.Response:
        answers: dict[str, Any] = {
            "session": {
                "user": "ada",
                "roles": ["read", "send", "decide"],
                "version": palaver.__version__,
                "server": "golden",
            },
            "agents": {"items": [AGENT]},
            "conversations": {"items": [self._listing()], "next_cursor": None, "pos": self.head},
        }
        answer = answers.get(request.match_info["what"], {"items": []})
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Player"]:
        app = web.Application()
        app.router.add_get("/api/socket", self.socket)
        app.router.add_route("*", "/api/{what:.*}", self.ask)
        app.router.add_get("/{path:.*}", self.page)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield self
        finally:
            await self.cut()
            await runner.cleanup()

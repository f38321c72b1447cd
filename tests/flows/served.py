"""A real server for the flows: uvicorn on a free loopback port, a real log in a folder, a scripted agent.

Everything a test sees of it goes over the network. Only what no client can do is reached from inside: opening the gates of
the scripted agent, and moving the clock.
"""

import asyncio
import hmac
import secrets
import socket
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from palaver.agents.catalog import Book
from palaver.agents.roster import Roster, Source
from palaver.agents.trust import Trust
from palaver.app import App, open_app
from palaver.backends.script.backend import ScriptedBackend
from palaver.backends.script.script import Choice, Say, Step
from palaver.clock import Clock
from palaver.config import Config, ProviderSettings
from palaver.faces.http.listener import Listener
from palaver.log.base import EventLog
from palaver.schema.records import AgentRecord
from palaver.tools.shell.sandbox_level import Level
from tests.levels import strongest_level

WAIT_S = 30.0
"""The longest any wait of a test takes before it counts as a failure: most of it is the machine's other work."""
LOOK_EVERY_S = 0.02
"""How often a test looks at what tells nobody. The server it waits for is in this process, and needs the time between."""
PATIENCE_S = 3.0
"""With a reader that stopped: short, for a test waits for its end; and longer than a busy machine keeps one that does read
from reading."""

HELLO: Sequence[Step] = (Say("Hello there, how are you?"),)


@dataclass
class Served:
    url: str
    token: str
    http: httpx.AsyncClient
    """Signed in with the token."""
    agent: ScriptedBackend
    app: App

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    def browser(self) -> httpx.AsyncClient:
        """A client without the token, that keeps cookies."""
        return http_client(self.url)

    async def sign_in(self, browser: httpx.AsyncClient, **credentials: str) -> httpx.Response:
        """As the page does it: keeps the cookie, and proves with each request that it has the page key. By default with
        the token."""
        answer = await browser.post("/api/session", json=credentials or {"token": self.token})
        if answer.status_code == 200:
            browser.auth = PageKey(answer.json()["key"])
        return answer

    async def create(self, **fields: Any) -> str:
        answer = await self.http.post("/api/conversations", json=fields)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["conversation"])

    async def command(self, conversation: str, **fields: Any) -> httpx.Response:
        return await self.http.post(f"/api/conversations/{conversation}/commands", json=fields)

    async def send(self, conversation: str, text: str, **fields: Any) -> dict[str, Any]:
        answer = await self.command(conversation, type="send_message", content=text, **fields)
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    async def state(self, conversation: str) -> dict[str, Any]:
        answer = await self.http.get(f"/api/conversations/{conversation}/snapshot")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def deserted(self, streams: int = 0) -> None:
        """Waits until no more than so many streams are open: a server learns of a reader's end a moment after it."""
        async with asyncio.timeout(WAIT_S):
            while self.app.streams.count > streams or (not streams and self.app.feed.readers):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(LOOK_EVERY_S)

    async def settled(self, conversation: str, after: int = 0) -> list[dict[str, Any]]:
        """All events after a seq, once the agent rests."""
        async with self.events(conversation, after=after) as stream:
            return [event async for event in stream.until(ended_turn)]

    @asynccontextmanager
    async def events(
        self, conversation: str, headers: dict[str, str] | None = None, **query: Any
    ) -> AsyncIterator["Sse"]:
        path = f"/api/conversations/{conversation}/events"
        async with self.http.stream("GET", path, params=query, headers=headers) as response:
            yield Sse(response)

    @asynccontextmanager
    async def socket(self, **headers: str) -> AsyncIterator["Lines"]:
        sent = {"Authorization": f"Bearer {self.token}", **headers}
        url = self.url.replace("http://", "ws://") + "/api/socket"
        async with connect(url, additional_headers=sent, max_size=None, open_timeout=WAIT_S) as connection:
            yield Lines(connection)


class PageKey(httpx.Auth):
    """Proves with each request that it has the key of a sign-in, as the page does."""

    def __init__(self, text: str) -> None:
        self.session, _, self._key = text.partition(".")

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        address = request.url.copy_with(raw_path=b"/api/health")
        asked = yield httpx.Request("GET", address, headers={"Palaver-Proof": "none"})
        proof = self.prove(
            asked.headers["Palaver-Challenge"], request.method, request.headers["Host"], request.url.raw_path
        )
        request.headers["Palaver-Proof"] = proof
        yield request

    def prove(self, challenge: str, method: str, host: str, target: str | bytes) -> str:
        target = target.decode() if isinstance(target, bytes) else target
        once = secrets.token_urlsafe(8)
        text = "\n".join((challenge, once, method, host, target))
        mac = urlsafe_b64encode(hmac.digest(self._key.encode(), text.encode(), "sha256")).decode().rstrip("=")
        return f"{self.session}.{challenge}.{once}.{mac}"

    async def prove_socket(self, url: str, path: str) -> list[Subprotocol]:
        """What a page offers with its WebSocket."""
        async with http_client(url) as http:
            challenge = await read_challenge(http)
        proof = self.prove(challenge, "SOCKET", url.partition("://")[2], path)
        return [Subprotocol("palaver"), Subprotocol(f"palaver.proof.{proof}")]


async def read_challenge(http: httpx.AsyncClient) -> str:
    """What proofs are to be made with. From somebody who has none."""
    answer = await http.get("/api/health", headers={"Palaver-Proof": "none"}, auth=None)
    return answer.headers["Palaver-Challenge"]


def http_client(url: str, headers: Mapping[str, str] | None = None) -> httpx.AsyncClient:
    # Loopback without TLS: reading the machine's certificates would take longer than most tests.
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=WAIT_S, verify=False)


def ended_turn(event: dict[str, Any]) -> bool:
    return event["type"] in ("turn.finished", "turn.interrupted")


class Sse:
    """A stream of server-sent events, read with a bound on every wait."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._chunks = response.aiter_raw()
        self._pending = b""
        self.raw = b""

    async def next(self) -> dict[str, str]:
        """The fields of the next event; a comment has the field ''."""
        while b"\n\n" not in self._pending:
            async with asyncio.timeout(WAIT_S):
                chunk = await anext(self._chunks)
            self.raw += chunk
            self._pending += chunk
        block, _, self._pending = self._pending.partition(b"\n\n")
        fields: dict[str, str] = {}
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            fields[name.decode()] = value.decode().removeprefix(" ")
        return fields

    async def data(self) -> tuple[str, dict[str, Any]]:
        """The next event that is no comment: its name and its data."""
        while "data" not in (fields := await self.next()):
            pass
        return fields.get("event", "message"), msgspec.json.decode(fields["data"])

    async def until(self, last: Any) -> AsyncIterator[dict[str, Any]]:
        while True:
            _, event = await self.data()
            yield event
            if last(event):
                return


class Lines:
    """The lines of a socket, one by one, with a bound on every wait."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._waiting: list[str] = []
        self.frames: list[str] = []

    async def say(self, **fields: Any) -> None:
        await self.connection.send(msgspec.json.encode(fields).decode())

    async def next(self) -> dict[str, Any]:
        while not self._waiting:
            async with asyncio.timeout(WAIT_S):
                frame = await self.connection.recv()
            assert isinstance(frame, str)
            self.frames.append(frame)
            self._waiting = frame.split("\n")
        return dict(msgspec.json.decode(self._waiting.pop(0)))

    async def until(self, **fields: Any) -> list[dict[str, Any]]:
        """Lines up to and including the first that has all these fields."""
        seen: list[dict[str, Any]] = []
        while True:
            seen.append(await self.next())
            if all(seen[-1].get(name) == value for name, value in fields.items()):
                return seen


@asynccontextmanager
async def serving(
    data: Path,
    script: Choice | Sequence[Step] = HELLO,
    *,
    clock: Clock | None = None,
    log: EventLog | None = None,
    public_hosts: tuple[str, ...] = (),
    behind_proxy: bool = False,
    port: int = 0,
    environment: Mapping[str, str] | None = None,
    model: str | None = None,
    providers: tuple[ProviderSettings, ...] = (),
    full_enabled: bool = False,
    agents_folder: Path | None = None,
    send_buffer_bytes: int | None = None,
    sessions_file: bool = False,
    sandbox: Level | None = None,
) -> AsyncIterator[Served]:
    """With an `environment` the agents are those it describes; without one, the scripted agent alone, and with an
    `agents_folder` whatever is made there: records of any kind, of which only the scripted ones can be run."""
    agent = ScriptedBackend(script)
    records = [AgentRecord(id=name, name=name.title(), backend="scripted") for name in ("default", "other")]
    # Named as TCP, as the command line does: without it each answer waits 40 ms for an acknowledgement.
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if send_buffer_bytes is not None:
            # Connections have it from the one that accepts them: what the kernel holds for a reader that stopped.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        listener.bind(("127.0.0.1", port))
        config = Config(
            data=data,
            home=data,
            port=listener.getsockname()[1],
            public_hosts=public_hosts,
            behind_proxy=behind_proxy,
            environment=environment or {},
            model=model,
            providers=providers,
            full_enabled=full_enabled,
            sessions_file=sessions_file,
            sandbox=sandbox or strongest_level(),
        )
        book = Book(records, agents_folder, Trust(data / "trusted.json"), "scripted", ("scripted",))
        roster = None if environment is not None else Roster(book, {"scripted": Source(lambda: agent)})
        async with open_app(config, clock=clock, log=log, roster=roster) as app:
            ready = asyncio.Event()
            server = Listener(app.asgi, app.streams, config, grace_s=2, started=ready.set)
            running = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                async with asyncio.timeout(WAIT_S):
                    await ready.wait()
                url, token = f"http://127.0.0.1:{config.port}", (data / "token").read_text().strip()
                headers = {"Authorization": f"Bearer {token}"}
                async with http_client(url, headers) as http:
                    yield Served(url, token, http, agent, app)
            finally:
                server.stop()
                async with asyncio.timeout(WAIT_S):
                    await running

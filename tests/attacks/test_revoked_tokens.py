"""A token that was rotated or revoked is refused whatever else fails: an unreadable file, a half-written one, a journal that
raises, a stream that will not end in order, a body or an answer that takes its time."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

import httpx
import msgspec
import pytest
from websockets.exceptions import ConnectionClosed

from palaver.clock import SystemClock
from palaver.people.authentication import KeyRecord, token_hash
from palaver.people.token_files import rotate_token, write_key_records
from tests.flows.served import WAIT_S, PageKey, Served, read_challenge, serving

pytestmark = pytest.mark.anyio

HELPERS = "h" * 43


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


class EagerClock(SystemClock):
    """Real time, but the files are looked at every moment."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(min(seconds, 0.05))


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    data = tmp_path / "data"
    data.mkdir()
    write_key_records(data, [KeyRecord(name="helper", kind="human", hash=token_hash(HELPERS))])
    async with serving(data, clock=EagerClock()) as served:
        yield served


async def status(server: Served, token: str) -> int:
    """0: the request was under way when the token lost its right."""
    async with server.browser() as client:
        try:
            return (await client.get("/api/agents", headers={"Authorization": f"Bearer {token}"})).status_code
        except httpx.TransportError:
            return 0


async def refused(server: Served, token: str) -> None:
    async with asyncio.timeout(WAIT_S):
        while await status(server, token) == 200:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


def data_of(server: Served) -> Path:
    return server.app.config.data


def remove(path: Path) -> None:
    path.unlink()


def garble(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00[{")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def nest(path: Path) -> None:
    path.write_bytes(b"[" * 100_000)


BREAKING = [remove, garble, empty, replace_by_folder, replace_by_loop, nest]


@pytest.mark.parametrize("break_file", BREAKING)
async def test_owners_file_that_cannot_be_read_vouches_for_nobody_and_the_others_stay(
    server: Served, break_file: Callable[[Path], None]
) -> None:
    async with server.browser() as browser, server.socket() as socket:
        await server.sign_in(browser)
        await socket.next()
        break_file(data_of(server) / "token")
        await refused(server, server.token)
        with pytest.raises(ConnectionClosed):
            await socket.until(type="never")
        assert (await browser.get("/api/agents")).status_code == 401
        assert await status(server, HELPERS) == 200


@pytest.mark.parametrize("break_file", BREAKING)
async def test_others_file_that_cannot_be_read_vouches_for_none_of_them_and_the_owner_stays(
    server: Served, break_file: Callable[[Path], None]
) -> None:
    break_file(data_of(server) / "tokens.json")
    await refused(server, HELPERS)

    assert (await server.http.get("/api/agents")).status_code == 200


async def test_token_counts_again_once_its_file_can_be_read(server: Served) -> None:
    path = data_of(server) / "token"
    text = path.read_text()
    path.write_text("")
    await refused(server, server.token)
    path.write_text(text)
    async with asyncio.timeout(WAIT_S):
        while await status(server, server.token) != 200:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


class Broken(logging.Handler):
    """As a handler of somebody else's may be."""

    def emit(self, record: logging.LogRecord) -> None:
        raise OSError(28, "No space left on device")


async def test_rotated_token_is_refused_although_every_line_of_the_journal_fails(server: Served) -> None:
    broken, root = Broken(), logging.getLogger()
    root.addHandler(broken)
    try:
        rotate_token(data_of(server))
        await refused(server, server.token)
    finally:
        root.removeHandler(broken)


async def test_revoked_token_and_its_streams_end_although_one_of_them_fails_to(server: Served) -> None:
    """A stream of the same token that is over at this very moment, as its own end has it, does not keep the others open."""
    async with (
        server.socket(Authorization=f"Bearer {HELPERS}") as first,
        server.socket(Authorization=f"Bearer {HELPERS}") as second,
    ):
        await first.next()
        await second.next()
        write_key_records(data_of(server), [])
        ending = next(iter(server.app.streams._open))
        ending._on_timeout()  # type: ignore[attr-defined]
        server.app.keys.look_again()
        assert await status(server, HELPERS) == 401
        for socket in (first, second):
            with pytest.raises(ConnectionClosed):
                await socket.until(type="never")


async def test_token_whose_kind_was_lessened_loses_its_open_streams(server: Served) -> None:
    async with server.socket(Authorization=f"Bearer {HELPERS}") as socket:
        await socket.next()
        write_key_records(data_of(server), [KeyRecord(name="helper", kind="observer", hash=token_hash(HELPERS))])
        with pytest.raises(ConnectionClosed):
            await socket.until(type="never")


async def test_cookie_made_with_another_token_ends_when_the_owners_is_rotated(server: Served) -> None:
    async with server.browser() as page:
        await server.sign_in(page, token=HELPERS)
        conversation = await server.create()
        async with page.stream("GET", f"/api/conversations/{conversation}/events") as stream:
            assert stream.status_code == 200
            rotate_token(data_of(server))
            async with asyncio.timeout(WAIT_S):
                await stream.aread()
        assert (await page.get("/api/agents")).status_code == 401


async def test_signed_out_browser_stays_out_although_it_could_not_be_written_down(server: Served) -> None:
    (data_of(server) / "signed_out").mkdir()
    async with server.browser() as page:
        await server.sign_in(page)
        cookie = "; ".join(f"{name}={value}" for name, value in page.cookies.items())
        assert (await page.delete("/api/session")).status_code == 204
        assert (await page.get("/api/agents", headers={"Cookie": cookie})).status_code == 401


# -- requests that take long

WAYS = ["revoked", "lessened", "rotated", "signed out"]


@asynccontextmanager
async def helper(server: Served, how: str) -> AsyncIterator[httpx.AsyncClient]:
    """A program with the token, or a page that signed in with it: only pages end when the owner's is rotated."""
    async with server.browser() as client:
        if how in ("revoked", "lessened"):
            client.headers["Authorization"] = f"Bearer {HELPERS}"
        else:
            await server.sign_in(client, token=HELPERS)
        yield client


async def take_away(server: Served, how: str, client: httpx.AsyncClient) -> None:
    """Returns once its right is gone, and the server knows."""
    match how:
        case "revoked":
            write_key_records(data_of(server), [])
            await refused(server, HELPERS)
        case "lessened":
            write_key_records(data_of(server), [KeyRecord(name="helper", kind="observer", hash=token_hash(HELPERS))])
            async with asyncio.timeout(WAIT_S):
                while await role(client) != "observer":  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.02)
        case "rotated":
            rotate_token(data_of(server))
            await refused(server, server.token)
        case _:
            assert (await client.delete("/api/session")).status_code == 204


async def role(client: httpx.AsyncClient) -> str | None:
    try:
        return str((await client.get("/api/session")).json()["role"])
    except httpx.TransportError:
        return None


async def let_in(server: Served, count: int) -> None:
    """Waits until so many requests are past the door."""
    connections = server.app.streams._connections[0]
    async with asyncio.timeout(WAIT_S):
        while sum(not one.is_answered() for held in connections._keys.values() for one in held) < count:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


async def owner_sees(server: Served) -> tuple[object, object]:
    """All that a request could have changed."""
    token = (data_of(server) / "token").read_text().strip()
    async with server.browser() as owner:
        owner.headers["Authorization"] = f"Bearer {token}"
        listed = (await owner.get("/api/conversations")).json()["items"]
        snapshots = [(await owner.get(f"/api/conversations/{one['id']}/snapshot")).json() for one in listed]
    return [(one["id"], state["seq"]) for one, state in zip(listed, snapshots, strict=True)], len(snapshots)


# Cut before the file begins: Litestar leaves the file of a form that ends early to the garbage collector.
FORM = (
    b'--x\r\nContent-Disposition: form-data; name="fi',
    b'le"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nlate\r\n--x--\r\n',
)
BODIES: dict[str, tuple[bytes, bytes]] = {
    "/api/conversations/{id}/commands": (b'{"type": "send_message", "content": "', b'late"}'),
    "/api/conversations": (b'{"message": "', b'late"}'),
    "/api/chat": (b'{"session_id": "{id}", "message": "', b'late"}'),
    "/v1/chats/{id}/commands": (b'{"type": "user_message", "content": "', b'late"}'),
    "/api/conversations/import": (b'{"type": "', b'late"}'),
    "/api/uploads": FORM,
}
"""By path: the two halves of a body."""


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("path", BODIES)
async def test_body_that_was_incomplete_when_its_sender_lost_the_right_does_nothing(
    server: Served, how: str, path: str
) -> None:
    conversation = await server.create()
    before = await owner_sees(server)
    begin, end = BODIES[path]
    ended = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield begin.replace(b"{id}", conversation.encode())
        async with asyncio.timeout(WAIT_S):
            await ended.wait()
        yield end

    media_type = "multipart/form-data; boundary=x" if (begin, end) == FORM else "application/json"
    address = path.replace("{id}", conversation)
    async with helper(server, how) as client:
        sending = asyncio.create_task(client.post(address, content=body(), headers={"Content-Type": media_type}))
        await let_in(server, 1)
        await take_away(server, how, client)
        ended.set()
        try:
            status: int | None = (await sending).status_code
        except httpx.TransportError:
            status = None

    assert status in (401, None)
    assert await owner_sees(server) == before


async def test_body_is_refused_at_its_end_although_nothing_ended_its_connection(server: Served) -> None:
    """As between two looks at the sessions: one of them may have expired meanwhile."""
    conversation = await server.create()
    ended = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b'{"type": "send_message", "content": "'
        async with asyncio.timeout(WAIT_S):
            await ended.wait()
        yield b'late"}'

    before = await owner_sees(server)
    async with helper(server, "signed out") as client:
        sending = asyncio.create_task(client.post(f"/api/conversations/{conversation}/commands", content=body()))
        await let_in(server, 1)
        server.app.streams._connections.clear()
        await take_away(server, "signed out", client)
        ended.set()
        answer = await sending

    assert answer.status_code == 401
    assert await owner_sees(server) == before


async def test_request_of_somebody_else_goes_on(server: Served) -> None:
    conversation = await server.create()
    ended = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b'{"type": "send_message", "content": "'
        async with asyncio.timeout(WAIT_S):
            await ended.wait()
        yield b'in time"}'

    async with helper(server, "signed out") as client:
        sending = asyncio.create_task(server.http.post(f"/api/conversations/{conversation}/commands", content=body()))
        await let_in(server, 1)
        await take_away(server, "signed out", client)
        await take_away(server, "revoked", client)
        ended.set()

        assert (await sending).status_code == 202


MESSAGES, MESSAGE_CHARS = 1_200, 9_000
READ_BYTES = 4 << 20
"""What may have been on its way; the whole is more than twice as much."""


@pytest.mark.parametrize("how", WAYS)
async def test_answer_that_is_read_slowly_ends_when_its_reader_loses_the_right(tmp_path: Path, how: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    write_key_records(data, [KeyRecord(name="helper", kind="human", hash=token_hash(HELPERS))])
    paths = [
        "/api/conversations/big/export?format=markdown",
        "/api/conversations/big/export?format=jsonl",
        "/api/conversations/big/export?format=html",
        "/v1/trajectories/big",
    ]
    async with serving(data, clock=EagerClock(), send_buffer_bytes=64 << 10) as server:
        roles = ("user", "assistant")
        messages = [{"role": roles[i % 2], "content": f"{i} " + "q" * MESSAGE_CHARS} for i in range(MESSAGES)]
        made = await server.http.put("/v1/trajectories/big", json={"messages": messages})
        assert made.status_code in (200, 201), made.text
        async with helper(server, how) as client:
            readers = [await SlowReader.ask(server, client, path) for path in paths]
            await let_in(server, len(paths))
            await take_away(server, how, client)
            sizes = [await reader.rest() for reader in readers]

    assert max(sizes) < READ_BYTES, sizes


class SlowReader:
    """Asks for something, takes a little of it, and the rest later."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    @classmethod
    async def ask(cls, server: Served, client: httpx.AsyncClient, path: str) -> Self:
        host, _, port = server.host.rpartition(":")
        connected = socket.socket()
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        connected.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(connected, (host, int(port)))
        request = client.build_request("GET", path)
        if isinstance(client.auth, PageKey):
            challenge = await read_challenge(client)
            request.headers["Palaver-Proof"] = client.auth.prove(challenge, "GET", server.host, path)
        fields = b"".join(name + b": " + value + b"\r\n" for name, value in request.headers.raw)
        await loop.sock_sendall(connected, b"GET %s HTTP/1.1\r\n%s\r\n" % (path.encode(), fields))
        async with asyncio.timeout(WAIT_S):
            assert (await loop.sock_recv(connected, 1_000)).startswith(b"HTTP/1.1 200 ")
        return cls(connected)

    async def rest(self) -> int:
        """How many bytes still come."""
        size, loop = 0, asyncio.get_running_loop()
        with self._socket, suppress(ConnectionError):
            async with asyncio.timeout(WAIT_S):
                while (piece := await loop.sock_recv(self._socket, 1 << 20)) and size < READ_BYTES:
                    size += len(piece)
        return size


def test_files_of_tokens_are_replaced_as_a_whole(tmp_path: Path) -> None:
    write_key_records(tmp_path, [])
    before = (tmp_path / "tokens.json").stat().st_ino
    write_key_records(tmp_path, [KeyRecord(name="helper", kind="human", hash=token_hash(HELPERS))])

    assert (tmp_path / "tokens.json").stat().st_ino != before
    assert msgspec.json.decode((tmp_path / "tokens.json").read_bytes())[0]["name"] == "helper"

"""The door: nobody comes in without a token, under another name, or from another site; on HTTP, streams and sockets alike."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from palaver.clock import SystemClock
from palaver.people.authentication import KeyRecord, token_hash
from tests.flows.served import WAIT_S, PageKey, Served, serving

pytestmark = pytest.mark.anyio

GUARDED = [
    ("GET", "/api/session"),
    ("DELETE", "/api/session"),
    ("POST", "/api/session/code"),
    ("GET", "/api/conversations"),
    ("POST", "/api/conversations"),
    ("GET", "/api/conversations/x"),
    ("PATCH", "/api/conversations/x"),
    ("DELETE", "/api/conversations/x"),
    ("POST", "/api/conversations/x/commands"),
    ("GET", "/api/conversations/x/snapshot"),
    ("GET", "/api/conversations/x/messages"),
    ("GET", "/api/conversations/x/events"),
    ("GET", "/api/requests"),
    ("GET", "/api/grants"),
    ("DELETE", "/api/grants/x"),
    ("GET", "/api/search?q=x"),
    ("GET", "/api/agents"),
    ("GET", "/api/agents/x"),
    ("POST", "/api/agents"),
    ("PATCH", "/api/agents/x"),
    ("DELETE", "/api/agents/x"),
    ("POST", "/api/agents/x/duplicate"),
    ("POST", "/api/agents/trust"),
    ("POST", "/api/agents/x/test"),
    ("GET", "/api/backends"),
    ("GET", "/api/processes"),
    ("DELETE", "/api/processes/1"),
    ("POST", "/api/uploads"),
    ("GET", "/api/blobs/x"),
    ("GET", "/api/schema"),
    ("GET", "/api/schema/openapi.json"),
    ("GET", "/api/nothing"),
    ("GET", "/nothing"),
    ("OPTIONS", "/api/conversations"),
    ("POST", "/"),
]


@pytest.fixture
async def stranger(shared: Served) -> AsyncIterator[httpx.AsyncClient]:
    """A client that knows the address and nothing else."""
    async with shared.browser() as client:
        yield client


@pytest.mark.parametrize(("method", "path"), GUARDED)
async def test_without_a_token_everything_is_refused(stranger: httpx.AsyncClient, method: str, path: str) -> None:
    answer = await stranger.request(method, path)

    assert answer.status_code == 401
    assert answer.json()["code"] == "unauthorized"


@pytest.mark.parametrize("path", ["/api/health", "/", "/c/anything"])
async def test_health_and_the_page_need_no_token(stranger: httpx.AsyncClient, path: str) -> None:
    answer = await stranger.get(path)

    assert answer.status_code == 200


async def test_refusal_says_whose_door_it_is(stranger: httpx.AsyncClient) -> None:
    answer = await stranger.get("/api/about")

    assert answer.status_code == 401
    assert answer.json()["details"] == {"name": "Palaver", "version": "0.1.0"}


async def test_whoever_is_let_in_is_told_whose_server_it_is(shared: Served) -> None:
    assert (await shared.http.get("/api/about")).json() == {"name": "Palaver", "version": "0.1.0"}


async def test_token_in_a_query_string_is_not_a_token(shared: Served, stranger: httpx.AsyncClient) -> None:
    answer = await stranger.get("/api/conversations", params={"token": shared.token, "access_token": shared.token})

    assert answer.status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1:1", "127.0.0.1", ""])
async def test_foreign_host_is_refused_even_with_the_token(shared: Served, host: str) -> None:
    port = shared.host.rpartition(":")[2]

    answer = await shared.http.get("/api/conversations", headers={"Host": host.format(port=port)})
    page = await shared.http.get("/", headers={"Host": host.format(port=port)})

    assert (answer.status_code, page.status_code) == (403, 403)
    assert answer.json()["code"] == "forbidden"


async def test_two_host_headers_are_refused(shared: Served) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(shared.host.rpartition(":")[2]))
    writer.write(f"GET /api/health HTTP/1.1\r\nHost: {shared.host}\r\nHost: evil.example\r\n\r\n".encode())
    async with asyncio.timeout(WAIT_S):
        status = await reader.readline()
    writer.close()
    await writer.wait_closed()

    assert status.split()[1] in (b"400", b"403")


async def test_localhost_and_a_configured_name_are_answered(tmp_path: Path) -> None:
    async with serving(tmp_path, public_hosts=("palaver.example",)) as server:
        port = server.host.rpartition(":")[2]
        names = [f"localhost:{port}", f"[::1]:{port}", "palaver.example", "palaver.example:443", "PALAVER.example"]
        answers = [await server.http.get("/api/conversations", headers={"Host": name}) for name in names]

    assert [answer.status_code for answer in answers] == [200] * len(names)


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
async def test_request_from_another_site_is_refused_even_with_the_token(
    shared: Served, headers: dict[str, str]
) -> None:
    conversation = await shared.create()

    answers = [
        await shared.http.get("/api/health", headers=headers),
        await shared.http.get("/api/conversations", headers=headers),
        await shared.http.post("/api/conversations", json={}, headers=headers),
        await shared.http.post("/api/session", json={"token": shared.token}, headers=headers),
        await shared.http.get(f"/api/conversations/{conversation}/events", headers=headers),
    ]

    assert [answer.status_code for answer in answers] == [403] * 5


async def test_page_loads_when_a_link_elsewhere_leads_to_it(shared: Served) -> None:
    answer = await shared.http.get("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})

    assert answer.status_code == 200


async def test_our_own_page_may_call(shared: Served) -> None:
    headers = {"Origin": shared.url, "Sec-Fetch-Site": "same-origin"}

    assert (await shared.http.post("/api/conversations", json={}, headers=headers)).status_code == 201


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer {token}", "Origin": "http://evil.example"}, 403),
        ({"Authorization": "Bearer {token}", "Sec-Fetch-Site": "cross-site"}, 403),
    ],
    ids=str,
)
async def test_socket_is_refused_before_it_opens(shared: Served, headers: dict[str, str], status: int) -> None:
    sent = {name: value.format(token=shared.token) for name, value in headers.items()}
    url = shared.url.replace("http", "ws", 1) + "/api/socket"

    with pytest.raises(InvalidStatus) as refused:
        async with connect(url, additional_headers=sent, open_timeout=WAIT_S):
            pass

    assert refused.value.response.status_code == status
    assert set(msgspec.json.decode(refused.value.response.body or b"")) == {"code", "message", "retryable", "details"}


async def test_socket_under_a_foreign_host_is_refused(shared: Served) -> None:
    port = shared.host.rpartition(":")[2]

    with pytest.raises(InvalidStatus) as refused:
        async with connect(
            f"ws://evil.example:{port}/api/socket",
            host="127.0.0.1",
            port=int(port),
            additional_headers={"Authorization": f"Bearer {shared.token}"},
        ):
            pass

    assert refused.value.response.status_code == 403


async def test_socket_of_our_own_page_opens(shared: Served) -> None:
    async with shared.socket(Origin=shared.url) as socket:
        assert (await socket.next())["type"] == "hello"


async def test_every_answer_carries_the_protecting_headers(shared: Served, stranger: httpx.AsyncClient) -> None:
    answers = [
        await stranger.get("/"),
        await stranger.get("/api/health"),
        await stranger.get("/api/conversations"),
        await shared.http.get("/api/nothing"),
        await shared.http.get("/api/health", headers={"Host": "evil.example"}),
    ]

    for answer in answers:
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


async def test_wrong_tokens_are_limited_and_the_right_one_still_passes(server: Served) -> None:
    async with server.browser() as stranger:
        wrong = [
            (await stranger.get("/api/agents", headers={"Authorization": f"Bearer wrong-{number}"})).status_code
            for number in range(12)
        ]

    assert wrong == [401] * 10 + [429] * 2
    assert (await server.http.get("/api/agents")).status_code == 200


async def test_thirty_third_stream_of_a_token_is_refused_until_one_ends(server: Served) -> None:
    conversation = await server.create()
    async with asyncio.timeout(60):
        sockets = [server.socket() for _ in range(32)]
        opened = [await socket.__aenter__() for socket in sockets]
        for lines in opened:
            await lines.next()
        refused = await server.http.get(f"/api/conversations/{conversation}/events")
        with pytest.raises(InvalidStatus) as second:
            async with server.socket():
                pass
        await sockets[0].__aexit__(None, None, None)
        await server.deserted(streams=31)
        async with server.events(conversation) as stream:
            allowed = stream.response.status_code
        for socket in sockets[1:]:
            await socket.__aexit__(None, None, None)

    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    assert second.value.response.status_code == 429
    assert allowed == 200


async def test_rotated_token_ends_streams_and_sessions_of_the_old_one(tmp_path: Path) -> None:
    clock = SteppedClock()
    async with serving(tmp_path, clock=clock) as server:
        conversation = await server.create()
        signed_in = await server.http.post("/api/session", json={"token": server.token})
        async with server.socket() as socket, server.events(conversation) as stream:
            await socket.next()
            await stream.next()
            (tmp_path / "token").write_text("n" * 43)
            await clock.step()
            with pytest.raises(ConnectionClosed) as closed:
                await socket.next()
            with pytest.raises(StopAsyncIteration):
                await stream.next()
        old = await server.http.get("/api/agents")
        async with server.browser() as page:
            page.cookies, page.auth = signed_in.cookies, PageKey(signed_in.json()["key"])
            cookie = await page.get("/api/agents")
        new = await server.http.get("/api/agents", headers={"Authorization": "Bearer " + "n" * 43})

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401
    assert (old.status_code, cookie.status_code, new.status_code) == (401, 401, 200)


class SteppedClock(SystemClock):
    """Real time, but what sleeps for two seconds sleeps until it is told to go on."""

    def __init__(self) -> None:
        self._sleeping: list[asyncio.Future[None]] = []

    async def sleep(self, seconds: float) -> None:
        if seconds != 2.0:
            await super().sleep(seconds)
            return
        woken = asyncio.get_running_loop().create_future()
        self._sleeping.append(woken)
        await woken

    async def step(self) -> None:
        sleeping, self._sleeping = self._sleeping, []
        for woken in sleeping:
            woken.set_result(None)


# -- what each kind of token may do


@pytest.fixture
def tokens(tmp_path: Path) -> dict[str, str]:
    kinds = ("human", "agent", "observer")
    records = [KeyRecord(name=f"the {kind}", kind=kind, hash=token_hash(f"{kind}-token")) for kind in kinds]  # type: ignore[arg-type]
    (tmp_path / "tokens.json").write_bytes(msgspec.json.encode(records))
    return {kind: f"{kind}-token" for kind in kinds}


@pytest.mark.parametrize(
    ("kind", "allowed"),
    [
        ("human", {"read", "send", "draft", "hold", "release", "bold", "decide"}),
        ("agent", {"read", "send", "hold", "release"}),
        ("observer", {"read"}),
    ],
)
async def test_token_may_do_what_its_kind_may(
    tmp_path: Path, tokens: dict[str, str], kind: str, allowed: set[str]
) -> None:
    async with serving(tmp_path) as server:
        conversation = await server.create()
        headers = {"Authorization": f"Bearer {tokens[kind]}"}
        commands = f"/api/conversations/{conversation}/commands"
        answers = {
            "read": await server.http.get(f"/api/conversations/{conversation}/snapshot", headers=headers),
            "send": await server.http.post(commands, json={"type": "send_message", "content": "x"}, headers=headers),
            "draft": await server.http.post(commands, json={"type": "set_draft", "text": "x"}, headers=headers),
            "hold": await server.http.post(commands, json={"type": "interrupt", "hold_queue": True}, headers=headers),
            "release": await server.http.post(commands, json={"type": "edit_queued", "held": False}, headers=headers),
            "bold": await server.http.post(
                commands, json={"type": "set_params", "patch": {"mode": "full"}}, headers=headers
            ),
            "decide": await server.http.post(
                commands, json={"type": "resolve_request", "request": "none", "verdict": "allow"}, headers=headers
            ),
            "admin": await server.http.post("/api/session/code", headers=headers),
        }
        who = (await server.http.get("/api/session", headers=headers)).json()

    assert {name for name, answer in answers.items() if answer.status_code != 403} == allowed
    assert (who["user"], who["role"]) == (f"the {kind}", kind)

"""A browser's cookie alone opens nothing: every port of a host receives it, so whoever listens on one could replay it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, expect
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin, Subprotocol

from palaver.clock import SystemClock
from palaver.people.authentication import KeyRecord, token_hash
from palaver.people.token_files import write_key_records
from tests.browser.conftest import anyio_backend, chromium, palaver, provider, visitors, wire
from tests.browser.served import Palaver
from tests.browser.visitor import Visitors
from tests.flows.served import WAIT_S, Served, serving

__all__ = ["anyio_backend", "chromium", "palaver", "provider", "visitors", "wire"]

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def development_server() -> AsyncIterator[tuple[str, list[str]]]:
    """What an agent may run on another port: a page, and a note of each cookie header that comes."""
    cookies: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        cookies.extend(re.findall(r"^cookie: *(.*?)\r?$", head, re.IGNORECASE | re.MULTILINE))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", cookies


async def operations(http: httpx.AsyncClient, token: str) -> list[tuple[str, str]]:
    """Every route that the server describes, of every face."""
    answer = await http.get("/api/schema/openapi.json", headers={"Authorization": f"Bearer {token}"})
    described: dict[str, dict[str, Any]] = answer.json()["paths"]
    methods = ("get", "put", "post", "delete", "patch")
    return [
        (method.upper(), re.sub(r"\{[^}]*\}", "x", path))
        for path, known in described.items()
        for method in methods
        if method in known
    ]


async def replayed(url: str, token: str, cookie: str, **more: str) -> dict[str, int]:
    """The status of each kind of route, HTTP, event stream, MCP and WebSocket, with the cookie and the headers of our page."""
    headers = {"Cookie": cookie, "Origin": url, "Sec-Fetch-Site": "same-origin", "Referer": f"{url}/", **more}
    found: dict[str, int] = {}
    async with httpx.AsyncClient(base_url=url, timeout=WAIT_S, verify=False) as http:
        # Signing out comes last: a server that heeds it would refuse all that follows.
        for method, path in sorted(await operations(http, token), key=lambda one: one == ("DELETE", "/api/session")):
            if (method, path) in (("GET", "/api/health"), ("POST", "/api/session")):
                continue
            async with http.stream(method, path, headers=headers, json={} if method != "GET" else None) as answer:
                found[f"{method} {path}"] = answer.status_code
        for path in ("/mcp", "/mcp/x", "/api/nothing", "/v1/chats/subscribe?chat_id=x", "/api/events"):
            async with http.stream("GET", path, headers=headers) as answer:
                found[f"GET {path}"] = answer.status_code
    for path in ("/api/socket", "/ws"):
        sent = {name: value for name, value in headers.items() if name != "Origin"}
        for offered in ((), ("palaver",), ("palaver", "palaver.key."), ("palaver", "palaver.key.guess")):
            found[f"{path} {offered}"] = await handshake(url, path, sent, offered)
    return found


async def handshake(url: str, path: str, headers: dict[str, str], offered: tuple[str, ...]) -> int:
    address = url.replace("http", "ws", 1) + path
    try:
        async with connect(
            address,
            additional_headers=headers,
            subprotocols=[Subprotocol(word) for word in offered] or None,
            origin=Origin(url),
            open_timeout=WAIT_S,
        ):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


@pytest.mark.browser
async def test_cookie_that_another_port_received_from_the_browser_opens_nothing(
    visitors: Visitors, palaver: Palaver
) -> None:
    ada = await visitors.stranger(palaver.url)
    visitors.complaints.expect("favicon", "401")
    await ada.page.goto(palaver.link)
    await expect(ada.list).to_be_visible()
    async with development_server() as (address, cookies):
        tab = await ada.page.context.new_page()
        await tab.goto(address)
        await tab.close()

    assert f"palaver_{palaver.port}=" in cookies[0], "the browser sends it there, which is why it must not suffice"
    statuses = await replayed(palaver.url, palaver.token, cookies[0])
    assert {name: status for name, status in statuses.items() if status != 401} == {}
    assert len(statuses) > 100


@pytest.mark.browser
async def test_page_works_and_its_key_is_in_no_address_nor_in_the_cookie(
    visitors: Visitors, palaver: Palaver, chromium: Browser
) -> None:
    ada = await visitors.owner(palaver.url, palaver.token)
    addresses: list[str] = []
    sockets: list[str] = []
    ada.page.context.on("request", lambda request: addresses.append(request.url))
    ada.page.on("websocket", lambda socket: sockets.append(socket.url))
    await ada.begin("Hello there")
    await ada.rests()
    key = str(await ada.page.evaluate("localStorage.getItem('palaver.key')"))
    cookies = await ada.page.context.cookies()

    assert len(key) == 43
    assert not [address for address in [*addresses, *sockets, ada.page.url] if key in address]
    assert all(key not in str(cookie) for cookie in cookies)
    assert key not in (palaver.folder / "server.log").read_text(errors="replace")


# -- the same without a browser


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "data") as served:
        yield served


async def sign_in(server: Served, token: str | None = None) -> tuple[str, str]:
    """A cookie header and its key."""
    async with server.browser() as page:
        answer = await page.post("/api/session", json={"token": token or server.token})
        assert answer.status_code == 200, answer.text
        name, value = next(iter(page.cookies.items()))
        return f"{name}={value}", answer.json().get("key", "")


async def status(server: Served, **headers: str) -> int:
    async with server.browser() as stranger:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return (await stranger.get("/api/conversations", headers=named)).status_code


async def test_replayed_cookie_opens_no_route_of_any_face(server: Served) -> None:
    cookie, _ = await sign_in(server)
    statuses = await replayed(server.url, server.token, cookie)

    assert {name: status for name, status in statuses.items() if status != 401} == {}
    assert len(statuses) > 100


async def test_cookie_counts_only_with_its_own_key(server: Served) -> None:
    cookie, key = await sign_in(server)
    other_cookie, other_key = await sign_in(server)
    wrong = ["", key[:-1], key + "A", key.lower(), other_key, cookie, server.token, "null"]

    assert await status(server, Cookie=cookie, Palaver_Key=key) == 200
    assert await status(server, Cookie=other_cookie, Palaver_Key=other_key) == 200
    assert [await status(server, Cookie=cookie, Palaver_Key=one) for one in wrong] == [401] * len(wrong)
    assert await status(server, Cookie=cookie) == 401
    assert await status(server, Palaver_Key=key) == 401


async def test_key_in_a_query_or_a_cookie_is_no_key(server: Served) -> None:
    cookie, key = await sign_in(server)
    async with server.browser() as stranger:
        answers = [
            await stranger.get(f"/api/conversations?palaver-key={key}&key={key}", headers={"Cookie": cookie}),
            await stranger.get(
                "/api/conversations", headers={"Cookie": f"{cookie}; palaver-key={key}; palaver.key={key}"}
            ),
        ]

    assert [answer.status_code for answer in answers] == [401, 401]


async def test_key_of_an_agents_own_session_does_not_open_the_owners_cookie(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        write_key_records(tmp_path, [KeyRecord(name="helper", kind="agent", hash=token_hash("a" * 43))])
        owners, owners_key = await sign_in(server)
        agents, agents_key = await sign_in(server, "a" * 43)

        assert await status(server, Cookie=owners, Palaver_Key=agents_key) == 401
        assert await status(server, Cookie=agents, Palaver_Key=owners_key) == 401
        assert await status(server, Cookie=agents, Palaver_Key=agents_key) == 200


async def test_cookie_of_the_same_name_that_another_port_set_neither_hides_ours_nor_replaces_it(server: Served) -> None:
    cookie, key = await sign_in(server)
    name = cookie.partition("=")[0]
    planted, _ = await sign_in(server)

    assert await status(server, Cookie=f"{name}=junk; {planted}; {cookie}", Palaver_Key=key) == 200
    assert await status(server, Cookie=planted, Palaver_Key=key) == 401


async def test_socket_opens_with_the_key_as_a_subprotocol_and_chooses_the_other_one(server: Served) -> None:
    cookie, key = await sign_in(server)
    for path in ("/api/socket", "/ws"):
        async with connect(
            server.url.replace("http", "ws", 1) + path,
            additional_headers={"Cookie": cookie},
            subprotocols=[Subprotocol("palaver"), Subprotocol(f"palaver.key.{key}")],
            open_timeout=WAIT_S,
        ) as socket:
            assert socket.subprotocol == "palaver"
        assert await handshake(server.url, path, {"Cookie": cookie, "Palaver-Key": key}, ("palaver",)) == 401


async def test_signing_out_ends_the_streams_and_sockets_of_that_browser_alone(server: Served) -> None:
    conversation = await server.create()
    cookie, key = await sign_in(server)
    other_cookie, other_key = await sign_in(server)
    path, url = f"/api/conversations/{conversation}/events", server.url.replace("http", "ws", 1) + "/api/socket"
    headers = {"Cookie": cookie, "Palaver-Key": key}
    other = {"Cookie": other_cookie, "Palaver-Key": other_key}
    async with (
        server.browser() as browser,
        browser.stream("GET", path, headers=headers) as stream,
        browser.stream("GET", path, headers=other) as others_stream,
        connect(url, additional_headers=headers, subprotocols=[Subprotocol(f"palaver.key.{key}")]) as socket,
        connect(url, additional_headers=other, subprotocols=[Subprotocol(f"palaver.key.{other_key}")]) as others_socket,
    ):
        await socket.recv()
        await others_socket.recv()
        assert (stream.status_code, others_stream.status_code) == (200, 200)
        assert (await browser.delete("/api/session", headers=headers)).status_code == 204
        async with asyncio.timeout(WAIT_S):
            await socket.wait_closed()
            await stream.aread()
        assert socket.close_code == 4401
        await others_socket.send('{"type": "ping", "nonce": 1}')
        async with asyncio.timeout(WAIT_S):
            while '"pong"' not in str(await others_socket.recv()):
                pass


class CalendarClock(SystemClock):
    """Real time on a later day."""

    days = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.days * 86_400_000


async def test_cookie_expires_on_the_server_and_its_streams_end(tmp_path: Path) -> None:
    clock = CalendarClock()
    async with serving(tmp_path, clock=clock) as server:
        cookie, key = await sign_in(server)
        kept, kept_key = await sign_in(server)
        url = server.url.replace("http", "ws", 1) + "/api/socket"
        async with connect(
            url,
            additional_headers={"Cookie": cookie},
            subprotocols=[Subprotocol(f"palaver.key.{key}")],
        ) as socket:
            clock.days = 29
            assert await status(server, Cookie=cookie, Palaver_Key=key) == 200
            async with server.browser() as page:
                renewed = await page.get("/api/session", headers={"Cookie": kept, "Palaver-Key": kept_key})
            clock.days = 31
            assert await status(server, Cookie=cookie, Palaver_Key=key) == 401
            assert await status(server, Cookie=kept, Palaver_Key=kept_key) == 401
            name, value = next(iter(renewed.cookies.items()))
            assert await status(server, Cookie=f"{name}={value}", Palaver_Key=kept_key) == 200
            async with asyncio.timeout(WAIT_S):
                await socket.wait_closed()
            assert socket.close_code == 4401


async def test_endless_sign_outs_of_one_token_stay_bounded_and_void(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        keys = server.app.keys
        owner = keys.owner
        assert owner is not None
        sessions = [keys.begin_session(owner) for _ in range(2_500)]
        for session in sessions:
            keys.end_session(session)
        keys.save_signed_out()
        cookies = [(keys.cookie_of(session), keys.page_key_of(session)) for session in sessions]

        assert not any(keys.by_cookie(cookie, key) for cookie, key in cookies)
        assert (tmp_path / "signed_out").stat().st_size < 200_000
    async with serving(tmp_path) as server:
        assert not any(server.app.keys.by_cookie(cookie, key) for cookie, key in cookies)


@pytest.mark.parametrize(
    "origin",
    ["https://{host}", "ws://{host}", "{host}", "http://{host}.evil.example", "http://[", "http://{host}@evil"],
)
async def test_origin_of_another_scheme_or_form_is_refused(server: Served, origin: str) -> None:
    answer = await server.http.get("/api/conversations", headers={"Origin": origin.format(host=server.host)})

    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("origin", "said_by_proxy", "expected"),
    [
        ("https", None, 200),
        ("http", None, 403),
        ("https", "https", 200),
        ("http", "https", 403),
        ("http", "http", 200),
        ("https", "http", 403),
    ],
)
async def test_scheme_behind_a_proxy_is_the_one_that_the_proxy_has(
    tmp_path: Path, origin: str, said_by_proxy: str | None, expected: int
) -> None:
    async with serving(tmp_path, public_hosts=("palaver.example",), behind_proxy=True) as server:
        headers = {"Host": "palaver.example", "Origin": f"{origin}://palaver.example"}
        if said_by_proxy is not None:
            headers["X-Forwarded-Proto"] = said_by_proxy
        answer = await server.http.get("/api/conversations", headers=headers)

    assert answer.status_code == expected

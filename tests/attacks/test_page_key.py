"""A browser's cookie alone opens nothing: every port of a host receives it, so whoever listens on one could replay it. And what
goes with it proves one request to one server, once: whoever answers at the server's address may be somebody else."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Request, expect
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin, Subprotocol

from palaver.clock import SystemClock
from palaver.people.authentication import KeyRecord, Keys, Principal, token_hash
from palaver.people.proofs import CHALLENGE_LIFE_S, Proof
from palaver.people.token_files import write_key_records
from tests.browser.conftest import anyio_backend, chromium, palaver, provider, visitors, wire
from tests.browser.served import Palaver
from tests.browser.visitor import Visitors
from tests.flows.served import WAIT_S, PageKey, Served, read_challenge, serving

__all__ = ["anyio_backend", "chromium", "palaver", "provider", "visitors", "wire"]

pytestmark = pytest.mark.anyio


OPEN = {("GET", "/api/health"), ("POST", "/api/session")}

# All that a script of the page's origin can find of the key.
STORED = """async () => {
  const opening = indexedDB.open("palaver.key");
  await new Promise((resolve) => { opening.onsuccess = resolve; });
  const store = opening.result.transaction("keys").objectStore("keys");
  const all = (asked) => new Promise((resolve) => { asked.onsuccess = () => resolve(asked.result); });
  const [names, keys] = [await all(store.getAllKeys()), await all(store.getAll())];
  opening.result.close();
  return {
    localStorage: { ...localStorage },
    sessionStorage: { ...sessionStorage },
    keys: names.map((name, index) => [name, keys[index].constructor.name, keys[index].extractable]),
  };
}"""


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
            if (method, path) in OPEN:
                continue
            async with http.stream(method, path, headers=headers, json={} if method != "GET" else None) as answer:
                found[f"{method} {path}"] = answer.status_code
        for path in ("/mcp", "/mcp/x", "/api/nothing", "/v1/chats/subscribe?chat_id=x", "/api/events"):
            async with http.stream("GET", path, headers=headers) as answer:
                found[f"GET {path}"] = answer.status_code
    for path in ("/api/socket", "/ws"):
        sent = {name: value for name, value in headers.items() if name != "Origin"}
        for offered in ((), ("palaver",), ("palaver", "palaver.proof.a.b.c.d"), ("palaver", "palaver.key.guess")):
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
async def test_page_works_and_its_key_is_sent_nowhere_and_no_script_can_read_it(
    visitors: Visitors, palaver: Palaver
) -> None:
    ada = await visitors.owner(palaver.url, palaver.token)
    sent: list[str] = []
    sockets: list[str] = []

    async def note(request: Request) -> None:
        sent.append(f"{request.url} {await request.all_headers()} {request.post_data or ''}")

    ada.page.context.on("request", note)
    ada.page.on("websocket", lambda socket: sockets.append(socket.url))
    await ada.begin("Hello there")
    await ada.rests()
    session, secret = ada.key.split(".")
    stored = await ada.page.evaluate(STORED)

    assert len(secret) == 43
    assert any(f"{session}." in one for one in sent), "proofs name the session"
    assert sockets
    assert secret not in str([*sent, *sockets, ada.page.url, await ada.page.context.cookies(), stored])
    assert stored["keys"] == [[session, "CryptoKey", False]]
    assert stored["localStorage"]["palaver.key"] == session
    assert secret not in (palaver.folder / "server.log").read_text(errors="replace")


# -- the same without a browser


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "data") as served:
        yield served


async def sign_in(server: Served, token: str | None = None) -> tuple[str, PageKey]:
    """A cookie header and its key."""
    async with server.browser() as page:
        answer = await page.post("/api/session", json={"token": token or server.token})
        assert answer.status_code == 200, answer.text
        name, value = next(iter(page.cookies.items()))
        return f"{name}={value}", PageKey(answer.json()["key"])


async def status(server: Served, cookie: str | None = None, key: PageKey | None = None, **headers: str) -> int:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if cookie is not None:
        sent["Cookie"] = cookie
    async with server.browser() as stranger:
        return (await stranger.get(PATH, headers=sent, auth=key)).status_code


PATH = "/api/conversations"


async def challenge_of(server: Served) -> str:
    return await read_challenge(server.http)


async def test_replayed_cookie_opens_no_route_of_any_face(server: Served) -> None:
    cookie, _ = await sign_in(server)
    statuses = await replayed(server.url, server.token, cookie)

    assert {name: status for name, status in statuses.items() if status != 401} == {}
    assert len(statuses) > 100


async def test_cookie_counts_only_with_a_proof_of_its_own_key(server: Served) -> None:
    cookie, key = await sign_in(server)
    other_cookie, other_key = await sign_in(server)

    assert await status(server, cookie, key) == 200
    assert await status(server, other_cookie, other_key) == 200
    assert await status(server, cookie, other_key) == 401
    assert await status(server, cookie) == 401
    assert await status(server, None, key) == 401


async def test_key_itself_opens_nothing(server: Served) -> None:
    """As pages of earlier releases sent it, to whoever answered."""
    async with server.browser() as page:
        answer = await page.post("/api/session", json={"token": server.token})
        session, secret = answer.json()["key"].split(".")
        for text in (secret, f"{session}.{secret}", f"{session}.x.x.{secret}"):
            for name in ("Palaver-Key", "Palaver-Proof"):
                assert (await page.get(PATH, headers={name: text})).status_code == 401
        cookie = "; ".join(f"{name}={value}" for name, value in page.cookies.items())
        assert await handshake(server.url, "/api/socket", {"Cookie": cookie}, (f"palaver.key.{secret}",)) == 401


async def test_proof_counts_once(server: Served) -> None:
    cookie, key = await sign_in(server)
    proof = key.prove(await challenge_of(server), "GET", server.host, PATH)

    assert [await status(server, cookie, Palaver_Proof=proof) for _ in range(3)] == [200, 401, 401]


async def test_proof_of_another_request_is_none(server: Served) -> None:
    cookie, key = await sign_in(server)
    challenge = await challenge_of(server)
    others = [
        ("POST", server.host, PATH),
        ("HEAD", server.host, PATH),
        ("SOCKET", server.host, PATH),
        ("GET", server.host, f"{PATH}?limit=1"),
        ("GET", server.host, f"{PATH}/"),
        ("GET", server.host, "/api/agents"),
        ("GET", server.host, PATH.upper()),
        ("GET", f"localhost:{server.host.rpartition(':')[2]}", PATH),
        ("GET", "127.0.0.1:1", PATH),
        ("GET", "", PATH),
    ]
    for method, host, target in others:
        assert await status(server, cookie, Palaver_Proof=key.prove(challenge, method, host, target)) == 401
    assert await status(server, cookie, Palaver_Proof=key.prove(challenge, "GET", server.host, PATH)) == 200


@pytest.mark.parametrize("challenge", ["", "x", "A" * 22, "..", "guess\n", "0"])
async def test_proof_under_a_challenge_that_the_server_did_not_make_is_none(server: Served, challenge: str) -> None:
    """What a program at the server's address may have said to the page, while the server was away."""
    cookie, key = await sign_in(server)
    proof = key.prove(challenge, "GET", server.host, PATH).replace("\n", "")

    assert await status(server, cookie, Palaver_Proof=proof) == 401


async def test_changed_proof_is_none(server: Served) -> None:
    cookie, key = await sign_in(server)
    proof = key.prove(await challenge_of(server), "GET", server.host, PATH)
    session, challenge, once, mac = proof.split(".")
    changed = [
        f"{session}.{challenge}.{once}x.{mac}",
        f"{session}.{challenge}.{once}.{mac[:-1]}",
        f"{session}.{challenge}.{once}.{mac}x",
        f"{session}.{challenge}.{mac}",
        f"{session}.{challenge}.{once}.{mac}.",
        f".{challenge}.{once}.{mac}",
        f"{session}.{challenge}.{once}.",
        "....",
        ".",
        "",
    ]
    for text in changed:
        assert await status(server, cookie, Palaver_Proof=text) == 401
    assert await status(server, cookie, Palaver_Proof=proof) == 200


async def test_proof_made_before_a_restart_is_none_after_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        cookie, key = await sign_in(server)
        port = int(server.host.rpartition(":")[2])
        proof = key.prove(await challenge_of(server), "GET", server.host, PATH)
    async with serving(tmp_path, port=port) as server:
        assert await status(server, cookie, Palaver_Proof=proof) == 401
        assert await status(server, cookie, key) == 200


async def test_proof_grows_old_and_pages_that_ask_now_and_then_do_not_notice(tmp_path: Path) -> None:
    clock = CalendarClock()
    async with serving(tmp_path, clock=clock) as server:
        cookie, key = await sign_in(server)
        challenge = await challenge_of(server)
        clock.later_s = CHALLENGE_LIFE_S * 1.5
        assert await challenge_of(server) != challenge
        assert await status(server, cookie, Palaver_Proof=key.prove(challenge, "GET", server.host, PATH)) == 200
        clock.later_s = CHALLENGE_LIFE_S * 3
        assert await status(server, cookie, Palaver_Proof=key.prove(challenge, "GET", server.host, PATH)) == 401
        assert await status(server, cookie, key) == 200


async def test_key_in_a_query_or_a_cookie_is_no_key(server: Served) -> None:
    cookie, key = await sign_in(server)
    proof = key.prove(await challenge_of(server), "GET", server.host, PATH)
    async with server.browser() as stranger:
        answers = [
            await stranger.get(f"{PATH}?palaver-proof={proof}", headers={"Cookie": cookie}),
            await stranger.get(PATH, headers={"Cookie": f"{cookie}; palaver-proof={proof}; palaver.key={proof}"}),
        ]

    assert [answer.status_code for answer in answers] == [401, 401]


async def test_key_of_an_agents_own_session_does_not_open_the_owners_cookie(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        write_key_records(tmp_path, [KeyRecord(name="helper", kind="agent", hash=token_hash("a" * 43))])
        owners, owners_key = await sign_in(server)
        agents, agents_key = await sign_in(server, "a" * 43)

        assert await status(server, owners, agents_key) == 401
        assert await status(server, agents, owners_key) == 401
        assert await status(server, agents, agents_key) == 200


@pytest.mark.parametrize("count", [1, 7, 8, 9, 100, 1_000])
@pytest.mark.parametrize("kind", ["junk", "another session's", "forged", "old"])
async def test_cookies_of_the_same_name_that_another_port_set_neither_hide_ours_nor_replace_it(
    server: Served, count: int, kind: str
) -> None:
    cookie, key = await sign_in(server)
    name, _, value = cookie.partition("=")
    others, _ = await sign_in(server)
    forged = value.replace(".owner.", ".observer.")
    planted = {"junk": f"{name}=x", "another session's": others, "forged": f"{name}={forged}", "old": cookie}[kind]
    # A head has a bound, and so has a browser's jar.
    many = "; ".join([planted] * min(count, 60_000 // (len(planted) + 2)))

    assert await status(server, f"{many}; {cookie}", key) == 200
    assert await status(server, f"{cookie}; {many}", key) == 200
    if kind != "old":
        assert await status(server, many, key) == 401


async def test_socket_opens_with_a_proof_as_a_subprotocol_and_chooses_the_other_one(server: Served) -> None:
    cookie, key = await sign_in(server)
    for path in ("/api/socket", "/ws"):
        offered = await key.prove_socket(server.url, path)
        url = server.url.replace("http", "ws", 1) + path
        headers = {"Cookie": cookie}
        async with connect(url, additional_headers=headers, subprotocols=offered, open_timeout=WAIT_S) as socket:
            assert socket.subprotocol == "palaver"
        again = await handshake(server.url, path, headers, tuple(offered))
        other = "/ws" if path == "/api/socket" else "/api/socket"
        elsewhere = await handshake(server.url, other, headers, tuple(await key.prove_socket(server.url, path)))
        proof = key.prove(await challenge_of(server), "GET", server.host, path)
        as_header = await handshake(server.url, path, {**headers, "Palaver-Proof": proof}, ("palaver",))
        of_a_request = await handshake(server.url, path, headers, ("palaver", f"palaver.proof.{proof}"))
        assert (again, elsewhere, as_header, of_a_request) == (401, 401, 401, 401)


async def test_signing_out_ends_the_streams_and_sockets_of_that_browser_alone(server: Served) -> None:
    conversation = await server.create()
    cookie, key = await sign_in(server)
    other_cookie, other_key = await sign_in(server)
    path, url = f"/api/conversations/{conversation}/events", server.url.replace("http", "ws", 1) + "/api/socket"
    headers, other = {"Cookie": cookie}, {"Cookie": other_cookie}
    offered = await key.prove_socket(server.url, "/api/socket")
    others_offered = await other_key.prove_socket(server.url, "/api/socket")
    async with (
        server.browser() as browser,
        browser.stream("GET", path, headers=headers, auth=key) as stream,
        browser.stream("GET", path, headers=other, auth=other_key) as others_stream,
        connect(url, additional_headers=headers, subprotocols=offered) as socket,
        connect(url, additional_headers=other, subprotocols=others_offered) as others_socket,
    ):
        await socket.recv()
        await others_socket.recv()
        assert (stream.status_code, others_stream.status_code) == (200, 200)
        assert (await browser.delete("/api/session", headers=headers, auth=key)).status_code == 204
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
    later_s = 0.0

    def now_ms(self) -> int:
        return super().now_ms() + self.days * 86_400_000

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.later_s


async def test_cookie_expires_on_the_server_and_its_streams_end(tmp_path: Path) -> None:
    clock = CalendarClock()
    async with serving(tmp_path, clock=clock) as server:
        cookie, key = await sign_in(server)
        kept, kept_key = await sign_in(server)
        url = server.url.replace("http", "ws", 1) + "/api/socket"
        async with connect(
            url,
            additional_headers={"Cookie": cookie},
            subprotocols=await key.prove_socket(server.url, "/api/socket"),
        ) as socket:
            clock.days = 29
            assert await status(server, cookie, key) == 200
            async with server.browser() as page:
                renewed = await page.get("/api/session", headers={"Cookie": kept}, auth=kept_key)
            clock.days = 31
            assert await status(server, cookie, key) == 401
            assert await status(server, kept, kept_key) == 401
            name, value = next(iter(renewed.cookies.items()))
            assert await status(server, f"{name}={value}", kept_key) == 200
            async with asyncio.timeout(WAIT_S):
                await socket.wait_closed()
            assert socket.close_code == 4401


def key_of(keys: Keys, principal: Principal) -> PageKey:
    assert principal.session is not None
    return PageKey(f"{principal.session.id}.{keys.page_key_of(principal)}")


def is_let_in(keys: Keys, cookie: str, key: PageKey) -> bool:
    proof = Proof.parse(key.prove(keys.challenges.current, "GET", "host", "/"))
    return keys.by_cookie([cookie], proof, "GET\nhost\n/") is not None


async def test_endless_sign_outs_of_one_token_stay_bounded_and_void(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        keys = server.app.keys
        owner = keys.owner
        assert owner is not None
        sessions = [keys.begin_session(owner) for _ in range(2_500)]
        for session in sessions:
            keys.end_session(session)
        keys.save_signed_out()
        cookies = [(keys.cookie_of(session), key_of(keys, session)) for session in sessions]
        live = keys.begin_session(owner)

        assert is_let_in(keys, keys.cookie_of(live), key_of(keys, live))
        assert not any(is_let_in(keys, cookie, key) for cookie, key in cookies)
        assert (tmp_path / "signed_out").stat().st_size < 200_000
    async with serving(tmp_path) as server:
        assert not any(is_let_in(server.app.keys, cookie, key) for cookie, key in cookies)


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

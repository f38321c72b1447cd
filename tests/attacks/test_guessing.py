"""What a stranger, or another site in the browser, tries at the door: guesses, forged headers of a proxy, a sign-in."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from palaver.people.authentication import FAILURES_A_MINUTE
from tests.flows.served import WAIT_S, Served, serving

pytestmark = pytest.mark.anyio

Guess = Callable[[Served, httpx.AsyncClient, str], Awaitable[int]]


async def _by_header(_: Served, http: httpx.AsyncClient, guess: str) -> int:
    return (await http.get("/api/agents", headers={"Authorization": f"Bearer {guess}"})).status_code


async def _by_another_scheme(_: Served, http: httpx.AsyncClient, guess: str) -> int:
    return (await http.get("/api/agents", headers={"Authorization": f"Basic {guess}"})).status_code


async def _at_an_inbox(_: Served, http: httpx.AsyncClient, guess: str) -> int:
    return (await http.post("/mcp/human", headers={"Authorization": f"Bearer {guess}"}, json={})).status_code


async def _by_form_of_sign_in(_: Served, http: httpx.AsyncClient, guess: str) -> int:
    return (await http.post("/api/session", json={"token": guess})).status_code


async def _by_code(_: Served, http: httpx.AsyncClient, guess: str) -> int:
    return (await http.post("/api/session", json={"code": guess})).status_code


async def _by_socket(server: Served, http: httpx.AsyncClient, guess: str, path: str = "/ws") -> int:
    headers = {**dict(http.headers), "Authorization": f"Bearer {guess}"}
    forwarded = {name: value for name, value in headers.items() if name.startswith("x-") or name == "Authorization"}
    try:
        async with (
            asyncio.timeout(WAIT_S),
            connect(server.url.replace("http", "ws") + path, additional_headers=forwarded),
        ):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


async def _by_native_socket(server: Served, http: httpx.AsyncClient, guess: str) -> int:
    return await _by_socket(server, http, guess, "/api/socket")


FORMS: dict[str, Guess] = {
    "header": _by_header,
    "another scheme": _by_another_scheme,
    "inbox": _at_an_inbox,
    "sign-in": _by_form_of_sign_in,
    "code": _by_code,
    "socket": _by_socket,
    "native socket": _by_native_socket,
}
EXPECTED = [401] * FAILURES_A_MINUTE + [429] * 3


@pytest.mark.parametrize("forwarded", [False, True], ids=["plainly", "as many others"])
@pytest.mark.parametrize("form", FORMS)
async def test_guesses_are_counted_in_every_form_whoever_they_say_they_come_from(
    tmp_path: Path, form: str, forwarded: bool
) -> None:
    async with serving(tmp_path) as server, server.browser() as stranger:
        told: list[int] = []
        for number in range(len(EXPECTED)):
            if forwarded:
                stranger.headers.update({"X-Forwarded-For": f"10.0.0.{number}", "X-Real-IP": f"10.0.0.{number}"})
            told.append(await FORMS[form](server, stranger, f"guess-{number}"))
        # A right secret passes all the same: nobody can lock its owner out.
        passes = await _by_header(server, stranger, server.token)
        signs_in = await _by_form_of_sign_in(server, stranger, server.token)
        code = (await server.http.post("/api/session/code")).json()["code"]
        by_code = await _by_code(server, stranger, code)
    assert told == EXPECTED
    assert (passes, signs_in, by_code) == (200, 200, 200)


async def test_guesses_of_all_forms_count_together(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, server.browser() as stranger:
        forms = [*FORMS.values(), *FORMS.values()][: len(EXPECTED)]
        told = [await guess(server, stranger, f"guess-{number}") for number, guess in enumerate(forms)]
    assert told == EXPECTED


async def test_wrong_code_uses_no_other_code_up_and_a_right_one_counts_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, server.browser() as stranger:
        code = (await server.http.post("/api/session/code")).json()["code"]
        told = [
            await _by_code(server, stranger, guess) for guess in (code[:-1], code.swapcase(), f"{code} ", code, code)
        ]
    assert told == [401, 401, 401, 200, 401]


# -- headers that only a proxy may send


FORGED = [
    {"X-Forwarded-Proto": "https", "Origin": "https://HOST"},
    {"X-Forwarded-Proto": "https", "X-Forwarded-Ssl": "on", "Forwarded": "proto=https", "Origin": "https://HOST"},
    {"Host": "evil.example", "X-Forwarded-Host": "HOST"},
    {"Host": "evil.example", "Forwarded": "host=HOST"},
    {"Host": "evil.example", "X-Original-Host": "HOST", "X-Host": "HOST"},
    {"Origin": "http://evil.example", "X-Forwarded-Host": "evil.example"},
    {"Origin": "http://evil.example", "X-Forwarded-For": "127.0.0.1"},
]


@pytest.mark.parametrize("path", ["/api/agents", "/mcp/human", "/api/session"])
@pytest.mark.parametrize("headers", FORGED, ids=" ".join)
async def test_headers_of_a_proxy_that_nobody_declared_change_nothing(
    tmp_path: Path, headers: dict[str, str], path: str
) -> None:
    async with serving(tmp_path) as server:
        sent = {name: value.replace("HOST", server.host) for name, value in headers.items()}
        assert (await server.http.get(path, headers=sent)).status_code == 403


# -- a sign-in that another site makes

SITES = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://evil.example", "Content-Type": "text/plain"},
    {"Origin": "http://evil.example", "Content-Type": "application/x-www-form-urlencoded"},
]


@pytest.mark.parametrize("way", ["token", "code"])
@pytest.mark.parametrize("headers", SITES, ids=lambda headers: " ".join(headers.values()))
async def test_another_site_signs_no_browser_in_or_out(tmp_path: Path, headers: dict[str, str], way: str) -> None:
    """Even with a right secret: a browser that is signed in by another's choice works for that one."""
    async with serving(tmp_path) as server, server.browser() as browser:
        code = (await server.http.post("/api/session/code")).json()["code"]
        body = {"token": server.token} if way == "token" else {"code": code}
        answer = await browser.post("/api/session", json=body, headers=headers)
        assert (await server.sign_in(browser)).status_code == 200
        out = await browser.delete("/api/session", headers=headers)
        still = await browser.get("/api/session")
    assert (answer.status_code, out.status_code, still.status_code) == (403, 403, 200)
    assert "set-cookie" not in answer.headers
    assert "set-cookie" not in out.headers

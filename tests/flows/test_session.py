"""Signing in: a one-time code or a token for a cookie that survives restarts, and signing out."""

from pathlib import Path

import httpx
import pytest

from palaver.clock import ManualClock
from tests.flows.served import PageKey, Served, serving

pytestmark = pytest.mark.anyio


async def test_code_signs_in_once(server: Served) -> None:
    code = server.app.keys.new_code()
    async with server.browser() as first, server.browser() as second:
        before = await first.get("/api/session")
        signed_in = await server.sign_in(first, code=code)
        after = await first.get("/api/session")
        again = await second.post("/api/session", json={"code": code})

    assert len(code) == 32
    assert (before.status_code, signed_in.status_code, again.status_code) == (401, 200, 401)
    assert after.json() == {
        "user": "owner",
        "role": "owner",
        "roles": ["admin", "decide", "read", "send"],
        "version": "0.1.0",
        "server": "Palaver",
        "full_enabled": False,
    }


async def test_session_says_whether_full_access_may_be_chosen(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", full_enabled=True) as server:
        assert (await server.http.get("/api/session")).json()["full_enabled"] is True


async def test_cookie_is_kept_from_scripts_and_other_sites_and_named_after_the_port(server: Served) -> None:
    async with server.browser() as page:
        answer = await page.post("/api/session", json={"token": server.token})

    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"palaver_{server.host.rpartition(':')[2]}=")
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
    assert server.token not in cookie


async def test_code_is_void_after_a_minute(tmp_path: Path) -> None:
    clock = ManualClock()
    async with serving(tmp_path, clock=clock) as server:
        code = server.app.keys.new_code()
        await clock.advance(60)
        async with server.browser() as page:
            answer = await page.post("/api/session", json={"code": code})

    assert answer.status_code == 401
    assert "minute" in answer.json()["message"]


async def test_owner_can_ask_for_another_code(server: Served) -> None:
    made = await server.http.post("/api/session/code")
    async with server.browser() as page:
        answer = await page.post("/api/session", json={"code": made.json()["code"]})

    assert (made.status_code, answer.status_code) == (201, 200)


async def test_code_with_a_role_gives_its_rights_alone_and_keeps_them_apart_after_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        port = int(server.host.rpartition(":")[2])
        made = await server.http.post("/api/session/code?role=observer")
        async with server.browser() as page:
            session = await server.sign_in(page, code=made.json()["code"])
            cookies, auth = httpx.Cookies(page.cookies), PageKey(session.json()["key"])
        refused = await server.http.post("/api/session/code?role=king")

    async with serving(tmp_path, port=port) as server, server.browser() as page:
        page.cookies, page.auth = cookies, auth
        read = await page.get("/api/conversations")
        sent = await page.post("/api/conversations", json={})
        asked = await page.post("/api/session/code")

    assert (made.json()["role"], refused.status_code) == ("observer", 400)
    assert (session.json()["user"], session.json()["role"], session.json()["roles"]) == ("owner", "observer", ["read"])
    assert (read.status_code, sent.status_code, asked.status_code) == (200, 403, 403)


async def test_cookie_whose_role_was_changed_by_hand_is_none(server: Served) -> None:
    made = await server.http.post("/api/session/code?role=observer")
    async with server.browser() as page:
        await server.sign_in(page, code=made.json()["code"])
        name, value = next(iter(page.cookies.items()))
        headers = {"Cookie": f"{name}={value.replace('.observer.', '.owner.')}"}
        page.cookies.clear()
        answer = await page.get("/api/session", headers=headers)

    assert ".observer." in value
    assert answer.status_code == 401


async def test_cookie_is_found_among_odd_ones_of_other_programs(server: Served) -> None:
    async with server.browser() as page:
        await server.sign_in(page)
        name, value = next(iter(page.cookies.items()))
        odd = f'{{"a": [1, "b"]}}; x=1; flag; =; other_{name}=no; {name}={value}; last="a b"'
        answer = await page.get("/api/session", headers={"Cookie": odd})

    assert answer.status_code == 200


async def test_cookie_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        port = int(server.host.rpartition(":")[2])
        async with server.browser() as page:
            signed_in = await server.sign_in(page, code=server.app.keys.new_code())

    async with serving(tmp_path, port=port) as server, server.browser() as page:
        page.cookies, page.auth = signed_in.cookies, PageKey(signed_in.json()["key"])
        answer = await page.get("/api/conversations")

    assert answer.status_code == 200


async def test_signing_out_voids_the_cookie_itself(server: Served) -> None:
    async with server.browser() as page, server.browser() as thief:
        signed_in = await server.sign_in(page)
        thief.cookies, thief.auth = httpx.Cookies(page.cookies), PageKey(signed_in.json()["key"])
        before = await thief.get("/api/session")
        signed_out = await page.delete("/api/session")
        after = [await page.get("/api/session"), await thief.get("/api/session")]

    assert (before.status_code, signed_out.status_code) == (200, 204)
    assert [answer.status_code for answer in after] == [401, 401]


async def test_signed_out_cookie_stays_void_after_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        port = int(server.host.rpartition(":")[2])
        async with server.browser() as page:
            signed_in = await server.sign_in(page)
            copied, auth = httpx.Cookies(page.cookies), PageKey(signed_in.json()["key"])
            await page.delete("/api/session")

    async with serving(tmp_path, port=port) as server, server.browser() as thief:
        thief.cookies, thief.auth = copied, auth
        answer = await thief.get("/api/session")

    assert answer.status_code == 401


async def test_changed_cookie_is_no_cookie(server: Served) -> None:
    async with server.browser() as page:
        await server.sign_in(page)
        name, value = next(iter(page.cookies.items()))
        answers = [
            await page.get("/api/session", headers={"Cookie": f"{name}={changed}"})
            for changed in (value[:-1], value + "A", "owner." + value.partition(".")[2], "", "..", value.upper())
        ]

    assert [answer.status_code for answer in answers] == [401] * 6


@pytest.mark.parametrize("body", [{}, {"code": "a", "token": "b"}, {"code": 5}])
async def test_sign_in_without_one_credential_is_refused_as_such(server: Served, body: dict[str, object]) -> None:
    async with server.browser() as page:
        answer = await page.post("/api/session", json=body)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


async def test_wrong_tries_are_limited_for_a_minute(tmp_path: Path) -> None:
    clock = ManualClock()
    async with serving(tmp_path, clock=clock) as server, server.browser() as page:
        tries = [(await page.post("/api/session", json={"code": f"{number:032}"})).status_code for number in range(12)]
        await clock.advance(61)
        later = (await page.post("/api/session", json={"token": "wrong"})).status_code

    assert tries == [401] * 10 + [429] * 2
    assert later == 401

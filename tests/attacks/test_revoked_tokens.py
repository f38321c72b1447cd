"""A token that was rotated or revoked is refused whatever else fails: an unreadable file, a half-written one, a journal that
raises, a stream that will not end in order."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed

from palaver.clock import SystemClock
from palaver.people.authentication import KeyRecord, token_hash
from palaver.people.token_files import rotate_token, write_key_records
from tests.flows.served import WAIT_S, Served, serving

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
    async with server.browser() as client:
        return (await client.get("/api/agents", headers={"Authorization": f"Bearer {token}"})).status_code


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
        await browser.post("/api/session", json={"token": server.token})
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
        answer = await page.post("/api/session", json={"token": HELPERS})
        page.headers["Palaver-Key"] = answer.json().get("key", "")
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
        answer = await page.post("/api/session", json={"token": server.token})
        page.headers["Palaver-Key"] = answer.json().get("key", "")
        cookie = "; ".join(f"{name}={value}" for name, value in page.cookies.items())
        assert (await page.delete("/api/session")).status_code == 204
        assert (await page.get("/api/agents", headers={"Cookie": cookie})).status_code == 401


def test_files_of_tokens_are_replaced_as_a_whole(tmp_path: Path) -> None:
    write_key_records(tmp_path, [])
    before = (tmp_path / "tokens.json").stat().st_ino
    write_key_records(tmp_path, [KeyRecord(name="helper", kind="human", hash=token_hash(HELPERS))])

    assert (tmp_path / "tokens.json").stat().st_ino != before
    assert msgspec.json.decode((tmp_path / "tokens.json").read_bytes())[0]["name"] == "helper"

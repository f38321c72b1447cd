"""What every log promises about verify and backup."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palaver.errors import Invalid
from palaver.log.base import Append, Claim, Document, Snapshot, StoredMessage, Verified
from tests.unit.log.stores import KINDS, WAIT_S, Store, append, line, open_store, read_lines, row

pytestmark = pytest.mark.anyio


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(request.param, tmp_path / "data") as opened:
        yield opened


def summed(verified: Verified) -> tuple[int, int, int]:
    return verified.conversations, verified.events, len(verified.damages)


async def test_verify_counts_what_it_looked_at(store: Store) -> None:
    assert summed(await store.log.verify()) == (0, 0, 0)
    for number in range(70):
        await append(store.log, f"c{number}", 0, 2)
    assert summed(await store.log.verify()) == (70, 140, 0)
    assert summed(await store.log.verify("c3")) == (1, 2, 0)
    assert summed(await store.log.verify("nobody")) == (0, 0, 0)


async def test_verify_misses_a_blob_that_an_event_names(store: Store) -> None:
    ref = await store.log.blobs.put(b"tea", "text/plain")
    named = b'{"type":"text.finished","seq":%d,"blob":{"id":"%s","size":3}}'
    await store.log.append(Append("good", 0, [named % (1, ref.id.encode())]))
    await store.log.append(Append("bad", 0, [b"{}", named % (2, b"0" * 64)]))
    talk = named.replace(b'"', b'\\"') % (1, b"1" * 64)
    await store.log.append(Append("talk", 0, [b'{"type":"draft.set","seq":1,"text":"%s"}' % talk]))
    image = b'{"type":"message.added","seq":1,"content":[{"type":"image_url","image_url":{"url":"/api/blobs/%s"}}]}'
    await store.log.append(Append("picture", 0, [image % ref.id.encode(), image % (b"2" * 64)]))
    damages = {damage.conversation: damage.what for damage in (await store.log.verify()).damages}
    assert damages.keys() == {"bad", "picture"}
    assert "0" * 64 in damages["bad"]
    assert "2" * 64 in damages["picture"]


async def test_a_backup_is_a_log_of_its_own_with_everything_in_it(store: Store, tmp_path: Path) -> None:
    log = store.log
    ref = await log.blobs.put(b"tea", "text/plain")
    await log.append(
        Append("a", 0, [line("a", 1)], row("a"), [Document("m", 1, "user", "green tea")], claims=[Claim("one", "h")])
    )
    await log.save_snapshot("a", Snapshot(1, b"head", [StoredMessage(1, b"body")]))
    await log.backup(tmp_path / "copy")
    await append(log, "a", 1)
    async with store.opened_backup(tmp_path / "copy") as copy:
        assert copy.epoch == log.epoch
        assert await read_lines(copy, "a") == [line("a", 1)]
        assert await copy.listing("a") == await log.listing("a")
        assert await copy.used("a", "one") == await log.used("a", "one")
        assert [found.message for found in await copy.search("tea")] == ["m"]
        assert await copy.load_snapshot("a", 5) == await log.load_snapshot("a", 5)
        assert await copy.blobs.get(ref.id) == (b"tea", "text/plain")
        assert summed(await copy.verify()) == (1, 1, 0)
        await append(copy, "a", 1, 2)
    assert len(await read_lines(log, "a")) == 2


async def test_a_backup_goes_into_an_empty_directory_and_never_over_anything(store: Store, tmp_path: Path) -> None:
    await append(store.log, "a", 0)
    (tmp_path / "empty").mkdir()
    await store.log.backup(tmp_path / "empty")
    occupied = tmp_path / "occupied"
    occupied.mkdir()
    (occupied / "letter").write_text("dear")
    (tmp_path / "file").write_text("dear")
    for target in (tmp_path / "empty", occupied, tmp_path / "file"):
        with pytest.raises(Invalid):
            await store.log.backup(target)
    assert [path.name for path in occupied.iterdir()] == ["letter"]


async def test_a_backup_taken_while_appends_go_on_is_whole(store: Store, tmp_path: Path) -> None:
    stop, going = asyncio.Event(), asyncio.Event()
    heads: dict[str, int] = {"a": 0, "b": 0, "c": 0}

    async def owner(name: str) -> None:
        while not stop.is_set():
            await append(store.log, name, heads[name], 3)
            heads[name] += 3
            if min(heads.values()) >= 30:
                going.set()
            await asyncio.sleep(0)  # a memory log never waits

    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
        for name in heads:
            group.create_task(owner(name))
        await going.wait()
        before = dict(heads)
        await store.log.backup(tmp_path / "copy")
        stop.set()
    async with store.opened_backup(tmp_path / "copy") as copy:
        assert (await copy.verify()).damages in ([], ())
        for name in heads:
            kept = await read_lines(copy, name)
            assert len(kept) >= before[name]
            assert kept == (await read_lines(store.log, name))[: len(kept)]

"""What every log promises about snapshots: derived data that opens a long conversation like a short one."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from palaver.errors import HeadMoved
from palaver.log.base import Snapshot, StoredMessage
from tests.unit.log.stores import KINDS, Store, append, open_store

pytestmark = pytest.mark.anyio


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(request.param, tmp_path / "data") as opened:
        await append(opened.log, "a", 0, 100)
        yield opened


def stored(seq: int, text: str = "") -> StoredMessage:
    return StoredMessage(seq, b"message %d %s" % (seq, text.encode()))


def seqs(messages: Sequence[StoredMessage]) -> list[int]:
    return [message.seq for message in messages]


async def test_load_returns_the_head_and_the_last_messages_oldest_first(store: Store) -> None:
    await store.log.save_snapshot("a", Snapshot(20, b"head", [stored(seq) for seq in (1, 5, 9, 12)]))
    log = await store.reopen()
    loaded = await log.load_snapshot("a", 2)
    assert loaded is not None
    assert (loaded.seq, loaded.head, list(loaded.messages)) == (20, b"head", [stored(9), stored(12)])
    everything = await log.load_snapshot("a", 100)
    assert everything is not None
    assert seqs(everything.messages) == [1, 5, 9, 12]
    none = await log.load_snapshot("a", 0)
    assert none is not None
    assert seqs(none.messages) == []


async def test_load_of_what_was_never_saved_is_none(store: Store) -> None:
    assert await store.log.load_snapshot("a", 10) is None
    assert await store.log.load_snapshot("nobody", 10) is None
    assert list(await store.log.messages_before("nobody", 10, 10)) == []


async def test_saving_writes_the_changed_messages_over_the_old(store: Store) -> None:
    await store.log.save_snapshot("a", Snapshot(20, b"one", [stored(1), stored(5), stored(9)]))
    await store.log.save_snapshot("a", Snapshot(30, b"two", [stored(5, "edited"), stored(22)]))
    loaded = await store.log.load_snapshot("a", 10)
    assert loaded is not None
    assert (loaded.seq, loaded.head) == (30, b"two")
    assert list(loaded.messages) == [stored(1), stored(5, "edited"), stored(9), stored(22)]


async def test_rewritten_history_replaces_all_messages(store: Store) -> None:
    await store.log.save_snapshot("a", Snapshot(20, b"one", [stored(1), stored(5), stored(9)]))
    await store.log.save_snapshot("a", Snapshot(30, b"two", [stored(1), stored(22)], replace_all=True))
    loaded = await store.log.load_snapshot("a", 10)
    assert loaded is not None
    assert seqs(loaded.messages) == [1, 22]


async def test_an_older_snapshot_never_wins(store: Store) -> None:
    await store.log.save_snapshot("a", Snapshot(30, b"new", [stored(1, "new")]))
    await store.log.save_snapshot("a", Snapshot(20, b"old", [stored(1, "old"), stored(2)], replace_all=True))
    loaded = await store.log.load_snapshot("a", 10)
    assert loaded is not None
    assert (loaded.seq, loaded.head, list(loaded.messages)) == (30, b"new", [stored(1, "new")])


async def test_a_snapshot_ahead_of_its_log_is_refused(store: Store) -> None:
    with pytest.raises(HeadMoved):
        await store.log.save_snapshot("a", Snapshot(101, b"from the future"))
    with pytest.raises(HeadMoved):
        await store.log.save_snapshot("nobody", Snapshot(1, b"of nothing"))
    assert await store.log.load_snapshot("a", 10) is None


async def test_snapshots_of_two_conversations_do_not_mix(store: Store) -> None:
    await append(store.log, "b", 0, 100)
    await store.log.save_snapshot("a", Snapshot(20, b"a", [stored(1, "a")]))
    await store.log.save_snapshot("b", Snapshot(20, b"b", [stored(1, "b")], replace_all=True))
    loaded = await store.log.load_snapshot("a", 10)
    assert loaded is not None
    assert list(loaded.messages) == [stored(1, "a")]


async def test_messages_before_pages_backwards_through_all_of_them(store: Store) -> None:
    places = [1, 4, 7, 10, 13, 16, 19]
    await store.log.save_snapshot("a", Snapshot(20, b"head", [stored(seq) for seq in places]))
    seen: list[int] = []
    before = 20
    while page := seqs(await store.log.messages_before("a", before, 3)):
        assert page == sorted(page)
        seen = page + seen
        before = page[0]
    assert seen == places
    assert seqs(await store.log.messages_before("a", 10, 2)) == [4, 7]

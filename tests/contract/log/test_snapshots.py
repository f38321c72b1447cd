"""Snapshots: the newest wins, the tail comes first, the rest comes in pages; compaction loses nothing that shows."""

import msgspec

from palaver.core.evolve import fold
from palaver.log.base import Append, EventLog, Snapshot, StoredMessage, lines_of
from palaver.schema.events import decode_event
from palaver.schema.view import State
from tests.contract.log.lines import all_lines, deltas, finished, write


def stored(*seqs: int, body: bytes = b"{}") -> list[StoredMessage]:
    return [StoredMessage(seq, body) for seq in seqs]


async def test_snapshot_comes_back_with_its_last_messages(log: EventLog) -> None:
    await write(log, "c", 0, 50)
    assert await log.load_snapshot("c", 10) is None
    await log.save_snapshot("c", Snapshot(50, b'{"head":1}', stored(*range(1, 41))))
    loaded = await log.load_snapshot("c", 3)
    assert loaded is not None
    assert (loaded.seq, loaded.head) == (50, b'{"head":1}')
    assert [message.seq for message in loaded.messages] == [38, 39, 40]
    assert [message.seq for message in await log.messages_before("c", 38, 5)] == [33, 34, 35, 36, 37]
    assert [message.seq for message in await log.messages_before("c", 3, 5)] == [1, 2]


async def test_later_snapshot_adds_and_replaces_only_what_changed(log: EventLog) -> None:
    await write(log, "c", 0, 20)
    await log.save_snapshot("c", Snapshot(10, b"old", stored(1, 2, 3)))
    await log.save_snapshot("c", Snapshot(20, b"new", [StoredMessage(3, b"changed"), StoredMessage(4, b"added")]))
    loaded = await log.load_snapshot("c", 10)
    assert loaded is not None
    assert loaded.head == b"new"
    assert [(message.seq, message.body) for message in loaded.messages] == [
        (1, b"{}"),
        (2, b"{}"),
        (3, b"changed"),
        (4, b"added"),
    ]


async def test_older_snapshot_never_wins(log: EventLog) -> None:
    await write(log, "c", 0, 20)
    await log.save_snapshot("c", Snapshot(20, b"new", stored(1)))
    await log.save_snapshot("c", Snapshot(10, b"old", stored(1, body=b"stale")))
    loaded = await log.load_snapshot("c", 10)
    assert loaded is not None
    assert (loaded.head, loaded.messages[0].body) == (b"new", b"{}")


async def test_snapshot_of_a_rewritten_history_replaces_all_messages(log: EventLog) -> None:
    await write(log, "c", 0, 20)
    await log.save_snapshot("c", Snapshot(10, b"old", stored(1, 2, 3, 4)))
    await log.save_snapshot("c", Snapshot(20, b"new", stored(1, 2), replace_all=True))
    loaded = await log.load_snapshot("c", 10)
    assert loaded is not None
    assert [message.seq for message in loaded.messages] == [1, 2]


async def test_compaction_leaves_one_line_for_a_run_of_deltas(log: EventLog) -> None:
    await write(log, "c", 0, 5)
    await log.append(Append("c", 5, [finished(6, "t1 t2 t3 t4 t5 ")]))
    await log.append(Append("c", 6, deltas(7, 2, message="open")))
    before = await log.head("c")
    full = [decode_event(line) for line in await all_lines(log, "c")]
    assert await log.compact("c", 8) == 5
    lines = [msgspec.json.decode(line) for line in await all_lines(log, "c")]
    assert [(line["type"], line["seq"]) for line in lines[:2]] == [("log.compacted", 5), ("text.finished", 6)]
    assert lines[0]["first"] == 1
    assert await log.head("c") == before
    compacted = [decode_event(line) for line in await all_lines(log, "c")]
    assert fold(State(), compacted) == fold(State(), full)
    assert await log.compact("c", 8) == 0
    assert not (await log.verify("c")).damages


async def test_deltas_of_an_open_block_stay(log: EventLog) -> None:
    await write(log, "c", 0, 5)
    assert await log.compact("c", 5) == 0
    assert len(await all_lines(log, "c")) == 5


async def test_appends_go_on_after_a_compaction(log: EventLog) -> None:
    await write(log, "c", 0, 5)
    await log.append(Append("c", 5, [finished(6, "x")]))
    await log.compact("c", 6)
    await log.append(Append("c", 6, deltas(7, 2)))
    segments = await log.read("c", 6)
    assert [msgspec.json.decode(line)["seq"] for segment in segments for line in lines_of(segment)][-2:] == [7, 8]
    assert not (await log.verify()).damages

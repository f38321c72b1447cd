"""A flipped byte on disk: found, blamed on its conversation, and no trouble for the others."""

from pathlib import Path

import apsw
import pytest

from palaver.errors import LogCorrupt
from palaver.log.base import Append
from palaver.log.sqlite.inspect import verify_directory
from palaver.log.sqlite.store import open_sqlite_log
from palaver.schema.events import AnswerStarted, TextDelta, TextFinished
from tests.unit.log.logs import numbered_lines
from tests.unit.log.stores import append, line, lines, read_lines

pytestmark = pytest.mark.anyio

NAMES = ("first", "second", "third")


def damaged(directory: Path) -> set[str]:
    return {damage.conversation for damage in verify_directory(directory, lambda done, total: None).damages}


def streamed(name: str) -> list[bytes]:
    return numbered_lines(
        [
            AnswerStarted(message="m"),
            TextDelta(message="m", block=0, text=f"{name} "),
            TextDelta(message="m", block=0, text="said"),
            TextFinished(message="m", block=0, text=f"{name} said"),
        ],
        name,
    )


async def a_log(directory: Path, *, compact: bool) -> dict[str, bytes]:
    """Three conversations, each in one segment; answers their bodies."""
    bodies: dict[str, bytes] = {}
    async with open_sqlite_log(directory) as log:
        for name in NAMES:
            await log.append(Append(name, 0, streamed(name)))
            if compact:
                await log.compact(name, 4)
            (segment,) = await log.read(name, 0)
            bodies[name] = segment.body
    return bodies


@pytest.mark.parametrize("compact", [False, True])
async def test_any_flipped_byte_of_a_body_is_found_and_blamed_on_its_conversation(
    tmp_path: Path, compact: bool
) -> None:
    directory = tmp_path / "data"
    bodies = await a_log(directory, compact=compact)
    database = directory / "palaver.db"
    assert damaged(directory) == set()
    body = bodies["second"]
    whole = database.read_bytes()
    start = whole.index(body)
    assert whole.count(body) == 1
    with database.open("r+b") as file:
        for place in range(start, start + len(body)):
            file.seek(place)
            file.write(bytes([whole[place] ^ 0x01]))
            file.flush()
            assert damaged(directory) == {"second"}, whole[place - 10 : place + 10]
            file.seek(place)
            file.write(whole[place : place + 1])
            file.flush()
    assert damaged(directory) == set()


async def test_damage_to_one_conversation_leaves_the_others_readable_and_writable(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    bodies = await a_log(directory, compact=False)
    database = directory / "palaver.db"
    database.write_bytes(database.read_bytes().replace(bodies["second"], bodies["second"].replace(b"said", b"sajd")))
    async with open_sqlite_log(directory) as log:
        found = await log.verify()
        assert [(damage.conversation, damage.seq) for damage in found.damages] == [("second", 1)]
        assert (found.conversations, found.events) == (3, 12)
        assert (await log.verify("first")).damages in ([], ())
        for name in ("first", "third"):
            assert await read_lines(log, name) == streamed(name)
            await append(log, name, 4)
        with pytest.raises(LogCorrupt, match="second"):
            await log.compact("second", 4)
        assert await log.compact("first", 5) == 2


@pytest.mark.parametrize(
    ("harm", "seq"),
    [
        ("DELETE FROM segments WHERE conversation = 2 AND first = 1", 1),
        ("DELETE FROM segments WHERE conversation = 2 AND first = 4", 4),
        ("DELETE FROM segments WHERE conversation = 2 AND first = 7", 7),
        ("UPDATE conversations SET head = 8 WHERE number = 2", 9),
        ("UPDATE conversations SET chain = zeroblob(16) WHERE number = 2", 9),
        ("UPDATE segments SET chain = zeroblob(16) WHERE conversation = 2 AND last = 6", 4),
        ("UPDATE segments SET first = 3 WHERE conversation = 2 AND first = 4", 4),
        ("UPDATE segments SET conversation = 2, first = 10, last = 12 WHERE conversation = 3 AND first = 7", 10),
    ],
)
async def test_lost_or_moved_segments_are_found(tmp_path: Path, harm: str, seq: int) -> None:
    directory = tmp_path / "data"
    async with open_sqlite_log(directory) as log:
        for after in (0, 3, 6):
            for name in NAMES:
                await log.append(Append(name, after, lines(name, after, 3)))
    connection = apsw.Connection(str(directory / "palaver.db"))
    connection.execute(harm)
    connection.close()
    async with open_sqlite_log(directory) as log:
        second = (await log.verify("second")).damages
        assert second
        assert second[0].seq == seq
        assert (await log.verify("first")).damages in ([], ())


async def test_damaged_positions_are_found_and_keep_nobody_from_reading(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    await a_log(directory, compact=True)
    connection = apsw.Connection(str(directory / "palaver.db"))
    connection.execute("UPDATE segments SET runs = x'5b5b' WHERE conversation = 2")
    connection.close()
    assert damaged(directory) == {"second"}
    async with open_sqlite_log(directory) as log:
        assert {name for name, _ in await log.read_all(0, 1 << 20)} == set(NAMES)


async def test_a_changed_blob_is_found_and_blamed_on_who_names_it(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path / "data") as log:
        ref = await log.blobs.put(b"tea", "text/plain")
        await log.append(Append("a", 0, [b'{"seq":1,"blob":{"id":"%s","size":3}}' % ref.id.encode()]))
        await log.append(Append("b", 0, [line("b", 1)]))
        (tmp_path / "data" / "blobs" / ref.id[:2] / ref.id).write_bytes(b"tee")
        assert [damage.conversation for damage in (await log.verify()).damages] == ["a"]

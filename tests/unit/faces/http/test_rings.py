"""A ring of frames: readers are places in it, share what they read, and are told when it has moved past them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from palaver.errors import Gone
from palaver.faces.http.rings import EMPTY_BYTES, PIECE_BYTES, Beat, Behind, Piece, Reader, Ring

pytestmark = pytest.mark.anyio

WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Numbered:
    number: int
    body: bytes = b"x"


def numbered(*numbers: int, size: int = 1) -> list[Numbered]:
    return [Numbered(number, b"x" * size) for number in numbers]


async def numbers(reader: Reader[Numbered]) -> list[int]:
    item = await asyncio.wait_for(reader.next(), WAIT_S)
    assert isinstance(item, Piece)
    return [frame.number for frame in item.frames]


async def test_reader_gets_what_is_said_after_it_came_all_at_once() -> None:
    ring = Ring[Numbered](100)
    ring.say(numbered(1))
    reader = Reader(ring)
    ring.say(numbered(2, 3))
    ring.say(numbered(4))
    assert await numbers(reader) == [2, 3, 4]


async def test_reader_that_waits_is_woken_once_for_all_that_was_said() -> None:
    ring = Ring[Numbered](100)
    reader = Reader(ring)
    waiting = asyncio.create_task(numbers(reader))
    await asyncio.sleep(0)
    for number in (1, 2, 3):
        ring.say(numbered(number))
        ring.wake()
    assert await waiting == [1, 2, 3]


async def test_readers_in_step_share_one_piece_and_what_is_made_of_it() -> None:
    ring = Ring[Numbered](100)
    made: list[int] = []

    def count(frames: Sequence[Numbered]) -> int:
        made.append(len(frames))
        return len(frames)

    readers = [Reader(ring) for _ in range(3)]
    ring.say(numbered(1, 2))
    pieces = [await reader.next() for reader in readers]
    for piece in pieces:
        assert isinstance(piece, Piece)
        assert piece.once("count", count) == 2
        assert piece.body == b"xx"
    assert pieces[0] is pieces[1] is pieces[2]
    assert made == [2]


async def test_reader_out_of_step_gets_its_own_piece() -> None:
    ring = Ring[Numbered](100)
    first = Reader(ring)
    ring.say(numbered(1))
    second = Reader(ring)
    ring.say(numbered(2))
    assert (await numbers(first), await numbers(second)) == ([1, 2], [2])


async def test_ring_keeps_no_more_than_its_bytes_and_says_what_went() -> None:
    ring = Ring[Numbered](100)
    assert ring.say(numbered(1, 2, 3, size=30)) is None
    assert ring.say(numbered(4, 5, size=30)) == Numbered(2, b"x" * 30)
    assert (ring.size_bytes, ring.begin, ring.end) == (90, 2, 5)


async def test_frame_larger_than_the_ring_is_kept_alone() -> None:
    ring = Ring[Numbered](100)
    reader = Reader(ring)
    ring.say(numbered(1, size=1_000))
    assert await numbers(reader) == [1]
    ring.say(numbered(2))
    assert (ring.size_bytes, await numbers(reader)) == (1, [2])


async def test_reader_that_stopped_is_behind_until_it_begins_anew() -> None:
    ring = Ring[Numbered](100)
    stopped, quick = Reader(ring), Reader(ring)
    for number in range(50):
        ring.say(numbered(number, size=30))
        assert await numbers(quick) == [number]
    assert await stopped.next() == Behind(50)
    ring.say(numbered(50, size=30))
    assert await stopped.next() == Behind(51)
    stopped.begin_anew()
    ring.say(numbered(51))
    assert await numbers(stopped) == [51]


async def test_piece_is_no_larger_than_a_write() -> None:
    ring = Ring[Numbered](100 * PIECE_BYTES)
    reader, late = Reader(ring), Reader(ring)
    ring.say(numbered(1, 2, 3, size=PIECE_BYTES // 2))
    ring.say(numbered(4, size=2 * PIECE_BYTES))
    assert [await numbers(reader) for _ in range(3)] == [[1, 2], [3], [4]]
    assert [await numbers(late) for _ in range(3)] == [[1, 2], [3], [4]]


async def test_place_is_found_by_a_number_that_grows() -> None:
    ring = Ring[Numbered](5)
    ring.say(numbered(10, 20, 30, 40, 50, 60))
    places = [ring.place_after(number, lambda frame: frame.number) for number in (0, 20, 25, 60, 99)]
    assert places == [1, 2, 2, 6, 6]
    assert await numbers(Reader(ring, places[2])) == [30, 40, 50, 60]


async def test_what_is_forgotten_leaves_behind_only_who_had_not_read_it() -> None:
    ring = Ring[Numbered](100)
    late, up_to_date = Reader(ring), Reader(ring)
    ring.say(numbered(1))
    assert await numbers(up_to_date) == [1]
    ring.forget()
    ring.say(numbered(2))
    assert await numbers(up_to_date) == [2]
    assert isinstance(await late.next(), Behind)


async def test_ring_that_starts_over_leaves_everybody_behind() -> None:
    ring = Ring[Numbered](100)
    reader = Reader(ring)
    ring.start_over()
    assert isinstance(await reader.next(), Behind)
    reader.begin_anew()
    ring.say(numbered(1))
    assert await numbers(reader) == [1]


async def test_silence_is_a_beat_once_and_comes_after_what_waits() -> None:
    ring = Ring[Numbered](100)
    reader = Reader(ring)
    ring.say(numbered(1))
    ring.beat()
    assert await numbers(reader) == [1]
    assert await reader.next() == Beat()
    waiting = asyncio.create_task(numbers(reader))
    await asyncio.sleep(0)
    ring.say(numbered(2))
    ring.wake()
    assert await waiting == [2]


async def test_ring_that_is_over_is_read_to_its_end() -> None:
    ring = Ring[Numbered](100)
    reader, waiting = Reader(ring), asyncio.create_task(Reader(ring).next())
    await asyncio.sleep(0)
    ring.say(numbered(1))
    ring.close(Gone("Deleted."))
    assert isinstance(await waiting, Piece)
    assert await numbers(reader) == [1]
    with pytest.raises(Gone):
        await reader.next()


async def test_reader_that_is_cancelled_takes_nobody_with_it() -> None:
    ring = Ring[Numbered](100)
    leaving, staying = (asyncio.create_task(numbers(Reader(ring))) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    ring.say(numbered(1))
    ring.wake()
    assert await staying == [1]


async def test_frames_are_rewritten_in_their_places_for_whoever_has_not_read_them() -> None:
    ring = Ring[Numbered](100_000)
    quick, slow = Reader(ring), Reader(ring)
    ring.say(numbered(1, 2, 3, size=1_000))
    assert await numbers(quick) == [1, 2, 3]
    ring.rewrite(lambda frame: replace(frame, body=b"") if frame.number == 2 else frame)
    assert ring.size_bytes == 2_000 + EMPTY_BYTES
    item = await asyncio.wait_for(slow.next(), WAIT_S)
    assert isinstance(item, Piece)
    assert [(frame.number, len(frame.body)) for frame in item.frames] == [(1, 1_000), (2, 0), (3, 1_000)]
    assert len(item.body) == 2_000
    ring.say(numbered(4))
    assert await numbers(quick) == await numbers(slow) == [4]


def test_frames_without_a_body_are_bounded_too() -> None:
    ring = Ring[Numbered](100 * EMPTY_BYTES)
    for number in range(1_000):
        ring.say([Numbered(number, b"")])
    assert ring.end - ring.begin == 100

"""What waits for one socket: joined when taken, bounded when not, forgotten with its source."""

import asyncio

import pytest

from palaver.faces.native.outbox import Outbox

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_everything_that_waits_is_taken_at_once_and_in_order() -> None:
    outbox = Outbox(limit_bytes=100)
    for line in (b"a\n", b"b\n", b"c\n"):
        await outbox.put("one", line)

    assert await outbox.take() == b"a\nb\nc\n"


async def test_full_outbox_makes_whoever_puts_wait_until_it_is_taken() -> None:
    outbox = Outbox(limit_bytes=4)
    await outbox.put("one", b"aaaa\n")
    waiting = asyncio.create_task(outbox.put("two", b"b\n"))
    await asyncio.sleep(0)
    before = waiting.done()

    first = await outbox.take()
    async with asyncio.timeout(5):
        await waiting

    assert before is False
    assert (first, await outbox.take()) == (b"aaaa\n", b"b\n")


async def test_what_an_ended_source_left_is_forgotten_and_makes_room() -> None:
    outbox = Outbox(limit_bytes=4)
    ended, other = object(), object()
    await outbox.put(other, b"o\n")
    await outbox.put(ended, b"eeee\n")
    waiting = asyncio.create_task(outbox.put(other, b"p\n"))
    await asyncio.sleep(0)

    outbox.forget(ended)
    async with asyncio.timeout(5):
        await waiting

    assert await outbox.take() == b"o\np\n"


async def test_taking_waits_for_something_to_take() -> None:
    outbox = Outbox(limit_bytes=4)
    taking = asyncio.create_task(outbox.take())
    await asyncio.sleep(0)
    before = taking.done()
    await outbox.put("one", b"a\n")

    async with asyncio.timeout(5):
        taken = await taking

    assert (before, taken) == (False, b"a\n")

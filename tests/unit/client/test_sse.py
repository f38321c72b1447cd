"""Server-sent events, read in whatever pieces the network makes of them."""

from collections.abc import AsyncIterator

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.client.sse import ServerSent, server_sent

STREAM = (
    b": heartbeat\n\n"
    b'id: 1\ndata: {"a": "one\xe2\x80\xa8line"}\n\n'
    b"event: snapshot\r\nid: 7\r\ndata: {}\r\n\r\n"
    b"data: first\ndata: second\n\n"
    b"id: 8\n\n"
)
EXPECTED = [
    None,
    ServerSent("message", b'{"a": "one\xe2\x80\xa8line"}', "1"),
    ServerSent("snapshot", b"{}", "7"),
    ServerSent("message", b"first\nsecond", "7"),
]


async def pieces(sizes: list[int]) -> AsyncIterator[bytes]:
    rest = STREAM
    for size in sizes:
        yield rest[:size]
        rest = rest[size:]
    yield rest


@settings(deadline=None)
@given(st.lists(st.integers(0, 40)))
def test_events_are_the_same_in_whatever_pieces_they_come(sizes: list[int]) -> None:
    import asyncio

    async def read() -> list[ServerSent | None]:
        return [sent async for sent in server_sent(pieces(sizes))]

    assert asyncio.run(read()) == EXPECTED


async def test_event_without_its_blank_line_is_not_given() -> None:
    async def cut() -> AsyncIterator[bytes]:
        yield b"id: 1\ndata: whole\n\nid: 2\ndata: ha"

    assert [sent async for sent in server_sent(cut())] == [ServerSent("message", b"whole", "1")]

"""The parser of server-sent events: the same events however the bytes are sliced."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from palaver.backends.api.sse import SseParser
from palaver.errors import ProtocolBroken


def parse(*chunks: bytes) -> list[bytes]:
    parser = SseParser()
    return [data for chunk in chunks for data in parser.feed(chunk)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: one\n\n", [b"one"]),
        (b"data:one\n\n", [b"one"]),
        (b"data:  one \n\n", [b" one "]),
        (b"event: x\ndata: one\nid: 3\nretry: 5\n\n", [b"one"]),
        (b": comment\n\ndata: one\n\n", [b"one"]),
        (b"data: one\ndata: two\n\n", [b"one\ntwo"]),
        (b"data: one\r\ndata: two\r\n\r\n", [b"one\ntwo"]),
        (b"data\n\n", [b""]),
        (b"\xef\xbb\xbfdata: one\n\n", [b"one"]),
        (b"data: one\r\n\r\ndata: two\r\rdata: three\n\n", [b"one", b"two", b"three"]),
        (b"data: one\x0bstill one\x85\xe2\x80\xa8\n\n", [b"one\x0bstill one\x85\xe2\x80\xa8"]),
        (b"database: no\n\n", []),
        (b"data: never ended", []),
        (b"data: no blank line\n", []),
        (b"\n\n\n", []),
    ],
)
def test_parser_reads_events(stream: bytes, events: list[bytes]) -> None:
    assert parse(stream) == events
    assert parse(*(stream[at : at + 1] for at in range(len(stream)))) == events


line_ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
payloads = st.binary(max_size=12).map(lambda data: data.replace(b"\r", b"?").replace(b"\n", b"!"))


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A stream with one kind of line end each event, and the data it holds."""
    stream, events = b"", list[bytes]()
    for lines in draw(st.lists(st.lists(payloads, min_size=1, max_size=3), max_size=5)):
        end = draw(line_ends)
        if draw(st.booleans()):
            stream += b": a comment" + end
        stream += b"".join(b"data: " + line + end for line in lines) + end
        events.append(b"\n".join(lines))
    return stream, events


@given(streams(), st.lists(st.integers(min_value=0, max_value=200), max_size=8))
@example((b"data: a\r\n\r\n", [b"a"]), [8])
def test_parser_gives_the_same_events_for_any_slicing(made: tuple[bytes, list[bytes]], cuts: list[int]) -> None:
    stream, events = made
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    assert parse(*(stream[a:b] for a, b in pairwise(places))) == events


def test_parser_takes_a_line_of_any_length_in_small_pieces() -> None:
    long = b"x" * 1_000_000
    stream = b"data: " + long + b"\n\n"
    assert parse(*(stream[at : at + 1_000] for at in range(0, len(stream), 1_000))) == [long]


def test_parser_bounds_an_event_that_never_ends_and_not_a_long_stream() -> None:
    parser = SseParser(limit_bytes=100)
    for _ in range(50):
        parser.feed(b"data: something\n\n")
    parser.feed(b"data: " + b"x" * 60)
    with pytest.raises(ProtocolBroken):
        parser.feed(b"x" * 60)

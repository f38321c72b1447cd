"""What a tool says is decoded, redacted, shown live and cut, and nothing of that depends on how it came in pieces."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from palaver.tools.base import Stream
from palaver.tools.output import INLINE_BYTES, LIVE_BYTES, SIDE_BYTES, SPILL_BYTES, Collector, Said, join_sides
from tests.unit.tools.workshop import Workshop

pytestmark = pytest.mark.anyio


async def collect(workshop: Workshop, *pieces: bytes, stream: Stream = "stdout") -> Said:
    collector = Collector(workshop.place)
    for piece in pieces:
        await collector.feed(piece, stream)
    return await collector.finish()


async def test_short_output_stays_whole(workshop: Workshop) -> None:
    said = await collect(workshop, b"one\ntwo\n", b"three")
    assert said == Said("one\ntwo\nthree", total_bytes=13, total_lines=3)
    assert workshop.blobs == []


async def test_pieces_are_shown_as_they_come_with_their_stream(workshop: Workshop) -> None:
    collector = Collector(workshop.place)
    await collector.feed(b"out\n", "stdout")
    await collector.feed(b"err ", "stderr")
    assert workshop.said == [("out\n", "stdout"), ("err ", "stderr")]
    # A word that is not over may be the beginning of a secret.
    await collector.feed(b"wor", "stdout")
    assert len(workshop.said) == 2
    await collector.feed(b"d\n", "stdout")
    assert workshop.said[2:] == [("word\n", "stdout")]
    assert (await collector.finish()).text == "out\nerr word\n"


async def test_output_of_exactly_the_limit_is_not_cut(workshop: Workshop) -> None:
    said = await collect(workshop, b"x" * INLINE_BYTES)
    assert (said.truncated, said.text) == (False, "x" * INLINE_BYTES)


async def test_long_output_keeps_head_and_tail_and_spills_the_whole(workshop: Workshop) -> None:
    whole = b"".join(b"line %d\n" % number for number in range(20_000))
    said = await collect(workshop, whole)
    head, mark, tail = said.text.partition("\n[… ")
    assert mark
    assert whole.startswith(head.encode())
    left_out, _, tail = tail.partition(" …]\n")
    assert whole.endswith(tail.encode())
    lines, size = 20_000 - head.count("\n") - tail.count("\n"), len(whole) - len(head) - len(tail)
    assert left_out == f"{lines:,} lines, {size:,} bytes left out"
    assert (said.truncated, said.total_bytes, said.total_lines) == (True, len(whole), 20_000)
    assert said.blob is not None
    assert (workshop.blobs, said.blob.size) == ([whole], len(whole))


async def test_endless_output_is_bounded_everywhere(workshop: Workshop) -> None:
    collector = Collector(workshop.place)
    chunk = b"y" * 63 + b"\n"
    for _ in range(12):
        await collector.feed(chunk * 16_384)
    await collector.feed(b"the end")
    said = await collector.finish()
    assert said.text.endswith("the end")
    assert len(said.text.encode()) <= INLINE_BYTES
    assert len(workshop.blobs[0]) == SPILL_BYTES
    assert said.total_bytes == 12 * 2**20 + 7
    live = "".join(text for text, _ in workshop.said)
    assert len(live) < LIVE_BYTES + 2**20 + 200
    assert live.endswith("[… live output ends here; the result will show the end …]\n")


async def test_character_cut_in_two_is_put_together(workshop: Workshop) -> None:
    euro = "€".encode()
    said = await collect(workshop, b"1 " + euro[:1], euro[1:2], euro[2:] + b"!")
    assert said.text == "1 €!"


async def test_bytes_that_are_no_text_are_replaced(workshop: Workshop) -> None:
    said = await collect(workshop, b"a\xff\xfeb", b"\xe2\x82")
    assert said.text == "a\ufffd\ufffdb\ufffd"


async def test_terminal_escapes_are_kept(workshop: Workshop) -> None:
    assert (await collect(workshop, b"\x1b[31mred\x1b[0m")).text == "\x1b[31mred\x1b[0m"


async def test_secret_is_struck_live_and_in_the_result_across_pieces(workshop: Workshop) -> None:
    said = await collect(workshop, b"token: correct-ho", b"rse-battery\n")
    assert said.text == "token: [redacted SERVICE_TOKEN]\n"
    assert "".join(text for text, _ in workshop.said) == said.text


async def test_secret_across_the_cut_is_struck_from_result_and_blob(workshop: Workshop) -> None:
    secret = workshop.environment["SERVICE_TOKEN"].encode()
    said = await collect(workshop, b"x" * (SIDE_BYTES - 10) + secret + b"y" * INLINE_BYTES + secret)
    assert b"horse" not in workshop.blobs[0]
    assert not any(piece in said.text for piece in ("correct", "horse", "battery"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    head=st.text(max_size=40),
    filler=st.sampled_from(["x", "é", "€", "🎉", "line\n"]),
    size=st.integers(0, 3 * INLINE_BYTES),
    tail=st.text(max_size=40),
    cuts=st.lists(st.floats(0, 1), max_size=6),
)
@example(head="", filler="🎉", size=INLINE_BYTES // 4, tail="a", cuts=[])
async def test_cut_keeps_both_ends_and_counts_exactly(
    workshop: Workshop, head: str, filler: str, size: int, tail: str, cuts: list[float]
) -> None:
    text = head + filler * (size // len(filler.encode())) + tail
    data = text.encode(errors="replace")
    places = [0, *sorted(round(cut * len(data)) for cut in cuts), len(data)]
    said = await collect(workshop, *(data[a:b] for a, b in pairwise(places)))
    assert len(said.text.encode()) <= INLINE_BYTES
    assert said.total_bytes == len(data)
    assert said.truncated == (len(data) > INLINE_BYTES)
    if not said.truncated:
        assert said.text.encode() == data
        return
    first, _, rest = said.text.partition("\n[… ")
    numbers, _, last = rest.partition(" …]\n")
    assert data.startswith(first.encode())
    assert data.endswith(last.encode())
    lines, left_out = (int(word.replace(",", "")) for word in numbers.split() if word[0].isdigit())
    assert left_out + len(first.encode()) + len(last.encode()) == len(data)
    assert lines + first.count("\n") + last.count("\n") == said.total_lines


def test_sides_are_cut_at_whole_characters() -> None:
    whole = "€" * INLINE_BYTES
    text = join_sides(whole.encode(), whole.encode(), len(whole.encode()), 1)
    assert set(text.split("\n")[0]) == set(text.split("\n")[2]) == {"€"}

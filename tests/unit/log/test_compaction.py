"""A compacted log is the same log in fewer bytes."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.core.fold.evolve import fold
from palaver.errors import LogCorrupt
from palaver.log.base import GENESIS, lines_of, number_lines, tombstone_of
from palaver.log.compaction import SEGMENT_BYTES, compact
from palaver.log.segments import SPAN, Stored, in_commit_order, open_segment
from palaver.schema.content import TextPart
from palaver.schema.events import (
    AnswerStarted,
    Delta,
    Event,
    KnownEvent,
    LogCompacted,
    MessageAdded,
    MessageEdited,
    MessageRemoved,
    RequestOpened,
    RequestResolved,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
    TurnInterrupted,
    TurnStatus,
    decode_event,
)
from palaver.schema.view import State
from tests.unit.log.logs import cut_at, events_of, numbered_lines, well_behaved_logs, wild_logs

cuts = st.sets(st.integers(1, 60), max_size=12)
strides = st.lists(st.integers(0, 5), max_size=3)


def compacted(segments: Sequence[Stored], through: int | None = None) -> list[Stored]:
    return list(compact(segments, GENESIS, segments[-1].last if through is None else through).segments)


def events(segments: Sequence[Stored]) -> list[Event]:
    return events_of([stored.segment() for stored in segments])


def block_of(event: Event) -> tuple[str, ...] | None:
    """What a fragment is a part of, and what a finish makes whole."""
    match event:
        case TextDelta() | TextFinished():
            return ("text", event.message, str(event.block))
        case ThinkingDelta() | ThinkingFinished():
            return ("thinking", event.message, str(event.block))
        case ToolInputDelta() | ToolCalled():
            return ("input", event.call)
        case ToolOutputDelta() | ToolFinished():
            return ("output", event.call)
        case _:
            return None


@settings(deadline=None, max_examples=400)
@given(wild_logs, cuts, strides)
def test_fold_of_any_compacted_log_equals_that_of_the_full_one(
    log: list[KnownEvent], at: set[int], gaps: list[int]
) -> None:
    segments = cut_at(numbered_lines(log), at, gaps)
    assert fold(State(), events(compacted(segments))) == fold(State(), events(segments))


@settings(deadline=None, max_examples=150)
@given(wild_logs, cuts, st.data())
def test_fold_equals_when_a_log_is_compacted_again_and_again_while_it_grows(
    log: list[KnownEvent], at: set[int], data: st.DataObject
) -> None:
    segments = cut_at(numbered_lines(log), at)
    full = fold(State(), events(segments))
    settled, kept = 0, segments
    for through in [*sorted(data.draw(st.sets(st.integers(1, len(log)), max_size=3))), len(log)]:
        begin = next((place for place, stored in enumerate(kept) if stored.last > settled), len(kept))
        before = kept[begin - 1].chain if begin else GENESIS
        result = compact(kept[begin:], before, through)
        kept, settled = [*kept[:begin], *result.segments], result.settled
        assert fold(State(), events(kept)) == full


def begun(message: str) -> KnownEvent:
    return AnswerStarted(message=message)


def fragment(message: str, call: str = "c") -> KnownEvent:
    return ToolInputDelta(message=message, block=0, call=call, name="read", text="{")


def called(message: str) -> KnownEvent:
    return ToolCalled(message=message, block=0, call="c", name="read")


STRANGE: dict[str, list[KnownEvent]] = {
    "a call starts while its input streams": [
        begun("m"), fragment("m"), ToolStarted(call="c", grant="rule"), called("m"),
    ],
    "a request is opened while the input streams": [
        begun("m"), fragment("m"), RequestOpened(request="r", kind="approval", call="c"), called("m"),
    ],
    "a request is resolved while another message streams the same call": [
        begun("m"), begun("n"), called("m"), RequestOpened(request="r", kind="approval", call="c"), fragment("n"),
        RequestResolved(request="r", status="answered"), called("n"),
    ],
    "an attempt is replaced while an input streams": [
        begun("m"), fragment("m"), AnswerStarted(message="n", replaces="m"), called("m"),
    ],
    "an attempt is replaced while a call has output": [
        begun("m"), called("m"), ToolOutputDelta(call="c", text="x"), AnswerStarted(message="n", replaces="m"),
        ToolFinished(call="c", ok=True),
    ],
    "a message id is used again": [
        begun("m"), TextDelta(message="m", block=0, text="x"), begun("m"), TextFinished(message="m", block=0, text="y"),
    ],
    "a fragment reaches an older message of the same id": [
        begun("m"), begun("m"), TextFinished(message="m", block=0, text="x"), MessageRemoved(message="m", index=1),
        TextDelta(message="m", block=0, text="y"),
    ],
    "output reaches an older block of the same call": [
        begun("m"), called("m"), begun("n"), called("n"), ToolFinished(call="c", ok=True),
        MessageRemoved(message="n", index=1), ToolOutputDelta(call="c", text="x"),
    ],
    "output is for a block that a newer one of the same call hides": [
        begun("m"), called("m"), ToolOutputDelta(call="c", text="x"), begun("n"), called("n"),
        ToolFinished(call="c", ok=True),
    ],
    "a fragment comes for a block that an edit took away": [
        begun("m"), TextFinished(message="m", block=1, text="x"),
        MessageEdited(message="m", content=(TextPart(text="y"),)), TextDelta(message="m", block=1, text="z"),
    ],
    "a fragment of its input comes while a call has output": [
        begun("m"), called("m"), ToolOutputDelta(call="c", text="x"), fragment("m"), ToolFinished(call="c", ok=True),
    ],
    "a result comes before the call": [
        begun("m"), ToolFinished(call="c", ok=True), called("m"), ToolOutputDelta(call="c", text="x"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGE)
def test_fold_of_a_compacted_log_stays_the_same_when(name: str) -> None:
    segments = cut_at(numbered_lines(STRANGE[name]), set())
    once = compacted(segments)
    assert fold(State(), events(once)) == fold(State(), events(segments))
    assert compacted(once) == once


@settings(deadline=None, max_examples=150)
@given(well_behaved_logs, cuts)
def test_fold_of_every_prefix_at_which_no_dropped_block_is_open_equals_the_full_one(
    log: list[KnownEvent], at: set[int]
) -> None:
    segments = cut_at(numbered_lines(log), at)
    full, short = events(segments), events(compacted(segments))
    finishes = {block_of(event): event.seq for event in full if not isinstance(event, Delta)}
    fragments = [event for event in full if isinstance(event, Delta)]
    for kept in range(1, len(short) + 1):
        seq = short[kept - 1].seq
        if all(not fragment.seq <= seq < finishes[block_of(fragment)] for fragment in fragments):
            assert fold(State(), short[:kept]) == fold(State(), full[:seq])


@settings(deadline=None, max_examples=150)
@given(well_behaved_logs, cuts, strides)
def test_compaction_of_a_well_behaved_log_leaves_at_most_the_first_words_of_a_text(
    log: list[KnownEvent], at: set[int], gaps: list[int]
) -> None:
    kept = [event for event in events(compacted(cut_at(numbered_lines(log), at, gaps))) if isinstance(event, Delta)]
    assert all(isinstance(event, TextDelta | ThinkingDelta) for event in kept)
    assert len({block_of(event) for event in kept}) == len(kept)


@settings(deadline=None, max_examples=150)
@given(well_behaved_logs, cuts)
def test_compaction_keeps_the_order_in_which_texts_and_calls_begin(log: list[KnownEvent], at: set[int]) -> None:
    segments = cut_at(numbered_lines(log), at)
    assert beginnings(events(compacted(segments))) == beginnings(events(segments))


def beginnings(log: Sequence[Event]) -> list[tuple[str, ...] | None]:
    """Texts, thoughts and calls in the order in which a reader of the log first hears of them."""
    heard = TextDelta | ThinkingDelta | TextFinished | ThinkingFinished
    return list(
        dict.fromkeys(
            block_of(event)
            for event in log
            if isinstance(event, ToolCalled) or (isinstance(event, heard) and event.text)
        )
    )


BESIDE: dict[str, list[KnownEvent]] = {
    "a call": [ToolCalled(message="m", block=1, call="c", name="read")],
    "a request": [RequestOpened(request="r", kind="question")],
    "a message": [MessageAdded(message="n", content=(TextPart(text="And another thing"),))],
    "a thought": [ThinkingDelta(message="m", block=1, text="x"), ThinkingFinished(message="m", block=1, text="x")],
    "a thought that comes whole": [ThinkingFinished(message="m", block=1, text="x")],
}


def text_around(between: Sequence[KnownEvent]) -> list[KnownEvent]:
    return [
        AnswerStarted(message="m"),
        *(TextDelta(message="m", block=0, text=text) for text in ("", "I ", "begin ")),
        *between,
        TextDelta(message="m", block=0, text="to"),
        TextFinished(message="m", block=0, text="I begin to", interrupted=True),
    ]


@pytest.mark.parametrize("name", BESIDE)
def test_the_first_words_of_a_text_stay_when_something_began_before_its_end(name: str) -> None:
    result = compact(cut_at(numbered_lines(text_around(BESIDE[name])), set()), GENESIS, 99)
    kept = [event for event in events(result.segments) if isinstance(event, TextDelta)]
    assert [(event.seq, event.text) for event in kept] == [(3, "I ")]
    assert result.settled == 99


def test_no_words_of_a_text_stay_when_nothing_began_before_its_end() -> None:
    between: list[KnownEvent] = [
        TurnStatus(status="working"),
        ToolOutputDelta(call="c", text="x"),
        ToolFinished(call="c", ok=True),
    ]
    kept = events(compacted(cut_at(numbered_lines(text_around(between)), set())))
    assert not any(isinstance(event, Delta) for event in kept)


def test_what_an_ended_turn_left_open_keeps_no_later_words() -> None:
    open_text = TextDelta(message="l", block=0, text="never finished")
    log = [AnswerStarted(message="l"), open_text, TurnInterrupted(turn="t", reason="user"), *text_around([])]
    kept = events(compacted(cut_at(numbered_lines(log), set())))
    assert [event.seq for event in kept if isinstance(event, Delta)] == [2]


@settings(deadline=None, max_examples=150)
@given(wild_logs, cuts, strides)
def test_compacting_twice_changes_nothing(log: list[KnownEvent], at: set[int], gaps: list[int]) -> None:
    once = compacted(cut_at(numbered_lines(log), at, gaps))
    again = compact(once, GENESIS, len(log))
    assert list(again.segments) == once
    assert again.dropped == 0


@settings(deadline=None, max_examples=150)
@given(wild_logs, cuts, strides)
def test_compacted_segments_prove_themselves_and_cover_every_seq(
    log: list[KnownEvent], at: set[int], gaps: list[int]
) -> None:
    full = cut_at(numbered_lines(log), at, gaps)
    chain, following = GENESIS, 1
    for stored in compacted(full):
        assert stored.first == following
        for line in number_lines(stored.segment()):
            assert line.first == following
            following = line.seq + 1
        open_segment(stored, chain)
        chain = stored.chain
    assert following == len(log) + 1
    assert chain == full[-1].chain


@settings(deadline=None, max_examples=150)
@given(wild_logs, cuts, strides, st.integers(0, 80))
def test_positions_of_kept_events_survive_compaction(
    log: list[KnownEvent], at: set[int], gaps: list[int], after: int
) -> None:
    full = cut_at(numbered_lines(log), at, gaps)

    def positions(segments: Sequence[Stored]) -> dict[int, int]:
        pieces = in_commit_order([("c", stored) for stored in segments], after, 1 << 30)
        return {
            decode_event(body).seq: piece.pos + decode_event(body).seq - piece.first
            for _, piece in pieces
            for body in lines_of(piece)
        }

    before, now = positions(full), positions(compacted(full))
    assert list(now.values()) == sorted(now.values())
    assert all(pos > after for pos in now.values())
    assert now.items() <= before.items()


@settings(deadline=None, max_examples=100)
@given(wild_logs, st.binary(min_size=1, max_size=30), st.integers(0, 40), cuts)
def test_lines_that_stay_are_kept_byte_for_byte_and_strangers_always_stay(
    log: list[KnownEvent], strange: bytes, place: int, at: set[int]
) -> None:
    stranger = strange.replace(b"\n", b" ")
    lines = numbered_lines(log)
    lines.insert(min(place, len(lines)), stranger)
    short = [line for stored in compacted(cut_at(lines, at)) for line in lines_of(stored.segment())]
    kept = [line for line in short if tombstone_of(line) is None]
    remaining = iter(lines)
    assert all(line in remaining for line in kept)
    assert stranger in kept


def test_a_run_of_fragments_becomes_one_line_that_carries_the_chain() -> None:
    lines = numbered_lines(
        [
            AnswerStarted(message="m"),
            *(TextDelta(message="m", block=0, text="x") for _ in range(5)),
            TextFinished(message="m", block=0, text="xxxxx"),
        ]
    )
    full = cut_at(lines, {1, 2, 3, 4, 5, 6})
    (stored,) = compacted(full)
    stone = decode_event(lines_of(stored.segment())[1])
    assert stone == LogCompacted(
        seq=6, id="e6", ts=decode_event(lines[5]).ts, conversation="c", first=2, chain=full[5].chain.hex()
    )
    assert lines_of(stored.segment())[::2] == [lines[0], lines[6]]


def test_fragments_beyond_the_given_seq_stay() -> None:
    lines = numbered_lines(
        [
            AnswerStarted(message="m"),
            TextDelta(message="m", block=0, text="x"),
            TextFinished(message="m", block=0, text="x"),
            TextDelta(message="m", block=1, text="y"),
            TextFinished(message="m", block=1, text="y"),
        ]
    )
    kept = events(compacted(cut_at(lines, {2, 4}), through=4))
    assert [event.seq for event in kept if isinstance(event, Delta)] == [4]


def test_a_finish_that_this_release_cannot_read_drops_nothing() -> None:
    lines = numbered_lines([AnswerStarted(message="m"), TextDelta(message="m", block=0, text="x")])
    lines.append(b'{"type":"text.finished","seq":3,"message":"m","block":0,"text":7}')
    assert compact(cut_at(lines, set()), GENESIS, 3).dropped == 0


def test_what_an_ended_turn_left_open_does_not_hold_up_the_next_compaction() -> None:
    lines = numbered_lines(
        [
            AnswerStarted(message="m", turn="t"),
            ToolInputDelta(message="m", block=0, call="c", name="read", text="{"),
            ToolFinished(call="c", ok=False),
            TextDelta(message="m", block=1, text="never finished"),
            TurnInterrupted(turn="t", reason="user"),
            AnswerStarted(message="n", turn="u"),
            TextDelta(message="n", block=0, text="open"),
            TurnStatus(status="working"),
        ]
    )
    assert compact(cut_at(lines, set()), GENESIS, 8).settled == 6


def test_small_segments_are_merged_up_to_what_one_read_returns() -> None:
    lines = numbered_lines([TurnStatus(status="working", detail="x" * 1000) for _ in range(1000)])
    merged = compacted(cut_at(lines, set(range(1, 1000))))
    sizes = [len(stored.body) for stored in merged]
    assert len(merged) == -(-sum(len(line) + 1 for line in lines) // SEGMENT_BYTES)
    assert max(sizes) <= SEGMENT_BYTES
    assert not any(stored.compacted for stored in merged)


def test_a_merged_segment_spans_no_more_positions_than_a_reader_looks_back() -> None:
    lines = numbered_lines([TurnStatus(status="working") for _ in range(50)])
    merged = compacted(cut_at(lines, set(range(1, 50)), [SPAN // 10]))
    assert len(merged) > 1
    assert all(stored.last_pos - stored.pos < SPAN for stored in merged)


def test_a_damaged_segment_is_not_compacted() -> None:
    lines = numbered_lines([AnswerStarted(message="m"), TextDelta(message="m", block=0, text="x")])
    (stored,) = cut_at(lines, set())
    damaged = Stored(1, 2, 1, 2, stored.body.replace(b'"x"', b'"y"'), stored.chain)
    with pytest.raises(LogCorrupt):
        compact([damaged], GENESIS, 2)


def test_a_changed_byte_in_a_line_that_stands_for_others_is_noticed() -> None:
    lines = numbered_lines(
        [begun("m"), TextDelta(message="m", block=0, text="x"), TextFinished(message="m", block=0, text="x")]
    )
    (stored,) = compacted(cut_at(lines, set()))
    for place in range(len(stored.body)):
        body = bytes([*stored.body[:place], stored.body[place] ^ 1, *stored.body[place + 1 :]])
        with pytest.raises(LogCorrupt):
            open_segment(replace(stored, body=body), GENESIS)

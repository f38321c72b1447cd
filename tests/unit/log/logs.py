"""Logs made by chance: well-behaved ones as a backend writes them, and wild ones in which anything follows anything."""

from collections.abc import Sequence

from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.log.base import GENESIS, Segment, chain_hash_through
from palaver.log.segments import Stored
from palaver.schema.content import TextPart
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    CitationAdded,
    Event,
    KnownEvent,
    MessageAdded,
    MessageEdited,
    MessageRemoved,
    MessageTruncated,
    QueueAdded,
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
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
    TurnStatus,
    decode_event,
    encode_event,
)
from palaver.schema.view import ToolBlock, Trigger

FIRST_MS = 1_760_000_000_000

# Few ids, so that events meet.
_messages = st.sampled_from(["m0", "m1"])
_blocks = st.integers(0, 1)
_calls = st.sampled_from(["c0", "c1"])
_requests = st.just("r0")
_turns = st.just("t0")
_texts = st.sampled_from(["a", "bc", "ü\n", ""])
_content = st.tuples(st.builds(TextPart, text=_texts))

_Kind = st.SearchStrategy[KnownEvent]

_text_deltas: _Kind = st.builds(TextDelta, message=_messages, block=_blocks, text=_texts)
_thinking_deltas: _Kind = st.builds(ThinkingDelta, message=_messages, block=_blocks, text=_texts)
_input_deltas: _Kind = st.builds(
    ToolInputDelta, message=_messages, block=_blocks, call=_calls, name=st.just("read"), text=_texts
)
_output_deltas: _Kind = st.builds(ToolOutputDelta, call=_calls, text=_texts)
_texts_finished: _Kind = st.builds(
    TextFinished, message=_messages, block=_blocks, text=_texts, interrupted=st.booleans()
)
_thinking_finished: _Kind = st.builds(ThinkingFinished, message=_messages, block=_blocks, text=_texts)
_tools_called: _Kind = st.builds(ToolCalled, message=_messages, block=_blocks, call=_calls, name=st.just("read"))
_tools_finished: _Kind = st.builds(ToolFinished, call=_calls, ok=st.booleans(), output=_texts)

_families: list[list[_Kind]] = [
    [_text_deltas, _texts_finished],
    [_thinking_deltas, _thinking_finished],
    [_input_deltas, _tools_called],
    [_tools_called, _output_deltas, _tools_finished],
    [_input_deltas, _tools_called, _output_deltas, _tools_finished],
]
"""What belongs together: fragments and what makes them redundant."""

_disturbances: list[_Kind] = [
    st.builds(ToolStarted, call=_calls, grant=st.just("rule")),
    st.builds(CitationAdded, message=_messages, block=_blocks, citation=st.just({"url": "u"})),
    st.builds(AnswerStarted, message=_messages, turn=_turns),
    st.builds(AnswerStarted, message=st.just("m2"), turn=_turns, replaces=_messages),
    st.builds(AnswerFinished, message=_messages, finish_reason=st.just("stop")),
    st.builds(MessageAdded, message=_messages, content=_content),
    st.builds(
        MessageAdded,
        message=st.just("m3"),
        blocks=st.tuples(
            st.builds(ToolBlock, index=st.just(0), call=_calls, name=st.just("read"), status=st.just("called"))
        ),
    ),
    st.builds(MessageEdited, message=_messages, content=_content),
    st.builds(MessageRemoved, message=_messages, index=st.integers(0, 2)),
    st.builds(MessageTruncated, index=st.integers(0, 3)),
    st.builds(RequestOpened, request=_requests, kind=st.just("approval"), call=_calls),
    st.builds(RequestResolved, request=_requests, status=st.just("answered"), verdict=st.just("allow")),
    st.builds(
        TurnStarted, turn=_turns, agent=st.just("default"), backend=st.just("scripted"), trigger=st.just(Trigger())
    ),
    st.builds(TurnFinished, turn=_turns, outcome=st.just("completed")),
    st.builds(TurnInterrupted, turn=_turns, reason=st.just("user")),
]


@st.composite
def wild(draw: st.DrawFn) -> list[KnownEvent]:
    """Anything after anything, but of few kinds at a time, so that those few meet in every order."""
    families = draw(st.lists(st.sampled_from(_families), min_size=1, max_size=2))
    disturbances = draw(st.lists(st.sampled_from(_disturbances), min_size=1, max_size=2))
    kinds = [kind for family in families for kind in family] + disturbances
    begun: list[KnownEvent] = [AnswerStarted(message="m0"), AnswerStarted(message="m1")]
    return [*begun, *draw(st.lists(st.one_of(kinds), min_size=1, max_size=25))]


wild_logs = wild()
"""Ids used twice, fragments before their message, results without a call."""


@st.composite
def turns(draw: st.DrawFn) -> list[KnownEvent]:
    """Turns as a backend streams them: blocks and calls interleaved, each finished, in between what others do."""
    log: list[KnownEvent] = []
    for turn in (f"t{number}" for number in range(draw(st.integers(1, 2)))):
        log.append(MessageAdded(turn=turn, message=f"{turn}-user", content=(TextPart(text="go"),)))
        log.append(TurnStarted(turn=turn, agent="default", backend="scripted", trigger=Trigger()))
        for step in range(draw(st.integers(1, 2))):
            message = f"{turn}-{step}"
            log.append(AnswerStarted(turn=turn, message=message))
            streams = [_block(draw, message, index) for index in range(draw(st.integers(1, 3)))]
            log.extend(_interleaved(draw, streams))
            log.append(AnswerFinished(turn=turn, message=message, finish_reason="stop"))
            calls = [event.call for event in log if isinstance(event, ToolCalled) and event.message == message]
            log.extend(_interleaved(draw, [_run(draw, call) for call in calls]))
        log.append(TurnFinished(turn=turn, outcome="completed"))
    return log


def _block(draw: st.DrawFn, message: str, index: int) -> list[KnownEvent]:
    kind = draw(st.sampled_from(["text", "thinking", "tool"]))
    parts = [draw(_texts) for _ in range(draw(st.integers(0, 4)))]
    call, whole = f"{message}-{index}", "".join(parts)
    if kind == "text":
        fragments: list[KnownEvent] = [TextDelta(message=message, block=index, text=part) for part in parts]
        return [*fragments, TextFinished(message=message, block=index, text=whole)]
    if kind == "thinking":
        thoughts: list[KnownEvent] = [ThinkingDelta(message=message, block=index, text=part) for part in parts]
        return [*thoughts, ThinkingFinished(message=message, block=index, text=whole)]
    inputs: list[KnownEvent] = [
        ToolInputDelta(message=message, block=index, call=call, name="read", text=part) for part in parts
    ]
    return [*inputs, ToolCalled(message=message, block=index, call=call, name="read", input={"path": whole})]


def _run(draw: st.DrawFn, call: str) -> list[KnownEvent]:
    parts = [draw(_texts) for _ in range(draw(st.integers(0, 4)))]
    return [
        ToolStarted(call=call, grant="rule"),
        *(ToolOutputDelta(call=call, text=part) for part in parts),
        ToolFinished(call=call, ok=True, output="".join(parts)),
    ]


def _interleaved(draw: st.DrawFn, streams: Sequence[list[KnownEvent]]) -> list[KnownEvent]:
    waiting = [list(stream) for stream in streams if stream]
    mixed: list[KnownEvent] = []
    while waiting:
        stream = waiting[draw(st.integers(0, len(waiting) - 1))]
        mixed.append(stream.pop(0))
        waiting = [stream for stream in waiting if stream]
        if draw(st.integers(0, 9)) == 0:
            others: list[KnownEvent] = [TurnStatus(status="working"), QueueAdded(item="q", content=())]
            mixed.append(draw(st.sampled_from(others)))
    return mixed


well_behaved_logs = turns()


def numbered_lines(events: Sequence[KnownEvent], conversation: str = "c") -> list[bytes]:
    return [
        encode_event(replace(event, seq=seq, id=f"e{seq}", ts=FIRST_MS + seq, conversation=conversation))
        for seq, event in enumerate(events, 1)
    ]


def cut_at(lines: Sequence[bytes], cuts: set[int], strides: Sequence[int] = ()) -> list[Stored]:
    """Segments that end at the given seqs and at the end; `strides` are positions taken by others in between."""
    segments: list[Stored] = []
    chain, first, pos = GENESIS, 1, 1
    for last in sorted({cut for cut in cuts if 0 < cut < len(lines)} | {len(lines)}):
        part = lines[first - 1 : last]
        chain = chain_hash_through(chain, part)
        body = b"".join(line + b"\n" for line in part)
        segments.append(Stored(first, last, pos, pos + len(part) - 1, body, chain))
        stride = strides[len(segments) % len(strides)] if strides else 0
        first, pos = last + 1, pos + len(part) + stride
    return segments


def events_of(segments: Sequence[Segment]) -> list[Event]:
    return [decode_event(line) for segment in segments for line in segment.body.splitlines()]

"""The projection over every golden log: live from any place is the rest of the replay, and what the contract says of order."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from palaver.core.fold.evolve import evolve
from palaver.faces.socket.memory import Memory, cut_outputs, memory_of
from palaver.faces.socket.projection import encode_event, project
from palaver.faces.socket.sequence import sequence_of
from palaver.schema.base import Origin
from palaver.schema.content import as_content
from palaver.schema.errors import WireError
from palaver.schema.events import (
    AnswerStarted,
    ConversationCreated,
    Event,
    KnownEvent,
    LogCompacted,
    MessageAdded,
    TextDelta,
    TextFinished,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolOutputDelta,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
    UnknownEvent,
    decode_event,
)
from palaver.schema.view import State, Stopped, TextBlock, ThinkingBlock, ToolBlock, ToolError, Trigger
from tests.golden.compaction import compacted

GOLDEN = Path(__file__).parents[3] / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.jsonl"))

Frame = dict[str, Any]


def events_of(name: str) -> list[Event]:
    return [decode_event(line) for line in (GOLDEN / f"{name}.jsonl").read_bytes().splitlines()]


def start_of(name: str) -> State:
    """Where a log begins: at nothing, or at the view before its first line."""
    first = events_of(name)[0]
    states = msgspec.json.decode((GOLDEN / f"{name}.states.json").read_bytes())
    known = states.get(str((1 if isinstance(first, LogCompacted) else first.seq) - 1))
    return State() if known is None else msgspec.convert(known, State)


def frames_of(events: list[Event], memory: Memory) -> list[Frame]:
    return [frame for event in events if not isinstance(event, UnknownEvent) for frame in project(event, memory)]


def memory_at(state: State, before: list[Event]) -> Memory:
    """As the server makes it: what the view has cut off is counted in the log."""
    streamed = Counter[str]()
    for event in before:
        if isinstance(event, ToolOutputDelta):
            streamed[event.call] += len(event.text)
    return memory_of(state, {call: streamed[call] for call in cut_outputs(state)})


@pytest.mark.parametrize("name", NAMES)
def test_live_from_any_place_is_the_rest_of_the_replay(name: str) -> None:
    events, state = events_of(name), start_of(name)
    whole = frames_of(events, memory_of(state))
    for place, event in enumerate(events):
        rest = [frame for frame in whole if frame["sequence"] > sequence_of(event.seq - 1)]
        assert frames_of(events[place:], memory_at(state, events[:place])) == rest, f"{name} from {event.seq}"
        state = evolve(state, event)


@pytest.mark.parametrize("name", NAMES)
def test_replay_of_the_compacted_log_shows_the_same_words(name: str) -> None:
    events, start = events_of(name), start_of(name)
    whole = frames_of(events, memory_of(start))
    short = frames_of(compacted(events), memory_of(start))
    blocks = ("text_block_done", "thinking_done", "tool_call_start", "tool_result")
    ends = (*blocks, "text_done", "user_message", "output_cancelled")
    assert [frame for frame in short if frame["type"] in ends] == [frame for frame in whole if frame["type"] in ends]


@pytest.mark.parametrize("name", NAMES)
def test_every_call_has_one_start_before_its_one_result(name: str) -> None:
    frames = frames_of(events_of(name), memory_of(start_of(name)))
    # Calls that were open before the log's first line have their start elsewhere.
    still_open = Counter(list(memory_of(start_of(name)).calls))
    for frame in frames:
        if frame["type"] == "tool_call_start":
            still_open[frame["callId"]] += 1
        elif frame["type"] == "tool_result":
            still_open[frame["callId"]] -= 1
        # An id may be used again, once its call has its result.
        assert set(still_open.values()) <= {0, 1}


@pytest.mark.parametrize("name", NAMES)
def test_every_frame_says_whose_it_is_and_where_it_stands(name: str) -> None:
    for events in (events_of(name), compacted(events_of(name))):
        frames = frames_of(events, memory_of(start_of(name)))
        numbers = [frame["sequence"] for frame in frames]
        assert all(frame["sessionId"] and frame["sequence"] > 0 and frame["id"] for frame in frames)
        assert all(frame["timestamp"].endswith("Z") for frame in frames)
        assert all(later > earlier for earlier, later in pairwise(numbers))
        assert len({frame["id"] for frame in frames}) == len(frames)


@pytest.mark.parametrize("name", NAMES)
def test_every_run_ends_once_with_all_that_it_said(name: str) -> None:
    memory, ends = memory_of(start_of(name)), Counter[tuple[str, str]]()
    for event in events_of(name):
        frames = frames_of([event], memory)
        for frame in frames:
            if frame["type"] in ("text_done", "output_cancelled") and isinstance(event, TurnFinished | TurnInterrupted):
                ends[frame["type"], event.turn or ""] += 1
        if isinstance(event, TurnFinished) and frames:
            assert frames[-1]["type"] == "text_done"
        if isinstance(event, TurnInterrupted) and frames:
            assert frames[-1]["type"] == "output_cancelled"
    assert set(ends.values()) <= {1}


def test_interrupted_turn_of_an_older_log_is_told_in_the_promised_order() -> None:
    frames = frames_of(events_of("interrupted"), Memory())
    ends = ("text_block_done", "text_done", "tool_result", "interaction_resolved", "output_cancelled")
    first = [frame for frame in frames if frame["type"] in ends and frame["sequence"] <= sequence_of(23)]
    assert [frame["type"] for frame in first] == [
        "text_block_done",
        *["tool_result"] * 4,
        "interaction_resolved",
        "text_done",
        "output_cancelled",
    ]
    assert first[0]["interrupted"] is True
    assert {frame["error"]["code"] for frame in first[1:5]} == {"tool_interrupted"}
    assert (first[-2]["text"], first[-2]["interrupted"]) == (first[0]["text"], True)
    assert (first[-1]["responseId"], first[-1]["audioEndMs"]) == (first[0]["responseId"], 1200)


def turn_of(*events: KnownEvent) -> list[Frame]:
    """The frames of a turn that is made of these."""
    memory = Memory()
    whole = [ConversationCreated(), TurnStarted(turn="t", agent="a", backend="b", trigger=Trigger()), *events]
    numbered = [replace(event, seq=seq, id=f"e{seq}", conversation="c", turn="t") for seq, event in enumerate(whole, 1)]
    return [frame for event in numbered for frame in project(event, memory)][1:]


def test_backend_that_delivers_whole_items_yields_start_delta_and_done() -> None:
    frames = turn_of(
        AnswerStarted(message="m"),
        ThinkingFinished(message="m", block=0, text="Hm."),
        TextFinished(message="m", block=1, text="Yes."),
        ToolCalled(message="m", block=2, call="k", name="read"),
        ToolFinished(call="k", ok=True, output="A"),
    )
    said = [(frame["type"], frame.get("delta"), frame.get("text")) for frame in frames]
    assert said == [
        ("thinking_start", None, None),
        ("thinking_delta", "Hm.", None),
        ("thinking_done", None, "Hm."),
        ("text_delta", "Yes.", None),
        ("text_block_done", None, "Yes."),
        ("tool_call_start", None, None),
        ("tool_output_delta", "A", None),
        ("tool_result", None, None),
    ]
    assert [frame["id"] for frame in frames] == ["e4.2", "e4.1", "e4", "e5.1", "e5", "e6", "e7.1", "e7"]
    places = [(4, 2), (4, 1), (4, 0), (5, 1), (5, 0), (6, 0), (7, 1), (7, 0)]
    assert [frame["sequence"] for frame in frames] == [sequence_of(event, left) for event, left in places]


def test_attempt_that_is_taken_back_is_ended_before_the_next_begins() -> None:
    frames = turn_of(
        AnswerStarted(message="m"),
        TextDelta(message="m", block=0, text="I beg"),
        ToolCalled(message="m", block=1, call="k", name="shell"),
        AnswerStarted(message="n", replaces="m"),
        TextDelta(message="m", block=0, text=" late"),
        ToolFinished(call="k", ok=True),
        TextFinished(message="n", block=0, text="I begin."),
        TurnFinished(outcome="completed"),
    )
    told = [(frame["type"], frame.get("responseId"), frame.get("block")) for frame in frames]
    assert told == [
        ("text_delta", "t", 0),
        ("tool_call_start", "t", None),
        ("text_block_done", "t", 0),
        ("tool_result", None, None),
        ("text_delta", "t", 1),
        ("text_block_done", "t", 1),
        ("text_done", "t", None),
    ]
    assert (frames[2]["text"], frames[2]["interrupted"]) == ("I beg", True)
    assert frames[3]["error"]["code"] == "tool_interrupted"
    assert (frames[-1]["text"], "interrupted" in frames[-1]) == ("I begin.", False)


def test_run_has_one_id_and_its_text_is_that_of_all_its_answers() -> None:
    frames = turn_of(
        AnswerStarted(message="m"),
        TextFinished(message="m", block=0, text="I look."),
        ToolCalled(message="m", block=1, call="k", name="read"),
        ToolFinished(call="k", ok=True),
        AnswerStarted(message="n"),
        TextFinished(message="n", block=0, text="There it is."),
        TurnFinished(outcome="completed"),
    )
    assert {frame["responseId"] for frame in frames if frame["type"] != "tool_result"} == {"t"}
    assert [frame["block"] for frame in frames if frame["type"] == "text_block_done"] == [0, 1]
    done = [frame for frame in frames if frame["type"] == "text_done"]
    assert ([frame["text"] for frame in done], frames[-1]) == (["I look.\n\nThere it is."], done[0])


def test_cancelled_run_tells_its_text_before_the_results_of_its_calls() -> None:
    gone = ToolError(code="tool_interrupted", message="Interrupted.")
    open_call = (
        AnswerStarted(message="m"),
        TextFinished(message="m", block=0, text="I look."),
        ToolCalled(message="m", block=1, call="k", name="read"),
    )
    stopped = ToolFinished(call="k", ok=False, error=gone, cancelled=True)
    frames = turn_of(
        *open_call,
        TextDelta(message="m", block=2, text="And"),
        TextFinished(message="m", block=2, text="And", interrupted=True, cancelled=True),
        stopped,
        TurnInterrupted(reason="user"),
    )
    order = ["text_block_done", "text_done", "tool_result", "output_cancelled"]
    assert [frame["type"] for frame in frames[-4:]] == order
    assert (frames[-3]["text"], frames[-3]["interrupted"]) == ("I look.\n\nAnd", True)
    assert (frames[-1]["reason"], frames[-1]["responseId"]) == ("user_cancel", "t")
    # The text was complete: it still is the text of a run that was cut short.
    frames = turn_of(*open_call, stopped, TurnInterrupted(reason="user"))
    assert [(frame["type"], frame.get("text")) for frame in frames[-3:]] == [
        ("text_done", "I look."),
        ("tool_result", None),
        ("output_cancelled", None),
    ]


def test_failed_run_tells_the_error_and_then_its_text() -> None:
    gone = ToolError(code="tool_interrupted", message="Interrupted.")
    frames = turn_of(
        AnswerStarted(message="m"),
        TextDelta(message="m", block=0, text="I be"),
        ToolCalled(message="m", block=1, call="k", name="read"),
        TextFinished(message="m", block=0, text="I be", interrupted=True),
        ToolFinished(call="k", ok=False, error=gone),
        TurnFinished(outcome="failed", error=WireError(code="exited", message="It died.")),
    )
    assert [frame["type"] for frame in frames[-4:]] == ["text_block_done", "tool_result", "error", "text_done"]
    assert (frames[-1]["text"], frames[-1]["interrupted"]) == ("I be", True)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("tool_interrupted", "tool_interrupted"),
        ("interaction_timeout", "interaction_timeout"),
        ("bad_arguments", "invalid_arguments"),
        ("invalid", "invalid_arguments"),
        ("rate_limit_tools", "rate_limit_tools"),
        ("busy", "tool_error"),
        ("no_answer", "interaction_unavailable"),
        ("tool_denied", "tool_error"),
        ("exit_code", "tool_error"),
    ],
)
def test_failed_call_has_a_code_of_the_contract_and_its_one_result(ours: str, theirs: str) -> None:
    frames = turn_of(
        AnswerStarted(message="m"),
        ToolCalled(message="m", block=0, call="k", name="shell", input={"a": 1}),
        ToolFinished(call="k", ok=False, output="half", error=ToolError(code=ours, message="No.")),
        ToolFinished(call="k", ok=True, output="late"),
    )
    (result,) = [frame for frame in frames if frame["type"] == "tool_result"]
    assert (result["ok"], result["error"], result["partialResult"]) == (
        False,
        {"code": theirs, "message": "No."},
        "half",
    )
    assert "result" not in result


def test_answer_from_elsewhere_is_told_like_one_that_is_given_now() -> None:
    blocks = (
        ThinkingBlock(index=0, text="Hm."),
        TextBlock(index=1, text="I look.", status="interrupted"),
        ToolBlock(index=2, call="k", name="read", status="ok", input={"path": "a"}, output="A"),
    )
    frames = project(MessageAdded(seq=3, id="e3", message="m", role="assistant", blocks=blocks), Memory())
    assert [frame["type"] for frame in frames] == [
        "thinking_start",
        "thinking_delta",
        "thinking_done",
        "text_delta",
        "text_block_done",
        "tool_call_start",
        "tool_output_delta",
        "tool_result",
        "text_done",
    ]
    assert (frames[4]["interrupted"], frames[5]["arguments"], frames[7]["result"]) == (True, '{"path":"a"}', "A")
    assert (frames[8]["text"], frames[8]["interrupted"]) == ("I look.", True)
    assert {frame["responseId"] for frame in frames if "responseId" in frame} == {"m"}


def test_what_a_run_posts_through_a_tool_is_its_text() -> None:
    frames = turn_of(
        AnswerStarted(message="m"),
        ToolCalled(message="m", block=0, call="k", name="chat_post"),
        MessageAdded(message="p", role="assistant", content=as_content("Done."), event_kind="posted"),
        ToolFinished(call="k", ok=True),
        TurnFinished(outcome="yielded"),
    )
    kinds = ["tool_call_start", "text_delta", "text_block_done", "tool_result", "text_done"]
    assert [frame["type"] for frame in frames] == kinds
    assert ({frames[place]["responseId"] for place in (1, 2, 4)}, frames[-1]["text"]) == ({"t"}, "Done.")


@pytest.mark.parametrize("reason", ["restart", "backend_exit", "storage"])
def test_end_that_nobody_wished_for_is_also_an_error(reason: Stopped) -> None:
    error, ended = turn_of(TurnInterrupted(reason=reason))
    assert (error["type"], error["code"], ended["type"], ended["reason"]) == (
        "error",
        reason,
        "output_cancelled",
        reason,
    )
    (ended,) = turn_of(TurnInterrupted(reason="user"))
    assert (ended["type"], ended["reason"], "responseId" in ended) == ("output_cancelled", "user_cancel", False)


def test_only_the_connection_that_sent_a_message_is_marked() -> None:
    sent = MessageAdded(message="m", content=as_content("hi"), origin=Origin(face="socket", client="here"))
    elsewhere = replace(sent, origin=Origin(face="native", client="here"))
    assert [one.about for one in encode_event(replace(sent, seq=3), Memory())] == [("3", "here")]
    assert [one.about for one in encode_event(replace(elsewhere, seq=3), Memory())] == [("3",)]

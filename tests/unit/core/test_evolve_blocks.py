"""How fragments and ends make the blocks of an answer, in whatever order they come."""

import pytest

from palaver.core.fold.blocks import KEEP_OUTPUT_CHARS
from palaver.core.fold.evolve import fold
from palaver.schema.base import BlobRef
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    CitationAdded,
    KnownEvent,
    RequestOpened,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
)
from palaver.schema.view import Block, State, TextBlock, ThinkingBlock, ToolBlock, ToolError
from tests.unit.core.stage import after, asked, began, called, message, tool

BEGUN = after(*asked(), AnswerStarted(turn="t1", message="m2"))


def _text(text: str, block: int = 0) -> KnownEvent:
    return TextDelta(message="m2", block=block, text=text)


def _blocks(*events: KnownEvent) -> tuple[Block, ...]:
    return message(after(*events, state=BEGUN), "m2").blocks


def test_fragments_grow_a_block_until_it_is_finished() -> None:
    assert _blocks(_text("He"), _text("llo")) == (TextBlock(index=0, text="Hello", status="streaming"),)
    assert _blocks(_text("He"), TextFinished(message="m2", block=0, text="Hello!")) == (
        TextBlock(index=0, text="Hello!"),
    )


def test_late_fragments_change_nothing_not_even_the_message() -> None:
    done = after(TextFinished(message="m2", block=0, text="Done"), state=BEGUN)
    late = after(_text(" late"), ThinkingDelta(message="m2", block=0, text="late"), state=done)
    assert late.messages == done.messages
    assert late.seq == done.seq + 2


def test_blocks_stand_by_their_index_not_by_arrival() -> None:
    events = (
        ToolCalled(message="m2", block=2, call="a", name="shell"),
        _text("first", 0),
        ThinkingFinished(message="m2", block=1, text="second"),
        _text("last", 3),
    )
    assert [block.index for block in _blocks(*events)] == [0, 1, 2, 3]
    assert [block.index for block in _blocks(*reversed(events))] == [0, 1, 2, 3]


def test_finished_block_replaces_fragments_of_another_kind() -> None:
    blocks = _blocks(_text("hm"), ThinkingFinished(message="m2", block=0, text="a thought", signature="s"))
    assert blocks == (ThinkingBlock(index=0, text="a thought", signature="s"),)


def test_call_that_was_made_is_never_written_over() -> None:
    made = ToolCalled(message="m2", block=0, call="a", name="shell", input={"n": 1})
    others = (
        _text("x"),
        TextFinished(message="m2", block=0, text="x"),
        ThinkingDelta(message="m2", block=0, text="x"),
        ThinkingFinished(message="m2", block=0, text="x"),
        CitationAdded(message="m2", block=0, citation="x"),
        ToolInputDelta(message="m2", block=0, call="a", name="shell", text="x"),
        ToolCalled(message="m2", block=0, call="b", name="shell", input={"n": 2}),
    )
    assert _blocks(made, *others) == _blocks(made)


def test_citations_stay_with_their_text_whenever_they_come() -> None:
    cited = CitationAdded(message="m2", block=0, citation="[1]")
    done = TextFinished(message="m2", block=0, text="Rosa", blob=BlobRef(id="b", size=1))
    for order in ((cited, _text("Ro"), done), (_text("Ro"), cited, done), (done, cited)):
        assert _blocks(*order) == (TextBlock(index=0, text="Rosa", blob=BlobRef(id="b", size=1), citations=("[1]",)),)


def test_fragments_for_an_unknown_message_are_skipped() -> None:
    strayed = after(TextDelta(message="nobody", block=0, text="?"), state=BEGUN)
    assert strayed.messages == BEGUN.messages


# -- an answer tried again


def test_replaced_answer_is_taken_back_with_what_was_open_in_it() -> None:
    state = after(
        _text("half"),
        ThinkingFinished(message="m2", block=1, text="whole"),
        ToolInputDelta(message="m2", block=2, call="input", name="shell", text="{"),
        ToolCalled(message="m2", block=3, call="called", name="shell"),
        ToolCalled(message="m2", block=4, call="running", name="shell"),
        began("running"),
        AnswerStarted(turn="t1", message="m3", replaces="m2"),
        state=BEGUN,
    )
    replaced = message(state, "m2")
    assert replaced.status == "superseded"
    assert [getattr(block, "status", None) for block in replaced.blocks] == [
        "superseded",
        "done",
        "interrupted",
        "interrupted",
        "running",
    ]


def test_late_end_does_not_bring_a_replaced_answer_back() -> None:
    state = after(
        AnswerStarted(turn="t1", message="m3", replaces="m2"),
        AnswerFinished(turn="t1", message="m2", finish_reason="error", interrupted=True),
        state=BEGUN,
    )
    assert message(state, "m2").status == "superseded"
    assert message(state, "m2").finish_reason == "error"


# -- calls


def test_arguments_stream_until_the_call_is_made() -> None:
    streaming = after(
        ToolInputDelta(message="m2", block=0, call="a", name="shell", text='{"n"'),
        ToolInputDelta(message="m2", block=0, call="a", name="shell", text=": 1}"),
        state=BEGUN,
    )
    assert (tool(streaming, "a").status, tool(streaming, "a").input_text) == ("input", '{"n": 1}')
    made = after(ToolCalled(message="m2", block=0, call="a", name="shell", input={"n": 1}), state=streaming)
    assert (tool(made, "a").status, tool(made, "a").input_text, tool(made, "a").input) == ("called", "", {"n": 1})


def test_arguments_that_never_became_a_call_stay_to_be_seen() -> None:
    cut = after(
        ToolInputDelta(message="m2", block=0, call="a", name="shell", text='{"n"'),
        ToolFinished(call="a", ok=False, error=ToolError(code="tool_interrupted", message="cut"), effect="none"),
        state=BEGUN,
    )
    assert (tool(cut, "a").status, tool(cut, "a").input_text) == ("interrupted", '{"n"')


@pytest.mark.parametrize(
    ("ok", "code", "status"),
    [
        (True, None, "ok"),
        (False, "tool_error", "error"),
        (False, "tool_denied", "denied"),
        (False, "tool_interrupted", "interrupted"),
        (False, "interaction_timeout", "error"),
        (False, None, "error"),
    ],
)
def test_result_says_how_a_call_ended(ok: bool, code: str | None, status: str) -> None:
    error = ToolError(code=code, message="why") if code else None
    state = after(*asked(), *called("a"), ToolFinished(call="a", ok=ok, error=error))
    assert tool(state, "a").status == status
    assert tool(state, "a").error == error


def test_first_result_is_the_result() -> None:
    once = after(*asked(), *called("a"), began("a"), ToolFinished(call="a", ok=True, output="first"))
    later = after(
        ToolFinished(call="a", ok=False, output="second"),
        ToolOutputDelta(call="a", text="late"),
        began("a", "again"),
        RequestOpened(request="q", kind="approval", call="a"),
        state=once,
    )
    assert tool(later, "a") == tool(once, "a")


def test_call_id_used_again_means_the_newest_call() -> None:
    state = after(
        *asked(),
        *called("a"),
        ToolFinished(call="a", ok=True, output="first"),
        *called("a", message="m3"),
        ToolFinished(call="a", ok=True, output="second"),
    )
    tools = [block for known in state.messages for block in known.blocks if isinstance(block, ToolBlock)]
    assert [block.output for block in tools] == ["first", "second"]


def test_question_of_a_running_call_leaves_it_running() -> None:
    state = after(*asked(), *called("a"), began("a"), RequestOpened(turn="t1", request="q", kind="question", call="a"))
    assert (tool(state, "a").status, tool(state, "a").request) == ("running", "q")


@pytest.mark.parametrize("sign", ["x", "🌱"])
def test_live_output_is_cut_to_its_tail_when_twice_as_much_has_gathered(sign: str) -> None:
    begun = after(*asked(), *called("a"), began("a"))
    full = after(ToolOutputDelta(call="a", text=sign * 2 * KEEP_OUTPUT_CHARS), state=begun)
    assert (len(tool(full, "a").output), tool(full, "a").truncated) == (2 * KEEP_OUTPUT_CHARS, False)
    over = after(ToolOutputDelta(call="a", text="!"), state=full)
    assert (len(tool(over, "a").output), tool(over, "a").truncated) == (KEEP_OUTPUT_CHARS, True)
    assert tool(over, "a").output[-2:] == sign + "!"
    done = after(ToolFinished(call="a", ok=True, output="short"), state=over)
    assert (tool(done, "a").output, tool(done, "a").truncated) == ("short", False)


def test_fold_of_many_is_fold_of_each() -> None:
    events = [_text("a"), _text("b", 1), TextFinished(message="m2", block=0, text="ab"), began("nobody")]
    assert fold(BEGUN, events).messages == _one_by_one(BEGUN, events).messages


def _one_by_one(state: State, events: list[KnownEvent]) -> State:
    for event in events:
        state = fold(state, [event])
    return state

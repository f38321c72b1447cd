"""The program's lines, recorded from the real one, as events."""

from typing import Any, TypeVar

import pytest

from palaver.backends.claude.events import RULES_GRANT, Reading
from palaver.core.fold.evolve import fold
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    FilesChanged,
    KnownEvent,
    ProcessFinished,
    ProcessStarted,
    TextDelta,
    TextFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
    TurnStarted,
    TurnStatus,
)
from palaver.schema.view import State, TextBlock, ThinkingBlock, ToolBlock, Trigger
from tests.unit.backends.claude.samples import lines, read, reading

E = TypeVar("E", bound=KnownEvent)


def of(events: list[KnownEvent], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def folded(events: list[KnownEvent]) -> State:
    begun = TurnStarted(turn="t", agent="claude", backend="claude", trigger=Trigger())
    return fold(State(), (begun, *events))


def streamed(event: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
    return {"type": "stream_event", "event": event, "parent_tool_use_id": parent}


def begin(message: str) -> dict[str, Any]:
    return streamed({"type": "message_start", "message": {"id": message, "model": "m"}})


def text_block() -> dict[str, Any]:
    return streamed({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})


def text_delta(text: str) -> dict[str, Any]:
    return streamed({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})


def whole(message: str, *content: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
    return {
        "type": "assistant",
        "uuid": f"line-of-{message}",
        "message": {"id": message, "model": "m", "content": list(content)},
        "parent_tool_use_id": parent,
    }


def result_of(call: str, content: Any, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, "content": content}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": None, **more}


def called(call: str = "toolu_1", name: str = "Bash", **given: Any) -> tuple[Reading, list[KnownEvent]]:
    one = reading()
    return one, one.read(whole("msg_1", {"type": "tool_use", "id": call, "name": name, "input": given}))


def test_text_and_thinking_are_there_once_each_with_the_signature() -> None:
    _, events = read("thinking and text")
    (message,) = folded(events).messages
    thought, text = message.blocks
    assert isinstance(thought, ThinkingBlock)
    assert (thought.text, thought.signature, thought.status) == ("weigh it", "c2NyaXB0ZWQ=", "done")
    assert isinstance(text, TextBlock)
    assert (text.text, text.status) == ("Hello there.", "done")
    assert message.status == "done"


def test_answer_tells_what_it_used_and_what_the_turn_cost() -> None:
    _, events = read("thinking and text")
    (finished,) = of(events, AnswerFinished)
    assert finished.usage is not None
    assert (finished.usage.input_tokens, finished.usage.output_tokens) == (100, 4)
    assert finished.cost_usd == pytest.approx(0.00048)
    assert finished.provider["by"] == "claude"


def test_cost_of_a_session_that_goes_on_is_only_what_was_added() -> None:
    one, events = read("tool allowed", cost_usd=0.00048)
    assert of(events, AnswerFinished)[-1].cost_usd == pytest.approx(0.0009)
    assert one.cost_usd == pytest.approx(0.00138)


def test_input_of_a_tool_streams_before_the_call_is_whole() -> None:
    _, events = read("tool allowed")
    names = [type(event) for event in events]
    assert names.index(ToolInputDelta) < names.index(ToolCalled)
    (call,) = of(events, ToolCalled)
    assert call.input == {"command": "touch made; echo hi"}
    assert call.provider["id"] == "toolu_4749f70a567e4bad8bfe"
    assert {delta.call for delta in of(events, ToolInputDelta)} == {call.call}


def test_tool_that_nobody_asked_about_has_its_grant_before_its_result() -> None:
    _, events = read("tool fails")
    (started,), (finished,) = of(events, ToolStarted), of(events, ToolFinished)
    assert started.grant == RULES_GRANT
    assert events.index(started) < events.index(finished)
    assert (finished.ok, finished.exit_code, finished.effect) == (False, 2, "done")


def test_denied_tool_did_nothing_and_was_never_started() -> None:
    _, events = read("tool denied")
    (finished,) = of(events, ToolFinished)
    assert finished.error is not None
    assert (finished.error.code, finished.effect) == ("tool_denied", "none")
    assert not of(events, ToolStarted)
    (tool,) = [block for message in folded(events).messages for block in message.blocks if isinstance(block, ToolBlock)]
    assert tool.status == "denied"


def test_retry_is_told_with_its_number_and_reason() -> None:
    _, events = read("api error 529 once, retried")
    status, over = of(events, TurnStatus)
    assert over.retry is None
    assert status.retry is not None
    assert (status.retry.attempt, status.retry.of) == (1, 1)
    assert "529" in status.retry.reason
    assert status.retry.after_s == pytest.approx(0.546)


def test_error_of_the_service_is_no_text_of_the_agent() -> None:
    one, events = read("api error 400")
    assert not of(events, TextFinished)
    assert one.result is not None
    assert one.result.failed
    assert one.result.error(one.failure).code == "provider_refused"


def test_cut_answer_is_kept_and_the_next_goes_on_from_it() -> None:
    _, events = read("stream cut mid-text")
    texts = [event.text for event in of(events, TextFinished)]
    assert texts[0] == "a b c"
    assert len(texts) == 2
    assert [started.replaces for started in of(events, AnswerStarted)] == [None, None]


@pytest.mark.parametrize("closed", [False, True])
def test_answer_that_starts_over_takes_the_place_of_the_cut_one(closed: bool) -> None:
    one = reading()
    given = [begin("msg_1"), text_block(), text_delta("The ti")]
    if closed:
        # The program ends the stream of a cut answer itself.
        given += [{"type": "stream_event", "event": {"type": name}} for name in ("content_block_stop", "message_stop")]
    given += [begin("msg_2"), text_block(), text_delta("The tide.")]
    given.append(whole("msg_2", {"type": "text", "text": "The tide."}))
    events = [event for line in given for event in one.read(line)]
    first, second = of(events, AnswerStarted)
    assert second.replaces == first.message
    assert one.answers == [second.message]
    shown = [message for message in folded(events).messages if message.status != "superseded"]
    assert [block.text for message in shown for block in message.blocks if isinstance(block, TextBlock)] == [
        "The tide."
    ]


def test_unstreamed_answer_is_an_answer() -> None:
    one = reading()
    events = one.read(whole("msg_9", {"type": "text", "text": "one"}, {"type": "text", "text": "two"}))
    assert [type(event) for event in events] == [AnswerStarted, TextFinished, TextFinished]
    assert [event.block for event in of(events, TextFinished)] == [0, 1]


def test_what_a_subagent_says_is_output_of_the_call_that_started_it() -> None:
    one, events = called("toolu_a", "Agent", prompt="look")
    call = of(events, ToolCalled)[0].call
    nested = [
        whole("msg_2", {"type": "text", "text": "I look."}, parent="toolu_a"),
        whole(
            "msg_2", {"type": "tool_use", "id": "toolu_b", "name": "Bash", "input": {"command": "ls"}}, parent="toolu_a"
        ),
        whole("msg_3", {"type": "text", "text": "deeper"}, parent="toolu_b"),
    ]
    said = [event for line in nested for event in one.read(line)]
    assert {event.call for event in of(said, ToolOutputDelta)} == {call}
    assert "".join(event.text for event in of(said, ToolOutputDelta)) == "I look.\n→ Bash ls\ndeeper\n"
    assert not of(said, TextFinished)
    assert not of(said, TextDelta)
    assert one.call_of("toolu_b") is one.calls["toolu_a"]


def test_background_agent_has_its_result_when_it_ends_and_not_when_it_is_sent_off() -> None:
    one, _ = called("toolu_a", "Agent", prompt="look")
    sent = {
        "type": "system",
        "subtype": "task_started",
        "task_id": "a1",
        "tool_use_id": "toolu_a",
        "is_backgrounded": True,
        "task_type": "local_agent",
    }
    assert [type(event) for event in one.read(sent)] == [ToolStarted]
    assert not one.read(result_of("toolu_a", "Async agent launched"))
    (finished,) = one.read(
        {
            "type": "system",
            "subtype": "task_notification",
            "task_id": "a1",
            "status": "completed",
            "summary": "All quiet.",
        }
    )
    assert isinstance(finished, ToolFinished)
    assert (finished.ok, finished.output) == (True, "All quiet.")
    assert not one.tasks


def test_background_command_is_a_process_until_it_ends() -> None:
    one, _ = called("toolu_a", "Bash", command="make")
    begun = {
        "type": "system",
        "subtype": "task_started",
        "task_id": "b1",
        "tool_use_id": "toolu_a",
        "description": "make",
        "is_backgrounded": True,
        "task_type": "local_bash",
    }
    started = of(one.read(begun), ProcessStarted)[0]
    assert started.command == "make"
    assert one.new_tasks == {"b1"}
    over = {"type": "system", "subtype": "task_notification", "task_id": "b1", "summary": "made (exit code 2)"}
    assert one.read(over) == [ProcessFinished(process=started.process, exit_code=2)]
    assert not one.new_tasks


def test_edit_tells_the_file_it_changed() -> None:
    one, _ = called("toolu_e", "Edit", file_path="/p/a.txt")
    hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-high", "+low"]}
    told = {"filePath": "/p/a.txt", "structuredPatch": [hunk]}
    (changed,) = of(one.read(result_of("toolu_e", "done", tool_use_result=told)), FilesChanged)
    assert (changed.files[0].kind, changed.files[0].additions, changed.files[0].deletions) == ("modified", 1, 1)


def test_second_result_of_a_call_is_dropped() -> None:
    one, _ = called()
    assert of(one.read(result_of("toolu_1", "first")), ToolFinished)
    assert one.read(result_of("toolu_1", "second")) == []


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"type": "from the future", "message": 3},
        {"type": "assistant", "message": {"id": "x", "model": "m", "content": [{"type": "hologram"}]}},
        {"type": "user", "message": {"content": "plain"}},
        {"type": "user", "message": None},
        {"type": "system", "subtype": "news"},
        {"type": "stream_event", "event": None},
        {"type": "stream_event", "event": {"type": "content_block_delta", "index": 7}},
        {"type": "result"},
    ],
)
def test_unknown_line_breaks_nothing(line: dict[str, Any]) -> None:
    one = reading()
    one.read(line)
    events = [event for known in lines("thinking and text") for event in one.read(known)]
    assert of(events, TextFinished)[-1].text == "Hello there."

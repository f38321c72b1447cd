"""What Pi printed, as it was recorded, becomes canonical events."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.backends.pi.events import Translation, usage_of
from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ContextMeasured,
    TextDelta,
    TextFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
    TurnStatus,
)
from palaver.schema.view import TextBlock, ThinkingBlock, ToolBlock
from tests.provider.turn import MemoryTurn

SAMPLES = Path(__file__).parents[3] / "cli" / "samples" / "pi-rpc.jsonl"
MARK = {"by": "pi", "session": "s"}


async def played(scenario: str, *, allowed: bool = True) -> tuple[MemoryTurn, Translation]:
    turn = MemoryTurn("said")
    said = Translation(turn.new_id, MARK, 100_000)
    for line in SAMPLES.read_bytes().splitlines():
        told = msgspec.json.decode(line)
        if told["scenario"] != scenario or told["dir"] != "out":
            continue
        for event in _events(said, told["msg"], allowed):
            turn.accept(event)
        await turn.committed()
    return turn, said


def _events(said: Translation, line: dict[str, Any], allowed: bool) -> list[Any]:
    if line["type"] != "extension_ui_request":
        return said.line(line)
    asked = msgspec.json.decode(line["title"])
    call, events = said.asking(asked["toolCallId"], asked["toolName"], asked["input"])
    return [*events, *(said.start(call, "request:r", "r") if allowed else said.refuse(call, "declined"))]


def blocks(turn: MemoryTurn, kind: type[Any]) -> list[Any]:
    return [block for message in turn.history for block in message.blocks[:] if isinstance(block, kind)][
        1 if kind is TextBlock else 0 :
    ]


async def test_text_and_thinking_are_apart_and_said_once() -> None:
    turn, said = await played("thinking and text")
    assert [block.text for block in blocks(turn, TextBlock)] == ["Hello there."]
    assert [block.text for block in blocks(turn, ThinkingBlock)] == ["weigh it"]
    assert "".join(event.text for event in turn.of(TextDelta)) == "Hello there."
    assert len(turn.of(TextFinished)) == 1
    assert turn.history[-1].data == MARK
    assert said.error is None


async def test_usage_and_meter_are_of_each_model_call() -> None:
    turn, _ = await played("thinking and text")
    assert turn.of(AnswerFinished)[-1].usage == Usage(input_tokens=100, output_tokens=4)
    measured = turn.of(ContextMeasured)[-1]
    assert (measured.used_tokens, measured.window_tokens, measured.estimated) == (104, 100_000, False)


async def test_allowed_tool_streams_its_input_and_what_is_new_of_its_output() -> None:
    turn, _ = await played("tool allowed")
    (tool,) = blocks(turn, ToolBlock)
    assert tool.status == "ok"
    assert tool.output == "line 1\nline 2\n"
    assert "".join(event.text for event in turn.of(ToolInputDelta)).startswith('{"command": "for i in 1 ')
    assert [event.text for event in turn.of(ToolOutputDelta)] == ["line 1\n", "line 2\n"]
    assert len(turn.of(ToolCalled)) == len(turn.of(ToolStarted)) == len(turn.of(ToolFinished)) == 1
    assert [event.finish_reason for event in turn.of(AnswerFinished)] == ["tool_calls", "stop"]


async def test_denied_tool_stays_denied_whatever_arrives() -> None:
    turn, _ = await played("tool denied", allowed=False)
    (tool,) = blocks(turn, ToolBlock)
    assert tool.status == "denied"
    assert len(turn.of(ToolFinished)) == 1


async def test_abort_leaves_no_false_answer() -> None:
    turn, _ = await played("abort mid-tool")
    assert len(turn.of(AnswerStarted)) == 1


async def test_refused_request_leaves_a_reason_and_no_answer() -> None:
    turn, said = await played("api error 400")
    assert said.error is not None
    assert said.error.startswith("400 ")
    assert not turn.of(AnswerStarted)


def update(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "message_update", "assistantMessageEvent": {"type": kind, "contentIndex": 0, **more}}


def failed(text: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text}] if text else []
    message = {"role": "assistant", "content": content, "stopReason": "error", "errorMessage": "terminated"}
    return {"type": "message_end", "message": message}


async def test_cut_attempt_is_replaced_by_the_next() -> None:
    turn = MemoryTurn("said")
    said = Translation(turn.new_id, MARK)
    done = {"role": "assistant", "content": [{"type": "text", "text": "Whole."}], "stopReason": "stop"}
    lines = [
        update("text_delta", delta="Who"),
        failed("Who"),
        {"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 2000, "errorMessage": "terminated"},
        update("text_delta", delta="Whole."),
        {"type": "message_end", "message": done},
    ]
    for line in lines:
        for event in said.line(line):
            turn.accept(event)
    await turn.committed()
    first, second = turn.of(AnswerStarted)
    assert second.replaces == first.message
    assert said.error is None
    standing = [message for message in turn.history if message.role == "assistant" and message.status != "superseded"]
    assert [block.text for message in standing for block in message.blocks if isinstance(block, TextBlock)] == [
        "Whole."
    ]
    (status,) = [event for event in turn.of(TurnStatus) if event.retry]
    assert status.retry is not None
    assert (status.retry.attempt, status.retry.of, status.retry.after_s) == (1, 3, 2.0)


@pytest.mark.parametrize(
    "line",
    [
        {"type": "from_the_future"},
        {"type": "message_update"},
        {"type": "message_update", "assistantMessageEvent": {"type": "text_delta"}},
        {"type": "message_end", "message": {"role": "user"}},
        {"type": "tool_execution_update", "toolCallId": "unknown", "partialResult": {}},
        {"type": "tool_execution_end", "toolCallId": "unknown"},
        {},
    ],
)
def test_unknown_lines_are_skipped(line: dict[str, Any]) -> None:
    assert Translation(lambda: "n", MARK).line(line) == []


def test_cached_tokens_are_part_of_the_input() -> None:
    told = {"input": 10, "output": 5, "cacheRead": 100, "cacheWrite": 20, "cost": {"total": 0.25}}
    assert usage_of(told) == (Usage(input_tokens=130, output_tokens=5, cached_tokens=100), 0.25)
    assert usage_of({"input": 0, "cost": {"total": 0}}) == (None, None)
    assert usage_of(None) == (None, None)

"""An answer while it is written: the SDK's own `stream_event` messages, live, after a break, and not at all if not wanted."""

from pathlib import Path
from typing import Any

import pytest

from palaver.backends.script.script import Emit, Step, Wait
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    TextDelta,
    TextFinished,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
)
from tests.flows.engine import engine
from tests.flows.faces.stream.client import Frame, asked, names, rejoined, session_of, text_of, until, whole
from tests.flows.served import serving

pytestmark = pytest.mark.anyio

HALF: list[Step] = [
    Emit(AnswerStarted(message="half")),
    Emit(TextDelta(message="half", block=0, text="Half of")),
]
WRITE = '!tool write {"path": "a.txt", "content": "one"}'


def raw(told: list[Frame]) -> list[dict[str, Any]]:
    return [data["event"] for _, data, _ in told if data.get("type") == "stream_event"]


def rebuilt(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Each message as a client of the SDK puts it together; every step must be a legal one."""
    messages: list[list[dict[str, Any]]] = []
    opened: dict[int, dict[str, Any]] | None = None
    for event in events:
        match event["type"]:
            case "message_start":
                assert opened is None
                opened = {}
                assert event["message"]["role"] == "assistant"
                messages.append([])
            case "content_block_start":
                assert opened is not None
                assert event["index"] not in opened
                opened[event["index"]] = dict(event["content_block"])
                messages[-1].append(opened[event["index"]])
            case "content_block_delta":
                assert opened is not None
                block, delta = opened[event["index"]], event["delta"]
                field = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
                if delta["type"] == "input_json_delta":
                    block["json"] = block.get("json", "") + delta["partial_json"]
                else:
                    name = field[delta["type"]]
                    block[name] += delta[name]
            case "content_block_stop":
                assert opened is not None
                opened.pop(event["index"])
            case "message_delta":
                assert opened == {}
                messages[-1].append({"type": "stop", "reason": event["delta"]["stop_reason"]})
            case "message_stop":
                assert opened == {}
                opened = None
            case strange:
                raise AssertionError(strange)
    assert opened is None
    return messages


def _whole(told: list[Frame]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, data) for name, data, _ in told if data.get("type") != "stream_event"]


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
async def test_text_thinking_and_tool_input_are_streamed_as_the_sdk_does(tmp_path: Path, wire: str) -> None:
    async with engine(tmp_path, wire) as work:
        told = await whole(work.server, message="!think Hm, hm.\n!say Looking.\n!list .\n---\n!say Done.", partial=True)
        first, second = rebuilt(raw(told))
        session = session_of(told)
        tracking = {data["queryTrackingId"] for name, data, _ in told if name == "message"}
        async with rejoined(work.server, session, 0, partial=True) as again:
            back = [one async for one in again]
        # The log may have joined the fragments of finished blocks by now; what they come to is the same.
        assert rebuilt(raw(back)) == [first, second]
        assert _whole(back) == _whole(told)
    kinds = {block["type"]: block for block in first}
    assert [block["type"] for block in first] == ["thinking", "text", "tool_use", "stop"]
    assert (kinds["thinking"]["thinking"], kinds["text"]["text"]) == ("Hm, hm.", "Looking.")
    assert (kinds["tool_use"]["name"], kinds["stop"]["reason"]) == ("list", "tool_use")
    assert "path" in kinds["tool_use"]["json"]
    assert second == [{"type": "text", "text": "Done."}, {"type": "stop", "reason": "end_turn"}]
    assert len(tracking) == 1
    partial = [data for _, data, _ in told if data.get("type") == "stream_event"]
    assert {(data["session_id"], data["parent_tool_use_id"]) for data in partial} == {(session, None)}
    ids = [data["uuid"] for name, data, _ in told if name == "message"]
    assert len(set(ids)) == len(ids)
    # The whole messages are as they are without, and each follows the last fragment of its blocks.
    kept = [data for _, data, _ in told if data.get("type") != "stream_event"]
    assert [data.get("type") for data in kept[:5]] == ["system", "assistant", "user", "assistant", "result"]
    assert text_of(told) == "Looking.\nDone."


async def test_text_is_there_before_the_answer_is_whole(tmp_path: Path) -> None:
    script: list[Step] = [*HALF, Wait("gate"), Emit(TextFinished(message="half", block=0, text="Half of it."))]
    async with serving(tmp_path, script) as server, asked(server, message="Go on.", partial=True) as said:
        begun = await until(said, "message", type="stream_event")
        while raw(begun)[-1]["type"] != "content_block_delta":
            begun += await until(said, "message", type="stream_event")
        assert raw(begun)[-1]["delta"] == {"type": "text_delta", "text": "Half of"}
        # Who comes in the middle is told the beginning too, and goes on live.
        async with rejoined(server, session_of(begun), 0, partial=True) as other:
            joined = [await anext(other) for _ in begun]
            assert [data for _, data, _ in joined] == [data for _, data, _ in begun]
            server.agent.open_gate("gate")
            rest = [one async for one in said]
            assert [data for _, data, _ in rest] == [data async for _, data, _ in other]
    (message,) = rebuilt(raw([*begun, *rest]))
    assert message[0] == {"type": "text", "text": "Half of it."}


async def test_whoever_wants_no_partial_messages_gets_none(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        told = await whole(work.server, message="!say Hello.", partial=False)
        assert raw(told) == []
        async with work.server.http.stream(
            "POST", "/api/chat", json={"message": "!say Hello.", "sessionId": session_of(told)}
        ) as answer:
            assert '"stream_event"' in "".join([line async for line in answer.aiter_lines()])


async def test_answer_that_is_stopped_closes_what_it_opened(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, asked(work.server, message=WRITE, partial=True) as said:
        seen = await until(said, "permission_request")
        await work.server.http.post("/api/chat/cancel", json={"queryTrackingId": seen[0][1]["queryTrackingId"]})
        rest = [one async for one in said]
    (message,) = rebuilt(raw([*seen, *rest]))
    assert [block["type"] for block in message] == ["tool_use", "stop"]
    assert names(rest)[-2:] == ["cancelled", "done"]


async def test_text_that_is_stopped_in_the_middle_is_closed_too(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, [*HALF, Wait("never")]) as server,
        asked(server, message="Go on.", partial=True) as said,
    ):
        seen = await until(said, "message", type="stream_event")
        await server.agent.reached("never")
        await server.http.post("/api/chat/cancel", json={"queryTrackingId": seen[0][1]["queryTrackingId"]})
        rest = [one async for one in said]
    (message,) = rebuilt(raw([*seen, *rest]))
    assert message[0] == {"type": "text", "text": "Half of"}


async def test_attempt_that_breaks_off_is_closed_before_the_next_begins(tmp_path: Path) -> None:
    broken: list[Step] = [
        Emit(AnswerStarted(message="one")),
        Emit(TextDelta(message="one", block=0, text="Half")),
        Emit(AnswerStarted(message="two", replaces="one")),
        Emit(TextFinished(message="two", block=0, text="Whole.")),
        Emit(AnswerFinished(message="two", finish_reason="stop")),
    ]
    async with serving(tmp_path, broken) as server:
        told = await whole(server, message="Go on.", partial=True)
    first, second = rebuilt(raw(told))
    assert first == [{"type": "text", "text": "Half"}]
    # What no fragments were told of comes in one.
    assert second == [{"type": "text", "text": "Whole."}, {"type": "stop", "reason": "end_turn"}]
    assert text_of(told) == "Whole."


async def test_call_and_thought_without_fragments_come_in_one_delta(tmp_path: Path) -> None:
    script: list[Step] = [
        Emit(AnswerStarted(message="one")),
        Emit(ThinkingFinished(message="one", block=0, text="Hm.", signature="c2ln")),
        Emit(ToolCalled(message="one", block=1, call="call-1", name="look", input={"at": "sea"})),
        Emit(AnswerFinished(message="one", finish_reason="tool_calls")),
        Emit(ToolFinished(call="call-1", ok=True, output="wet")),
    ]
    async with serving(tmp_path, script) as server:
        told = await whole(server, message="Go on.", partial=True)
    (message,) = rebuilt(raw(told))
    assert message == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "tool_use", "id": "call-1", "name": "look", "input": {}, "json": '{"at":"sea"}'},
        {"type": "stop", "reason": "tool_use"},
    ]

"""What agents sent, as it was recorded, becomes the same canonical events, whatever the agent's habits."""

import pytest

from palaver.backends.acp.events import Translation
from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ContextMeasured,
    FilesChanged,
    PlanUpdated,
    TextDelta,
    TextFinished,
    ToolCalled,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)
from palaver.schema.view import TextBlock, ThinkingBlock, ToolBlock
from tests.provider.turn import MemoryTurn
from tests.unit.backends.acp.samples import played

AGENTS = ("opencode", "gemini", "claude", "codex")
every_agent = pytest.mark.parametrize("agent", AGENTS)


def blocks(turn: MemoryTurn) -> list[object]:
    return [block for message in turn.history if message.role == "assistant" for block in message.blocks]


def tools(turn: MemoryTurn) -> list[ToolBlock]:
    return [block for block in blocks(turn) if isinstance(block, ToolBlock)]


def translation() -> Translation:
    numbers = iter(range(1, 1000))
    return Translation(lambda: f"n{next(numbers)}")


@every_agent
async def test_text_and_thinking_are_apart_and_said_once(agent: str) -> None:
    turn = await played(agent, "thinking and text")
    texts = [block for block in blocks(turn) if isinstance(block, TextBlock)]
    thoughts = [block for block in blocks(turn) if isinstance(block, ThinkingBlock)]
    assert "".join(block.text for block in texts) == "Hello there."
    assert "weigh" in "".join(block.text for block in thoughts)
    assert {block.status for block in texts} | {block.status for block in thoughts} == {"done"}
    assert "".join(event.text for event in turn.of(TextDelta)) == "Hello there."


@every_agent
async def test_allowed_tool_is_called_started_and_finished_once(agent: str) -> None:
    turn = await played(agent, "tool allowed")
    (tool,) = tools(turn)
    assert tool.status == "ok"
    assert tool.input["command"].startswith("touch made")
    assert len(turn.of(ToolCalled)) == len(turn.of(ToolStarted)) == len(turn.of(ToolFinished)) == 1
    assert turn.of(ToolStarted)[0].grant == "request:r"


@every_agent
async def test_what_follows_a_result_is_an_answer_of_its_own(agent: str) -> None:
    turn = await played(agent, "tool allowed")
    assert len(turn.of(AnswerStarted)) == len(turn.of(AnswerFinished)) == 2
    assert turn.of(AnswerFinished)[0].finish_reason == "tool_calls"
    assert [event.text for event in turn.of(TextFinished)] == ["Running.", "Done."]


@every_agent
async def test_denied_tool_stays_denied_whatever_arrives(agent: str) -> None:
    turn = await played(agent, "tool denied", allowed=False)
    (tool,) = tools(turn)
    assert tool.status == "denied"
    assert len(turn.of(ToolFinished)) == 1
    assert not turn.of(ToolStarted)


async def test_cumulative_output_becomes_what_is_new() -> None:
    turn = await played("opencode", "tool allowed")
    assert [event.text for event in turn.of(ToolOutputDelta)] == ["line 1\n", "line 2\n"]
    assert tools(turn)[0].output == "line 1\nline 2\n"
    assert tools(turn)[0].exit_code == 0


async def test_incremental_output_of_codex_is_kept_where_the_result_says_nothing() -> None:
    turn = await played("codex", "tool allowed")
    assert tools(turn)[0].output == "line 2\n"
    assert tools(turn)[0].exit_code == 0


@pytest.mark.parametrize(("agent", "name"), [("opencode", "bash"), ("gemini", "run_shell_command"), ("claude", "Bash")])
async def test_tools_are_named_as_the_agent_names_them(agent: str, name: str) -> None:
    assert tools(await played(agent, "tool allowed"))[0].name == name


async def test_usage_and_window_are_told() -> None:
    turn = await played("opencode", "thinking and text")
    assert turn.of(AnswerFinished)[-1].usage == Usage(input_tokens=100, output_tokens=4)
    assert turn.of(ContextMeasured)[-1].used_tokens == 100
    assert turn.of(ContextMeasured)[-1].window_tokens == 100_000


async def test_session_is_marked_even_when_the_agent_said_nothing() -> None:
    turn = MemoryTurn("said")
    for event in Translation(turn.new_id).finish("stop", None, None, {"by": "acp:x", "session": "s"}):
        turn.accept(event)
    await turn.committed()
    assert turn.history[-1].data == {"by": "acp:x", "session": "s"}


def test_unknown_updates_are_skipped() -> None:
    said = translation()
    for update in (
        {"sessionUpdate": "from_the_future", "x": 1},
        {"sessionUpdate": "tool_call"},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram"}},
        {"sessionUpdate": "agent_message_chunk"},
        {"sessionUpdate": "usage_update", "used": "many"},
        {},
    ):
        assert said.update(update) == []


def test_plan_is_told_whole_and_taken_back_when_empty() -> None:
    entries = [{"content": "Look", "status": "completed"}, {"content": "Act", "status": "in_progress"}, {"odd": 1}]
    (event,) = translation().update({"sessionUpdate": "plan", "entries": entries})
    assert isinstance(event, PlanUpdated)
    assert event.plan is not None
    assert [(item.title, item.status) for item in event.plan.items] == [("Look", "done"), ("Act", "in_progress")]
    assert event.plan.status == "executing"
    assert translation().update({"sessionUpdate": "plan", "entries": []}) == [PlanUpdated(plan=None)]


def test_tool_at_work_is_not_started_before_it_may_still_ask() -> None:
    said = translation()
    events = said.update({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "bash", "status": "in_progress"})
    assert not any(isinstance(event, ToolStarted) for event in events)
    assert said.silent
    (started,) = said.start_silent()
    assert isinstance(started, ToolStarted)
    assert started.grant == "program"
    assert not said.silent


def test_diffs_of_a_finished_edit_are_changed_files() -> None:
    said = translation()
    content = [{"type": "diff", "path": "src/a.py", "oldText": "one\n", "newText": "two\n"}]
    update = {
        "sessionUpdate": "tool_call",
        "toolCallId": "c",
        "kind": "edit",
        "status": "completed",
        "content": content,
    }
    (files,) = [event for event in said.update(update) if isinstance(event, FilesChanged)]
    assert [(file.path, file.kind, file.additions, file.deletions) for file in files.files] == [
        ("src/a.py", "modified", 1, 1)
    ]


def test_late_updates_of_a_turn_that_is_over_are_dropped() -> None:
    said = Translation(lambda: "n", past={"old-call", "old-message"})
    late_call = {"sessionUpdate": "tool_call_update", "toolCallId": "old-call", "status": "completed"}
    late_text = {
        "sessionUpdate": "agent_message_chunk",
        "messageId": "old-message",
        "content": {"type": "text", "text": "x"},
    }
    assert said.update(late_call) == said.update(late_text) == []


def test_call_without_a_result_gets_one_at_the_end() -> None:
    said = translation()
    said.update({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "bash", "status": "in_progress"})
    (finished,) = [event for event in said.finish("stop", None, None, {}) if isinstance(event, ToolFinished)]
    assert (finished.ok, finished.effect) == (False, "unknown")

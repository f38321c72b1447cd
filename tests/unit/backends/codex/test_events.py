"""Recorded lines of the real program, scenario by scenario, as events and as what a person sees."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from palaver.backends.codex.events import DECLINED, STILL_RUNNING, UNKNOWN_END, Translator
from palaver.core.fold.evolve import fold
from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ContextMeasured,
    ConversationCreated,
    FilesChanged,
    KnownEvent,
    TextDelta,
    TextFinished,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    TurnStarted,
    TurnStatus,
)
from palaver.schema.view import State, TextBlock, ThinkingBlock, ToolBlock, Trigger

SAMPLES = Path(__file__).parents[3] / "cli" / "samples" / "codex-app-server.jsonl"
PROJECT = Path("/project")
Json = dict[str, Any]


def lines_of(scenario: str) -> Iterator[tuple[str, Json]]:
    for line in SAMPLES.read_text().replace("<cwd>", str(PROJECT)).splitlines():
        recorded = msgspec.json.decode(line)
        message = recorded["msg"]
        if recorded["scenario"].startswith(scenario) and recorded["dir"] == "out" and "method" in message:
            yield message["method"], message["params"]


def translator(total: Json | None = None) -> Translator:
    ids = count(1)
    made = Translator(
        session="thread",
        conversation="c",
        project=PROJECT,
        new_id=lambda: f"id{next(ids)}",
        total=total,
        grant="mode:ask",
    )
    made.turn = "t1"
    return made


def played(scenario: str, total: Json | None = None) -> tuple[list[KnownEvent], Translator]:
    made = translator(total)
    return [event for method, params in lines_of(scenario) for event in made.take(method, params)], made


def shown(events: list[KnownEvent]) -> State:
    begun: list[KnownEvent] = [
        ConversationCreated(),
        TurnStarted(turn="t", agent="a", backend="codex", trigger=Trigger()),
    ]
    numbered: list[KnownEvent] = []
    for at, event in enumerate([*begun, *events], 1):
        numbered.append(replace(event, seq=at, turn="t"))
    return fold(State(), numbered)


def of(kind: type[Any], events: list[KnownEvent]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def item(method: str, **fields: Any) -> tuple[str, Json]:
    return f"item/{method}", {"item": fields}


def play(made: Translator, *lines: tuple[str, Json]) -> list[KnownEvent]:
    return [event for method, params in lines for event in made.take(method, params)]


def used(total: int, last: int = 1) -> tuple[str, Json]:
    def counted(tokens: int) -> Json:
        return {"totalTokens": tokens, "inputTokens": tokens, "outputTokens": 0}

    usage = {"total": counted(total), "last": counted(last), "modelContextWindow": 1000}
    return "thread/tokenUsage/updated", {"tokenUsage": usage}


def test_thinking_and_text_become_blocks_of_one_answer() -> None:
    events, _ = played("thinking and text", total={})
    (message,) = shown(events).messages
    said = [block for block in message.blocks if isinstance(block, TextBlock | ThinkingBlock)]
    assert [(type(block), block.text) for block in said] == [
        (ThinkingBlock, "**Plan** weigh it"),
        (TextBlock, "Hello there."),
    ]
    assert message.status == "done"
    assert message.data == {"by": "codex", "session": "thread", "conversation": "c", "turn": "t1"}
    assert message.usage == Usage(input_tokens=100, output_tokens=5)
    assert of(ContextMeasured, events)[0].used_tokens == 105
    assert of(ContextMeasured, events)[0].window_tokens == 258400


def test_finished_text_takes_the_place_of_its_deltas() -> None:
    events, _ = played("thinking and text", total={})
    streamed = "".join(event.text for event in of(TextDelta, events))
    (finished,) = of(TextFinished, events)
    assert finished.text == streamed == "Hello there."


def test_command_carries_the_plain_command_and_its_whole_output() -> None:
    events, made = played("tool allowed", total={})
    tool = next(block for message in shown(events).messages for block in message.blocks if isinstance(block, ToolBlock))
    assert tool.name == "shell"
    assert tool.input == {"command": "for i in 1 2 3; do echo line $i; sleep 0.4; done"}
    assert tool.status == "ok"
    assert tool.output == "line 1\nline 2\nline 3\n"
    assert tool.exit_code == 0
    assert "".join(event.text for event in of(ToolOutputDelta, events)) != tool.output
    assert tool.provider == {"id": next(iter(made.calls))}


def test_each_model_call_is_an_answer_with_its_own_tokens() -> None:
    events, _ = played("tool allowed", total={"inputTokens": 100, "outputTokens": 5})
    assert [event.usage for event in of(AnswerFinished, events)] == [
        Usage(input_tokens=100, output_tokens=6),
        Usage(input_tokens=100, output_tokens=1),
    ]
    assert [event.finish_reason for event in of(AnswerFinished, events)] == ["tool_calls", "stop"]


def test_command_that_will_be_asked_about_has_not_started() -> None:
    events, made = played("interrupt while approval pending")
    assert not of(ToolStarted, events)
    (call,) = made.calls.values()
    assert not call.started


def test_command_that_needs_no_yes_runs_under_the_mode() -> None:
    made = translator()
    running = {"type": "commandExecution", "id": "x", "command": "ls", "cwd": "/project", "processId": "1"}
    (started,) = of(ToolStarted, play(made, item("started", **running)))
    assert started.grant == "mode:ask"


def test_declined_command_is_a_denial_without_effect() -> None:
    events, _ = played("tool denied")
    (finished,) = of(ToolFinished, events)
    assert (finished.ok, finished.effect, finished.error.code) == (False, "none", "tool_denied")
    assert finished.error.message == DECLINED
    assert not of(ToolStarted, events)


def test_changed_files_are_told_with_their_diff_before_the_result() -> None:
    events, _ = played("file change allowed")
    (changed,) = of(FilesChanged, events)
    (file,) = changed.files
    assert (file.path, file.kind, file.additions, file.deletions) == ("n.txt", "created", 1, 0)
    assert "+hello" in file.diff
    names = [type(event).__name__ for event in events]
    assert names.index("ToolStarted") < names.index("FilesChanged") < names.index("ToolFinished")


@pytest.mark.parametrize(
    ("kind", "diff", "expected"),
    [
        ({"type": "delete"}, "a\nb\n", ("f.txt", "deleted", 0, 2)),
        ({"type": "update", "move_path": None}, "@@ -1 +1,2 @@\n-a\n+b\n+c\n", ("f.txt", "modified", 2, 1)),
        (
            {"type": "update", "move_path": "/project/g.txt"},
            "@@ -1 +1 @@\n-a\n+b\n\n\nMoved to: /project/g.txt",
            ("g.txt", "renamed", 1, 1),
        ),
        ({"type": "someday"}, "", ("f.txt", "modified", 0, 0)),
    ],
)
def test_file_change_is_counted_by_its_kind(kind: Json, diff: str, expected: tuple[str, str, int, int]) -> None:
    change = {"path": "/project/f.txt", "kind": kind, "diff": diff}
    done = item("completed", type="fileChange", id="x", changes=[change], status="completed")
    (changed,) = of(FilesChanged, play(translator(), done))
    (file,) = changed.files
    assert (file.path, file.kind, file.additions, file.deletions) == expected
    assert "Moved to" not in file.diff


def test_retry_after_a_cut_stream_takes_the_place_of_the_attempt() -> None:
    told = {"inputTokens": 900, "outputTokens": 28}
    events, made = played("api error [[say a b]]", total=told)
    state = shown(events)
    first, second = state.messages
    assert first.status == "superseded"
    assert [block.text for block in second.blocks if isinstance(block, TextBlock)] == ["a b"]
    assert of(AnswerStarted, events)[1].replaces == first.id
    (retry,) = [event.retry for event in of(TurnStatus, events) if event.retry]
    assert (retry.attempt, retry.of) == (2, 2)
    assert "stream disconnected" in retry.reason
    assert made.failure["message"].startswith("stream disconnected")
    assert not of(AnswerFinished, events), "tokens that were told again are no answer's"


def test_retry_keeps_an_attempt_whose_call_has_run() -> None:
    made = translator({})
    command = {"type": "commandExecution", "id": "x", "command": "ls", "processId": "1", "status": "inProgress"}
    cut = ("error", {"error": {"message": "Reconnecting... 1/5"}, "willRetry": True})
    events = play(
        made,
        item("started", **command),
        item("completed", **{**command, "status": "completed", "exitCode": 0}),
        cut,
        item("completed", type="agentMessage", id="m", text="Done."),
    )
    first, second = shown(events).messages
    assert first.status == "interrupted"
    assert second.status == "streaming"
    assert all(event.replaces is None for event in of(AnswerStarted, events))


def test_text_after_a_result_is_another_answer_even_without_tokens() -> None:
    made = translator({})
    command = {"type": "commandExecution", "id": "x", "command": "ls", "processId": "1"}
    events = play(
        made,
        item("completed", **{**command, "status": "completed", "exitCode": 0}),
        item("completed", type="agentMessage", id="m", text="Done."),
    )
    assert len(of(AnswerStarted, events)) == 2
    assert len(of(AnswerFinished, [*events, *made.ended(completed=True)])) == 2


def test_secret_thoughts_leave_no_trace() -> None:
    empty = {"type": "reasoning", "id": "r", "summary": [], "content": []}
    assert play(translator(), item("started", **empty), item("completed", **empty)) == []


def test_parts_of_a_thought_are_kept_apart() -> None:
    def part(index: int, text: str) -> tuple[str, Json]:
        return "item/reasoning/summaryTextDelta", {"itemId": "r", "delta": text, "summaryIndex": index}

    made = translator()
    events = play(made, part(0, "one"), part(0, "!"), part(1, "two"))
    (block,) = shown(events).messages[0].blocks
    assert isinstance(block, ThinkingBlock)
    assert block.text == "one!\n\ntwo"
    done = item("completed", type="reasoning", id="r", summary=["one!", "two"])
    (block,) = shown([*events, *play(made, done)]).messages[0].blocks
    assert isinstance(block, ThinkingBlock)
    assert (block.text, block.status) == ("one!\n\ntwo", "done")


def test_command_left_running_is_closed_and_said_to_run_on() -> None:
    made = translator()
    running = {"type": "commandExecution", "id": "x", "command": "serve", "processId": "1"}
    play(made, item("started", **running), ("item/commandExecution/outputDelta", {"itemId": "x", "delta": "up\n"}))
    (finished,) = of(ToolFinished, made.ended(completed=True, terminals=frozenset({"x"})))
    assert (finished.ok, finished.effect, finished.output) == (True, "unknown", f"up\n{STILL_RUNNING}")
    late = item("completed", **running, status="completed", aggregatedOutput="up\ndown\n", exitCode=0)
    assert play(made, late) == [], "a call has one result"


def test_command_without_an_end_is_not_said_to_have_gone_well() -> None:
    made = translator()
    play(made, item("started", type="commandExecution", id="x", command="touch a", processId="1"))
    (finished,) = of(ToolFinished, made.ended(completed=True))
    assert (finished.ok, finished.effect, finished.error.message) == (False, "unknown", UNKNOWN_END)


def test_stopped_turn_leaves_open_calls_for_the_conversation_to_settle() -> None:
    made = translator()
    play(made, item("started", type="commandExecution", id="x", command="sleep 9", processId="1"))
    assert made.ended(completed=False) == []


def test_tokens_of_a_call_that_showed_nothing_are_the_next_answers() -> None:
    made = translator({})
    events = play(made, used(10), item("completed", type="agentMessage", id="m", text="Hi"), used(25))
    (finished,) = of(AnswerFinished, events)
    assert finished.usage == Usage(input_tokens=25)
    assert made.left_over == Usage()


def test_count_that_was_begun_anew_is_taken_by_its_last_call() -> None:
    made = translator({"inputTokens": 500})
    events = play(made, item("completed", type="agentMessage", id="m", text="Hi"), used(7, last=7))
    assert of(AnswerFinished, events)[0].usage == Usage(input_tokens=7)


def test_unknown_lines_and_broken_ones_say_nothing() -> None:
    lines: list[tuple[str, Json]] = [
        ("item/started", {"item": {"type": "hologram", "id": "h"}}),
        ("item/completed", {"item": {"type": "hologram", "id": "h"}}),
        ("item/started", {"item": None}),
        ("item/agentMessage/delta", {"itemId": 3}),
        ("thread/tokenUsage/updated", {"tokenUsage": None}),
        ("thread/tokenUsage/updated", {"tokenUsage": {"total": "much"}}),
        ("error", {}),
        ("turn/plan/updated", {"plan": "soon"}),
        ("planet/aligned", {}),
    ]
    assert play(translator({}), *lines) == []

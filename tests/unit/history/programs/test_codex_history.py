"""What a session file of Codex says, in the form of today and in older ones."""

from typing import Any

import pytest

from palaver.history.programs import codex
from palaver.schema.base import Usage
from tests.unit.history.programs.lines import images, sample, texts, thoughts, tools, written


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-05-01T10:00:00.000Z", "type": kind, "payload": payload}


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return line("response_item", **{"type": kind, **payload})


def event(kind: str, **payload: Any) -> dict[str, Any]:
    return line("event_msg", **{"type": kind, **payload})


def said(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


META = line("session_meta", id="019a", cwd="/home/ada/harbour", originator="codex_cli_rs", source="cli")


def test_recorded_session_is_told_whole() -> None:
    found = codex.read(sample("codex.jsonl"))

    assert (found.session, found.project) == ("01a1e23b-386d-7343-90d8-2900b6be9577", "/home/ada/harbour")
    assert texts(found) == [
        ("user", "Look at the notes, please."),
        ("assistant", "I shall read them."),
        ("assistant", "The tide comes at four."),
        ("user", "And this picture?"),
        ("assistant", "A single dot."),
        ("user", "Write it down."),
        ("assistant", "Written."),
    ]
    command, patch = tools(found)
    assert (command.name, command.input) == ("exec_command", {"cmd": "cat notes.txt; exit 3"})
    assert (command.status, command.exit_code, command.output) == ("error", 3, "The tide is at four.\n")
    assert (patch.name, patch.status) == ("apply_patch", "interrupted")
    (thought,) = thoughts(found)
    assert thought.text == "The notes will say when the tide comes."
    assert thought.provider["encrypted_content"].startswith("enc+/")
    assert [image.url[:22] for image in images(found)] == ["data:image/png;base64,"]
    assert (found.messages[1].model, found.messages[1].usage) == ("gpt-5.5", Usage(input_tokens=10, output_tokens=5))
    assert found.skipped_lines == 0
    assert found.left_out == {"notes of the program to the model": 3}


def test_line_that_cannot_be_read_is_skipped_and_counted() -> None:
    lines = sample("codex.jsonl")
    whole = codex.read(lines)

    found = codex.read([*lines[:9], b'{"timestamp": \n', b"[]\n", *lines[9:], lines[-1][:50]])

    assert texts(found) == texts(whole)
    assert found.skipped_lines == 3


def test_result_is_read_from_the_item_where_the_program_kept_no_record() -> None:
    told = "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nno such file\n"
    call = item("function_call", name="exec_command", call_id="c", arguments='{"cmd": "ls"}')
    lines = [META, call, item("function_call_output", call_id="c", output=told)]

    (tool,) = tools(codex.read(written(lines)))

    assert (tool.status, tool.exit_code, tool.output) == ("error", 2, "no such file\n")


@pytest.mark.parametrize(
    ("output", "status", "text"),
    [
        ('{"output":"a.txt","metadata":{"exit_code":0,"duration_seconds":0.1}}', "ok", "a.txt"),
        ({"content": "broken", "success": False}, "error", "broken"),
        ([{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}], "ok", "one\ntwo"),
        ("exec command rejected by user", "denied", "exec command rejected by user"),
        ("aborted by user after 2.0s", "interrupted", "aborted by user after 2.0s"),
    ],
)
def test_results_of_every_form_are_read(output: Any, status: str, text: str) -> None:
    call = item("custom_tool_call", name="apply_patch", call_id="c", input="*** Begin Patch")
    lines = [META, call, item("custom_tool_call_output", call_id="c", output=output)]

    (tool,) = tools(codex.read(written(lines)))

    assert tool.input == {"input": "*** Begin Patch"}
    assert (tool.status, tool.error.message if tool.error else tool.output) == (status, text)


def test_oldest_files_have_bare_lines() -> None:
    lines = [
        {"id": "old", "timestamp": "2025-05-01T10:00:00Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
    ]

    found = codex.read(written(lines))

    assert (found.session, texts(found)) == ("old", [("user", "hello"), ("assistant", "hi")])


def test_turns_that_were_rolled_back_are_gone() -> None:
    lines = [META, said("user", "one"), said("assistant", "1"), said("user", "two"), said("assistant", "2")]

    found = codex.read(written([*lines, event("thread_rolled_back", num_turns=1), said("user", "three")]))

    assert [words for _, words in texts(found)] == ["one", "1", "three"]
    assert found.left_out == {"messages that were taken back": 2}


def test_stop_marks_the_answer() -> None:
    found = codex.read(written([META, said("user", "go"), said("assistant", "half"), event("turn_aborted")]))

    assert found.messages[-1].status == "interrupted"


def test_surroundings_in_the_persons_name_are_left_out() -> None:
    lines = [META, said("user", "<environment_context>\n</environment_context>"), said("developer", "Be brief.")]

    found = codex.read(written([*lines, said("user", "hello")]))

    assert texts(found) == [("user", "hello")]
    assert found.left_out == {"notes of the program to the model": 2}


def test_summary_of_a_compacted_session_is_kept_apart() -> None:
    found = codex.read(written([META, said("user", "hello"), line("compacted", message="They said hello.")]))

    assert [(one.role, one.hidden) for one in found.messages] == [("user", False), ("summary", True)]


@pytest.mark.parametrize(
    "meta", [{"source": {"subagent": "review"}}, {"originator": "palaver"}, {"thread_source": "subagent"}]
)
def test_session_that_is_no_persons_says_so(meta: dict[str, Any]) -> None:
    assert codex.read(written([line("session_meta", id="1", **meta), said("user", "x")])).of_another


def test_title_that_was_given_wins() -> None:
    lines = [META, said("user", "hello"), event("thread_name_updated", thread_name="Greeting")]

    assert codex.read(written(lines)).title == "Greeting"

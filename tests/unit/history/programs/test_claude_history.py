"""What a session file of Claude Code says, and what in it nobody said."""

from typing import Any

import pytest

from palaver.history.programs import claude
from palaver.schema.base import Usage
from tests.unit.history.programs.lines import images, sample, texts, thoughts, tools, written

SESSION = "5f0c"


def line(kind: str, uuid: str, parent: str | None, content: Any = None, /, **fields: Any) -> dict[str, Any]:
    message = fields.pop("message", {"role": kind, "content": content})
    at = {"sessionId": SESSION, "cwd": "/home/ada/harbour", "timestamp": "2026-05-01T10:00:00.000Z"}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": False, "message": message, **at, **fields}


def answer(uuid: str, parent: str | None, content: Any, key: str = "", **fields: Any) -> dict[str, Any]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    message = {"id": key or uuid, "role": "assistant", "model": "m", "content": parts}
    return line("assistant", uuid, parent, message=message, **fields)


def call(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": "ls"}}


def result(name: str, text: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": name, "content": text, **fields}]


def test_recorded_session_is_told_whole() -> None:
    found = claude.read(sample("claude.jsonl"))

    assert found.session == "8d2f3c1e-6a0b-4c57-9b1d-2f6f0a7c1e11"
    assert (found.title, found.project) == ("Look at the notes, please.", "/home/ada/harbour")
    assert (found.created_at, found.updated_at) == (1794796862305, 1794796866924)
    assert texts(found)[:-1] == [
        ("user", "Look at the notes, please."),
        ("assistant", "I shall read them."),
        ("assistant", "The tide comes at four, and the harbour answered three."),
        ("user", "And tomorrow?"),
        ("assistant", "About five."),
        ("user", "What is in this picture?"),
        ("assistant", "A single dot."),
    ]
    read, ran = tools(found)
    assert (read.name, read.status, read.output) == ("Read", "ok", "1\tThe tide is at four.\n2\t")
    assert read.input == {"file_path": "/home/ada/harbour/notes.txt"}
    assert (ran.name, ran.status, ran.exit_code, ran.output) == ("Bash", "error", 3, "high water")
    assert [thought.signature for thought in thoughts(found)] == [
        "sig+/2e84929536a6a4805a2b5a1f4953d430==",
        "sig+/7295179086bd53e0d3238f8006485bb9==",
    ]
    assert [image.url[:22] for image in images(found)] == ["data:image/png;base64,"]
    first = found.messages[1]
    assert (first.model, first.finish_reason, first.agent) == ("claude-sonnet-4-5", "tool_calls", "claude")
    assert first.usage == Usage(input_tokens=10, output_tokens=5)
    assert found.skipped_lines == 0


def test_what_the_program_did_by_itself_is_left_out_and_said() -> None:
    found = claude.read(sample("claude.jsonl"))

    assert found.left_out == {"notes of the program to the model": 2, "commands of the program": 1}
    assert [(one.role, one.hidden) for one in found.messages if one.role == "summary"] == [("summary", True)]


def test_lines_of_a_subagent_are_left_out_and_its_report_kept() -> None:
    helped = sample("claude-subagent.jsonl")
    beside = written([answer("s1", None, "I am the helper", isSidechain=True)])

    found = claude.read([*helped, *beside])

    assert texts(found)[-1] == ("assistant", "The helper counted.")
    assert tools(found)[0].output == "[Subagent hand-back] Seven boats."
    assert found.left_out == {"lines of subagents": 1}


@pytest.mark.parametrize("broken", [b"", b"{", b"\xff\xfe", b"[1]", b'{"type": 7}', b'"x"', b"\x00\x00"])
def test_line_that_cannot_be_read_is_skipped_and_counted(broken: bytes) -> None:
    lines = sample("claude.jsonl")
    whole = claude.read(lines)

    found = claude.read([*lines[:20], broken + b"\n", *lines[20:]])

    assert texts(found) == texts(whole)
    assert found.skipped_lines == (0 if not broken.strip(b"\x00") else 1)


@pytest.mark.parametrize(
    ("written_as", "read_as"),
    [
        (rb"cut \ud83d here", "cut � here"),
        (rb"\ude00 cut", "� cut"),
        (rb"whole \ud83d\ude00 and \ud83d cut", "whole 😀 and � cut"),
    ],
)
def test_half_a_character_loses_nothing_else(written_as: bytes, read_as: str) -> None:
    said = written([line("user", "1", None, "WORDS")])[0].replace(b"WORDS", written_as)

    found = claude.read([said])

    assert (texts(found), found.skipped_lines) == ([("user", read_as)], 0)


def test_escaped_backslash_before_a_u_is_left_alone() -> None:
    said = written([line("user", "1", None, "WORDS")])[0].replace(b"WORDS", rb"\\ud83d and \ud83d")

    assert texts(claude.read([said])) == [("user", "\\ud83d and �")]


@pytest.mark.parametrize("when", ["yesterday", -5, 10**30, None, True, "9999-12-31T00:00:00Z"])
def test_time_that_is_none_is_unknown(when: Any) -> None:
    assert claude.read(written([line("user", "1", None, "hi", timestamp=when)])).messages[0].ts == 0


def test_conversation_goes_on_past_a_lost_line() -> None:
    lines = written(
        [
            line("user", "1", None, "one"),
            answer("2", "1", "first"),
            line("user", "3", "2", "two"),
            answer("4", "3", "second"),
        ]
    )
    lines[2] = lines[2][:40] + b"\n"

    found = claude.read(lines)

    assert texts(found) == [("user", "one"), ("assistant", "first"), ("assistant", "second")]
    assert found.skipped_lines == 1


def test_way_that_was_not_taken_is_left_out() -> None:
    lines = written(
        [
            line("user", "1", None, "one"),
            answer("2", "1", "first"),
            line("user", "3", "2", "a wrong turn"),
            answer("4", "3", "wrong"),
            line("user", "5", "2", "the right one"),
            answer("6", "5", "right"),
        ]
    )

    found = claude.read(lines)

    assert [said for _, said in texts(found)] == ["one", "first", "the right one", "right"]
    assert found.left_out == {"messages of ways not taken": 2}


def test_calls_made_side_by_side_all_keep_their_results() -> None:
    lines = written(
        [
            line("user", "1", None, "look"),
            answer("2", "1", [call("a")], key="m"),
            answer("3", "2", [call("b")], key="m"),
            line("user", "4", "2", result("a", "A")),
            line("user", "5", "3", result("b", "B")),
            answer("6", "4", "done"),
        ]
    )

    found = claude.read(lines)

    assert [(tool.call, tool.output) for tool in tools(found)] == [("a", "A"), ("b", "B")]
    assert len(found.messages) == 3


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("The user doesn't want to proceed with this tool use.", "denied"),
        ("[Request interrupted by user for tool use]", "interrupted"),
        ("It broke.", "error"),
    ],
)
def test_call_that_did_not_run_says_why(said: str, status: str) -> None:
    lines = written([answer("1", None, [call("a")]), line("user", "2", "1", result("a", said, is_error=True))])

    (tool,) = tools(claude.read(lines))

    assert tool.status == status
    assert tool.error is not None
    assert tool.error.message == said


def test_call_without_a_result_is_interrupted() -> None:
    (tool,) = tools(claude.read(written([answer("1", None, [call("a")])])))

    assert (tool.status, tool.error and tool.error.code) == ("interrupted", "tool_interrupted")


def test_interruption_marks_the_answer_and_is_no_message() -> None:
    lines = [answer("1", None, "half a sen"), line("user", "2", "1", "[Request interrupted by user]")]

    (message,) = claude.read(written(lines)).messages

    assert message.status == "interrupted"


def test_command_that_a_model_answered_is_kept_as_it_was_typed() -> None:
    typed = "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>the net</command-args>"
    lines = [
        line("user", "1", None, typed),
        line("user", "2", "1", "Mend it.", isMeta=True),
        answer("3", "2", "mended"),
    ]

    assert texts(claude.read(written(lines))) == [("user", "/fix the net"), ("assistant", "mended")]


def test_words_sent_while_it_worked_are_kept() -> None:
    queued = line("attachment", "2", "1", attachment={"type": "queued_command", "prompt": "and the mast"})
    lines = [line("user", "1", None, "mend the net"), queued, answer("3", "2", "both mended")]

    assert [said for _, said in texts(claude.read(written(lines)))] == ["mend the net", "and the mast", "both mended"]


def test_reminders_are_taken_out_of_what_a_person_said() -> None:
    said = "<system-reminder>\nbe brief\n</system-reminder>\nmend the net"

    assert texts(claude.read(written([line("user", "1", None, said)]))) == [("user", "mend the net")]


@pytest.mark.parametrize(
    ("titles", "title"),
    [
        ([], "mend the net"),
        ([{"type": "summary", "summary": "Nets"}], "Nets"),
        ([{"type": "custom-title", "customTitle": "Mine"}, {"type": "ai-title", "aiTitle": "Its own"}], "Mine"),
    ],
)
def test_title_is_the_persons_then_the_programs_then_the_first_words(titles: list[dict[str, Any]], title: str) -> None:
    assert claude.read(written([line("user", "1", None, "mend the net\nplease"), *titles])).title == title


def test_session_begun_from_here_says_so() -> None:
    begun, continued = (
        line("user", "1", None, "hi", entrypoint="palaver"),
        line("user", "1", None, "hi", entrypoint="cli"),
    )

    assert claude.read(written([begun])).of_another
    assert claude.read(written([continued, answer("2", "1", "hello", entrypoint="palaver")])).of_another is None


def test_empty_file_is_an_empty_conversation() -> None:
    assert claude.read([]).messages[:] == []

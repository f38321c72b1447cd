"""What a session file of Pi says."""

from typing import Any

from palaver.history.programs import pi
from tests.unit.history.programs.lines import images, sample, texts, thoughts, tools, written

HEADER = {"type": "session", "version": 3, "id": "p1", "timestamp": "2026-05-01T10:00:00.000Z", "cwd": "/home/ada"}


def message(name: str, parent: str | None, role: str, text: str, **fields: Any) -> dict[str, Any]:
    said = {"role": role, "content": [{"type": "text", "text": text}], "timestamp": 1794796869390, **fields}
    return {"type": "message", "id": name, "parentId": parent, "message": said}


def test_recorded_session_is_told_whole() -> None:
    found = pi.read(sample("pi.jsonl"))

    assert (found.session, found.project) == ("01a1e23a-d673-71f6-b9ee-d9d117220bd0", "/home/ada/harbour")
    assert (found.created_at, found.updated_at) == (1794796869390, 1794796871630)
    assert [words for _, words in texts(found)][:3] == [
        "Look at the notes, please.",
        "I shall read them.",
        "The tide comes at four.",
    ]
    read, ran = tools(found)
    assert (read.name, read.status, read.output) == ("bash", "ok", "The tide is at four.\n")
    assert (ran.status, ran.exit_code) == ("error", 3)
    assert [thought.signature for thought in thoughts(found)] == ["sig+/2e84929536a6a4805a2b5a1f4953d430=="]
    assert len(list(images(found))) == 1
    assert found.messages[1].finish_reason == "tool_calls"
    assert found.left_out == {"notes of the program to the model": 1}


def test_line_that_cannot_be_read_is_skipped_and_the_path_goes_on() -> None:
    lines = sample("pi.jsonl")
    lines[5] = lines[5][:100] + b"\n"

    found = pi.read(lines)

    assert found.skipped_lines == 1
    assert texts(found)[0] == ("user", "Look at the notes, please.")
    assert found.left_out["results without a call"] == 2


def test_way_that_was_not_taken_is_left_out() -> None:
    lines = [HEADER, message("1", None, "user", "one"), message("2", "1", "assistant", "wrong")]

    found = pi.read(written([*lines, message("3", "1", "assistant", "right")]))

    assert [words for _, words in texts(found)] == ["one", "right"]
    assert found.left_out == {"messages of ways not taken": 1}


def test_files_of_the_first_version_have_no_ids() -> None:
    lines = [message("", None, "user", "one"), message("", None, "assistant", "two")]
    bare = [{"type": "message", "message": line["message"]} for line in lines]

    assert [words for _, words in texts(pi.read(written([HEADER, *bare])))] == ["one", "two"]


def test_aborted_answer_is_interrupted() -> None:
    lines = [HEADER, message("1", None, "user", "go"), message("2", "1", "assistant", "half", stopReason="aborted")]

    assert pi.read(written(lines)).messages[-1].status == "interrupted"


def test_name_of_a_session_is_its_title() -> None:
    named = {"type": "session_info", "id": "2", "parentId": "1", "name": "Nets"}

    assert pi.read(written([HEADER, message("1", None, "user", "one"), named])).title == "Nets"


def test_session_begun_from_here_says_so() -> None:
    sign, said = {"type": "custom", "customType": "palaver"}, message("1", None, "user", "one")

    assert pi.read(written([HEADER, sign, said])).of_another
    assert pi.read(written([HEADER, said, sign])).of_another is None

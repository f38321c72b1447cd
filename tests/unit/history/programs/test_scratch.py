"""What readers keep on disk while they read: private, nameless, and the same conversation as from memory."""

import os
from pathlib import Path
from typing import Any

import pytest

from palaver.errors import TooLarge
from palaver.history.programs import codex, foreign, places
from palaver.history.programs.drafts import Draft, DraftStore
from palaver.history.programs.places import SessionFile, SessionLines
from palaver.history.programs.scratch import LineTree, Scratch
from palaver.schema.view import TextBlock, ToolBlock
from tests.unit.history.programs.lines import texts, tools, written


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": {"type": kind, **fields}}


def asked(text: str) -> dict[str, Any]:
    return item("message", role="user", content=[{"type": "input_text", "text": text}])


def test_scratch_has_no_name_in_its_folder(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Scratch(tmp_path) as scratch:
            DraftStore(scratch).append(Draft("user", 1))

            assert list(tmp_path.iterdir()) == []
    finally:
        os.umask(before)


def test_result_reaches_a_call_that_was_made_long_ago() -> None:
    call = item("function_call", name="shell", arguments="{}", call_id="c")
    others = [asked(f"question {number}") for number in range(50)]
    result = item("function_call_output", call_id="c", output="at last")

    found = codex.read(written([asked("first"), call, *others, result]))

    assert [(tool.status, tool.output) for tool in tools(found)] == [("ok", "at last")]
    assert len(found.messages) == 52


def test_turns_are_taken_back_far_behind_the_last_message() -> None:
    questions = [asked(f"question {number}") for number in range(20)]
    rollback = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 15}}

    found = codex.read(written([*questions, rollback, asked("again")]))

    assert [text for _, text in texts(found)] == [*(f"question {number}" for number in range(5)), "again"]
    assert found.left_out == {"messages that were taken back": 15}


def test_answer_that_never_ends_becomes_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "ANSWER_BYTES", 1_000)
    said = item("message", role="assistant", content=[{"type": "output_text", "text": "x" * 400}])

    found = codex.read(written([said] * 9))

    assert [len(message.blocks) for message in found.messages] == [2, 2, 2, 2, 1]


def test_line_that_is_too_long_is_passed_over_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "LINE_BYTES", 1_000)
    path = tmp_path / "rollout-x.jsonl"
    path.write_bytes(b"".join(written([asked("one"), asked("x" * 5_000), asked("two")])))

    with Scratch() as scratch:
        found = places.read(SessionFile("codex", path, 1, 1), scratch)

        assert (texts(found), found.skipped_lines) == ([("user", "one"), ("user", "two")], 1)


@pytest.mark.parametrize("name", ["rollout-x.jsonl", "x.json"])
def test_session_that_is_too_large_is_refused_with_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(places, "SESSION_BYTES", 1_000)
    path = tmp_path / name
    path.write_bytes(b"".join(written([asked("x" * 300)] * 4)))

    with Scratch() as scratch, pytest.raises(TooLarge, match="1,000 bytes"):
        places.read(SessionFile("codex" if "rollout" in name else "refact", path, 1, 1), scratch)


def test_session_that_is_written_on_reads_as_it_was_at_first(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"one\ntw")
    lines = SessionLines(path)
    first = list(lines)
    with path.open("ab") as file:
        file.write(b"o\nthree\n")

    assert list(lines) == first == [b"one\n", b"tw"]
    assert list(SessionLines(path)) == [b"one\n", b"two\n", b"three\n"]


def test_path_goes_around_parents_that_are_missing_and_ends_in_a_circle() -> None:
    with Scratch() as scratch:
        tree = LineTree(scratch)
        for line, parent in (("a", "b"), ("b", None), ("other", "b"), ("c", "gone"), ("d", "c")):
            tree.add(line, parent)
        tree.add("b", "d")
        tree.keep_path("d")

        assert [line for line in ("a", "b", "other", "c", "d", "e") if tree.is_kept(line)] == ["b", "other", "c", "d"]


def test_blocks_of_a_draft_read_as_they_were_kept() -> None:
    with Scratch() as scratch:
        store = DraftStore(scratch)
        tool = ToolBlock(index=0, call="c", name="x", status="ok", input={"deep": [1, None]}, provider={"id": "c"})
        store.append(Draft("assistant", 1, [TextBlock(index=0, text="é"), tool]))
        store.append(Draft("user", 2))

        assert store.finish() == (1, 1, 1)
        assert [draft.blocks for draft in store.walk()] == [[TextBlock(index=0, text="é"), tool]]

"""A conversation as text to read: everything in it can be seen, and nothing of it reaches the terminal as a command."""

import json
import re
from typing import Any

from palaver.cli.support.conversation_text import heading, message, short_input
from palaver.schema.view import Message, State, TextBlock, ThinkingBlock, ToolBlock, ToolError, TurnSummary

HOSTILE = "a\x1b[2Jb\x1b]52;c;cm0=\x07c\u202ed\x9b31me\u200bf\x08g\r h"
TERMINAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e]")


def said(*blocks: Any, full: bool = False, **fields: Any) -> str:
    one = Message(id="m1", role=fields.pop("role", "assistant"), seq=1, updated_seq=1, ts=0, blocks=blocks, **fields)
    return "\n".join(line.text for line in message(one, full=full))


def test_hostile_words_reach_no_terminal_whole_or_short() -> None:
    tool = ToolBlock(
        index=2,
        call="c",
        name=HOSTILE,
        status="error",
        input={"x": HOSTILE},
        output=HOSTILE,
        error=ToolError(code="x", message=HOSTILE),
    )
    blocks = (TextBlock(index=0, text=HOSTILE), ThinkingBlock(index=1, text=HOSTILE), tool)
    for full in (False, True):
        text = said(*blocks, full=full, agent=HOSTILE, model=HOSTILE)
        assert not TERMINAL.search(text), ascii(text)
        assert "␛[2J" in text
    state = State(title=HOSTILE, agent=HOSTILE, project=HOSTILE)
    assert not TERMINAL.search("\n".join(line.text for line in heading(state)))


def test_tool_is_one_line_until_all_is_wanted() -> None:
    tool = ToolBlock(index=0, call="c", name="shell", status="ok", input={"command": "make"}, output="one\ntwo\n")
    assert said(tool).splitlines()[1:] == ["▸ shell make · 2 lines"]
    full = said(tool, full=True)
    assert '"command": "make"' in full
    assert "  one\n  two" in full


def test_colours_of_a_program_are_left_out_and_its_words_stay() -> None:
    tool = ToolBlock(index=0, call="c", name="shell", status="ok", output="\x1b[31mred\x1b[0m\x1b[K\n")
    assert "  red" in said(tool, full=True).splitlines()


def test_how_a_call_ended_is_said_in_words() -> None:
    def line_of(**fields: Any) -> str:
        tool = ToolBlock(index=0, call="c", name="shell", input={"command": "make"}, **fields)
        return said(tool).splitlines()[1]

    assert line_of(status="interrupted") == "▸ shell make · ⚠ interrupted"
    assert line_of(status="ok", output="a\n", total_lines=90, truncated=True) == "▸ shell make · 90 lines · ⚠ truncated"


def test_summary_of_a_finished_task_is_printed() -> None:
    given = {"summary": "All tests\npass."}
    finish = ToolBlock(index=0, call="c", name="finish_task", status="ok", input=given, output="Recorded.")
    assert said(finish).splitlines()[2:] == ["All tests", "pass."]


def test_structured_answer_is_written_out_and_other_json_is_not() -> None:
    asked = {"type": "ask_user", "question": "Which \x1b[2Jlight?", "options": ["Red", {"label": "Green"}]}
    assert said(TextBlock(index=0, text=json.dumps(asked))).splitlines()[1:] == [
        "Which ␛[2Jlight?",
        "",
        "- Red",
        "- Green",
    ]
    plan = {"type": "plan", "summary": "Tidy up", "items": [{"title": "Read", "status": "done"}, "Write"]}
    assert said(TextBlock(index=0, text=json.dumps(plan))).splitlines()[1:] == [
        "**Plan: Tidy up**",
        "",
        "- [x] Read",
        "- [ ] Write",
    ]
    assert said(TextBlock(index=0, text='{"wind": 3}')).splitlines()[1:] == ['{"wind": 3}']


def test_failure_and_stop_stay_to_be_seen() -> None:
    stopped = TurnSummary(id="t", outcome="interrupted", ended_at=0, stopped="user")
    assert "(stopped: user)" in said(TextBlock(index=0, text="half"), ended=stopped, status="interrupted")


def test_hidden_messages_are_shown_only_in_full() -> None:
    assert said(TextBlock(index=0, text="x"), hidden=True) == ""
    assert "x" in said(TextBlock(index=0, text="x"), hidden=True, full=True)


def test_input_in_short_has_its_plain_values_only() -> None:
    assert short_input({"path": "a.py", "limit": 3, "deep": [{"x": 1}]}) == "a.py 3"
    assert short_input("one\ntwo") == "one two"
    assert short_input(None) == short_input([1]) == ""

"""A tool call in one line and a change as lines, as the page says them."""

import re
from pathlib import Path

from palaver.schema.view import FileChange, ToolBlock, ToolError
from palaver.tui.text.rows import process_end
from palaver.tui.transcript.calls import NAMES, doing, is_exploring, kind_of, object_of, object_text, result_of, verb_of
from palaver.tui.transcript.diffs import DiffLine, by_file, diff_of_call, diff_text, is_unified, parse_unified, stat_of

PAGE = Path(__file__).parents[4] / "web/src/model/toolkind.ts"


def call(name: str, given: object, **fields: object) -> ToolBlock:
    known: dict[str, object] = {"index": 0, "call": "c", "name": name, "status": "ok", "input": given, "started_at": 1}
    return ToolBlock(**{**known, **fields})  # type: ignore[arg-type]


def test_a_call_is_said_as_verb_object_and_result() -> None:
    block = call("read", {"path": "src/app.py"}, output="a\nb\nc\n")
    assert (verb_of(block), object_text(block), result_of(block)) == ("Read", "src/app.py", "3 lines")


def test_the_tools_of_other_programs_are_known_by_what_they_do() -> None:
    assert kind_of("Bash") == "shell"
    assert kind_of("mcp__files__read_file") == "read"
    assert kind_of("weather") == "other"


def test_the_tools_are_those_of_the_page() -> None:
    page = PAGE.read_text()
    assert dict(re.findall(r'^  (\w+): "([a-z_ ]+)",$', page, re.MULTILINE)) == NAMES
    exploring = re.findall(r'"(\w+)"', re.findall(r"const EXPLORING.*", page)[0])
    assert [kind for kind in NAMES if is_exploring(NAMES[kind].split()[0])] == exploring


def test_only_what_ran_is_said_to_have_run() -> None:
    given = {"command": "make"}
    assert verb_of(call("shell", given, status="running")) == "Running"
    assert verb_of(call("shell", given, status="waiting", started_at=None)) == "Run"
    assert verb_of(call("shell", given, status="interrupted", started_at=None)) == "Run"
    assert verb_of(call("shell", given, status="interrupted")) == "Ran"
    assert doing(call("shell", {"command": "make\nmore"}, status="running")) == "Running make …"


def test_a_failed_command_shows_its_exit_code_another_failure_its_first_line() -> None:
    assert result_of(call("shell", {"command": "false"}, status="error", exit_code=1)) == "exit 1"
    error = ToolError(code="tool_error", message="There is no such file.\nTry another.")
    assert result_of(call("read", {"path": "x"}, status="error", error=error)) == "failed · There is no such file. …"


def test_a_command_that_a_signal_ended_is_said_to_be_killed() -> None:
    assert result_of(call("shell", {"command": "sleep 9"}, status="error", exit_code=-9)) == "killed by signal 9"
    assert process_end(-15) == "killed by signal 15"


def test_a_question_that_was_skipped_or_timed_out_is_not_answered() -> None:
    given = {"questions": [{"question": "Which?"}]}
    assert result_of(call("ask_user", given, status="denied")) == "not answered"
    for code in ("no_answer", "interaction_timeout"):
        error = ToolError(code=code, message="Go on without it.")
        assert result_of(call("ask_user", given, status="error", error=error)) == "not answered"
    assert result_of(call("shell", {"command": "x"}, status="denied")) == "denied"


def test_hidden_characters_in_a_command_are_visible_in_its_line() -> None:
    assert object_text(call("shell", {"command": "echo \u202ehi\x1b[2K"})) == "echo ⟨202E⟩hi␛[2K"


def test_arguments_of_any_shape_are_survived() -> None:
    shapes: tuple[object, ...] = (
        None,
        "text",
        5,
        [],
        {"path": 7},
        {"command": []},
        {"questions": [None, {"question": 3}]},
    )
    for given in shapes:
        for name in ("read", "shell", "patch", "ask_user", "grep", "weather"):
            object_of(name, given)
            diff_of_call(given)
    assert object_of("shell", {"command": ["ls", "-l"]}) == "ls -l"
    assert object_of("shell", None, '{"command": "make te') == "make te"


def test_a_change_is_counted_from_its_arguments_or_its_report() -> None:
    given = {"path": "x", "old": "a\nb\n", "new": "a\nc\nd\n"}
    assert result_of(call("edit", given)) == "+2 \N{MINUS SIGN}1"
    changes = (FileChange(path="a", kind="modified", additions=3), FileChange(path="b", kind="created", additions=2))
    assert result_of(call("shell", {"command": "make"}, changes=changes)) == "2 files +5"


def test_an_edit_keeps_a_few_lines_around_and_drops_the_rest() -> None:
    before = "\n".join(str(at) for at in range(40))
    lines = diff_text(before, before.replace("\n20\n", "\ntwenty\n"))
    assert [line.sign for line in lines] == [" ", " ", " ", "-", "+", " ", " ", " "]
    assert stat_of(lines) == (1, 1)


def test_a_unified_diff_is_read_without_its_headers() -> None:
    patch = "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n same\n-old\n+new\n"
    assert is_unified(patch)
    assert parse_unified(patch)[2:] == (DiffLine(" ", "same"), DiffLine("-", "old"), DiffLine("+", "new"))


def test_changes_of_one_file_are_told_as_one() -> None:
    made = FileChange(path="a", kind="created", additions=3, diff="x")
    changed = FileChange(path="a", kind="modified", additions=1, deletions=1, diff="y")
    (file,) = by_file((made, changed))
    assert (file.kind, file.additions, file.deletions, len(file.parts)) == ("created", 4, 1, 2)

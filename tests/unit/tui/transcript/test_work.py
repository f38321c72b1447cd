"""The work of a turn as one row: what it hides, what must be seen all the same, and how it is said in a line."""

from palaver.schema.view import (
    FileChange,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    ToolError,
    ToolStatus,
    Trigger,
    Turn,
)
from palaver.tui.transcript.rows import GroupRow, Row, TextRow, ThinkingRow, ToolRow, WorkRow
from palaver.tui.transcript.work import unfold
from palaver.tui.transcript.work_summary import summary_of
from tests.unit.tui.transcript.test_row_book import asked, book, kinds, said, state, tool

LIVE = Turn(id="t1", agent="a", backend="b", model=None, started_at=0, trigger=Trigger())


def text(index: int, words: str = "so") -> TextBlock:
    return TextBlock(index=index, text=words)


def call(index: int, name: str, status: ToolStatus = "ok", **fields: object) -> ToolBlock:
    given: dict[str, object] = {"started_at": 1, "finished_at": 2, **fields}
    return tool(index, name, status, **given)


def work_in(rows: tuple[Row, ...]) -> WorkRow:
    (work,) = [row for row in rows if isinstance(row, WorkRow)]
    return work


def line_of(work: WorkRow) -> str:
    summary = summary_of(work)
    return " · ".join([summary.done, *(said for said, _ in summary.trouble), summary.size])


def test_work_of_a_turn_that_is_over_is_one_row_above_its_final_text() -> None:
    work = (call(2, "read"), call(3, "shell", finished_at=12_002))
    first = said("m2", ThinkingBlock(index=0, text="hm"), text(1, "I look."), *work)
    last = said("m3", text(0, "Done."))
    rows = book().rows(state(asked("m1"), first, last))
    assert kinds(rows) == ["Day", "User", "Work", "Text"]
    assert kinds(unfold(rows, lambda _: True)[0]) == [
        *("Day", "User", "Work"),
        *("Thinking", "Text", "Tool", "Tool"),
        "Text",
    ]
    assert line_of(work_in(rows)) == "Read 1 file, ran 1 command · 2 tool calls · 12 s"


def test_work_of_the_running_turn_is_live_and_counts_what_was_done_so_far() -> None:
    message = said("m2", call(0, "read"), call(1, "shell", "running", finished_at=None))
    work = work_in(book().rows(state(asked("m1"), message, turn=LIVE)))
    assert work.is_live
    assert line_of(work) == "Working: read 1 file, ran 1 command · 2 tool calls"
    begun = said("m2", call(0, "shell", "called", started_at=None, finished_at=None))
    assert line_of(work_in(book().rows(state(asked("m1"), begun, turn=LIVE)))) == "Working · 1 tool call"


def test_turn_without_a_call_has_no_summary() -> None:
    rows = book().rows(state(asked("m1"), said("m2", ThinkingBlock(index=0, text="hm"), text(1))))
    assert kinds(rows) == ["Day", "User", "Thinking", "Text"]


def test_what_did_not_end_well_is_named_and_seen_through_the_closed_row() -> None:
    failed = call(1, "shell", "error", error=ToolError(code="tool_error", message="no"))
    cut = call(2, "write", "interrupted")
    denied = call(3, "shell", "denied", started_at=None)
    rows = book().rows(state(asked("m1"), said("m2", call(0, "edit"), failed, cut, denied, text(4))))
    assert kinds(rows) == ["Day", "User", "Work", "Tool", "Tool", "Tool", "Text"]
    assert line_of(work_in(rows)).startswith("Edited 1 file, ran 1 command · 1 failed · 1 denied · 1 interrupted · 4 ")


def test_questions_other_agents_plans_and_the_end_of_a_task_are_not_hidden() -> None:
    blocks = [call(at, name) for at, name in enumerate(("plan", "read", "ask_user", "task", "agents_message", "plan"))]
    finish = said("m3", call(0, "finish_task", input={"summary": "All done."}))
    rows = book().rows(state(asked("m1"), said("m2", *blocks), finish))
    assert kinds(rows) == ["Day", "User", "Work", "Tool", "Tool", "Tool", "Tool", "Tool"]
    assert [row.block.name for row in rows if isinstance(row, ToolRow)] == [
        *("ask_user", "task", "agents_message", "plan"),
        "finish_task",
    ]


def test_text_said_before_the_last_call_stays_when_nothing_is_said_after_it() -> None:
    rows = book().rows(state(asked("m1"), said("m2", text(0, "a"), call(1, "shell"), text(2, "b"), call(3, "shell"))))
    assert [row.block.text for row in rows if isinstance(row, TextRow)] == ["b"]
    assert kinds(unfold(rows, lambda _: True)[0]) == ["Day", "User", "Work", "Text", "Tool", "Text", "Tool"]


def test_steered_turn_has_one_summary_and_what_the_person_said_stays() -> None:
    messages = (
        asked("m1", turn="t1"),
        said("m2", call(0, "shell")),
        asked("m3", turn="t1"),
        said("m4", call(5, "shell"), text(6)),
    )
    rows = book().rows(state(*messages))
    assert kinds(rows) == ["Day", "User", "Work", "User", "Text"]
    assert kinds(unfold(rows, lambda _: True)[0]) == ["Day", "User", "Work", "Tool", "User", "Tool", "Text"]
    assert line_of(work_in(rows)) == "Ran 2 commands · 2 tool calls · 0.1 s"


def test_turns_are_folded_one_by_one() -> None:
    one = (asked("m1", turn="t1"), said("m2", call(0, "shell"), text(1)))
    other = (asked("m3", turn="t2"), said("m4", call(2, "shell"), text(3), turn="t2"))
    copied = (asked("m5"), said("m6", call(4, "shell"), text(5), turn=None))
    again = (asked("m7"), said("m8", call(6, "shell"), text(7), turn=None))
    rows = book().rows(state(*one, *other, *copied, *again))
    assert kinds(rows) == ["Day", *("User", "Work", "Text") * 4]


def test_files_are_counted_once_and_commands_each_time() -> None:
    changes = (FileChange(path="a", kind="modified"), FileChange(path="b", kind="created"))
    read = [call(at, "read", input={"path": path}) for at, path in enumerate(("x", "x", "y"))]
    work = [call(3, "patch", changes=changes), call(4, "edit", input={"path": "a"}), call(5, "shell"), call(6, "shell")]
    search = [call(7, "grep"), call(8, "websearch"), call(9, "fetch"), call(10, "list"), call(11, "weather")]
    rows = book().rows(state(asked("m1"), said("m2", *read, *work, *search)))
    assert line_of(work_in(rows)) == (
        "Read 2 files, searched 2 times, listed 1 folder, fetched 1 page, edited 2 files, ran 2 commands, used 1 other tool"
        " · 12 tool calls · 0.1 s"
    )


def test_open_group_in_open_work_is_followed_by_its_calls() -> None:
    message = said("m2", call(0, "read"), ThinkingBlock(index=1, text="hm"), call(2, "grep"), call(3, "shell"), text(4))
    rows = book().rows(state(asked("m1"), message))
    shown, inner = unfold(rows, lambda _: True)
    assert kinds(shown) == ["Day", "User", "Work", "Group", "Tool", "Thinking", "Tool", "Tool", "Text"]
    assert inner == {row.key for row in shown if isinstance(row, ToolRow | ThinkingRow | GroupRow)}
    only_work, _ = unfold(rows, lambda fold: isinstance(fold, WorkRow))
    assert kinds(only_work) == ["Day", "User", "Work", "Group", "Tool", "Text"]
    assert unfold(rows, lambda _: False)[0] is rows


def test_rows_before_the_first_change_are_the_very_same() -> None:
    known = book()
    first = (asked("m1", turn="t0"), said("m2", call(0, "shell"), text(1), turn="t0"), asked("m3", turn="t1"))
    before = known.rows(state(*first, said("m4", call(2, "shell", "running")), turn=LIVE))
    later = state(*first, said("m4", call(2, "shell")), said("m5", text(3)), turn=LIVE)
    after = known.rows(later)
    assert kinds(after) == kinds(book().rows(later)) == ["Day", *("User", "Work", "Text") * 2]
    assert all(one is other for one, other in zip(before[:5], after[:5], strict=True))

"""Rows of a state: what is grouped, what surfaces, what stands between messages, and that only what changed is made anew."""

from collections.abc import Sequence

from msgspec.structs import replace

from palaver.schema.errors import WireError
from palaver.schema.view import (
    Block,
    Compression,
    FileChange,
    Message,
    Request,
    Resolution,
    State,
    Subagent,
    Switch,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    ToolStatus,
    TurnSummary,
)
from palaver.tui.transcript.row_book import RowBook
from palaver.tui.transcript.rows import (
    AttemptRow,
    ChangesRow,
    CompressedRow,
    DayRow,
    ErrorRow,
    GroupRow,
    InterruptedRow,
    NewRow,
    NoteRow,
    Row,
    TextRow,
    ToolRow,
    UserRow,
    WorkRow,
)
from palaver.tui.transcript.work import unfold

DAY_MS = 86_400_000


def book(seen_seq: int | None = None) -> RowBook:
    return RowBook(lambda ts: ts // DAY_MS * DAY_MS, seen_seq)


def tool(index: int, name: str = "read", status: ToolStatus = "ok", **fields: object) -> ToolBlock:
    return ToolBlock(index=index, call=f"c{index}", name=name, status=status, **fields)  # type: ignore[arg-type]


def said(id: str, *blocks: Block, role: str = "assistant", turn: str | None = "t1", **fields: object) -> Message:
    number = int(id.lstrip("m"))
    given = {"id": id, "role": role, "seq": number, "updated_seq": number, "ts": number, "blocks": blocks, "turn": turn}
    return Message(**{**given, **fields})  # type: ignore[arg-type]


def asked(id: str, words: str = "hi", turn: str | None = None, **fields: object) -> Message:
    return said(id, TextBlock(index=0, text=words), role="user", turn=turn, **fields)


def state(*messages: Message, **fields: object) -> State:
    return State(**{"conversation": "c", "seq": 99, "messages": messages, **fields})  # type: ignore[arg-type]


def flat(rows: tuple[Row, ...]) -> list[Row]:
    """With all that the summaries of turns hide, and without them."""
    shown, _ = unfold(rows, lambda fold: isinstance(fold, WorkRow))
    return [row for row in shown if not isinstance(row, WorkRow)]


def kinds(rows: Sequence[Row]) -> list[str]:
    return [type(row).__name__.removesuffix("Row") for row in rows]


def test_runs_of_looking_around_become_one_row() -> None:
    message = said("m2", tool(0), ThinkingBlock(index=1, text="hm"), tool(2, "grep"), tool(3, "list"))
    rows = book().rows(state(asked("m1"), message))
    assert kinds(flat(rows)) == ["Day", "User", "Group"]
    group = flat(rows)[-1]
    assert isinstance(group, GroupRow)
    assert [row.block.name for row in group.tools] == ["read", "grep", "list"]


def test_looking_around_by_other_programs_is_one_row_too() -> None:
    message = said("m2", tool(0, "read_many_files"), tool(1, "mcp__files__search_files"), tool(2, "Grep"))
    assert kinds(flat(book().rows(state(asked("m1"), message)))) == ["Day", "User", "Group"]


def test_group_is_ended_by_an_edit_a_text_or_a_person() -> None:
    message = said("m2", tool(0), tool(1), tool(2, "edit"), tool(3), TextBlock(index=4, text="so"), tool(5))
    rows = book().rows(state(asked("m1"), message, asked("m3")))
    assert kinds(flat(rows)) == ["Day", "User", "Group", "Tool", "Tool", "Text", "Tool", "User"]


def test_group_goes_on_over_several_answers_of_a_turn() -> None:
    rows = book().rows(state(asked("m1"), said("m2", tool(0)), said("m3", tool(1)), said("m4", tool(2))))
    assert kinds(flat(rows)) == ["Day", "User", "Group"]


def test_thinking_after_the_last_call_is_no_part_of_the_group() -> None:
    message = said("m2", tool(0), tool(1), ThinkingBlock(index=2, text="hm"))
    assert kinds(flat(book().rows(state(asked("m1"), message)))) == ["Day", "User", "Group", "Thinking"]


def test_hidden_messages_are_not_shown_unless_they_tell_of_a_process_or_a_plan() -> None:
    hidden = asked("m2", hidden=True, event_kind="nudge")
    told = said("m3", TextBlock(index=0, text="exit 0"), role="event", hidden=True, event_kind="process_completed")
    rows = book().rows(state(asked("m1"), hidden, told))
    assert kinds(rows) == ["Day", "User", "Note"]


def test_idle_prompt_is_nobody_s_words() -> None:
    rows = book().rows(state(asked("m1", event_kind="idle_prompt")))
    assert isinstance(rows[-1], NoteRow)


def steered(*messages: Message, offset: int = 0, known: RowBook | None = None) -> list[bool]:
    rows = (known or book()).rows(state(*messages, offset=offset))
    return [row.is_steered for row in rows if isinstance(row, UserRow)]


def test_message_steered_where_the_turn_it_belongs_to_had_spoken_before_it() -> None:
    said_before = said("m1", TextBlock(index=0, text="so"), turn="t0")
    answers = [said(id, TextBlock(index=0, text="so")) for id in ("m4", "m7")]
    first, second, third, fourth = (asked(id, turn="t1") for id in ("m2", "m3", "m5", "m6"))
    messages = (said_before, first, second, answers[0], third, fourth, answers[1], asked("m8", turn="t2"))
    assert steered(*messages) == [False, False, True, True, False]


def test_message_whose_turn_began_further_up_is_said_to_steer_once_that_is_at_hand() -> None:
    answer, steering = said("m2", TextBlock(index=0, text="so")), asked("m3", turn="t1")
    known = book()
    assert steered(steering, offset=2, known=known) == [False]
    assert steered(asked("m1", turn="t1"), answer, steering, known=known) == [False, True]


def test_message_that_began_no_turn_steers_nothing() -> None:
    assert steered(said("m1", TextBlock(index=0, text="so"), turn=None), asked("m2")) == [False]


def test_interruption_is_marked_once_and_only_the_last_offers_to_continue() -> None:
    ended = TurnSummary(id="t1", outcome="interrupted", ended_at=5, stopped="user")
    cut = said("m2", TextBlock(index=0, text="half", status="interrupted"), status="interrupted", ended=ended)
    first = book().rows(state(asked("m1"), cut, last_turn=ended))
    assert isinstance(first[-1], InterruptedRow)
    assert first[-1].is_last
    later = book().rows(state(asked("m1"), cut, asked("m3"), last_turn=ended))
    mark = next(row for row in later if isinstance(row, InterruptedRow))
    assert not mark.is_last
    assert kinds(later) == ["Day", "User", "Text", "Interrupted", "User"]


def test_failed_turn_without_a_word_is_marked_at_the_end() -> None:
    failed = TurnSummary(id="t1", outcome="failed", ended_at=5, error=WireError(code="exited", message="It went away."))
    rows = book().rows(state(asked("m1"), last_turn=failed))
    assert isinstance(rows[-1], ErrorRow)
    assert rows[-1].is_last


def test_cut_attempt_is_kept_folded() -> None:
    attempt = said("m2", TextBlock(index=0, text="half", status="superseded"), status="superseded")
    rows = book().rows(state(asked("m1"), attempt, said("m3", TextBlock(index=0, text="whole"))))
    assert isinstance(rows[2], AttemptRow)
    assert rows[2].text == "half"


def test_day_model_switch_and_compression_divide() -> None:
    switched = said("m3", TextBlock(index=0, text="here"), switch=Switch(to_model="b"), ts=DAY_MS + 1)
    shorter = Compression(stage="shorten", horizon=3, strength="low", ts=9, seq=9, before_tokens=100, after_tokens=40)
    rows = book().rows(state(asked("m1"), said("m2", TextBlock(index=0, text="a")), switched, compressions=(shorter,)))
    assert kinds(rows) == ["Day", "User", "Text", "Compressed", "Day", "Switch", "Text"]
    assert isinstance(rows[3], CompressedRow)
    assert rows[3].range.saved_percent == 60


def test_what_comes_while_somebody_looks_is_not_new() -> None:
    reading = book(seen_seq=2)
    opened = reading.rows(state(asked("m1"), asked("m2"), seq=2))
    later = reading.rows(state(asked("m1"), asked("m2"), asked("m3"), seq=3))
    assert ("New" in kinds(opened), "New" in kinds(later)) == (False, False)


def test_what_came_while_nobody_looked_is_divided_off() -> None:
    rows = book(seen_seq=2).rows(state(asked("m1"), said("m2", TextBlock(index=0, text="a")), asked("m3"), asked("m4")))
    assert kinds(rows) == ["Day", "User", "Text", "New", "User", "User"]
    assert isinstance(rows[3], NewRow)
    assert "New" not in kinds(book(seen_seq=99).rows(state(asked("m1"), asked("m2"))))
    assert "New" not in kinds(book().rows(state(asked("m1"), asked("m2"))))


def test_turn_that_changed_files_sums_them_up() -> None:
    changes = (FileChange(path="a", kind="modified", additions=1), FileChange(path="b", kind="created", additions=2))
    message = said("m2", tool(0, "shell", changes=changes))
    rows = book().rows(state(asked("m1"), message))
    assert isinstance(rows[-1], ChangesRow)
    one = said("m2", tool(0, "edit", changes=changes[:1]))
    assert kinds(book().rows(state(asked("m1"), one))) == ["Day", "User", "Work", "Changes"]
    none = said("m2", tool(0, "edit"))
    assert "Changes" not in kinds(book().rows(state(asked("m1"), none)))


def test_changes_of_a_copy_stand_with_the_words_they_were_made_for() -> None:
    changes = (FileChange(path="a", kind="modified"), FileChange(path="b", kind="created"))
    copied = said("m2", tool(0, "shell", changes=changes), turn=None)
    rows = book().rows(state(asked("m1"), copied, asked("m3"), said("m4", TextBlock(index=0, text="ok"), turn=None)))
    assert kinds(flat(rows)) == ["Day", "User", "Tool", "Changes", "User", "Text"]


def test_subagent_that_ends_changes_the_row_of_its_call_alone() -> None:
    known = book()
    child = Subagent(conversation="k", agent="a", task="look", call="c0")
    before_state = state(asked("m1"), said("m2", tool(0, "task", "running")), asked("m3"), subagents=(child,))
    before = known.rows(before_state)
    after = known.rows(replace(before_state, subagents=(replace(child, status="completed"),)))
    changed = [row for row, other in zip(flat(after), flat(before), strict=True) if row is not other]
    assert [type(row) for row in changed] == [ToolRow]
    assert isinstance(changed[0], ToolRow)
    assert changed[0].child is not None
    assert changed[0].child.status == "completed"


def test_request_that_was_answered_is_on_the_row_of_its_call() -> None:
    known = book()
    request = Request(id="r", kind="approval", ts=1, call="c0", tool="shell")
    first = state(asked("m1"), said("m2", tool(0, "shell", "waiting")), requests=(request,))
    known.rows(first)
    answered = replace(request, status="answered", resolution=Resolution(status="answered", ts=2, verdict="allow"))
    row = flat(known.rows(replace(first, requests=(answered,))))[-1]
    assert isinstance(row, ToolRow)
    assert row.request is answered


def test_rows_are_the_very_same_while_nothing_in_them_changes() -> None:
    known = book()
    first = state(asked("m1"), said("m2", TextBlock(index=0, text="a")))
    assert known.rows(first) is known.rows(replace(first, title="Another"))


def test_older_messages_put_before_keep_the_rows_that_were_there() -> None:
    known = book()
    late = (asked("m8"), said("m9", TextBlock(index=0, text="late")))
    before = known.rows(state(*late, offset=2))
    after = known.rows(state(asked("m1"), said("m2", TextBlock(index=0, text="early")), *late))
    assert all(any(row is other for other in after) for row in before)
    assert isinstance(after[0], DayRow)


def test_message_that_says_nothing_yet_has_no_row() -> None:
    empty = said("m2", TextBlock(index=0, text="", status="streaming"), status="streaming")
    assert kinds(book().rows(state(asked("m1"), empty))) == ["Day", "User"]


def test_first_row_of_an_answer_is_told_apart() -> None:
    rows = book().rows(state(asked("m1"), said("m2", TextBlock(index=0, text="a"), TextBlock(index=1, text="b"))))
    assert [row.is_first for row in rows if isinstance(row, TextRow)] == [True, False]
    assert isinstance(rows[1], UserRow)

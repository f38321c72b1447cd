"""Rows as lines: nothing hostile leaves, nothing is wider than its column, what was opened shows what is there."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from palaver.schema.base import BlobRef, Origin
from palaver.schema.errors import WireError
from palaver.schema.view import (
    Exchange,
    FileChange,
    Message,
    Subagent,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    ToolError,
    TurnSummary,
)
from palaver.tui.people import People
from palaver.tui.text.markdown import Line
from palaver.tui.theme import DARK, LIGHT, Palette
from palaver.tui.transcript.renderer import PULSE, TEXT_CURSOR, Drawing
from palaver.tui.transcript.rows import (
    AttemptRow,
    ChangesRow,
    ErrorRow,
    InterruptedRow,
    NoteRow,
    PendingRow,
    Row,
    TextRow,
    ThinkingRow,
    ToolRow,
    UserRow,
    WorkRow,
)

NOW_MS = 1_760_000_000_000
PLACED = {"key": "k", "seq": 1, "ts": NOW_MS}
OF_AGENT = {
    **PLACED,
    "message_id": "m",
    "turn": "t",
    "is_first": True,
    "agent": "a",
    "model": "b",
    "message_status": "done",
}
HOSTILE = (
    "\x1b[2J\x1b]0;gone\x07\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\ \u202egnp.exe\u202c \x9b31m \x08\x00 [red]markup[/] "
    "![pixel](http://evil/x.png) <script>alert(1)</script> [ok](javascript:alert(1)) \u200b\u2066x\u2069\r\n"
)


def message(text: str) -> Message:
    block = TextBlock(index=0, text=text)
    return Message(id="m", role="user", seq=1, updated_seq=1, ts=NOW_MS, blocks=(block,))


def tool(**fields: object) -> ToolBlock:
    given = {"index": 0, "call": "c", "name": "shell", "status": "ok", "input": {"command": "make"}, "started_at": 1}
    return ToolBlock(**{**given, "finished_at": 2, **fields})  # type: ignore[arg-type]


def ended(text: str, data: object) -> NoteRow:
    told = replace(message(text), role="event", event_kind="process_completed", data=data)
    return NoteRow(**PLACED, role="event", event_kind="process_completed", message=told, text=text)  # type: ignore[arg-type]


def structured(text: str) -> list[dict[str, object]]:
    """Answers that are drawn as widgets, where the text is one that such a field may hold."""
    named = text if text.strip() else "x"
    return [
        {"type": "plan", "summary": text, "items": [{"title": named, "description": text}]},
        {"type": "finalize_task", "title": named, "summary": text, "notes": [text]},
        {"type": "change_report", "files": [{"path": named, "summary": text, "diff": f"@@ -1 +1 @@\n+{text}"}]},
        {"type": "ask_user", "header": text, "question": named, "options": [{"label": named, "description": text}]},
    ]


def every_row(text: str) -> list[Row]:
    change = FileChange(path=text, kind="modified", additions=1, diff=f"@@ -1 +1 @@\n-{text}\n+{text}")
    error = WireError(code="exited", message=text, details={"last_words": text})
    turn = TurnSummary(id="t", outcome="failed", ended_at=NOW_MS, error=error)
    child = Subagent(conversation="k", agent=text, task=text, call="c")
    exchange = Exchange(id="e", agent=text, conversation="k", status="complete", call="c")
    cites = ({"title": text, "cited_text": text, "url": f"https://{text}"},)
    calls = [
        tool(output=text, input={"command": text}),
        tool(name="edit", input={"path": text, "old": text, "new": "x"}),
        tool(name=text, input={text: text}, output=text),
        tool(status="running", output=text, finished_at=None),
        tool(status="error", error=ToolError(code="tool_error", message=text)),
        tool(name="write", changes=(change,)),
    ]
    return [
        UserRow(**PLACED, message=message(text), text=text, images=("u",)),  # type: ignore[arg-type]
        TextRow(**OF_AGENT, block=TextBlock(index=0, text=text), finish_reason="length"),  # type: ignore[arg-type]
        TextRow(**OF_AGENT, block=TextBlock(index=0, text=text, citations=cites), finish_reason=None),  # type: ignore[arg-type]
        TextRow(**OF_AGENT, block=TextBlock(index=0, text=text, status="streaming"), finish_reason=None),  # type: ignore[arg-type]
        ThinkingRow(**OF_AGENT, block=ThinkingBlock(index=0, text=text)),  # type: ignore[arg-type]
        *(ToolRow(**OF_AGENT, block=block) for block in calls),  # type: ignore[arg-type]
        ToolRow(**OF_AGENT, block=tool(name="task", output=text), child=child),  # type: ignore[arg-type]
        ToolRow(**OF_AGENT, block=tool(name="agents_message", output=text), exchange=exchange),  # type: ignore[arg-type]
        *(answered(**fields) for fields in structured(text)),
        NoteRow(**PLACED, role="event", event_kind=text, message=message(text), text=text),  # type: ignore[arg-type]
        ended(text, {"command": text, "exit_code": 1}),
        AttemptRow(**PLACED, text=text),  # type: ignore[arg-type]
        ChangesRow(**PLACED, changes=(change, change)),  # type: ignore[arg-type]
        ErrorRow(**PLACED, error=error, turn=turn, is_last=True),  # type: ignore[arg-type]
        PendingRow(**PLACED, text=text, state="failed", reason=text),  # type: ignore[arg-type]
    ]


def test_message_that_steered_says_so_beside_who_said_it() -> None:
    row = UserRow(**PLACED, message=message("And this"), text="And this", images=(), is_steered=True)  # type: ignore[arg-type]
    head = Drawing(80, DARK, NOW_MS).draw(row, is_open=False, heads=True)[0]
    assert "".join(segment.text for segment in head).strip().startswith("You · steered the running turn")


def streaming(text: str) -> TextRow:
    block = TextBlock(index=0, text=text, status="streaming")
    return TextRow(**OF_AGENT, block=block, finish_reason=None)  # type: ignore[arg-type]


def is_harmless(sign: str) -> bool:
    code = ord(sign)
    return (
        code >= 0x20
        and not 0x7F <= code <= 0x9F
        and sign not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("width", [20, 76, 140])
def test_nothing_hostile_leaves_and_nothing_is_too_wide(width: int, is_open: bool) -> None:
    for palette in (DARK, LIGHT):
        drawing = Drawing(width, palette, NOW_MS)
        for row in every_row(HOSTILE * 3):
            for line in drawing.draw(row, is_open=is_open, heads=True):
                text = "".join(segment.text for segment in line)
                assert all(is_harmless(sign) for sign in text), f"{row!r}: {text!r}"
                assert all(segment.style is None or segment.style.link is None for segment in line)
                assert cell_len(text) <= width, f"{type(row).__name__}: {text!r}"


def without_cursor(lines: list[Line]) -> list[str]:
    """The cursor stands at the end of the last line, or below one that is full."""
    shown = ["".join(segment.text for segment in line) for line in lines]
    assert shown[-1].endswith(TEXT_CURSOR)
    last = shown[-1].removesuffix(TEXT_CURSOR)
    return [*shown[:-1], last] if last else shown[:-1]


def test_hostile_text_split_at_every_point_is_drawn_as_the_whole() -> None:
    for end in range(1, len(HOSTILE) + 1):
        part = HOSTILE[:end]
        growing = Drawing(60, DARK, NOW_MS)
        growing.draw(streaming(part[: end // 2]), is_open=False, heads=False)
        lines = growing.draw(streaming(part), is_open=False, heads=False)
        whole = TextRow(**OF_AGENT, block=TextBlock(index=0, text=part), finish_reason=None)  # type: ignore[arg-type]
        wanted = Drawing(60, DARK, NOW_MS).draw(whole, is_open=False, heads=False)
        assert without_cursor(lines) == ["".join(segment.text for segment in line) for line in wanted]


def test_link_says_where_it_leads_and_an_image_is_only_named() -> None:
    text = "[bank](http://evil.example) and ![cat](http://evil.example/cat.png)"
    row = TextRow(**OF_AGENT, block=TextBlock(index=0, text=text), finish_reason=None)  # type: ignore[arg-type]
    lines = Drawing(100, DARK, NOW_MS).draw(row, is_open=False, heads=False)
    shown = "".join(segment.text for line in lines for segment in line)
    assert shown == "bank (http://evil.example) and [cat] http://evil.example/cat.png"


@given(text=st.text(max_size=400), width=st.integers(20, 120))
@settings(max_examples=100, deadline=None)
def test_any_text_in_any_row_is_drawn_within_its_column(text: str, width: int) -> None:
    drawing = Drawing(width, DARK, NOW_MS)
    for row in every_row(text):
        for line in drawing.draw(row, is_open=True, heads=True):
            assert cell_len("".join(segment.text for segment in line)) <= width


def drawn(row: Row, people: People | None = None) -> str:
    drawing = Drawing(100, DARK, NOW_MS, people or People())
    lines = drawing.draw(row, is_open=True, heads=False)
    return "\n".join("".join(segment.text for segment in line) for line in lines)


def call(**fields: object) -> ToolRow:
    return ToolRow(**OF_AGENT, block=tool(**fields))  # type: ignore[arg-type]


def test_output_that_is_cut_says_how_to_see_all_of_it() -> None:
    kept = BlobRef(id="0" * 64, size=3_000_000, mime="text/plain")
    held = call(output="head\ntail", truncated=True, blob=kept, total_bytes=3_000_000)
    assert "Showing 9 B of 2.9 MB. W: Open the whole output" in drawn(held)
    long = call(output="line\n" * 1000)
    assert "… 840 more lines · W: Open the whole output" in drawn(long)
    assert "W: " not in drawn(call(output="short"))


def test_what_an_answer_cites_is_counted_below_it_and_opens_to_the_sources() -> None:
    cites = (
        {"url": "https://tides.example", "title": "Spring tides", "cited_text": "Twice a month."},
        {"url": "https://moon.example"},
    )
    row = TextRow(**OF_AGENT, block=TextBlock(index=0, text="So.", citations=cites), finish_reason=None)  # type: ignore[arg-type]
    closed = Drawing(100, DARK, NOW_MS).draw(row, is_open=False, heads=False)
    assert ["".join(segment.text for segment in line) for line in closed] == ["So.", "◈ Cites 2 sources"]
    sources = ["Spring tides", "https://tides.example", "“Twice a month.”", "https://moon.example"]
    assert [line.lstrip("│ ") for line in drawn(row).split("\n")[2:]] == sources


def test_who_stopped_a_turn_is_told_apart() -> None:
    people = People(me="owner", client="here")

    def stopped(by: Origin | None) -> str:
        turn = TurnSummary(id="t", outcome="interrupted", ended_at=NOW_MS, stopped="user", by=by)
        row = InterruptedRow(key="k", seq=1, ts=NOW_MS, stopped="user", turn=turn, is_last=False)
        return drawn(row, people)

    assert "Interrupted by you," in stopped(Origin(client="here", user="owner"))
    assert "Interrupted from another client," in stopped(Origin(client="page", user="owner"))
    assert "Interrupted by guest," in stopped(Origin(client="page", user="guest"))
    assert "Interrupted via " in stopped(Origin(face="acp", user="owner"))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"command": "make\nhorn", "exit_code": 2}, "◦ Process ended · make horn · exit 2"),
        ({"command": "make horn", "end": "stopped"}, "◦ Process stopped · make horn"),
        ({"command": "make horn", "end": "restart"}, "◦ Process ended · make horn · ended with the server"),
        (None, "◦ Process ended · Process 7 ended. · ended"),
    ],
)
def test_end_of_a_process_names_its_command_and_not_its_id(data: object, said: str) -> None:
    text = "Process 7 ended.\nIts last lines: none"

    def drawn_lines(is_open: bool) -> list[str]:
        lines = Drawing(80, DARK, NOW_MS).draw(ended(text, data), is_open=is_open, heads=False)
        return ["".join(segment.text for segment in line).strip() for line in lines]

    assert said in drawn_lines(is_open=False)
    assert any("Its last lines: none" in line for line in drawn_lines(is_open=True))


# -- how a call stands


def spoken(row: Row, palette: Palette = DARK, *, is_open: bool = False) -> list[str]:
    lines = Drawing(80, palette, NOW_MS).draw(row, is_open=is_open, heads=False)
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


def colour_of(row: Row, words: str, palette: Palette) -> str:
    """The colour of the part of its first line that begins so."""
    line = Drawing(80, palette, NOW_MS).draw(row, is_open=False, heads=False)[0]
    part = next(segment for segment in line if segment.text.strip(" ·").startswith(words))
    assert part.style is not None
    assert part.style.color is not None
    return part.style.color.name


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=["dark", "light"])
def test_state_of_a_call_is_a_sign_a_word_and_a_colour(palette: Palette) -> None:
    pending = call(status="running", finished_at=None)
    assert spoken(pending, palette) == [f"{PULSE[0]} Running make"]
    assert colour_of(pending, PULSE[0], palette) == palette.ink_faint
    called = call(status="called", started_at=None, finished_at=None)
    assert spoken(called, palette) == [f"{PULSE[0]} Run make · about to start"]
    done = call()
    assert spoken(done, palette) == ["✓ Ran make"]
    assert colour_of(done, "✓", palette) == palette.good
    failed = call(status="error", exit_code=2)
    assert spoken(failed, palette) == ["✗ Ran make · exit 2"]
    assert colour_of(failed, "✗", palette) == palette.bad
    cut = call(status="interrupted")
    assert spoken(cut, palette) == ["◇ Ran make · ⚠ Interrupted"]
    assert colour_of(cut, "⚠", palette) == colour_of(cut, "◇", palette) == palette.wait
    truncated = call(output="a\nb", truncated=True, total_lines=90_000)
    assert spoken(truncated, palette) == ["✓ Ran make · ⚠ Output truncated"]
    assert colour_of(truncated, "⚠", palette) == palette.wait


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=["dark", "light"])
def test_words_between_agents_are_golden(palette: Palette) -> None:
    answer = replace(message("It is **high** tide."), role="event", event_kind="agent_callback")
    told = {"role": "event", "event_kind": "agent_callback", "text": "It is high.", "agent": "pilot"}
    note = NoteRow(**PLACED, **told, message=answer)  # type: ignore[arg-type]
    assert spoken(note, palette) == ["↩ Answer of pilot · It is high."]
    assert colour_of(note, "↩", palette) == palette.gold
    exchange = Exchange(id="e", agent="pilot", conversation="k", status="complete", call="c")
    sent = ToolRow(**OF_AGENT, block=tool(name="agents_message"), exchange=exchange)  # type: ignore[arg-type]
    assert spoken(sent, palette) == ["✓ Wrote to pilot · answered"]
    assert colour_of(sent, "pilot", palette) == palette.gold


def test_long_object_gives_way_to_the_warning_that_its_output_is_cut() -> None:
    row = call(input={"command": "make " * 40}, truncated=True)
    (line,) = spoken(row)
    assert line.endswith("… · ⚠ Output truncated")
    assert cell_len(line) <= 80


def test_summary_of_a_finished_task_stands_in_the_transcript() -> None:
    row = call(name="finish_task", input={"summary": "All **tests** pass.\n\n- one\n- two"}, output="Recorded.")
    assert spoken(row) == ["✓ Finished the task", "│ All tests pass.", "│", "│ • one", "│ • two"]
    running = call(name="finish_task", status="running", input={"summary": "All."}, finished_at=None)
    assert spoken(running) == [f"{PULSE[0]} Finishing the task"]


def test_cursor_stands_at_the_end_of_a_text_only_while_it_is_written() -> None:
    assert spoken(streaming("Half a sen")) == [f"Half a sen{TEXT_CURSOR}"]
    cut = TextRow(**OF_AGENT, block=TextBlock(index=0, text="Half a sen", status="interrupted"), finish_reason=None)  # type: ignore[arg-type]
    assert spoken(cut) == ["Half a sen", "cut off here"]
    full = spoken(streaming("x" * 80))
    assert full == ["x" * 80, TEXT_CURSOR]


def test_work_of_a_turn_in_one_line_keeps_its_numbers_in_a_narrow_terminal() -> None:
    calls = tuple(
        tool(call=f"c{at}", status="error" if at else "ok", name=name) for at, name in enumerate(("read", "shell"))
    )
    row = WorkRow(**OF_AGENT, calls=calls, members=(), hidden=(), is_live=False, duration_ms=12_000)  # type: ignore[arg-type]
    assert spoken(row) == ["▸ Read 1 file, ran 1 command · 1 failed · 2 tool calls · 12 s"]
    assert spoken(row, is_open=True) == ["▾ Read 1 file, ran 1 command · 1 failed · 2 tool calls · 12 s"]
    (narrow,) = Drawing(48, DARK, NOW_MS).draw(row, is_open=False, heads=False)
    assert "".join(part.text for part in narrow) == "▸ Read 1 file,… · 1 failed · 2 tool calls · 12 s"


# -- structured answers


def answered(**fields: object) -> TextRow:
    block = TextBlock(index=0, text=json.dumps(fields))
    return TextRow(**OF_AGENT, block=block, finish_reason=None)  # type: ignore[arg-type]


def test_plan_in_an_answer_is_a_list_of_steps() -> None:
    items = [{"title": "Read", "status": "done"}, {"title": "Write", "description": "one file"}]
    assert spoken(answered(type="plan", summary="Tidy up", items=items)) == [
        "≡ Plan: Tidy up",
        "│ ● Read",
        "│ ○ Write",
        "│   one file",
    ]


def test_task_summary_and_change_report_in_an_answer_are_drawn_as_such() -> None:
    task = answered(
        type="finalize_task", packet={"title": "Export", "summary": "Writes **HTML**.", "user_stories": ["A"]}
    )
    assert spoken(task) == ["✓ Task summary: Export", "│ Writes HTML.", "│ User stories", "│ • A"]
    files = [{"path": "a.py", "summary": "new", "diff": "@@ -0,0 +1 @@\n+x = 1"}, {"path": "b.py"}]
    report = answered(type="change_report", files=files, truncated_count=3)
    assert spoken(report) == ["± Change report", "│ a.py", "│ new", "│ b.py", "│ and 3 more files"]
    assert "│ + x = 1" in spoken(report, is_open=True)


def test_question_in_an_answer_shows_its_options() -> None:
    options = [{"label": "Red", "description": "port"}, "Green"]
    assert spoken(answered(type="ask_user", question="Which light?", options=options)) == [
        "? Which light?",
        "│ 1 Red  port",
        "│ 2 Green",
    ]


def test_other_json_and_json_that_is_still_written_stay_text() -> None:
    assert spoken(answered(type="weather", wind=3)) == ['{"type": "weather", "wind": 3}']
    assert spoken(streaming('{"type": "plan", "summary": "S"}')) == [f'{{"type": "plan", "summary": "S"}}{TEXT_CURSOR}']

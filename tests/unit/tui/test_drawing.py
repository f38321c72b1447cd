"""Rows as lines: nothing hostile leaves, nothing is wider than its column, what was opened shows what is there."""

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
from palaver.tui.drawing import Drawing
from palaver.tui.people import People
from palaver.tui.rows import (
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
)
from palaver.tui.theme import DARK, LIGHT

NOW_MS = 1_760_000_000_000
PLACED = {"key": "k", "seq": 1, "ts": NOW_MS}
OF_AGENT = {**PLACED, "message_id": "m", "is_first": True, "agent": "a", "model": "b", "message_status": "done"}
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


def test_hostile_text_split_at_every_point_is_drawn_as_the_whole() -> None:
    for end in range(1, len(HOSTILE) + 1):
        part = HOSTILE[:end]
        growing = Drawing(60, DARK, NOW_MS)
        growing.draw(streaming(part[: end // 2]), is_open=False, heads=False)
        lines = growing.draw(streaming(part), is_open=False, heads=False)
        whole = TextRow(**OF_AGENT, block=TextBlock(index=0, text=part), finish_reason=None)  # type: ignore[arg-type]
        shown = ["".join(segment.text for segment in line) for line in lines]
        wanted = Drawing(60, DARK, NOW_MS).draw(whole, is_open=False, heads=False)
        assert shown == ["".join(segment.text for segment in line) for line in wanted]


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

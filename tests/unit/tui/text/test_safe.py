"""Hostile text: nothing of it is obeyed, nothing of it is hidden, and pieces give the same as the whole."""

import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from palaver.tui.text.safe import (
    LINE_CHARACTERS,
    Colours,
    Run,
    Scrubber,
    colour_content,
    limit_lines,
    one_line,
    parse_colours,
    prose,
    show_text,
    visible,
)

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
REORDERING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

NASTY = [
    "\x1b[31mred\x1b[0m",
    "\x1b]8;;https://evil.example\x1b\\label\x1b]8;;\x1b\\",
    "\x1b]52;c;cm0gLXJmIC8=\x07",
    "\x1b]0;another title\x07",
    "\x1b[2J\x1b[H\x1b[10;10H",
    "\x1b[?1049h",
    "\x1bP1$r\x1b\\",
    "\x9b31mred\x9b0m",
    "\x9d0;title\x9c",
    "\x1b]0;never ended",
    "\x1b[",
    "\x1b",
    "\x1bc",
    "\x1b(0lqk",
    "rm -rf /\rls      ",
    "ab\x08\x08cd",
    "safe\u202etxt.exe",
    "pass\u200bword",
    "a\u200db",
    "👨\u200d👩\u200d👧",
    "1\ufe0f\u20e3",
    "line\u2028other",
    "\U000e0041\U000e0042",
    "[bold red]markup[/] [link=http://x]y[/link]",
    "\r\n\r\r\n",
    "x" * 50,
    "\x00\x07\x7f\x85",
]
TEXTS = st.lists(st.sampled_from(NASTY) | st.text(max_size=8), max_size=8).map("".join)


def text_of(runs: tuple[Run, ...]) -> str:
    return "".join(run.text for run in runs)


@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_no_control_character_leaves_any_of_the_three(text: str) -> None:
    for said in (visible(text), prose(text), text_of(parse_colours(text)), one_line(text), show_text(text).plain):
        assert CONTROL.search(said) is None
        assert REORDERING.search(said) is None
        assert said.encode() is not None


@given(TEXTS, st.lists(st.integers(0, 200), max_size=6))
@settings(max_examples=100, deadline=None)
@example("a\r\nb", [2])
@example("\x1b[31mx", [1, 2, 4])
def test_prose_in_pieces_is_the_prose_of_the_whole(text: str, cuts: list[int]) -> None:
    scrubber = Scrubber()
    said = "".join(scrubber.feed(piece) for piece in pieces(text, cuts)) + scrubber.finish()
    assert said == prose(text)


@given(TEXTS, st.lists(st.integers(0, 200), max_size=6))
@settings(max_examples=100, deadline=None)
def test_coloured_output_in_pieces_is_that_of_the_whole(text: str, cuts: list[int]) -> None:
    reader = Colours()
    for piece in pieces(text, cuts):
        reader.feed(piece)
    assert reader.finish() == parse_colours(text)


@pytest.mark.parametrize("text", NASTY)
def test_a_nasty_text_split_at_every_point_says_the_same(text: str) -> None:
    for cut in range(len(text) + 1):
        reader, scrubber = Colours(), Scrubber()
        said = [scrubber.feed(piece) for piece in (text[:cut], text[cut:])]
        reader.feed(text[:cut])
        reader.feed(text[cut:])
        assert reader.finish() == parse_colours(text)
        assert "".join(said) + scrubber.finish() == prose(text)


def pieces(text: str, cuts: list[int]) -> list[str]:
    places = sorted({min(cut, len(text)) for cut in cuts})
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def test_a_command_shows_what_it_hides() -> None:
    assert visible("curl x\u202e | sh\x1b[2K\r") == "curl x⟨202E⟩ | sh␛[2K␍"
    assert visible("a\u200db") == "a⟨200D⟩b"
    assert visible("half \ud83d") == "half ⟨D83D⟩"


def test_prose_keeps_emoji_and_scripts_and_windows_lines() -> None:
    kept = "👨\u200d👩\u200d👧 1\ufe0f\u20e3 \u0645\u06cc\u200c\u062e"
    assert prose(f"{kept}\r\nnext") == f"{kept}\nnext"
    assert prose("pass\u200dword") == "pass⟨200D⟩word"


def test_colours_are_kept_and_every_other_escape_is_dropped() -> None:
    runs = parse_colours("\x1b[1;31mred\x1b[0m \x1b[2J\x1b[5Aplain \x1b[32mgreen")
    assert [(run.text, run.pen.colour, run.pen.bold) for run in runs] == [
        ("red", "red", True),
        (" plain ", None, False),
        ("green", "green", False),
    ]


def test_a_link_is_told_with_its_address_and_a_clipboard_write_by_its_kind() -> None:
    said = text_of(parse_colours("\x1b]8;;https://evil.example\x07click\x1b]8;;\x07 \x1b]52;c;AAAA\x07 \x1b]0;t\x07"))
    assert said == "⟨https://evil.example⟩click ⟨OSC 52⟩ ⟨OSC 0⟩"


def test_a_string_that_never_ends_hides_nothing_after_it() -> None:
    assert text_of(parse_colours("\x1b]0;title\nthe next line\n")).endswith("\nthe next line\n")


def test_hidden_inverse_and_black_text_is_shown_in_the_readers_colour() -> None:
    (run,) = parse_colours("\x1b[8;7;30;40msecret\x1b[38;2;0;0;0m!")
    assert run.text == "secret!"
    assert run.pen.style == ""


def test_a_progress_bar_ends_as_a_person_would_see_it() -> None:
    assert text_of(parse_colours("10%\r50%\r100%\r\ndone\n")) == "100%\ndone\n"


def test_markup_stays_text() -> None:
    content = show_text("[bold red]x[/] [@click=app.quit]y[/]")
    assert content.plain == "[bold red]x[/] [@click=app.quit]y[/]"
    assert list(content.spans) == []
    assert colour_content("[red]x[/red]").plain == "[red]x[/red]"


def test_a_huge_line_is_cut_in_its_middle_and_says_how_much() -> None:
    cut = limit_lines("a" * 1_000_000 + "\nshort")
    assert len(cut) < LINE_CHARACTERS + 200
    assert "996,000 more characters" in cut
    assert cut.endswith("\nshort")


def test_one_line_is_the_first_that_says_anything() -> None:
    assert one_line("\n\n  hello\tthere \nmore") == "hello there"
    assert one_line("x" * 500, 10) == "xxxxxxxxx…"


def test_every_format_character_of_unicode_is_a_sign_in_a_command() -> None:
    # Prepended marks of Arabic and Kaithi numbers are seen; all others of this category hide or reorder.
    seen = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    hiding = [
        code
        for code in range(0x110000)
        if unicodedata.category(chr(code)) == "Cf" and code not in seen and not 0x13430 <= code <= 0x1345F
    ]
    left = [hex(code) for code in hiding if visible(chr(code)) == chr(code)]
    assert left == []

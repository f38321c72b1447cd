"""What a terminal remembers between two starts, and that a broken file costs nothing."""

from pathlib import Path

from palaver.tui.local_memory import Remembered
from palaver.tui.theme import DARK_NAME, LIGHT_NAME, suits


def test_what_was_read_and_chosen_is_known_at_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "new" / "terminal.json"
    first = Remembered(path)
    first.mark("a", 7)
    first.mark("b", 9)
    first.choose_theme(LIGHT_NAME)
    again = Remembered(path)
    assert (again.last_read_seq("a"), again.last_read_seq("b"), again.last_read_seq("c")) == (7, 9, None)
    assert (again.theme, again.last_conversation) == (LIGHT_NAME, "b")


def test_broken_file_is_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "terminal.json"
    path.write_text("{")
    assert Remembered(path).last_conversation is None


def test_only_the_latest_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "terminal.json"
    first = Remembered(path)
    for number in range(600):
        first.mark(f"c{number}", number)
    first.save()
    again = Remembered(path)
    assert again.last_read_seq("c0") is None
    assert again.last_read_seq("c599") == 599


def test_theme_suits_the_colours_a_terminal_tells() -> None:
    assert [suits(told) for told in (None, "15;0", "0;15", "12;7", "")] == [
        DARK_NAME,
        DARK_NAME,
        LIGHT_NAME,
        LIGHT_NAME,
        DARK_NAME,
    ]


def test_a_terminal_keeps_its_name_and_does_not_take_one_that_no_header_can_carry(tmp_path: Path) -> None:
    path = tmp_path / "terminal.json"
    name = Remembered(path).client_name
    assert name == Remembered(path).client_name
    path.write_text('{"client": "a\\r\\nb"}')
    assert Remembered(path).client_name not in ("", name, "a\r\nb")

"""Words, numbers and times of the terminal: those the page says too are the same."""

from datetime import datetime
from pathlib import Path

import pytest

from palaver.tui.text import docks, rows, screens, words

PAGE = "".join(
    path.read_text()
    for path in sorted((Path(__file__).parents[4] / "web" / "src").glob("text*.ts"))
    if "test" not in path.name
)
"""What the page says, as it is written down."""

OWN: dict[type, set[str]] = {
    words.Status: set(),
    words.Modes: set(),
    words.Tool: {"UNKNOWN"},
    rows.Work: set(),
    docks.Answered: {"SKIPPED"},
    docks.Approval: {
        "EDIT",
        "EDIT_LABEL",
        "EDIT_SEND",
        "EDIT_BROKEN",
        "EDIT_KIND",
        "MORE",
        "NEXT",
        "ALL_YES",
        "NOT_SHOWN",
    },
    docks.Question: set(),
    docks.PlanRequest: set(),
    docks.Activity: set(),
    screens.Actions: set(),
}
"""What only a terminal says, by where it is written down."""
OWN_ACTIONS = {
    "continue",
    "plan",
    "processes",
    "queue",
    "files",
    "inspector",
    "delete",
    "mode",
    "agent",
    "theme",
    "copy_answer",
    "quit",
    "trust",
}


def ms(*when: int) -> int:
    return int(datetime(*when).astimezone().timestamp() * 1000)  # type: ignore[arg-type]


@pytest.mark.parametrize("group", OWN, ids=lambda group: group.__name__)
def test_what_both_say_is_said_in_the_same_words(group: type) -> None:
    for name, said in vars(group).items():
        if name.startswith("_") or name in OWN[group]:
            continue
        if isinstance(said, str):
            assert said in PAGE, f"{group.__name__}.{name}"
        elif isinstance(said, dict):
            texts = {key: text for key, text in said.items() if key not in OWN_ACTIONS}
            missing = [text for text in texts.values() if isinstance(text, str) and text not in PAGE]
            assert missing == [], f"{group.__name__}.{name}"


def test_durations_are_said_in_the_unit_a_person_would_use() -> None:
    given = [0, 240, 999, 12_300, 60_000, 185_000, 4_320_000]
    said = ["0.1 s", "0.2 s", "1 s", "12 s", "1 min 00 s", "3 min 05 s", "1 h 12 min"]
    assert [words.duration(one) for one in given] == said


def test_a_running_time_shows_whole_seconds_and_never_runs_backwards() -> None:
    assert [words.running_time(one) for one in (-500, 0, 999, 1999, 61_999)] == [
        "0 s",
        "0 s",
        "0 s",
        "1 s",
        "1 min 01 s",
    ]


def test_sizes_tokens_and_money_are_short() -> None:
    assert [words.size(one) for one in (12, 2048, 50_000, 3_500_000)] == ["12 B", "2.0 KB", "49 KB", "3.3 MB"]
    assert [words.tokens(one) for one in (830, 12_400, 250_000, 1_200_000)] == ["830", "12.4k", "250k", "1.2M"]
    assert [words.money(one) for one in (0, 0.001, 1.5)] == ["$0", "< $0.01", "$1.50"]


def test_one_is_singular() -> None:
    assert words.count(1, "file") == "1 file"
    assert words.count(1200, "search", "searches") == "1,200 searches"
    assert [
        words.join_names("a"),
        words.join_names("a", None, "b"),
        words.join_names("a", "b", "c"),
        words.join_names(),
    ] == [
        "a",
        "a and b",
        "a, b and c",
        "",
    ]


def test_days_are_named_from_where_the_reader_is() -> None:
    now = ms(2026, 11, 15, 14)
    assert words.day(ms(2026, 11, 15, 1), now) == "Today"
    assert words.day(ms(2026, 11, 14, 23), now) == "Yesterday"
    assert words.day(ms(2026, 11, 11), now) == "Wednesday"
    assert words.day(ms(2026, 10, 4), now) == "4 October"
    assert words.day(ms(2025, 10, 4), now) == "4 October 2025"
    assert words.ago(now - 4 * 60_000, now) == "4 min"
    assert words.ago(now + 5000, now) == "now"


def test_the_servers_quotes_become_a_persons() -> None:
    assert words.in_typographic_quotes("Run `palaver serve` first.") == "Run “palaver serve” first."

"""Text that grows is drawn as one that came whole, wherever it was cut; and a screen is told at a beat."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.tui.text import markdown
from palaver.tui.text.markdown import Line
from palaver.tui.theme import DARK
from palaver.tui.transcript.live_turn import Beat, GrowingText

FRAGMENTS = st.sampled_from(
    [
        *("# H\n", "words ", "- a\n", "  - b\n", "1. x\n", "\n", "\n\n", "```py\n", "x = 1\n", "```\n", "> q\n"),
        *("| a | b |\n", "|---|---|\n", "| 1 | 2 |\n", "**b**", "`c`", "[l](http://x)", "---\n", "===\n", "    code\n"),
        *(
            "\t",
            "\\",
            "<b>",
            "\r\n",
            "![i](u)",
            "~~s~~",
            "* ",
            "1) ",
            "\x1b[31m",
            "\u202e",
            "é",
            "漢字",
            "[a]: b",
            "***",
        ),
    ]
)


def plain(lines: list[Line]) -> list[str]:
    return ["".join(segment.text for segment in line) for line in lines]


@given(pieces=st.lists(FRAGMENTS, max_size=24), cuts=st.lists(st.integers(1, 6), min_size=1, max_size=8))
@settings(max_examples=150, deadline=None)
def test_growing_text_is_drawn_as_the_whole_at_every_moment(pieces: list[str], cuts: list[int]) -> None:
    text, growing, at, turn = "".join(pieces), GrowingText(40, DARK), 0, 0
    while at < len(text):
        at = min(len(text), at + cuts[turn % len(cuts)])
        turn += 1
        assert plain(growing.draw(text[:at])) == plain(markdown.draw(text[:at], 40, DARK))


def test_text_that_is_no_continuation_begins_anew() -> None:
    growing = GrowingText(40, DARK)
    growing.draw("one\n\ntwo\n\nthree\n")
    assert plain(growing.draw("other")) == ["other"]


async def test_beat_shows_the_first_news_at_once_and_the_rest_together() -> None:
    shown: list[int] = []
    done = asyncio.Event()

    def flush() -> None:
        shown.append(len(shown))
        if len(shown) == 2:
            done.set()

    beat = Beat(flush, beat_s=0.01)
    for _ in range(50):
        beat.news()
    assert shown == [0]
    async with asyncio.timeout(10):
        await done.wait()
    assert shown == [0, 1]
    beat.end()

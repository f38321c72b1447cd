"""Words of others made harmless: nothing hidden leaves, in one piece or in many."""

import re
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.client.safe_text import Scrubber, one_line, plain_output, prose, visible

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b\ufeff\ud800-\udfff]")
ANY = st.text(
    st.characters(exclude_categories=()) | st.sampled_from("\x1b\r\n\u202e\u200d\ufe0f9a#é\U0001d173\U000e0041"),
    max_size=60,
)


@settings(deadline=None)
@given(ANY)
def test_no_control_character_leaves(text: str) -> None:
    for scrub in (visible, prose, plain_output, one_line):
        assert not CONTROL.search(scrub(text))


@settings(deadline=None)
@given(ANY, st.lists(st.integers(0, 60), max_size=6))
def test_text_in_pieces_comes_out_as_the_whole_would(text: str, cuts: list[int]) -> None:
    scrubber = Scrubber()
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(places)]
    out = "".join(scrubber.feed(piece) for piece in pieces) + scrubber.finish()
    assert out == prose(text)


def test_emoji_and_scripts_keep_what_joins_them() -> None:
    family = "👩\u200d👧 क्\u200dष 1\ufe0f⃣"
    assert prose(family) == family
    assert "⟨200D⟩" in prose("a\u200db")


def test_hidden_characters_are_signs() -> None:
    assert visible("a\x1b[0mb\u202ec") == "a␛[0mb⟨202E⟩c"


def test_one_line_is_the_first_that_says_anything_cut_to_its_limit() -> None:
    assert one_line("\n\n  first\tword \nsecond") == "first word"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"

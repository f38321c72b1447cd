"""Hidden and misleading characters as signs: the same table and the same signs as the page's."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.text.hidden_characters import RANGES
from palaver.core.text.visible import HIDDEN, visible

GOLDEN = Path(__file__).parents[3] / "golden" / "texts"
CASES: list[tuple[str, str]] = json.loads((GOLDEN / "visible.json").read_bytes())


@pytest.mark.parametrize(("text", "shown"), CASES)
def test_hidden_characters_are_shown_as_in_every_client(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown


def test_table_is_the_one_that_the_page_has() -> None:
    assert [list(one) for one in RANGES] == json.loads((GOLDEN / "hidden_characters.json").read_bytes())
    assert all(HIDDEN.fullmatch(chr(code)) for first, last in RANGES for code in (first, last))


def test_every_character_of_a_hiding_category_is_a_sign() -> None:
    hiding = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp", "Zs")
    left = [
        hex(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in hiding and chr(code) not in " \n\t" and visible(chr(code)) == chr(code)
    ]
    assert left == []


@given(st.text(st.characters(exclude_categories=())))
def test_visible_text_holds_nothing_hidden_and_stays_as_it_is(text: str) -> None:
    shown = visible(text)
    assert not HIDDEN.search(shown)
    assert visible(shown) == shown


@pytest.mark.parametrize(
    "text", ["if x < 1:\n\treturn 'naïve café, 日本語, 🎉'  # ok\n", "שָׁלוֹם", "Tiê\u0301ng Viê\u0323t"]
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert visible(text) == text

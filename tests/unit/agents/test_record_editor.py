"""Changing one thing of an agent's file: the rest of it stays, byte for byte."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.agents.record_editor import edit_text
from palaver.agents.records import Wrong, fields_of

FILE = """\
---
# Our gardener, by Ada.
name:   The Gardener   # its name
description: 'Digs  and sows'

# What it runs on.
model: small     # cheap
tools: read, list
color: green
environment:
  SOIL: "loam"   # never sand
  DEPTH: "2"
# Who helps it.
mcp_servers:
  shed:
    command: node
    args: [shed.js, --all]   # all of it
    env: {KEY: secret}
allowed_tools:
  # Reading harms nobody.
  - read
  - list  # nor does this
policy:
- {tool: shell, match: "rm *", decision: deny_abort}  # never
---

You are a gardener.

---
Dig deep.
"""


def without(text: str, *gone: str) -> list[str]:
    return [line for line in text.splitlines() if line not in gone]


@pytest.mark.parametrize(
    ("field", "value", "before", "after"),
    [
        ("model", "big", "model: small     # cheap", "model: big       # cheap"),
        ("name", "no", "name:   The Gardener   # its name", 'name: "no"             # its name'),
        ("tools", ["read", "grep"], "tools: read, list", "tools: read, grep"),
        ("environment", {"SOIL": "clay"}, '  SOIL: "loam"   # never sand', '  SOIL: "clay"   # never sand'),
    ],
)
def test_changed_field_changes_its_own_line_alone(field: str, value: Any, before: str, after: str) -> None:
    made = edit_text(FILE, {field: value})
    assert after in made.splitlines()
    assert without(made, after) == without(FILE, before)


def test_field_that_is_taken_out_leaves_the_comments_of_its_neighbours() -> None:
    assert edit_text(FILE, {"model": None}) == FILE.replace("model: small     # cheap\n", "")
    assert edit_text(FILE, {"environment": {"DEPTH": None}}) == FILE.replace('  DEPTH: "2"\n', "")


def test_new_field_is_added_below_the_others() -> None:
    made = edit_text(FILE, {"idle_prompt": "Look for weeds.\nThen rest."})
    assert made == FILE.replace("# never\n---", "# never\nidle_prompt: |-\n  Look for weeds.\n  Then rest.\n---")


def test_list_keeps_the_comments_of_what_stays_in_it() -> None:
    made = edit_text(FILE, {"allowed_tools": ["read", "list", "shell"]})
    assert made == FILE.replace("  - list  # nor does this\n", "  - list  # nor does this\n  - shell\n")


def test_server_among_others_is_changed_alone() -> None:
    made = edit_text(FILE, {"mcp_servers": {"weather": {"url": "https://weather.example"}}})
    assert made == FILE.replace(
        "    env: {KEY: secret}\n", '    env: {KEY: secret}\n  weather:\n    url: "https://weather.example"\n'
    )


def test_what_is_already_so_changes_nothing() -> None:
    same = {"model": "small", "allowed_tools": ["read", "list"], "environment": {"DEPTH": "2"}, "idle_prompt": None}
    assert edit_text(FILE, same) == FILE


def test_other_spelling_of_a_field_stays() -> None:
    made = edit_text("---\nbudget: 1  # dollars\n---\n", {"spend_limit_usd": 2.5})
    assert made == "---\nbudget: 2.5 # dollars\n---\n"


def test_prompt_is_changed_and_the_front_matter_is_not() -> None:
    assert edit_text(FILE, {}, "Be brief.") == FILE.partition("\nYou are")[0] + "Be brief.\n"


def test_file_without_front_matter_gets_some() -> None:
    assert edit_text("Be brief.\n", {"name": "X"}) == "---\nname: X\n---\nBe brief.\n"
    assert edit_text("---\n# Only this.\n---\nBe brief.\n", {"name": "X"}) == (
        "---\n# Only this.\nname: X\n---\nBe brief.\n"
    )


def test_line_ends_of_another_system_stay() -> None:
    made = edit_text("---\r\nname: X\r\nmodel: a\r\n---\r\nHi\r\n", {"model": "b", "mode": "plan"})
    assert made == "---\r\nname: X\r\nmodel: b\r\nmode: plan\r\n---\r\nHi\r\n"


def test_front_matter_in_braces_is_changed_too() -> None:
    assert edit_text("---\n{name: X, model: a}\n---\n", {"model": "b"}) == "---\n{name: X, model: b}\n---\n"


def test_file_that_cannot_be_read_is_not_changed() -> None:
    with pytest.raises(Wrong, match="no YAML"):
        edit_text("---\nname: [a\n---\n", {"name": "X"})


def typed(min_size: int = 0, max_size: int = 12) -> st.SearchStrategy[str]:
    """What a person could type: the rest is refused before it comes here."""
    letters = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn"], exclude_characters="\ufeff")
    return st.text(
        st.one_of(letters, st.sampled_from("\n\t :#-?[]{},&*!|>'\"%@`~=\\")), min_size=min_size, max_size=max_size
    )


@settings(deadline=None, max_examples=30)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "description": typed(max_size=40),
            "idle_prompt": typed(max_size=40),
            "environment": st.dictionaries(typed(min_size=1, max_size=8), typed(max_size=12), min_size=1, max_size=3),
            "model": typed(min_size=1, max_size=10),
            "fallbacks": st.lists(typed(min_size=1, max_size=10), min_size=1, max_size=3),
            "spend_limit_usd": st.floats(min_value=0, max_value=1e6),
        },
    )
)
def test_any_value_is_read_as_it_was_written(fields: dict[str, Any]) -> None:
    """Whatever looks like another type, a comment or a list, in a new file and in one that has something there."""
    for text in ("", FILE):
        found, _ = fields_of(edit_text(text, fields))
        for name, value in fields.items():
            match name:
                case "model":
                    assert found[name] == (None if value.strip() in ("", "inherit") else value.strip())
                case "fallbacks":
                    assert list(found[name]) == value
                case "environment":
                    assert found[name].items() >= value.items()
                case _:
                    assert found[name] == value

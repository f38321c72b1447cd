"""Secrets taken out of settings files."""

import tomllib

import pytest

from palaver.agents.front_matter import load_front_matter
from palaver.agents.settings_secrets import PLACEHOLDER, without_secrets

RECORD = """---
name: Ada  # the first
environment:
  LEVEL: "3"
  SECRET_WORD: xyzzy plugh
mcp_servers:
  - name: tickets
    url: https://tickets.example/mcp
    headers: {Authorization: "Bearer sk-0123456789", X-Team: 'blue'}
---
LEVEL: "3" stays in the prompt.
"""


def test_record_keeps_everything_but_its_values() -> None:
    found = without_secrets("agents/ada.md", RECORD)
    assert found is not None
    text, count = found
    assert count == 4
    assert "# the first" in text
    for secret in ("sk-0123456789", "xyzzy", "blue"):
        assert secret not in text
    record = load_front_matter(text.split("---")[1])
    assert set(record["mcp_servers"][0]["headers"].values()) == {PLACEHOLDER}
    assert record["environment"] == {"LEVEL": PLACEHOLDER, "SECRET_WORD": PLACEHOLDER}
    assert record["mcp_servers"][0]["url"] == "https://tickets.example/mcp"


def test_toml_keeps_everything_but_its_values() -> None:
    text = 'port = 9000\n[providers.mine]\napi_key = "sk-abcdefgh"  # mine\nheaders = { "x-team" = "blue", y = "1" }\n'
    found = without_secrets("palaver.toml", text)
    assert found is not None
    parsed = tomllib.loads(found[0])
    assert parsed["port"] == 9000
    assert parsed["providers"]["mine"] == {"api_key": PLACEHOLDER, "headers": {"x-team": PLACEHOLDER, "y": PLACEHOLDER}}
    assert "# mine" in found[0]


@pytest.mark.parametrize("text", ["", "No front matter.", "---\nname: Ada\n---\nHello.\n"])
def test_file_without_secrets_is_as_it_was(text: str) -> None:
    assert without_secrets("agents/a.md", text) == (text, 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("agents/a.md", "---\n: [broken\n---\n"),
        ("agents/a.md", "---\nenvironment:\n  KEY: >\n    folded over\n    two lines\n---\n"),
        ("agents/a.md", '---\nenvironment: {KEY: "a\\u0062cdefghij"}\n---\n'),
        ("agents/a.md", "---\nenvironment: {KEY: sk-0123456789}\n---\nUse sk-0123456789 there.\n"),
        ("palaver.toml", "broken = ["),
        ("palaver.toml", '[providers.x]\napi_key = """\nsk-0123456789"""\n'),
    ],
)
def test_what_cannot_surely_be_taken_out_is_refused(name: str, text: str) -> None:
    assert without_secrets(name, text) is None

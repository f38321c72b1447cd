"""Secrets taken out of settings files."""

import tomllib

import pytest

from palaver.agents.front_matter import load_front_matter
from palaver.agents.settings_secrets import PLACEHOLDER, Struck
from palaver.agents.settings_secrets import without_secrets as strike
from palaver.tools.redact import Redactor

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


def without_secrets(name: str, text: str) -> Struck | None:
    return strike(name, text, Redactor({}))


def test_record_keeps_everything_but_its_values() -> None:
    found = without_secrets("agents/ada.md", RECORD)
    assert found is not None
    text = found.text
    assert found.fields == (
        "environment.LEVEL",
        "environment.SECRET_WORD",
        "mcp_servers[0].headers.Authorization",
        "mcp_servers[0].headers.X-Team",
    )
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
    parsed = tomllib.loads(found.text)
    assert parsed["port"] == 9000
    assert parsed["providers"]["mine"] == {"api_key": PLACEHOLDER, "headers": {"x-team": PLACEHOLDER, "y": PLACEHOLDER}}
    assert "# mine" in found.text


@pytest.mark.parametrize("text", ["", "No front matter.", "---\nname: Ada\n---\nHello.\n"])
def test_file_without_secrets_is_as_it_was(text: str) -> None:
    assert without_secrets("agents/a.md", text) == Struck(text, ())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("agents/a.md", "---\n: [broken\n---\n"),
        ("palaver.toml", "broken = ["),
        ("palaver.toml", "pin = 123456"),
        ("palaver.toml", '[providers.x]\nkind = "openai-completions"\napi_key = "openai-completions"'),
        ("agents/a.txt", "anything"),
        ("agents/a.md.bak", "---\nname: Ada\n---\n"),
    ],
)
def test_what_cannot_surely_be_taken_out_is_refused(name: str, text: str) -> None:
    assert without_secrets(name, text) is None


SECRET = "canary over\u00e4-5f2d71c0"
FORMS = {
    "folded": "---\nenvironment:\n  KEY: >\n    canary\n    over\u00e4-5f2d71c0\nname: A\n---\n",
    "literal": "---\nenvironment:\n  KEY: |\n    canary over\u00e4-5f2d71c0\n\nname: A\n---\n",
    "escaped": '---\nenvironment: {KEY: "c\\u0061nary over\\xe4-5f2d71c0"}\nname: A\n---\n',
    "single quotes": "---\nenvironment: {KEY: 'canary over\u00e4-5f2d71c0'}\nname: A\n---\n",
    "plain over lines": "---\nenvironment:\n  KEY: canary\n    over\u00e4-5f2d71c0\nname: A\n---\n",
    "in the prompt too": "---\nenvironment: {KEY: canary over\u00e4-5f2d71c0}\nname: A\n---\nUse canary over\u00e4-5f2d71c0.\n",
    "in a comment too": "---\nenvironment: {KEY: canary over\u00e4-5f2d71c0} # canary over\u00e4-5f2d71c0\nname: A\n---\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_value_is_taken_out_of_every_form_of_text(form: str) -> None:
    found = without_secrets("agents/a.md", FORMS[form])
    assert found is not None
    assert "5f2d71c0" not in found.text
    assert load_front_matter(found.text.split("---\n")[1]) == {"environment": {"KEY": PLACEHOLDER}, "name": "A"}


@pytest.mark.parametrize("quote", ['"{0}"', "'{0}'", '"""\n{0}"""', "'''{0}'''"])
def test_value_is_taken_out_of_every_form_of_toml(quote: str) -> None:
    text = f"[providers.x]\nkind = 'openai'\napi_key = {quote.format(SECRET)}  # not {SECRET}\n"
    found = without_secrets("palaver.toml", text)
    assert found is not None
    assert "5f2d71c0" not in found.text
    assert tomllib.loads(found.text) == {"providers": {"x": {"kind": "openai", "api_key": PLACEHOLDER}}}


ORDINARY = [
    "command: [npx, -y, '@modelcontextprotocol/server-github', --root, /home/ada/garden-2024]",
    "command: [uvx, mcp-server-git==2024.11.5, --repository, ., --port=8080, --log-level, debug]",
    "command: docker run -i --rm -e GITHUB_TOKEN ghcr.io/github/github-mcp-server:v1.2",
    "command: [python3, -m, tools.server, --config, settings/local.yaml]",
    "model: claude-sonnet-4-5-20250929",
    "tools: read, write\nallowed_tools: [read]",
    "policy:\n  - {tool: shell, decision: ask, match: 'git push*'}",
    "params: {temperature: 0.2, max_tokens: 64000, reasoning_effort: high}",
    "mcp_servers:\n  docs: {url: 'https://docs.example:8443/v1/mcp?version=2', trusted: true}",
    "description: 'Waters #1: the garden'  # with a remark\nspend_limit_usd: 2.5\ntags: [a, b]",
    "x-seen: 3\nx-on: true\nmetadata: {count: 12}",
]


@pytest.mark.parametrize("front", ORDINARY)
def test_ordinary_settings_are_kept(front: str) -> None:
    text = f"---\n{front}\n---\nHello.\n"
    assert without_secrets("agents/a.md", text) == Struck(text, ())


def test_ordinary_server_settings_are_kept() -> None:
    text = """# mine
host = "127.0.0.1"
port = 8420
public_hosts = ["palaver.example"]
tls_key = "/etc/palaver/tls-key-2026.pem"

[[policy]]
tool = "shell"
decision = "deny_continue"
match = "*rm -rf*"

[providers."local.one"]
kind = "openai"
base_url = "http://127.0.0.1:11434/v1?api-version=2024-06-01"
api_key_env = "LOCAL_KEY"
models = ["qwen3:8b", "llama-3.3-70b"]
"""
    assert without_secrets("palaver.toml", text) == Struck(text, ())

"""Secrets in a backup: a copy that travels must not carry the keys of model services and MCP servers unasked."""

import json
import tomllib
from pathlib import Path

import pytest

from palaver.agents.front_matter import load_front_matter
from palaver.log.sqlite.store import open_sqlite_log
from tests.flows.terminal import palaver

pytestmark = pytest.mark.anyio

CANARY = "canary-5f2d71c0"
RECORD = f"""---
name: Ada
environment: {{TICKETS_KEY: {CANARY}-environment}}
mcp_servers:
  - name: tickets
    url: https://tickets.example/mcp
    headers:
      Authorization: "Bearer {CANARY}-header"
---
Be kind.
"""
SETTINGS = f'''port = 9000
[providers.mine]
kind = "openai"
base_url = "http://127.0.0.1:1/v1"
api_key = "{CANARY}-key"
headers = {{ "x-key" = "{CANARY}-provider" }}
'''


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    directory = tmp_path / "data"
    async with open_sqlite_log(directory):
        pass
    (directory / "agents").mkdir()
    (directory / "agents" / "ada.md").write_text(RECORD)
    (directory / "agents" / "broken.md").write_text(f"---\n: [{CANARY}\n---\n")
    (directory / "palaver.toml").write_text(SETTINGS)
    (directory / "token").write_text(f"{CANARY}-token\n")
    (directory / "palaver.toml").chmod(0o644)
    return directory


def holding(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and CANARY.encode() in path.read_bytes()
    }


async def test_backup_holds_no_secret_of_the_settings(data: Path, tmp_path: Path) -> None:
    code, out, err = await palaver(data, "backup", str(tmp_path / "copy"))
    assert code == 0, err
    assert holding(tmp_path / "copy") == set()
    assert "left out of palaver.toml, agents/ada.md" in err
    assert "agents/broken.md" in err
    assert CANARY not in out + err
    assert "Be kind." in (tmp_path / "copy" / "agents" / "ada.md").read_text()


LEAKY = """---
name: Leaky
backend: api
# token: CANARY-comment-11122233344
command: ["node", "srv.js", "--header", "X-Api-Key: CANARY", "--token=CANARY", "-u", "ada:CANARY", "API_KEY=CANARY"]
mcp_servers:
  - name: one
    url: https://user:CANARY@h.example/mcp/s/CANARY-path-11122233344/x?key=CANARY&version=2#CANARY
    headers: {X-Thing: CANARY}
  - name: two
    command: ["npx", "srv", "--api-key", "CANARY", "CANARY-random-11122233344", "https://h.example/?sig=CANARY"]
    env: {FOO: CANARY}
    auth: {kind: CANARY}
  - {name: three, "headers": {"x-y": CANARY}, url: "https://CANARY@h.example"}
params: {extra_headers: {Authorization: CANARY}, temperature: 0.5, api_base: "https://h.example/CANARY"}
x-headers: {a: CANARY}
x-list: [CANARY, [CANARY, {deep: CANARY}]]
metadata:
  CI: |
    CANARY
    and more
policy:
  - {tool: shell, decision: ask, match: "curl --token CANARY-random-11122233344"}
---
Use api_key=CANARY-prompt-11122233344, and what X-Thing is: CANARY.
"""
LEAKY_SETTINGS = '''
# api_key = "CANARY"
port = 9000
[providers.p]
kind = "openai"
base_url = "https://u:CANARY@h.example/v1?api-version=1&key=CANARY"
api_key = "CANARY"
headers = { "X-A" = "CANARY" }
organization = "CANARY"
[providers.p.headers2]
y = "CANARY"
z = ["CANARY", { w = """
CANARY""" }]
[unknown]
a.b."c d" = \'CANARY\'
'''


async def test_no_form_of_a_secret_is_in_a_backup(data: Path, tmp_path: Path) -> None:
    (data / "agents" / "leaky.md").write_text(LEAKY.replace("CANARY", CANARY))
    (data / "agents" / "leaky.md.bak").write_text(LEAKY.replace("CANARY", CANARY))
    (data / "palaver.toml").write_text(LEAKY_SETTINGS.replace("CANARY", CANARY))
    code, out, err = await palaver(data, "backup", str(tmp_path / "copy"), "--json")
    assert code == 0, err
    assert holding(tmp_path / "copy") == set()
    assert CANARY not in out + err
    said = json.loads(out)
    assert said["left_out"] == ["agents/broken.md", "agents/leaky.md.bak"]
    assert said["without_secrets"] == ["palaver.toml", "agents/ada.md", "agents/leaky.md"]
    fields = said["fields"]["agents/leaky.md"]
    assert {"command[3]", "mcp_servers[0].url", "x-headers.a", "params.extra_headers.Authorization", "prompt"} <= set(
        fields
    )
    assert {"providers.p.base_url", "providers.p.headers2.y", "unknown.a.b.c d"} <= set(said["fields"]["palaver.toml"])
    settings = tomllib.loads((tmp_path / "copy" / "palaver.toml").read_text())
    assert (settings["port"], settings["providers"]["p"]["kind"]) == (9000, "openai")
    front = load_front_matter((tmp_path / "copy" / "agents" / "leaky.md").read_text().split("---\n")[1])
    assert (front["name"], front["command"][:3], front["params"]["temperature"]) == (
        "Leaky",
        ["node", "srv.js", "--header"],
        0.5,
    )
    assert [server["name"] for server in front["mcp_servers"]] == ["one", "two", "three"]
    assert front["mcp_servers"][0]["url"].startswith("https://left-out-of-the-backup@h.example/mcp/s/")


async def test_backup_says_which_fields_are_left_out(data: Path, tmp_path: Path) -> None:
    _, _, err = await palaver(data, "backup", str(tmp_path / "copy"))
    assert "palaver.toml: providers.mine.api_key, providers.mine.headers.x-key" in err
    assert "agents/ada.md: environment.TICKETS_KEY, mcp_servers[0].headers.Authorization" in err


async def test_backup_with_secrets_says_so_and_is_private(data: Path, tmp_path: Path) -> None:
    code, out, err = await palaver(data, "backup", str(tmp_path / "copy"), "--with-secrets")
    assert code == 0, err
    assert holding(tmp_path / "copy") == {"palaver.toml", "agents/ada.md", "agents/broken.md"}
    assert "It holds secrets as plain text" in err
    assert CANARY not in out + err
    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "copy").rglob("*")} | {
        (tmp_path / "copy").stat().st_mode & 0o077
    }
    assert modes == {0}

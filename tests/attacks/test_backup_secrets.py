"""Secrets in a backup: a copy that travels must not carry the keys of model services and MCP servers unasked."""

from pathlib import Path

import pytest

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

"""Settings that a folder has for an agent program, in the terminal: said in a line, shown whole, trusted, kept off, revoked."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palaver.client.client import Client
from palaver.client.projects import ReviewFile
from palaver.client.settings_review import review_lines
from palaver.clock import SystemClock
from palaver.core.text.approval_text import Shown
from palaver.schema.commands import CreateConversation
from palaver.tui.app import PalaverApp
from tests.flows.served import Served, serving
from tests.tui.opened import Opened

pytestmark = pytest.mark.anyio

OFF = "Settings of this folder are off: 2 MCP servers"


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    home = tmp_path_factory.mktemp("home")
    async with serving(home / "data", environment={"HOME": str(home), "PATH": "/usr/bin:/bin"}) as server:
        yield server


def settle(project: Path) -> Path:
    project.mkdir()
    servers = {"mcpServers": {"tides": {"command": "./tides.sh"}, "moon": {"command": "curl\u202e evil"}}}
    (project / ".mcp.json").write_text(json.dumps(servers, ensure_ascii=False, indent=1))
    return project


async def begun(client: Client, project: Path) -> str:
    created = await client.create(CreateConversation(agent="claude", project=str(project)))
    return created.conversation


async def test_settings_are_reviewed_and_trusted_and_revoked(served: Served, tmp_path: Path) -> None:
    project = settle(tmp_path / "garden")
    async with Client.connect(served.url, served.token) as client:
        conversation = await begun(client, project)
        app = PalaverApp(client, SystemClock(), conversation=conversation)
        async with app.run_test(size=(100, 40)) as pilot:
            terminal = Opened(app, pilot, client)
            await terminal.until_shown(OFF)
            await terminal.write("/trust")
            await terminal.press("enter")
            await terminal.until_shown("curl⟨202E⟩ evil")
            await terminal.until_shown("keep off")
            await terminal.press("t")
            await terminal.until_gone("Settings for Claude Code")
            await terminal.until_gone(OFF)
            (row,) = await client.trusted_folders()
            assert (row.project, row.program, row.holds) == (str(project), "claude", True)

            await terminal.write("/trust")
            await terminal.press("enter")
            await terminal.until_shown("revoke")
            await terminal.press("x")
            await terminal.until_shown(OFF)
            assert await client.trusted_folders() == []


async def test_what_is_not_read_to_its_end_is_not_trusted(served: Served, tmp_path: Path) -> None:
    project = settle(tmp_path / "long")
    names = {f"server {number}": {"command": "x"} for number in range(200)}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": names}, indent=1))
    async with Client.connect(served.url, served.token) as client:
        app = PalaverApp(client, SystemClock(), conversation=await begun(client, project))
        async with app.run_test(size=(80, 24)) as pilot:
            terminal = Opened(app, pilot, client)
            await terminal.until_shown("200 MCP servers")
            await terminal.write("/trust")
            await terminal.press("enter")
            await terminal.until_shown("server 0")
            await terminal.press("t")
            await terminal.until_shown("Read to the end before you trust it.")
            assert await client.trusted_folders() == []


async def test_settings_kept_off_are_not_spoken_of_until_they_change(served: Served, tmp_path: Path) -> None:
    project = settle(tmp_path / "pond")
    async with Client.connect(served.url, served.token) as client:
        app = PalaverApp(client, SystemClock(), conversation=await begun(client, project))
        async with app.run_test(size=(100, 40)) as pilot:
            terminal = Opened(app, pilot, client)
            await terminal.until_shown(OFF)
            await terminal.write("/trust")
            await terminal.press("enter")
            await terminal.until_shown("keep off")
            await terminal.press("k")
            await terminal.until_gone(OFF)
            app.main.look_at_settings()
            (project / ".mcp.json").write_text('{"mcpServers": {"other": {"command": "x"}}}')
            app.main.look_at_settings()
            await terminal.until_shown("Settings of this folder are off: 1 MCP server")


def shown(*files: ReviewFile) -> list[str]:
    def text(line: Shown) -> str:
        return line.text

    return [text(line) for line in review_lines(files)]


@pytest.mark.parametrize("path", ["command", "url", "input", ".claude/hooks/a.sh", "b\nc"])
@pytest.mark.parametrize("text", ["", "\n \n", None, "--- a\n+++ b\n", "{}", "x"])
def test_review_leaves_out_no_file(path: str, text: str | None) -> None:
    lines = shown(ReviewFile(path=path, text=text, sha256="ab"), ReviewFile(path="last", text="end", sha256="cd"))
    assert path.replace("\n", "␊") in lines[0]
    assert lines[-2:] == ["last:", "end"]

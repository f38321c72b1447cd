"""Arguments that colour or hide what a command says of them: people paste names that others chose.

A terminal is shown no colour and no invisible character that came in as an argument.
"""

import asyncio
from pathlib import Path

import pytest

from tests.flows.served import serving
from tests.flows.terminal import in_terminal

pytestmark = pytest.mark.anyio

COLOUR = "\x1b[38;5;16m"
INVISIBLE = ("\u200b", "\u3164", "\u202e", "\u2060")
ODD = f"{COLOUR}HIDDEN\x1b[0m{''.join(INVISIBLE)}"
COMMANDS = {
    "search": ("search", ODD),
    "search, several words": ("search", "one", ODD),
    "search, within": ("search", "one", "-c", ODD),
    "show": ("show", ODD),
    "agents show": ("agents", "show", ODD),
    "export": ("export", ODD),
    "export, json": ("export", ODD, "--json"),
    "import": ("import", f"{ODD}.json"),
    "send": ("send", "x", "--image", f"{ODD}.png"),
    "list": ("list", "--folder", ODD),
    "projects settings": ("projects", "settings", ODD),
}


@pytest.mark.parametrize("command", COMMANDS)
async def test_argument_is_shown_as_it_is(command: str, tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        await check(tmp_path / "data", *COMMANDS[command], "--url", server.url)


@pytest.mark.parametrize("command", ["verify", "salvage", "backup"])
async def test_folder_is_shown_as_it_is(command: str, tmp_path: Path) -> None:
    data = tmp_path / ODD
    arguments = {"verify": ("--data", str(data)), "salvage": (str(data),), "backup": (str(data / "x"),)}
    async with serving(tmp_path / "data"):
        await check(tmp_path / "data", command, *arguments[command])


async def check(data: Path, *arguments: str) -> None:
    async with in_terminal(data, *arguments) as terminal:
        async with asyncio.timeout(60):
            await terminal.ended()
        assert COLOUR not in terminal.shown
        assert [char for char in INVISIBLE if char in terminal.shown] == []
        assert terminal.shown.strip()

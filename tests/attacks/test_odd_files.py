"""Odd files given to the command line: each is refused in a sentence, never with a traceback, and never without end."""

import asyncio
import os
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.flows.served import serving
from tests.flows.terminal import palaver

pytestmark = pytest.mark.anyio

KINDS = ("folder", "loop", "missing", "device", "sparse", "socket", "not utf-8", "bytes", "empty")


def odd_file(folder: Path, kind: str) -> Path:
    path = folder / f"{kind.replace(' ', '-')}.md"
    match kind:
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path.name)
        case "device":
            path.symlink_to("/dev/zero")
        case "sparse":
            with path.open("wb") as file:
                file.truncate(1 << 40)
        case "socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(path))
        case "not utf-8":
            path = Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe.md"))
            path.write_text("")
        case "bytes":
            path.write_bytes(b"\x00\xff\xfe")
        case "empty":
            path.write_bytes(b"")
        case _:
            pass
    return path


@pytest.fixture(params=KINDS)
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return odd_file(tmp_path, request.param)


async def test_odd_file_to_import_or_attach_is_refused_in_a_sentence(tmp_path: Path, odd: Path) -> None:
    data = tmp_path / "data"
    async with serving(data) as server:
        # An empty folder holds nothing to import, which is no mistake.
        for arguments in (("import", str(odd)), ("send", "--image", str(odd), "Hello")):
            code, said, complained = await palaver(data, *arguments, PALAVER_URL=server.url)
            assert code != 0 or (odd.name == "folder.md" and arguments[0] == "import"), (said, complained)
            assert "Traceback" not in said + complained
            assert complained.strip() or code == 0


@pytest.mark.parametrize("name", ["palaver.toml", "tokens.json", "token"])
@pytest.mark.parametrize("content", ["folder", "loop", "bytes", "deep", "number"])
async def test_odd_file_in_the_data_directory_is_refused_in_a_sentence(tmp_path: Path, name: str, content: str) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    path = data / name
    match content:
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(name)
        case "bytes":
            path.write_bytes(b"\xff\xfe\x00\x80")
        case "deep":
            path.write_bytes(b"a = " * name.endswith("toml") + b"[" * 50_000)
        case _:
            path.write_bytes(b"a = " * name.endswith("toml") + b"9" * 50_000)
    # A server reads its settings before anything else, and does not start with these.
    start = [("serve", "--no-open")] if name == "palaver.toml" else []
    for arguments in (*start, ("doctor",), ("list",), ("token", "list")):
        _, said, complained = await palaver(data, *arguments)
        assert "Traceback" not in said + complained, (arguments, complained[-800:])


SETTINGS = ("palaver.toml", "token", "tokens.json", "grants.json", "agents/x.md")
OTHERS = ("trusted.json", "folders.json", "server.json", "signed_out", "quote.key", "terminal.json")
"""Files that a server or the terminal keeps."""
COMMANDS = (("doctor",), ("list",), ("token", "list"), ("verify",), ("agents", "list"))
ODD_KINDS = ("pipe", "folder", "socket", "endless device", "unreadable", "sparse", "bad UTF-8")
WAITS = ("pipe", "endless device", "sparse")
"""Kinds that a plain reader would wait for, or fill the memory with."""


def settings_file(data: Path, name: str, kind: str) -> None:
    path = data / name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(path))
        case "endless device":
            path.symlink_to("/dev/zero")
        case "unreadable":
            path.write_text("x")
            path.chmod(0)
        case "sparse":
            with path.open("wb") as file:
                file.truncate(1 << 40)
        case _:
            path.write_bytes(b"\xff\xfe\x00\x80\n")


async def check_commands(folder: Path, name: str, kind: str, commands: Sequence[tuple[str, ...]]) -> None:
    data = folder / kind.replace(" ", "-")
    data.mkdir(mode=0o700)
    settings_file(data, name, kind)
    for arguments in commands:
        _, said, complained = await palaver(data, *arguments)
        assert "Traceback" not in said + complained, (name, kind, arguments, complained[-800:])


@pytest.mark.parametrize("name", SETTINGS)
async def test_no_command_waits_for_a_settings_file(tmp_path: Path, name: str) -> None:
    own = {"tokens.json": ("token", "list"), "token": ("list",), "agents/x.md": ("agents", "list")}
    commands = dict.fromkeys((("doctor",), own.get(name, ("list",))))
    await asyncio.gather(*(check_commands(tmp_path, name, kind, tuple(commands)) for kind in WAITS))


@pytest.mark.long
@pytest.mark.parametrize("kind", ODD_KINDS)
@pytest.mark.parametrize("name", [*SETTINGS, *OTHERS])
async def test_every_command_bears_every_odd_file(tmp_path: Path, name: str, kind: str) -> None:
    await check_commands(tmp_path, name, kind, COMMANDS)


@pytest.mark.parametrize("kind", ODD_KINDS)
async def test_server_starts_beside_odd_files_of_its_own(tmp_path: Path, kind: str) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    for name in ("grants.json", "trusted.json", "folders.json", "signed_out", "quote.key", "agents/x.md"):
        settings_file(data, name, kind)
    async with serving(data) as server:
        assert (await server.http.get("/api/conversations")).status_code == 200

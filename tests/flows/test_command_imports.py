"""What a command has imported when it ends. A command is mostly imports, and most people wait for `list`, `send` and `show`."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.flows.served import Served
from tests.flows.test_serve_imports import START_S, WHAT_TO_DO, packages

pytestmark = pytest.mark.anyio

OF_EVERY_COMMAND = frozenset({"typer", "annotated_doc", "shellingham"})
OF_A_CLIENT = OF_EVERY_COMMAND | {"msgspec", "typing_extensions", "httptools", "cython_runtime"}

COMMANDS = {
    "--version": (["--version"], frozenset[str]()),
    "--help": (["--help"], OF_EVERY_COMMAND),
    "list": (["list"], OF_A_CLIENT),
    "send": (["send", "--no-wait", "hello"], OF_A_CLIENT),
    "show": (["show", "last"], OF_A_CLIENT),
}
"""Arguments, and the packages of others that the command may have imported at its end."""

COUNTED = """
import atexit, sys
atexit.register(lambda: print("LOADED", *sys.modules, file=sys.stderr))
from palaver.cli.main import main
main()
"""

SERVER_SIDE = ("palaver.log", "palaver.conversation", "palaver.faces", "palaver.backends", "palaver.tui")


@pytest.mark.parametrize("name", COMMANDS)
async def test_command_imports_no_more_than_it_needs(shared: Served, tmp_path: Path, name: str) -> None:
    await shared.create(message="hello")
    arguments, allowed = COMMANDS[name]
    environment = {"PALAVER_URL": shared.url, "PALAVER_TOKEN": shared.token, "PALAVER_DATA": str(tmp_path)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", COUNTED, *arguments),
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(START_S):
        _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    modules = set(errors.decode().splitlines()[-1].split()[1:])
    more = sorted(name for name in packages(modules) - allowed if not name.startswith("_"))
    assert not more, f"`palaver {name}` imports {', '.join(more)}. {WHAT_TO_DO}"
    assert not [module for module in modules if module.startswith(SERVER_SIDE)]

"""`palaver tui`: talk in the terminal. Finds the server, or starts one in the background, and hands over to the app.

Reads the environment for it: where the data lies, which server, which theme the terminal suits. Needs the extra `[tui]`,
and says so.
"""

import asyncio
import gc
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from palaver.cli.support import resolve_id
from palaver.cli.support.connection import Server, complain, fail, server_address
from palaver.cli.support.exits import Exit
from palaver.cli.support.options import Data, MaybeConversation, Token, Url
from palaver.clock import SystemClock
from palaver.errors import ConfigurationError, PalaverError

if TYPE_CHECKING:
    from palaver.tui.start import StartedServer

EXAMPLES = ("palaver", "palaver tui last", "palaver tui --theme light", "palaver tui --url https://palaver.example")
MISSING = "The terminal UI is not installed. Install it with: pip install 'palaver[tui]'"


def tui(
    conversation: MaybeConversation = None,
    url: Url = None,
    data: Data = None,
    token: Token = None,
    theme: Annotated[
        Literal["auto", "dark", "light"] | None, typer.Option(help="Colours. [default: as chosen last, else auto]")
    ] = None,
    keep_server: Annotated[
        bool, typer.Option("--keep-server", help="A server started here goes on when you leave, unasked.")
    ] = False,
) -> None:
    """Talk in the terminal. Starts a server in the background when none runs.

    Leaving asks whether a server that was started so shall go on; closing the terminal leaves it running.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        complain("The terminal UI needs a terminal. In scripts and pipes use `palaver send`.")
        raise typer.Exit(Exit.FAILED)
    if find_spec("textual") is None:
        complain(MISSING)
        raise typer.Exit(Exit.FAILED)
    try:
        asyncio.run(_run(conversation, Server(data, url, token), theme, keep_server))
    except PalaverError as failure:
        raise fail(failure) from None
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None


async def _run(conversation: str | None, server: Server, theme: str | None, keep: bool) -> None:
    from palaver.client.client import Client

    address, started = await _server(server.directory, server.url)

    from palaver.tui.app import PalaverApp
    from palaver.tui.local_memory import Remembered
    from palaver.tui.theme import DARK_NAME, LIGHT_NAME, suits

    # What is there now stays: it is never looked through for garbage, which would make the screen stand still.
    gc.freeze()
    remembered = Remembered(server.directory / "terminal.json")
    chosen = {"dark": DARK_NAME, "light": LIGHT_NAME, None: remembered.theme}.get(theme)
    async with Client.connect(address, server.key(), name=remembered.client_name) as client:
        app = PalaverApp(
            client,
            SystemClock(),
            conversation=await resolve_id.conversation(client, conversation) if conversation else None,
            remembered=remembered,
            theme=chosen or suits(os.environ.get("COLORFGBG")),
            stop_server=started.stop if started and not keep else None,
        )
        await app.run_async()


async def _server(directory: Path, url: str | None) -> "tuple[str, StartedServer | None]":
    """Where the server is. One that was named must be there; else one is started."""
    from palaver.tui.start import is_served, start_server

    address = server_address(directory, url)
    if await is_served(address):
        return address, None
    if url or os.environ.get("PALAVER_URL"):
        raise ConfigurationError(f"No Palaver answers at {address}. Start it there, or leave out --url.")
    print("Starting the server …", file=sys.stderr)
    command = [sys.executable, "-P", "-m", "palaver", "serve", "--no-open", "--data", str(directory)]
    started = await start_server(
        command, directory / "server.log", lambda: server_address(directory, None), meanwhile=_import_app
    )
    return started.url, started


def _import_app() -> None:
    """Takes about as long as a server takes to start."""
    import palaver.tui.app  # noqa: F401

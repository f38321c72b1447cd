"""How the command line finds the server: what was said, else what the running server left in its data directory.

Every command that talks to a server does so through `run`, which turns each failure into a sentence and an exit code. The
client is imported only there: `--help` and completion must not wait for it.
"""

import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from palaver.cli.support.exits import Exit, exit_of
from palaver.errors import PalaverError, Unauthorized
from palaver.regular_file import read_regular

if TYPE_CHECKING:
    from palaver.client import Client

T = TypeVar("T")


class NotSignedIn(Unauthorized):
    """There is no token to sign in with; no server was asked."""


@dataclass(frozen=True, slots=True)
class Server:
    """What the options say of it. Nothing means: the environment, else the server that runs here."""

    data: Path | None = None
    url: str | None = None
    token: str | None = None

    @property
    def directory(self) -> Path:
        return data_directory(self.data)

    @property
    def address(self) -> str:
        return server_address(self.directory, self.url)

    def key(self) -> str:
        return self.token or read_token(self.directory)


def data_directory(data: Path | None) -> Path:
    return data or Path(os.environ.get("PALAVER_DATA") or "~/.palaver").expanduser()


def server_address(directory: Path, url: str | None) -> str:
    if url or os.environ.get("PALAVER_URL"):
        return url or os.environ["PALAVER_URL"]
    try:
        import json

        # The standard library's: completion reads this too, and has no time for more.
        return str(json.loads(read_regular(directory / "server.json"))["url"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        host = os.environ.get("PALAVER_HOST") or "127.0.0.1"
        return f"http://{host}:{os.environ.get('PALAVER_PORT') or 8420}"


def read_token(directory: Path) -> str:
    if token := os.environ.get("PALAVER_TOKEN"):
        return token
    try:
        return read_regular(directory / "token").decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise NotSignedIn(
            f"No token in {directory}. Start the server once with `palaver serve`, name its data directory with --data, "
            "or give a token in PALAVER_TOKEN."
        ) from None


def run(server: Server, work: Callable[["Client"], Awaitable[T]]) -> T:
    """Connects, works, and turns every failure into a sentence and an exit code."""
    import asyncio

    async def run_connected() -> T:
        from palaver.client import Client

        async with Client.connect(server.address, server.key()) as client:
            return await work(client)

    try:
        return asyncio.run(run_connected())
    except PalaverError as error:
        raise fail(error) from None
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None


def fail(error: PalaverError) -> typer.Exit:
    """Says what went wrong; the exit to leave with."""
    advice = ""
    if isinstance(error, Unauthorized) and not isinstance(error, NotSignedIn):
        advice = " Name that directory with --data, or give a token in PALAVER_TOKEN."
    complain(error.message + advice)
    return typer.Exit(exit_of(error))


def complain(sentence: str) -> None:
    from palaver.client.safe_text import prose

    print(f"palaver: {prose(sentence)}", file=sys.stderr)

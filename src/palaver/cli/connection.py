"""How the command line finds the server: what was said, else what the running server left in its data directory."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import msgspec
import typer

from palaver.client import Client
from palaver.errors import ConfigurationError, PalaverError, Unauthorized

T = TypeVar("T")

FAILED = 1
"""The command did not do what was asked."""
UNREACHABLE = 3
"""No server, or not ours."""


def data_directory(data: Path | None) -> Path:
    return data or Path(os.environ.get("PALAVER_DATA") or "~/.palaver").expanduser()


class _Server(msgspec.Struct):
    url: str


def server_address(directory: Path, url: str | None) -> str:
    if url or os.environ.get("PALAVER_URL"):
        return url or os.environ["PALAVER_URL"]
    try:
        return msgspec.json.decode((directory / "server.json").read_bytes(), type=_Server).url
    except (OSError, msgspec.MsgspecError):
        host = os.environ.get("PALAVER_HOST") or "127.0.0.1"
        return f"http://{host}:{os.environ.get('PALAVER_PORT') or 8420}"


def read_token(directory: Path) -> str:
    if token := os.environ.get("PALAVER_TOKEN"):
        return token
    try:
        return (directory / "token").read_text().strip()
    except OSError:
        raise ConfigurationError(
            f"No token in {directory}. Start the server once with `palaver serve`, or name its data directory with --data."
        ) from None


def run(data: Path | None, url: str | None, work: Callable[[Client], Awaitable[T]]) -> T:
    """Connects, works, and turns every failure into a sentence and an exit code."""

    async def connected() -> T:
        directory = data_directory(data)
        async with Client.connect(server_address(directory, url), read_token(directory)) as client:
            return await work(client)

    try:
        return asyncio.run(connected())
    except Unauthorized as error:
        complain(
            f"{error.message} The token in the data directory is not this server's; name the right one with --data."
        )
        raise typer.Exit(UNREACHABLE) from None
    except PalaverError as error:
        complain(error.message)
        raise typer.Exit(UNREACHABLE if error.code == "unavailable" else FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def complain(sentence: str) -> None:
    print(f"palaver: {sentence}", file=sys.stderr)

"""`palaver export`: conversations as files, one or all, and the list of them."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec
import typer

from palaver.cli.connection import FAILED, complain, run
from palaver.client import Client
from palaver.history.reading import FORMATS
from palaver.history.sessions import NAME, written
from palaver.schema.view import Listing

ENDINGS = {"markdown": "md", "jsonl": "jsonl", "trajectory": "json", "html": "html"}


def export(
    conversation: Annotated[
        str | None, typer.Argument(help="The conversation's id; `palaver list` shows them.")
    ] = None,
    format: Annotated[str, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}.")] = "markdown",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; without one, standard output.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="The list of conversations, one JSON object a line.")] = False,
    everything: Annotated[Path | None, typer.Option("--all", help="Every conversation, into this folder.")] = None,
    data: Annotated[Path | None, typer.Option(help="The server's data directory.")] = None,
    url: Annotated[str | None, typer.Option(help="The server's address.")] = None,
) -> None:
    """Write a conversation to a file: to read (markdown, html), or to keep and bring back (jsonl, trajectory)."""
    if format not in FORMATS:
        raise typer.BadParameter(f"“{format}” is none of {', '.join(FORMATS)}.", param_hint="--format")
    if sum((conversation is not None, listed, everything is not None)) != 1:
        raise typer.BadParameter("Say one of: a conversation's id, --list, --all FOLDER.")
    try:
        if everything is not None:
            everything.mkdir(parents=True, exist_ok=True)
            count = run(data, url, lambda client: _export_all(client, format, everything))
            print(f"{count} conversations in {everything}.", file=sys.stderr)
        elif listed:
            run(data, url, lambda client: _export_list(client, output))
        else:
            run(data, url, lambda client: _export_one(client, str(conversation), format, output))
    except BrokenPipeError:
        # Whoever read has seen enough. Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as failure:
        complain(f"{failure.filename or output or everything}: {failure.strerror}.")
        raise typer.Exit(FAILED) from None


async def _export_one(client: Client, conversation: str, format: str, output: Path | None) -> None:
    with _Written(output) as file:
        async for piece in client.export(conversation, format):
            file.write(piece)


async def _export_list(client: Client, output: Path | None) -> None:
    with _Written(output) as file:
        async for listing in client.every_conversation():
            file.write(msgspec.json.encode(listing) + b"\n")


async def _export_all(client: Client, format: str, folder: Path) -> int:
    listings: list[Listing] = []
    async for listing in client.every_conversation():
        await _export_one(client, listing.id, format, folder / f"{listing.id}.{ENDINGS[format]}")
        listings.append(listing)
    with _Written(folder / NAME) as file:
        file.writelines(written(listings))
    return len(listings)


class _Written:
    """A file that is there whole or not at all; without a path, standard output."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._temporary: Path | None = None
        self._file: BinaryIO = sys.stdout.buffer

    def __enter__(self) -> BinaryIO:
        if self._path is not None:
            handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
            self._temporary, self._file = Path(name), os.fdopen(handle, "wb")
        return self._file

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if self._path is None or self._temporary is None:
            self._file.flush()
            return
        self._file.close()
        if failed:
            self._temporary.unlink()
        else:
            self._temporary.replace(self._path)

"""`palaver export`: conversations as files, one or all, and the list of them."""

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import Server, complain, run
from palaver.cli.support.exits import Exit
from palaver.cli.support.terminal import Output, open_output

if TYPE_CHECKING:
    from palaver.client import Client

ENDINGS = {"markdown": "md", "jsonl": "jsonl", "trajectory": "json", "html": "html"}
"""The formats, and how their files are named."""

SESSIONS = "sessions"
"""The format of a list: what `chat-sessions.jsonl` of the stream face's programs holds."""

EXAMPLES = (
    "palaver export last -o notes.md",
    "palaver export last -f html -o page.html",
    "palaver export --all ~/conversations -f jsonl",
    "palaver export --list",
    "palaver export -f sessions -o chat-sessions.jsonl",
)


def export(
    conversation: options.MaybeConversation = None,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            help=f"One of {', '.join(ENDINGS)}; {SESSIONS} is the list alone.",
            autocompletion=lambda: [*ENDINGS, SESSIONS],
        ),
    ] = "markdown",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; without one, standard output.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="The list of conversations, one JSON object a line.")] = False,
    everything: Annotated[Path | None, typer.Option("--all", help="Every conversation, into this folder.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON: what was written where; to standard output, the format jsonl.")
    ] = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Write a conversation to a file: to read (markdown, html), or to keep and bring back (jsonl, trajectory)."""
    if format not in (*ENDINGS, SESSIONS):
        raise typer.BadParameter(f"“{format}” is none of {', '.join((*ENDINGS, SESSIONS))}.", param_hint="--format")
    if format == SESSIONS:
        if conversation is not None or everything is not None:
            raise typer.BadParameter(f"“{SESSIONS}” is the list of all conversations: name none, and no --all.")
        listed = True
    if sum((conversation is not None, listed, everything is not None)) != 1:
        raise typer.BadParameter("Say one of: a conversation's id, --list, --all FOLDER.")
    server = Server(data, url, token)
    try:
        if everything is not None:
            everything.mkdir(parents=True, exist_ok=True)
            run(server, lambda client: _export_all(client, format, everything, json))
        elif listed:
            run(server, lambda client: _export_list(client, format, output))
        else:
            run(server, lambda client: _export_one(client, str(conversation), format, output, json))
    except BrokenPipeError:
        raise
    except OSError as failure:
        complain(f"{failure.filename or output or everything}: {failure.strerror}.")
        raise typer.Exit(Exit.FAILED) from None


async def _export_one(client: "Client", meant: str, format: str, output: Path | None, as_json: bool) -> None:
    from palaver.cli.support import resolve_id
    from palaver.cli.support.output import print_json

    conversation = await resolve_id.conversation(client, meant)
    if as_json and output is None:
        format = "jsonl"
    size_bytes = await _write(client, conversation, format, output)
    if as_json and output is not None:
        print_json(_report(conversation, format, output, size_bytes))


async def _write(client: "Client", conversation: str, format: str, output: Path | None) -> int:
    size_bytes = 0
    with _Written(output, "text" if format in ("markdown", "html") else "json") as file:
        async for piece in client.export(conversation, format):
            size_bytes += file.write(piece)
    return size_bytes


def _report(conversation: str, format: str, file: Path, size_bytes: int) -> dict[str, object]:
    return {"conversation": conversation, "format": format, "file": str(file), "size_bytes": size_bytes}


async def _export_list(client: "Client", format: str, output: Path | None) -> None:
    from palaver.history.sessions import write_chat_sessions, write_listings

    as_lines = write_chat_sessions if format == SESSIONS else write_listings
    with _Written(output) as file:
        async for listing in client.every_conversation():
            file.writelines(as_lines([listing]))


async def _export_all(client: "Client", format: str, folder: Path, as_json: bool) -> None:
    from palaver.cli.support.output import count_of, print_json, progress
    from palaver.history.sessions import NAME, write_listings

    listings = [listing async for listing in client.every_conversation()]
    with progress("Exporting", quiet=as_json) as bar:
        for done, listing in enumerate(listings, 1):
            file = folder / f"{listing.id}.{ENDINGS[format]}"
            size_bytes = await _write(client, listing.id, format, file)
            bar(done, len(listings))
            if as_json:
                print_json(_report(listing.id, format, file, size_bytes))
    with _Written(folder / NAME) as file_of_all:
        file_of_all.writelines(write_listings(listings))
    if not as_json:
        print(f"{count_of(len(listings), 'conversation')} in {folder}.", file=sys.stderr)


class _Written:
    """A file that is there whole or not at all; without a path, standard output."""

    def __init__(self, path: Path | None, form: Literal["json", "text"] = "json") -> None:
        self._path = path
        self._form = form
        self._temporary: Path | None = None
        self._file: BinaryIO | None = None

    def __enter__(self) -> Output:
        if self._path is None:
            self._output = open_output(self._form)
            return self._output
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        self._temporary, self._file = Path(name), os.fdopen(handle, "wb")
        return self._file

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if self._path is None or self._temporary is None or self._file is None:
            self._output.flush()
            return
        self._file.close()
        if failed:
            self._temporary.unlink()
        else:
            self._temporary.replace(self._path)

"""`palaver projects`: what agent programs would read from a folder, and whether a person has trusted it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import Server, complain, run
from palaver.cli.support.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from palaver.client import Client
    from palaver.client.projects import ProgramFolderInfo

app = options.group("Show and trust the settings that agent programs would read from a folder.")

EXAMPLES = (
    "palaver projects settings",
    "palaver projects trust ~/garden --program codex",
    "palaver projects distrust ~/garden --program codex",
)

Folder = Annotated[Path | None, typer.Argument(metavar="FOLDER", help="The folder; without it, this one.")]
Program = Annotated[
    str, typer.Option("--program", "-p", help="claude, codex, pi, opencode, gemini, or acp for others.")
]


@app.command("settings")
def list_settings(
    folder: Folder = None,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """List what each program would read from a folder that can run code, and whether that is trusted."""
    from palaver.cli.support.output import cell, print_json, print_table

    async def fetch(client: "Client") -> "list[ProgramFolderInfo]":
        return await client.program_settings(_folder(folder))

    found = run(Server(data, url, token), fetch)
    if json:
        for one in found:
            print_json(one)
        return
    rows = [
        (
            cell(one.program, "bold"),
            cell("trusted" if one.trusted else "off" if one.paths else "none"),
            cell(_paths(one)),
        )
        for one in found
    ]
    print_table(("program", "settings", "files"), rows, flexible="files")


@app.command("trust")
def trust_settings(
    folder: Folder = None,
    program: Program = "",
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Let a program read a folder's settings. Any change of those files takes the trust back."""

    async def send(client: "Client", known: "ProgramFolderInfo") -> "ProgramFolderInfo":
        if known.hash is None:
            complain("There is too much in these files to be read, so they cannot be trusted.")
            raise typer.Exit(Exit.CONFLICT)
        return await client.trust_program(_folder(folder), program, known.hash)

    now = _decide(Server(data, url, token), folder, program, send, as_json=json)
    if not json:
        print(f"{now.name} may read here: {_paths(now) or 'nothing so far'}.")


@app.command("distrust")
def distrust_settings(
    folder: Folder = None,
    program: Program = "",
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Take the trust back. It counts from the program's next turn on."""

    async def send(client: "Client", known: "ProgramFolderInfo") -> "ProgramFolderInfo":
        return await client.distrust_program(_folder(folder), program)

    now = _decide(Server(data, url, token), folder, program, send, as_json=json)
    if not json:
        print(f"{now.name} works without this folder's settings.")


def _decide(
    server: Server,
    folder: Path | None,
    program: str,
    send: "Callable[[Client, ProgramFolderInfo], Awaitable[ProgramFolderInfo]]",
    *,
    as_json: bool,
) -> "ProgramFolderInfo":
    """Change the trust in one program's settings, which must be named."""
    from palaver.cli.support.output import print_json

    async def decide(client: "Client") -> "ProgramFolderInfo":
        rows = {one.program: one for one in await client.program_settings(_folder(folder))}
        if program not in rows:
            complain(f"Say for which program: --program {', '.join(rows)}.")
            raise typer.Exit(Exit.USAGE)
        return await send(client, rows[program])

    now = run(server, decide)
    if as_json:
        print_json(now)
    return now


def _folder(folder: Path | None) -> str:
    return str((folder or Path.cwd()).expanduser().resolve())


def _paths(one: "ProgramFolderInfo") -> str:
    from palaver.client.safe_text import one_line

    return one_line(", ".join(one.paths))

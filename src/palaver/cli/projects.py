"""`palaver projects`: what agent programs would read from a folder, and whether a person has trusted it."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import Server, complain, run
from palaver.cli.support.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from palaver.client import Client
    from palaver.client.projects import ProgramFolderInfo, ProgramReview

app = options.group("Show and trust the settings that agent programs would read from a folder.")

EXAMPLES = (
    "palaver projects settings",
    "palaver projects settings ~/garden --program codex",
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
    program: Annotated[
        str, typer.Option("--program", "-p", help="Show the files of this program in full, and their hash.")
    ] = "",
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """List what each program would read from a folder that can run code, and whether that is trusted."""
    from palaver.cli.support.output import cell, print_json, print_table

    if program and not json:
        _print_review(Server(data, url, token), folder, program)
        return

    async def fetch(client: "Client") -> "list[ProgramFolderInfo]":
        return await client.program_settings(_folder(folder))

    found = [one for one in run(Server(data, url, token), fetch) if program in ("", one.program)]
    if json:
        for one in found:
            print_json(one)
        return
    rows = [
        (
            cell(one.program, "bold"),
            cell("trusted" if one.trusted else "off" if one.paths else "none"),
            cell(_paths(one)),
            cell(one.hash or ("too much to be read" if one.paths else "")),
        )
        for one in found
    ]
    print_table(("program", "settings", "files", "hash"), rows, flexible="files")


def _print_review(server: Server, folder: Path | None, program: str) -> None:
    from palaver.cli.support.reading import content_line
    from palaver.client.settings_review import review_lines

    async def fetch(client: "Client") -> "ProgramReview":
        return await client.review_program(_folder(folder), program)

    review = run(server, fetch)
    for line in review_lines(review.files):
        print(content_line(line))
    print(f"hash: {review.settings.hash or 'none: there is too much to be read'}")


@app.command("trust")
def trust_settings(
    folder: Folder = None,
    program: Program = "",
    hash: Annotated[
        str,
        typer.Option(help="Trust exactly these files without a question: their hash, as `settings` prints it."),
    ] = "",
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Show a folder's settings and, after a yes, let a program read them. Any change of those files takes the trust back."""

    async def send(client: "Client", known: "ProgramFolderInfo") -> "ProgramFolderInfo":
        return await client.trust_program(_folder(folder), program, hash or await _reviewed_hash(client, folder, known))

    now = _decide(Server(data, url, token), folder, program, send, as_json=json)
    if not json:
        print(f"{now.name} may read here: {_paths(now) or 'nothing so far'}.")


async def _reviewed_hash(client: "Client", folder: Path | None, known: "ProgramFolderInfo") -> str:
    """The hash of what a person has just read to its end and agreed to. Without a terminal nobody has."""
    from palaver.cli.support.output import is_interactive
    from palaver.cli.support.reading import content_line, is_confirmed
    from palaver.client.settings_review import review_lines

    if not is_interactive():
        where = shlex.join(("palaver", "projects", "settings", _folder(folder), "--program", known.program))
        complain(f"Nobody is here to read these files. Look at them with `{where}` and add --hash HASH.")
        raise typer.Exit(Exit.USAGE)
    # Its hash came with its text: the files that were just listed may be others by now.
    review = await client.review_program(_folder(folder), known.program)
    settings = review.settings
    if settings.hash is None:
        complain("There is too much in these files to be read, so they cannot be trusted.")
        raise typer.Exit(Exit.CONFLICT)
    about = f"{known.name} would read these files. They can start programs on this machine without asking you."
    lines = [about, *map(content_line, review_lines(review.files))]
    if not await is_confirmed(lines, "Trust them until they change?"):
        complain("Nothing was trusted.")
        raise typer.Exit(Exit.CONFLICT)
    return settings.hash


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

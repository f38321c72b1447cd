"""`palaver import`: conversations from exported files, or from the history of another program."""

import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.export import ENDINGS
from palaver.cli.support import options
from palaver.cli.support.connection import Server, complain, run
from palaver.cli.support.exits import Exit
from palaver.cli.support.local_files import open_file, readable_name
from palaver.errors import CallerError
from palaver.history.programs.foreign import PROGRAMS, Program
from palaver.history.sessions import NAME

if TYPE_CHECKING:
    from palaver.client import Client
    from palaver.client.conversations import Imported

UNSEEN = (NAME,)
"""Beside the conversations in an exported folder: their list."""

EXAMPLES = (
    "palaver import notes.md",
    "palaver import ~/conversations --dry-run",
    "palaver import claude --since 2026-01-01",
    "ssh other palaver export last -f jsonl | palaver import -",
)


def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar=f"FILE…|{'|'.join(PROGRAMS)}",
            help="Exported files, or folders of them; - for standard input. Or the name of a program: all of its history.",
        ),
    ],
    format: Annotated[
        str | None, typer.Option("--format", "-f", help=f"One of {', '.join(ENDINGS)}; without it, seen in the file.")
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(
            "--project",
            "--folder",
            "-d",
            help="The folder it shall work in; else the server's. Of a history only what is about this folder.",
        ),
    ] = None,
    agent: options.Agent = None,
    title: Annotated[str | None, typer.Option(help="A title of your own.")] = None,
    since: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Of a history only what changed since that day.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be made.")] = False,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Make a conversation of each file. Its id is printed; nothing in a file can allow an agent anything.

    With the name of a program, its whole history: each of its conversations once, however often this is done, and each can be
    continued in that program.
    """
    server = Server(data, url, token)
    if (program := _program(files)) is not None:
        from palaver.cli.support.program_histories import Wanted, import_history

        if format is not None or title is not None:
            raise typer.BadParameter("A whole history has neither a --format nor a --title.")
        wanted = Wanted(
            program,
            since_ms=int(since.timestamp() * 1000) if since else 0,
            project=project.resolve() if project else None,
            agent=agent,
            dry=dry_run,
            as_json=json,
        )
        if not run(server, lambda client: import_history(client, wanted)):
            raise typer.Exit(Exit.FAILED)
        return
    if since is not None:
        raise typer.BadParameter("--since is for the history of a program.")
    if format is not None and format not in ENDINGS:
        raise typer.BadParameter(f"“{format}” is none of {', '.join(ENDINGS)}.", param_hint="--format")
    folder = str(project.resolve()) if project else None

    async def bring(client: "Client", path: Path) -> "Imported":
        with open_file(path) as file:
            return await client.bring(file, format=format, title=title, agent=agent, project=folder, dry_run=dry_run)

    tell = _tell_json if json else _tell_dry if dry_run else _tell_made
    if run(server, lambda client: _import_all(client, _files(files), bring, tell, json)):
        raise typer.Exit(Exit.FAILED)


async def _import_all(
    client: "Client",
    files: list[Path],
    bring: "Callable[[Client, Path], Awaitable[Imported]]",
    tell: "Callable[[Path, Imported], None]",
    quiet: bool,
) -> int:
    """How many could not be brought in. One bad file does not keep the others out."""
    from palaver.cli.support.output import progress

    refused = 0
    with progress("Importing", quiet=quiet or len(files) == 1) as bar:
        for done, path in enumerate(files, 1):
            try:
                tell(path, await bring(client, path))
            except BrokenPipeError:
                raise
            except (CallerError, OSError) as problem:
                why = problem.message if isinstance(problem, CallerError) else problem.strerror or str(problem)
                complain(f"{readable_name(path)}: {why}")
                refused += 1
            bar(done, len(files))
    return refused


def _tell_json(path: Path, made: "Imported") -> None:
    from msgspec.structs import asdict

    from palaver.cli.support.output import print_json

    print_json({"file": readable_name(path), **asdict(made)})


def _tell_dry(path: Path, made: "Imported") -> None:
    _tell(path, made, "would become")


def _tell_made(path: Path, made: "Imported") -> None:
    _tell(path, made, "became")
    if made.conversation:
        print(made.conversation, flush=True)


def _tell(path: Path, made: "Imported", verb: str) -> None:
    from palaver.client.safe_text import one_line

    title = one_line(made.title, 100) or "untitled"
    print(
        f"{readable_name(path)} ({made.format}) {verb} “{title}”: {made.message_count} messages, "
        f"agent {made.agent}, in {made.project}",
        file=sys.stderr,
    )
    if made.left_out:
        print(f"  not taken over: {one_line(', '.join(made.left_out))}", file=sys.stderr)


def _program(named: list[Path]) -> Program | None:
    """A program's name alone. A file of that name is given by its whole path."""
    return next((program for program in PROGRAMS if len(named) == 1 and str(named[0]) == program), None)


def _files(named: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in named:
        try:
            inner = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
        except OSError as problem:
            complain(f"{readable_name(path)}: {problem.strerror or problem}.")
            raise typer.Exit(Exit.FAILED) from None
        found += [one for one in inner if one.name not in UNSEEN and not (path.is_dir() and one.name.startswith("."))]
    return found

"""`palaver import`: conversations from exported files, or from the history of another program."""

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli.connection import FAILED, complain, run
from palaver.cli.histories import Wanted, import_history
from palaver.client import Client
from palaver.errors import CallerError
from palaver.history.programs.foreign import PROGRAMS, Program
from palaver.history.reading import FORMATS
from palaver.history.sessions import NAME

UNSEEN = (NAME,)
"""Beside the conversations in an exported folder: their list."""


def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar=f"FILE…|{'|'.join(PROGRAMS)}",
            help="Exported files, or folders of them; - for standard input. Or the name of a program: all of its history.",
        ),
    ],
    format: Annotated[
        str | None, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}; without it, seen in the file.")
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(
            help="The folder it shall work in; else the server's. Of a history only what is about this folder."
        ),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Who shall answer from now on.")] = None,
    title: Annotated[str | None, typer.Option(help="A title of your own.")] = None,
    since: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Of a history only what changed since that day.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be made.")] = False,
    data: Annotated[Path | None, typer.Option(help="The server's data directory.")] = None,
    url: Annotated[str | None, typer.Option(help="The server's address.")] = None,
) -> None:
    """Make a conversation of each file. Its id is printed; nothing in a file can allow an agent anything.

    With the name of a program, its whole history: each of its conversations once, however often this is done, and each can be
    continued in that program.
    """
    if (program := _program(files)) is not None:
        if format is not None or title is not None:
            raise typer.BadParameter("A whole history has neither a --format nor a --title.")
        wanted = Wanted(
            program,
            since_ms=int(since.timestamp() * 1000) if since else 0,
            project=project.resolve() if project else None,
            agent=agent,
            dry=dry_run,
        )
        if not run(data, url, lambda client: import_history(client, wanted)):
            raise typer.Exit(FAILED)
        return
    if since is not None:
        raise typer.BadParameter("--since is for the history of a program.")
    if format is not None and format not in FORMATS:
        raise typer.BadParameter(f"“{format}” is none of {', '.join(FORMATS)}.", param_hint="--format")
    folder = str(project.resolve()) if project else None

    async def work(client: Client) -> int:
        failed = 0
        for path in _files(files):
            try:
                made = await client.bring(
                    _read(path), format=format, title=title, agent=agent, project=folder, dry_run=dry_run
                )
            except (CallerError, OSError) as problem:
                complain(f"{path}: {problem.message if isinstance(problem, CallerError) else problem.strerror}")
                failed += 1
                continue
            word = "would become" if dry_run else "became"
            print(
                f"{path} ({made.format}) {word} “{made.title or 'untitled'}”: {made.message_count} messages, "
                f"agent {made.agent}, in {made.project}",
                file=sys.stderr,
            )
            if made.left_out:
                print(f"  not taken over: {', '.join(made.left_out)}", file=sys.stderr)
            if made.conversation:
                print(made.conversation)
        return failed

    if run(data, url, work):
        raise typer.Exit(FAILED)


def _program(named: list[Path]) -> Program | None:
    """A program's name alone. A file of that name is given by its whole path."""
    return next((program for program in PROGRAMS if len(named) == 1 and str(named[0]) == program), None)


def _files(named: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in named:
        inner = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
        found += [one for one in inner if one.name not in UNSEEN and not (path.is_dir() and one.name.startswith("."))]
    return found


def _read(path: Path) -> bytes:
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()

"""`palaver import`: conversations from exported files."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli.connection import FAILED, complain, run
from palaver.client import Client
from palaver.errors import CallerError
from palaver.history.reading import FORMATS
from palaver.history.sessions import NAME

UNSEEN = (NAME,)
"""Beside the conversations in an exported folder: their list."""


def import_files(
    files: Annotated[list[Path], typer.Argument(help="Exported files, or folders of them; - for standard input.")],
    format: Annotated[
        str | None, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}; without it, seen in the file.")
    ] = None,
    project: Annotated[Path | None, typer.Option(help="The folder it shall work in; else the server's.")] = None,
    agent: Annotated[str | None, typer.Option(help="Who shall answer from now on.")] = None,
    title: Annotated[str | None, typer.Option(help="A title of your own.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be made.")] = False,
    data: Annotated[Path | None, typer.Option(help="The server's data directory.")] = None,
    url: Annotated[str | None, typer.Option(help="The server's address.")] = None,
) -> None:
    """Make a conversation of each file. Its id is printed; nothing in a file can allow an agent anything."""
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


def _files(named: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in named:
        inner = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
        found += [one for one in inner if one.name not in UNSEEN and not (path.is_dir() and one.name.startswith("."))]
    return found


def _read(path: Path) -> bytes:
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()

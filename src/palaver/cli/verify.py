"""`palaver verify`: is every event in the log still what it was when it was written?"""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from palaver.cli.connection import FAILED, complain, data_directory
from palaver.errors import PalaverError


def verify(
    data: Annotated[Path | None, typer.Option(help="The data directory to look at.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Recompute the hash chain of every conversation. Works beside a running server; exits 1 when something is damaged."""
    from rich.console import Console
    from rich.progress import Progress

    from palaver.log.inspect import verify_directory

    directory = data_directory(data)
    with Progress(console=Console(stderr=True), transient=True, disable=json) as bar:
        task = bar.add_task("Verifying", total=None)
        try:
            found = verify_directory(directory, lambda done, total: bar.update(task, completed=done, total=total))
        except PalaverError as error:
            complain(error.message)
            raise typer.Exit(FAILED) from None
    if json:
        print(msgspec.json.encode(found).decode())
    else:
        for damage in found.damages:
            print(f"damaged: conversation {damage.conversation}, event {damage.seq}: {damage.what}")
        verdict = f"{len(found.damages)} faults found" if found.damages else "all whole"
        print(f"{found.conversations:,} conversations, {found.events:,} events: {verdict}.", file=sys.stderr)
    raise typer.Exit(FAILED if found.damages else 0)

"""`palaver verify`: is every event in the log still what it was when it was written?"""

import sys

import typer

from palaver.cli import options
from palaver.cli.connection import data_directory, failed
from palaver.cli.exits import Exit
from palaver.errors import PalaverError

EXAMPLES = ("palaver verify", "palaver verify --data /backups/monday --json")


def verify(
    data: options.Data = None,
    json: options.Json = False,
) -> None:
    """Recompute the hash chain of every conversation. Works beside a running server; exits 1 when something is damaged."""
    from palaver.cli.output import print_json, progress
    from palaver.log.inspect import verify_directory

    try:
        with progress("Verifying", quiet=json) as bar:
            found = verify_directory(data_directory(data), bar)
    except PalaverError as error:
        raise failed(error) from None
    if json:
        print_json(found)
    else:
        for damage in found.damages:
            print(f"damaged: conversation {damage.conversation}, event {damage.seq}: {damage.what}")
        verdict = f"{len(found.damages)} faults found" if found.damages else "all whole"
        print(f"{found.conversations:,} conversations, {found.events:,} events: {verdict}.", file=sys.stderr)
    raise typer.Exit(Exit.FAILED if found.damages else Exit.OK)

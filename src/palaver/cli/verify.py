"""`palaver verify`: is every event in the log still what it was when it was written?"""

import sys
from typing import TYPE_CHECKING

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import data_directory, fail
from palaver.cli.support.exits import Exit
from palaver.client.safe_text import prose
from palaver.errors import PalaverError

if TYPE_CHECKING:
    from palaver.log.base import Verified

EXAMPLES = ("palaver verify", "palaver verify --data /backups/monday --json")


def verify(
    data: options.Data = None,
    json: options.Json = False,
) -> None:
    """Recompute the hash chain of every conversation and check the database file. Works beside a running server.

    Exits 1 when something is damaged, and says which conversations are affected.
    """
    from palaver.cli.support.output import print_json, progress
    from palaver.log.sqlite.inspect import verify_directory

    try:
        with progress("Verifying", quiet=json) as bar:
            found = verify_directory(data_directory(data), bar)
    except PalaverError as error:
        raise fail(error) from None
    if json:
        print_json(found)
    else:
        for damage in found.damages:
            where = f"conversation {damage.conversation}, event {damage.seq}" if damage.conversation else "the store"
            print(prose(f"damaged: {where}: {damage.what}"))
        print(_verdict(found), file=sys.stderr)
    raise typer.Exit(Exit.FAILED if found.damages else Exit.OK)


def _verdict(found: "Verified") -> str:
    looked_at = f"{found.conversations:,} conversations, {found.events:,} events"
    if not found.damages:
        return f"{looked_at}: all whole."
    affected = len({damage.conversation for damage in found.damages if damage.conversation})
    return (
        f"{looked_at}: {len(found.damages)} faults found, {affected} conversations affected. Restore them from a backup, or "
        "save what is readable with: palaver salvage --to NEW_FOLDER"
    )

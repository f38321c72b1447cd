"""`palaver list`: the conversations, newest first."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import Server, run

if TYPE_CHECKING:
    from palaver.client import Client
    from palaver.schema.view import Listing

EXAMPLES = (
    "palaver list",
    "palaver list --folder . --limit 5",
    "palaver list migrations",
    "palaver list --json | jq -r .id",
)


def list_conversations(
    query: Annotated[str | None, typer.Argument(metavar="WORDS", help="Only those in which this is found.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many.", min=1, max=500)] = 30,
    folder: Annotated[Path | None, typer.Option("--folder", "-d", help="Only those that work in this folder.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="With the archived ones.")] = False,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """List conversations, newest first."""
    from palaver.cli.support.output import print_json

    project = str(folder.expanduser().resolve()) if folder else None

    async def fetch(client: "Client") -> "list[Listing]":
        return await client.conversations(limit, query, project=project, archived="all" if archived else "false")

    found = run(Server(data, url, token), fetch)
    if json:
        for listing in found:
            print_json(listing)
    elif found:
        _print(found)
    else:
        hint = "Nothing found." if query or folder else 'No conversations yet. Begin one: palaver send "hello"'
        print(hint, file=sys.stderr)


def _print(listings: "list[Listing]") -> None:
    from palaver.cli.support.conversation_text import STATUSES
    from palaver.cli.support.output import cell, print_table, when
    from palaver.cli.support.resolve_id import short

    ids = [listing.id for listing in listings]
    # A terminal shows as much of an id as tells it apart; a pipe gets all of it.
    shown = {one: short(one, ids) if sys.stdout.isatty() else one for one in ids}
    rows = []
    for listing in listings:
        status = "waiting for you" if listing.open_requests else STATUSES.get(listing.status, listing.status)
        style = "yellow" if listing.open_requests else "red" if listing.status == "error" else ""
        rows.append(
            (
                cell(when(listing.updated_at), "dim"),
                cell(status, style),
                cell(listing.agent),
                cell(listing.title or "(untitled)"),
                cell(shown[listing.id], "cyan"),
            )
        )
    print_table(("when", "status", "agent", "title", "id"), rows, flexible="title")

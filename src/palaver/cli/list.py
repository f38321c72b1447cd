"""`palaver list`: the conversations, newest first."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from palaver.cli.connection import run
from palaver.client import Client
from palaver.schema.view import Listing


def list_conversations(
    query: Annotated[str | None, typer.Argument(help="Only those in which this is found.")] = None,
    limit: Annotated[int, typer.Option(help="At most so many.", min=1, max=500)] = 30,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    data: Annotated[Path | None, typer.Option(help="The server's data directory.")] = None,
    url: Annotated[str | None, typer.Option(help="The server's address.")] = None,
) -> None:
    """List conversations, newest first."""

    async def fetch(client: Client) -> list[Listing]:
        return await client.conversations(limit, query)

    found = run(data, url, fetch)
    if json:
        for listing in found:
            print(msgspec.json.encode(listing).decode())
    elif found:
        _print_table(found)
    else:
        print("Nothing found." if query else 'No conversations yet. Begin one: palaver send "hello"', file=sys.stderr)


def _print_table(listings: list[Listing]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("when", "status", "agent", "title", "id"):
        table.add_column(heading, overflow="ellipsis", no_wrap=heading != "title")
    for listing in listings:
        status = "waiting for you" if listing.open_requests else listing.status.replace("_", " ")
        table.add_row(_when(listing.updated_at), status, listing.agent, listing.title or "(untitled)", listing.id)
    Console().print(table)


def _when(ts_ms: int) -> str:
    return datetime.fromtimestamp(ts_ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")

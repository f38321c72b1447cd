"""`palaver salvage`: a new data directory from what is readable of a damaged one."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import data_directory, fail
from palaver.cli.support.exits import Exit
from palaver.client.safe_text import one_line
from palaver.errors import PalaverError

if TYPE_CHECKING:
    from palaver.conversation.recovery.salvage import Cut, Salvaged

EXAMPLES = ("palaver salvage --to ~/.palaver-salvaged", "palaver verify --data ~/.palaver-salvaged")


def salvage(
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="A new directory for what can be saved.")],
    data: options.Data = None,
    json: options.Json = False,
) -> None:
    """Write what is readable of a damaged data directory into a new one. Stop the server first; the old one is not changed.

    Conversations are saved whole where their hash chain holds, else up to the damage. Tokens and permissions are given anew.
    Exits 1 when something is lost, or when no conversation was found.
    """
    from palaver.cli.support.output import print_json, progress
    from palaver.conversation.recovery.salvage import salvage as save

    directory = data_directory(data)
    try:
        with progress(f"Salvaging {directory}", quiet=json) as bar:
            found = asyncio.run(save(directory, to, bar))
    except PalaverError as error:
        raise fail(error) from None
    if json:
        print_json(found)
    else:
        for line in _lines(found):
            print(line)
        print(_verdict(found, to), file=sys.stderr)
    raise typer.Exit(Exit.FAILED if _is_lossy(found) else Exit.OK)


def _is_lossy(found: "Salvaged") -> bool:
    return not found.events or bool(found.damaged or found.damaged_blobs or found.unreadable_settings)


def _verdict(found: "Salvaged", to: Path) -> str:
    if not found.events:
        return f"No conversation was found in what is readable. What else could be saved is in {to}; keep the damaged directory."
    look = f"Saved to {to}. Look at it with: palaver serve --data {to}"
    return f"{look}\nNot everything could be saved; keep the damaged directory." if _is_lossy(found) else look


def _lines(found: "Salvaged") -> list[str]:
    lines = [f"saved: {found.whole:,} whole conversations, {found.events:,} events in all, {found.blobs:,} blobs"]
    lines += [f"saved: {one_line(name)}" for name in found.settings]
    lines += [f"lost: {_words(cut)}" for cut in found.damaged]
    lines += [f"lost: blob {name}" for name in found.damaged_blobs]
    lines += [f"lost: {one_line(name)}, which cannot be read" for name in found.unreadable_settings]
    return [*lines, "not taken along: tokens, standing permissions, trust"]


def _words(cut: "Cut") -> str:
    title = f" “{one_line(cut.title)}”" if cut.title else ""
    lost = f"events {cut.lost_from:,} to {cut.expected_events:,}"
    kept = f"{cut.kept_events:,} events are saved" if cut.kept_events else "nothing of it could be proven"
    more = (
        f"; {cut.unattached_events:,} readable events behind the damage are in `unattached`"
        if cut.unattached_events
        else ""
    )
    return f"conversation {one_line(cut.conversation)}{title}: {lost}; {kept}{more}"

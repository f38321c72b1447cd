"""`palaver search`: words found in all conversations, with what stands around them."""

import re
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import Server, run
from palaver.cli.support.exits import Exit

if TYPE_CHECKING:
    from palaver.client import Client
    from palaver.client.conversations import Hit

EXAMPLES = (
    'palaver search "hash chain"',
    "palaver search migrate -c last",
    "palaver search TODO --json | jq -r .conversation",
)

AROUND_CHARS = 80
"""On each side: a line or two together."""


def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What to look for.")],
    conversation: options.InConversation = None,
    limit: Annotated[int, typer.Option(help="At most so many places.", min=1, max=200)] = 20,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Find words in messages, newest first. Exits 6 when there are none."""
    from palaver.cli.support.output import note, print_json

    async def fetch(client: "Client") -> "list[Hit]":
        from palaver.cli.support import resolve_id

        within = await resolve_id.conversation(client, conversation) if conversation else None
        return await client.search(" ".join(words), limit, within)

    hits = run(Server(data, url, token), fetch)
    if json:
        for hit in hits:
            print_json(hit)
    elif hits:
        _print(hits)
    else:
        note(f"“{' '.join(words)}” was not found.")
    raise typer.Exit(Exit.OK if hits else Exit.NOT_FOUND)


def _print(hits: "list[Hit]") -> None:
    from rich.text import Text

    from palaver.cli.support.output import console
    from palaver.client.safe_text import one_line, visible

    def flat(text: str) -> str:
        # A space at either end stays: it stands between the match and its neighbours.
        return visible(re.sub(r"\s+", " ", text))

    to = console()
    for conversation, found in groupby(hits, key=lambda hit: hit.conversation):
        places = list(found)
        to.print(Text(one_line(places[0].title) or "(untitled)", "bold"), Text(conversation, "dim"), soft_wrap=True)
        for hit in places:
            before, after = flat(hit.before)[-AROUND_CHARS:], flat(hit.after)[:AROUND_CHARS]
            words = Text.assemble((f"  {hit.role}: ", "dim"), before, (flat(hit.match), "bold yellow"), after)
            to.print(words, soft_wrap=True)

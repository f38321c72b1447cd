"""Options that many commands share, so that each means the same everywhere, and what completes them."""

from pathlib import Path
from typing import Annotated

import typer

from palaver.cli.support.shell_completion import agents, conversations, requests

Data = Annotated[Path | None, typer.Option(help="The server's data directory. [env: PALAVER_DATA]", file_okay=False)]
Url = Annotated[str | None, typer.Option(help="The server's address. [env: PALAVER_URL]")]
Token = Annotated[
    str | None,
    typer.Option(help="A token; others on this machine can see it, so better give PALAVER_TOKEN. [env: PALAVER_TOKEN]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]

Conversation = Annotated[
    str,
    typer.Argument(
        metavar="CONVERSATION",
        help="Its id, or as much of its beginning or end as no other shares; `last` or `-` for the latest.",
        autocompletion=conversations,
    ),
]
MaybeConversation = Annotated[
    str | None,
    typer.Argument(
        metavar="CONVERSATION",
        help="Its id, or as much of its beginning or end as no other shares; `last` or `-` for the latest.",
        autocompletion=conversations,
    ),
]
InConversation = Annotated[
    str | None,
    typer.Option(
        "--conversation", "-c", help="A conversation: its id, part of it, or `last`.", autocompletion=conversations
    ),
]
Agent = Annotated[str | None, typer.Option("--agent", "-a", help="Who shall answer.", autocompletion=agents)]
RequestId = Annotated[
    str,
    typer.Argument(
        metavar="REQUEST",
        help="Its id as `palaver requests` shows it, or part of it; `last` or `-` for the latest.",
        autocompletion=requests,
    ),
]


def group(help: str) -> typer.Typer:
    """For a command with sub-commands."""
    return typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, help=help)

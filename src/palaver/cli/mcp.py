"""`palaver mcp`: a conversation's inbox over standard streams, for MCP clients that start programs.

What is printed is the protocol; everything for a person goes to standard error.
"""

from typing import Annotated, Literal

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import Server, complain, fail
from palaver.cli.support.exits import Exit
from palaver.cli.support.shell_completion import conversations
from palaver.errors import PalaverError

EXAMPLES = ("palaver mcp --as human --session 0199c3f2-5e0a-7c31-8f21-9d1f3f9c2a1b",)


def mcp(
    side: Annotated[Literal["human", "assistant"], typer.Option("--as", help="Whose tools: a person's or an agent's.")],
    session: Annotated[
        str | None,
        typer.Option(
            help="The conversation's id; without one it is the server's default inbox.", autocompletion=conversations
        ),
    ] = None,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Speak MCP on standard input and output: the inbox of a conversation. PALAVER_TOKEN holds a token of your own."""
    import asyncio

    try:
        from palaver.faces.inbox.bridge import bridge
    except ImportError:
        complain("chat over MCP is not installed here. Install it with: pip install 'palaver[mcp]'")
        raise typer.Exit(Exit.FAILED) from None
    server = Server(data, url, token)
    try:
        asyncio.run(bridge(server.address, server.key(), side, session))
    except PalaverError as error:
        raise fail(error) from None
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None

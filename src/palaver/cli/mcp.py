"""`palaver mcp`: a conversation's inbox over standard streams, for MCP clients that start programs.

What is printed is the protocol; everything for a person goes to standard error.
"""

import asyncio
from pathlib import Path
from typing import Annotated, Literal

import typer

from palaver.cli.connection import FAILED, UNREACHABLE, complain, data_directory, read_token, server_address
from palaver.errors import PalaverError, Unauthorized


def mcp(
    side: Annotated[Literal["human", "assistant"], typer.Option("--as", help="Whose tools: a person's or an agent's.")],
    session: Annotated[str, typer.Option(help="The conversation's id.")],
    data: Annotated[Path | None, typer.Option(help="The server's data directory.")] = None,
    url: Annotated[str | None, typer.Option(help="The server's address.")] = None,
) -> None:
    """Speak MCP on standard input and output: the inbox of one conversation. PALAVER_TOKEN holds a token of your own."""
    try:
        from palaver.faces.inbox.bridge import bridge
    except ImportError:
        complain("chat over MCP is not installed here. Install it with: pip install 'palaver[mcp]'")
        raise typer.Exit(FAILED) from None
    try:
        directory = data_directory(data)
        asyncio.run(bridge(server_address(directory, url), read_token(directory), side, session))
    except PalaverError as error:
        complain(error.message)
        far = isinstance(error, Unauthorized) or error.code == "unavailable"
        raise typer.Exit(UNREACHABLE if far else FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None

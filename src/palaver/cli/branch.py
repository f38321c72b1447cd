"""`palaver branch`: a new conversation that goes on from any message of another. The other stays as it is."""

from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import Server, run

if TYPE_CHECKING:
    from palaver.client import Client
    from palaver.schema.commands import Accepted

EXAMPLES = (
    "palaver branch last",
    "palaver branch 3f9c2a1b --at 4",
    'palaver send -c "$(palaver branch last --at -2)" "Try it the other way."',
)


def branch(
    conversation: options.Conversation,
    at: Annotated[
        str | None,
        typer.Option(
            help="The last message to take over: its id, or its number (1 is the first, -1 the last); else all."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="A title of its own.")] = None,
    agent: options.Agent = None,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Copy a conversation up to a message into a new one, and print its id."""
    from palaver.cli.support.output import note, print_json

    async def make(client: "Client") -> "tuple[str, Accepted]":
        from palaver.cli.support import resolve_id
        from palaver.schema.commands import Branch, CreateConversation

        source = await resolve_id.conversation(client, conversation)
        if agent is not None and (problem := await resolve_id.unknown_agent(client, agent)):
            raise problem
        message = await resolve_id.message(client, source, at) if at else None
        begin = Branch(conversation=source, message=message)
        return source, await client.create(CreateConversation(title=title, agent=agent, branch=begin))

    source, made = run(Server(data, url, token), make)
    if json:
        print_json(made)
        return
    print(made.conversation)
    note(f'from {source}. Go on there: palaver send -c {made.conversation} "…"')

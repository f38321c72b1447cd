"""`palaver tail`: the end of a conversation, and with -f whatever happens from now on.

For people the messages; with `--json` the events as they are stored, one a line, which is what programs follow.
"""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli import options
from palaver.cli.connection import Server, run
from palaver.cli.exits import Exit

if TYPE_CHECKING:
    from palaver.client import Client
    from palaver.schema.view import State

EXAMPLES = (
    "palaver tail -f last",
    "palaver tail last -n 3",
    "palaver tail last --json | jq -r .type",
    "palaver tail -f last --json --after 0 | jq 'select(.type == \"tool.called\")'",
)

LAST = 10


def tail(
    conversation: options.MaybeConversation = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what happens, until Ctrl-C.")] = False,
    last: Annotated[
        int, typer.Option("--last", "-n", help="So many messages (with --json: events) first.", min=0)
    ] = LAST,
    after: Annotated[int | None, typer.Option(help="With --json: every event after this seq instead.", min=0)] = None,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Show the end of a conversation; without a name, of the latest. -f follows it, through restarts of the server."""
    if after is not None and not json:
        raise typer.BadParameter("--after counts events, which only --json prints.", param_hint="--after")

    async def work(client: "Client") -> Exit:
        from palaver.cli import choosing

        meant = await choosing.conversation(client, conversation or "last")
        if json:
            return await _lines(client, meant, last, after, follow)
        return await _messages(client, meant, last, follow)

    raise typer.Exit(run(Server(data, url, token), work))


async def _lines(client: "Client", conversation: str, last: int, after: int | None, follow: bool) -> Exit:
    head = (await client.snapshot(conversation, tail=1)).seq
    begin = max(0, head - last) if after is None else after
    if not follow and begin >= head:
        return Exit.OK
    async for line in client.lines(conversation, begin):
        sys.stdout.write(line.data.decode() + "\n")
        sys.stdout.flush()
        if not follow and line.seq >= head:
            break
    return Exit.OK


async def _messages(client: "Client", conversation: str, last: int, follow: bool) -> Exit:
    from palaver.cli.output import console
    from palaver.cli.show import readable_lines, whole_view

    state = await whole_view(client, conversation, max(1, last))
    to = console()
    for line in readable_lines(state, full=False, ids=False):
        to.print(line[0], style=line[1] or None, soft_wrap=True)
    return await _followed(client, state) if follow else Exit.OK


async def _followed(client: "Client", state: "State") -> Exit:
    from palaver.cli.asking import described, how_to_answer
    from palaver.cli.output import console
    from palaver.cli.readable import message
    from palaver.cli.telling import Teller
    from palaver.cli.watching import opened_in
    from palaver.schema.events import (
        AnswerStarted,
        ConversationDeleted,
        MessageAdded,
        RequestOpened,
        TurnFinished,
        TurnInterrupted,
    )

    to = console()

    def say(line: str) -> None:
        to.print(line, style="dim", soft_wrap=True)

    teller = Teller(say)
    turn: str | None = None
    async for followed in client.follow(state.conversation, state):
        for event in followed.events:
            match event:
                case MessageAdded():
                    added = next((one for one in followed.state.messages if one.id == event.message), None)
                    for line in message(added) if added else ():
                        to.print(line.text, style=line.style or None, soft_wrap=True)
                case AnswerStarted() if event.turn != turn:
                    turn = event.turn
                    begun = next((one for one in followed.state.messages if one.id == event.message), None)
                    for line in message(begun) if begun else ():
                        to.print(line.text, style=line.style or None, soft_wrap=True)
                case RequestOpened():
                    request = opened_in(followed.state, event)
                    for words in (*described(request), f"→ {how_to_answer(request)}"):
                        to.print(words, style="yellow", soft_wrap=True)
                case TurnFinished() if event.error is not None:
                    to.print(f"(failed: {event.error.message})", style="red", soft_wrap=True)
                case TurnInterrupted():
                    to.print(f"(stopped: {event.reason})", style="yellow")
                case ConversationDeleted():
                    say("(deleted)")
                    return Exit.OK
                case _:
                    teller.tell(event)
    return Exit.OK

"""`palaver tail`: the end of a conversation, and with -f whatever happens from now on.

For people the messages; with `--json` the events as they are stored, one a line, which is what programs follow.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import Server, run
from palaver.cli.support.exits import Exit

if TYPE_CHECKING:
    from palaver.client import Client
    from palaver.schema.events import Event
    from palaver.schema.view import Message, State

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
        from palaver.cli.support import resolve_id

        meant = await resolve_id.conversation(client, conversation or "last")
        if json:
            return await _lines(client, meant, last, after, follow)
        return await _messages(client, meant, last, follow)

    raise typer.Exit(run(Server(data, url, token), work))


async def _lines(client: "Client", conversation: str, last: int, after: int | None, follow: bool) -> Exit:
    from palaver.cli.support.output import print_json_line

    head = (await client.snapshot(conversation, tail=1)).seq
    begin = max(0, head - last) if after is None else after
    if not follow and begin >= head:
        return Exit.OK
    async for line in client.lines(conversation, begin):
        print_json_line(line.data)
        if not follow and line.seq >= head:
            break
    return Exit.OK


async def _messages(client: "Client", conversation: str, last: int, follow: bool) -> Exit:
    from palaver.cli.show import readable_lines, whole_view
    from palaver.cli.support.output import line_printer

    state = await whole_view(client, conversation, max(1, last))
    print_line = line_printer()
    for words, style in readable_lines(state, full=False, ids=False):
        print_line(words, style)
    return await _follow(client, state) if follow else Exit.OK


async def _follow(client: "Client", state: "State") -> Exit:
    follower = _Follower()
    async for followed in client.follow(state.conversation, state):
        if not followed.events:
            # A snapshot in the place of events that are gone: what was said meanwhile is told as a whole.
            for one in followed.state.messages:
                if one.seq > state.seq:
                    follower.print_message(one)
        for event in followed.events:
            follower.take(event, followed.state)
        state = followed.state
        if state.deleted:
            break
    return Exit.OK


class _Follower:
    """Tells a conversation as it goes on, under a heading for each who speaks."""

    def __init__(self) -> None:
        from palaver.cli.support.event_lines import Teller
        from palaver.cli.support.output import line_printer

        self._print_line = line_printer()
        self._teller = Teller(lambda line: self._print(line, "dim"))
        self._turn: str | None = None

    def take(self, event: "Event", state: "State") -> None:
        from palaver.cli.support.follow_turn import request_in
        from palaver.cli.support.request_prompt import describe_request, how_to_answer
        from palaver.client.safe_text import prose
        from palaver.schema import events

        match event:
            case events.MessageAdded():
                self._print_begun(event.message, state)
            case events.AnswerStarted() if event.turn != self._turn:
                self._turn = event.turn
                self._print_begun(event.message, state)
            case events.RequestOpened():
                request = request_in(state, event)
                for words in (*describe_request(request), f"→ {how_to_answer(request)}"):
                    self._print(words, "yellow")
            case events.TurnFinished() if event.error is not None:
                self._print(f"(failed: {prose(event.error.message)})", "red")
            case events.TurnInterrupted():
                self._print(f"(stopped: {event.reason})", "yellow")
            case events.ConversationDeleted():
                self._print("(deleted)", "dim")
            case _:
                self._teller.tell(event)

    def print_message(self, one: "Message") -> None:
        from palaver.cli.support.conversation_text import message

        for line in message(one):
            self._print(line.text, line.style)

    def _print_begun(self, message: str, state: "State") -> None:
        for one in state.messages:
            if one.id == message:
                self.print_message(one)

    def _print(self, words: str, style: str) -> None:
        self._teller.rest()
        self._print_line(words, style)

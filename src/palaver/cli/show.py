"""`palaver show`: a conversation to read, from its end or all of it."""

from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import Server, run

if TYPE_CHECKING:
    from palaver.client import Client
    from palaver.schema.view import State

EXAMPLES = (
    "palaver show last",
    "palaver show 3f9c2a1b -n 5",
    "palaver show last --full | less -R",
    "palaver show last --json | jq '.messages[-1]'",
)

LAST = 20
"""Messages: a few screens."""
SNAPSHOT_MESSAGES = 1000
"""As many as a server gives with a view."""
PAGE_MESSAGES = 500


def show(
    conversation: options.MaybeConversation = None,
    last: Annotated[int, typer.Option("--last", "-n", help="So many messages from its end.", min=1)] = LAST,
    full: Annotated[
        bool, typer.Option("--full", help="Everything: all messages, with thoughts, inputs and outputs of tools.")
    ] = False,
    ids: Annotated[
        bool, typer.Option("--ids", help="With the ids of messages, as `palaver branch --at` takes them.")
    ] = False,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Print a conversation as text; without a name, the latest. --json prints its whole view."""
    from palaver.cli.support.output import line_printer, print_json

    async def fetch(client: "Client") -> "State":
        from palaver.cli.support import resolve_id

        return await whole_view(
            client, await resolve_id.conversation(client, conversation or "last"), None if full else last
        )

    state = run(Server(data, url, token), fetch)
    if json:
        print_json(state)
        return
    print_line = line_printer()
    for words, style in readable_lines(state, full=full, ids=ids):
        print_line(words, style)


async def whole_view(client: "Client", conversation: str, last: int | None) -> "State":
    """The view with so many messages, or with all: history comes in pages."""
    from msgspec.structs import replace

    state = await client.snapshot(conversation, tail=min(last or SNAPSHOT_MESSAGES, SNAPSHOT_MESSAGES))
    while state.offset and state.messages and (last is None or len(state.messages) < last):
        limit = PAGE_MESSAGES if last is None else min(PAGE_MESSAGES, last - len(state.messages))
        older = await client.messages(conversation, state.messages[0].seq, limit)
        if not older:
            break
        state = replace(state, messages=(*older, *state.messages), offset=max(0, state.offset - len(older)))
    return state


def readable_lines(state: "State", *, full: bool, ids: bool) -> "list[tuple[str, str]]":
    from palaver.cli.support.conversation_text import heading, message
    from palaver.cli.support.output import count_of
    from palaver.cli.support.request_prompt import describe_request, how_to_answer

    lines = [(line.text, str(line.style)) for line in heading(state)]
    if state.offset:
        lines.append((f"… {count_of(state.offset, 'earlier message')}; --full shows all", "dim"))
    for one in state.messages:
        told = [(line.text, str(line.style)) for line in message(one, full=full, ids=ids)]
        lines += [("", ""), *told] if told else []
    for item in state.queue:
        from palaver.client.safe_text import one_line
        from palaver.schema.content import plain_text

        lines += [("", ""), (f"── queued: {one_line(plain_text(item.content))}", "dim")]
    for request in state.requests:
        if request.status == "open":
            lines += [("", ""), ("── waiting for you", "yellow"), *((line, "") for line in describe_request(request))]
            lines.append((f"→ {how_to_answer(request)}", ""))
    return lines

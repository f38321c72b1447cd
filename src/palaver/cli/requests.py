"""`palaver requests`: what waits for a person, in all conversations, and the answers to it."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import Server, complain, run
from palaver.cli.support.exits import Exit

if TYPE_CHECKING:
    from palaver.client import Client
    from palaver.client.conversations import WaitingRequest
    from palaver.schema.commands import Accepted

app = options.group("What waits for a person: approvals, questions, plans.")
app.info.no_args_is_help = False
app.info.invoke_without_command = True

EXAMPLES = (
    "palaver requests",
    "palaver requests --recent",
    "palaver requests answer last allow",
    'palaver requests answer 3f9c2a1b deny --note "use the other folder"',
    "palaver requests answer last --option 2",
)


RECENT = 20
Recent = Annotated[
    bool,
    typer.Option("--recent", help="With those that were answered, missed or withdrawn last, and what became of them."),
]


@app.callback(invoke_without_command=True)
def requests(
    ctx: typer.Context,
    recent: Recent = False,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Show what waits for a person, and answer it."""
    if ctx.invoked_subcommand is None:
        list_requests(recent=recent, json=json, data=data, url=url, token=token)


@app.command("list")
def list_requests(
    recent: Recent = False,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Show all that waits, the oldest first."""
    from palaver.cli.support.output import note, print_json

    async def fetch(client: "Client") -> "tuple[list[WaitingRequest], list[WaitingRequest]]":
        return await client.requests(), await client.recent_requests(RECENT) if recent else []

    waiting, over = run(Server(data, url, token), fetch)
    if json:
        for one in (*waiting, *over):
            print_json(one)
        return
    if not waiting:
        note("Nothing waits for you.")
    for place, one in enumerate(waiting):
        if place:
            print()
        _print(one, [other.request.id for other in waiting])
    if over:
        print("\nrecent:")
    for one in over:
        _print_over(one)


def _print_over(one: "WaitingRequest") -> None:
    from palaver.cli.support.output import when
    from palaver.cli.support.request_prompt import became, headline
    from palaver.client.safe_text import one_line

    ended = one.request.resolution.ts if one.request.resolution else one.request.ts
    title = one_line(one.title, 60) or "(untitled)"
    print(f"{when(ended)} · {headline(one.request)} · {became(one.request)} · “{title}” ({one.conversation})")


def _print(one: "WaitingRequest", ids: list[str]) -> None:
    from palaver.cli.support.output import when
    from palaver.cli.support.request_prompt import describe_request, how_to_answer
    from palaver.client.safe_text import one_line

    title = one_line(one.title, 60) or "(untitled)"
    print(f"{when(one.request.ts)} · {one_line(one.agent, 60)} in “{title}” ({one.conversation})")
    print("\n".join(describe_request(one.request)))
    print(f"→ {how_to_answer(one.request, ids)}")


@app.command("answer")
def answer(
    request: options.RequestId,
    word: Annotated[
        Literal["allow", "always", "deny"] | None,
        typer.Argument(
            metavar="allow|always|deny",
            help="Your decision. For a question leave it out, or say deny to leave it unanswered.",
        ),
    ] = None,
    note: Annotated[
        str | None, typer.Option("--note", "-n", help="Words with it: why not, what to change, the answer itself.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", help="An option of a question: its number or label; `2:LABEL` for question 2."),
    ] = None,
    scope: Annotated[
        Literal["conversation", "agent", "project"] | None,
        typer.Option(help="With always: where it counts. The conversation unless told."),
    ] = None,
    offer: Annotated[
        int, typer.Option(help="With always: which of the offers it covers; 1 is the narrowest.", min=1)
    ] = 1,
    stop: Annotated[bool, typer.Option("--stop", help="With deny: end the turn too.")] = False,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Answer a request. The first answer counts; a later one is told so and exits 7."""
    from palaver.cli.support import resolve_id
    from palaver.cli.support.output import is_interactive, print_json
    from palaver.cli.support.request_prompt import Wish, confirm, headline, resolution

    wish = Wish(word, note, option or (), scope, offer - 1, stop)

    async def send(client: "Client") -> "tuple[WaitingRequest, Accepted]":
        waiting = await resolve_id.request(client, request)
        # The latest one may have come a moment ago; one that is named by its id was listed in full.
        if request in resolve_id.LATEST and word != "deny" and is_interactive():
            await confirm(waiting.request)
        return waiting, await client.command(waiting.conversation, resolution(waiting.request, wish))

    waiting, taken = run(Server(data, url, token), send)
    if json:
        print_json(taken)
    elif taken.applied:
        said = {"deny": "Denied", "allow": "Allowed", "always": "Always allowed", None: "Answered"}[word]
        print(f"{said}: {headline(waiting.request)}")
    if not taken.applied:
        complain(f"somebody else was faster: {taken.note or 'it is answered'}")
        raise typer.Exit(Exit.CONFLICT)

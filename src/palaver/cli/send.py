"""`palaver send`: say something to an agent from a terminal or a pipe, and watch it answer.

Text goes to standard output as it streams; everything else (tools, requests, what to do) to standard error, so that a
pipe gets the answer and nothing but the answer. `--json` prints the turn's events instead.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import Server, complain, run
from palaver.cli.support.exits import Exit
from palaver.cli.support.local_files import read_file, readable_name

if TYPE_CHECKING:
    from palaver.client import Client
    from palaver.schema.commands import Accepted
    from palaver.schema.content import Content
    from palaver.schema.view import State

EXAMPLES = (
    'palaver send "What does this project do?"',
    'git diff | palaver send "Review this:" -',
    'palaver send -c last "And the tests?"',
    'palaver send --agent claude --folder ~/src/site --image shot.png "Why is this cut off?"',
    'palaver send --no-wait "Tidy up the tests" && palaver tail -f last',
)


def send(
    text: Annotated[
        list[str], typer.Argument(metavar="TEXT", help="What to say; `-` stands for what comes in on standard input.")
    ],
    conversation: options.InConversation = None,
    agent: options.Agent = None,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", "-d", help="The folder a new conversation works in; without it, this one."),
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="How far the agent may go by itself: plan, ask, accept_edits, auto, full.")
    ] = None,
    image: Annotated[
        list[Path] | None, typer.Option("--image", "-i", help="A picture to go with it; may be given several times.")
    ] = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Leave once it is sent; prints the conversation's id.")
    ] = False,
    stay: Annotated[
        bool,
        typer.Option("--stay", help="Without a terminal: stay while a person is waited for, who answers elsewhere."),
    ] = False,
    timeout: Annotated[float | None, typer.Option(help="Seconds to wait for the answer at most.", min=0.1)] = None,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Send a message and stream the answer.

    Exits 0 only when the turn finished. Ctrl-C stops the turn. When the turn waits for a person you are asked in the
    terminal; in a pipe it says how to answer and exits 9.
    """
    said = _join_words(text)
    if not said.strip() and not image:
        complain("nothing to send. Give some text, or pipe it in and say `-`.")
        raise typer.Exit(Exit.USAGE)
    pictures = [(readable_name(Path(path.name)), _read(path)) for path in image or ()]

    async def work(client: "Client") -> Exit:
        before, sent = await _send_message(client, said, pictures, conversation, agent, folder, mode)
        # Not before: the agent begins while these are read.
        from palaver.cli.support.output import print_json

        if not no_wait:
            from palaver.cli.support.follow_turn import watch

            return await watch(client, before, sent, as_json=json, stays=stay, timeout_s=timeout)
        if json:
            print_json(sent)
        else:
            print(sent.conversation)
        return Exit.OK

    raise typer.Exit(run(Server(data, url, token), work))


def _join_words(pieces: list[str]) -> str:
    """Words are joined as they were typed; what is piped in stands apart from them."""
    if "-" not in pieces:
        return " ".join(pieces)
    piped = sys.stdin.buffer.read().decode(errors="replace")
    place = pieces.index("-")
    parts = (" ".join(pieces[:place]), piped, " ".join(one for one in pieces[place + 1 :] if one != "-"))
    return "\n\n".join(part for part in parts if part.strip())


def _read(path: Path) -> bytes:
    try:
        return read_file(path)
    except OSError as problem:
        complain(f"{readable_name(path)}: {problem.strerror or problem}.")
        raise typer.Exit(Exit.USAGE) from None


async def _send_message(
    client: "Client",
    text: str,
    pictures: list[tuple[str, bytes]],
    conversation: str | None,
    agent: str | None,
    folder: Path | None,
    mode: str | None,
) -> "tuple[State, Accepted]":
    """The conversation before it, and what became of it."""
    from palaver.cli.support import resolve_id
    from palaver.schema.commands import SendMessage

    if conversation is None:
        within, agent = await _begin(client, agent, folder), None
    else:
        within = await resolve_id.conversation(client, conversation)
        if agent is not None and (problem := await resolve_id.unknown_agent(client, agent)):
            raise problem
    content = await _content(client, text, pictures)
    before = await client.snapshot(within, tail=1)
    return before, await client.command(within, SendMessage(content=content, agent=agent, mode=mode))


async def _begin(client: "Client", agent: str | None, folder: Path | None) -> str:
    from palaver.cli.support import resolve_id
    from palaver.errors import Forbidden, Invalid
    from palaver.schema.commands import CreateConversation

    project = str((folder or Path.cwd()).expanduser().resolve())
    # The server may be on another machine; then only it knows its agents of that folder.
    if agent is not None and (problem := await resolve_id.unknown_agent(client, agent, project if folder else None)):
        raise problem
    try:
        return (await client.create(CreateConversation(agent=agent, project=project))).conversation
    except (Forbidden, Invalid) as problem:
        # Where nobody named a folder, this one may mean nothing on the server's machine, or be none that it works in.
        if folder is not None or "project" not in problem.details:
            raise
    return (await client.create(CreateConversation(agent=agent))).conversation


async def _content(client: "Client", text: str, pictures: list[tuple[str, bytes]]) -> "str | Content":
    from palaver.schema.content import ImagePart, ImageUrl, TextPart

    if not pictures:
        return text
    kept = [await client.upload(content, name) for name, content in pictures]
    shown = tuple(ImagePart(image_url=ImageUrl(url=one.url)) for one in kept)
    return (TextPart(text=text), *shown) if text.strip() else shown

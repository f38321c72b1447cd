"""`palaver send`: say something to an agent from a terminal or a pipe, and watch it answer.

Text goes to standard output as it streams; everything else (tools, requests, what to do) to standard error, so that a
pipe gets the answer and nothing but the answer. `--json` prints the turn's events instead.
"""

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from palaver.cli.connection import FAILED, complain, run
from palaver.client import Client
from palaver.errors import PalaverError
from palaver.schema.commands import CreateConversation, Interrupt, ResolveRequest, SendMessage
from palaver.schema.events import (
    Event,
    RequestOpened,
    TextDelta,
    TextFinished,
    ToolCalled,
    ToolFinished,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
    TurnStatus,
    UnknownEvent,
)
from palaver.schema.view import State

INTERRUPTED = 4
"""The turn was stopped before it finished."""


def send(
    text: Annotated[str, typer.Argument(help="What to say; `-` reads it from standard input.")],
    conversation: Annotated[str | None, typer.Option(help="Go on in this conversation instead of a new one.")] = None,
    agent: Annotated[str | None, typer.Option(help="Who shall answer.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the turn's events, one JSON object a line.")] = False,
    data: Annotated[Path | None, typer.Option(help="The server's data directory.")] = None,
    url: Annotated[str | None, typer.Option(help="The server's address.")] = None,
) -> None:
    """Send a message and stream the answer. Exits 0 only when the turn finished; Ctrl-C stops the turn."""
    said = sys.stdin.read() if text == "-" else text
    if not said.strip():
        complain("nothing to send. Give some text, or pipe it in and say `-`.")
        raise typer.Exit(2)
    raise typer.Exit(run(data, url, lambda client: _converse(client, said, conversation, agent, json)))


async def _converse(client: Client, text: str, conversation: str | None, agent: str | None, as_json: bool) -> int:
    if conversation is None:
        created = await client.create(CreateConversation(agent=agent, project=str(Path.cwd())))
        conversation, agent = created.conversation, None
    before = await client.snapshot(conversation, tail=1)
    sent = await client.command(conversation, SendMessage(content=text, agent=agent))
    if sent.queued and not as_json:
        _note("queued: the agent is busy, your message follows.")
    watch = _Watch(client, conversation, sent.id or "", as_json)
    with _stopping_on_interrupt(watch):
        async for followed in client.follow(conversation, before):
            code = watch.ended(followed.state)
            for event in followed.events:
                code = await watch.show(event)
                if code is not None:
                    break
            if code is not None:
                if not as_json:
                    _note(f"conversation {conversation}")
                return code
    return FAILED


class _Watch:
    """Follows one turn: the one that consumes our message."""

    def __init__(self, client: Client, conversation: str, message: str, as_json: bool) -> None:
        self._client = client
        self._conversation = conversation
        self._message = message
        self._as_json = as_json
        self._turn: str | None = None
        self._streamed: set[tuple[str, int]] = set()
        self._names: dict[str, str] = {}

    def ended(self, state: State) -> int | None:
        """A snapshot may have taken the place of the events we waited for, with our turn over in it."""
        last = state.last_turn
        if self._turn is None or last is None or last.id != self._turn:
            return None
        return INTERRUPTED if last.outcome == "interrupted" else FAILED if last.outcome == "failed" else None

    async def show(self, event: Event) -> int | None:
        """Prints what the event means; answers an exit code when it ends our turn."""
        if isinstance(event, UnknownEvent):
            return None
        if isinstance(event, TurnStarted) and self._message in event.trigger.messages:
            self._turn = event.turn
        if self._turn is None or event.turn != self._turn:
            return None
        if self._as_json:
            print(msgspec.json.encode(event).decode(), flush=True)
        else:
            self._print(event)
        match event:
            case RequestOpened():
                await self._ask(event)
            case TurnInterrupted():
                complain(f"interrupted ({event.reason}).")
                return INTERRUPTED
            case TurnFinished():
                if event.error is not None:
                    complain(event.error.message)
                return FAILED if event.outcome == "failed" else 0
            case _:
                pass
        return None

    def _print(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._streamed.add((event.message, event.block))
                print(event.text, end="", flush=True)
            case TextFinished():
                # A compacted replay has no deltas, only the whole text.
                missing = event.text if (event.message, event.block) not in self._streamed else ""
                print(missing, flush=True)
            case ToolCalled():
                self._names[event.call] = event.name
                _note(f"{event.name} {_short(event.input)}")
            case ToolFinished() if not event.ok and event.error is not None:
                _note(f"{self._names.get(event.call, 'tool')} failed: {event.error.message}")
            case TurnStatus() if event.retry is not None:
                retry = event.retry
                _note(f"retrying in {retry.after_s:.0f} s ({retry.attempt} of {retry.of}): {retry.reason}")
            case _:
                pass

    async def stop(self) -> None:
        """Names the turn: a stop that arrives late must not end a later one."""
        if self._turn is not None:
            await self._client.command(self._conversation, Interrupt(turn=self._turn))

    async def _ask(self, request: RequestOpened) -> None:
        title = request.title or request.tool or request.kind
        if request.kind != "approval" or not (sys.stdin.isatty() and sys.stderr.isatty()):
            _note(f"waiting for you: {title}. Answer it on the page.")
            return
        _note(f"{title}\n{request.preview or _short(request.input)}")
        print("Allow? [y/N] ", end="", file=sys.stderr, flush=True)
        reply = await asyncio.to_thread(sys.stdin.readline)
        verdict = ResolveRequest(
            request=request.request, verdict="allow" if reply.strip().lower() in ("y", "yes") else "deny"
        )
        try:
            answer = await self._client.command(self._conversation, verdict)
        except PalaverError as error:
            complain(error.message)
        else:
            if not answer.applied:
                _note(f"somebody else was faster: {answer.note}")


@contextmanager
def _stopping_on_interrupt(watch: "_Watch") -> Iterator[None]:
    """The first Ctrl-C stops the turn, and the answer ends as interrupted; a second one leaves at once."""
    loop = asyncio.get_running_loop()
    stops: list[asyncio.Task[object]] = []

    def stop() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        stops.append(asyncio.ensure_future(watch.stop()))

    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        for task in stops:
            task.cancel()


def _note(sentence: str) -> None:
    if sys.stderr.isatty():
        sentence = f"\033[2m{sentence}\033[0m"
    print(sentence, file=sys.stderr, flush=True)


def _short(value: object, limit: int = 100) -> str:
    text = " ".join(str(value).split()) if not isinstance(value, dict) else " ".join(str(v) for v in value.values())
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"

"""One turn watched to its end: the one that takes up a message. Told as it comes, asked about where somebody can be asked.

Called by `send`. A turn outlives whoever watches it: leaving changes nothing, only Ctrl-C stops it.
"""

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from palaver.cli.support.connection import complain
from palaver.cli.support.event_lines import Teller
from palaver.cli.support.exits import Exit
from palaver.cli.support.output import is_interactive, note, print_json
from palaver.cli.support.request_prompt import ask, describe_request, headline, how_to_answer
from palaver.client import Client
from palaver.client.safe_text import one_line
from palaver.errors import PalaverError
from palaver.schema.commands import Accepted, Interrupt, RemoveQueued
from palaver.schema.events import (
    Event,
    QueueRemoved,
    RequestOpened,
    RequestResolved,
    SubagentStarted,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
    UnknownEvent,
)
from palaver.schema.view import Request, State, TextBlock

FAMILY_S = 2.0
"""How often subagents are asked whether they wait for somebody: their requests are in their own conversations."""


async def watch(
    client: Client, before: State, sent: Accepted, *, as_json: bool, stays: bool, timeout_s: float | None
) -> Exit:
    """Until the turn is over, waits for a person whom nobody can ask here, or takes too long."""
    turn = _Watched(client, before, sent, as_json, stays)
    if sent.queued and not as_json:
        note("queued: the agent is busy, your message follows.")
    try:
        with _stopping_on_interrupt(turn):
            async with asyncio.timeout(timeout_s):
                end = await turn.end()
    except TimeoutError:
        end = Exit.TIMED_OUT
        complain(f"no end after {timeout_s:g} s. The turn goes on: palaver tail -f {sent.conversation}")
    if not as_json:
        note(f"conversation {sent.conversation}")
    return end


class _Watched:
    def __init__(self, client: Client, before: State, sent: Accepted, as_json: bool, stays: bool) -> None:
        self._client = client
        self._before = before
        self._conversation = sent.conversation
        self._message = sent.id or ""
        self._as_json = as_json
        self._stays = stays
        self._turn: str | None = None
        self._teller = Teller(scrubs=sys.stdout.isatty())
        self._has_subagents = False
        self._told: set[str] = set()
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._one_question = asyncio.Lock()
        self._gave_up = asyncio.Event()

    async def end(self) -> Exit:
        work = (self._follow(), self._look_after_subagents(), self._left_unanswered())
        tasks = [asyncio.create_task(one) for one in work]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for task in (*tasks, *self._asked.values()):
                task.cancel()
            await asyncio.gather(*tasks, *self._asked.values(), return_exceptions=True)
            self._teller.rest()

    async def stop(self) -> None:
        """Names the turn: a stop that arrives late must not end a later one. What has not begun is taken back."""
        command = RemoveQueued(item=self._message) if self._turn is None else Interrupt(turn=self._turn)
        with suppress(PalaverError):
            await self._client.command(self._conversation, command)

    async def _follow(self) -> Exit:
        # From before the message on: its turn may be over by now, and must be told all the same.
        async for followed in self._client.follow(self._conversation, self._before):
            if not followed.events and followed.state is not self._before:
                end = self._catch_up(followed.state)
                if end is not None:
                    return end
            for event in followed.events:
                end = self._take(event, followed.state)
                if end is not None:
                    return end
        return Exit.FAILED

    def _take(self, event: Event, state: State) -> Exit | None:
        """Tells what the event means; answers how it ends when it ends our turn."""
        if isinstance(event, UnknownEvent):
            return None
        if isinstance(event, TurnStarted) and self._message in event.trigger.messages:
            self._turn = event.turn
        if isinstance(event, QueueRemoved) and event.item == self._message and event.reason == "cancelled":
            complain("taken back before its turn began.")
            return Exit.STOPPED
        if self._turn is None or event.turn != self._turn:
            return None
        if self._as_json:
            print_json(event)
        else:
            self._teller.tell(event)
        self._has_subagents = self._has_subagents or isinstance(event, SubagentStarted)
        match event:
            case RequestOpened():
                return self._waits(self._conversation, request_in(state, event))
            case RequestResolved() if (asking := self._asked.pop(event.request, None)) is not None:
                asking.cancel()
            case TurnInterrupted():
                complain(f"interrupted ({event.reason}).")
                return Exit.STOPPED
            case TurnFinished():
                if event.error is not None:
                    complain(event.error.message)
                return Exit.FAILED if event.outcome == "failed" else Exit.OK
            case _:
                pass
        return None

    def _catch_up(self, state: State) -> Exit | None:
        """A snapshot took the place of events we waited for; our turn may run in it, or be over."""
        if state.turn is not None and self._message in state.turn.trigger.messages:
            self._turn = state.turn.id
            return None
        if any(item.id == self._message for item in state.queue) or state.last_turn is None:
            return None
        answer = [one for one in state.messages if one.role == "assistant" and one.turn == state.last_turn.id]
        if self._as_json:
            print_json(state)
        else:
            texts = [block.text for one in answer for block in one.blocks if isinstance(block, TextBlock)]
            self._teller.missed(texts)
        if state.last_turn.error is not None:
            complain(state.last_turn.error.message)
        match state.last_turn.outcome:
            case "interrupted":
                return Exit.STOPPED
            case "failed":
                return Exit.FAILED
            case _:
                return Exit.OK

    async def _look_after_subagents(self) -> Exit:
        while True:
            await asyncio.sleep(FAMILY_S)
            if not self._has_subagents:
                continue
            with suppress(PalaverError):
                for waiting in await self._client.requests(root=self._conversation):
                    end = self._waits(waiting.conversation, waiting.request)
                    if end is not None:
                        return end

    def _waits(self, conversation: str, request: Request) -> Exit | None:
        if request.id in self._told:
            return None
        self._told.add(request.id)
        if is_interactive() and not self._as_json:
            self._asked[request.id] = asyncio.create_task(self._ask(conversation, request))
            return None
        if not self._as_json:
            for line in describe_request(request):
                self._teller.aside(line)
        self._teller.rest()
        self._tell_how(request)
        return None if self._stays else Exit.WAITING

    def _tell_how(self, request: Request) -> None:
        complain(f"the turn is waiting for you: {headline(request)}")
        note(f"answer with:   {how_to_answer(request)}")
        note(f"then go on:    palaver tail -f {self._conversation}")

    async def _left_unanswered(self) -> Exit:
        await self._gave_up.wait()
        return Exit.WAITING

    async def _ask(self, conversation: str, request: Request) -> None:
        async with self._one_question:
            self._teller.rest()
            try:
                command = await ask(request)
            except EOFError:
                print(file=sys.stderr)
                self._tell_how(request)
                self._gave_up.set()
                return
            try:
                answer = await self._client.command(conversation, command)
            except PalaverError as error:
                complain(error.message)
                return
            if not answer.applied:
                note(f"somebody else was faster: {one_line(answer.note or 'it is answered')}")


def request_in(state: State, event: RequestOpened) -> Request:
    return next(request for request in state.requests if request.id == event.request)


@contextmanager
def _stopping_on_interrupt(turn: _Watched) -> Iterator[None]:
    """The first Ctrl-C stops the turn, and the answer ends as interrupted; a second one leaves at once."""
    loop = asyncio.get_running_loop()
    stops: list[asyncio.Task[None]] = []

    def stop() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        stops.append(asyncio.ensure_future(turn.stop()))

    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        for task in stops:
            task.cancel()

"""One conversation, followed: its view now, the events that change it, and how things stand with the server.

Held by the conversation screen, which runs it and is told. It continues at its seq through any number of lost connections
and takes a snapshot where it cannot; older messages are put before the others when the reader wants them. Events are folded
when somebody looks, so a hundred of them between two looks cost one fold.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from msgspec.structs import replace

from palaver.client.client import Client, Followed, Unreachable
from palaver.clock import Clock
from palaver.core.fold.evolve import fold
from palaver.errors import Gone, LogUnavailable, NotFound, PalaverError, Unauthorized
from palaver.schema.events import Event
from palaver.schema.view import Message, State
from palaver.tui.connection import Connection, ConnectionKind

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0
"""A server that is away for long is asked now and then, not all the time."""
SILENCE_S = 20.0
"""A heartbeat comes every 15 seconds; this long after the last sign of life the connection is taken for dead."""
PAGE = 100
"""Older messages fetched at once."""


class Following:
    def __init__(
        self,
        client: Client,
        conversation: str,
        clock: Clock,
        changed: Callable[[], None],
        connected: Callable[[Connection], None],
    ) -> None:
        """`changed` is told that `state` is another one now, `connected` how things stand with the server."""
        self.conversation = conversation
        self.connection = Connection()
        self._client = client
        self._clock = clock
        self._changed = changed
        self._connected = connected
        self._state: State | None = None
        self._pending: list[Event] = []
        self._wire: State | None = None
        """What the connection continues from: the same moment, without the older messages."""
        self._heard_at_ms: int | None = None
        self._behind = 0
        self._head = 0
        self._version: object = None
        self._pause: asyncio.Task[None] | None = None
        self.is_loading = False

    @property
    def state(self) -> State | None:
        """None until the first snapshot."""
        if self._pending and self._state is not None:
            self._state = fold(self._state, self._pending)
            self._pending.clear()
        return self._state

    @property
    def seq(self) -> int:
        return self._wire.seq if self._wire else 0

    # -- one connection after the other

    async def run(self) -> None:
        """Ends when the conversation is gone or the token is refused; else only by being cancelled."""
        pause_s = FIRST_PAUSE_S
        while True:
            before = self.seq
            try:
                await self._once()
            except Unauthorized as refused:
                return self._tell("signed_out", reason=refused.message)
            except (NotFound, Gone) as gone:
                return self._tell("gone", reason=gone.message)
            except (Unreachable, LogUnavailable, TimeoutError) as lost:
                reason = lost.message if isinstance(lost, PalaverError) else ""
            else:
                reason = ""
            pause_s = FIRST_PAUSE_S if self.seq > before else min(LONGEST_PAUSE_S, pause_s * 2)
            self._tell("reconnecting", retry_at_ms=self._clock.now_ms() + int(pause_s * 1000), reason=reason)
            async with asyncio.TaskGroup() as waiting:
                self._pause = waiting.create_task(self._clock.sleep(pause_s))

    def reached(self) -> None:
        """The server answered somebody else here: it is there, and the next attempt waits no longer."""
        if self._pause is not None:
            self._pause.cancel()

    async def _once(self) -> None:
        if self._wire is None:
            self._tell("connecting")
            self._take_snapshot(await self._client.snapshot(self.conversation, PAGE))
            self._head = self.seq
            self._version = (await self._client.about()).get("version")
            self._tell("open")
        else:
            await self._look_how_far()
        assert self._wire is not None
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(SILENCE_S) as watch:

            def heard() -> None:
                self._heard_at_ms = self._clock.now_ms()
                watch.reschedule(loop.time() + SILENCE_S)

            async with aclosing(self._client.stream(self.conversation, self._wire, heard)) as stream:
                async for followed in stream:
                    await self._take(followed)

    async def _take(self, followed: Followed) -> None:
        self._wire = followed.state
        if followed.events:
            self._pending.extend(followed.events)
            self._changed()
        else:
            await self._resync(followed.state)
        if self.connection.kind == "catching_up" and self.seq >= self._head:
            self._tell("caught_up", events=self._behind)

    async def _look_how_far(self) -> None:
        """What was missed, so that it can be said."""
        self._head = (await self._client.conversation(self.conversation)).seq
        self._behind = max(0, self._head - self.seq)
        self._tell("catching_up", events=self._behind)
        if (await self._client.about()).get("version") != self._version:
            self._tell("version_mismatch")
        elif not self._behind:
            self._tell("caught_up")

    def _tell(self, kind: ConnectionKind, *, retry_at_ms: int | None = None, events: int = 0, reason: str = "") -> None:
        self.connection = Connection(kind, retry_at_ms, self._heard_at_ms, self.seq, events, reason)
        self._connected(self.connection)

    # -- the view

    def _take_snapshot(self, state: State) -> None:
        self._heard_at_ms = self._clock.now_ms()
        self._wire = state
        self._state = state
        self._pending.clear()
        self._changed()

    async def _resync(self, state: State) -> None:
        """The view came as a whole. What was loaded above it stays in sight, and is read again: it may have changed too."""
        known = self.state
        self._pending.clear()
        self._state = state if known is None else with_older(state, known.messages)
        self._changed()
        fresh, wanted = state, len(self._state.messages)
        try:
            while fresh.offset and fresh.messages and len(fresh.messages) < wanted:
                page = await self._client.messages(self.conversation, fresh.messages[0].seq, PAGE)
                if not page:
                    break
                fresh = with_older(fresh, tuple(page))
        except PalaverError:
            return  # What was known before is the best there is.
        self._state = fresh
        self._changed()

    async def load_older(self) -> bool:
        """Puts a page before what is at hand. Raises PalaverError; False when there is nothing more or it is under way."""
        state = self.state
        if state is None or not state.offset or not state.messages or self.is_loading:
            return False
        self.is_loading = True
        try:
            page = await self._client.messages(self.conversation, state.messages[0].seq, PAGE)
        finally:
            self.is_loading = False
        current = self.state
        if current is None or not page:
            return False
        self._state = with_older(current, tuple(page))
        self._changed()
        return True


def with_older(state: State, older: tuple[Message, ...]) -> State:
    """The view with messages from before its first one; as many as there is room for."""
    if not state.offset:
        return state
    first = state.messages[0].seq if state.messages else state.seq + 1
    before = tuple(message for message in older if message.seq < first)[-state.offset :]
    return replace(state, messages=(*before, *state.messages), offset=state.offset - len(before)) if before else state

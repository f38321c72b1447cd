"""Following one conversation: a view that goes on through any number of lost connections, and the bare lines beneath it.

A part of `Client`. It holds a folded view, or a seq, and continues there; what it cannot continue comes as a snapshot.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from palaver.client.connection import FIRST_PAUSE_S, LONGEST_PAUSE_S, SILENCE_S, Connection, Unreachable, error_of
from palaver.client.sse import ServerSent, server_sent
from palaver.schema.view import State

if TYPE_CHECKING:
    from palaver.schema.events import Event


class _SnapshotFrame(Struct):
    seq: int
    state: State


class _Numbered(Struct):
    seq: int


@dataclass(frozen=True, slots=True)
class Followed:
    """The view after some events arrived. `events` is empty when the view came as a whole (a snapshot)."""

    state: State
    events: "tuple[Event, ...]" = ()


@dataclass(frozen=True, slots=True)
class Line:
    """An event as it is stored, or a snapshot in the place of some that are gone."""

    seq: int
    data: bytes


class Following(Connection):
    async def follow(self, conversation: str, state: State | None = None) -> AsyncGenerator[Followed, None]:
        """The conversation's view, now and after every change, through reconnects and restarts of the server.

        Ends only by the caller, or when the conversation is gone or the token refused.
        """
        if state is None:
            state = await self._get(f"/api/conversations/{conversation}/snapshot", State, {"tail": 100})
        view = state
        yield Followed(view)
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                async for followed in self._views(conversation, view):
                    view, pause_s = followed.state, FIRST_PAUSE_S
                    yield followed
            except (OSError, Unreachable):
                pass
            await asyncio.sleep(pause_s)
            pause_s = min(LONGEST_PAUSE_S, pause_s * 2)

    async def stream(
        self, conversation: str, view: State, heard: Callable[[], None] | None = None
    ) -> AsyncGenerator[Followed, None]:
        """Following for as long as one connection lasts: for those who show the connection itself.

        Ends when the server ends it, raises Unreachable when it breaks. `heard` is told of each sign of life, heartbeats too.
        """
        try:
            async for followed in self._views(conversation, view, heard):
                yield followed
        except OSError as failure:
            raise self._unreachable(failure) from failure

    async def lines(self, conversation: str, after: int) -> AsyncGenerator[Line, None]:
        """Every event after a seq, bytes as stored, then what happens. Through reconnects, each event once."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                async for sent in self._read_events(conversation, after):
                    seq = msgspec.json.decode(sent.data, type=_Numbered).seq
                    if seq > after or sent.event == "snapshot":
                        after, pause_s = seq, FIRST_PAUSE_S
                        yield Line(seq, sent.data)
            except (OSError, Unreachable):
                pass
            await asyncio.sleep(pause_s)
            pause_s = min(LONGEST_PAUSE_S, pause_s * 2)

    async def _views(
        self, conversation: str, view: State, heard: Callable[[], None] | None = None
    ) -> AsyncGenerator[Followed, None]:
        # Most commands of the command line follow nothing, and should not wait for every kind of event.
        from palaver.core.fold.evolve import fold
        from palaver.schema.events import decode_event

        async for sent in self._read_events(conversation, view.seq, heard):
            if sent.event == "snapshot":
                view = msgspec.json.decode(sent.data, type=_SnapshotFrame).state
                yield Followed(view)
                continue
            event = decode_event(sent.data)
            if event.seq > view.seq:
                view = fold(view, (event,))
                yield Followed(view, (event,))

    async def _read_events(
        self, conversation: str, after: int, heard: Callable[[], None] | None = None
    ) -> AsyncGenerator[ServerSent, None]:
        url = f"{self._base_url}/api/conversations/{conversation}/events"
        async with self._http.request(
            "GET", url, self._headers, {"after": str(after)}, silence_s=SILENCE_S
        ) as response:
            if response.status >= 400:
                raise error_of(response.status, await response.read())
            async for sent in server_sent(response.pieces()):
                if heard is not None:
                    heard()
                if sent is not None:
                    yield sent

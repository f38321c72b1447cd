"""What a turn waits for from outside: answers of people to requests, and results of calls that an editor executes.

Both are in the log and in every snapshot; this holds only the live waiters, by id, and the timers of requests. Used by the
owner of a conversation.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from palaver.clock import Clock
from palaver.schema.events import RequestOpened, RequestResolved
from palaver.schema.view import Request, State

PERMISSION_TIMEOUT_S = 300.0
"""How long a client of the stream face may leave a permission unanswered, as its contract says. All else waits."""
PERMISSION_FACE = "stream"

OPEN_REQUESTS = 32
"""More than a person can keep an overview of; they travel in every snapshot."""


STIRRED = "*"
"""What no call and no turn is called: the next thing that happens to a conversation at rest."""


class Waiting:
    def __init__(self, clock: Clock, expired: Callable[[str], None]) -> None:
        self._clock = clock
        self._expired = expired
        self._waiters: dict[str, list[asyncio.Future[RequestResolved]]] = {}
        self._timers: dict[str, asyncio.Task[None]] = {}

    def __bool__(self) -> bool:
        return bool(self._timers)

    @property
    def asked(self) -> frozenset[str]:
        """Requests somebody here waits for, some of them perhaps on their way to the disk."""
        return frozenset(self._waiters)

    def enter(self, request: str) -> asyncio.Future[RequestResolved]:
        answered: asyncio.Future[RequestResolved] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(request, []).append(answered)
        return answered

    def leave(self, request: str, answered: asyncio.Future[RequestResolved]) -> None:
        waiters = self._waiters.get(request, [])
        if answered in waiters:
            waiters.remove(answered)
        if not waiters:
            self._waiters.pop(request, None)

    def open(self, request: Request) -> None:
        if request.expires_at is not None and request.id not in self._timers:
            self._timers[request.id] = asyncio.create_task(
                self._expire(request.id, request.expires_at), name=f"expire {request.id}"
            )

    def resolved(self, event: RequestResolved) -> None:
        if timer := self._timers.pop(event.request, None):
            timer.cancel()
        for waiter in self._waiters.pop(event.request, []):
            if not waiter.done():
                waiter.set_result(event)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    async def _expire(self, request: str, expires_at: int) -> None:
        # Waited on the monotonic clock: setting the wall clock neither hastens nor delays it while the server lives.
        await self._clock.sleep(max(0.0, (expires_at - self._clock.now_ms()) / 1000))
        self._timers.pop(request, None)
        self._expired(request)


class Results:
    """Who waits for the result of which call, or for the end of which turn."""

    def __init__(self) -> None:
        self._waiters: dict[str, asyncio.Future[State]] = {}

    async def wait(self, call: str) -> State:
        """The view as it was in that moment."""
        if call not in self._waiters:
            self._waiters[call] = asyncio.get_running_loop().create_future()
        # Shielded: one who gives up must not take the result from another.
        return await asyncio.shield(self._waiters[call])

    def came(self, call: str, state: State) -> None:
        waiter = self._waiters.pop(call, None)
        if waiter is not None and not waiter.done():
            waiter.set_result(state)


def too_many(request: RequestOpened) -> RequestResolved:
    """The answer to a request that is not even opened."""
    return RequestResolved(
        request=request.request,
        status="cancelled",
        text=f"{OPEN_REQUESTS} requests wait for a person already; nothing was done. Ask again when some are answered.",
    )


def with_expiry(
    request: RequestOpened, params: Mapping[str, Any], now_ms: int, face: str | None = None
) -> RequestOpened:
    """The request with the time at which it expires, if it does: the one place that decides this.

    `params` are those of the settings, overruled by the agent's and the conversation's; 0 is never, and so is silence, but
    for a permission of a turn that the stream face began. `face` is where that turn came from.
    """
    is_streams = face == PERMISSION_FACE and request.kind == "approval"
    timeout_s = params.get("request_timeout_s", PERMISSION_TIMEOUT_S if is_streams else 0)
    if request.expires_at is not None or not isinstance(timeout_s, int | float) or timeout_s <= 0:
        return request
    return replace(request, expires_at=now_ms + int(timeout_s * 1000))


def face_of(state: State, turn: str) -> str | None:
    """The face that began the active turn: where the message came from that it answers.

    A turn that goes on after a restart answers no message of its own; the latest of a person counts for it.
    """
    active = state.turn
    if active is None or active.id != turn:
        return None
    said = [message for message in state.messages if message.role == "user" and message.origin is not None]
    answered = [message for message in said if message.id in active.trigger.messages] or said[-1:]
    return next((message.origin.face for message in answered if message.origin is not None), None)


def find_recorded_answer(request: Request) -> RequestResolved | None:
    """The answer that was given before anyone here waited for it."""
    resolution = request.resolution
    if resolution is None:
        return None
    return RequestResolved(
        turn=request.turn,
        request=request.id,
        status=resolution.status,
        verdict=resolution.verdict,
        then=resolution.then,
        scope=resolution.scope,
        offer=resolution.offer,
        answers=resolution.answers,
        text=resolution.text,
        input=resolution.input,
    )

"""Subscriptions to the inbox, as the two eras of MCP have them, over one stream of updates.

Used by the servers behind HTTP and by the bridge to standard streams. What a handshake client subscribes to lasts as long
as its session; what a client of 2026-07-28 listens to, as long as its request.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from palaver.errors import PalaverError

INBOX = "ui://chat/inbox"

Context = Any
"""The package's request context; its parameters are of no interest here."""
Updates = Callable[[Context, asyncio.Event], AsyncGenerator[None, None]]
"""One item a batch, from the moment that the event is set."""


class Subscriptions:
    def __init__(self, updates: Updates) -> None:
        self._updates = updates

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        require_known(params.uri)
        held = _subscriptions_of(ctx)
        if INBOX not in held:
            listening = asyncio.Event()
            telling = held[INBOX] = asyncio.create_task(self._tell(ctx, listening), name="tell an inbox's subscriber")
            await _either(listening, telling)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        require_known(params.uri)
        if telling := _subscriptions_of(ctx).pop(INBOX, None):
            telling.cancel()
        return types.EmptyResult()

    async def _tell(self, ctx: Context, listening: asyncio.Event) -> None:
        """As long as the session lasts, or the conversation."""
        try:
            async with aclosing(self._updates(ctx, listening)) as news:
                async for _ in news:
                    await ctx.session.send_resource_updated(INBOX)
        except PalaverError:
            # Deleted; whoever reads next is told so.
            return

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        bus, listening, paced = InMemorySubscriptionBus(), asyncio.Event(), _Paced(ctx)

        async def publish() -> None:
            async with aclosing(self._updates(ctx, listening)) as news:
                async for _ in news:
                    paced.written.clear()
                    await bus.publish(ResourceUpdated(uri=INBOX))
                    # What happens meanwhile is one more update, however much it is.
                    await paced.written.wait()

        publishing = asyncio.create_task(publish(), name="tell an inbox's listener")
        try:
            # Before the acknowledgement: whatever is posted after it must be told.
            await _either(listening, publishing)
            return await ListenHandler(bus)(paced, params)  # type: ignore[arg-type]
        finally:
            publishing.cancel()
            await asyncio.wait({publishing})


class _Paced:
    """A request's context that also says when the last notification was written: the package itself would gather up to
    a thousand of them for a client that does not read (mcp 2.3)."""

    def __init__(self, ctx: Context) -> None:
        self._session = ctx.session
        self.request_id = ctx.request_id
        self.session = self
        self.written = asyncio.Event()

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        await self._session.send_notification(notification, related_request_id=related_request_id)
        self.written.set()


def require_known(uri: Any) -> None:
    if str(uri) != INBOX:
        raise MCPError(types.INVALID_PARAMS, f"There is no resource {uri} here; there is {INBOX}.", {"uri": str(uri)})


def _subscriptions_of(ctx: Context) -> dict[str, asyncio.Task[None]]:
    """The subscriptions of a session; they end with it."""
    # The package shows handlers no connection, and tells them of its end in no other way (mcp 2.3).
    connection: Any = ctx.session._connection
    held: dict[str, asyncio.Task[None]] | None = connection.state.get(INBOX)
    if held is None:
        held = connection.state[INBOX] = {}

        def end(tasks: dict[str, asyncio.Task[None]] = held) -> None:
            for task in tasks.values():
                task.cancel()

        connection.exit_stack.callback(end)
    return held


async def _either(happened: asyncio.Event, task: asyncio.Task[None]) -> None:
    """Until the event, or the task's own end."""
    waiting = asyncio.create_task(happened.wait())
    try:
        await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if task.done() and (failure := task.exception()) is not None:
        words = failure.message if isinstance(failure, PalaverError) else str(failure)
        raise MCPError(types.INVALID_REQUEST, words) from None

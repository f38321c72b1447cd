"""One WebSocket a client, over which it follows any number of conversations and the list of them.

One task reads what the client asks, one writes; between the subscriptions and the writer stands an outbox bounded in bytes,
so a client that reads slowly slows only its own subscriptions, and those are cursors that wait for free. Nothing a client
sends ends the server's side by accident: what is not understood is answered by an error line.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, assert_never

import msgspec
from litestar import WebSocket, websocket
from litestar.exceptions import WebSocketDisconnect
from msgspec import Struct

from palaver.errors import Busy, Invalid, PalaverError
from palaver.faces.http.body import decode
from palaver.faces.http.errors import refuse, unforeseen
from palaver.faces.http.open_streams import StreamEnded
from palaver.faces.http.stall import Hanging
from palaver.faces.native.lines import snapshot_line
from palaver.faces.native.outbox import Outbox
from palaver.faces.rights import FOLLOWING, require
from palaver.faces.server import Server
from palaver.feed.feed import HEARTBEAT_S, CaughtUp, Heartbeat, Item, Snapshot
from palaver.feed.frames import Frame
from palaver.journal import Journal
from palaver.people.authentication import Principal
from palaver.schema.base import Id

logger = Journal(__name__)

OUTBOX_BYTES = 512 << 10
"""What may wait for one socket: two visits to the log, so that writing and reading overlap."""
SEND_S = 20.0
"""A client that takes nothing for this long is gone, whatever its connection says."""
SUBSCRIPTIONS = 256
"""More conversations than a person keeps in view."""

SIGNED_OUT = 4401
RESTARTING = 1012


class _Asked(Struct, frozen=True, kw_only=True, tag_field="type"):
    pass


class Subscribe(_Asked, tag="subscribe"):
    """`after` continues; without it a snapshot comes first. `epoch` names the store that `after` belongs to."""

    conversation: Id
    after: int | None = None
    epoch: str | None = None


class Unsubscribe(_Asked, tag="unsubscribe"):
    conversation: Id


class FollowList(_Asked, tag="follow_list"):
    after_pos: int | None = None


class Ping(_Asked, tag="ping"):
    nonce: str | int | None = None


Asked = Subscribe | Unsubscribe | FollowList | Ping

_asked: "msgspec.json.Decoder[Asked]" = msgspec.json.Decoder(Asked)

Socket = WebSocket[Principal, Principal, Any]


@websocket("/api/socket")
async def socket(socket: Socket, server: Server) -> None:
    """Follow conversations and the list of them."""
    try:
        async with server.streams.open(socket.auth):
            await socket.accept()
            await Following(socket, server).run()
    except Busy as refusal:
        await refuse(socket.scope, socket.receive, socket.send, refusal)
    except StreamEnded as ended:
        await _close(socket, SIGNED_OUT if ended.reason == "signed_out" else RESTARTING)


class _Stalled(Exception):
    pass


class _Subscription:
    """One thing followed. Its identity marks what it put into the outbox."""

    def __init__(self, lines: AsyncGenerator[bytes, None], conversation: str | None) -> None:
        self.lines = lines
        self.conversation = conversation
        self.task: asyncio.Task[None] | None = None


class Following:
    """One client's socket, from its greeting to its end."""

    def __init__(self, socket: Socket, server: Server) -> None:
        self._socket = socket
        self._server = server
        self._outbox = Outbox(OUTBOX_BYTES)
        self._subscriptions: dict[str | None, _Subscription] = {}

    async def run(self) -> None:
        server = self._server
        await self._say(type="hello", epoch=server.log.epoch, version=server.version, server=server.name)
        try:
            async with asyncio.TaskGroup() as tasks:
                writes = Hanging(self._socket.send)
                held = [tasks.create_task(work) for work in (self._write(writes), self._beat(), _watch(writes))]
                await self._read(tasks)
                for task in (*held, *(known.task for known in self._subscriptions.values())):
                    if task is not None:
                        task.cancel()
        except* _Stalled:
            logger.info("a client hangs and was let go")

    # -- in

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            try:
                text = await self._socket.receive_data(mode="text")
            except WebSocketDisconnect:
                return
            try:
                await self._answer(decode(text.encode(), _asked), tasks)
            except PalaverError as refusal:
                await self._say(type="error", code=refusal.code, message=refusal.message)

    async def _answer(self, asked: Asked, tasks: asyncio.TaskGroup) -> None:
        require(self._socket.auth, FOLLOWING[str(asked.__struct_config__.tag)])
        match asked:
            case Subscribe():
                if len(self._subscriptions) >= SUBSCRIPTIONS and asked.conversation not in self._subscriptions:
                    raise Busy(
                        f"One socket follows {SUBSCRIPTIONS} conversations at most; unsubscribe from some first."
                    )
                if asked.after is not None and asked.after < 0:
                    raise Invalid("`after`: a cursor is the number of the last event seen.")
                self._follow(asked.conversation, self._events(asked), tasks)
            case Unsubscribe():
                self._leave(asked.conversation)
            case FollowList():
                self._follow(None, self._server.listings.follow(asked.after_pos), tasks)
            case Ping():
                await self._say(type="pong", nonce=asked.nonce)
            case _:
                assert_never(asked)

    # -- what is followed

    def _follow(self, conversation: str | None, lines: AsyncGenerator[bytes, None], tasks: asyncio.TaskGroup) -> None:
        self._leave(conversation)
        subscription = _Subscription(lines, conversation)
        self._subscriptions[conversation] = subscription
        subscription.task = tasks.create_task(self._pass_on(subscription))

    def _leave(self, conversation: str | None) -> None:
        subscription = self._subscriptions.pop(conversation, None)
        if subscription is not None and subscription.task is not None:
            subscription.task.cancel()
            self._outbox.forget(subscription)

    async def _pass_on(self, subscription: _Subscription) -> None:
        named = {} if subscription.conversation is None else {"conversation": subscription.conversation}
        try:
            async with aclosing(subscription.lines) as lines:
                async for line in lines:
                    await self._outbox.put(subscription, line)
        except PalaverError as refusal:
            await self._say(type="error", code=refusal.code, message=refusal.message, **named)
        except Exception as failure:  # noqa: BLE001 - the border: one broken subscription must not end the others
            error = unforeseen(failure, "socket")
            await self._say(type="error", code=error.code, message=error.message, **named)
        if self._subscriptions.get(subscription.conversation) is subscription:
            del self._subscriptions[subscription.conversation]

    async def _events(self, asked: Subscribe) -> AsyncGenerator[bytes, None]:
        epoch = self._server.log.epoch
        moved_store = asked.after is not None and asked.epoch not in (None, epoch)
        items = self._server.feed.subscribe(
            asked.conversation, asked.after, snapshot_first=asked.after is None or moved_store
        )
        async with aclosing(items) as stream:
            async for item in stream:
                line = self._line(asked.conversation, item, moved_store)
                if line:
                    yield line

    def _line(self, conversation: str, item: Item, moved_store: bool) -> bytes:
        match item:
            case Frame():
                return item.body
            case Snapshot():
                reason = "epoch" if moved_store and item.reason == "start" else item.reason
                return snapshot_line(conversation, self._server.log.epoch, item, reason) + b"\n"
            case CaughtUp():
                return _encode(type="caught_up", conversation=conversation, seq=item.seq)
            case Heartbeat():
                return b""  # The socket has one of its own.
            case _:
                assert_never(item)

    # -- out

    async def _write(self, writes: Hanging) -> None:
        while True:
            lines = await self._outbox.take()
            try:
                await writes.send({"type": "websocket.send", "text": lines[:-1].decode(), "bytes": None})
            except (WebSocketDisconnect, OSError):
                return  # The reader meets the same end and says so.

    async def _beat(self) -> None:
        while True:
            await self._server.clock.sleep(HEARTBEAT_S)
            await self._say(type="heartbeat", ts=self._server.clock.now_ms())

    async def _say(self, **fields: object) -> None:
        await self._outbox.put(None, _encode(**fields))


async def _watch(writes: Hanging) -> None:
    while True:
        await asyncio.sleep(SEND_S)
        if writes.look():
            raise _Stalled


def _encode(**fields: object) -> bytes:
    return msgspec.json.encode(fields) + b"\n"


async def _close(socket: Socket, code: int) -> None:
    async with asyncio.timeout(SEND_S):
        await socket.close(code=code)


ROUTES = [socket]

"""One client's socket, from its greeting to its end.

One task reads what the client says and carries it out in order; each subscription is a task that writes what it follows,
one at a time. A client that reads slowly slows only its own subscriptions, and those are cursors that wait for free. One
that is too slow for what is kept in memory gets what it missed from the log, in order and without a gap. Nothing a client
says ends the connection but a wrong version in its greeting.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from litestar import WebSocket
from litestar.exceptions import WebSocketDisconnect

from palaver.errors import Busy, Gone, PalaverError
from palaver.faces.http.errors import unforeseen
from palaver.faces.http.open_streams import OpenStream
from palaver.faces.http.rings import Beat, Behind
from palaver.faces.http.stall import Hanging
from palaver.faces.http.websocket_frames import EXTENSION, payloads
from palaver.faces.projection import Following
from palaver.faces.server import ServerParts, origin_for
from palaver.faces.socket.bulletin import News
from palaver.faces.socket.client_frames import (
    PROTOCOL_VERSION,
    Asked,
    Cursor,
    Hello,
    Ping,
    Subscribe,
    UnknownType,
    Unsubscribe,
    Wanted,
    read,
)
from palaver.faces.socket.execution import carry_out
from palaver.faces.socket.live import SocketFace
from palaver.faces.socket.pieces import but_for, look
from palaver.faces.socket.projection import FACE, encode_frame
from palaver.faces.socket.replay import Cursor as Place
from palaver.faces.socket.replay import cursor_of, replay
from palaver.faces.socket.sequence import after_event, sequence_of
from palaver.journal import Journal
from palaver.people.authentication import Principal
from palaver.schema.base import Origin

logger = Journal(__name__)

SEND_S = 20.0
"""A client that takes nothing for this long is gone, whatever its connection says."""
SUBSCRIPTIONS = 256
"""More sessions than a person keeps in view."""
UNSUPPORTED = 4400
"""The close code after a wrong version."""

Socket = WebSocket[Principal, Principal, Any]


class _Stalled(Exception):
    pass


class _Over(Exception):
    """The client is told why, then the socket is closed."""


class Connection:
    def __init__(self, socket: Socket, server: ServerParts, face: SocketFace, stream: OpenStream) -> None:
        self._socket = socket
        self._server = server
        self._face = face
        self._writes = Hanging(socket.send, stream)
        self._subscriptions: dict[str, asyncio.Task[None]] = {}
        self._seen: dict[str, int] = {}
        """By session, how far it was followed: the bulletin comes a moment later, and would tell the last of it again to who
        has unsubscribed meanwhile."""
        self._hello: Hello | None = None
        self._takes_frames = EXTENSION in (socket.scope.get("extensions") or {})
        self._client = f"socket-{server.ids.new()}"
        """Known to nobody else: by it a sender is told from everybody else."""

    @property
    def origin(self) -> Origin:
        return origin_for(self._socket.auth, FACE, self._client)

    async def run(self) -> None:
        try:
            async with self._face.bulletin.listening() as news, asyncio.TaskGroup() as tasks:
                held = [tasks.create_task(work) for work in (self._tell(news), _watch(self._writes))]
                await self._read(tasks)
                for task in (*held, *self._subscriptions.values()):
                    task.cancel()
        except* _Stalled:
            logger.info("a client hangs and was let go")
        except* _Over:
            await self._refuse_version()

    # -- in

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            try:
                text = await self._socket.receive_data(mode="text")
            except WebSocketDisconnect:
                return
            try:
                await self._take(read(text.encode()), tasks)
            except UnknownType as unknown:
                await self._say(type="error", code="unknown_message_type", message=unknown.message)
            except PalaverError as refusal:
                await self._say(**_error(refusal))
            except (_Over, asyncio.CancelledError):
                raise
            except Exception as failure:  # noqa: BLE001 - the border: one order that fails must not end the connection
                await self._say(**_error(unforeseen(failure, "socket")))

    async def _take(self, asked: Asked, tasks: asyncio.TaskGroup) -> None:
        if self._hello is None and not isinstance(asked, Hello | Ping):
            await self._say(type="error", code="hello_required", message="Say `hello` first, with `protocolVersion` 2.")
            return
        match asked:
            case Hello():
                await self._greet(asked, tasks)
            case Subscribe():
                self._follow(asked.session_id, asked.after, tasks)
            case Unsubscribe():
                self._leave(asked.session_id)
                await self._say(type="unsubscribed", sessionId=asked.session_id)
            case Ping():
                await self._say(type="pong", **({} if asked.nonce is None else {"nonce": asked.nonce}))
            case _:
                home = self._hello.session_id if self._hello else None
                try:
                    await carry_out(asked, home, self._socket.auth, self.origin, self._server)
                except PalaverError as refusal:
                    named = asked.session_id or home
                    await self._say(**_error(refusal), **({"sessionId": named} if named else {}))

    async def _greet(self, hello: Hello, tasks: asyncio.TaskGroup) -> None:
        if self._hello is not None:
            await self._say(type="error", code="duplicate_hello", message="This connection said hello before.")
            return
        if hello.protocol_version != PROTOCOL_VERSION:
            raise _Over
        self._hello = hello
        wanted = [Wanted(session_id=one) if isinstance(one, str) else one for one in hello.subscriptions or ()]
        if hello.session_id and hello.session_id not in [one.session_id for one in wanted]:
            wanted.append(Wanted(session_id=hello.session_id))
        ready: dict[str, object] = {"protocolVersion": PROTOCOL_VERSION, "server": self._server.name}
        if hello.session_id:
            ready["sessionId"] = hello.session_id
        await self._say(type="session_ready", **ready)
        for one in wanted:
            self._follow(one.session_id, one.after, tasks)

    async def _refuse_version(self) -> None:
        message = f"This server speaks version {PROTOCOL_VERSION} of the protocol."
        error = {"type": "error", "code": "unsupported_protocol_version", "message": message}
        async with asyncio.timeout(SEND_S):
            await self._socket.send_json(error)
            await self._socket.close(code=UNSUPPORTED, reason=message)

    # -- what is followed

    def _follow(self, session: str, after: Cursor | None, tasks: asyncio.TaskGroup) -> None:
        if len(self._subscriptions) >= SUBSCRIPTIONS and session not in self._subscriptions:
            raise Busy(f"One socket follows {SUBSCRIPTIONS} sessions at most; unsubscribe from some first.")
        self._leave(session)
        self._subscriptions[session] = tasks.create_task(self._pass_on(session, after))

    def _leave(self, session: str) -> None:
        if task := self._subscriptions.pop(session, None):
            task.cancel()

    async def _pass_on(self, session: str, after: Cursor | None) -> None:
        try:
            async with (
                self._face.live.following(session) as following,
                self._face.speech.listening(session) as spoken,
                self._passing_on_speech(spoken),
            ):
                await self._forward(session, after, following)
        except PalaverError as refusal:
            await self._say(**_error(refusal), sessionId=session)
        except Exception as failure:  # noqa: BLE001 - the border: one broken subscription must not end the others
            await self._say(**_error(unforeseen(failure, "socket")), sessionId=session)
        if self._subscriptions.get(session) is asyncio.current_task():
            del self._subscriptions[session]

    @asynccontextmanager
    async def _passing_on_speech(self, spoken: "asyncio.Queue[bytes]") -> AsyncIterator[None]:
        async def pass_on() -> None:
            while True:
                await self._write(await spoken.get())

        passing = asyncio.create_task(pass_on(), name="pass on speech")
        try:
            yield
        finally:
            passing.cancel()
            await asyncio.wait({passing})

    async def _forward(self, session: str, after: Cursor | None, following: Following) -> None:
        if following.state.deleted:
            # Others may still listen to it; whoever comes now comes too late.
            raise Gone("This conversation was deleted.", conversation=session)
        seen = self._seen[session] = following.state.seq
        # Without a cursor it begins now.
        cursor = Place(after_event(seen))
        if after is not None:
            cursor = await cursor_of(self._server.log, session, after, seen)
        await self._write(_subscription_frame(session, seen, reset=cursor.reset))
        async with aclosing(replay(self._server.log, session, cursor.after, seen)) as pieces:
            async for frames in pieces:
                # Who begins anew throws away what it shows, so it needs its own messages too.
                await self._write(
                    b"".join([one.body for one in frames]) if cursor.reset else but_for(self._client, frames)
                )
        lagging = False
        while True:
            item = await following.next()
            match item:
                case Beat():
                    pass
                case Behind():
                    if not lagging:
                        await self._write(_resync(session, seen, item.missed))
                    # Still so while it is told what it missed: that is the same falling behind.
                    lagging = True
                    following.begin_anew()
                    since, seen = seen, following.state.seq
                    self._seen[session] = seen
                    await self._catch_up(session, since, seen)
                case _:
                    lagging = False
                    known = look(item)
                    since, seen = seen, known.last
                    self._seen[session] = seen
                    if known.has_gap:
                        await self._catch_up(session, since, seen)
                    else:
                        await self._write(but_for(self._client, item.frames) if known.has_sender else item.body)

    async def _catch_up(self, session: str, after: int, until: int) -> None:
        """What was not said live because this reader was too slow, or because the log alone has the whole of it."""
        missed = replay(self._server.log, session, after_event(after), until, with_news=True)
        async with aclosing(missed) as pieces:
            async for frames in pieces:
                await self._write(but_for(self._client, frames))

    async def _tell(self, news: AsyncGenerator[News | None, None]) -> None:
        async with aclosing(news) as all_news:
            async for one in all_news:
                if one is None:
                    await self._say(
                        type="error", code="resync", message="Some news of sessions was missed. Fetch the list again."
                    )
                elif one.conversation not in self._subscriptions and one.sequence > self._seen.get(one.conversation, 0):
                    # Whoever subscribed hears of it in order, among the other frames.
                    await self._write(one.line)

    # -- out

    async def _write(self, frames: bytes) -> None:
        """Waits while the client is slow. Frames are whole, so that those of others may come between them."""
        if not frames:
            return
        try:
            if self._takes_frames:
                await self._writes.send_bytes({"type": EXTENSION, "body": frames}, len(frames))
                return
            for text in payloads(frames):
                message = {"type": "websocket.send", "text": text.decode(), "bytes": None}
                await self._writes.send_bytes(message, len(text))
        except (WebSocketDisconnect, OSError):
            return  # The reader meets the same end and says so.

    async def _say(self, **fields: object) -> None:
        await self._write(encode_frame(fields))


def _subscription_frame(session: str, event: int, *, reset: bool) -> bytes:
    """`reset`: what the client has is not what follows; it begins anew with it."""
    return encode_frame({"type": "subscribed", "sessionId": session, "sequence": sequence_of(event), "reset": reset})


def _resync(session: str, event: int, missed: int) -> bytes:
    """The client was too slow for what is kept: what follows this number is read from the log, in order and whole."""
    place = {"sessionId": session, "sequence": sequence_of(event)}
    return encode_frame({"type": "resync", **place, "reason": "lagged", "laggedCount": missed})


def _error(refusal: PalaverError) -> dict[str, object]:
    error: dict[str, object] = {"type": "error", "code": refusal.code, "message": refusal.message}
    if refusal.retryable:
        error["retryable"] = True
    return error


async def _watch(writes: Hanging) -> None:
    while True:
        await asyncio.sleep(SEND_S)
        if writes.look():
            raise _Stalled

"""`python -m bench.fanout_server palaver|bare RATE BATCH`: one stream of events for anybody who connects.

`palaver` is the whole server with its native face over a log in memory; `bare` is uvicorn and forty lines that pass prepared
bytes on. Both publish batches at a steady rate once told to by a line on standard input, and end with it.
"""

import asyncio
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import uvicorn
import uvloop

from bench.logs import Writer
from palaver.log.base import Append
from palaver.log.memory import MemoryLog
from palaver.schema.content import as_content
from palaver.schema.events import (
    AnswerStarted,
    ConversationCreated,
    KnownEvent,
    MessageAdded,
    TextDelta,
    TurnStarted,
    encode_event,
)
from palaver.schema.view import Trigger

CONVERSATION = "bench"


BEGINNING: list[KnownEvent] = [
    ConversationCreated(title="Bench"),
    MessageAdded(turn="t" * 36, message="u" * 36, content=as_content("Say something.")),
    TurnStarted(turn="t" * 36, agent="default", backend="bench", trigger=Trigger(messages=("u" * 36,))),
    AnswerStarted(turn="t" * 36, message="m" * 36),
]
"""An answer is being given: what every face has something to say about."""


def deltas(writer: Writer, count: int) -> list[bytes]:
    events: list[KnownEvent] = [TextDelta(turn="t" * 36, message="m" * 36, block=0, text="tok ") for _ in range(count)]
    return [encode_event(event) for event in writer.number(events)]


class Beat:
    """A steady rate: a late batch does not make the next one later."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._due_s = time.monotonic()

    async def next(self) -> None:
        self._due_s += self._every_s
        await asyncio.sleep(max(0.0, self._due_s - time.monotonic()))


async def told() -> None:
    await asyncio.to_thread(sys.stdin.readline)


async def palaver(listener: socket.socket, rate: float, batch: int) -> None:
    from palaver.agents.roster import Roster
    from palaver.app import open_app
    from palaver.config import Config
    from palaver.faces.http.listener import Listener

    log = MemoryLog()
    with tempfile.TemporaryDirectory() as folder:
        config = Config(data=Path(folder), home=Path(folder), port=listener.getsockname()[1])
        async with open_app(config, log=log, roster=Roster((), {})) as app:
            app.streams._limit = 100_000
            writer = Writer.fresh(CONVERSATION)
            await writer.append(log, BEGINNING)
            token = (Path(folder) / "token").read_text().strip()
            server = Listener(app.asgi, app.streams, config, grace_s=1, started=lambda: print(token, flush=True))

            async def publish() -> None:
                await told()
                beat = Beat(batch / rate)
                while True:
                    after = writer.state.seq
                    lines = deltas(writer, batch)
                    await log.append(Append(CONVERSATION, after, lines))
                    app.feed.publish(CONVERSATION, after + 1, after + batch, b"\n".join(lines) + b"\n")
                    await beat.next()

            await asyncio.gather(server.serve(sockets=[listener]), publish())


async def bare(listener: socket.socket, rate: float, batch: int) -> None:
    news = asyncio.Event()
    frames: list[bytes] = []

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b": hello\n\n", "more_body": True})
        cursor = len(frames)
        while True:
            while cursor == len(frames):
                await news.wait()
            body = b"".join(frames[cursor:])
            cursor = len(frames)
            await send({"type": "http.response.body", "body": body, "more_body": True})

    async def publish() -> None:
        writer = Writer.fresh(CONVERSATION)
        await told()
        beat = Beat(batch / rate)
        while True:
            lines = deltas(writer, batch)
            frames.append(b"".join(b"id: %d\ndata: %s\n\n" % (n, line) for n, line in enumerate(lines)))
            news.set()
            news.clear()
            await beat.next()

    config = uvicorn.Config(app, http="httptools", lifespan="off", access_log=False, log_config=None)
    server = uvicorn.Server(config)

    async def serve() -> None:
        print("none", flush=True)
        await server.serve(sockets=[listener])

    await asyncio.gather(serve(), publish())


def main() -> None:
    kind, rate, batch, port = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    uvloop.run((palaver if kind == "palaver" else bare)(listener, rate, batch))


if __name__ == "__main__":
    main()

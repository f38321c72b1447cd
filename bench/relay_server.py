"""`python -m bench.relay_server PORT PROVIDER DATABASE`: the least that can keep a promise like ours.

uvicorn and a few lines: a message is on disk before it is answered and before the model is asked, and the answer's first
piece is on disk before a reader sees it. No conversation, no history, no tools, no policy: what is left of the time to a
first token when all of that is taken away.

    PUT  /request   the body that the provider is sent
    POST /send      one message
    GET  /events    the pieces of all answers, as they come
"""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aiohttp
import apsw
import uvicorn
import uvloop


class Relay:
    def __init__(self, provider: str, database: str) -> None:
        self._address = f"{provider}/v1/chat/completions"
        # One writer thread with a log as ours is: WAL, and every commit synced.
        self._writer = ThreadPoolExecutor(1)
        self._connection = apsw.Connection(database)
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "full")
        self._connection.execute("CREATE TABLE log (line BLOB) STRICT")
        self._http: aiohttp.ClientSession | None = None
        self._request = b""
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._answering: asyncio.Task[None] | None = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        match scope["path"]:
            case "/request":
                self._request = await _body(receive)
                await _answer(send, b"")
            case "/send":
                await self._keep(await _body(receive))
                self._answering = asyncio.create_task(self._relay())
                await _answer(send, b"kept")
            case "/events":
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b": hello\n", "more_body": True})
                while True:
                    await send({"type": "http.response.body", "body": await self._pieces.get(), "more_body": True})
            case _:
                await _answer(send, b"ready")

    async def _relay(self) -> None:
        self._http = self._http or aiohttp.ClientSession(headers={"content-type": "application/json"})
        async with self._http.post(self._address, data=self._request) as response:
            async for chunk in response.content.iter_any():
                await self._keep(chunk)
                self._pieces.put_nowait(chunk)

    async def _keep(self, line: bytes) -> None:
        await asyncio.get_running_loop().run_in_executor(self._writer, self._commit, line)

    def _commit(self, line: bytes) -> None:
        self._connection.execute("INSERT INTO log VALUES (?)", (line,))


async def _body(receive: Any) -> bytes:
    body = b""
    while True:
        message: dict[str, Any] = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return body


async def _answer(send: Any, body: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def main(port: str, provider: str, database: str) -> None:
    config = uvicorn.Config(Relay(provider, database), port=int(port), http="httptools", log_level="error")
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(*sys.argv[1:]))

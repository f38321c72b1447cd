"""Threads that read: a connection each, so that no question waits for a commit or stops the event loop.

`store.py` passes functions that take a connection. Each runs to its end in one go, so none holds a view of the past for
long: the write-ahead log can only start over when nobody reads its beginning.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw

from palaver.errors import LogUnavailable
from palaver.log.sqlite import fulltext
from palaver.log.sqlite.database import DAMAGE, log_error, open_reading

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 2
"""One for the long questions and one for the others; the interpreter runs one thread at a time anyway."""


class Readers:
    def __init__(self, path: Path, repair: Callable[[], Awaitable[None]]) -> None:
        """`repair` rebuilds what a question met on a damaged page, as far as that can be done; then it is asked once more."""
        self._path = path
        self._repair = repair
        self._pool = ThreadPoolExecutor(THREADS, "palaver-log-reader")
        self._mine = threading.local()
        self._connections: list[apsw.Connection] = []
        self._closed = False

    async def ask(self, question: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closed:
            raise LogUnavailable("The log is closed.")

        def answer() -> T:
            return question(self._connection(), *args, **kwargs)

        loop = asyncio.get_running_loop()
        try:
            try:
                return await loop.run_in_executor(self._pool, answer)
            except DAMAGE:
                await self._repair()
                return await loop.run_in_executor(self._pool, answer)
        except (apsw.Error, *DAMAGE) as error:
            raise log_error(error, self._path) from error

    def _connection(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._mine, "connection", None)
        if connection is None:
            connection = open_reading(self._path)
            fulltext.prepare(connection)
            self._mine.connection = connection
            self._connections.append(connection)
        return connection

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._pool.shutdown)
        for connection in self._connections:
            connection.close()
        self._connections.clear()

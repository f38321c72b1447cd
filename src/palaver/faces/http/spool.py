"""Body of a request in a temporary file: for uploads that may be larger than memory should hold.

Used by the import routes. The file has no name, is readable by its owner alone, lies in the server's data directory, and is
gone when the request is over, however that ends.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from litestar import Request

from palaver.errors import LogUnavailable

PIECE_BYTES = 1 << 20
"""Written at once; as much of the body is in memory."""


@asynccontextmanager
async def spool_body(request: Request[Any, Any, Any], folder: Path) -> AsyncIterator[IO[bytes]]:
    """Raises LogUnavailable when there is no room for it; a body that is too large is refused by the route's own limit."""
    with _open(folder) as file:
        held = bytearray()
        async for piece in request.stream():
            held += piece
            if len(held) >= PIECE_BYTES:
                await asyncio.to_thread(_write, file, held)
                held = bytearray()
        await asyncio.to_thread(_write, file, held)
        yield file


def _open(folder: Path) -> IO[bytes]:
    try:
        return TemporaryFile(dir=folder)
    except OSError as problem:
        raise _no_room(problem) from None


def _write(file: IO[bytes], data: bytearray) -> None:
    try:
        file.write(data)
        file.flush()
    except OSError as problem:
        raise _no_room(problem) from None


def _no_room(problem: OSError) -> LogUnavailable:
    return LogUnavailable(f"The upload cannot be kept in the data directory: {problem.strerror or problem}.")

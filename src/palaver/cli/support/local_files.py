"""Files that a person names on the command line, never read without end. Used by `send --attach` and `import`."""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

FILE_BYTES = 64 << 20
"""The largest body that a server takes. A device never ends, and a sparse file holds more than there is memory."""
PIECE_BYTES = 1 << 20


def read_file(path: Path) -> bytes:
    """What a file holds, or what is piped in for `-`. Raises OSError with a `strerror` for a person."""
    if str(path) == "-":
        data = sys.stdin.buffer.read(FILE_BYTES + 1)
    else:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise _too_large()
    return data


@contextmanager
def open_file(path: Path) -> Iterator[BufferedIOBase]:
    """A file to be sent, or what is piped in for `-`, without holding it in memory. Raises OSError as `read_file` does."""
    if str(path) == "-":
        with _copy(sys.stdin.buffer) as copied:
            yield copied
        return
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        if stat.S_ISREG(found.st_mode):
            if found.st_size > FILE_BYTES:
                raise _too_large()
            yield file
        else:
            with _copy(file) as copied:
                yield copied


@contextmanager
def _copy(source: IO[bytes]) -> Iterator[BufferedIOBase]:
    """Of what can be read only once: a request may have to be sent again."""
    with TemporaryFile() as copied:
        while piece := source.read(PIECE_BYTES):
            copied.write(piece)
            if copied.tell() > FILE_BYTES:
                raise _too_large()
        yield copied


def _too_large() -> OSError:
    return OSError(errno.EFBIG, f"it is larger than {FILE_BYTES >> 20} MiB, which no server takes")


def readable_name(path: Path) -> str:
    """A name on disk need not be UTF-8; what is printed or sent of it must be."""
    return os.fsencode(path).decode(errors="replace")

"""Opening and reading a file, if it is one: what else may stand under its name is refused at once.

Used by whoever reads a path that others chose, and for every settings file of the data directory. A pipe would make its reader
wait for ever, a device never end, and a sparse file hold more than there is memory.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

SETTINGS_BYTES = 16 << 20
"""Of a file of settings, tokens or grants: far more than anybody has."""


def open_regular(path: Path) -> BufferedReader:
    """A regular file, for reading; links are followed. Raises OSError with a `strerror` that names what is there instead."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = "a folder" if stat.S_ISDIR(mode) else "no regular file (a pipe, a socket or a device)"
        raise OSError(errno.EINVAL, f"This is {kind}", str(path))
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path, limit_bytes: int = SETTINGS_BYTES) -> bytes:
    """All of a regular file that holds no more than a limit. Raises OSError as `open_regular` does."""
    with open_regular(path) as file:
        data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise OSError(errno.EFBIG, f"It holds more than {limit_bytes >> 10:,} KiB", str(path))
    return data

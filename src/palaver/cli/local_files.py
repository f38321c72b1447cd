"""Files that a person names on the command line, read whole but never without end. Used by `send --attach` and `import`."""

import errno
import os
import sys
from pathlib import Path

FILE_BYTES = 64 << 20
"""The largest body that a server takes. A device never ends, and a sparse file holds more than there is memory."""


def read_file(path: Path) -> bytes:
    """What a file holds, or what is piped in for `-`. Raises OSError with a `strerror` for a person."""
    if str(path) == "-":
        data = sys.stdin.buffer.read(FILE_BYTES + 1)
    else:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {FILE_BYTES >> 20} MiB, which no server takes")
    return data


def readable_name(path: Path) -> str:
    """A name on disk need not be UTF-8; what is printed or sent of it must be."""
    return os.fsencode(path).decode(errors="replace")

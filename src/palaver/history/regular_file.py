"""Opening a file that another program keeps, if it is one: what else may stand under its name is refused at once.

Used by whoever reads a path that others chose. A pipe would make its reader wait for ever, a device never end.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path


def open_regular(path: Path) -> BufferedReader:
    """A regular file, for reading; links are followed. Raises OSError with a `strerror` that names what is there instead."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = "a folder" if stat.S_ISDIR(mode) else "no regular file (a pipe, a socket or a device)"
        raise OSError(errno.EINVAL, f"This is {kind}", str(path))
    return os.fdopen(descriptor, "rb")

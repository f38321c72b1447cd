"""Small files of the data directory, each replaced as a whole: a crash leaves the old one or the new one.

Called, beside the loop, by whoever keeps such a file: standing grants, trust, agents. Must never leave a draft behind, or
one that others could read.
"""

import os
import tempfile
from pathlib import Path

Stamp = tuple[int, int, int, int]
"""Changes whenever the file does, whoever wrote it and however."""


def replace_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """On disk when it returns, the new name too. Raises OSError, and then nothing has changed."""
    # Made by mkstemp, so nobody else could ever read it.
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    keep_names(path.parent)


def keep_names(folder: Path) -> None:
    """What was named, renamed or removed in a folder survives a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def stamp_of(path: Path) -> Stamp | None:
    """None: there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    # Of the times, only that of the last change cannot be set at will.
    return found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size

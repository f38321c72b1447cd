"""The server's secret key for quotes in prompts, `quote.key` in its data directory.

Read by the composition root. Kept over restarts only so that prompts keep their bytes and providers' caches keep hitting: it
signs nothing that is stored, so a new one may take its place at any time. No tool, agent or client can read it, as nothing in
the data directory.
"""

import secrets
from contextlib import suppress
from pathlib import Path

from palaver.context.quotes import KEY_BYTES
from palaver.regular_file import read_regular
from palaver.tools.files.atomic_file import replace_file

FILE = "quote.key"


def quote_key(data: Path) -> bytes:
    """The key that is there, or a new one."""
    path = data / FILE
    with suppress(OSError):
        key = read_regular(path)
        if len(key) == KEY_BYTES:
            return key
    key = secrets.token_bytes(KEY_BYTES)
    with suppress(OSError):  # A full disk: this run does with a key of its own.
        replace_file(path, key)
    return key

"""Private files for the start of a program: what may hold a secret is handed over in a file, never in a command line.

Every user of a machine can read the command lines of all its processes. Used by the backends whose programs take instructions
or MCP servers, with their headers and keys, as options.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from palaver.tools.shell.locked_folder import locked_folder


@contextmanager
def private_files(contents: Mapping[str, bytes]) -> Iterator[Mapping[str, Path]]:
    """Files by name, readable by this user alone, for the length of a block."""
    if not contents:
        yield {}
        return
    with locked_folder() as folder:
        paths = {name: folder / name for name in contents}
        for name, path in paths.items():
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(contents[name])
        yield paths

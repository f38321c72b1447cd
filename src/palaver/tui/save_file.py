"""A conversation as a file on the machine of this terminal. Called by the export screen; reads through the client.

The file is there whole or not at all, and none that was there before is written over.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, Literal

from palaver.client.client import Client

Format = Literal["html", "markdown", "jsonl", "trajectory"]
ENDINGS: Final[dict[Format, str]] = {"html": "html", "markdown": "md", "jsonl": "jsonl", "trajectory": "json"}
NAME_CHARACTERS = 60
"""Of a title: enough to know it again in a folder."""


def name_for(title: str, format: Format) -> str:
    """A title as the name of a file, with nothing in it that a shell or a file system would take for something else."""
    words = re.sub(r"[^\w]+", "-", title).strip("-").lower()[:NAME_CHARACTERS].rstrip("-")
    return f"{words or 'conversation'}.{ENDINGS[format]}"


async def save(client: Client, conversation: str, format: Format, path: Path, progress: Callable[[int], None]) -> int:
    """How many bytes it came to. Raises PalaverError, and OSError where it cannot be written or is there already."""
    size_bytes = 0
    with _new(path) as file:
        async for piece in client.export(conversation, format):
            size_bytes += await asyncio.to_thread(file.write, piece)
            progress(size_bytes)
    return size_bytes


@contextmanager
def _new(path: Path) -> Iterator[BinaryIO]:
    with path.open("xb") as file:
        try:
            yield file
        except BaseException:
            path.unlink(missing_ok=True)
            raise

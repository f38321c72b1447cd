"""What a deleted conversation took in the index of the search is given back, aside, a little at a time.

Made by `store.py`, which names each conversation whose deletion is on disk; nobody waits for this. Every step is a small
piece of work for the writer, so appends are committed in between. What a stop or a crash left over is found at the next
start. It must never be needed for a deletion to count: the search leaves a deleted conversation out by its listing.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from palaver.errors import LogError
from palaver.journal import Journal
from palaver.log.sqlite import maintenance
from palaver.log.sqlite.readers import Readers
from palaver.log.sqlite.writer import Writer
from palaver.tasks import TaskOwner

STAYS = "words of deleted conversations stay in the index until the next start"

logger = Journal(__name__)


class Forgetting:
    """Lives on the loop that makes it; call `close` on the same loop, before writer and readers are closed."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers
        self._deleted: dict[str, None] = {}
        """In the order of their deletion."""
        self._named = asyncio.Event()
        self._tasks = TaskOwner()
        self._tasks.hold(self._run(), "forget what was deleted")

    def forget(self, conversation: str) -> None:
        self._deleted[conversation] = None
        self._named.set()

    async def close(self) -> None:
        await self._tasks.close()

    async def _run(self) -> None:
        with _left_for_the_next_start():
            while found := await self._readers.ask(maintenance.not_forgotten):
                for conversation in found:
                    await self._forget(conversation)
        while True:
            await self._named.wait()
            self._named.clear()
            while self._deleted:
                conversation = next(iter(self._deleted))
                del self._deleted[conversation]
                with _left_for_the_next_start():
                    await self._forget(conversation)

    async def _forget(self, conversation: str) -> None:
        while await self._writer.run(lambda connection: maintenance.forget_words(connection, conversation)):
            pass


@contextmanager
def _left_for_the_next_start() -> Iterator[None]:
    try:
        yield
    except LogError as failure:
        # It is deleted all the same; what is left of its index is only not used for anything else.
        logger.info(STAYS, reason=failure.message)
    except Exception:
        # A defect: it must not keep what is deleted later from being forgotten.
        logger.exception(STAYS)

"""The one thread that writes. It owns the write connection and the checkpoints.

Whatever is waiting when it looks goes into one transaction and one fsync, and all answers go back to the event loop in one
call: under load commits grow instead of queueing. `store.py` hands in appends and other work; `commit.py` says what an
append writes.

Must never: answer before COMMIT has returned, or let one failing piece of work take others down.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import apsw

from palaver.errors import HeadMoved, LogError, LogUnavailable, StorageFull
from palaver.journal import Journal
from palaver.log.base import Append
from palaver.log.sqlite.commit import Commit, Heads
from palaver.log.sqlite.database import DAMAGE, Repairing, log_error, one_view, storage_full
from palaver.log.sqlite.reserve import Reserve

T = TypeVar("T")

logger = Journal(__name__)

WAITING = 65_536
"""Pieces of work that may wait; more are refused. Every conversation waits with one at a time, so this is a broken disk."""
CHECKPOINT_PAGES = 4_000
"""16 MiB of write-ahead log: a page changed often is copied once, and a restart after a crash reads it in a blink."""
CLOSE_S = 60.0
"""The writer finishes what it has been given; a disk that takes longer than this is not going to."""

Job = Callable[[apsw.Connection], Any]


def _repair_first(_connection: apsw.Connection) -> None:
    """The job of a reader that met a damaged page: a repair is a transaction of its own, before that of its batch."""


# Tuples, because they are made for every append.
_Work = tuple[Append | Job, "asyncio.Future[Any]"]
_Answer = tuple["asyncio.Future[Any]", Any, Exception | None]
"""Who is answered, with what, or with which error."""


def _urgent(work: _Work) -> bool:
    task, _ = work
    return isinstance(task, Append) and task.urgent


class Writer:
    """Lives on the loop that makes it; call `close` on the same loop."""

    def __init__(
        self, connection: apsw.Connection, path: Path, reserve: Reserve, repair: Repairing | None = None
    ) -> None:
        self.commits = 0
        """Transactions that wrote something, for whoever measures."""
        self._connection = connection
        self._path = path
        self._reserve = reserve
        self._repair = repair
        self._heads = Heads(connection)
        self._loop = asyncio.get_running_loop()
        self._gathered: list[_Work] = []
        """Given in this turn of the loop; handed over at its end, all at once."""
        self._handed_over: SimpleQueue[list[_Work] | None] = SimpleQueue()
        self._waiting = 0
        self._closed = False
        self._wal_pages = 0
        self._checkpoint_at = CHECKPOINT_PAGES
        connection.set_wal_hook(self._wal_grew)
        self._thread = threading.Thread(target=self._run, name="palaver-log-writer", daemon=True)
        self._thread.start()

    @property
    def position(self) -> int:
        return self._heads.position

    def submit(self, task: Append | Job) -> "asyncio.Future[Any]":
        """An append, or other work that writes and becomes a part of some commit. Answered once that is on disk."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self._closed or self._waiting >= WAITING:
            answer.set_exception(LogUnavailable("The log is closed." if self._closed else "The disk cannot keep up."))
            return answer
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._gathered.append((task, answer))
        self._waiting += 1
        return answer

    def _hand_over(self) -> None:
        if self._gathered:
            self._handed_over.put(self._gathered)
            self._gathered = []

    async def run(self, job: Callable[[apsw.Connection], T]) -> T:
        result: T = await self.submit(job)
        return result

    async def repair(self) -> None:
        """Have what a reader found damaged rebuilt from the events, between two commits."""
        await self.submit(_repair_first)

    async def close(self) -> None:
        """Finishes what was accepted. Raises LogUnavailable when the disk does not let it."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._handed_over.put(None)
        await asyncio.to_thread(self._thread.join, CLOSE_S)
        if self._thread.is_alive():
            raise LogUnavailable(f"The log's last commit did not finish within {CLOSE_S:.0f} s. Look after the disk.")

    def _deliver(self, answers: Sequence[_Answer], handled: int) -> None:
        self._waiting -= handled
        for to, value, error in answers:
            if to.done():
                continue
            if error is None:
                to.set_result(value)
            else:
                to.set_exception(error)

    # -- on the writer's thread from here on

    def _run(self) -> None:
        open_ = True
        while open_:
            batch, open_ = self._take()
            if batch:
                self._handle(batch)
        self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._connection.close()

    def _take(self) -> tuple[list[_Work], bool]:
        """Everything that waits, at least one. False: the last there will be."""
        batch: list[_Work] = []
        given = self._handed_over.get()
        try:
            while given is not None:
                batch.extend(given)
                given = self._handed_over.get_nowait()
        except Empty:
            return batch, True
        return batch, False

    def _handle(self, batch: Sequence[_Work]) -> None:
        try:
            answers = self._commit(batch)
        except Exception as error:
            logger.exception("the log's writer failed")
            answers = [(answer, None, log_error(error, self._path)) for _, answer in batch]
        with contextlib.suppress(RuntimeError):  # the loop is gone, and every caller with it
            self._loop.call_soon_threadsafe(self._deliver, answers, len(batch))
        if self._wal_pages >= self._checkpoint_at:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _commit(self, batch: Sequence[_Work]) -> list[_Answer]:
        # A caller that gave up before its turn came is taken at its word.
        batch = [work for work in batch if not work[1].cancelled()]
        if self._repair is not None and any(task is _repair_first for task, _ in batch):
            self._repair(self._connection)
        refused: list[_Answer] = []
        if not self._reserve.kept():
            # What little is left belongs to those who must write.
            refused = [(work[1], None, storage_full(self._path)) for work in batch if not _urgent(work)]
            batch = [work for work in batch if _urgent(work)]
        if len(batch) > 1:
            try:
                return [*refused, *self._transact(batch)]
            except apsw.BusyError:
                raise  # Somebody holds the database. Asking for each would only make everybody wait longer.
            except Exception as error:  # noqa: BLE001 - whatever it was, it may concern one of them only
                logger.warning("a commit failed, its parts are tried one by one", reason=str(error), parts=len(batch))
        return [*refused, *(self._alone(work) for work in batch)]

    def _alone(self, work: _Work, *, repaired: bool = False) -> _Answer:
        try:
            return self._transact([work])[0]
        except DAMAGE as error:
            if self._repair is None or repaired:
                return (work[1], None, log_error(error, self._path))
            self._repair(self._connection)
            return self._alone(work, repaired=True)
        except Exception as error:  # noqa: BLE001 - becomes the answer
            failure = log_error(error, self._path)
            if isinstance(failure, StorageFull) and _urgent(work) and self._reserve.spend():
                return self._alone(work)
            return (work[1], None, failure)

    def _transact(self, batch: Sequence[_Work]) -> list[_Answer]:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            commit, answers = Commit(connection, self._heads), list[_Answer]()
            for task, answer in batch:
                if isinstance(task, Append):
                    try:
                        answers.append((answer, commit.take(task), None))
                    except (HeadMoved, ValueError) as refusal:
                        answers.append((answer, None, refusal))
            wrote = commit.write()
            for task, answer in batch:
                if not isinstance(task, Append):
                    answers.append(self._done(task, answer))
                    wrote = True
            connection.execute("COMMIT")
        except BaseException:
            # SQLite may have rolled back by itself already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        commit.done()
        self.commits += wrote
        return answers

    def _done(self, job: Job, answer: "asyncio.Future[Any]") -> _Answer:
        try:
            with one_view(self._connection):  # a savepoint: what fails here leaves the rest of the commit alone
                value = job(self._connection)
        except LogError as refusal:
            return (answer, None, refusal)
        return (answer, value, None)

    # -- the write-ahead log

    def _wal_grew(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self, mode: int) -> None:
        try:
            in_log, copied = self._connection.wal_checkpoint(mode=mode)
        except apsw.Error as error:
            logger.warning("a checkpoint failed, the write-ahead log grows on", reason=str(error))
            in_log, copied = self._wal_pages, 0
        # A reader in the way keeps the log from starting over; trying again at every commit would only cost.
        self._checkpoint_at = CHECKPOINT_PAGES if copied >= in_log else in_log + CHECKPOINT_PAGES

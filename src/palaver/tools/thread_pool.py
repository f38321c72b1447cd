"""Threads for the work of tools: a few of their own, and a way to end work that nobody waits for any more.

The toolbox and the file tools run here what may take long. asyncio's shared threads serve the log, logins and exports: what a
model asks for must never take those. A cancelled call ends at its next `check_stop`, which whoever compares much calls again
and again.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from threading import Event
from typing import ParamSpec, TypeVar

from palaver.errors import Conflict

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 4
"""The interpreter runs one at a time; more would only let several calls wait for a disk together."""

_pool = ThreadPoolExecutor(THREADS, "palaver-tool")
_stop: ContextVar[Event | None] = ContextVar("palaver-tool-stop", default=None)


class Stopped(Conflict):
    """Nobody waits for this work any more."""


def check_stop() -> None:
    """Raises Stopped in work whose caller was cancelled."""
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise Stopped("The call was interrupted.")


async def run_in_pool(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of work in a thread. A cancellation does not wait for its end."""
    stop = Event()
    try:
        return await asyncio.wrap_future(_submit(stop, work, *args, **kwargs))
    except asyncio.CancelledError:
        stop.set()
        raise


async def finish_in_pool(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The same, but a cancellation follows the end of the work, which is near: for work that must not be left half done."""
    stop = Event()
    submitted = _submit(stop, work, *args, **kwargs)
    future = asyncio.wrap_future(submitted)
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as cancellation:
            cancelled = cancellation
            stop.set()
            # Work that waits for a thread has not begun, and never will.
            submitted.cancel()
    if cancelled is not None:
        if not future.cancelled():
            future.exception()
        raise cancelled
    return future.result()


def _submit(stop: Event, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
    context = copy_context()
    context.run(_stop.set, stop)

    def run() -> T:
        check_stop()
        return work(*args, **kwargs)

    try:
        return _pool.submit(context.run, run)
    except RuntimeError:
        # No thread could be started, but the work is queued for those there are: it was refused, so it must not run.
        stop.set()
        raise

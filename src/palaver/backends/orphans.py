"""Orphans: processes that a warden left to this process when it was killed, and the hunt that ends them.

Called by the runner of processes (`process.py`). A command that no sandbox holds can kill its warden, or pin it (stop it, trace
it), and then the runner kills it. Either way this process, a child subreaper, becomes the parent of whatever the run left, hidden
or not, and no run can stop it without ending the server itself. Everything that a run starts lives in a session that the run
began, and no process gets back into another one; wardens and all other children of this process stay in its own session.
Hence the one rule: *a child of this process in a foreign session is an orphan*. It is ended with everything below it, and
collected, again and again until there is none.

One thread hunts, for as long as this process lives: it is there before the first run, because a run that left too many
processes may have left no room for a thread.

Linux only; elsewhere nobody is found. It must never signal a child that is in this process's session.
"""

import asyncio
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from palaver.backends.warden import children_lookup, descendants, end_all

PAUSE_S = 0.002
"""Between looks: what was killed takes about as long to die."""
STUBBORN_AFTER_S = 5.0
STUBBORN_S = 0.2
"""Between looks at what has outlived being killed for seconds: stuck in the kernel, or another user's."""
PR_SET_CHILD_SUBREAPER = 36


@dataclass(slots=True)
class _Hunt:
    warden_is_gone: Callable[[], bool]
    over: asyncio.Event
    loop: asyncio.AbstractEventLoop
    begun: float = field(default_factory=time.monotonic)

    def end(self) -> None:
        # Nobody waits any more where the loop is closed.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.over.set)


_libc = ctypes.CDLL(None)
_earlier: set[int] | None = None
"""Children that look like orphans and were there before the first run: daemons of a container whose first process this is."""
_hunts: list[_Hunt] = []
_called = threading.Event()


def become_reaper() -> None:
    """Before every run: a fork of this process does not inherit it."""
    global _earlier  # noqa: PLW0603 - children belong to the process, not to an object in it
    if sys.platform == "linux":
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if _earlier is None:
            _earlier = set(_orphans())
            threading.Thread(target=_hunt_for_good, name="hunt orphans", daemon=True).start()


async def hunt(warden_is_gone: Callable[[], bool], limit_s: float) -> list[int]:
    """End all orphans once a warden was killed, and wait for it so long at most. What is left is hunted on, and returned."""
    if sys.platform != "linux":
        return []
    over = asyncio.Event()
    _hunts.append(_Hunt(warden_is_gone, over, asyncio.get_running_loop()))
    _called.set()
    try:
        async with asyncio.timeout(limit_s):
            await over.wait()
    except TimeoutError:
        return sorted(_orphans())
    return []


def _hunt_for_good() -> None:
    while True:
        _called.wait()
        _called.clear()
        while _hunts:
            # Looked at before: until its warden is gone, those below it are not ours yet.
            waiting = [one for one in _hunts if one.warden_is_gone()]
            try:
                found = _hunt_once()
            except OSError:
                found = True  # No descriptor to look with is no proof that there is nobody.
            if not found:
                for one in waiting:
                    _hunts.remove(one)
                    one.end()
            hurry = any(time.monotonic() - one.begun < STUBBORN_AFTER_S for one in _hunts)
            time.sleep(PAUSE_S if hurry or not _hunts else STUBBORN_S)


def _hunt_once() -> bool:
    """Was anybody there?"""
    found = end_all(_find)
    for pid in _orphans():
        # Nothing but this process collects an orphan, and one that is not collected is found again.
        with suppress(OSError):
            os.waitpid(pid, os.WNOHANG)
    return found


def _find() -> Iterator[int]:
    """The orphans and everybody below them, each as soon as it is found."""
    children_of = children_lookup()
    for pid in _orphans():
        yield pid
        yield from descendants(pid, children_of)


def _orphans() -> Iterator[int]:
    own, session = os.getpid(), os.getsid(0)
    try:
        # An orphan becomes the child of the first thread. One file alone: who forks and exits all the time is listed only
        # for as long as a hop takes.
        with open(f"/proc/self/task/{own}/children", "rb", buffering=0) as file:  # noqa: PTH123 - the time counts
            children = [int(word) for word in file.read().split()]
    except FileNotFoundError:
        children = children_lookup()(own)
    for pid in children:
        with suppress(OSError):
            if os.getsid(pid) != session and pid not in (_earlier or ()):
                yield pid

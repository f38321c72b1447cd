"""The hunt for what killed wardens left: it lasts until nobody is left, needs nothing new, and knows whom to leave alone."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from palaver.backends import orphans

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody is found")]

LIMIT_S = 20.0

FAMILY = """
import os, signal, time
# Whoever loses a child starts another; each in a session of its own.
def again(*_):
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        time.sleep(60)
        os._exit(0)
signal.signal(signal.SIGCHLD, again)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
again()
again()
print("ready", flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    time.sleep(1)
"""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    orphans.become_reaper()
    with ExitStack() as stack:
        yield stack


def start(stack: ExitStack, argv: list[str], *, orphan: bool) -> subprocess.Popen[bytes]:
    """A child in a session of its own is what an orphan looks like."""
    process = subprocess.Popen(argv, start_new_session=orphan, stdout=subprocess.PIPE)
    assert process.stdout is not None
    stack.callback(process.stdout.close)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def is_there(process: subprocess.Popen[bytes]) -> bool:
    """Not even as a zombie, once the hunt has collected it."""
    return Path(f"/proc/{process.pid}").exists()


async def until(condition: Callable[[], bool]) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LIMIT_S
    while not condition():
        assert loop.time() < deadline
        await asyncio.sleep(0.005)


async def test_orphans_are_ended_and_collected_and_other_children_are_not(stack: ExitStack) -> None:
    left = [start(stack, ["sleep", "60"], orphan=True) for _ in range(5)]
    own = start(stack, ["sleep", "60"], orphan=False)
    assert await orphans.hunt(lambda: True, LIMIT_S) == []
    assert [is_there(one) for one in left] == [False] * 5
    assert own.poll() is None


async def test_family_that_replaces_its_dead_is_ended(stack: ExitStack) -> None:
    family = start(stack, [sys.executable, "-I", "-S", "-c", FAMILY], orphan=True)
    assert family.stdout is not None
    assert await asyncio.to_thread(family.stdout.readline) == b"ready\n"
    assert await orphans.hunt(lambda: True, LIMIT_S) == []
    assert not is_there(family)


async def test_hunt_goes_on_after_nobody_waits_for_it(stack: ExitStack) -> None:
    gone = threading.Event()
    try:
        # What the warden held comes to light only when it is gone.
        assert await orphans.hunt(gone.is_set, 0.0) == []
        for _ in range(3):
            late = start(stack, ["sleep", "60"], orphan=True)
            await until(lambda late=late: not is_there(late))  # type: ignore[misc]
    finally:
        gone.set()
    await until(lambda: not orphans._hunts)


async def test_hunt_needs_no_new_thread(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that left too many processes leaves no room for one."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    left = start(stack, ["sleep", "60"], orphan=True)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert await orphans.hunt(lambda: True, LIMIT_S) == []
    assert not is_there(left)


async def test_several_hunts_end_together(stack: ExitStack) -> None:
    left = [start(stack, ["sleep", "60"], orphan=True) for _ in range(3)]
    found = await asyncio.gather(*(orphans.hunt(lambda: True, LIMIT_S) for _ in range(8)))
    assert (found, [is_there(one) for one in left]) == ([[]] * 8, [False] * 3)

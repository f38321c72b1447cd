"""Who lives below a program, whatever it did to hide."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from palaver.backends.claude import process_tree as families
from palaver.backends.claude.process_tree import family
from palaver.backends.process import spawn
from palaver.backends.warden import listed_children

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="seen through /proc")


async def test_process_that_left_its_session_is_seen_and_a_known_one_is_not(tmp_path: Path) -> None:
    script = "setsid sleep 60 & echo ready; read line"
    environment = {"PATH": os.environ["PATH"]}
    async with spawn(["sh", "-c", script], cwd=tmp_path, environment=environment, stdin=True) as child:
        async with asyncio.timeout(10):
            assert await anext(child.lines()) == b"ready"
        seen = family(child.pid)
        assert seen
        assert child.pid not in seen
        assert not family(child.pid, seen)


async def test_orphan_whose_parent_dies_during_the_walk_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "sh -c 'sleep 60 & echo $$ $!; wait' & read line"
    environment = {"PATH": os.environ["PATH"]}
    async with spawn(["sh", "-c", script], cwd=tmp_path, environment=environment, stdin=True) as child:
        async with asyncio.timeout(10):
            parent, orphan = map(int, (await anext(child.lines())).split())

        def dying(pid: int) -> list[int]:
            """The parent ends after those above it were listed and before it is."""
            if pid == parent:
                os.kill(parent, signal.SIGKILL)
                while orphan in listed_children(parent):
                    pass
            return listed_children(pid)

        monkeypatch.setattr(families, "listed_children", dying)
        assert family(child.pid) == {orphan}


def test_nobody_is_below_a_program_that_is_not_there() -> None:
    assert family(None) == set()

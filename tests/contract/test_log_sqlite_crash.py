"""kill -9 in the middle of appends: whatever was acknowledged is there, numbered 1 to n, and the log goes on."""

import subprocess
import sys
from pathlib import Path

import pytest

from palaver.log.sqlite.store import open_sqlite_log
from tests.unit.log.appender import CONVERSATIONS
from tests.unit.log.stores import WAIT_S, lines, read_lines

pytestmark = [pytest.mark.anyio, pytest.mark.crash]


def killed_after(directory: Path, acknowledgements: int) -> dict[str, int]:
    """Let the appender write so long, kill it, and say what it had promised by then."""
    promised: dict[str, int] = {}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.unit.log.appender", str(directory)], stdout=subprocess.PIPE, text=True
    ) as appender:
        assert appender.stdout is not None
        seen = [appender.stdout.readline() for _ in range(acknowledgements)]
        appender.kill()
        appender.wait(WAIT_S)
        seen.extend(appender.stdout)
    # The last line may be half a line: that acknowledgement reached nobody.
    for acknowledgement in seen:
        if acknowledgement.endswith("\n"):
            name, seq = acknowledgement.split()
            promised[name] = int(seq)
    return promised


async def test_every_acknowledged_append_survives_kill_after_kill(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    for acknowledgements in (1, 7, 60, 333):
        promised = killed_after(directory, acknowledgements)
        async with open_sqlite_log(directory) as log:
            total = 0
            for name in CONVERSATIONS:
                kept = await read_lines(log, name)
                assert len(kept) >= promised.get(name, 0)
                assert len(kept) % 3 == 0
                assert kept == lines(name, 0, len(kept))
                total += len(kept)
                if kept:
                    listing = await log.listing(name)
                    assert listing
                    assert listing.seq == len(kept)
                    used = await log.used(name, f"request-{len(kept) - 3}")
                    assert used
                    assert used.last == len(kept)
            assert await log.position() == total
            assert (await log.verify()).damages in ([], ())

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palaver.log.base import EventLog
from palaver.log.memory import MemoryLog
from palaver.log.sqlite import open_sqlite_log


@pytest.fixture(params=["memory", "sqlite"])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    if request.param == "memory":
        yield MemoryLog()
        return
    async with open_sqlite_log(tmp_path / "data") as opened:
        yield opened

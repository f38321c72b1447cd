from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.flows.served import Served, serving


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "data") as served:
        yield served

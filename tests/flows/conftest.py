from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.flows.served import Served, serving


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    """A server of the test's own."""
    async with serving(tmp_path / "data") as served:
        yield served


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """One for all tests of a module that neither count nor list what is there."""
    async with serving(tmp_path_factory.mktemp("shared") / "data") as served:
        yield served

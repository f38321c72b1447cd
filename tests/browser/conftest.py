"""One Chromium for all tests, one server and one model service a file, and fresh visitors for each test."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.browser.chromium import BARE_WINDOW, LIGHT, chromium_path, chromium_running
from tests.browser.served import Palaver, Wire, palaver_serving
from tests.browser.visitor import Visitor, Visitors, visiting
from tests.provider.server import ScriptedProvider, serving

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
async def chromium(anyio_backend: str) -> AsyncIterator[Browser]:
    path = chromium_path(LIGHT)
    if path is None and not os.environ.get("CI"):
        pytest.skip("There is no Chromium here. Run scripts/chromium.sh, or set PALAVER_CHROMIUM to its path.")
    async with chromium_running(BARE_WINDOW, path=path) as browser:
        yield browser


@pytest.fixture(scope="module")
async def provider(anyio_backend: str) -> AsyncIterator[ScriptedProvider]:
    async with serving(ScriptedProvider()) as provider:
        yield provider


@pytest.fixture(scope="module")
def wire() -> Wire:
    return "openai"


@pytest.fixture(scope="module")
async def palaver(
    tmp_path_factory: pytest.TempPathFactory, provider: ScriptedProvider, wire: Wire
) -> AsyncIterator[Palaver]:
    async with palaver_serving(tmp_path_factory.mktemp("palaver"), provider.url, wire) as palaver:
        yield palaver


@pytest.fixture
async def visitors(chromium: Browser) -> AsyncIterator[Visitors]:
    async with visiting(chromium) as visitors:
        yield visitors


@pytest.fixture
async def ada(visitors: Visitors, palaver: Palaver) -> Visitor:
    """The owner of the server, at a desktop."""
    return await visitors.owner(palaver.url, palaver.token)

"""One real server and one scripted model a file; the examples are started as their users start them."""

from collections.abc import AsyncIterator

import pytest

from tests.browser.conftest import anyio_backend, chromium, palaver, provider, visitors, wire
from tests.browser.served import Palaver
from tests.browser.visitor import Visitor, Visitors
from tests.examples.running import EXAMPLES, running

__all__ = ["anyio_backend", "chromium", "palaver", "provider", "visitors", "wire"]


@pytest.fixture(scope="module")
async def page_url(palaver: Palaver, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """The page example that the file names as `PAGE`, at the development server."""
    folder = str(EXAMPLES / request.module.PAGE)
    async with running(palaver, "serve_page.py", folder, "--port", "0") as server:
        yield (await server.shows("\n")).strip()


@pytest.fixture
async def ada(visitors: Visitors, page_url: str) -> Visitor:
    """Somebody who has opened the page, without a session."""
    visitor = await visitors.stranger(page_url)
    await visitor.go()
    return visitor

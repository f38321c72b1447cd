"""Streams are counted for whoever opens them: a guest or a browser that takes all it can get takes nothing from the others."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from palaver.faces.http.open_streams import STREAMS_A_GROUP, STREAMS_A_HOLDER
from tests.flows.served import Served, serving

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as served:
        yield served


async def guest(server: Served, stack: AsyncExitStack, role: str = "observer") -> httpx.AsyncClient:
    made = await server.http.post("/api/session/code", params={"role": role})
    browser = await stack.enter_async_context(server.browser())
    await server.sign_in(browser, code=made.json()["code"])
    return browser


async def opened(stack: AsyncExitStack, client: httpx.AsyncClient, most: int) -> int:
    """How many of so many streams it gets."""
    count = 0
    for _ in range(most):
        answer = await stack.enter_async_context(client.stream("GET", "/api/events"))
        count += answer.status_code == 200
        assert answer.status_code in (200, 429)
    return count


@pytest.mark.parametrize("role", ["observer", "agent", "human", "owner"])
async def test_guest_that_opens_all_it_may_takes_none_of_the_owners(server: Served, role: str) -> None:
    async with AsyncExitStack() as stack:
        taken = await opened(stack, await guest(server, stack, role), STREAMS_A_HOLDER + 2)
        other = await opened(stack, await guest(server, stack, role), 1)
        owners = await opened(stack, server.http, 2)

    assert (taken, other, owners) == (STREAMS_A_HOLDER, 1, 2)


async def test_sign_ins_without_end_give_one_token_no_more_than_its_browsers_share(server: Served) -> None:
    async with AsyncExitStack() as stack:
        guests = [await guest(server, stack) for _ in range(STREAMS_A_GROUP // STREAMS_A_HOLDER + 1)]
        taken = [await opened(stack, each, STREAMS_A_HOLDER) for each in guests]
        owners = await opened(stack, server.http, STREAMS_A_HOLDER + 1)
        browsers = await opened(stack, await guest(server, stack, "owner"), 1)

    assert sum(taken) == STREAMS_A_GROUP
    assert (owners, browsers) == (STREAMS_A_HOLDER, 1)

"""Services that a person named, leading the server elsewhere: no request, and no secret of its headers, goes after a redirect."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from palaver.clock import ManualClock
from palaver.schema.records import AgentRecord, McpServer
from palaver.tools.mcp.servers import McpServers
from tests.flows.at_work import of
from tests.flows.served import WAIT_S, serving
from tests.unit.tools.workshop import ENVIRONMENT, Workshop

pytestmark = pytest.mark.anyio

STATUSES = (301, 302, 303, 307, 308)
SECRET = "canary-of-a-header"


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


class Site:
    """Answers every request with a redirect, or with an empty page; and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        self.port = 0

    def lead_to(self, address: str, status: int) -> None:
        head = f"HTTP/1.1 {status} Moved\r\nLocation: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        self.answer = head.encode()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(WAIT_S):
            self.asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self.answer)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    found = Site()
    server = await asyncio.start_server(found.take, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "user@127.0.0.1"])
@pytest.mark.parametrize("status", STATUSES)
async def test_mcp_server_leads_no_request_to_another_origin(status: int, host: str, workshop: Workshop) -> None:
    async with site() as named, site() as elsewhere:
        named.lead_to(f"http://{host}:{elsewhere.port}/mcp", status)
        headers = {"X-Api-Key": SECRET, "Authorization": f"Bearer {SECRET}"}
        server = McpServer(name="web", url=f"http://127.0.0.1:{named.port}/mcp", headers=headers)
        agent = AgentRecord(id="a1", name="A", mcp_servers=(server,))
        servers = McpServers(ENVIRONMENT, ManualClock())
        async with asyncio.timeout(WAIT_S):
            tools = await servers.tools_of(agent, workshop.root, workshop.place.programs)
            problems = servers.problems(agent, workshop.root)
            await servers.close()
    assert named.asked
    assert elsewhere.asked == []
    assert tools == ()
    assert problems
    assert SECRET not in str(problems)


@pytest.mark.parametrize("status", STATUSES)
async def test_model_service_leads_no_request_elsewhere(tmp_path: Path, status: int) -> None:
    async with site() as named, site() as elsewhere:
        named.lead_to(f"http://127.0.0.1:{elsewhere.port}/v1/chat/completions", status)
        environment = {
            "HOME": str(tmp_path),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{named.port}/v1",
            "OPENAI_API_KEY": SECRET,
        }
        async with serving(tmp_path / "data", environment=environment, model="scripted") as server:
            events = await server.settled(await server.create(message="hello"))
    (last,) = of(events, "turn.finished")
    assert last["outcome"] == "failed"
    assert SECRET not in str(last)
    assert named.asked
    assert elsewhere.asked == []

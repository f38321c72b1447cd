"""What runs the agents: whether each is installed and ready, and a test turn with any of them."""

from litestar import get, post
from litestar.params import FromPath

from palaver.agents.backends import BackendEntry
from palaver.agents.test_turn import Tried
from palaver.errors import NotFound
from palaver.faces.native.conversations import NativeRequest
from palaver.faces.server import Server, origin_of
from palaver.schema.base import Shown


class BackendList(Shown):
    items: tuple[BackendEntry, ...]


@get("/api/backends", operation_id="list_backends", tags=["agents"])
async def backends(server: Server) -> BackendList:
    """Everything that can run agents here: installed, version, logged in, what to do, what it can. ACP agents one by one."""
    return BackendList(items=tuple(await server.backends.entries()))


@post(
    "/api/agents/{agent:str}/test",
    status_code=200,
    operation_id="test_agent",
    tags=["agents"],
)
async def test(agent: FromPath[str], request: NativeRequest, server: Server) -> Tried:
    """One real turn in a conversation that is deleted afterwards. It may take a minute, and costs what a word costs."""
    record = server.agents.agent(agent)
    if record is None:
        raise NotFound(server.agents.why_not(agent), agent=agent)
    return await server.trials.of(record, origin_of(request, "native"))


ROUTES = [backends, test]

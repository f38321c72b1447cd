"""Stopping: connections, tools and tasks end with the turn."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import pytest

from palaver.schema.events import (
    TextDelta,
    ToolFinished,
)
from palaver.schema.view import TextBlock
from palaver.tools.base import ToolResult, Workplace
from tests.contract.backend_api.rig import FIRST, agent, serve
from tests.provider import (
    Answer,
    Gate,
    Hang,
)
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import DRIVE_S, MemoryTurn, allow, drive


async def test_cancel_in_mid_stream_closes_the_connection_and_tries_no_more(wire: str) -> None:
    answer = Answer.of("Hello ", Gate(name="never"), "there")
    turn = MemoryTurn("hi")
    async with serve(answer) as service, agent(wire, service) as backend:
        running = asyncio.create_task(drive(backend, turn))
        await turn.seen(TextDelta)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await service.requests[0].end()
        assert service.requests[0].closed_by_client
        turn.interrupt()
        assert len(service.requests) == 1
    assert turn.pauses_s == []
    last = turn.history[-1]
    assert isinstance(last.blocks[0], TextBlock)
    assert (last.status, last.blocks[0].text) == ("interrupted", "Hello ")


async def test_cancel_before_the_service_answers_closes_the_connection(wire: str) -> None:
    async with serve(Answer.of(fault=Hang())) as service, agent(wire, service) as backend:
        running = asyncio.create_task(drive(backend, MemoryTurn("hi")))
        await service.received(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await service.requests[0].end()
        assert service.requests[0].closed_by_client


async def test_closing_the_iteration_closes_the_connection(wire: str) -> None:
    async with serve(Answer.of("Hello ", Gate(name="never"), "there")) as service, agent(wire, service) as backend:
        async with aclosing(backend.run(MemoryTurn("hi"))) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        await service.requests[0].end()
        assert service.requests[0].closed_by_client


async def test_cancel_ends_a_running_tool_before_it_goes_on_up(wire: str) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        started.set()
        try:
            await asyncio.sleep(DRIVE_S)
        finally:
            ended.set()
        return ToolResult(ok=True)

    turn = MemoryTurn("hi", decide=allow)
    box = toolbox(CountingTool("shell", work))
    async with serve(Answer.of(FIRST)) as service, agent(wire, service, tools=box) as backend:
        running = asyncio.create_task(drive(backend, turn))
        async with asyncio.timeout(DRIVE_S):
            await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert ended.is_set()
        turn.interrupt()
    assert turn.of(ToolFinished)[0].effect == "unknown"


async def test_cancel_while_a_person_is_asked_leaves_no_task_behind(wire: str) -> None:
    before = asyncio.all_tasks()
    turn = MemoryTurn("hi")
    async with (
        serve(Answer.of(FIRST, FIRST)) as service,
        agent(wire, service, tools=toolbox(CountingTool("shell"))) as b,
    ):
        running = asyncio.create_task(drive(b, turn))
        await turn.opened(2)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not [task for task in asyncio.all_tasks() - before if task.get_name().startswith("request")]

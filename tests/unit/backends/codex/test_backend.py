"""The backend against a program that misbehaves: every turn ends, in words, and the next one works."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from palaver.backends.codex.backend import CodexBackend
from palaver.clock import ManualClock
from palaver.errors import Exited, NotInstalled, ProviderRefused
from palaver.schema.events import TextDelta, ToolStarted
from palaver.schema.records import AgentRecord
from palaver.schema.view import TextBlock
from tests.provider.turn import MemoryTurn, drive, leave_open

FAKE = Path(__file__).with_name("fake_app_server.py")
WAIT_S = 20.0


def agent_that(way: str) -> AgentRecord:
    return AgentRecord(
        id="codex", name="Codex", backend="codex", command=(sys.executable, str(FAKE)), environment={"FAKE": way}
    )


@asynccontextmanager
async def backend(clock: ManualClock | None = None) -> AsyncIterator[CodexBackend]:
    opened = CodexBackend(clock or ManualClock(), {"PATH": "/usr/bin:/bin", "HOME": "/"})
    try:
        yield opened
    finally:
        await opened.close()


def said(turn: MemoryTurn) -> list[str]:
    return [
        block.text
        for message in turn.history
        if message.turn == turn.id and message.role == "assistant"
        for block in message.blocks
        if isinstance(block, TextBlock)
    ]


async def stopped(codex: CodexBackend, turn: MemoryTurn) -> None:
    running = asyncio.create_task(drive(codex, turn))
    await turn.seen(TextDelta)
    turn.interrupt()
    running.cancel()
    with suppress(asyncio.CancelledError):
        async with asyncio.timeout(WAIT_S):
            await running


async def test_program_is_kept_between_turns_and_let_go_when_idle() -> None:
    clock = ManualClock()
    async with backend(clock) as codex:
        first = await drive(codex, MemoryTurn("Hello", agent=agent_that("")))
        (row,) = codex.table()
        await drive(codex, MemoryTurn("Again", agent=agent_that(""), state=first.state))
        assert [again.pid for again in codex.table()] == [row.pid]
        assert not row.busy
        ending = [task for task in asyncio.all_tasks() if task.get_name().startswith("codex of")]
        await clock.advance(700.0)
        _, left = await asyncio.wait(ending, timeout=WAIT_S)
        assert not left
        assert not codex.table()
    assert said(first) == ["Said."]


async def test_program_that_cannot_start_says_why() -> None:
    async with backend() as codex:
        turn = await drive(codex, MemoryTurn("Hello", agent=agent_that("broken")))
    assert isinstance(turn.error, Exited)
    assert "no such tide" in turn.error.message


async def test_program_that_is_missing_says_what_to_do() -> None:
    agent = AgentRecord(id="codex", name="Codex", backend="codex", command=("no-such-program-at-all",))
    async with backend() as codex:
        turn = await drive(codex, MemoryTurn("Hello", agent=agent))
    assert isinstance(turn.error, NotInstalled)
    assert "no-such-program-at-all" in turn.error.message


async def test_program_that_dies_fails_the_turn_with_its_last_words() -> None:
    async with backend() as codex:
        turn = await drive(codex, MemoryTurn("Hello", agent=agent_that("dying")))
        assert not codex.table()
    assert isinstance(turn.error, Exited)
    assert "exit code 7" in turn.error.message
    assert "ERROR out of tides" in turn.error.message


async def test_refused_turn_says_what_the_service_said() -> None:
    async with backend() as codex:
        turn = await drive(codex, MemoryTurn("Hello", agent=agent_that("refusing")))
    assert isinstance(turn.error, ProviderRefused)
    assert turn.error.message == "The limit of your plan is reached: too many tides."


async def test_program_that_ignores_a_stop_is_ended() -> None:
    async with backend() as codex:
        turn = MemoryTurn("Hello", agent=agent_that("stubborn"))
        await stopped(codex, turn)
        assert not codex.table()
    assert said(turn) == ["I go on "]


async def test_late_words_of_a_stopped_turn_are_never_the_next_ones() -> None:
    async with backend() as codex:
        turn = MemoryTurn("Hello", agent=agent_that("late"))
        await stopped(codex, turn)
        count = len(turn.events)
        (row,) = codex.table()
        after = await drive(codex, MemoryTurn("Again", agent=agent_that("late"), state=turn.state))
        assert [again.pid for again in codex.table()] == [row.pid], "it obeyed, so it is kept"
    assert said(after) == ["Fresh."]
    assert len(turn.events) == count


async def test_garbage_is_skipped_and_an_unknown_request_is_refused() -> None:
    async with backend() as codex:
        turn = await drive(codex, MemoryTurn("Hello", agent=agent_that("garbage")))
    assert turn.error is None
    (text,) = said(turn)
    assert text.startswith("Refused: This client cannot answer planet/align.")
    assert "\u2028" in text


async def test_withdrawn_request_is_closed() -> None:
    async with backend() as codex:
        turn = await drive(codex, MemoryTurn("Hello", agent=agent_that("withdraw"), decide=leave_open))
    assert turn.error is None
    assert [request.status for request in turn.state.requests] in (["cancelled"], [])
    assert not turn.of(ToolStarted)
    assert said(turn) == ["Never mind."]


async def test_agents_with_an_environment_of_their_own_have_a_program_of_their_own() -> None:
    async with backend() as codex:
        await drive(codex, MemoryTurn("Hello", agent=agent_that("")))
        await drive(codex, MemoryTurn("Hello", agent=agent_that("other")))
        assert len(codex.table()) == 2

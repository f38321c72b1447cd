"""Live programs of conversations: one each, kept while they fit, let go when idle, none left at the end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from palaver.backends.program_pool import Programs
from palaver.clock import ManualClock
from palaver.errors import NotInstalled


class Fake:
    """Counts its own life."""

    def __init__(self, number: int) -> None:
        self.pid = number
        self.alive = True
        self.ended = False
        self.started_as = "fake"
        self.at_work = False

    async def has_background_work(self) -> bool:
        return self.at_work


class Stage:
    def __init__(self) -> None:
        self.started: list[Fake] = []

    @asynccontextmanager
    async def start(self) -> AsyncIterator[Fake]:
        program = Fake(len(self.started) + 1)
        self.started.append(program)
        try:
            yield program
        finally:
            program.ended = True

    @property
    def running(self) -> list[int]:
        return [program.pid for program in self.started if not program.ended]


def _always(_: Fake) -> bool:
    return True


async def test_program_is_kept_between_turns_of_one_conversation() -> None:
    stage, programs = Stage(), Programs[Fake]("fake", ManualClock())
    for conversation in ("a", "b", "a", "a"):
        async with programs.use(conversation, stage.start, _always) as program:
            assert not program.ended
    assert stage.running == [1, 2]
    assert [(row.conversation, row.pid, row.busy) for row in programs.table()] == [("a", 1, False), ("b", 2, False)]
    await programs.close()
    assert stage.running == []


async def test_program_that_no_longer_fits_or_died_makes_place_for_another() -> None:
    stage, programs = Stage(), Programs[Fake]("fake", ManualClock())
    async with programs.use("a", stage.start, _always):
        pass
    async with programs.use("a", stage.start, lambda _: False) as second:
        assert second.pid == 2
        second.alive = False
    assert stage.running == []
    async with programs.use("a", stage.start, _always) as third:
        assert third.pid == 3
    await programs.close()


async def test_idle_programs_are_let_go_and_busy_ones_are_not() -> None:
    clock = ManualClock()
    stage, programs = Stage(), Programs[Fake]("fake", clock, idle_s=60)
    async with programs.use("busy", stage.start, _always):
        async with programs.use("idle", stage.start, _always):
            pass
        await clock.advance(59)
        assert await programs.let_idle_go() == 0
        await clock.advance(2)
        await programs.let_idle_go()
        async with asyncio.timeout(10):
            # The sweeper may have been the one to let it go, and may still be at it.
            while stage.running != [1]:  # noqa: ASYNC110 - a fake tells nobody
                await asyncio.sleep(0)
    await programs.close()


async def test_idle_program_with_work_in_the_background_is_kept_until_that_is_over() -> None:
    clock = ManualClock()
    stage, programs = Stage(), Programs[Fake]("fake", clock, idle_s=60)
    async with programs.use("a", stage.start, _always) as program:
        program.at_work = True
    await clock.advance(3600)
    assert await programs.let_idle_go() == 0
    assert stage.running == [1]
    program.at_work = False
    assert await programs.let_idle_go() == 1
    assert stage.running == []
    await programs.close()


async def test_program_whose_turn_begins_while_it_is_looked_at_is_kept() -> None:
    clock = ManualClock()
    stage, programs = Stage(), Programs[Fake]("fake", clock, idle_s=60)
    asked, go_on = asyncio.Event(), asyncio.Event()
    async with programs.use("a", stage.start, _always) as program:
        pass

    async def slowly() -> bool:
        asked.set()
        await go_on.wait()
        return False

    program.has_background_work = slowly  # type: ignore[method-assign]
    await clock.advance(61)
    async with asyncio.timeout(10):
        looking = asyncio.create_task(programs.let_idle_go())
        await asked.wait()
        async with programs.use("a", stage.start, _always) as again:
            go_on.set()
            assert await looking == 0
            assert not again.ended
    await programs.close()


async def test_person_lets_go_of_an_idle_program_and_not_of_a_busy_one() -> None:
    stage, programs = Stage(), Programs[Fake]("fake", ManualClock())
    async with programs.use("a", stage.start, _always, "somebody") as program:
        program.at_work = True
        assert not await programs.let_go("a")
        assert [(row.busy, row.agent, row.command) for row in programs.table()] == [(True, "somebody", "fake")]
    assert await programs.let_go("a")
    assert stage.running == []
    assert await programs.let_go("a")


async def test_two_turns_of_one_conversation_never_use_it_at_once() -> None:
    stage, programs = Stage(), Programs[Fake]("fake", ManualClock())
    entered, leave = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with programs.use("a", stage.start, _always):
            entered.set()
            await leave.wait()

    async def second() -> int:
        async with programs.use("a", stage.start, _always) as program:
            return program.pid

    async with asyncio.timeout(10):
        one = asyncio.create_task(first())
        await entered.wait()
        two = asyncio.create_task(second())
        await asyncio.sleep(0)
        assert not two.done()
        leave.set()
        await one
        assert await two == 1
    assert stage.running == [1]
    await programs.close()


async def test_program_that_cannot_be_started_says_why_and_the_next_try_works() -> None:
    stage, programs = Stage(), Programs[Fake]("fake", ManualClock())

    @asynccontextmanager
    async def missing() -> AsyncIterator[Fake]:
        raise NotInstalled("Install it first.")
        yield

    with pytest.raises(NotInstalled, match="Install it first"):
        async with programs.use("a", missing, _always):
            pass
    async with programs.use("a", stage.start, _always):
        pass
    await programs.close()


async def test_dropped_program_is_gone_and_its_user_gets_another_next_time() -> None:
    stage, programs = Stage(), Programs[Fake]("fake", ManualClock())
    async with programs.use("a", stage.start, _always):
        await programs.drop("a")
        assert stage.running == []
    await programs.drop("nobody")
    async with programs.use("a", stage.start, _always) as program:
        assert program.pid == 2
    await programs.close()

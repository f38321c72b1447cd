"""The owner of tasks: what it started has ended when it is closed, however it ended."""

import asyncio

import pytest

from palaver.tasks import TaskOwner, running, wait_first


async def test_leaving_the_block_cancels_and_awaits_what_runs() -> None:
    ends: list[str] = []

    async def work(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ends.append(name)

    async with TaskOwner() as tasks:
        tasks.hold(work("one"), "one")
        tasks.hold(work("two"), "two")
        await asyncio.sleep(0)
        assert len(tasks) == 2
    assert sorted(ends) == ["one", "two"]
    assert len(tasks) == 0


async def test_failure_stays_with_its_task_and_leaves_the_others_alone() -> None:
    async def fail() -> None:
        raise ValueError("the tide is out")

    async with TaskOwner() as tasks:
        failing = tasks.start(fail(), "fails")
        waiting = tasks.start(asyncio.Event().wait(), "waits")
        await wait_first(failing, waiting)
        assert not waiting.done()
        with pytest.raises(ValueError, match="the tide is out"):
            await failing


async def test_waiting_lets_tasks_finish_also_those_that_start_meanwhile() -> None:
    ends: list[str] = []

    async def work(name: str, then: str | None = None) -> None:
        await asyncio.sleep(0)
        ends.append(name)
        if then is not None:
            tasks.hold(work(then), then)

    tasks = TaskOwner()
    tasks.hold(work("one", then="two"), "one")
    await tasks.wait()
    assert ends == ["one", "two"]


async def test_work_runs_for_the_length_of_a_block() -> None:
    async with running(asyncio.Event().wait(), "waits") as task:
        assert not task.done()
    assert task.cancelled()


async def test_cancelling_the_starter_cancels_its_tasks() -> None:
    started = asyncio.Event()
    inner: list[asyncio.Task[bool]] = []

    async def hold() -> None:
        async with TaskOwner() as tasks:
            inner.append(tasks.start(asyncio.Event().wait(), "inner"))
            started.set()
            await asyncio.Event().wait()

    holder = asyncio.create_task(hold())
    await started.wait()
    holder.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holder
    assert inner[0].cancelled()

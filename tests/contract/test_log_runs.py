"""What every log promises about runs: they change with the events, and are found without reading them."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from palaver.errors import HeadMoved, Invalid
from palaver.log.base import Append, EventLog, Run
from tests.unit.log.stores import KINDS, Store, line, open_store, row, run

pytestmark = pytest.mark.anyio


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(request.param, tmp_path / "data") as opened:
        yield opened


async def put(log: EventLog, *runs: Run, deleted: bool = False) -> None:
    """One more event of the runs' conversation, with what it says of them."""
    name = runs[0].conversation
    head = await log.head(name)
    after = head.seq if head else 0
    await log.append(Append(name, after, [line(name, after + 1)], row(name, deleted=deleted), runs=runs))


def ids(runs: Sequence[Run]) -> list[str]:
    return [known.run for known in runs]


async def test_a_run_is_kept_as_given(store: Store) -> None:
    given = run(
        "t1",
        "a",
        parent="t0",
        trigger="task",
        exchange="x",
        status="failed",
        detail="No.",
        ended_at=9,
        cost_usd=0.5,
        input_tokens=7,
        output_tokens=3,
    )
    await put(store.log, given)
    log = await store.reopen()
    assert await log.run("t1") == given
    assert await log.run("nobody") is None


async def test_an_end_takes_the_place_of_the_start_and_keeps_whom_it_works_for(store: Store) -> None:
    await put(store.log, run("t1", "a", parent="t0"))
    await put(store.log, run("t2", "a"))
    await put(store.log, run("t1", "a", status="completed", ended_at=5))
    expected = run("t1", "a", parent="t0", status="completed", ended_at=5)
    log = await store.reopen()
    assert await log.run("t1") == expected
    assert await log.children_of_run("t0") == [expected]
    assert ids(await log.runs()) == ["t2", "t1"]


async def test_a_start_and_an_end_in_one_append_are_one_run(store: Store) -> None:
    await put(store.log, run("t1", "a"), run("t1", "a", status="completed"))
    (found,) = await store.log.runs()
    assert found.status == "completed"


async def test_a_refused_append_leaves_the_runs_as_they_are(store: Store) -> None:
    await put(store.log, run("t1", "a"))
    late = [run("t1", "a", status="failed"), run("t2", "a")]
    with pytest.raises(HeadMoved):
        await store.log.append(Append("a", 0, [line("a", 1)], runs=late))
    assert await store.log.runs() == [run("t1", "a")]


async def test_runs_of_a_conversation_and_of_a_project_are_newest_first(store: Store) -> None:
    # The later one began earlier by the wall clock: it was set back. The order is that of the log.
    await put(store.log, run("t1", "a", project="/p", started_at=9))
    await put(store.log, run("t2", "b", project="/q", started_at=5))
    await put(store.log, run("t3", "a", project="/p", started_at=1))
    await put(store.log, run("t4", "c", project="/p"))
    await put(store.log, run("t5", "d", project=None))
    log = await store.reopen()
    assert ids(await log.runs()) == ["t5", "t4", "t3", "t2", "t1"]
    assert ids(await log.runs(conversation="a")) == ["t3", "t1"]
    assert ids(await log.runs(project="/p")) == ["t4", "t3", "t1"]
    assert ids(await log.runs(conversation="a", project="/q")) == []
    assert ids(await log.runs(conversation="nobody")) == []


async def test_pages_of_runs_follow_each_other(store: Store) -> None:
    for number in range(7):
        await put(store.log, run(f"t{number}", f"c{number % 2}"))
    seen: list[str] = []
    for _ in range(3):
        page = await store.log.runs(conversation="c0", limit=2, before=seen[-1] if seen else None)
        assert len(page) <= 2
        seen += ids(page)
    assert seen == ["t6", "t4", "t2", "t0"]


async def test_a_page_before_an_unknown_run_is_refused(store: Store) -> None:
    await put(store.log, run("t1", "a"))
    with pytest.raises(Invalid):
        await store.log.runs(before="nobody")


async def test_children_of_a_run_are_those_that_work_for_it_oldest_first(store: Store) -> None:
    await put(store.log, run("t1", "a"))
    for child in ("t3", "t2"):
        await put(store.log, run(child, f"of {child}", parent="t1"))
    await put(store.log, run("t4", "deep", parent="t3"))
    log = await store.reopen()
    assert ids(await log.children_of_run("t1")) == ["t3", "t2"]
    assert ids(await log.children_of_run("t3")) == ["t4"]
    assert ids(await log.children_of_run("t4")) == []


async def test_runs_of_a_deleted_conversation_are_in_no_list(store: Store) -> None:
    await put(store.log, run("t1", "a"))
    await put(store.log, run("t2", "b", parent="t1"))
    await put(store.log, run("t2", "b", status="cancelled"), deleted=True)
    assert ids(await store.log.runs()) == ["t1"]
    assert await store.log.run("t2") is None
    assert ids(await store.log.children_of_run("t1")) == []


async def test_runs_are_part_of_a_backup(store: Store, tmp_path: Path) -> None:
    await put(store.log, run("t1", "a"))
    await store.log.backup(tmp_path / "backup")
    async with store.opened_backup(tmp_path / "backup") as log:
        assert await log.run("t1") == run("t1", "a")

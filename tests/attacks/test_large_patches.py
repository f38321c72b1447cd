"""Patches made to keep the server busy: many hunks, many equal lines, many calls at once.

A call may compare so many lines and is refused beyond that; it has threads of its own, and ends when nobody waits for it.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from palaver.errors import Conflict, NotFound, TooLarge
from palaver.tools import thread_pool
from palaver.tools.base import Proposal, ToolResult
from palaver.tools.files.hunks import HUNKS, Hunk, apply
from palaver.tools.files.line_index import Effort, LineIndex
from palaver.tools.files.patch import Patch
from palaver.tools.files.patch_text import files_of
from palaver.tools.thread_pool import Stopped, check_stop, finish_in_pool, run_in_pool

pytestmark = pytest.mark.anyio

WAIT_S = 20.0


class Counted(Effort):
    def __init__(self) -> None:
        super().__init__(10**12)
        self.spent = 0

    def spend(self, lines: int) -> None:
        self.spent += lines
        super().spend(lines)


def hunk(*lines: str, at_line: int | None = None) -> Hunk:
    return Hunk(tuple((line[0], line[1:]) for line in lines), "Hunk", at_line=at_line)  # type: ignore[misc]


def numbered(lines: int, hunks: int) -> tuple[str, list[Hunk]]:
    text = "".join(f"{number}\n" for number in range(lines))
    return text, [hunk(f"-{number}", "+a") for number in range(hunks)]


def blocks(lines: int, hunks: int) -> tuple[str, list[Hunk]]:
    """Every hunk's lines occur everywhere; its line number decides."""
    text = "{\n  x\n}\n" * (lines // 3)
    return text, [hunk(" {", "-  x", "+  y", " }", at_line=3 * number + 1) for number in range(hunks)]


@pytest.mark.parametrize("make", [numbered, blocks])
def test_effort_grows_with_the_patch_and_not_with_its_square(
    make: Callable[[int, int], tuple[str, list[Hunk]]],
) -> None:
    spent: list[int] = []
    for size in (1_000, 2_000, 4_000):
        text, hunks = make(4 * size, size)
        effort = Counted()
        after = apply(text, hunks, "f", effort)
        assert after != text
        spent.append(effort.spent)
    assert spent[2] < 2.2 * spent[1] < 5 * spent[0]


EQUAL = "x\n" * 200_000


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (EQUAL, [" x"] * 100 + ["-y"]),
        (EQUAL, [" x"] * 1_000 + ["+y"]),
        ("a\nb\n" * 100_000, [" a", " b"] * 200 + ["-c"]),
        (" x\n" * 100_000 + "  x\n" * 100_000, [" x"] * 400 + ["+y"]),
    ],
)
def test_passages_that_fit_nearly_everywhere_are_refused_or_answered_within_the_effort(
    text: str, lines: list[str]
) -> None:
    hunks = [hunk(*lines) for _ in range(20)]
    with pytest.raises((TooLarge, NotFound, Conflict)):
        apply(text, hunks, "f")


def test_equal_lines_with_line_numbers_spend_the_effort_and_say_so() -> None:
    hunks = [hunk(*[" x"] * 500, "-y", at_line=number * 600 + 1) for number in range(300)]
    with pytest.raises((TooLarge, NotFound)):
        apply(EQUAL, hunks, "f", Effort())
    far = [hunk(*[" x"] * 500, "+z", at_line=500 * number + 1) for number in range(400)]
    assert apply(EQUAL, far, "f", Effort()).count("z\n") == 400


def test_more_hunks_than_allowed_are_refused() -> None:
    text, hunks = numbered(HUNKS + 1, HUNKS + 1)
    with pytest.raises(TooLarge, match="10,001 hunks"):
        apply(text, hunks, "f")
    assert apply(text, hunks[:-1], "f").count("a\n") == HUNKS


def test_one_file_named_again_and_again_spends_one_effort(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("".join(f"{number}\n" for number in range(200_000)))
    sections = "".join(f"*** Update File: f\n@@\n-{number}\n+a\n" for number in range(90))
    found = Patch().propose({"patch": f"*** Begin Patch\n{sections}*** End Patch"}, tmp_path)
    assert isinstance(found, ToolResult)
    assert "too many comparisons" in (found.error or "")


def test_hundred_thousand_blank_lines_behind_a_change_are_trimmed_in_one_go() -> None:
    (file,) = files_of("*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n" + "\n" * 100_000 + "*** End Patch")
    assert file.hunks[0].lines == (("-", "a"), ("+", "b"))


@pytest.mark.parametrize("seed", range(30))
def test_index_finds_what_going_through_all_lines_finds(seed: int) -> None:
    random = Random(seed)
    lines = [random.choice(["a", " a", "b", "b ", "", "c"]) for _ in range(random.randrange(60))]
    index = LineIndex(lines, Effort())
    for _ in range(50):
        expected = [random.choice(["a", "b", "", " c"]) for _ in range(random.randrange(1, 5))]
        begin, near = random.randrange(70), random.randrange(-5, 70)
        for alike in (str, str.rstrip, str.strip):
            wanted = [alike(line) for line in expected]
            there = [alike(line) for line in lines]
            size = len(wanted)
            places = [at for at in range(begin, len(lines) - size + 1) if there[at : at + size] == wanted]
            assert list(index.matches(expected, begin, alike)) == places
            assert list(index.matches(expected, begin, alike, near)) == sorted(
                places, key=lambda place: (abs(place - near), place)
            )


# -- threads


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2, "small") as made:
        monkeypatch.setattr(thread_pool, "_pool", made)
        yield made


class Endless:
    """Work that goes on until nobody waits for it."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.ended = threading.Event()

    def run(self) -> None:
        self.began.set()
        try:
            effort = Effort(10**15)
            while True:
                effort.spend(1_000)
        finally:
            self.ended.set()


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, WAIT_S)


@pytest.mark.parametrize("run", [run_in_pool, finish_in_pool])
async def test_cancelled_call_ends_its_work(pool: ThreadPoolExecutor, run: Callable[..., object]) -> None:
    works = [Endless() for _ in range(5)]
    tasks = [asyncio.ensure_future(run(work.run)) for work in works]  # type: ignore[call-overload]
    await until(works[0].began)
    # What the server itself needs has other threads.
    assert await asyncio.to_thread(lambda: 7) == 7
    for task in tasks:
        task.cancel()
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*tasks, return_exceptions=True)
    assert all(task.cancelled() for task in tasks)
    await until(works[0].ended)
    assert await run_in_pool(lambda: 7) == 7
    # One may have been taken up before its own cancellation came.
    for work in works[2:]:
        if work.began.is_set():
            await until(work.ended)


async def test_work_that_must_finish_is_over_before_the_cancellation_goes_on(pool: ThreadPoolExecutor) -> None:
    began, go_on = threading.Event(), threading.Event()
    done: list[str] = []

    def work() -> None:
        began.set()
        assert go_on.wait(WAIT_S)
        done.append("done")

    task = asyncio.ensure_future(finish_in_pool(work))
    await until(began)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    async with asyncio.timeout(WAIT_S):
        await asyncio.wait([task])
    assert task.cancelled()
    assert done == ["done"]


async def test_work_that_could_get_no_thread_never_runs_later(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = threading.Event(), threading.Event()
    ran: list[str] = []

    def first() -> None:
        began.set()
        assert go_on.wait(WAIT_S)

    task = asyncio.ensure_future(run_in_pool(first))
    await until(began)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            await run_in_pool(ran.append, "late")
    go_on.set()
    await task
    assert await run_in_pool(lambda: 7) == 7
    assert ran == []


async def test_seven_huge_patches_at_once_leave_the_server_its_threads(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("".join(f"{number}\n" for number in range(400_000)))
    body = "".join(f"@@\n-{number}\n+a\n" for number in range(60_000))
    patch = {"patch": f"*** Begin Patch\n*** Update File: f.txt\n{body}*** End Patch"}
    calls = [asyncio.ensure_future(run_in_pool(Patch().propose, patch, tmp_path)) for _ in range(7)]
    assert await asyncio.to_thread(lambda: 7) == 7
    results = await asyncio.gather(*calls)
    assert all(isinstance(one, ToolResult) and "60,000 hunks" in (one.error or "") for one in results)


async def test_large_patch_within_the_bounds_is_proposed(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("".join(f"{number}\n" for number in range(400_000)))
    body = "".join(f"@@\n-{number}\n+a\n" for number in range(9_000))
    found = await run_in_pool(
        Patch().propose, {"patch": f"*** Begin Patch\n*** Update File: f.txt\n{body}*** End Patch"}, tmp_path
    )
    assert isinstance(found, Proposal)


def test_stop_outside_a_call_means_nothing() -> None:
    check_stop()
    assert issubclass(Stopped, Exception)

"""Time that is told, not taken; and ids that only grow."""

import asyncio
import itertools
import uuid

import pytest

from palaver.clock import Ids, ManualClock, SystemClock

pytestmark = pytest.mark.anyio


class StandingClock:
    """Shows what it is told, also backwards."""

    def __init__(self, *times_ms: int) -> None:
        self._times_ms = list(times_ms)

    def now_ms(self) -> int:
        return self._times_ms.pop(0) if len(self._times_ms) > 1 else self._times_ms[0]

    def monotonic_s(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


def test_ids_are_uuids_of_version_seven_that_carry_the_time() -> None:
    made = Ids(StandingClock(0x0199_C82C_C000)).new()
    assert made.startswith("0199c82c-c000-7")
    assert (uuid.UUID(made).version, uuid.UUID(made).variant, str(uuid.UUID(made))) == (7, uuid.RFC_4122, made)


def test_ids_grow_within_one_millisecond() -> None:
    ids = Ids(StandingClock(1_760_000_000_000))
    made = [ids.new() for _ in range(20_000)]
    assert made == sorted(set(made))
    assert all(uuid.UUID(one).version == 7 and uuid.UUID(one).variant == uuid.RFC_4122 for one in made)


def test_ids_grow_over_milliseconds_and_when_the_clock_is_set_back() -> None:
    ids = Ids(StandingClock(1_000, 1_001, 5, 5, 2_000, 1, 1))
    made = [ids.new() for _ in range(7)]
    assert made == sorted(set(made))


def test_ids_borrow_from_the_time_when_a_millisecond_is_used_up() -> None:
    ids = Ids(StandingClock(1_000))
    made = [ids.new() for _ in range(200_000)]
    assert made == sorted(set(made))
    assert made[-1][:13] > made[0][:13]


def test_ids_within_one_millisecond_are_far_apart() -> None:
    # Whoever knows one must not be able to count on to the next.
    ids = Ids(StandingClock(1_000))
    made = [int(ids.new().replace("-", ""), 16) for _ in range(200)]
    steps = sorted(later - earlier for earlier, later in itertools.pairwise(made))
    assert steps[len(steps) // 2] > 1 << 56


def test_ids_of_two_makers_differ() -> None:
    clock = StandingClock(1_000)
    assert len({Ids(clock).new() for _ in range(1_000)}) == 1_000


def test_system_clock_shows_the_present() -> None:
    clock = SystemClock()
    assert clock.now_ms() > 1_700_000_000_000
    assert clock.monotonic_s() <= clock.monotonic_s()


async def test_sleepers_wake_in_the_order_of_their_deadlines() -> None:
    clock, woken = ManualClock(), list[tuple[str, float]]()

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic_s()))

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        for name, seconds in (("late", 90.0), ("early", 10.0), ("also early", 10.0)):
            group.create_task(sleeper(name, seconds))
        await asyncio.sleep(0)
        await clock.advance(9.9)
        assert woken == []
        await clock.advance(0.1)
        assert woken == [("early", 10.0), ("also early", 10.0)]
        await clock.advance(1_000)
    assert woken[-1] == ("late", 90.0)
    assert clock.monotonic_s() == 1_010.0


async def test_wall_time_moves_with_the_clock_and_jumps_alone() -> None:
    clock = ManualClock(now_ms=1_000)
    await clock.advance(2.5)
    assert clock.now_ms() == 3_500
    clock.jump_wall(-3_000)
    assert (clock.now_ms(), clock.monotonic_s()) == (500, 2.5)


async def test_sleep_of_nothing_does_not_wait_for_the_clock() -> None:
    async with asyncio.timeout(5):
        await ManualClock().sleep(0)
        await ManualClock().sleep(-1)


async def test_cancelled_sleeper_is_forgotten() -> None:
    clock = ManualClock()
    sleeping = asyncio.create_task(clock.sleep(10))
    await asyncio.sleep(0)
    sleeping.cancel()
    await asyncio.wait({sleeping}, timeout=5)
    await clock.advance(20)
    assert sleeping.cancelled()
    assert clock.monotonic_s() == 20.0

"""The real server killed with SIGKILL, at named points and at random, with clients connected: nothing lost, doubled or stuck."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.crash.rig import Rig, Violation, check, check_effects, rigged
from tests.provider.server import ScriptedProvider, serving

pytestmark = pytest.mark.crash

CONVERSATION = "crash"
TEXTS = ["hello", "!shell echo one >> effects.txt", "!long 60", "!shell echo two >> effects.txt", "bye"]
EFFECTS = ["one", "two"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def provider() -> AsyncIterator[ScriptedProvider]:
    async with serving(ScriptedProvider()) as served:
        yield served


async def talk_through(rig: Rig, kills: list[str | float]) -> dict[int, bytes]:
    """Five messages are sent while the server dies as told: a text is a named point, a number a moment in seconds."""
    await rig.start()
    await rig.up()
    await rig.create(CONVERSATION)
    async with rig.people(CONVERSATION):
        await rig.kill()
        sending = asyncio.create_task(send_all(rig))
        for kill in kills:
            await rig.start(kill if isinstance(kill, str) else None)
            if isinstance(kill, str):
                await rig.died()
            else:
                await rig.up()
                await asyncio.sleep(kill)
                await rig.kill()
        await rig.start()
        await sending
        await rig.rest(CONVERSATION)
        log = await rig.log(CONVERSATION)
        await rig.has_read(max(log))
    check(log, rig)
    check_effects(rig.project / "effects.txt", EFFECTS, log)
    return log


async def send_all(rig: Rig) -> None:
    for number, text in enumerate(TEXTS):
        await rig.send(CONVERSATION, f"request-{number}", text)


@pytest.mark.parametrize(
    "point",
    [
        "append.before:2",
        "append.after:2",
        "append.before:9",
        "publish.before:3",
        "publish.after:4",
        "answer.before:2",
        "answer.after:3",
        "tool.before:1",
        "tool.after:1",
    ],
)
async def test_kill_at_a_named_point_loses_doubles_and_sticks_nothing(
    point: str, tmp_path: Path, provider: ScriptedProvider
) -> None:
    async with rigged(tmp_path / "data", provider.url) as rig:
        await talk_through(rig, [point])


@pytest.mark.parametrize("seed", range(3))
async def test_kills_at_random_moments_lose_double_and_stick_nothing(
    seed: int, tmp_path: Path, provider: ScriptedProvider
) -> None:
    chance = random.Random(seed)
    async with rigged(tmp_path / "data", provider.url) as rig:
        kills: list[str | float] = [chance.uniform(0.0, 0.4) for _ in range(4)]
        await talk_through(rig, kills)
        assert rig.deaths >= 5


@pytest.mark.parametrize(
    ("fault", "point"),
    [
        ("ack_before_commit", "append.before:1"),
        ("publish_before_commit", "append.before:3"),
        ("never_settle", "append.after:4"),
        ("run_tools_twice", "publish.after:4"),
        ("forget_claims", "answer.before:2"),
    ],
)
async def test_rig_notices_a_bug_that_is_built_in(
    fault: str, point: str, tmp_path: Path, provider: ScriptedProvider
) -> None:
    async with rigged(tmp_path / "data", provider.url, fault) as rig:
        with pytest.raises(Violation):
            await talk_through(rig, [point])

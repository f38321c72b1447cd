"""Live and replayed are the same page: cut off after every event, told things twice and out of order, or loaded anew, the
transcript reads as it did for somebody who watched all along."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, expect

from tests.browser.player import Player
from tests.browser.visitor import WAIT_MS, Visitor, Visitors, visiting
from tests.golden.record import FIRST_MS, STEP_MS

LOG = "long"
RELOADS = [12, pytest.param(48, marks=pytest.mark.long)]
"""Places of the long log at which the page is loaded anew, spread over it: every one of them would take minutes."""

AT_EVERY_EVENT = ("tools", "requests", "interrupted", "queue", "delegating", "work")
"""Logs of a length at which it can be loaded anew after every event."""
STEPS = [5, pytest.param(1, marks=pytest.mark.long)]
"""Each load takes half a second of a core."""
LOOKS = 200
"""Of two frames each: what a page loads when it first needs it appears a moment after the rest."""

# As high as the whole transcript, so that every row exists; else only those near the window do.
SIZE = (1100, 9000)

# A network that comes back at once: the page waits longer and longer between its tries, and 300 cuts would take an hour.
COME_BACK = """
window.Worker = class extends Worker {
  constructor(address, options) {
    super(address, options);
    this.addEventListener("message", ({ data }) => {
      if (data.kind === "closed") setTimeout(() => window.dispatchEvent(new Event("online")));
    });
  }
};
"""

pytestmark = pytest.mark.timeout(300)


@asynccontextmanager
async def reading(visitors: Visitors, player: Player) -> AsyncIterator[Visitor]:
    visitor = await visitors.stranger(player.url, SIZE)
    # Times are told against a clock that stands still a minute after the last event.
    await visitor.page.clock.set_fixed_time(FIRST_MS + (len(player.lines) + 1) * STEP_MS + 60_000)
    await visitor.page.add_init_script(COME_BACK)
    await visitor.open(player.conversation)
    try:
        yield visitor
    finally:
        # Before the server goes, which the page would complain about.
        await visitor.page.close()


@asynccontextmanager
async def watching(visitors: Visitors, log: str = LOG) -> AsyncIterator[tuple[Visitor, Player]]:
    async with Player.of(log).serving() as player, reading(visitors, player) as visitor:
        await player.followed()
        yield visitor, player


# The list draws nothing before it knows its height, and hides a new row until it was measured. So the text is taken when
# there are rows, none is hidden, and two frames agree.
READ = """async mark => {
  const frame = () => new Promise(requestAnimationFrame);
  const log = document.querySelector("[role=log]");
  const drawn = () =>
    (log.querySelector("article") !== null || log.innerText === "No messages yet.") &&
    log.querySelector("[style*='visibility: hidden']") === null;
  let [before, now] = [null, undefined];
  while (!document.title.includes(mark) || !drawn() || before !== now) {
    await frame();
    [before, now] = [now, log.innerText];
  }
  return now;
}"""


async def text_at(visitor: Visitor, seq: int) -> str:
    """What the transcript reads once the page shows the log up to here."""
    async with asyncio.timeout(WAIT_MS / 1000):
        return str(await visitor.page.evaluate(READ, Player.mark(seq)))


@pytest.fixture(scope="module")
async def live(chromium: Browser) -> dict[int, str]:
    """How the transcript reads after every event, for somebody whose connection never broke."""
    texts: dict[int, str] = {}
    async with visiting(chromium) as visitors, watching(visitors) as (visitor, player):
        for seq in range(1, len(player.lines) + 1):
            await player.play(seq)
            texts[seq] = await text_at(visitor, seq)
        assert player.greeted == 1
        rows = visitor.log.get_by_role("article")
        # The work of turns that are over is folded.
        assert await rows.count() >= 15
    return texts


def test_live_transcript_changes_with_the_log(live: dict[int, str]) -> None:
    assert len(set(live.values())) > 120


async def test_transcript_is_the_same_when_the_connection_breaks_after_every_event(
    visitors: Visitors, live: dict[int, str]
) -> None:
    visitors.complaints.expect("WebSocket connection")
    async with watching(visitors) as (visitor, player):
        for seq in range(2, len(player.lines) + 1):
            await player.play(seq)
            await player.cut()
            assert await text_at(visitor, seq) == live[seq], f"after event {seq}"
        assert player.greeted > len(player.lines) / 2
        await expect(visitor.page.get_by_role("status").filter(has_text="No connection")).to_have_count(0)


async def test_transcript_is_the_same_when_events_come_twice_and_out_of_order(
    visitors: Visitors, live: dict[int, str]
) -> None:
    visitors.complaints.expect("WebSocket connection")
    async with watching(visitors) as (visitor, player):
        player.repeats = 5
        while player.head + 2 <= len(player.lines):
            await player.followed()
            await player.play_swapped()
            assert await text_at(visitor, player.head) == live[player.head], f"after event {player.head}"
            if player.head % 10 == 1:
                await player.cut()


@pytest.mark.parametrize("reloads", RELOADS)
async def test_transcript_is_the_same_when_loaded_anew_at_any_event(
    visitors: Visitors, live: dict[int, str], reloads: int
) -> None:
    async with watching(visitors) as (visitor, player):
        step = max(1, len(player.lines) // reloads)
        for seq in range(1, len(player.lines) + 1, step):
            await player.play(seq)
            await visitor.page.reload()
            await expect(visitor.log).to_be_visible()
            assert await text_at(visitor, seq) == live[seq], f"at event {seq}"


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("log", AT_EVERY_EVENT)
async def test_transcript_is_the_same_when_loaded_anew_at_every_event(visitors: Visitors, log: str, step: int) -> None:
    async with watching(visitors, log) as (watcher, player), reading(visitors, player) as reader:
        # From the end, so that the last event is always among them.
        for seq in reversed(range(len(player.lines), 0, -step)):
            await player.play(seq)
            await reader.page.reload()
            await expect(reader.log).to_be_visible()
            looks = 1
            while (anew := await text_at(reader, seq)) != (live := await text_at(watcher, seq)):
                assert looks < LOOKS, f"at event {seq}: {anew} != {live}"
                looks += 1

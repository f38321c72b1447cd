"""Reloading at any event, or losing the connection at every one, changes nothing in the transcript."""

import asyncio

import pytest
from textual.app import App, ComposeResult

from palaver.client.client import Client
from palaver.clock import SystemClock
from palaver.core.fold.evolve import fold
from palaver.schema.events import TextDelta, decode_event
from palaver.tui.follow import Following
from palaver.tui.people import People
from palaver.tui.theme import DARK_NAME, DARK_THEME, LIGHT_THEME
from palaver.tui.transcript.rows import Row
from palaver.tui.transcript.transcript import Transcript
from palaver.tui.transcript.work import unfold
from tests.tui.golden import NAMES, NOW_MS, book, drawing, dropping, lines_of, reloaded, start_of, text_of
from tests.tui.harness import WAIT_S

PEOPLE = People()


class Hasty(SystemClock):
    """Never waits before it tries again."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


@pytest.mark.parametrize("name", NAMES)
def test_reload_at_every_event_gives_the_same_text(name: str) -> None:
    """Closed and opened, a live transcript says what one says that sees this state for the first time."""
    state, live, live_drawing = start_of(name), book(), drawing()
    for line in lines_of(name):
        state = fold(state, (decode_event(line),))
        rows = live.rows(state)
        opened = frozenset(row.key for row in unfold(rows, lambda _: True)[0])
        fresh = book().rows(reloaded(state))
        assert text_of(rows, live_drawing) == text_of(fresh, drawing()), f"after event {state.seq}"
        if state.seq % 5 == 0:
            assert text_of(rows, live_drawing, opened) == text_of(fresh, drawing(), opened), f"after {state.seq}"


@pytest.mark.parametrize("name", NAMES)
async def test_connection_dropped_at_every_event_gives_the_same_view(name: str) -> None:
    async with dropping(name) as (served, url), Client.connect(url, "") as client:
        kinds: list[str] = []
        following = Following(client, "golden", Hasty(), lambda: None, lambda connection: kinds.append(connection.kind))
        running = asyncio.create_task(following.run())
        wanted = served.start
        async with asyncio.timeout(WAIT_S):
            for event in served.events:
                wanted = fold(wanted, (event,))
                while following.seq < event.seq:  # noqa: ASYNC110 - it tells nobody in a test
                    await asyncio.sleep(0)
                if following.seq == event.seq:
                    assert following.state == wanted
        running.cancel()
        await asyncio.wait([running])
        assert following.state == wanted
        assert served.connections >= len(served.events)
        assert "reconnecting" in kinds
        assert "caught_up" in kinds or len(served.events) < 2


@pytest.mark.parametrize("at", [1, 7, 20])
async def test_resync_in_the_middle_gives_the_same_view(at: int) -> None:
    async with dropping("tools", resync_at=at) as (served, url), Client.connect(url, "") as client:
        following = Following(client, "golden", Hasty(), lambda: None, lambda connection: None)
        running = asyncio.create_task(following.run())
        async with asyncio.timeout(WAIT_S):
            while following.seq < served.head:  # noqa: ASYNC110 - it tells nobody in a test
                await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])
        assert following.state == fold(served.start, served.events)


class Two(App[None]):
    """A transcript that follows events, and one that is shown each state afresh."""

    CSS = "Transcript { height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        for theme in (DARK_THEME, LIGHT_THEME):
            self.register_theme(theme)
        self.theme = DARK_NAME

    def compose(self) -> ComposeResult:
        yield Transcript(id="live")
        yield Transcript(id="fresh")


@pytest.mark.parametrize("name", ["talk", "tools", "engine", "interrupted", "rewritten"])
async def test_screen_after_a_reload_is_the_screen_before(name: str) -> None:
    app, state, live = Two(), start_of(name), book()
    async with app.run_test(size=(80, 48)) as pilot:
        followed, fresh = app.query_one("#live", Transcript), app.query_one("#fresh", Transcript)
        await pilot.pause()
        for line in lines_of(name):
            state = fold(state, (decode_event(line),))
            followed.show(live.rows(state), now_ms=NOW_MS, people=PEOPLE)
            fresh.open_another()
            fresh.show(book().rows(reloaded(state)), now_ms=NOW_MS, people=PEOPLE)
            assert seen(followed) == seen(fresh), f"after event {state.seq}"


def seen(transcript: Transcript) -> list[str]:
    return [transcript.render_line(y).text for y in range(transcript.size.height)]


def rows_by_key(rows: tuple[Row, ...]) -> dict[str, Row]:
    return {row.key: row for row in rows}


def test_token_changes_exactly_one_row() -> None:
    state, live = start_of("talk"), book()
    before: dict[str, Row] = {}
    tokens = 0
    for line in lines_of("talk"):
        event = decode_event(line)
        state = fold(state, (event,))
        now = rows_by_key(live.rows(state))
        if isinstance(event, TextDelta) and f"{event.message}:{event.block}" in before:
            changed = [key for key, row in now.items() if before.get(key) is not row]
            assert changed == [f"{event.message}:{event.block}"]
            tokens += 1
        before = now
    assert tokens > 0

"""A small app around the docks or a screen: the themes of the terminal UI, something that scrolls, and every intent written down.

Made by tests; it carries out nothing. A test answers an intent by telling the docks the next state.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import OptionList, Static

from palaver.client.client import WaitingRequest
from palaver.clock import ManualClock
from palaver.schema.commands import Command
from palaver.schema.content import TextPart
from palaver.schema.view import Question, QueueItem, Request, State, Trigger, Turn
from palaver.tui.connection import Connection
from palaver.tui.docks.activity import ConnectionLine
from palaver.tui.docks.completion import CommandSource, FileSource
from palaver.tui.docks.frame import Docks, next_region
from palaver.tui.intents import Intent, Order
from palaver.tui.key_queue import Typing
from palaver.tui.keys import ANSWER_BINDINGS, Digit
from palaver.tui.theme import DARK_NAME, DARK_THEME, LIGHT_THEME

WAIT_S = 30.0
"""The longest any wait takes before it counts as a failure: a screen needs a processor, and tests share theirs."""
NOW_MS = 1_760_000_000_000
CommandT = TypeVar("CommandT", bound=Command)
WantT = TypeVar("WantT", bound=Intent)
WantedT = TypeVar("WantedT")

TURN = Turn(
    id="turn-1",
    agent="demo",
    backend="scripted",
    model=None,
    started_at=NOW_MS - 5_000,
    trigger=Trigger(messages=("m-1",)),
    steerable=True,
)


class Noted(Typing):
    """Writes every intent down, in order."""

    def __init__(self, theme: str = DARK_NAME) -> None:
        super().__init__()
        self.intents: list[Intent] = []
        for known in (DARK_THEME, LIGHT_THEME):
            self.register_theme(known)
        self.theme = theme

    @on(Intent)
    def note(self, intent: Intent) -> None:
        self.intents.append(intent)

    def of(self, kind: type[WantT]) -> list[WantT]:
        return [intent for intent in self.intents if isinstance(intent, kind)]

    def orders(self, kind: type[CommandT]) -> list[CommandT]:
        return [order.command for order in self.of(Order) if isinstance(order.command, kind)]


class DockApp(Noted):
    CSS = """
    #transcript { height: 1fr; padding: 0 1; color: $ink-soft; }
    """
    BINDINGS = [
        *ANSWER_BINDINGS,
        Binding("f6", "region(1)", priority=True),
        Binding("shift+f6", "region(-1)", priority=True),
        Binding("escape", "escape"),
    ]

    def __init__(
        self, theme: str = DARK_NAME, commands: CommandSource | None = None, files: FileSource | None = None
    ) -> None:
        super().__init__(theme)
        self.clock = ManualClock(NOW_MS)
        self.docks = Docks(self.clock, commands, files)
        self.line = ConnectionLine(self.clock)
        self.stops = 0

    def compose(self) -> ComposeResult:
        yield self.line
        yield Static(
            Content("You\n\nPlease tidy the build folder and run the tests.\n\nDemo\n\nI will look around first."),
            id="transcript",
        )
        yield self.docks

    def on_mount(self) -> None:
        self.docks.focus_composer()

    def show(self, state: State, below: Sequence[WaitingRequest] = ()) -> None:
        self.docks.show(state, below)

    def connection(self, connection: Connection) -> None:
        self.line.show(connection)
        self.docks.show_connection(connection)

    def action_answer(self, digit: Digit) -> None:
        self.docks.answer(digit)

    def action_region(self, by: int) -> None:
        next_region(self.screen, by)

    def action_escape(self) -> None:
        if not self.docks.escape():
            self.stops += 1

    async def hear(self) -> None:
        """Time passes until a request is not deaf any more."""
        await self.clock.advance(0.5)


def state_with(*requests: Request, turn: Turn | None = TURN, **fields: object) -> State:
    return State(conversation="c-1", agent="demo", requests=requests, turn=turn, updated_at=NOW_MS, **fields)  # type: ignore[arg-type]


def approval(id: str = "r-1", command: str = "rm -rf build", **fields: object) -> Request:
    given: dict[str, object] = {
        "id": id,
        "kind": "approval",
        "ts": NOW_MS,
        "turn": "turn-1",
        "call": f"call-{id}",
        "tool": "shell",
        "input": {"command": command},
        "scopes": ("once", "conversation", "project"),
        **fields,
    }
    return Request(**given)  # type: ignore[arg-type]


def question(id: str = "q-1", *questions: Question) -> Request:
    return Request(
        id=id, kind="question", ts=NOW_MS, turn="turn-1", call=f"call-{id}", tool="ask_user", questions=questions
    )


def queued(id: str, text: str, **fields: object) -> QueueItem:
    given: dict[str, object] = {"id": id, "content": (TextPart(text=text),), "delivery": "turn", "ts": NOW_MS, **fields}
    return QueueItem(**given)  # type: ignore[arg-type]


class ScreenApp(Noted):
    """One screen over nothing."""

    def __init__(self, sheet: Screen[None], theme: str = DARK_NAME) -> None:
        super().__init__(theme)
        self.sheet = sheet

    def on_mount(self) -> None:
        _ = self.push_screen(self.sheet)

    def said(self) -> str:
        """All that stands on the screen."""
        texts = [str(widget.render()) for widget in self.sheet.query(Static) if widget.display]
        for rows in self.sheet.query(OptionList):
            texts += [str(option.prompt) for option in rows.options]
        return "\n".join(texts)


async def until(pilot: Pilot[None], holds: Callable[[], object]) -> None:
    """Waits for exactly what is asserted next, and not for ever; then for what came along with it."""
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await pilot.pause()
        await pilot.pause()


async def reads(pilot: Pilot[None], read: Callable[[], object], expected: object) -> None:
    """Waits until it reads exactly so; if it never does, says how it reads instead."""
    try:
        await until(pilot, lambda: read() == expected)
    except TimeoutError:
        assert read() == expected


async def one(pilot: Pilot[None], found: Callable[[], list[WantedT]]) -> WantedT:
    """Waits for the only one there is to be."""
    await until(pilot, found)
    (only,) = found()
    return only


def press_together(app: App[None], *keys: str) -> None:
    """As a slow line brings them: all of them are there before the first is looked at."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))

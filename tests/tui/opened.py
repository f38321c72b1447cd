"""The whole terminal UI on a real server, without a terminal: what is on its screen, and keys for it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from textual.pilot import Pilot

from palaver.client.client import Client
from palaver.clock import Clock, SystemClock
from palaver.schema.view import State
from palaver.tui.app import PalaverApp
from palaver.tui.transcript.transcript import Transcript
from tests.tui.harness import WAIT_S


@dataclass
class Opened:
    app: PalaverApp
    pilot: Pilot[None]
    client: Client

    @property
    def state(self) -> State:
        return self.app.main.state

    @property
    def transcript(self) -> Transcript:
        return self.app.main.transcript

    def lines(self) -> list[str]:
        """What a person sees, line by line."""
        return [strip.text.rstrip() for strip in self.app.screen._compositor.render_strips()]

    def text(self) -> str:
        return "\n".join(self.lines())

    def shows(self, words: str) -> bool:
        return words in self.text()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits for exactly what is asserted after it."""
        async with asyncio.timeout(WAIT_S):
            while not holds():
                await self.pilot.pause(0.005)

    async def until_shown(self, words: str) -> None:
        try:
            await self.until(lambda: self.shows(words))
        except TimeoutError:
            raise AssertionError(f"{words!r} never came up:\n{self.text()}") from None

    async def until_gone(self, words: str) -> None:
        try:
            await self.until(lambda: not self.shows(words))
        except TimeoutError:
            raise AssertionError(f"{words!r} never left:\n{self.text()}") from None

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def write(self, words: str) -> None:
        await self.pilot.press(*("space" if sign == " " else sign for sign in words))


class Server(Protocol):
    @property
    def url(self) -> str: ...

    @property
    def token(self) -> str: ...


@asynccontextmanager
async def opened(
    served: Server,
    conversation: str | None = None,
    *,
    size: tuple[int, int] = (100, 30),
    clock: Clock | None = None,
    notifications: bool = False,
) -> AsyncIterator[Opened]:
    async with Client.connect(served.url, served.token) as client:
        app = PalaverApp(client, clock or SystemClock(), conversation=conversation)
        async with app.run_test(size=size, notifications=notifications) as pilot:
            yield Opened(app, pilot, client)

"""What the conformance suite needs of a program: how to start it against the scripted model, and how to make it use a tool.

Each backend that drives a program supplies one `Subject` in `tests/cli/subjects/`. The model obeys the text it is sent, so a
scenario is a message; the programs differ only in what their tools are called.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from palaver.backends.base import Backend
from palaver.schema.content import Content
from palaver.schema.events import KnownEvent
from palaver.schema.records import AgentRecord
from palaver.schema.view import Request, TextBlock, ToolBlock
from palaver.tools.agents.ask_user import AskUser
from palaver.tools.toolbox import Toolbox
from tests.provider import Answer, ScriptedProvider, scripted_provider
from tests.provider.obedient import RECORD
from tests.provider.turn import MemoryTurn, drive

START_S = 90.0
"""The slowest program needs five seconds on a quiet machine, and more than thirty where ten others want the processor."""

OWN_QUESTION = {"questions": [{"question": "Which tide?", "options": [{"label": "Ebb"}, {"label": "Flow"}]}]}
"""Through our own tool, for programs whose models have none to ask a person with."""
ASKING = Toolbox(tools={"ask_user": AskUser()})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program runs in a test: nothing of the machine's own settings is seen."""

    service: ScriptedProvider
    home: Path
    project: Path


@dataclass(frozen=True, slots=True)
class Subject:
    name: str
    missing: Callable[[], str | None]
    """Why it cannot run here, and what to install; None when it can."""
    open: Callable[[Place], AbstractAsyncContextManager[Backend]]
    shell: Callable[[str], str]
    """The order by which its model runs a shell command, one line."""
    agent: AgentRecord
    question: str = ""
    """The order by which its model asks the person: which tide, ebb or flow."""
    question_params: dict[str, Any] = field(default_factory=dict[str, Any])
    """What a conversation needs for it to ask."""
    minutes_later: Callable[[Place], None] = lambda _: None
    """Makes its memory look as old as it would be when a server comes back, where that makes a difference."""
    lacks: dict[str, str] = field(default_factory=dict[str, str])
    """Scenarios it cannot do, by name, and why: what is absent is said. `ask` means that it never asks."""


def needed(subject: Subject) -> None:
    """A machine without the program leaves it out and says so. CI installs all of them."""
    why = subject.missing()
    if why is None:
        return
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


FAILED = pytest.StashKey[bool]()
"""Set of a test by our `conftest`."""


def failed(request: pytest.FixtureRequest) -> bool:
    """Whether the test that a fixture was for has failed: what it shares with others is then not to be trusted."""
    return bool(request.node.stash.get(FAILED, False))


class Stand:
    """One program at work. `backend` is replaced by `restart`, as by a restart of the server."""

    def __init__(self, subject: Subject, place: Place, *, goes_on: bool = False) -> None:
        """What `goes_on` is one conversation: each turn begins where the one before it ended, so that one live program has
        them all. Otherwise a turn that is given no state begins a conversation, and a program is started for it."""
        self.subject = subject
        self.place = place
        self._goes_on = goes_on
        self._last: MemoryTurn | None = None
        self._entered: AbstractAsyncContextManager[Backend] | None = None
        self.backend: Backend = cast(Any, None)

    @property
    def here(self) -> dict[str, Any]:
        """What every turn here is given."""
        return {"project": self.place.project, "agent": self.subject.agent, "limit_s": START_S}

    def turn(self, *said: str | Content, **more: Any) -> MemoryTurn:
        state = self._last.state if self._last is not None and self._goes_on else None
        self._last = MemoryTurn(*said, **{**self.here, "state": state, **more})
        return self._last

    @property
    def is_set_otherwise(self) -> bool:
        """Something was chosen in the conversation, a mode say, that holds for its next turns too."""
        return self._last is not None and bool(self._last.params)

    def forget(self) -> None:
        """The next turn begins a conversation."""
        self._last = None

    async def say(self, *said: str | Content, **more: Any) -> MemoryTurn:
        """One whole turn."""
        async with asyncio.timeout(START_S):
            return await drive(self.backend, self.turn(*said, **more))

    async def interrupted(self, turn: MemoryTurn, when: Callable[[], Any]) -> MemoryTurn:
        """Starts the turn, waits for the moment, and stops it as a conversation does."""
        running = asyncio.create_task(drive(self.backend, turn))
        try:
            async with asyncio.timeout(START_S):
                moment = asyncio.ensure_future(when())
                await asyncio.wait({moment, running}, return_when=asyncio.FIRST_COMPLETED)
                assert moment.done(), f"the turn was over before it could be stopped: {turn.error or turn.events[-3:]}"
        finally:
            turn.interrupt()
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
        return turn

    async def enter(self) -> None:
        self._entered = self.subject.open(self.place)
        self.backend = await self._entered.__aenter__()

    async def leave(self) -> None:
        if self._entered is not None:
            await self._entered.__aexit__(None, None, None)
            self._entered = None

    async def restart(self) -> None:
        await self.leave()
        self.subject.minutes_later(self.place)
        await self.enter()


@asynccontextmanager
async def stand(subject: Subject, tmp_path: Path, *script: Answer, goes_on: bool = False) -> AsyncIterator[Stand]:
    needed(subject)
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    # Lenient: what a program sends its own service is its own affair.
    async with scripted_provider(*script, obedient=True, strict=False) as service:
        at_work = Stand(subject, Place(service, home, project), goes_on=goes_on)
        await at_work.enter()
        try:
            yield at_work
        finally:
            await at_work.leave()


def said(turn: MemoryTurn) -> str:
    """All text of the turn's answers, each once."""
    return "\n".join(
        block.text
        for message in turn.history
        if message.role == "assistant" and message.turn == turn.id and message.status != "superseded"
        for block in message.blocks
        if isinstance(block, TextBlock)
    )


def tools(turn: MemoryTurn) -> list[ToolBlock]:
    return [
        block
        for message in turn.history
        if message.turn == turn.id
        for block in message.blocks
        if isinstance(block, ToolBlock)
    ]


def requests(turn: MemoryTurn) -> list[Request]:
    """Those of the turn; an earlier one's stay in the conversation to be seen."""
    return [request for request in turn.state.requests if request.turn == turn.id]


def of_kind(events: Sequence[KnownEvent], name: str) -> list[KnownEvent]:
    return [event for event in events if type(event).__name__ == name]


def remembered(words: str, told: str) -> bool:
    """Whether a model was told these words from its program's own memory, and not in a record of ours: it then began anew."""
    return words in RECORD.sub("", told) and not any(words in record[0] for record in RECORD.finditer(told))


def running(mark: str) -> list[int]:
    """Processes that sleep with this mark in their command line."""
    found: list[int] = []
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            with suppress(OSError):
                words = (place / "cmdline").read_bytes().split(b"\0")
                if words[0].endswith(b"sleep") and mark.encode() in words:
                    found.append(int(place.name))
    return found


async def until(condition: Callable[[], bool]) -> None:
    """Looks again and again, for as long as a start may take."""
    async with asyncio.timeout(START_S):
        while not condition():  # noqa: ASYNC110 - a file or a process tells nobody
            await asyncio.sleep(0.02)

"""The scripted backend: plays a script as if it were an agent, the same way every time.

It runs the `demo` agent and stands in for a model in tests of everything that runs turns; what it yields has the shape of
what the API loop yields. `player.py` says what comes next; here is only the waiting, so a stop takes hold at any wait.
Must never touch the machine, and knows no time but the turn's.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from palaver.backends.base import Capabilities, Turn
from palaver.backends.script.player import Delivered, Player, tokens_in
from palaver.backends.script.script import Choice, Prompt, Step
from palaver.backends.script.steps import Back, Commit, Deliveries, Gate, ProcessEnd, Requests, Sleep, following
from palaver.errors import TimedOut
from palaver.schema.events import KnownEvent, RequestOpened, RequestResolved
from palaver.schema.view import ImageBlock, TextBlock

GATE_LIMIT_S = 60.0
"""A gate nobody opens is a mistake in a test; it fails by itself before the test's own limit, and says which gate."""

SCRIPTED = Capabilities(deltas=True, thinking=True, steer=True, approvals=True, usage=True)


class ScriptedBackend:
    """Plays `script`: the same steps every turn, or those chosen by what was asked.

    `delivered` says what to play when messages join the running turn; without it they join and the script goes on.
    `tokens_per_s` paces text on the turn's clock; zero is as fast as it is read.
    """

    def __init__(
        self,
        script: Choice | Sequence[Step],
        *,
        name: str = "scripted",
        capabilities: Capabilities = SCRIPTED,
        delivered: Delivered | None = None,
        tokens_per_s: float = 0.0,
    ) -> None:
        self.name = name
        self._script = script
        self._capabilities = capabilities
        self._delivered = delivered
        self._tokens_per_s = tokens_per_s
        self._gates: dict[str, _Passage] = {}

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def run(self, turn: Turn) -> AsyncIterator[KnownEvent]:
        script = self._script(prompt_of(turn)) if callable(self._script) else self._script
        player = Player(turn, tokens_per_s=self._tokens_per_s, delivered=self._delivered)
        with closing(player.play(script)) as moves:
            back: Back = None
            while (move := following(moves, back)) is not None:
                back = None
                match move:
                    case Sleep():
                        await turn.sleep(move.seconds)
                    case Gate():
                        await self._pass(move.name)
                    case Commit():
                        await turn.committed()
                    case Deliveries():
                        back = tuple(await turn.deliveries())
                    case Requests():
                        back = await _answers(turn, move.requests)
                    case ProcessEnd():
                        await turn.process_ended(move.process, move.exit_code, move.text)
                    case _:
                        yield move

    async def close(self) -> None:
        """Holds nothing open."""

    def open_gate(self, gate: str) -> None:
        """Lets pass every script that waits at this gate or comes to it later."""
        self._passage(gate).opened.set()

    async def reached(self, gate: str) -> None:
        """Returns once a script stands at this gate."""
        await _wait_for(self._passage(gate).reached, f"No script came to the gate {gate!r}.")

    async def _pass(self, gate: str) -> None:
        self._passage(gate).reached.set()
        await _wait_for(self._passage(gate).opened, f"Nobody opened the gate {gate!r}.")

    def _passage(self, gate: str) -> "_Passage":
        return self._gates.setdefault(gate, _Passage())


async def _answers(turn: Turn, requests: Sequence[RequestOpened]) -> tuple[RequestResolved, ...]:
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(turn.request(request), name=f"request {request.request}") for request in requests]
    return tuple(task.result() for task in asked)


def prompt_of(turn: Turn) -> Prompt:
    """What this turn was asked: the messages it consumed, or the latest one when it generates again."""
    asked = [message for message in turn.history if message.role == "user"]
    own = [message for message in asked if message.turn == turn.id] or asked[-1:]
    blocks = [block for message in own for block in message.blocks]
    return Prompt(
        text="\n".join(block.text for block in blocks if isinstance(block, TextBlock)),
        image_count=sum(isinstance(block, ImageBlock) for block in blocks),
        earlier_turns=len({message.turn for message in turn.history if message.turn} - {turn.id}),
        history_tokens=tokens_in(turn.history),
    )


@dataclass(frozen=True, slots=True)
class _Passage:
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)


async def _wait_for(event: asyncio.Event, otherwise: str) -> None:
    try:
        async with asyncio.timeout(GATE_LIMIT_S):
            await event.wait()
    except TimeoutError:
        raise TimedOut(otherwise) from None

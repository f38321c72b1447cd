"""What a played script asks of whoever plays it: events to yield, and waits to be sat out.

Made by `player.py` and `tool.py`, carried out by `backend.py`. Plain data; `asking` is how a script gets its
questions answered.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

from palaver.schema.events import KnownEvent, RequestOpened, RequestResolved
from palaver.schema.view import Message


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: float


@dataclass(frozen=True, slots=True)
class Gate:
    name: str


@dataclass(frozen=True, slots=True)
class Commit:
    pass


@dataclass(frozen=True, slots=True)
class Deliveries:
    pass


@dataclass(frozen=True, slots=True)
class Requests:
    """Asked at once, answered in any order."""

    requests: tuple[RequestOpened, ...]


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    process: str
    exit_code: int
    text: str


Move = KnownEvent | Sleep | Gate | Commit | Deliveries | Requests | ProcessEnd
Back: TypeAlias = tuple[RequestResolved, ...] | tuple[Message, ...] | None
"""What the caller sends in: the ends of requests, messages that joined the turn, or nothing."""

Moves: TypeAlias = Generator[Move, Back, None]


def following(moves: Moves, back: Back) -> Move | None:
    try:
        return moves.send(back)
    except StopIteration:
        return None


def asking(*asked: RequestOpened) -> Generator[Move, Back, list[RequestResolved]]:
    back = (yield Requests(asked)) if asked else ()
    return [resolved for resolved in back or () if isinstance(resolved, RequestResolved)]

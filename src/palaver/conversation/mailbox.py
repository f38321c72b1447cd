"""What reaches the owner of a conversation, and the batch it makes of it.

Commands from faces, events from the running turn, boundaries, expiries: all are posted here and taken in order. The inbox
is unbounded on purpose: faces are bounded by their own connections, and a turn by `TURN_BACKLOG` below.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import assert_never

from palaver.errors import LogUnavailable, PalaverError
from palaver.schema.base import Origin
from palaver.schema.commands import Accepted, Order
from palaver.schema.errors import WireError
from palaver.schema.events import KnownEvent
from palaver.schema.view import Message, State, Stopped

TURN_BACKLOG = 512
"""Events a backend may be ahead of the disk before it has to wait."""


@dataclass(slots=True)
class Asked:
    """A command, and who waits for its answer."""

    command: Order
    origin: Origin | None
    answer: asyncio.Future[Accepted]
    remembers: bool = False
    """Its id is used up even if there is nothing to do."""


@dataclass(slots=True)
class Yielded:
    """An event of the running turn."""

    turn: str
    event: KnownEvent


@dataclass(slots=True)
class Barrier:
    """The turn waits until everything before this is on disk."""

    done: asyncio.Future[None]


@dataclass(slots=True)
class Boundary:
    """The turn is about to call its model: what is queued for it may join now."""

    turn: str
    messages: asyncio.Future[Sequence[Message]]


@dataclass(slots=True)
class Ended:
    """The turn's task is over without having finished the turn."""

    turn: str
    error: WireError | None


@dataclass(slots=True)
class Expired:
    request: str


@dataclass(slots=True)
class ProcessEnded:
    """A background process ended by itself, with or without a turn running."""

    process: str
    exit_code: int | None
    text: str


@dataclass(slots=True)
class Unsettled:
    """A turn that could not be settled (disk full) is to be tried again."""


@dataclass(slots=True)
class Stopping:
    """The directory lets go of the conversation."""

    reason: Stopped
    done: asyncio.Future[None]


Post = Asked | Yielded | Barrier | Boundary | Ended | Expired | ProcessEnded | Unsettled | Stopping


class Inbox:
    def __init__(self) -> None:
        self._posts: list[Post] = []
        self._posted = asyncio.Event()
        self._room = asyncio.Semaphore(TURN_BACKLOG)
        self._awaited = False
        self.closed = False

    def __bool__(self) -> bool:
        return bool(self._posts)

    @property
    def idle(self) -> bool:
        """Whatever was posted is dealt with, and its owner waits for more."""
        return self._awaited and not self._posts and not self.closed

    def post(self, post: Post) -> None:
        if self.closed:
            raise LogUnavailable("This conversation is being closed; try again in a moment.")
        self._posts.append(post)
        self._posted.set()

    async def post_event(self, turn: str, event: KnownEvent) -> None:
        """Waits while the turn is too far ahead of the disk."""
        await self._room.acquire()
        self.post(Yielded(turn, event))

    async def take(self) -> list[Post]:
        """Everything that has gathered, at least one post."""
        self._awaited = True
        # Whoever waits for what was just published goes before the next decision.
        await asyncio.sleep(0)
        await self._posted.wait()
        self._awaited = False
        self._posted.clear()
        posts, self._posts = self._posts, []
        for post in posts:
            if isinstance(post, Yielded):
                self._room.release()
        return posts

    def close(self) -> None:
        """Nothing more comes in, and whoever still waits is told so."""
        self.closed = True
        gone = LogUnavailable("The server is shutting down; try again in a moment.")
        for post in self._posts:
            refuse_post(post, gone)
        self._posts.clear()


@dataclass(slots=True)
class Batch:
    """What one commit is made of, while it is being decided."""

    before: State
    state: State
    events: list[KnownEvent] = field(default_factory=list[KnownEvent])
    answers: list[tuple[Asked, Accepted]] = field(default_factory=list[tuple[Asked, Accepted]])
    boundaries: list[tuple[Boundary, frozenset[str]]] = field(default_factory=list[tuple[Boundary, frozenset[str]]])
    barriers: list[Barrier] = field(default_factory=list[Barrier])
    stopping: list[Stopping] = field(default_factory=list[Stopping])
    urgent: bool = False
    """A stop or a settling, which may use the disk's reserve."""
    unsettled: Stopped | None = None
    """Why the turn that was active before this is to end: something that it did could not be written."""
    rewritten: bool = False
    """The history was changed, not only added to: the stored messages must be replaced as a whole."""

    @property
    def is_unsettled(self) -> bool:
        """Whether that turn is active still. Until it is settled it does nothing more; the next one may begin with its end."""
        before, now = self.before.turn, self.state.turn
        return self.unsettled is not None and before is not None and now is not None and before.id == now.id


Waiter = asyncio.Future[Accepted] | asyncio.Future[None] | asyncio.Future[Sequence[Message]]


def refuse(waiting: Waiter, error: PalaverError) -> None:
    if not waiting.done():
        waiting.set_exception(error)


def is_refused(post: Asked) -> bool:
    """Whoever asked was told no already. One who left without waiting was told nothing."""
    return post.answer.done() and not post.answer.cancelled()


def refuse_post(post: Post, error: PalaverError) -> None:
    """Tell whoever waits for this post, if anybody does, that nothing will come of it."""
    match post:
        case Asked():
            refuse(post.answer, error)
        case Barrier() | Stopping():
            refuse(post.done, error)
        case Boundary():
            refuse(post.messages, error)
        case Yielded() | Ended() | Expired() | ProcessEnded() | Unsettled():
            pass
        case _:
            assert_never(post)

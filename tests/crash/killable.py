"""`python -m tests.crash.killable serve …`: the real server, made to die at a named point, or with a fault built in.

    PALAVER_TEST_KILL=append.before:5    SIGKILL before the fifth append, …
    PALAVER_TEST_FAULT=ack_before_commit a known bug, to show that the rig would notice it

The product has no switches for this: everything is wrapped from outside, here.
"""

import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from palaver.agents.exchange import Exchanges
from palaver.conversation import conversation as owner
from palaver.conversation.claims import Claims
from palaver.conversation.mailbox import Batch
from palaver.feed.feed import Feed
from palaver.log.sqlite.store import SqliteLog
from palaver.schema.events import encode_event
from palaver.tools.toolbox import Toolbox

POINTS = (
    "append.before",
    "append.after",
    "publish.before",
    "publish.after",
    "answer.before",
    "answer.after",
    "tool.before",
    "tool.after",
)
FAULTS = ("ack_before_commit", "publish_before_commit", "never_settle", "run_tools_twice", "forget_claims")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    """Dies when its point has been reached often enough."""

    def __init__(self, wanted: str) -> None:
        self._point, _, times = wanted.partition(":")
        self._left = int(times or 1)

    def reach(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                die()


def around_async(kind: type, method: str, name: str, countdown: Countdown) -> None:
    original: Callable[..., Awaitable[Any]] = getattr(kind, method)

    async def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        countdown.reach(f"{name}.before")
        result = await original(self, *args, **kwargs)
        countdown.reach(f"{name}.after")
        return result

    setattr(kind, method, wrapped)


def around(kind: type, method: str, name: str, countdown: Countdown) -> None:
    original: Callable[..., Any] = getattr(kind, method)

    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        countdown.reach(f"{name}.before")
        result = original(self, *args, **kwargs)
        countdown.reach(f"{name}.after")
        return result

    setattr(kind, method, wrapped)


def build_in(fault: str) -> None:
    conversation = owner.Conversation
    commit, answer = conversation._commit, conversation._answer
    publish, run = Feed.publish, Toolbox.run
    match fault:
        case "ack_before_commit":

            async def acks_first(self: Any, batch: Any) -> None:
                answer(self, batch)
                # Long enough for the bytes to leave: a bug of this kind shows when the crash comes a moment later.
                await self._around.clock.sleep(0.05)
                await commit(self, batch)

            conversation._commit = acks_first  # type: ignore[method-assign]
        case "publish_before_commit":

            async def publishes_first(self: Any, batch: Any) -> None:
                if batch.events:
                    lines = [encode_event(event) for event in batch.events]
                    body = b"\n".join(lines) + b"\n"
                    publish(self._around.feed, self.id, batch.events[0].seq, batch.events[-1].seq, body)
                    await self._around.clock.sleep(0.05)
                await commit(self, batch)

            conversation._commit = publishes_first  # type: ignore[method-assign]
        case "never_settle":

            async def forgets_the_open_turn(self: Any) -> None:
                self._state = replace(self._state, turn=None)
                await self._conclude(Batch(self._state, self._state))

            conversation._take_over = forgets_the_open_turn  # type: ignore[method-assign]
        case "run_tools_twice":

            async def twice(self: Any, *args: Any, **kwargs: Any) -> Any:
                await run(self, *args, **kwargs)
                return await run(self, *args, **kwargs)

            Toolbox.run = twice  # type: ignore[method-assign]
        case "forget_claims":
            setattr(Claims, "_remember", lambda self, request_id, used: None)  # noqa: B010 - mypy knows its real type
            setattr(owner, "claims_of", lambda events: [])  # noqa: B010 - the name is imported there, not defined
        case _:
            raise SystemExit(f"no such fault: {fault}; there are {', '.join(FAULTS)}")


def main() -> None:
    if fault := os.environ.get("PALAVER_TEST_FAULT"):
        build_in(fault)
    if wanted := os.environ.get("PALAVER_TEST_KILL"):
        countdown = Countdown(wanted)
        around_async(SqliteLog, "append", "append", countdown)
        around(Feed, "publish", "publish", countdown)
        around(owner.Conversation, "_answer", "answer", countdown)
        around_async(Toolbox, "run", "tool", countdown)
        around_async(Exchanges, "_deliver", "deliver", countdown)
        around(Exchanges, "answered", "answered", countdown)
    from palaver.cli.main import main as palaver

    palaver()


if __name__ == "__main__":
    main()

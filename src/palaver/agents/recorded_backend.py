"""A backend as the roster hands it out: made when it is first needed, and what last went wrong in it is remembered.

Between the roster and a backend. Every event passes as it is. Must never keep more than one failure an agent, or swallow one.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import cast

from palaver.backends.base import Backend, Capabilities, Turn
from palaver.errors import LogError, PalaverError
from palaver.schema.base import Shown
from palaver.schema.events import KnownEvent, TurnFinished

CRASHED = "The agent's backend crashed. The server's log has the details."


class LastError(Shown):
    """How a turn failed, and when (ms)."""

    message: str
    ts: int


class Watched:
    """Implements `backends.base.Backend`."""

    def __init__(self, name: str, make: Callable[[], Backend]) -> None:
        self.name = name
        self.errors: dict[str, LastError] = {}
        """By agent, the last turn that failed since the server started."""
        self._make = make
        self._made: Backend | None = None

    @property
    def backend(self) -> Backend:
        """Raises an AgentError that says what is missing."""
        if self._made is None:
            self._made = self._make()
        return self._made

    @property
    def made(self) -> Backend | None:
        """None: nobody has needed it yet."""
        return self._made

    @property
    def capabilities(self) -> Capabilities:
        return self.backend.capabilities

    async def run(self, turn: Turn) -> AsyncIterator[KnownEvent]:
        try:
            running = cast(AsyncGenerator[KnownEvent, None], self.backend.run(turn))
            async with aclosing(running) as events:
                async for event in events:
                    if isinstance(event, TurnFinished) and event.outcome == "failed":
                        self._record_failure(turn, event.error.message if event.error else CRASHED)
                    yield event
        except LogError:
            raise  # The disk's failure, not the agent's.
        except PalaverError as failure:
            self._record_failure(turn, failure.message)
            raise
        except Exception:
            self._record_failure(turn, CRASHED)
            raise

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()

    def _record_failure(self, turn: Turn, message: str) -> None:
        self.errors[turn.agent.id] = LastError(message=message, ts=turn.now_ms())

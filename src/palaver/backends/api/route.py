"""Which models a turn may be answered by, in order: the one asked for, then those that take over when it cannot be had.

Made by the loop, one a turn, and walked by its steps. A model that was given up stays given up for the turn: the next step
does not wait for it again. It also counts what the turn has spent on trying again. Each candidate has its own provider, and
a request is built anew for each: what one provider keeps secret in a conversation never reaches another.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from palaver.backends.api.models import window_tokens
from palaver.backends.api.provider import ModelEvent, ModelRequest, Provider
from palaver.errors import AgentError, NotInstalled, NotLoggedIn

MISSING_STATUSES = frozenset({401, 402, 403, 404})
"""The account, the key or the model is not there. Another provider may well have one."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model and who serves it."""

    provider: Provider
    model: str | None
    """As its service calls it; None when only the service knows which it prefers."""
    name: str | None = None
    """As a person named it: with its provider where that was said."""
    window_tokens: int | None = None
    """What its server was set up to read, when somebody said so."""

    async def current_model(self) -> str:
        return self.model or await self.provider.default_model()

    def window_of(self, model: str) -> int | None:
        return self.window_tokens or window_tokens(model)


class Absent:
    """Implements `Provider` for one that cannot be used: it says why when it is asked, and not before."""

    def __init__(self, name: str, why: AgentError) -> None:
        self.identity = f"absent@{name}"
        self._why = why

    async def default_model(self) -> str:
        raise self._why

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        raise self._why
        yield  # A generator, as every provider's.

    async def close(self) -> None:
        pass


Choose = Callable[[str | None], Candidate]
"""Who serves a model, by the name a person gave it; None asks for the preferred one. The same provider is the same object
each time: it holds connections."""


def only(provider: Provider) -> Choose:
    """Everything is asked of one provider, under the name that was given."""
    return lambda model: Candidate(provider, model, model)


@dataclass(slots=True)
class Spent:
    """What trying again has cost a turn so far."""

    retries: int = 0
    waited_s: float = 0.0


class Route:
    def __init__(self, choose: Choose, model: str | None, fallbacks: Sequence[str] = ()) -> None:
        self._choose = choose
        self.names = tuple(dict.fromkeys((model, *fallbacks)))
        self._at = 0
        self._chosen: Candidate | None = None
        self.spent = Spent()

    @property
    def candidate(self) -> Candidate:
        if self._chosen is None:
            self._chosen = self._choose(self.name)
        return self._chosen

    @property
    def name(self) -> str | None:
        """What is asked for now, as a person named it; None for whatever the preferred service prefers."""
        return self.names[self._at]

    def following(self) -> str | None:
        return self.names[self._at + 1] if self._at + 1 < len(self.names) else None

    def give_up(self) -> None:
        """The next one, from now on."""
        self._at += 1
        self._chosen = None


def route_of(choose: Choose, model: str | None, *fallbacks: Sequence[str]) -> Route:
    """The conversation's fallbacks before the agent's."""
    return Route(choose, model, [name for names in fallbacks for name in names])


def cannot_be_had(error: AgentError) -> bool:
    """Whether another model could do better. What was refused for what it says would be refused, or abused, elsewhere."""
    if error.details.get("reason") in ("context_exceeded", "content"):
        return False
    if error.retryable or isinstance(error, NotLoggedIn | NotInstalled):
        return True
    missing = error.details.get("status") in MISSING_STATUSES or error.details.get("reason") == "no_credit"
    return missing or bool(error.details.get("unreachable"))

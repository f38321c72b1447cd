"""One model call of a turn: streamed, collected, tried again when the service fails, handed on when it cannot be had.

Used by the loop. Every attempt is visible: a failure before the first piece as a `turn.status` with its retry, a broken
answer as a message that the next attempt replaces, another model as a `model.switched` before its first attempt. A
cancellation is no failure: it closes the connection and goes on up. What an answer cost is found out after its last word.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from msgspec.structs import replace

from palaver.backends.api.collect import Collector
from palaver.backends.api.prices import PRICES, Prices
from palaver.backends.api.provider import ModelRequest
from palaver.backends.api.retry import RetryPolicy
from palaver.backends.api.route import Candidate, Route, cannot_be_had
from palaver.backends.base import Turn
from palaver.errors import AgentError
from palaver.schema.events import (
    AnswerFinished,
    KnownEvent,
    ModelSwitched,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    TurnStatus,
)
from palaver.schema.view import Activity, Retry

RequestFor = Callable[[Candidate], Awaitable[ModelRequest]]
"""The request as this candidate may see it: its own model, and nobody else's secrets."""


class Step:
    def __init__(
        self,
        turn: Turn,
        route: Route,
        request_for: RequestFor,
        policy: RetryPolicy,
        chance: Callable[[], float],
        prices: Prices = PRICES,
    ) -> None:
        self._turn = turn
        self._route = route
        self._request_for = request_for
        self._policy = policy
        self._chance = chance
        self._prices = prices
        self._replaces: str | None = None
        """The cut answer whose place the next one takes."""
        self.reason = "other"
        self.made_calls = False
        self.spoke = False
        """It said something in plain text."""

    async def events(self) -> AsyncGenerator[KnownEvent, None]:
        while True:
            asked = self._route.name
            try:
                candidate = self._route.candidate
                request = await self._request_for(candidate)
                asked = asked or request.model
                async with aclosing(self._answer(candidate, request)) as events:
                    async for event in events:
                        yield event
                return
            except AgentError as error:
                following = self._route.following()
                if following is None or not cannot_be_had(error):
                    raise
                self._route.give_up()
                yield ModelSwitched(from_model=asked, to_model=following, reason=error.message)

    async def _answer(self, candidate: Candidate, request: ModelRequest) -> AsyncGenerator[KnownEvent, None]:
        """By this candidate, in as many attempts as it gets."""
        attempt = 0
        while True:
            attempt += 1
            answer = self._collector(candidate, request)
            if self._is_news():
                yield TurnStatus(status="thinking")
            try:
                async with aclosing(self._attempt(answer, candidate, request)) as events:
                    async for event in events:
                        yield event
            except AgentError as error:
                if answer.has_something:
                    self._replaces = answer.message
                    for event in answer.cut():
                        yield await self._with_price(event, answer, candidate, request.model)
                pause_s = self._pause_s(error, attempt)
                if pause_s is None:
                    raise
                yield self._retrying(attempt, pause_s, error)
                await self._turn.sleep(pause_s)
                continue
            for event in answer.finish():
                yield await self._with_price(event, answer, candidate, request.model)
            self.reason, self.made_calls, self.spoke = answer.reason, answer.made_calls, answer.spoke
            return

    async def _attempt(
        self, answer: Collector, candidate: Candidate, request: ModelRequest
    ) -> AsyncGenerator[KnownEvent, None]:
        activity: Activity = "thinking"
        priced = False
        async with aclosing(candidate.provider.stream(request)) as pieces:
            async for piece in pieces:
                for event in answer.take(piece):
                    now = _activity(event, activity)
                    if now != activity:
                        activity = now
                        yield TurnStatus(status=now)
                    yield event
                if answer.started and not priced:
                    # The first word is out: from here on there is time.
                    priced = True
                    self._prices.begin(candidate.provider.identity, answer.model)

    async def _with_price(self, event: KnownEvent, answer: Collector, candidate: Candidate, asked: str) -> KnownEvent:
        if not isinstance(event, AnswerFinished) or event.usage is None:
            return event
        # Services name what they served more exactly than the price list does, or less.
        for model in dict.fromkeys((answer.model, asked)):
            cost_usd = await self._prices.cost_usd(
                candidate.provider.identity, model, event.usage, answer.written_tokens
            )
            if cost_usd is not None:
                return replace(event, cost_usd=cost_usd)
        return event

    def _pause_s(self, error: AgentError, attempt: int) -> float | None:
        """Before the next attempt; None gives up. What the turn has left counts too."""
        pause_s = self._policy.pause_s(error, attempt, self._chance())
        spent = self._route.spent
        if pause_s is None or self._policy.is_spent(spent.retries, spent.waited_s, pause_s):
            return None
        spent.retries += 1
        spent.waited_s += pause_s
        return pause_s

    def _is_news(self) -> bool:
        """A turn begins thinking. Saying so again would be a commit that the first word has to wait for."""
        active = self._turn.state.turn
        return active is None or active.activity != "thinking" or active.retry is not None

    def _collector(self, candidate: Candidate, request: ModelRequest) -> Collector:
        return Collector(
            message=self._turn.new_id(),
            model=request.model,
            provider=candidate.provider.identity,
            new_id=self._turn.new_id,
            now_ms=self._turn.now_ms,
            replaces=self._replaces,
            unposted=self._turn.agent.strict_inbox,
        )

    def _retrying(self, attempt: int, pause_s: float, error: AgentError) -> TurnStatus:
        retry = Retry(attempt=attempt + 1, of=self._policy.attempts_for(error), after_s=pause_s, reason=error.message)
        return TurnStatus(status="thinking", retry=retry)


def _activity(event: KnownEvent, current: Activity) -> Activity:
    """What the agent seems to be doing, from what it says."""
    match event:
        case TextDelta():
            return "working"
        case ThinkingDelta():
            return "thinking"
        case ToolInputDelta():
            return "calling_tool"
        case _:
            return current

"""One model call of a turn: streamed, collected, and tried again when the service fails.

Used by the loop. Every attempt is visible: a failure before the first piece as a `turn.status` with its retry, a broken
answer as a message that the next attempt replaces. A cancellation is no failure: it closes the connection and goes on up.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from palaver.backends.api.collect import Collector
from palaver.backends.api.provider import ModelRequest, Provider
from palaver.backends.api.retry import RetryPolicy
from palaver.backends.base import Turn
from palaver.errors import AgentError
from palaver.schema.events import KnownEvent, TextDelta, ThinkingDelta, ToolInputDelta, TurnStatus
from palaver.schema.view import Activity, Retry


class Step:
    def __init__(
        self, turn: Turn, provider: Provider, request: ModelRequest, policy: RetryPolicy, chance: Callable[[], float]
    ) -> None:
        self._turn = turn
        self._provider = provider
        self._request = request
        self._policy = policy
        self._chance = chance
        self.reason = "other"
        self.made_calls = False

    async def events(self) -> AsyncGenerator[KnownEvent, None]:
        replaces: str | None = None
        attempt = 0
        while True:
            attempt += 1
            answer = self._collector(replaces)
            if self._is_news():
                yield TurnStatus(status="thinking")
            try:
                async with aclosing(self._attempt(answer)) as events:
                    async for event in events:
                        yield event
            except AgentError as error:
                if answer.started:
                    replaces = answer.message
                    for event in answer.cut():
                        yield event
                pause_s = self._policy.pause_s(error, attempt, self._chance())
                if pause_s is None:
                    raise
                yield self._retrying(attempt, pause_s, error)
                await self._turn.sleep(pause_s)
                continue
            for event in answer.finish():
                yield event
            self.reason, self.made_calls = answer.reason, answer.made_calls
            return

    async def _attempt(self, answer: Collector) -> AsyncGenerator[KnownEvent, None]:
        activity: Activity = "thinking"
        async with aclosing(self._provider.stream(self._request)) as pieces:
            async for piece in pieces:
                for event in answer.take(piece):
                    now = _activity(event, activity)
                    if now != activity:
                        activity = now
                        yield TurnStatus(status=now)
                    yield event

    def _is_news(self) -> bool:
        """A turn begins thinking. Saying so again would be a commit that the first word has to wait for."""
        active = self._turn.state.turn
        return active is None or active.activity != "thinking" or active.retry is not None

    def _collector(self, replaces: str | None) -> Collector:
        return Collector(
            message=self._turn.new_id(),
            model=self._request.model,
            provider=self._provider.identity,
            new_id=self._turn.new_id,
            now_ms=self._turn.now_ms,
            replaces=replaces,
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

"""The limit of what a conversation may cost: checked before every model call, and asked about when it is reached.

Used by the loop. The limit is the conversation's own (`spend_limit_usd`), else its agent's. A yes raises the
conversation's limit by as much again and is on record; a no ends the turn. What a model does not report a price for
cannot be counted, so such a conversation is never stopped here.
"""

from collections.abc import AsyncGenerator

from palaver.backends.base import Turn
from palaver.core.state import find_request
from palaver.schema.events import ConversationUpdated, KnownEvent, RequestOpened

LEAST_RAISE_USD = 1.0
"""What a yes allows when the limit was smaller: a limit of nothing must still be possible to lift."""


class Spending:
    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.declined: str | None = None
        """A person wants no more spent; why the turn ends, in words."""

    async def check(self) -> AsyncGenerator[KnownEvent, None]:
        """Waits for a person when the limit is reached. Afterwards `declined` says whether the turn must end."""
        limit = self._limit_usd()
        spent = self._total_usd()
        if limit is None or spent < limit:
            return
        raised = spent + max(limit, LEAST_RAISE_USD)
        answer = await self._turn.request(
            RequestOpened(
                request=self._find_earlier_question() or self._turn.new_id(),
                kind="approval",
                agent=self._turn.agent.id,
                title=f"Go on beyond the spending limit of {dollars(limit)}?",
                preview=f"This conversation has cost {dollars(spent)}. A yes lets it go on up to {dollars(raised)}.",
                risk="It costs money.",
            )
        )
        if answer.status == "answered" and answer.verdict == "allow":
            yield ConversationUpdated(params={"spend_limit_usd": round(raised, 6)})
        else:
            self.declined = f"Stopped at the spending limit of {dollars(limit)}; {dollars(spent)} were spent."

    def _limit_usd(self) -> float | None:
        chosen = self._turn.params.get("spend_limit_usd")
        return float(chosen) if isinstance(chosen, int | float) else self._turn.agent.spend_limit_usd

    def _total_usd(self) -> float:
        state = self._turn.state
        return state.cost_usd + (state.turn.cost_usd if state.turn else 0.0)

    def _find_earlier_question(self) -> str | None:
        """The question whose answer, given after a restart, began this turn: it is not asked twice."""
        state = self._turn.state
        request = state.turn.trigger.request if state.turn else None
        known = find_request(state, request) if request else None
        return known.id if known and known.kind == "approval" and known.call is None else None


def dollars(amount: float) -> str:
    return f"${amount:.2f}" if amount >= 0.01 or amount == 0 else f"${amount:.4f}"

"""Before each model call: what the model is told, and what to do when that outgrows its window.

Used by the loop, one `Preparing` a turn over one `Preparation` a backend. `recall` looks for what may help with the person's
message; `events` makes the next request fit and yields what was done for it; `system` and `messages_for` are then the
request's; `measured` is the context meter, for after the answer: the first word of a short conversation waits for no commit
of ours. Compression is recorded and then read back, never kept here, so the prompt is made from the log alone.

Must never: change what a person said, ask a person, run a tool, or swallow a cancellation.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from msgspec.structs import replace

from palaver.backends.api.prices import PRICES
from palaver.backends.api.provider import ModelRequest, Provider, Stopped, TextPiece, UsageSeen
from palaver.backends.base import Turn
from palaver.context.compression import (
    Budget,
    Compressing,
    Material,
    Taken,
    budget_of,
    shorter,
    summary_tokens,
    too_large,
)
from palaver.context.instructions import Instructions, instructions_section
from palaver.context.knowledge import BUDGET_TOKENS, recall
from palaver.context.linearize import linearize
from palaver.context.meter import Fixed, breakdown_of, noticeable
from palaver.context.notes import Notes
from palaver.context.prepare import Place, system_prompt
from palaver.context.prompt import PromptMessage, Written
from palaver.context.recent_results import Memory, Remembered
from palaver.context.reduce import Redact, horizons_of, reduce_history, same_text
from palaver.context.summary import SUMMARY_PROMPT, summary_messages
from palaver.context.tokens import Weight, last_counted, weigh
from palaver.errors import AgentError, ProviderRefused, TimedOut
from palaver.journal import Journal
from palaver.schema.base import Usage
from palaver.schema.events import ContextCompressed, ContextMeasured, KnowledgeRecalled, KnownEvent, TurnStatus
from palaver.schema.view import COMPRESSING, Knowledge, Message, TextBlock
from palaver.tools.base import ToolSpec

SUMMARY_S = 120.0
"""A summary that takes longer is given up: the person is waiting for an answer, not for notes."""
SUMMARY_THINKING_TOKENS = 2_000
"""Room for a model that thinks before it writes."""
KNOWLEDGE_SHARE = 16
"""What is recalled is at most this part of a window."""
TIGHTENED_SHARE = 0.6
"""Of a request that a service found too long, how much the next one may be."""
TIGHTENINGS = 2
"""Then the service's word stands."""
UNSURE = 1.2
"""Without a count by the provider, how far an estimate may be beyond a window before it is not even tried."""

logger = Journal(__name__)


@dataclass(frozen=True, slots=True)
class Preparation:
    """What all turns of a backend share."""

    system: str
    """The operating system, by its everyday name."""
    redact: Redact = same_text
    instructions: Instructions = field(default_factory=Instructions)
    notes: Notes = field(default_factory=Notes)
    remembered: Remembered = field(default_factory=Remembered)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The request that is to be made."""

    provider: Provider
    model: str
    window_tokens: int | None
    """What the model can read; None when nobody knows. `context_tokens_cap` is applied here."""
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None


class Preparing:
    def __init__(self, turn: Turn, preparation: Preparation) -> None:
        self._turn = turn
        self._preparation = preparation
        self._instructions: str | None = None
        self._recalled: KnowledgeRecalled | None = None
        self._tightened_to: int | None = None
        self._tightenings = 0
        self._used_tokens = 0
        self._fixed = Fixed()
        self._wanted: Wanted | None = None
        self.system = ""

    # -- knowledge

    async def recall(self, window_tokens: int | None = None) -> KnowledgeRecalled | None:
        """For a person's message that begins a turn: what fits it, to be yielded. It counts from now on."""
        turn = self._turn
        params = {**turn.agent.params, **turn.params}
        if not turn.agent.knowledge or params.get("knowledge") is False:
            return None
        asked = _trigger_messages(turn)
        if not asked or any(message.knowledge is not None for message in asked):
            return None
        window = self._cap(window_tokens)
        self._recalled = await recall(
            "\n".join(_text(message) for message in asked),
            message=asked[-1].id,
            project=turn.project,
            search=turn.search,
            notes=self._preparation.notes,
            now_ms=turn.now_ms(),
            budget_tokens=min(BUDGET_TOKENS, window // KNOWLEDGE_SHARE) if window else BUDGET_TOKENS,
            redact=self._preparation.redact,
        )
        return self._recalled

    # -- the request

    async def events(self, wanted: Wanted) -> AsyncGenerator[KnownEvent, None]:
        """Compresses if it must. Raises an AgentError when what a person said is too large by itself."""
        await self._tell(wanted)
        window = self._cap(wanted.window_tokens)
        weight = self._weigh(self._messages_to_show(), wanted.model)
        budget = self._budget(window, wanted.max_tokens, weight)
        self._used_tokens = weight.tokens
        if budget is not None and weight.tokens > budget.limit_tokens:
            async with aclosing(self._compress(wanted, budget, window, weight.factor)) as events:
                async for event in events:
                    yield event
            # The prompt is made from what is on record.
            await self._turn.committed()

    async def messages_for(self, provider: str) -> tuple[PromptMessage, ...]:
        """The conversation as this provider may be shown it."""
        state = self._turn.state
        return await linearize(
            self._history(),
            provider=provider,
            load=self._turn.load_blob,
            quoting=self._turn.quoting,
            compressions=state.compressions,
            plan=state.plan,
            redact=self._preparation.redact,
            arranged=self._memory().arranged,
        )

    @property
    def written(self) -> Written:
        """What these messages came to the last time they were sent."""
        return self._memory().written

    def tighten(self) -> bool:
        """The service found the request too long. True: prepare again, it will be smaller."""
        if self._tightenings >= TIGHTENINGS:
            return False
        self._tightenings += 1
        self._tightened_to = max(1, int(self._used_tokens * TIGHTENED_SHARE))
        return True

    def measured(self) -> ContextMeasured | None:
        """How full the window is now, when that is news."""
        wanted = self._wanted
        if wanted is None:
            return None
        window, shown = self._cap(wanted.window_tokens), self._messages_to_show()
        weight = self._weigh(shown, wanted.model)
        if not noticeable(self._turn.state.context, weight.tokens, window):
            return None
        return ContextMeasured(
            used_tokens=weight.tokens,
            window_tokens=window,
            estimated=not weight.counted,
            message_count=len(shown),
            breakdown=breakdown_of(shown, self._fixed, weight.tokens),
        )

    # -- how much it is

    async def _tell(self, wanted: Wanted) -> None:
        turn, preparation = self._turn, self._preparation
        if self._instructions is None:
            self._instructions = instructions_section(await preparation.instructions.of(turn.project), turn.quoting)
        today = datetime.fromtimestamp(turn.now_ms() / 1000, UTC).date().isoformat()
        place = Place(turn.project, preparation.system, today, has_tools=bool(wanted.tools))
        self.system = system_prompt(turn.agent, place, self._instructions)
        self._fixed = self._memory().weigh_fixed((self.system, self._instructions, wanted.tools))
        self._wanted = wanted

    def _cap(self, window_tokens: int | None) -> int | None:
        cap = {**self._turn.agent.params, **self._turn.params}.get("context_tokens_cap")
        caps = [tokens for tokens in (cap, window_tokens) if isinstance(tokens, int) and tokens > 0]
        return min(caps) if caps else None

    def _weigh(self, shown: Sequence[Message], model: str) -> Weight:
        state = self._turn.state
        counted = last_counted(state.messages, state.compressions, model)
        return weigh(shown, self._fixed.tokens, counted, self._memory().weights)

    def _memory(self) -> Memory:
        state = self._turn.state
        return self._preparation.remembered.of(state.conversation, horizons_of(state.compressions))

    def _messages_to_show(self) -> Sequence[Message]:
        state = self._turn.state
        return reduce_history(
            self._history(), horizons_of(state.compressions), plan=state.plan, redact=self._preparation.redact
        )

    def _budget(self, window: int | None, max_tokens: int | None, weight: Weight) -> Budget | None:
        if self._tightened_to is not None:
            return Budget(self._tightened_to, weight.tokens)
        if window is None:
            return None
        budget = budget_of(window, int(self._fixed.tokens * weight.factor), max_tokens)
        return budget if weight.counted else Budget(budget.limit_tokens, int(budget.most_tokens * UNSURE))

    def _history(self) -> Sequence[Message]:
        """As committed, with what was recalled a moment ago."""
        history, recalled = self._turn.history, self._recalled
        if recalled is None:
            return history
        for place in range(len(history) - 1, -1, -1):
            if history[place].id == recalled.message:
                if history[place].knowledge is not None:
                    break
                known = Knowledge(sources=recalled.sources, tokens=recalled.tokens, text=recalled.text)
                return (*history[:place], replace(history[place], knowledge=known), *history[place + 1 :])
        return history

    # -- making it fit

    async def _compress(
        self, wanted: Wanted, budget: Budget, window: int | None, factor: float
    ) -> AsyncGenerator[KnownEvent, None]:
        yield TurnStatus(status="working", detail=COMPRESSING)
        state = self._turn.state
        # In threads: a long history takes a tenth of a second, in which others stream.
        work = await asyncio.to_thread(
            Compressing,
            self._history(),
            state.compressions,
            budget,
            seq=state.seq,
            fixed_tokens=int(self._fixed.tokens * factor),
            factor=factor,
            plan=state.plan,
            redact=self._preparation.redact,
        )
        least = await asyncio.to_thread(work.least_tokens)
        if least > budget.most_tokens:
            raise ProviderRefused(
                too_large(least, window or budget.most_tokens, wanted.model), reason="context_exceeded"
            )
        await asyncio.to_thread(work.without_model)
        material = work.material()
        usage = Usage()
        if material is not None:
            summary, trouble, usage = await self._summary(wanted, material, budget)
            if summary:
                work.add_summary(material, summary)
            elif trouble:
                yield TurnStatus(
                    status="working", detail=f"The summary failed, so older steps are left out instead: {trouble}"
                )
        await asyncio.to_thread(work.by_force)
        self._used_tokens = work.used_tokens
        events = [_compression_event(taken) for taken in work.taken]
        if events and usage != Usage():
            cost_usd = await PRICES.cost_usd(wanted.provider.identity, wanted.model, usage)
            events[-1] = replace(events[-1], usage=usage, cost_usd=cost_usd)
        for event in events:
            yield event

    async def _summary(self, wanted: Wanted, material: Material, budget: Budget) -> tuple[str, str, Usage]:
        """The notes, or what went wrong, and what it took. A cancellation closes the connection and goes on up."""
        limit = summary_tokens(budget)
        redact = self._preparation.redact
        request = ModelRequest(
            model=wanted.model,
            system=SUMMARY_PROMPT,
            messages=summary_messages(
                material, max(limit, budget.limit_tokens - 2 * limit), self._turn.quoting, redact
            ),
            max_tokens=limit + SUMMARY_THINKING_TOKENS,
        )
        pieces: list[str] = []
        usage = Usage()
        refused = False
        try:
            async with asyncio.timeout(SUMMARY_S), aclosing(wanted.provider.stream(request)) as answer:
                async for piece in answer:
                    match piece:
                        case TextPiece():
                            pieces.append(piece.text)
                        case UsageSeen():
                            usage = piece.usage
                        case Stopped():
                            refused = piece.reason == "refusal"
                        case _:
                            pass
        except TimeoutError:
            return "", TimedOut("it took too long").message, usage
        except AgentError as error:
            logger.warning("no summary of older steps", conversation=self._turn.conversation, reason=error.message)
            return "", error.message, usage
        text = redact("".join(pieces)).strip()
        if refused or not text:
            return "", "the model wrote none.", usage
        return shorter(text, 2 * limit), "", usage


def _compression_event(taken: Taken) -> ContextCompressed:
    return ContextCompressed(
        stage=taken.stage,
        strength=taken.strength,
        before_tokens=taken.before_tokens,
        after_tokens=taken.after_tokens,
        horizon=taken.horizon,
        summary=taken.summary,
    )


def _trigger_messages(turn: Turn) -> list[Message]:
    """The person's messages that began this turn."""
    active = turn.state.turn
    if active is None or active.trigger.kind != "message":
        return []
    return [
        message
        for message in turn.history[-64:]
        if message.role == "user" and not message.hidden and message.turn == turn.id
    ]


def _text(message: Message) -> str:
    return "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock))

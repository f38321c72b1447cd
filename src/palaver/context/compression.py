"""How far a history must be compressed to fit: the stages in their order, each weighed, and no further than needed.

Used before a model call that would outgrow its window. Pure: it says what to record (`Taken`); the log keeps that, and
`reduce` shows it from then on, so the same log gives the same prompt and a second look changes nothing. A horizon moves in
large steps, down to well below the limit, so that a prompt keeps its beginning for many turns. A stage without an effect
is not taken. The one thing this cannot do is the summary: it says what should be summarized, and is told the result.
"""

from collections.abc import Sequence

from msgspec import Struct

from palaver.context.reduce import Horizons, Redact, horizons_of, reduce_history, same_text
from palaver.context.tokens import message_tokens, text_tokens
from palaver.schema.base import Strength
from palaver.schema.view import Compression, CompressionStage, Message, Plan

RESERVE_TOKENS = 8_192
"""Kept free for the answer where nobody said how long it may be."""
RESERVE_SHARE = 4
"""The reserve is at most this part of a window."""
MESSAGES_SHARE = 0.3
"""What messages always get, however much the tools and the system prompt take. The service has the last word then."""
TARGET_SHARE = 0.8
"""Compressed down to here, so that a fifth of the room is free before it happens again."""
KEEP_SHARE = 0.3
"""The newest part of a history, which keeps its results whole."""
KEEP_HARD_SHARE = 0.4
"""The newest part that keeps its steps when older ones leave: enough for the work at hand."""
KEEP_LAST_SHARE = 0.15
LEAST_GAIN_SHARE = 0.01
"""A stage that saves less does not pay for the prompt cache that it costs."""
LEAST_MATERIAL_TOKENS = 200
"""Less is not worth a summary."""


class Budget(Struct, frozen=True):
    limit_tokens: int
    """Of the whole request. Beyond it, history is compressed."""
    most_tokens: int
    """Beyond this it makes no sense to ask."""

    @property
    def target_tokens(self) -> int:
        return int(self.limit_tokens * TARGET_SHARE)


def budget_of(window_tokens: int, fixed_tokens: int, max_tokens: int | None = None) -> Budget:
    """`fixed_tokens` are the system prompt and the tools, which nothing here can shorten."""
    reserve = min(max_tokens or RESERVE_TOKENS, window_tokens // RESERVE_SHARE)
    least = fixed_tokens + int(window_tokens * MESSAGES_SHARE)
    return Budget(max(window_tokens - reserve, least), max(window_tokens, least))


class Taken(Struct, frozen=True):
    """A stage that is to be recorded."""

    stage: CompressionStage
    horizon: int
    strength: Strength
    before_tokens: int
    after_tokens: int
    summary: str | None = None


class Material(Struct, frozen=True):
    """What a summary is to be made of, and the horizon it will stand at."""

    horizon: int
    messages: Sequence[Message]
    earlier: str
    """The summary that the new one takes the place of."""


class Compressing:
    """One pass over one history. `taken` grows stage by stage."""

    def __init__(
        self,
        history: Sequence[Message],
        compressions: Sequence[Compression],
        budget: Budget,
        *,
        seq: int,
        fixed_tokens: int = 0,
        factor: float = 1.0,
        plan: Plan | None = None,
        redact: Redact = same_text,
    ) -> None:
        """`seq` is where the log stands; `factor` corrects estimates; `fixed_tokens` are corrected already."""
        self._history = history
        self._compressions = list(compressions)
        self._budget = budget
        self._seq = seq
        self._fixed_tokens = fixed_tokens
        self._factor = factor
        self._plan = plan
        self._redact = redact
        self.taken: list[Taken] = []
        self.used_tokens = self._weigh(self._compressions)

    @property
    def fits(self) -> bool:
        return self.used_tokens <= self._budget.limit_tokens

    @property
    def relieved(self) -> bool:
        return self.used_tokens <= self._budget.target_tokens

    def least_tokens(self) -> int:
        """What is left when everything that may go is gone."""
        last = self._history[-1].seq if self._history else 0
        stages: tuple[tuple[CompressionStage, int], ...] = (
            ("deduplicate", self._seq + 1),
            ("shorten", self._seq + 1),
            ("repair", self._seq + 1),
            ("limit", last),
        )
        least = self._weigh([*self._compressions, *(self._compression(*stage, "high") for stage in stages)])
        # Of a tiny history the line that says what is missing would be the larger part.
        return min(least, self.used_tokens)

    # -- the stages

    def without_model(self) -> None:
        """Repeated files, long results, long arguments, old steps; stops as soon as it fits."""
        stages: tuple[tuple[CompressionStage, Strength, float], ...] = (
            ("deduplicate", "low", 0.0),
            ("shorten", "low", KEEP_SHARE),
            ("repair", "medium", KEEP_SHARE),
            ("limit", "medium", KEEP_HARD_SHARE),
        )
        for stage, strength, keep_share in stages:
            if self.relieved:
                return
            self._try(stage, strength, self._horizon(keep_share))

    def material(self) -> Material | None:
        """What a summary should be made of, if one is needed and worth it."""
        if self.relieved:
            return None
        horizon = self._horizon(KEEP_HARD_SHARE)
        known = horizons_of(self._compressions)
        if horizon <= known.gone:
            return None
        before = [message for message in self._messages_to_show() if message.seq < horizon]
        going = sum(message_tokens(message) for message in before if message.role in ("assistant", "event"))
        return Material(horizon, before, known.summary) if going >= LEAST_MATERIAL_TOKENS else None

    def add_summary(self, material: Material, summary: str) -> None:
        self._try("summarize", "high", material.horizon, summary)

    def by_force(self) -> None:
        """Without a summary, or when even that was not enough: nearer and nearer to the newest message."""
        last = self._history[-1].seq if self._history else 0
        stages: tuple[tuple[CompressionStage, Strength, int], ...] = (
            ("limit", "high", self._horizon(KEEP_HARD_SHARE)),
            ("shorten", "low", last),
            ("repair", "medium", last),
            ("shorten", "high", last),
            ("limit", "high", self._horizon(KEEP_LAST_SHARE)),
            ("shorten", "low", self._seq + 1),
            ("repair", "medium", self._seq + 1),
            ("shorten", "high", self._seq + 1),
            ("limit", "high", last),
        )
        for stage, strength, horizon in stages:
            if self.fits:
                return
            self._try(stage, strength, horizon)

    # -- weighing

    def _try(self, stage: CompressionStage, strength: Strength, horizon: int, summary: str | None = None) -> None:
        before = self.used_tokens
        compression = self._compression(stage, horizon, strength, summary)
        after = self._weigh([*self._compressions, compression])
        if before - after < max(1, before * LEAST_GAIN_SHARE):
            return
        self._compressions.append(compression)
        self.used_tokens = after
        self.taken.append(Taken(stage, horizon, strength, before, after, summary))

    def _compression(
        self, stage: CompressionStage, horizon: int, strength: Strength, summary: str | None = None
    ) -> Compression:
        """As it will be once it is recorded, after all that is known now."""
        return Compression(
            stage=stage,
            horizon=horizon,
            strength=strength,
            ts=0,
            seq=self._seq + 1,
            before_tokens=0,
            after_tokens=0,
            summary=summary,
        )

    def _messages_to_show(self) -> Sequence[Message]:
        return self._reduce(horizons_of(self._compressions))

    def _reduce(self, horizons: Horizons) -> Sequence[Message]:
        return reduce_history(self._history, horizons, plan=self._plan, redact=self._redact)

    def _weigh(self, compressions: Sequence[Compression]) -> int:
        messages = self._reduce(horizons_of(compressions))
        estimated = sum(message_tokens(message) for message in messages if message.status != "superseded")
        return self._fixed_tokens + int(estimated * self._factor)

    def _horizon(self, keep_share: float) -> int:
        """Where the newest part begins that is no larger than its share of the limit. Everything, with no share."""
        if not keep_share or not self._history:
            return self._seq + 1
        room = (self._budget.limit_tokens - self._fixed_tokens) * keep_share / self._factor
        horizon = self._history[-1].seq
        for message in reversed(self._messages_to_show()):
            room -= message_tokens(message) if message.status != "superseded" else 0
            if room < 0:
                break
            horizon = min(horizon, message.seq)
        return horizon


def too_large(used_tokens: int, window_tokens: int, model: str) -> str:
    """What a person is told when nothing that may be shortened is left."""
    return (
        f"What was said here comes to about {used_tokens:,} tokens, more than the {window_tokens:,} that {model} is given to "
        "read, and a person's own messages are never shortened. Branch from an earlier message, choose a model with a larger "
        "window, or raise `context_tokens_cap`."
    )


def summary_tokens(budget: Budget) -> int:
    """How long a summary may be: a small part of what it makes room in."""
    return max(200, min(2_000, budget.limit_tokens // 8))


def shorter(text: str, limit_tokens: int) -> str:
    """A text's beginning and end within a number of tokens, roughly. For material that is already free of secrets."""
    tokens = text_tokens(text)
    if tokens <= limit_tokens:
        return text
    side = max(1, int(len(text) * limit_tokens / tokens / 2))
    return f"{text[:side]}\n[…]\n{text[-side:]}"

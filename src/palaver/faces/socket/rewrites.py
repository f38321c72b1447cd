"""Messages taken out of the transcript or changed in it, and the log's events as if they had never been: pure.

Used by `replay` when it reads a log from its beginning. The log keeps what was removed, truncated or edited, while a replay
shows what is left; the news of such a change is told live alone. `REWRITING` names the events that change what was said
before; a client whose cursor lies before one of them begins anew.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from palaver.core.fold.blocks import of_content
from palaver.schema.content import Content, plain_text
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    CitationAdded,
    Event,
    ExchangeReturned,
    MessageAdded,
    MessageEdited,
    MessageRemoved,
    MessageTruncated,
    QueueAdded,
    QueueEdited,
    QueueRemoved,
    RequestOpened,
    RequestResolved,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolInputDelta,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)

REWRITING = (MessageEdited, MessageRemoved, MessageTruncated)
NOTED = (*REWRITING, MessageAdded, AnswerStarted, QueueAdded, QueueRemoved, RequestOpened, RequestResolved)
"""Events that `rewrites_of` looks at; all of them are rare next to deltas."""

_Part = (
    TextDelta
    | ThinkingDelta
    | ToolInputDelta
    | TextFinished
    | ThinkingFinished
    | ToolCalled
    | AnswerFinished
    | CitationAdded
)
"""Events of an answer that name its message."""


def is_rewriting(event: Event) -> bool:
    """Whether a message that clients were shown goes or changes. A turn itself only removes answers that said nothing."""
    return isinstance(event, REWRITING) and not (isinstance(event, MessageRemoved) and event.turn is not None)


@dataclass(frozen=True, slots=True)
class Rewrites:
    last: int = 0
    """The number of the last such event; 0: there is none."""
    gone: frozenset[str] = frozenset()
    """Messages."""
    edited: Mapping[str, Content] = field(default_factory=dict[str, Content])
    items: frozenset[str] = frozenset()
    """Queued messages that went with what they became, or were over when all around them went."""
    requests: frozenset[str] = frozenset()
    spans: tuple[tuple[int, int], ...] = ()
    """Truncated stretches of the log: from the first message that went to the truncation."""

    def is_cut(self, seq: int) -> bool:
        return any(first <= seq <= last for first, last in self.spans)


def rewrites_of(events: Iterable[Event]) -> Rewrites:
    """What the `NOTED` events of a log, from its beginning, leave of it."""
    noted = _Noted()
    for event in events:
        noted.add(event)
    return noted.rewrites()


@dataclass(slots=True)
class _Noted:
    messages: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Of the transcript as it stands, each with the number of the event that began it."""
    last: int = 0
    gone: set[str] = field(default_factory=set[str])
    edited: dict[str, Content] = field(default_factory=dict[str, Content])
    spans: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    replaced: dict[str, str] = field(default_factory=dict[str, str])
    """Answers that were taken back, by the one that took their place."""
    delivered: dict[str, str] = field(default_factory=dict[str, str])
    """Messages by the queue item they waited as."""
    opened: dict[str, int] = field(default_factory=dict[str, int])
    """Queue items and requests that are open."""
    gone_with_span: set[str] = field(default_factory=set[str])
    closed: dict[str, int] = field(default_factory=dict[str, int])
    """Queue items and requests that are over, by the number at which they began."""

    def add(self, event: Event) -> None:
        match event:
            case MessageAdded():
                self.messages.append((event.message, event.seq))
                if event.item:
                    self.delivered[event.item] = event.message
            case AnswerStarted():
                self.messages.append((event.message, event.seq))
                if event.replaces:
                    self.replaced[event.message] = event.replaces
            case MessageRemoved():
                self.messages = [known for known in self.messages if known[0] != event.message]
                self.gone |= {event.message} if is_rewriting(event) else set()
            case MessageTruncated():
                self._truncate(event)
            case MessageEdited():
                self.edited[event.message] = event.content
            case QueueAdded():
                self.opened[event.item] = event.seq
            case QueueRemoved():
                self._close(event.item)
            case RequestOpened():
                self.opened.setdefault(event.request, event.seq)
            case RequestResolved():
                self._close(event.request)
            case _:
                pass
        self.last = event.seq if is_rewriting(event) else self.last

    def _close(self, name: str) -> None:
        if name in self.opened:
            self.closed[name] = self.opened.pop(name)

    def _truncate(self, event: MessageTruncated) -> None:
        going = self.messages[event.index :]
        # From the beginning where nothing is left: also what was said of no message goes.
        first = going[0][1] if event.index and going else 0
        if going or not event.index:
            self.spans.append((first, event.seq))
            self.gone_with_span |= {name for name, began in self.closed.items() if began >= first}
        self.gone |= {message for message, _ in going}
        del self.messages[event.index :]

    def rewrites(self) -> Rewrites:
        for message in list(self.gone):
            while (attempt := self.replaced.get(message)) is not None:
                self.gone.add(attempt)
                message = attempt
        items = {item for item, message in self.delivered.items() if message in self.gone}
        return Rewrites(
            last=self.last,
            gone=frozenset(self.gone),
            edited=self.edited,
            items=frozenset(items | self.gone_with_span),
            requests=frozenset(self.gone_with_span),
            spans=tuple(self.spans),
        )


class Rewritten:
    """The events of a log from its beginning as they would be if the messages that went had never been."""

    def __init__(self, rewrites: Rewrites) -> None:
        self._rewrites = rewrites
        self._dropped_calls: set[str] = set()
        self._answers: set[str] = set()
        """Of the active run, but for those that it took back itself."""
        self._trigger: tuple[str, ...] = ()
        self._to_say: set[str] = set()
        """Edited answers whose new text was not said yet."""

    def event(self, event: Event) -> Event | None:
        """The event, as it is or changed; None where it belongs to what is gone."""
        known = self._rewrites
        if event.seq > known.last:
            return event
        if isinstance(event, _Part):
            return self._part(event)
        match event:
            case MessageAdded():
                return self._message(event)
            case AnswerStarted():
                self._answers.discard(event.replaces or "")
                self._answers.add(event.message)
                self._to_say |= {event.message} & known.edited.keys()
                return None if event.message in known.gone else event
            case MessageRemoved():
                self._answers -= set() if is_rewriting(event) else {event.message}
                return event
            case TurnStarted():
                self._answers, self._trigger = set(), event.trigger.messages
                return event
            case TurnFinished() | TurnInterrupted():
                return event if self._is_run_left(event.seq) else None
            case QueueAdded() | QueueEdited() | QueueRemoved():
                return None if event.item in known.items else event
            case RequestOpened():
                is_gone = event.call in self._dropped_calls or event.request in known.requests
                return None if is_gone else event
            case ExchangeReturned():
                return None if known.is_cut(event.seq) else event
            case _:
                return event

    def _message(self, event: MessageAdded) -> Event | None:
        if event.role == "assistant" and event.turn is not None:
            self._answers.add(event.message)
        if event.message in self._rewrites.gone:
            return None
        content = self._rewrites.edited.get(event.message)
        if content is None:
            return event
        blocks = of_content(content) if event.role == "assistant" else None
        return replace(event, content=content, blocks=blocks)

    def _part(self, event: _Part) -> Event | None:
        is_gone = event.message in self._rewrites.gone
        content = self._rewrites.edited.get(event.message)
        if isinstance(event, ToolCalled | ToolInputDelta):
            changed = is_gone or content is not None
            (self._dropped_calls.add if changed else self._dropped_calls.discard)(event.call)
        if is_gone or content is None:
            return None if is_gone else event
        if event.message not in self._to_say:
            return None
        self._to_say.discard(event.message)
        return TextFinished(
            seq=event.seq,
            id=event.id,
            ts=event.ts,
            conversation=event.conversation,
            turn=event.turn,
            exchange=event.exchange,
            message=event.message,
            block=0,
            text=plain_text(content),
        )

    def _is_run_left(self, seq: int) -> bool:
        """A run ends as long as any answer of it is left; one that had none, as long as what it was begun with is."""
        if self._answers:
            return not self._rewrites.gone.issuperset(self._answers)
        is_untriggered = bool(self._trigger) and self._rewrites.gone.issuperset(self._trigger)
        return not is_untriggered and not self._rewrites.is_cut(seq)

"""Conversations to measure with: written straight to a log, as an owner would have left them."""

import asyncio
from dataclasses import dataclass

from palaver.clock import Ids, SystemClock
from palaver.conversation.index_rows import listing_of
from palaver.conversation.recovery.load import snapshot_of
from palaver.core.fold.evolve import fold
from palaver.log.base import Append, Document, EventLog
from palaver.schema.content import TextPart
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ConversationCreated,
    KnownEvent,
    MessageAdded,
    TextDelta,
    TextFinished,
    TurnFinished,
    TurnStarted,
    encode_event,
)
from palaver.schema.view import State, Trigger

CLOCK = SystemClock()
IDS = Ids(CLOCK)


@dataclass(slots=True)
class Writer:
    """Numbers events and folds them, without the rest of an owner."""

    conversation: str
    state: State

    @classmethod
    def fresh(cls, conversation: str) -> "Writer":
        return cls(conversation, State())

    def number(self, events: list[KnownEvent]) -> list[KnownEvent]:
        from msgspec.structs import replace

        now = CLOCK.now_ms()
        numbered: list[KnownEvent] = [
            replace(event, seq=self.state.seq + place, id=IDS.new(), ts=now, conversation=self.conversation)
            for place, event in enumerate(events, 1)
        ]
        self.state = fold(self.state, numbered)
        return numbered

    async def append(self, log: EventLog, events: list[KnownEvent], documents: list[Document] | None = None) -> None:
        after = self.state.seq
        numbered = self.number(events)
        await log.append(
            Append(
                self.conversation,
                after,
                [encode_event(event) for event in numbered],
                listing_of(self.state),
                documents or (),
            )
        )


def turn_events(question: str, answer: str, tokens: int) -> list[KnownEvent]:
    """A message, and an answer that streamed in so many deltas."""
    turn, asked, message = IDS.new(), IDS.new(), IDS.new()
    size = max(1, len(answer) // max(1, tokens))
    pieces = [answer[at : at + size] for at in range(0, len(answer), size)]
    return [
        MessageAdded(turn=turn, message=asked, content=(TextPart(text=question),)),
        TurnStarted(turn=turn, agent="default", backend="api", trigger=Trigger(messages=(asked,))),
        AnswerStarted(turn=turn, message=message),
        *(TextDelta(turn=turn, message=message, block=0, text=piece) for piece in pieces),
        TextFinished(turn=turn, message=message, block=0, text=answer),
        AnswerFinished(turn=turn, message=message, finish_reason="stop"),
        TurnFinished(turn=turn, outcome="completed"),
    ]


async def long_conversation(log: EventLog, conversation: str, events: int) -> Writer:
    """A conversation of about so many events, with its snapshot, as after a long day."""
    writer = Writer.fresh(conversation)
    await writer.append(log, [ConversationCreated()])
    answer = "Tokens arrive four characters at a time, more or less. " * 10
    while writer.state.seq < events:
        await writer.append(log, turn_events("And then?", answer, 100))
    await log.save_snapshot(conversation, snapshot_of(writer.state, 0))
    await log.compact(conversation, writer.state.seq)
    return writer


async def many_conversations(log: EventLog, count: int) -> None:
    async def one(number: int) -> None:
        writer = Writer.fresh(f"conversation-{number}")
        await writer.append(log, [ConversationCreated(), *turn_events(f"Question {number}", "An answer.", 2)])

    for start in range(0, count, 500):
        await asyncio.gather(*(one(number) for number in range(start, min(count, start + 500))))

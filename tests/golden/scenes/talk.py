"""Plain talk: titles, parameters, drafts, two turns of text and thinking, an end."""

from palaver.schema.base import BlobRef, Usage
from palaver.schema.content import ImagePart, ImageUrl, TextPart
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    CitationAdded,
    ConversationDeleted,
    ConversationUpdated,
    DraftCleared,
    DraftSet,
    MessageAdded,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    TurnFinished,
    TurnStarted,
    TurnStatus,
)
from palaver.schema.view import Trigger
from tests.golden.record import BROWSER, Record


def talk() -> Record:
    log = Record("talk")
    log.created()
    log.check()
    log.add(
        ConversationUpdated(title="Roses", title_source="auto"),
        ConversationUpdated(params={"temperature": 0.5, "mode": "ask", "note": "kept"}),
        ConversationUpdated(params={"mode": "plan", "note": None}),
        DraftSet(text="Dear ga"),
    )
    log.check()
    log.add(DraftSet(text="Dear gardener, 🌹"), DraftCleared())
    _first_turn(log)
    _second_turn(log)
    log.add(
        ConversationUpdated(title="Roses and 薔薇", title_source="user"),
        ConversationUpdated(agent="gardener"),
        ConversationUpdated(archived=True),
    )
    log.check()
    log.add(ConversationUpdated(archived=False), ConversationDeleted(origin=BROWSER))
    return log


def _first_turn(log: Record) -> None:
    log.add(
        MessageAdded(
            message="m1",
            turn="t1",
            content=(
                TextPart(text="What is this? 🌹"),
                ImagePart(image_url=ImageUrl(url="/api/blobs/rose", detail="low")),
                TextPart(text="A long letter …", blob=BlobRef(id="letter", size=99_000, mime="text/plain")),
            ),
            origin=BROWSER,
            client_request_id="send-1",
            body_hash="0f" * 16,
        ),
        TurnStarted(
            turn="t1",
            agent="default",
            backend="scripted",
            model="demo-1",
            mode="plan",
            steerable=True,
            trigger=Trigger(messages=("m1",)),
            origin=BROWSER,
        ),
        TurnStatus(status="model_loading", detail="demo-1"),
    )
    log.check()
    log.add(
        TurnStatus(status="thinking"),
        AnswerStarted(message="m2"),
        ThinkingDelta(message="m2", block=0, text="A red "),
        ThinkingDelta(message="m2", block=0, text="flower 🌹"),
    )
    log.check()
    log.add(
        ThinkingFinished(
            message="m2", block=0, text="A red flower 🌹", signature="c2ln", provider={"index": 0}, duration_ms=400
        ),
        TextDelta(message="m2", block=1, text="A r"),
        TextDelta(message="m2", block=1, text="ose"),
        CitationAdded(message="m2", block=1, citation={"url": "https://example.org/rose", "title": None}),
    )
    log.check()
    log.add(
        TextDelta(message="m2", block=1, text="."),
        TextFinished(message="m2", block=1, text="A rose."),
        AnswerFinished(
            message="m2",
            finish_reason="stop",
            usage=Usage(input_tokens=12, output_tokens=7, reasoning_tokens=3),
            model="demo-1-20261001",
            provider={"response_id": "r-1"},
        ),
        TurnFinished(
            outcome="completed", usage=Usage(input_tokens=12, output_tokens=7, reasoning_tokens=3), cost_usd=0.1
        ),
    )
    log.check()


def _second_turn(log: Record) -> None:
    log.asked("m3", "And its name?", "t2")
    log.add(
        AnswerStarted(message="m4", model="demo-2"),
        ThinkingFinished(message="m4", block=0, text="", redacted=True, provider={"data": "ZW5j"}),
        TextDelta(message="m4", block=1, text="Rosa"),
        # A citation may come before the first word of its block.
        CitationAdded(message="m4", block=2, citation="[1]"),
        TextFinished(message="m4", block=1, text="Rosa", blob=BlobRef(id="whole", size=70_000)),
        TextDelta(message="m4", block=2, text=" gallica"),
        TextFinished(message="m4", block=2, text=" gallica"),
        AnswerFinished(message="m4", finish_reason="stop", usage=Usage(input_tokens=30, output_tokens=2)),
        TurnFinished(
            outcome="task",
            usage=Usage(input_tokens=30, output_tokens=2, cached_tokens=12),
            cost_usd=0.2,
            duration_ms=1_900,
            summary="Named the rose.",
        ),
    )
    log.check()

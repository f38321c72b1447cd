"""The queue: adding, editing, holding, moving, priority, delivery at a boundary and as a turn; commands that wait."""

from palaver.schema.content import ImagePart, ImageUrl, TextPart, as_content
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ConversationUpdated,
    MessageAdded,
    MessageRemoved,
    MessageTruncated,
    QueueAdded,
    QueueEdited,
    QueueRemoved,
    TextDelta,
    TextFinished,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from palaver.schema.view import Parent, Trigger
from tests.golden.record import BROWSER, Record


def queue() -> Record:
    log = Record("queue")
    log.created()
    log.asked("m1", "Dig", "t1")
    log.add(
        QueueAdded(item="a", content=as_content("a"), origin=BROWSER, client_request_id="send-a", body_hash="0a" * 16),
        QueueAdded(item="b", content=as_content("b"), merge=True, agent="digger", mode="plan"),
        QueueAdded(item="c", content=as_content("c"), merge=True),
        QueueAdded(item="p", content=as_content("p"), priority=True),
        QueueAdded(item="q", content=as_content("q"), priority=True, delivery="boundary"),
    )
    log.check()
    log.add(
        QueueEdited(
            item="a",
            version=2,
            content=(TextPart(text="a, better"), ImagePart(image_url=ImageUrl(url="/api/uploads/spade.png"))),
        ),
        QueueEdited(item="b", version=2, held=True),
        # By hand before a priority item; the next priority item still goes behind the last of its kind.
        QueueEdited(item="c", version=2, before="p"),
        QueueAdded(item="r", content=as_content("r"), priority=True),
    )
    log.check()
    log.add(
        QueueEdited(item="r", version=2, before=""),
        QueueEdited(item="a", version=3, priority=True),
        QueueEdited(item="q", version=2, priority=False),
        QueueEdited(item="p", version=2, before="gone"),
        QueueEdited(item="gone", version=2, held=True),
    )
    log.check()
    log.add(
        QueueEdited(item="b", version=3, held=False),
        QueueRemoved(item="r", reason="cancelled"),
        QueueRemoved(item="r", reason="cancelled"),
        # A boundary: delivered into the running turn.
        QueueRemoved(item="a", reason="delivered"),
        MessageAdded(
            message="a", item="a", content=as_content("a, better"), origin=BROWSER, client_request_id="send-a"
        ),
        AnswerStarted(message="m2"),
        TextFinished(message="m2", block=0, text="Dug."),
        AnswerFinished(message="m2", finish_reason="stop"),
        TurnFinished(outcome="completed"),
    )
    log.check()
    log.add(
        QueueRemoved(item="c", reason="delivered", turn="t2"),
        MessageAdded(message="c", item="c", content=as_content("c"), turn="t2"),
        TurnStarted(turn="t2", agent="default", backend="scripted", trigger=Trigger(messages=("c",))),
    )
    return log


def paused() -> Record:
    """A stop that held the queue: what waited stays, what is sent afterwards runs alone, then all are let go."""
    log = Record("paused")
    log.created()
    log.asked("m1", "Dig", "t1")
    log.add(
        QueueAdded(item="a", content=as_content("a"), merge=True, origin=BROWSER),
        QueueAdded(item="b", content=as_content("b"), merge=True, origin=BROWSER),
        QueueAdded(item="c", content=(), command={"type": "regenerate"}),
        QueueEdited(item="b", version=2, held=True),
        AnswerStarted(message="m2"),
        TextDelta(message="m2", block=0, text="Di"),
    )
    log.check()
    log.add(
        QueueEdited(item="a", version=2, held=True, origin=BROWSER, client_request_id="stop", body_hash="0c" * 16),
        QueueEdited(item="c", version=2, held=True, origin=BROWSER, client_request_id="stop", body_hash="0c" * 16),
        TextFinished(message="m2", block=0, text="Di", interrupted=True),
        AnswerFinished(message="m2", finish_reason="interrupted", interrupted=True),
        TurnInterrupted(reason="user", origin=BROWSER, client_request_id="stop", body_hash="0c" * 16),
    )
    log.check()
    log.asked("m3", "Wait, plant first", "t2")
    log.add(TurnFinished(outcome="completed"))
    log.check()
    log.add(
        QueueEdited(item="a", version=3, held=False),
        QueueEdited(item="b", version=3, held=False),
        QueueEdited(item="c", version=3, held=False),
        QueueRemoved(item="a", reason="delivered", turn="t3"),
        MessageAdded(message="a", item="a", content=as_content("a"), turn="t3", origin=BROWSER),
        QueueRemoved(item="b", reason="delivered", turn="t3"),
        MessageAdded(message="b", item="b", content=as_content("b"), turn="t3", origin=BROWSER),
        TurnStarted(turn="t3", agent="default", backend="scripted", trigger=Trigger(messages=("a", "b"))),
    )
    return log


def patient() -> Record:
    """Commands that waited: carried out in order, one left out with its reason, and what a branch brought along."""
    log = Record("patient")
    log.created()
    log.asked("m1", "Dig", "t1")
    log.add(
        QueueAdded(
            item="a",
            content=(),
            command={"type": "truncate_messages", "from_index": 1, "flat": True},
            origin=BROWSER,
            client_request_id="cut",
            body_hash="0b" * 16,
        ),
        QueueAdded(item="b", content=(), priority=True, command={"type": "remove_message", "message": "m2"}),
        QueueAdded(item="c", content=(), command={"type": "retry_from", "index": 0, "content": "Dig deeper"}),
        QueueEdited(item="c", version=2, held=True),
    )
    log.check()
    log.add(
        AnswerStarted(message="m2"),
        TextFinished(message="m2", block=0, text="Dug."),
        AnswerFinished(message="m2", finish_reason="stop"),
        TurnFinished(outcome="completed"),
        QueueRemoved(item="b", reason="delivered"),
        MessageRemoved(message="m2", index=1),
        QueueRemoved(item="a", reason="cancelled", why="`from_index` lies between 0 and 1."),
        MessageAdded(
            message="n1", role="event", event_kind="notice", content=as_content("“Truncate …” was left out."), turn=None
        ),
    )
    log.check()
    log.add(
        MessageTruncated(index=0),
        ConversationUpdated(
            project="orchard", params={"mode": "plan"}, parent=Parent(conversation="p", kind="branch", root="r")
        ),
        MessageAdded(message="m3", content=as_content("Plant")),
        ConversationUpdated(title="Planting (branch)", title_source="auto"),
        QueueEdited(item="c", version=3, held=False),
        QueueRemoved(item="c", reason="delivered"),
        MessageTruncated(index=0),
        MessageAdded(message="m4", content=as_content("Dig deeper"), turn="t2", client_request_id="cut"),
        TurnStarted(turn="t2", agent="default", backend="scripted", trigger=Trigger(messages=("m4",))),
    )
    return log

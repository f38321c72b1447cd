"""What a fold must live with: events of other releases, fields it cannot read, and events that come too late or twice."""

from palaver.schema.content import as_content
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    CitationAdded,
    ExchangeReturned,
    MessageEdited,
    ProcessFinished,
    QueueRemoved,
    RequestOpened,
    RequestResolved,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
    TurnFinished,
    TurnInterrupted,
    TurnStatus,
)
from palaver.schema.view import ToolError
from tests.golden.record import Record


def unknown() -> Record:
    log = Record("unknown")
    log.created()
    log.raw(type="weather.changed", sky="grey", turn=7)
    log.check()
    log.raw(type="draft.set", text="known, with more", mood="new", origin={"face": "native", "planet": "Mars"})
    log.check()
    # Known types that cannot be read: only `seq` moves on.
    log.raw(type="draft.set", text=7)
    log.raw(type="draft.set")
    log.raw(type="message.added", message="m0", role="gnome", content=[{"type": "text", "text": "hi"}])
    log.raw(type="message.added", message="m0", content=[{"type": "smell", "of": "roses"}])
    log.raw(type="queue.added", item="a", content="not a list of parts")
    log.raw(type="conversation.updated", title=None, archived="yes")
    log.raw(type="conversation.updated", title="Read", params={"deep": {"null": None}}, turn=12)
    log.raw(type="draft.set", text="null is not a number", client_request_id=3)
    log.check()
    log.raw(type="conversation.updated", title="Read", title_source=None, params={"deep": {"null": None}, "gone": None})
    log.raw(
        type="message.added",
        message="m1",
        content=[{"type": "text", "text": "hi", "smell": "roses", "blob": None}],
        origin={"face": "native", "client": "tab-1", "user": None},
        turn="t1",
    )
    log.raw(
        type="turn.started",
        turn="t1",
        agent="default",
        backend="scripted",
        trigger={"messages": ["m1"], "because": "new"},
        wings=2,
    )
    log.check()
    log.raw(type="answer.finished", message="gone", finish_reason="stop", usage={"input_tokens": 0, "output_tokens": 5})
    log.raw(type="turn.finished", turn="t1", outcome="completed", usage={"dream_tokens": 3}, cost_usd=1)
    return log


def misplaced() -> Record:
    """Fragments after the end, second results, wrong kinds, strangers: each is skipped, none does harm."""
    log = Record("misplaced")
    log.created()
    log.add(
        TurnFinished(outcome="failed", turn="t0"),
        TurnStatus(status="working", turn="t0"),
        ToolFinished(call="nobody", ok=True),
        RequestResolved(request="nobody", status="answered", verdict="allow"),
        QueueRemoved(item="nobody", reason="cancelled"),
        ProcessFinished(process="nobody"),
        ExchangeReturned(exchange="nobody", status="complete"),
        TextDelta(message="nobody", block=0, text="?"),
        MessageEdited(message="nobody", content=as_content("?")),
    )
    log.check()
    log.asked("m1", "Go", "t1")
    log.add(
        AnswerStarted(message="m2"),
        TextDelta(message="m2", block=0, text="Done"),
        TextFinished(message="m2", block=0, text="Done."),
        TextDelta(message="m2", block=0, text=" late"),
        ThinkingDelta(message="m2", block=0, text="wrong kind"),
        ThinkingFinished(message="m2", block=1, text="thought"),
        ThinkingDelta(message="m2", block=1, text=" late"),
        CitationAdded(message="m2", block=1, citation="wrong kind"),
    )
    log.check()
    log.add(
        ToolCalled(message="m2", block=2, call="call-a", name="shell", input={"command": "one"}),
        ToolInputDelta(message="m2", block=2, call="call-a", name="shell", text="late"),
        TextDelta(message="m2", block=2, text="over a call"),
        TextFinished(message="m2", block=2, text="over a call"),
        ThinkingFinished(message="m2", block=2, text="over a call"),
        CitationAdded(message="m2", block=2, citation="over a call"),
        ToolStarted(call="call-a", grant="rule"),
        ToolCalled(message="m2", block=2, call="call-a", name="shell", input={"command": "two"}),
        RequestOpened(request="q-a", kind="question", call="call-a"),
    )
    log.check()
    log.add(
        ToolFinished(call="call-a", ok=True, output="first"),
        ToolFinished(call="call-a", ok=False, error=ToolError(code="tool_error", message="second")),
        ToolOutputDelta(call="call-a", text="late"),
        ToolStarted(call="call-a", grant="again"),
        RequestOpened(request="q-b", kind="approval", call="call-a"),
    )
    log.check()
    log.add(
        # Text finished over arguments that never became a call, and a call over text.
        ToolInputDelta(message="m2", block=3, call="call-b", name="shell", text="{"),
        ToolInputDelta(message="m2", block=3, call="call-c", name="shell", text="of another call"),
        TextFinished(message="m2", block=3, text="not a call"),
        TextDelta(message="m2", block=4, text="not text"),
        ToolCalled(message="m2", block=4, call="call-d", name="shell"),
        TextDelta(message="m2", block=5, text="half"),
        ThinkingFinished(message="m2", block=5, text="thought after all"),
        AnswerFinished(message="m2", finish_reason="stop"),
        TurnFinished(outcome="completed", turn="t0"),
        TurnInterrupted(reason="user", turn="t9"),
    )
    log.check()
    log.add(TurnFinished(outcome="completed"), TurnInterrupted(reason="user", turn="t1"))
    return log

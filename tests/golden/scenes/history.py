"""History rewritten: messages edited, removed, cut off, brought in from elsewhere; and a view that holds only the tail."""

from msgspec.structs import replace

from palaver.core.fold.evolve import fold
from palaver.schema.base import BlobRef
from palaver.schema.content import ImagePart, ImageUrl, as_content
from palaver.schema.errors import WireError
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ConversationCreated,
    MessageAdded,
    MessageEdited,
    MessageRemoved,
    MessageTruncated,
    TextFinished,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    decode_event,
)
from palaver.schema.view import (
    ImageBlock,
    Parent,
    State,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    ToolError,
    Trigger,
)
from tests.golden.record import BROWSER, Record


def _answer(log: Record, message: str, text: str) -> None:
    log.add(
        AnswerStarted(message=message),
        TextFinished(message=message, block=0, text=text),
        AnswerFinished(message=message, finish_reason="stop"),
    )


def rewritten() -> Record:
    log = Record("rewritten")
    log.created(title="By hand")
    log.asked("m1", "Plant", "t1")
    log.add(
        AnswerStarted(message="m2"),
        ToolCalled(message="m2", block=0, call="call-a", name="shell", input={"command": "plant"}),
        ToolStarted(call="call-a", grant="rule"),
        ToolFinished(call="call-a", ok=True, output="planted"),
        AnswerFinished(message="m2", finish_reason="tool_use"),
    )
    _answer(log, "m3", "Planted.")
    log.add(TurnFinished(outcome="completed"))
    log.add(
        MessageAdded(
            message="m4",
            role="event",
            hidden=True,
            event_kind="process_completed",
            content=as_content("exit 0"),
            data={"process": "p1"},
        ),
        MessageAdded(message="m5", role="summary", content=as_content("So far: planted.")),
    )
    log.check()
    log.add(
        MessageEdited(
            message="m1", content=(*as_content("Plant 🌱"), ImagePart(image_url=ImageUrl(url="/api/blobs/bed")))
        ),
        MessageEdited(message="gone", content=as_content("nobody")),
        # The call and its result leave with the message that held them.
        MessageRemoved(message="m2", index=1),
        MessageRemoved(message="gone", index=1),
    )
    log.check()
    log.add(
        MessageTruncated(index=1),
        TurnStarted(
            turn="t2", agent="default", backend="scripted", trigger=Trigger(kind="regenerate", messages=("m1",))
        ),
    )
    _answer(log, "m6", "Planted again.")
    log.add(TurnFinished(outcome="completed"))
    log.check()
    log.add(MessageTruncated(index=9), MessageTruncated(index=0))
    return log


def withdrawn() -> Record:
    """The end of a turn that failed, or completed a task, is taken away, and with it the status it left."""
    log = Record("withdrawn")
    refused = WireError(code="provider", message="The model service refused.")
    log.created()
    log.asked("m1", "Plant", "t1")
    _answer(log, "m2", "Half")
    log.add(TurnFinished(outcome="failed", error=refused))
    log.check()
    log.add(MessageRemoved(message="m1", index=0))
    log.check()
    log.add(MessageRemoved(message="m2", index=0))
    log.check()
    log.asked("m3", "Water", "t2")
    _answer(log, "m4", "Done.")
    log.add(TurnFinished(outcome="task", summary="Watered."))
    log.check()
    log.add(MessageTruncated(index=2))
    log.check()
    log.add(MessageTruncated(index=1))
    log.check()
    # A turn that left no message of its own failed at the message it had to answer.
    again = Trigger(kind="regenerate", messages=("m3",))
    log.add(MessageAdded(message="m5", role="event", event_kind="notice", content=as_content("Note.")))
    log.add(
        TurnStarted(turn="t3", agent="default", backend="scripted", trigger=again),
        TurnFinished(outcome="failed", error=refused),
        MessageRemoved(message="m5", index=1),
    )
    log.check()
    log.add(MessageTruncated(index=0))
    return log


def branched() -> Record:
    """A branch is filled with messages from elsewhere, blocks and all."""
    log = Record("branched")
    log.add(
        ConversationCreated(
            agent="gardener",
            title="A branch",
            params={"temperature": 1, "nothing": None},
            parent=Parent(conversation="rewritten", kind="branch", root="rewritten", message="m3"),
            source="branch",
        ),
        MessageAdded(
            message="m1", blocks=(TextBlock(index=0, text="Plant"), ImageBlock(index=1, url="/api/blobs/bed"))
        ),
        MessageAdded(
            message="m2",
            role="assistant",
            agent="gardener",
            model="demo-1",
            blocks=(
                ThinkingBlock(index=0, text="Hm", signature="c2ln", provider={"a": [1, 2.5, None]}),
                TextBlock(index=1, text="Pla", status="interrupted", citations=("[1]", {"n": 1})),
                ToolBlock(
                    index=2,
                    call="call-a",
                    name="shell",
                    status="interrupted",
                    input={"command": "plant"},
                    output="half",
                    error=ToolError(code="tool_interrupted", message="Interrupted, effect unknown."),
                    blob=BlobRef(id="out", size=9),
                    started_at=1,
                    finished_at=2,
                ),
            ),
        ),
        MessageAdded(message="m3", role="system", content=as_content("Be brief.")),
        MessageAdded(message="m4", role="plan", blocks=(), data={"plan": True}),
    )
    log.check()
    log.asked("m5", "Go on", "t1")
    # The restored call had its result long ago: an old id used anew means the newest call.
    log.add(
        AnswerStarted(message="m6"),
        ToolCalled(message="m6", block=0, call="call-a", name="shell", input={"command": "water"}),
        ToolFinished(call="call-a", ok=True, output="wet"),
        ToolFinished(call="call-a", ok=True, output="wetter"),
    )
    return log


def paged() -> Record:
    """Begins at a snapshot that holds only the last of its messages; earlier ones are counted, not there."""
    whole = Record("paged")
    whole.created()
    for number in range(1, 7):
        whole.asked(f"q{number}", f"Question {number}", f"t{number}")
        _answer(whole, f"a{number}", f"Answer {number}")
        whole.add(TurnFinished(outcome="completed"))
    state = fold(State(), (decode_event(line) for line in whole.lines))
    kept = 4
    tail = replace(state, messages=state.messages[-kept:], offset=len(state.messages) - kept)
    log = Record("paged", start=tail)
    log.check()
    log.asked("q7", "Question 7", "t7")
    _answer(log, "a7", "Answer 7")
    log.add(TurnFinished(outcome="completed"))
    log.check()
    log.add(
        MessageEdited(message="q1", content=as_content("not in this page")),
        MessageRemoved(message="a2", index=3),
        MessageRemoved(message="a6", index=10),
        MessageEdited(message="q6", content=as_content("in this page"), origin=BROWSER),
    )
    log.check()
    log.add(MessageTruncated(index=9))
    log.check()
    log.add(MessageTruncated(index=3))
    log.check()
    log.asked("q8", "Question 8", "t8")
    _answer(log, "a8", "Answer 8")
    log.add(TurnFinished(outcome="completed"))
    log.check()
    log.add(MessageRemoved(message="q1", index=0), MessageRemoved(message="q8", index=2))
    return log

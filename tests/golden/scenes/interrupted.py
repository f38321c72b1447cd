"""Turns cut short: text, thinking and calls closed where they stood, answers tried again, turns that failed."""

from palaver.schema.base import Usage
from palaver.schema.errors import WireError
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    MessageRemoved,
    ModelSwitched,
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
from palaver.schema.view import Retry, ToolError
from tests.golden.record import BROWSER, Record

UNKNOWN = ToolError(code="tool_interrupted", message="Interrupted, effect unknown.")
NOTHING = ToolError(code="tool_interrupted", message="Interrupted before it started; nothing was done.")


def interrupted() -> Record:
    log = Record("interrupted")
    log.created()
    log.asked("m1", "Mow", "t1")
    log.add(
        AnswerStarted(message="m2"),
        ThinkingDelta(message="m2", block=0, text="Where is "),
        ThinkingDelta(message="m2", block=0, text="the mo"),
        TextDelta(message="m2", block=1, text="I will m"),
        ToolCalled(message="m2", block=2, call="call-a", name="shell", input={"command": "mow"}),
        ToolStarted(call="call-a", grant="rule"),
        ToolOutputDelta(call="call-a", text="brr"),
        ToolCalled(message="m2", block=3, call="call-b", name="shell", input={"command": "rake"}),
        RequestOpened(request="q-b", kind="approval", call="call-b", tool="shell"),
        ToolCalled(message="m2", block=4, call="call-c", name="read", input={"path": "x"}),
        ToolInputDelta(message="m2", block=5, call="call-d", name="write", text='{"path": "ha'),
    )
    log.check()
    log.add(
        ThinkingFinished(message="m2", block=0, text="Where is the mo", interrupted=True),
        TextFinished(message="m2", block=1, text="I will m", interrupted=True),
        AnswerFinished(message="m2", finish_reason="interrupted", interrupted=True),
        ToolFinished(call="call-a", ok=False, output="brr", effect="unknown", error=UNKNOWN),
        ToolFinished(call="call-b", ok=False, effect="none", error=NOTHING),
        ToolFinished(call="call-c", ok=False, effect="none", error=NOTHING),
        ToolFinished(call="call-d", ok=False, effect="none", error=NOTHING),
        RequestResolved(request="q-b", status="cancelled"),
        TurnInterrupted(reason="user", usage=Usage(output_tokens=9), audio_end_ms=1_200, origin=BROWSER),
    )
    log.check()
    # Nothing was said yet: the empty answer leaves the view.
    log.asked("m3", "Stop at once", "t2")
    log.add(AnswerStarted(message="m4"))
    log.check()
    log.add(
        AnswerFinished(message="m4", finish_reason="interrupted", interrupted=True),
        MessageRemoved(message="m4", index=3),
        TurnInterrupted(reason="user", origin=BROWSER),
    )
    log.check()
    log.asked("m5", "Try", "t3")
    log.add(
        TurnFinished(
            outcome="failed",
            error=WireError(code="provider_refused", message="Check the key.", details={"status": 401}),
        )
    )
    return log


def retried() -> Record:
    """A cut attempt gives way to the next: its words stay to be seen, its calls are off, its cost counts."""
    log = Record("retried")
    log.created()
    log.asked("m1", "Sow", "t1")
    log.add(
        AnswerStarted(message="m2"),
        ThinkingDelta(message="m2", block=0, text="Hm"),
        TextFinished(message="m2", block=1, text="First I"),
        TextDelta(message="m2", block=2, text="then"),
        ToolInputDelta(message="m2", block=3, call="call-a", name="shell", text='{"comm'),
        ToolCalled(message="m2", block=4, call="call-b", name="read", input={"path": "seeds"}),
        TurnStatus(status="working", retry=Retry(attempt=2, of=5, after_s=1.5, reason="overloaded")),
    )
    log.check()
    log.add(
        AnswerStarted(message="m3", replaces="m2"),
        # The end of the cut attempt comes late and does not bring it back.
        AnswerFinished(message="m2", finish_reason="error", interrupted=True, usage=Usage(input_tokens=5)),
        TextDelta(message="m2", block=2, text=" late"),
        TurnStatus(status="thinking"),
        TextDelta(message="m3", block=0, text="First"),
    )
    log.check()
    log.add(
        TextFinished(message="m3", block=0, text="First", interrupted=True),
        AnswerFinished(message="m3", finish_reason="error", interrupted=True, usage=Usage(input_tokens=5)),
        ModelSwitched(to_model="demo-0", from_model="demo-1", reason="overloaded"),
        AnswerStarted(message="m4", replaces="m3"),
        TextFinished(message="m4", block=0, text="First, the seeds."),
        AnswerFinished(message="m4", finish_reason="stop", usage=Usage(input_tokens=5, output_tokens=4)),
    )
    log.check()
    log.add(
        TurnFinished(outcome="completed", usage=Usage(input_tokens=15, output_tokens=4)),
        ModelSwitched(to_model="demo-9", reason="at rest: changes nothing"),
    )
    return log

"""Tool calls: streamed arguments, parallel calls, blocks out of order, every kind of result, output beyond what is kept."""

from palaver.schema.base import BlobRef, Usage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    FilesChanged,
    ProcessFinished,
    ProcessStarted,
    TextDelta,
    TextFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
    TurnFinished,
    TurnStatus,
)
from palaver.schema.view import FileChange, ToolError
from tests.golden.record import Record


def tools() -> Record:
    log = Record("tools")
    log.created()
    log.asked("m1", "Tidy the shed", "t1")
    log.add(
        AnswerStarted(message="m2"),
        # Block 2 arrives before block 1, and ends before it.
        TextDelta(message="m2", block=0, text="Looking"),
        ToolInputDelta(message="m2", block=2, call="call-b", name="shell", text='{"command":'),
        ToolInputDelta(message="m2", block=1, call="call-a", name="read"),
        ToolInputDelta(message="m2", block=2, call="call-b", name="shell", text='"ls"}'),
        ToolInputDelta(message="m2", block=1, call="call-a", name="read", text='{"path":"shed"}'),
    )
    log.check()
    log.add(
        ToolCalled(message="m2", block=2, call="call-b", name="shell", input={"command": "ls"}, provider={"id": "0"}),
        TextFinished(message="m2", block=0, text="Looking"),
        ToolCalled(message="m2", block=1, call="call-a", name="read", input={"path": "shed"}, provider={"id": "0"}),
        ToolCalled(message="m2", block=3, call="call-c", name="edit", input={"path": "a", "old": "x", "new": "y"}),
        ToolCalled(message="m2", block=4, call="call-d", name="shell", input=["not", "an", "object"], exchange="x-1"),
        AnswerFinished(message="m2", finish_reason="tool_use", usage=Usage(input_tokens=100, output_tokens=40)),
        TurnStatus(status="calling_tool", detail="shell"),
    )
    log.check()
    log.add(
        ToolStarted(call="call-b", grant="rule", sandbox="bubblewrap"),
        ToolStarted(call="call-a", grant="reads_only"),
        ToolOutputDelta(call="call-b", text="rake\n"),
        ToolOutputDelta(call="call-b", text="no such hose\n", stream="stderr"),
        ToolFinished(call="call-a", ok=True, output="1 shed", total_lines=1, total_bytes=6),
        ToolOutputDelta(call="call-b", text="spade 🪏\n"),
    )
    log.check()
    log.add(
        ToolFinished(
            call="call-b",
            ok=False,
            output="rake\nno such hose\nspade 🪏\n",
            error=ToolError(code="tool_error", message="exit code 2"),
            exit_code=2,
            truncated=True,
            blob=BlobRef(id="all-of-it", size=3_000_000, mime="text/plain"),
            total_lines=90_000,
            total_bytes=3_000_000,
            duration_ms=40,
        ),
        ToolFinished(call="call-c", ok=False, effect="none", error=ToolError(code="tool_denied", message="Not now.")),
        ToolFinished(
            call="call-d", ok=False, effect="none", error=ToolError(code="invalid_arguments", message="An object.")
        ),
        FilesChanged(
            files=(
                FileChange(path="shed/a", kind="modified", additions=1, deletions=1, diff="-x\n+y\n"),
                FileChange(path="shed/b", kind="created", additions=3),
            )
        ),
        FilesChanged(
            files=(
                FileChange(path="shed/a", kind="deleted", deletions=9, blob=BlobRef(id="diff", size=20_000)),
                FileChange(path="shed/c", kind="renamed"),
            ),
            truncated_count=4,
        ),
        ProcessStarted(process="p1", command="watch", call="call-b", pid=4711),
        ProcessStarted(process="p2", command="make"),
        ProcessFinished(process="p2", exit_code=0),
    )
    log.check()
    log.add(TurnFinished(outcome="yielded", usage=Usage(input_tokens=100, output_tokens=40)))
    # The next turn forgets the processes that are over, not those that run.
    log.asked("m3", "Go on", "t2")
    log.add(ProcessFinished(process="p1"), TurnFinished(outcome="limited"))
    return log


def output() -> Record:
    """What is kept of live output is counted in code points: 🪴 is one here and two UTF-16 units in a browser."""
    log = Record("output")
    log.created()
    log.asked("m1", "Count the pots", "t1")
    log.add(
        AnswerStarted(message="m2"),
        ToolCalled(message="m2", block=0, call="call-a", name="shell", input={"command": "count"}),
        ToolStarted(call="call-a", grant="rule"),
    )
    for number in range(4):
        log.add(ToolOutputDelta(call="call-a", text=f"{number}" + "🪴" * 83 + "." * 16_300))
    # Exactly twice what is kept: not cut yet.
    log.check()
    log.add(ToolOutputDelta(call="call-a", text="!"))
    log.check()
    log.add(ToolOutputDelta(call="call-a", text=" and on"))
    log.check()
    log.add(
        ToolFinished(call="call-a", ok=True, output="332 pots"),
        AnswerFinished(message="m2", finish_reason="tool_use"),
        TurnFinished(outcome="completed"),
    )
    return log

"""What the engine adds to a turn: knowledge, another model, compression, grants, files, background processes, costs."""

from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ContextCompressed,
    FilesChanged,
    GrantAdded,
    GrantRemoved,
    KnowledgeRecalled,
    MessageTruncated,
    ModelSwitched,
    ProcessFinished,
    ProcessStarted,
    TextFinished,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnInterrupted,
)
from palaver.schema.view import FileChange, KnowledgeSource
from tests.golden.record import Record


def engine() -> Record:
    log = Record("engine")
    log.created()
    log.asked("m1", "Water the beds", "t1")
    log.add(
        KnowledgeRecalled(
            message="m1",
            sources=(
                KnowledgeSource(kind="conversation", ref="c-old", title="Last summer", snippet="at dawn", seq=4),
                KnowledgeSource(kind="note", ref=".palaver/knowledge/water.md"),
            ),
            tokens=80,
            text="Water at dawn.",
        ),
        KnowledgeRecalled(message="nobody", text="lost"),
        ModelSwitched(from_model="large", to_model="small", reason="large is overloaded"),
    )
    log.check()
    log.add(
        AnswerStarted(message="m2"),
        TextFinished(message="m2", block=0, text="With the can."),
        ToolCalled(message="m2", block=1, call="call-a", name="edit", input={"path": "beds.md"}),
        AnswerFinished(
            message="m2", finish_reason="tool_use", usage=Usage(input_tokens=10, output_tokens=2), cost_usd=0.25
        ),
        GrantAdded(tool="edit", scope="conversation", request="q-1"),
        GrantAdded(tool="shell", scope="project", match="git status"),
        GrantAdded(tool="edit", scope="agent", agent="default"),
        ToolStarted(call="call-a", grant="conversation"),
        FilesChanged(call="call-a", files=(FileChange(path="beds.md", kind="modified", additions=1, diff="+wet\n"),)),
        ToolFinished(call="call-a", ok=True, output="done"),
        FilesChanged(call="call-a", files=(FileChange(path="late.md", kind="created", diff="+late\n"),)),
        FilesChanged(files=(FileChange(path="by-hand.md", kind="deleted", deletions=3, diff="-dry\n"),)),
        ProcessStarted(process="p-1", command="drip", call="call-b", pid=7),
        ProcessStarted(process="p-2", command="hose"),
    )
    log.check()
    log.add(
        ContextCompressed(
            stage="deduplicate",
            strength="low",
            before_tokens=90,
            after_tokens=70,
            horizon=3,
            cost_usd=0.125,
            usage=Usage(input_tokens=5),
        ),
        ContextCompressed(
            stage="summarize", strength="high", before_tokens=70, after_tokens=20, horizon=9, summary="Wet."
        ),
        ProcessFinished(process="p-1", exit_code=0),
        ProcessFinished(process="p-1", exit_code=1, end="stopped"),
        ProcessFinished(process="p-2", end="stopped"),
        GrantRemoved(tool="shell", match="git status"),
        GrantRemoved(tool="shell"),
        AnswerStarted(message="m3"),
        AnswerFinished(message="m3", finish_reason="stop", cost_usd=0.5),
        TurnFinished(outcome="completed", cost_usd=0.75),
    )
    log.check()
    log.asked("m4", "And the roses", "t2")
    log.add(TurnInterrupted(reason="user"), MessageTruncated(index=2, first_seq=5))
    log.check()
    # What counts stays, however much comes after it: the furthest of a stage, and of it at its strongest.
    log.add(
        ContextCompressed(
            stage="summarize", strength="high", before_tokens=9, after_tokens=8, horizon=3, summary="Old."
        ),
        ContextCompressed(stage="limit", strength="high", before_tokens=9, after_tokens=8, horizon=2),
        ContextCompressed(stage="limit", strength="medium", before_tokens=9, after_tokens=8, horizon=4),
        *(ContextCompressed(stage="limit", strength="medium", before_tokens=9, after_tokens=8) for _ in range(25)),
    )
    return log

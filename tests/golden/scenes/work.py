"""What happens around a turn: subagents, exchanges, context, knowledge, plans; and the events of project streams."""

from palaver.schema.events import (
    AgentOverridden,
    ContextCompressed,
    ContextMeasured,
    ExchangeReturned,
    ExchangeSent,
    GrantAdded,
    KnowledgeRecalled,
    MissionAgent,
    MissionCleared,
    MissionSet,
    MissionTriggered,
    PlanUpdated,
    SubagentFinished,
    SubagentStarted,
    TurnFinished,
)
from palaver.schema.view import KnowledgeSource, Plan, PlanItem
from tests.golden.record import Record


def work() -> Record:
    log = Record("work")
    log.created()
    log.asked("m1", "Plan the garden", "t1")
    log.add(
        ContextMeasured(used_tokens=1_000, window_tokens=200_000, message_count=1, breakdown={"system": 400}),
        KnowledgeRecalled(
            sources=(
                KnowledgeSource(kind="note", ref="notes/soil", title="Soil", snippet="loam"),
                KnowledgeSource(kind="file", ref="beds.md"),
            ),
            tokens=60,
        ),
        SubagentStarted(subagent="c-1", agent="digger", task="Dig", call="call-a", run="r-1"),
        SubagentStarted(subagent="c-2", agent="sower", task="Sow"),
        ExchangeSent(exchange="x-1", agent="neighbour", to="c-9", content="Rain?", mode="async", call="call-b"),
        ExchangeSent(exchange="x-2", agent="weather"),
    )
    log.check()
    log.add(
        SubagentFinished(subagent="c-2", outcome="failed", result="no seeds"),
        SubagentFinished(subagent="c-7", outcome="completed"),
        ExchangeReturned(exchange="x-1", status="queued"),
        ExchangeReturned(exchange="x-2", status="timeout", duration_ms=300_000),
        ContextCompressed(
            stage="summarize", strength="high", before_tokens=1_000, after_tokens=600, horizon=3, summary="…"
        ),
    )
    log.check()
    log.add(
        ContextMeasured(used_tokens=640, estimated=False),
        ExchangeReturned(exchange="x-1", status="complete", response="No rain.", tool_call_count=2),
        SubagentFinished(subagent="c-1", outcome="completed"),
        PlanUpdated(
            plan=Plan(
                summary="Beds",
                items=(PlanItem(title="Dig", status="done"), PlanItem(title="Sow", status="in_progress")),
                status="approved",
            )
        ),
        MissionSet(
            mission="mi-1",
            text="Grow",
            agents=(MissionAgent(agent="digger", idle_prompt="Dig on", idle_interval_s=60),),
            budget_usd=2.5,
        ),
        MissionTriggered(mission="mi-1", agent="digger", count=1, target="c-1"),
        AgentOverridden(agent="digger", idle_interval_s=30),
        GrantAdded(tool="shell", scope="project", match="git status", request="q-1"),
        MissionCleared(mission="mi-1"),
        TurnFinished(outcome="completed", cost_usd=0.1),
    )
    return log


def crowded() -> Record:
    """Subagents and changed files are kept up to two hundred, the latest."""
    from palaver.schema.events import FilesChanged
    from palaver.schema.view import FileChange

    log = Record("crowded")
    log.created()
    for number in range(203):
        log.add(SubagentStarted(subagent=f"c-{number}", agent="digger", task="Dig"))
    for start in (0, 150):
        files = (FileChange(path=f"bed-{number}", kind="modified") for number in range(start, start + 150))
        log.add(FilesChanged(files=tuple(files)))
    log.add(
        FilesChanged(
            files=(
                FileChange(path="bed-150", kind="modified", additions=1),
                FileChange(path="bed-1", kind="created"),
                FileChange(path="bed-150", kind="deleted", deletions=2),
            )
        )
    )
    return log

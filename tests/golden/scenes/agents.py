"""Agents that work together: the log of one that gives tasks and writes letters, and the log of one that is given both."""

from palaver.schema.base import Origin, Usage
from palaver.schema.content import as_content
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ConversationCreated,
    ExchangeReturned,
    ExchangeSent,
    MessageAdded,
    QueueAdded,
    QueueRemoved,
    SubagentFinished,
    SubagentStarted,
    TextFinished,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from palaver.schema.view import Parent, ToolError, Trigger
from tests.golden.record import Record

COORDINATOR = Origin(face="agents", agent="default", conversation="delegating")
NEIGHBOUR = Origin(face="agents", agent="neighbour", conversation="c-9")


def delegating() -> Record:
    """Three tasks at once: done, failed, and stopped with the turn. Letters that are answered, late, and never."""
    log = Record("delegating")
    log.created()
    log.asked("m1", "Get the garden ready", "t1", resumable=True)
    log.add(AnswerStarted(message="a1"))
    for place, (call, agent) in enumerate((("k1", "digger"), ("k2", "sower"), ("k3", None), ("k4", "neighbour"))):
        name, given = ("agents_message", {"agentId": agent}) if call == "k4" else ("task", {"agent": agent})
        log.add(ToolCalled(message="a1", block=place, call=call, name=name, input=given))
    log.add(
        AnswerFinished(message="a1", finish_reason="tool_use", usage=Usage(input_tokens=9, output_tokens=4)),
        *(ToolStarted(call=call, grant="reads_only") for call in ("k1", "k2", "k3", "k4")),
        SubagentStarted(subagent="c-1", agent="digger", task="Dig", call="k1", run="r-1"),
        SubagentStarted(subagent="c-3", agent="default", task="Look", call="k3", run="r-3"),
        SubagentStarted(subagent="c-2", agent="sower", task="Sow", call="k2", run="r-2"),
        ExchangeSent(exchange="k4", agent="neighbour", to="c-9", content="Rain?", call="k4", hops=1),
    )
    log.check()
    log.add(
        SubagentFinished(subagent="c-2", outcome="failed", result="No seeds.", run="r-2"),
        ToolFinished(call="k2", ok=False, error=ToolError(code="task_failed", message="No seeds.")),
        ExchangeReturned(exchange="k4", status="queued"),
        ToolFinished(call="k4", ok=True, output='{"status":"queued"}'),
        SubagentFinished(subagent="c-1", outcome="completed", result="Dug.", run="r-1", cost_usd=0.25),
        ToolFinished(call="k1", ok=True, output="Dug."),
    )
    log.check()
    log.add(
        ToolFinished(
            call="k3",
            ok=False,
            effect="unknown",
            error=ToolError(code="tool_interrupted", message="Interrupted, effect unknown."),
        ),
        SubagentFinished(subagent="c-3", outcome="cancelled", run="r-3"),
        TurnInterrupted(reason="user", cost_usd=0.1, duration_ms=900),
        # A word that comes too late changes nothing.
        SubagentFinished(subagent="c-3", outcome="completed", result="Looked."),
    )
    log.check()
    log.add(
        ExchangeReturned(exchange="k4", status="complete", response="No rain.", duration_ms=4_000, tool_call_count=1),
        QueueAdded(item="q1", content=as_content("No rain."), trigger="callback", exchange="k4", hops=2),
    )
    log.check()
    log.add(
        QueueRemoved(item="q1", reason="delivered", exchange="k4", turn="t2"),
        MessageAdded(
            message="q1",
            role="event",
            event_kind="agent_callback",
            content=as_content("No rain."),
            exchange="k4",
            item="q1",
            turn="t2",
        ),
        TurnStarted(
            turn="t2",
            agent="default",
            backend="scripted",
            trigger=Trigger(kind="callback", messages=("q1",), exchange="k4", hops=2),
        ),
        # The first end counts.
        ExchangeReturned(exchange="k4", status="failed", response="Gone."),
        TurnFinished(outcome="completed"),
    )
    return log


def delegated() -> Record:
    """A subagent's own log: its task, then a letter that finds it busy, and the answer that ends with its turn."""
    log = Record("delegated")
    parent = Parent(kind="subagent", conversation="delegating", root="delegating", call="k1", depth=1)
    log.add(
        ConversationCreated(
            agent="digger", project="garden", params={"mode": "ask"}, parent=parent, origin=COORDINATOR
        ),
        MessageAdded(message="m1", content=as_content("Dig"), turn="r-1", origin=COORDINATOR),
        TurnStarted(
            turn="r-1",
            agent="digger",
            backend="scripted",
            trigger=Trigger(kind="task", messages=("m1",)),
            parent="t1",
            origin=COORDINATOR,
        ),
        QueueAdded(item="q1", content=as_content("How deep?"), exchange="x-1", hops=3, origin=NEIGHBOUR),
    )
    log.check()
    log.add(
        AnswerStarted(message="a1"),
        TextFinished(message="a1", block=0, text="Dug."),
        AnswerFinished(message="a1", finish_reason="stop"),
        TurnFinished(outcome="task", summary="Dug.", cost_usd=0.25),
        QueueRemoved(item="q1", reason="delivered", exchange="x-1", turn="r-2"),
        MessageAdded(
            message="q1",
            content=as_content("How deep?"),
            exchange="x-1",
            item="q1",
            turn="r-2",
            origin=NEIGHBOUR,
        ),
        TurnStarted(
            turn="r-2",
            agent="digger",
            backend="scripted",
            trigger=Trigger(messages=("q1",), exchange="x-1", hops=3),
            exchange="x-1",
            origin=NEIGHBOUR,
        ),
    )
    log.check()
    log.add(
        AnswerStarted(message="a2", exchange="x-1"),
        TextFinished(message="a2", block=0, text="Two feet.", exchange="x-1"),
        AnswerFinished(message="a2", finish_reason="stop", exchange="x-1"),
        ExchangeReturned(exchange="x-1", status="complete", response="Two feet.", duration_ms=500, tool_call_count=0),
        TurnFinished(outcome="completed", exchange="x-1"),
    )
    return log

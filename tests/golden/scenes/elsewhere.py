"""Agents from elsewhere: one speaks here, asks before a call, and lets the turn end after its calls."""

from palaver.schema.base import Origin
from palaver.schema.content import TextPart
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    MessageAdded,
    RequestOpened,
    RequestResolved,
    TextFinished,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStatus,
)
from tests.golden.record import Record

AFAR = Origin(face="inbox", user="afar", agent="afar")


def elsewhere() -> Record:
    """It holds up nothing here: the states are those of the conversation's own agent."""
    log = Record("elsewhere")
    log.created()
    log.add(
        MessageAdded(
            message="p1",
            role="assistant",
            content=(TextPart(text="The build is done.", mime="text/plain"),),
            agent="afar",
            origin=AFAR,
        ),
        RequestOpened(request="q1", kind="approval", tool="chat_assistant_post", agent="afar", origin=AFAR),
    )
    log.check()
    log.asked("m1", "Deploy", "t1")
    log.add(
        AnswerStarted(message="m2"),
        TextFinished(message="m2", block=0, text="On it.", unposted=True),
        ToolCalled(message="m2", block=1, call="call-a", name="shell", input={"command": "deploy"}),
        AnswerFinished(message="m2", finish_reason="tool_calls"),
        ToolStarted(call="call-a", grant="rule"),
        TurnStatus(status="calling_tool", yielding=True),
    )
    log.check()
    log.add(
        TurnStatus(status="working"),
        RequestResolved(request="q1", status="answered", verdict="allow"),
        MessageAdded(message="p2", role="assistant", content=(TextPart(text="Me too."),), event_kind="posted"),
        ToolFinished(call="call-a", ok=True, output="done"),
        TurnFinished(outcome="yielded"),
    )
    log.check()
    return log

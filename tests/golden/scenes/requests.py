"""What waits for a person: approvals, questions and plans, and each way they end; with and without a restart between."""

from palaver.schema.base import Origin
from palaver.schema.commands import Answer
from palaver.schema.content import as_content
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    KnownEvent,
    MessageAdded,
    PlanUpdated,
    QueueAdded,
    RequestOpened,
    RequestResolved,
    TextFinished,
    ToolCalled,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from palaver.schema.view import Plan, PlanItem, Question, QuestionOption, ToolError, Trigger
from tests.golden.record import BROWSER, Record

PHONE = Origin(face="socket", client="phone", user="ada")

PLAN = Plan(
    summary="Prune",
    items=(PlanItem(title="Cut", description="low"), PlanItem(title="Burn", status="skipped")),
    text="1. Cut\n2. Burn",
)

COLOUR = Question(
    question="Which colour?",
    header="Colour",
    options=(QuestionOption(label="Red", description="like before"), QuestionOption(label="White", preview="🤍")),
    multi_select=True,
)


def _call(message: str, block: int, call: str) -> KnownEvent:
    return ToolCalled(message=message, block=block, call=call, name="shell", input={"command": call})


def _approval(request: str, call: str | None = None, expires_at: int | None = None) -> KnownEvent:
    return RequestOpened(
        request=request,
        kind="approval",
        call=call,
        agent="default",
        tool="shell",
        input={"command": call},
        hash="ab" * 16,
        title=f"Run {call}",
        risk="writes",
        sandbox="bubblewrap",
        preview=f"$ {call}",
        scopes=("once", "conversation"),
        expires_at=expires_at,
    )


def requests() -> Record:
    log = Record("requests")
    log.created()
    log.asked("m1", "Prune the roses", "t1")
    log.add(
        AnswerStarted(message="m2"),
        *(_call("m2", block, f"call-{letter}") for block, letter in enumerate("abcd")),
        AnswerFinished(message="m2", finish_reason="tool_use"),
        _approval("q-a", "call-a"),
        _approval("q-b", "call-b", expires_at=log.now + 300_000),
        _approval("q-c", "call-c"),
    )
    log.check()
    log.add(
        RequestResolved(
            request="q-a",
            status="answered",
            verdict="allow",
            scope="conversation",
            origin=PHONE,
            input={"command": "x"},
        ),
        # A second decider is too late; the first decision stays.
        RequestResolved(request="q-a", status="answered", verdict="deny", then="stop", origin=BROWSER),
    )
    log.check()
    log.add(
        ToolStarted(call="call-a", grant="request", request="q-a"),
        RequestResolved(request="q-b", status="expired", verdict="deny"),
        ToolFinished(
            call="call-b", ok=False, effect="none", error=ToolError(code="interaction_timeout", message="No answer.")
        ),
        RequestResolved(request="q-c", status="answered", verdict="deny", then="stop", text="Not that one."),
        ToolFinished(call="call-c", ok=False, effect="none", error=ToolError(code="tool_denied", message="Denied.")),
    )
    log.check()
    # A call of the editor's own, and one that asks while it runs.
    log.add(
        ToolStarted(call="call-d", grant="ide"),
        ToolFinished(call="call-a", ok=True, output="done"),
    )
    log.check()
    log.add(
        RequestOpened(request="q-d", kind="question", call="call-d", questions=(COLOUR,), title="One question"),
    )
    log.check()
    log.add(
        RequestResolved(
            request="q-d",
            status="answered",
            answers=(Answer(selected=("Red", "White")), Answer(question_index=1, custom_text="or 💛")),
            text="as you like",
            origin=BROWSER,
        ),
        ToolFinished(call="call-d", ok=True, output="painted"),
        PlanUpdated(plan=PLAN),
        RequestOpened(request="q-e", kind="plan", plan=PLAN),
        TurnFinished(outcome="plan"),
    )
    # The plan waits although no turn is active.
    log.check()
    log.add(
        RequestResolved(request="q-e", status="answered", verdict="allow", turn="t2", origin=BROWSER),
        TurnStarted(
            turn="t2", agent="default", backend="scripted", trigger=Trigger(kind="request", request="q-e"), mode="auto"
        ),
        PlanUpdated(plan=Plan(summary="Prune", status="executing")),
        RequestOpened(request="q-f", kind="question", questions=(COLOUR,)),
        RequestOpened(request="q-f", kind="question", title="Asked again under the same id"),
    )
    log.check()
    log.add(
        RequestResolved(request="q-f", status="cancelled"),
        TurnInterrupted(reason="user", origin=BROWSER, duration_ms=900),
        PlanUpdated(),
    )
    return log


def many_requests() -> Record:
    """Of the resolved ones the latest thirty-two stay; open ones always do."""
    log = Record("many-requests")
    log.created()
    log.asked("m1", "Ask a lot", "t1")
    log.add(_approval("q-open"))
    for number in range(36):
        log.add(RequestOpened(request=f"q-{number}", kind="question", questions=(Question(question="?"),)))
        log.add(RequestResolved(request=f"q-{number}", status="answered", text=f"{number}"))
    return log


def restart() -> Record:
    """A restart cuts a resumable turn: what ran is unknown, what waits stays answerable, the answer goes on from there."""
    log = Record("restart")
    log.created()
    log.asked("m1", "Water everything", "t1", resumable=True)
    log.add(
        AnswerStarted(message="m2"),
        TextFinished(message="m2", block=0, text="Three hoses."),
        *(_call("m2", block + 1, f"call-{letter}") for block, letter in enumerate("abc")),
        AnswerFinished(message="m2", finish_reason="tool_use"),
        ToolStarted(call="call-a", grant="rule"),
        ToolOutputDelta(call="call-a", text="drip "),
        _approval("q-b", "call-b"),
        _approval("q-c", "call-c"),
        QueueAdded(item="m9", content=as_content("later")),
    )
    log.check()
    log.add(
        ToolFinished(
            call="call-a",
            ok=False,
            output="drip ",
            effect="unknown",
            error=ToolError(code="tool_interrupted", message="Interrupted, effect unknown."),
        ),
        TurnInterrupted(reason="restart", duration_ms=2_000),
    )
    log.check()
    log.add(
        RequestResolved(request="q-b", status="answered", verdict="allow", turn="t2", origin=PHONE),
        TurnStarted(
            turn="t2",
            agent="default",
            backend="scripted",
            trigger=Trigger(kind="request", request="q-b"),
            resumable=True,
            origin=PHONE,
        ),
        ToolStarted(call="call-b", grant="request", request="q-b"),
    )
    log.check()
    # The other approval of the turn that was cut is answered while the new one runs: still a pause until then.
    log.add(RequestResolved(request="q-c", status="answered", verdict="allow"))
    log.check()
    log.add(
        ToolStarted(call="call-c", grant="ide", request="q-c"),
        ToolFinished(call="call-b", ok=True, output="wet"),
    )
    log.check()
    log.add(
        ToolFinished(call="call-c", ok=True, output="wet too"),
        AnswerStarted(message="m3"),
        TextFinished(message="m3", block=0, text="All wet."),
        AnswerFinished(message="m3", finish_reason="stop"),
        _approval("q-d"),
        TurnInterrupted(reason="shutdown"),
        # New input at rest: the open request gives way.
        RequestResolved(request="q-d", status="superseded"),
        MessageAdded(message="m4", content=as_content("Never mind"), turn="t3"),
        TurnStarted(turn="t3", agent="default", backend="scripted", trigger=Trigger(messages=("m4",))),
    )
    return log

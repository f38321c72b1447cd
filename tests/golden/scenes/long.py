"""One long, lifelike conversation, for tests that drop the connection anywhere; and the same after compaction."""

from collections.abc import Iterator

from palaver.schema.base import Usage
from palaver.schema.commands import Answer
from palaver.schema.content import as_content
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ContextMeasured,
    ConversationUpdated,
    FilesChanged,
    KnownEvent,
    LogCompacted,
    MessageAdded,
    PlanUpdated,
    QueueAdded,
    QueueEdited,
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
    TurnStarted,
    TurnStatus,
    UnknownEvent,
    decode_event,
    encode_event,
)
from palaver.schema.view import FileChange, Plan, PlanItem, Question, QuestionOption, ToolError, Trigger
from tests.golden.compaction import compacted
from tests.golden.record import BROWSER, Record

PLAN_ITEMS = ("Measure the beds", "Order seeds", "Draw up a calendar")


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def _said(message: str, block: int, text: str) -> list[KnownEvent]:
    deltas = [TextDelta(message=message, block=block, text=piece) for piece in _pieces(text, 4)]
    return [*deltas, TextFinished(message=message, block=block, text=text)]


def _thought(message: str, block: int, text: str) -> list[KnownEvent]:
    deltas = [ThinkingDelta(message=message, block=block, text=piece) for piece in _pieces(text, 5)]
    return [*deltas, ThinkingFinished(message=message, block=block, text=text, signature="c2ln", duration_ms=700)]


def _called(message: str, block: int, call: str, name: str, command: str) -> list[KnownEvent]:
    text = '{"command": "' + command + '"}'
    deltas = [
        ToolInputDelta(message=message, block=block, call=call, name=name, text=piece) for piece in _pieces(text, 10)
    ]
    return [*deltas, ToolCalled(message=message, block=block, call=call, name=name, input={"command": command})]


def _ran(call: str, lines: int, grant: str = "rule", request: str | None = None) -> list[KnownEvent]:
    output = [f"{call} line {number} 🌱\n" for number in range(lines)]
    return [
        ToolStarted(call=call, grant=grant, request=request, sandbox="bubblewrap"),
        *(ToolOutputDelta(call=call, text=line) for line in output),
        ToolFinished(call=call, ok=True, output="".join(output), exit_code=0, total_lines=lines),
    ]


def _ended(message: str, reason: str, output_tokens: int) -> KnownEvent:
    usage = Usage(input_tokens=400, output_tokens=output_tokens, cached_tokens=256)
    return AnswerFinished(message=message, finish_reason=reason, usage=usage)


def long() -> Record:
    log = Record("long")
    log.created()
    log.add(ConversationUpdated(title="A garden for the year", title_source="auto"))
    _a_look_around(log)
    _a_plan(log)
    _work_with_questions(log)
    _a_stop(log)
    _the_queue_goes_on(log)
    return log


def _a_look_around(log: Record) -> None:
    log.asked("m1", "Look at the garden and tell me what grows there.", "t1")
    log.add(TurnStatus(status="thinking"), AnswerStarted(message="m2"))
    log.add(
        *_thought("m2", 0, "The person wants an overview; two places to look at, and they do not depend on each other.")
    )
    log.check()
    log.add(*_said("m2", 1, "Let me look at both beds at once."))
    # Two calls stream their arguments side by side, and run side by side.
    for pair in zip(
        _called("m2", 2, "call-1", "shell", "ls beds/north"),
        _called("m2", 3, "call-2", "shell", "ls beds/south"),
        strict=True,
    ):
        log.add(*pair)
    log.add(_ended("m2", "tool_use", 60), TurnStatus(status="calling_tool", detail="shell"))
    log.check()
    for pair in zip(_ran("call-1", 9), _ran("call-2", 9), strict=True):
        log.add(*pair)
    log.add(AnswerStarted(message="m3"))
    log.add(*_said("m3", 0, "North: roses, sage, thyme. South: beans 🫘, courgettes and a fig in a pot."))
    log.add(
        _ended("m3", "stop", 40),
        ContextMeasured(used_tokens=900, window_tokens=200_000),
        TurnFinished(
            outcome="completed", usage=Usage(input_tokens=800, output_tokens=100, cached_tokens=512), cost_usd=0.01
        ),
    )
    log.check()


def _a_plan(log: Record) -> None:
    plan = Plan(summary="The year", items=tuple(PlanItem(title=title) for title in PLAN_ITEMS))
    log.asked("m4", "Make a plan for the year.", "t2")
    log.add(AnswerStarted(message="m5"))
    log.add(*_said("m5", 0, "Here is a plan of three steps; say whether I shall go on."))
    log.add(
        _ended("m5", "stop", 30),
        PlanUpdated(plan=plan),
        RequestOpened(request="q-1", kind="plan", plan=plan, title="A plan for the year"),
        TurnFinished(outcome="plan", usage=Usage(input_tokens=400, output_tokens=30, cached_tokens=256)),
    )
    log.check()


def _work_with_questions(log: Record) -> None:
    log.add(
        RequestResolved(request="q-1", status="answered", verdict="allow", turn="t3", origin=BROWSER),
        TurnStarted(
            turn="t3",
            agent="default",
            backend="scripted",
            model="demo-1",
            trigger=Trigger(kind="request", request="q-1"),
            resumable=True,
            origin=BROWSER,
        ),
        PlanUpdated(plan=Plan(summary="The year", items=(PlanItem(title=PLAN_ITEMS[0]),), status="executing")),
        AnswerStarted(message="m6"),
    )
    log.add(*_called("m6", 0, "call-3", "shell", "measure --write beds.md"))
    log.add(
        _ended("m6", "tool_use", 20),
        RequestOpened(
            request="q-2",
            kind="approval",
            call="call-3",
            tool="shell",
            input={"command": "measure --write beds.md"},
            hash="cd" * 16,
            scopes=("once", "conversation"),
        ),
        # The person writes on while the agent waits.
        QueueAdded(item="m7", content=as_content("And mind the fig."), delivery="boundary", origin=BROWSER),
    )
    log.check()
    log.add(RequestResolved(request="q-2", status="answered", verdict="allow", origin=BROWSER))
    log.add(*_ran("call-3", 12, grant="request", request="q-2"))
    log.add(
        FilesChanged(files=(FileChange(path="beds.md", kind="created", additions=12),)),
        QueueRemoved(item="m7", reason="delivered"),
        MessageAdded(message="m7", content=as_content("And mind the fig."), item="m7", origin=BROWSER),
        AnswerStarted(message="m8"),
    )
    log.add(*_thought("m8", 0, "The fig: does it stay outside in winter? Better ask."))
    log.add(ToolCalled(message="m8", block=1, call="call-4", name="ask_user", input={"questions": 1}))
    log.add(_ended("m8", "tool_use", 25))
    options = (QuestionOption(label="Inside"), QuestionOption(label="Outside", description="wrapped"))
    question = Question(question="Where does the fig spend the winter?", header="Fig", options=options)
    log.add(RequestOpened(request="q-3", kind="question", call="call-4", questions=(question,)))
    log.check()
    log.add(
        RequestResolved(request="q-3", status="answered", answers=(Answer(selected=("Inside",)),), origin=BROWSER),
        ToolFinished(call="call-4", ok=True, output="Inside"),
        AnswerStarted(message="m9"),
    )
    log.add(*_said("m9", 0, "Measured and written down. The fig comes in before the first frost."))
    log.add(_ended("m9", "stop", 30), TurnFinished(outcome="completed", usage=Usage(output_tokens=75), cost_usd=0.02))
    log.check()


def _a_stop(log: Record) -> None:
    log.asked("m10", "Order the seeds.", "t4")
    log.add(AnswerStarted(message="m11"))
    log.add(*_said("m11", 0, "Ordering now."))
    log.add(*_called("m11", 1, "call-5", "shell", "order --all"))
    log.add(_ended("m11", "tool_use", 15), ToolStarted(call="call-5", grant="rule"))
    log.add(*(ToolOutputDelta(call="call-5", text=f"order {number}\n") for number in range(20)))
    log.add(
        QueueAdded(item="m12", content=as_content("Wait, only the beans!"), origin=BROWSER),
        QueueAdded(item="m13", content=as_content("And the peas"), merge=True, origin=BROWSER),
        QueueEdited(item="m13", version=2, content=as_content("And the peas.")),
        AnswerStarted(message="m14"),
    )
    cut = "While that runs, the calenda"
    log.add(*_said("m14", 0, cut)[:-1])
    log.check()
    ordered = "".join(f"order {number}\n" for number in range(20))
    log.add(
        TextFinished(message="m14", block=0, text=cut, interrupted=True),
        AnswerFinished(message="m14", finish_reason="interrupted", interrupted=True),
        ToolFinished(
            call="call-5",
            ok=False,
            output=ordered,
            effect="unknown",
            error=ToolError(code="tool_interrupted", message="Interrupted, effect unknown."),
        ),
        TurnInterrupted(reason="user", usage=Usage(output_tokens=15), duration_ms=9_000, origin=BROWSER),
    )
    log.check()


def _the_queue_goes_on(log: Record) -> None:
    log.add(
        QueueRemoved(item="m12", reason="delivered", turn="t5"),
        MessageAdded(message="m12", content=as_content("Wait, only the beans!"), item="m12", turn="t5", origin=BROWSER),
        TurnStarted(turn="t5", agent="default", backend="scripted", model="demo-1", trigger=Trigger(messages=("m12",))),
        AnswerStarted(message="m15"),
    )
    log.add(*_said("m15", 0, "Understood: I check what went out, and cancel all but the beans."))
    log.add(*_called("m15", 1, "call-6", "shell", "order --cancel --except beans"))
    log.add(_ended("m15", "tool_use", 15))
    log.add(*_ran("call-6", 15))
    log.add(AnswerStarted(message="m16"))
    log.add(*_said("m16", 0, "Only the beans are on their way now. Shall the peas follow? They are next in the queue."))
    log.add(_ended("m16", "stop", 25), TurnFinished(outcome="completed", usage=Usage(output_tokens=40)))


def compacted_long() -> Record:
    """The long conversation after compaction. Its states are those of the full log at the same places."""
    full = long()
    log = Record("compacted")
    events = compacted([decode_event(line) for line in full.lines])
    kept = {event.seq for event in events if not isinstance(event, LogCompacted)}
    log.keep([encode_event(event) for event in events if not isinstance(event, UnknownEvent)], full.seq)
    log.checks.extend(seq for seq in full.checks if seq in kept)
    return log

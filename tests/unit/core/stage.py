"""Sets the stage for tests of the pure core: states folded from a few events, facts, and short ways to look at answers."""

from itertools import count

from msgspec.structs import replace

from palaver.core.decide.decide import Already, Decision, Refusal, decide
from palaver.core.decide.facts import Facts, Runner
from palaver.core.fold.evolve import fold
from palaver.schema.base import Origin
from palaver.schema.commands import Command
from palaver.schema.content import as_content
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ConversationCreated,
    KnownEvent,
    MessageAdded,
    QueueAdded,
    RequestOpened,
    TextFinished,
    ToolCalled,
    ToolStarted,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from palaver.schema.view import Message, State, TextBlock, ToolBlock, Trigger

NOW_MS = 5_000_000
ADA = Origin(client="tab-1", user="ada")


def facts(*, resumable: bool = False, agent: str = "default") -> Facts:
    numbers = count(1)
    runner = Runner(agent=agent, backend="scripted", model="demo", resumable=resumable, steerable=True)
    return Facts(now=NOW_MS, new_id=lambda: f"new-{next(numbers)}", runner=runner, origin=ADA)


def after(*events: KnownEvent, state: State | None = None) -> State:
    """The view after these events, numbered on from `state`."""
    start = state if state is not None else fold(State(), [ConversationCreated(seq=1, ts=1_000, conversation="c")])
    numbered = [
        replace(event, seq=seq, id=f"e{seq}", ts=1_000 * seq, conversation="c")
        for seq, event in enumerate(events, start.seq + 1)
    ]
    return fold(start, numbered)


def kinds(decision: Decision) -> list[str]:
    assert isinstance(decision, list), decision
    return [type(event).__name__ for event in decision]


def events(state: State, command: Command, told: Facts | None = None) -> list[KnownEvent]:
    decision = decide(state, command, told or facts())
    assert isinstance(decision, list), decision
    return decision


def refusal(state: State, command: Command) -> Refusal:
    decision = decide(state, command, facts())
    assert isinstance(decision, Refusal), decision
    return decision


def already(state: State, command: Command) -> Already:
    decision = decide(state, command, facts())
    assert isinstance(decision, Already), decision
    return decision


# -- what happens in nearly every conversation


def asked(
    turn: str = "t1", message: str = "m1", *, resumable: bool = False, mode: str | None = None
) -> list[KnownEvent]:
    return [
        MessageAdded(turn=turn, message=message, content=as_content("Hello")),
        TurnStarted(
            turn=turn,
            agent="default",
            backend="scripted",
            trigger=Trigger(messages=(message,)),
            resumable=resumable,
            mode=mode,
        ),
    ]


def said(message: str = "m2", text: str = "Hi", turn: str = "t1") -> list[KnownEvent]:
    return [
        AnswerStarted(turn=turn, message=message),
        TextFinished(turn=turn, message=message, block=0, text=text),
        AnswerFinished(turn=turn, message=message, finish_reason="stop"),
    ]


def called(*calls: str, message: str = "m2", turn: str = "t1") -> list[KnownEvent]:
    """An answer that ends with tool calls."""
    return [
        AnswerStarted(turn=turn, message=message),
        *(
            ToolCalled(turn=turn, message=message, block=block, call=call, name="shell", input={})
            for block, call in enumerate(calls)
        ),
        AnswerFinished(turn=turn, message=message, finish_reason="tool_use"),
    ]


def began(call: str, grant: str = "rule", turn: str = "t1") -> KnownEvent:
    return ToolStarted(turn=turn, call=call, grant=grant)


def wondered(request: str, call: str | None = None, turn: str = "t1") -> KnownEvent:
    """An approval waits for a person."""
    return RequestOpened(turn=turn, request=request, kind="approval", call=call, scopes=("once", "project"))


def finished(turn: str = "t1") -> KnownEvent:
    return TurnFinished(turn=turn, outcome="completed")


def stopped(turn: str = "t1") -> KnownEvent:
    return TurnInterrupted(turn=turn, reason="restart")


def queued(item: str, **fields: object) -> KnownEvent:
    return replace(QueueAdded(item=item, content=as_content(item)), **fields)


def at_rest() -> State:
    """One question, one answer."""
    return after(*asked(), *said(), finished())


def working(*, resumable: bool = False) -> State:
    return after(*asked(resumable=resumable))


def waiting_after_restart() -> State:
    """A restart cut the turn; its approval is still open."""
    return after(*asked(resumable=True), *called("a"), wondered("q", "a"), stopped())


def message(state: State, wanted: str) -> Message:
    return next(known for known in state.messages if known.id == wanted)


def texts(state: State) -> list[str]:
    """What each message says."""
    return [
        "".join(block.text for block in message.blocks if isinstance(block, TextBlock)) for message in state.messages
    ]


def tool(state: State, call: str) -> ToolBlock:
    return next(b for m in state.messages for b in m.blocks if isinstance(b, ToolBlock) and b.call == call)

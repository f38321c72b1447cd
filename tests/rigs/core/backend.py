"""A backend that does anything a backend may do, and some things it should not, one event at a time.

It looks at the committed view, as a real one does, and picks among what is possible now.
"""

from collections.abc import Callable

from hypothesis import strategies as st

from palaver.core.state import messages_of_turn, open_tools
from palaver.schema.base import Usage
from palaver.schema.content import as_content
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    CitationAdded,
    ContextCompressed,
    GrantAdded,
    KnownEvent,
    MessageAdded,
    ModelSwitched,
    PlanUpdated,
    ProcessStarted,
    RequestOpened,
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
    TurnStatus,
)
from palaver.schema.view import Message, Outcome, Plan, Question, TextBlock, ThinkingBlock, ToolBlock, ToolError
from tests.rigs.core.owner import Owner

WORDS = st.sampled_from(("a", "bc", "", "🌱 ", "\n"))
OUTCOMES: st.SearchStrategy[Outcome] = st.sampled_from(("completed", "task", "plan", "yielded", "limited"))
BLOCKS = st.integers(0, 4)


def acts(owner: Owner, data: st.DataObject) -> KnownEvent:
    """The next event of the running turn."""
    turn = owner.state.turn
    assert turn is not None
    said = [message for message in messages_of_turn(owner.state, turn.id) if message.role == "assistant"]
    streaming = [message for message in said if message.status == "streaming"]
    possible: list[Callable[[], KnownEvent]] = [lambda: _aside(owner, data)]
    if not streaming:
        possible += [lambda: AnswerStarted(message=owner.new_id())] * 4
    if streaming:
        latest = streaming[-1]
        possible += [lambda: _speaks(latest, data)] * 3
        possible += [lambda: _calls(owner, latest, data)] * 3
        if latest.blocks:
            possible.append(lambda: _repeats_itself(latest, data))
        possible.append(lambda: AnswerFinished(message=latest.id, finish_reason="stop", usage=Usage(output_tokens=1)))
        if _replaceable(latest):
            possible.append(lambda: AnswerStarted(message=owner.new_id(), replaces=latest.id))
    if tools := [tool for _, tool in open_tools(owner.state)]:
        possible += [lambda: _works(owner, data.draw(st.sampled_from(tools)), data)] * 4
    if sum(known.status == "open" for known in owner.state.requests) < 8:
        possible.append(lambda: _asks(owner, data))
    return data.draw(st.sampled_from(possible))()


def answers_with_calls(owner: Owner, count: int, data: st.DataObject) -> list[KnownEvent]:
    message, events = owner.new_id(), list[KnownEvent]()
    events.append(AnswerStarted(message=message))
    events.append(TextDelta(message=message, block=0, text="Let me see."))
    if data.draw(st.booleans()):
        events.append(TextFinished(message=message, block=0, text="Let me see."))
        events.append(TextDelta(message=message, block=0, text="And late."))
    for block in range(1, count + 1):
        call = owner.new_id()
        events.append(ToolInputDelta(message=message, block=block, call=call, name="shell", text="{}"))
        events.append(ToolCalled(message=message, block=block, call=call, name="shell", input={}))
        step = data.draw(st.sampled_from(("ask", "ask", "start", "editor", "leave")))
        if step == "ask":
            events.append(RequestOpened(request=owner.new_id(), kind="approval", call=call))
        elif step != "leave":
            events.append(ToolStarted(call=call, grant="ide" if step == "editor" else "rule"))
            events.append(ToolOutputDelta(call=call, text="out"))
    if data.draw(st.booleans()):
        events.append(AnswerFinished(message=message, finish_reason="tool_use", usage=Usage(output_tokens=2)))
    return events


def ends(data: st.DataObject) -> TurnFinished:
    outcome = data.draw(OUTCOMES)
    return TurnFinished(outcome=outcome, usage=data.draw(st.sampled_from((Usage(), Usage(input_tokens=3)))))


def late(owner: Owner, turns: list[str], data: st.DataObject) -> tuple[str, KnownEvent]:
    """Output of a turn that is over."""
    call = next((b.call for m in owner.state.messages for b in m.blocks if isinstance(b, ToolBlock)), "c")
    events: tuple[KnownEvent, ...] = (
        ToolOutputDelta(call=call, text="late"),
        ToolFinished(call=call, ok=True, output="late"),
        TurnFinished(outcome="completed"),
        AnswerStarted(message="late"),
    )
    return data.draw(st.sampled_from(turns)), data.draw(st.sampled_from(events))


def _speaks(message: Message, data: st.DataObject) -> KnownEvent:
    block, words = data.draw(BLOCKS), data.draw(WORDS)
    known = next((known for known in message.blocks if known.index == block), None)
    match known:
        case TextBlock(status="streaming") if data.draw(st.booleans()):
            return TextFinished(message=message.id, block=block, text=known.text)
        case ThinkingBlock(status="streaming") if data.draw(st.booleans()):
            return ThinkingFinished(message=message.id, block=block, text=known.text, signature="s")
        case _:
            pass
    kinds: tuple[KnownEvent, ...] = (
        TextDelta(message=message.id, block=block, text=words),
        ThinkingDelta(message=message.id, block=block, text=words),
        TextFinished(message=message.id, block=block, text=words),
        ThinkingFinished(message=message.id, block=block, text=words),
        CitationAdded(message=message.id, block=block, citation=words),
    )
    return data.draw(st.sampled_from(kinds))


def _repeats_itself(message: Message, data: st.DataObject) -> KnownEvent:
    """More words for a block that may be finished, or be something else."""
    block = data.draw(st.sampled_from(message.blocks)).index
    kinds: tuple[KnownEvent, ...] = (
        TextDelta(message=message.id, block=block, text="late"),
        ThinkingDelta(message=message.id, block=block, text="late"),
    )
    return data.draw(st.sampled_from(kinds))


def _calls(owner: Owner, message: Message, data: st.DataObject) -> KnownEvent:
    begun = [block for block in message.blocks if isinstance(block, ToolBlock) and block.status == "input"]
    going_on = data.draw(st.booleans())
    if begun and going_on:
        tool = begun[-1]
        if data.draw(st.booleans()):
            return ToolInputDelta(message=message.id, block=tool.index, call=tool.call, name=tool.name, text="{")
        return ToolCalled(message=message.id, block=tool.index, call=tool.call, name=tool.name, input={"a": 1})
    block = max((known.index for known in message.blocks), default=-1) + 1
    if data.draw(st.booleans()):
        return ToolInputDelta(message=message.id, block=block, call=owner.new_id(), name="shell", text="{")
    return ToolCalled(message=message.id, block=block, call=owner.new_id(), name="shell", input={})


def _works(owner: Owner, tool: ToolBlock, data: st.DataObject) -> KnownEvent:
    if tool.status == "called":
        kind = data.draw(st.sampled_from(("ask", "start", "editor", "deny")))
        if kind == "ask":
            return RequestOpened(request=owner.new_id(), kind="approval", call=tool.call, scopes=("once", "project"))
        if kind == "deny":
            denied = ToolError(code="tool_denied", message="no")
            return ToolFinished(call=tool.call, ok=False, effect="none", error=denied)
        return ToolStarted(call=tool.call, grant="ide" if kind == "editor" else "rule")
    if tool.status == "running":
        kind = data.draw(st.sampled_from(("output", "finish", "break", "ask")))
        if kind == "output":
            return ToolOutputDelta(call=tool.call, text=data.draw(WORDS))
        if kind == "ask":
            return RequestOpened(request=owner.new_id(), kind="question", call=tool.call)
        error = None if kind == "finish" else ToolError(code="tool_error", message="exit 1")
        return ToolFinished(call=tool.call, ok=error is None, output="out", error=error)
    return ToolOutputDelta(call=tool.call, text="early")


def _asks(owner: Owner, data: st.DataObject) -> KnownEvent:
    if data.draw(st.booleans()):
        return RequestOpened(request=owner.new_id(), kind="question", questions=(Question(question="?"),))
    return RequestOpened(request=owner.new_id(), kind="plan", plan=Plan(summary="p"))


def _aside(owner: Owner, data: st.DataObject) -> KnownEvent:
    asides: tuple[KnownEvent, ...] = (
        TurnStatus(status="thinking"),
        ModelSwitched(to_model="other"),
        ProcessStarted(process=owner.new_id(), command="sleep 9"),
        ContextCompressed(
            stage="limit", strength="low", before_tokens=2, after_tokens=1, horizon=data.draw(st.integers(0, 60))
        ),
        GrantAdded(tool="shell", scope="conversation"),
        PlanUpdated(plan=Plan(summary="p")),
        MessageAdded(
            message=owner.new_id(), role="event", hidden=True, event_kind="process_completed", content=as_content("0")
        ),
    )
    return data.draw(st.sampled_from(asides))


def _replaceable(message: Message) -> bool:
    """A cut attempt is tried again only before anything of it ran."""
    return not any(isinstance(block, ToolBlock) and block.status in ("waiting", "running") for block in message.blocks)

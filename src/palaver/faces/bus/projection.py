"""The log in the bus's words: pure. Each event, with the view before and after it, is told in none, one or several frames.

Nothing is remembered from one event to the next, so the same event is always told the same way, whoever listens and
whenever the reading began. A turn is told as `message`, `token` (thinking), `activity`, `token`, `text_segment` and last
`run/outcome`. Whatever has no word of its own is told as `run/sync`: something changed, look again.
"""

import re
from typing import assert_never

from msgspec.structs import replace

from palaver.core.queue import words_of
from palaver.core.state import find_call, find_request, messages_of_turn, tools_of_turn
from palaver.faces.bus.activity import at_rest, awake, doing, tell_change, tell_wake
from palaver.faces.bus.frames import FRAMES, Json, Told
from palaver.faces.bus.meter import meter, tell_context, tell_usage, texts
from palaver.faces.bus.questions import plan_data, question_of
from palaver.schema import events
from palaver.schema.base import Origin
from palaver.schema.content import Content, plain_text
from palaver.schema.view import (
    Block,
    FileChange,
    Message,
    Plan,
    QueueItem,
    Role,
    State,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
)

CHANGED_FILES = 20
DIFF_CHARS = 12_000
PREVIEW_CHARS = 120
"""Of a queued message: a line."""
LINE_CHARS = 8_000
"""Of a tool's line: what is longer is no line."""
LINES_AT_ONCE = FRAMES - 24
"""The newest lines of one burst; the frames of an event must fit its numbers."""

USER = "user"
MISSION = "mission"
SYNC = Told("run", "sync")
ROLES: dict[Role, str] = {"user": "user", "assistant": "agent"}
ENDS = {"completed": "task", "failed": "error", "cancelled": "cancelled"}
"""How a subagent ended, in the words of all outcomes: its task is done, or it is not."""
_LINE_END = re.compile(r"\r\n|\n|\r")

Deltas = events.TextDelta | events.ThinkingDelta | events.ToolInputDelta | events.ToolOutputDelta
Streamed = events.TextDelta | events.ThinkingDelta | events.TextFinished | events.ThinkingFinished


def project(event: events.Event, before: State, after: State, agent: str | None = None) -> list[Told]:
    """`agent`: who answers the message that this is, where another than the conversation's own does."""
    said = _project(event, before, after, agent)
    if isinstance(event, Deltas) and not _begins_block(event, before):
        return said  # Nine events of ten: what is being done only changes where a block begins.
    status = tell_change(doing(before), doing(after), after)
    match event:
        case events.TurnStarted() if event.trigger.kind == "idle":
            return [awake(after), *status, *said]
        case events.TurnFinished() | events.TurnInterrupted() if before.turn is not None and after.turn is None:
            # Its outcome is the last word of a turn.
            return [*status, *at_rest(after), *said]
        case (
            events.ThinkingDelta()
            | events.ThinkingFinished()
            | events.TextFinished()
            | events.AnswerFinished()
            | events.ToolFinished()
        ):
            return [*said, *status]
        case _:
            return [*status, *said]


def _begins_block(event: Deltas, before: State) -> bool:
    return not isinstance(event, events.ToolOutputDelta) and _block(before, event.message, event.block) is None


def _block(state: State, message: str, index: int) -> Block | None:
    known = _message(state, message)
    return next((block for block in reversed(known.blocks) if block.index == index), None) if known else None


def _message(state: State, message: str) -> Message | None:
    return next((known for known in reversed(state.messages) if known.id == message), None)


def _project(event: events.Event, before: State, after: State, agent: str | None) -> list[Told]:
    """What is told of an event, but for the agent's status."""
    match event:
        case events.TextDelta() | events.ThinkingDelta():
            return project_fragment(event)
        case events.ToolOutputDelta():
            return _progress(event, before)

        case events.MessageAdded():
            return _message_added(event, agent or event.agent or after.agent)
        case events.QueueAdded():
            announced = _announce(event.item, event.content, event, event.agent or after.agent)
            is_message = event.trigger == "message" and event.command is None
            return [*([announced] if is_message else []), _queue(after)]
        case events.QueueEdited():
            return [*_edit(event, after), _queue(after)]
        case events.QueueRemoved():
            return [_queue(after), *_take_back(event, before, after)]

        case events.TextFinished():
            segment = Told("text_segment", text=event.text, data=_cut(event), place=1, messages=(event.message,))
            return [*_rest_of(event, before), segment]
        case events.ThinkingFinished():
            return _rest_of(event, before)
        case events.AnswerFinished():
            return [Told("token", "done"), *tell_usage(event, after)]
        case events.AnswerStarted():
            # Another attempt: what the one before it had said does not count.
            return [SYNC] if event.replaces else []

        case events.ToolFinished():
            return _last_line(event, before)
        case events.FilesChanged():
            return [_report(event, after)]

        case events.RequestOpened() | events.RequestResolved():
            return _request(event, before, after)
        case events.PlanUpdated():
            return [_plan(event.plan, after)] if event.plan is not None else [SYNC]

        case events.TurnStarted():
            return [SYNC]
        case events.TurnFinished() | events.TurnInterrupted():
            return _outcome(event, before)

        case events.SubagentStarted():
            data: Json = {
                "parent_id": _speaker(after),
                "subagent_id": event.subagent,
                "agent_id": event.agent,
                "run_id": event.run or "",
                "task": event.task,
            }
            return [Told("run", "subagent_spawned", data=data, messages=_holder(after, event.call))]
        case events.SubagentFinished():
            ended: Json = {
                "parent_id": _speaker(after),
                "subagent_id": event.subagent,
                "run_id": event.run or "",
                "outcome": ENDS[event.outcome],
            }
            return [Told("run", "subagent_result", data=ended)]

        case events.ContextMeasured():
            return [tell_context(event, after)]
        case events.ContextCompressed():
            return [meter(after, event.stage, event.after_tokens)]
        case events.ModelSwitched():
            preferred, actual = event.from_model or "", event.to_model
            switched: Json = {
                "preferred": preferred,
                "actual": actual,
                "reason": event.reason,
                "preferred_model": preferred,
                "actual_model": actual,
            }
            return [Told("model_fallback", data=switched)]

        case events.MissionTriggered():
            return [tell_wake(event.prompt[:PREVIEW_CHARS] if event.prompt else None, event.agent, event.target)]
        case events.MissionSet() | events.MissionCleared() | events.AgentOverridden():
            return [SYNC]

        case (
            events.TurnStatus()
            | events.ToolInputDelta()
            | events.ToolCalled()
            | events.ToolStarted()
            | events.LogCompacted()
        ):
            return []  # The agent's status says it, or the next event does.
        case (
            events.ConversationCreated()
            | events.ConversationUpdated()
            | events.ConversationDeleted()
            | events.DraftSet()
            | events.DraftCleared()
            | events.MessageEdited()
            | events.MessageRemoved()
            | events.MessageTruncated()
            | events.CitationAdded()
            | events.ExchangeSent()
            | events.ExchangeReturned()
            | events.KnowledgeRecalled()
            | events.ProcessStarted()
            | events.ProcessFinished()
            | events.GrantAdded()
            | events.GrantRemoved()
            | events.UnknownEvent()
        ):
            return [SYNC]
        case _:
            assert_never(event)


def project_fragment(event: events.TextDelta | events.ThinkingDelta) -> list[Told]:
    return [_token(event, event.text)]


def _speaker(state: State) -> str:
    return state.turn.agent if state.turn else state.agent


# -- words


def _message_added(event: events.MessageAdded, agent: str) -> list[Told]:
    if event.item is not None and event.event_kind is None:
        return []  # It was announced when it was queued.
    if event.hidden or event.role not in ("user", "assistant", "system", "event"):
        return [SYNC]
    content = event.content if event.blocks is None else ()
    text = plain_text(content) if event.blocks is None else texts(event.blocks)
    return [_announce(event.message, content, event, agent, event.role, text)]


def _announce(
    message: str,
    content: Content,
    event: events.MessageAdded | events.QueueAdded | events.QueueEdited,
    agent: str,
    role: Role = "user",
    text: str | None = None,
) -> Told:
    data: Json = {"from": sender_of(event.origin), "to": agent, "role": ROLES.get(role, "system")}
    if role == "assistant":
        data |= {"from": agent, "to": USER}
    words = plain_text(content) if text is None else text
    return Told("message", None, words, data, message, messages=(message,))


def sender_of(origin: Origin | None) -> str:
    """From whom a message to an agent is: another agent, the mission that wakes it, else a person."""
    if origin is None:
        return USER
    return origin.agent or (MISSION if origin.face == MISSION else USER)


def _take_back(event: events.QueueRemoved, before: State, after: State) -> list[Told]:
    if event.reason != "cancelled":
        return []
    item = next((known for known in before.queue if known.id == event.item), None)
    # It had been announced.
    return [*([awake(after)] if item is not None and item.trigger == "idle" else []), SYNC]


def _edit(event: events.QueueEdited, after: State) -> list[Told]:
    """The announced message says something else now; it has the same id."""
    if event.content is None:
        return []
    item = next((known for known in after.queue if known.id == event.item), None)
    return [_announce(event.item, event.content, event, (item.agent if item else None) or after.agent)]


def _queue(after: State) -> Told:
    items = [_queue_item(item, after) for item in after.queue]
    waiting = tuple(item.id for item in after.queue)
    return Told("queue", data={"items": items}, id=f"queue-{after.conversation}", messages=waiting)


def _queue_item(item: QueueItem, after: State) -> Json:
    return {
        "id": item.id,
        "agent_id": item.agent or after.agent,
        "session_id": after.conversation,
        "preview": " ".join(words_of(item).split())[:PREVIEW_CHARS],
        "timestamp": item.ts,
    }


def _token(event: Streamed, text: str) -> Told:
    is_thought = isinstance(event, events.ThinkingDelta | events.ThinkingFinished)
    return Told("token", text=text, data={"thinking": True} if is_thought else None, messages=(event.message,))


def _rest_of(event: events.TextFinished | events.ThinkingFinished, before: State) -> list[Told]:
    """What a finished block holds beyond its fragments: all of it where a backend sends none."""
    known = _block(before, event.message, event.block)
    streamed = known.text if isinstance(known, TextBlock | ThinkingBlock) else ""
    rest = event.text[len(streamed) :] if event.text.startswith(streamed) else ""
    return [_token(event, rest)] if rest else []


def _cut(event: events.TextFinished) -> Json | None:
    """A text that outgrew its event: where all of it is."""
    return {"truncated": True, "url": f"/api/blobs/{event.blob.id}"} if event.blob else None


# -- tools


def _progress(event: events.ToolOutputDelta, before: State) -> list[Told]:
    tool = find_call(before, event.call)
    if tool is None:
        return []
    *lines, _ = _LINE_END.split(_unfinished_line(tool.output) + event.text)
    if len(lines) > LINES_AT_ONCE:
        lines = [f"[… {len(lines) - LINES_AT_ONCE:,} lines …]", *lines[-LINES_AT_ONCE:]]
    return [_line(tool.name, line, event.stream, _holder(before, event.call)) for line in lines]


def _unfinished_line(output: str) -> str:
    """What stands after the last line end."""
    return _LINE_END.split(output[-LINE_CHARS:])[-1]


def _line(tool: str, line: str, stream: str, messages: tuple[str, ...]) -> Told:
    return Told("tool_progress", data={"tool": tool, "line": line[:LINE_CHARS], "stream": stream}, messages=messages)


def _holder(state: State, call: str | None) -> tuple[str, ...]:
    """The message that made a call."""
    for message in reversed(state.messages):
        if any(isinstance(block, ToolBlock) and block.call == call for block in message.blocks):
            return (message.id,)
    return ()


def _last_line(event: events.ToolFinished, before: State) -> list[Told]:
    tool = find_call(before, event.call)
    rest = _unfinished_line(tool.output) if tool is not None and tool.status == "running" else ""
    return [_line(tool.name, rest, "stdout", _holder(before, event.call))] if tool is not None and rest else []


def _report(event: events.FilesChanged, after: State) -> Told:
    shown = event.files[:CHANGED_FILES]
    left_out = event.truncated_count + len(event.files) - len(shown)
    files = [{"path": one.path, "summary": _summary(one), "diff": (one.diff or "")[:DIFF_CHARS]} for one in shown]
    data: Json = {"files": files, "truncated_count": left_out}
    return Told("run", "change_report", data=data, messages=_holder(after, event.call))


def _summary(change: FileChange) -> str:
    return f"{change.kind} (+{change.additions} −{change.deletions})"  # noqa: RUF001


# -- requests and plans


def _request(event: events.RequestOpened | events.RequestResolved, before: State, after: State) -> list[Told]:
    # What opens is in the view after it; what ends may only be in the one before.
    request = find_request(after, event.request) or find_request(before, event.request)
    if request is None:
        return [SYNC]
    known = find_request(before, event.request)
    if isinstance(event, events.RequestResolved) and known is not None and known.status != "open":
        return []  # The first answer was the answer.
    if request.kind == "plan":
        return _propose_plan(event, request.plan, after)
    if isinstance(event, events.RequestOpened):
        return [Told("ask_user", data=question_of(request), id=request.id, messages=_holder(after, request.call))]
    status = event.status if event.status in ("answered", "expired") else "cancelled"
    return [Told("ask_user", "resolved", data={"question_id": request.id, "status": status}, id=request.id)]


def _propose_plan(event: events.RequestOpened | events.RequestResolved, plan: Plan | None, after: State) -> list[Told]:
    if plan is None:
        return [SYNC]
    if isinstance(event, events.RequestOpened):
        return [_plan(plan, after)]
    # A plan that is dropped has no word of its own.
    return [_plan(replace(plan, status="approved"), after)] if event.verdict == "allow" else [SYNC]


def _plan(plan: Plan, after: State) -> Told:
    return Told("run", "plan_update", data={"plan": plan_data(plan)}, id=f"plan-{after.conversation}")


# -- a turn's end


def _outcome(event: events.TurnFinished | events.TurnInterrupted, before: State) -> list[Told]:
    if before.turn is None or before.turn.id != event.turn:
        return []
    word, why = "cancelled", None
    if isinstance(event, events.TurnFinished):
        why = event.error.message if event.error else event.summary
        word = _word(event, before)
    last = [message.id for message in messages_of_turn(before, before.turn.id) if message.role == "assistant"][-1:]
    return [Told("run", "outcome", why, {"outcome": word}, agent=before.turn.agent, messages=tuple(last))]


def _word(event: events.TurnFinished, before: State) -> str:
    match event.outcome:
        case "failed":
            return "error"
        case "interrupted":
            return "cancelled"
        case "task" | "plan":
            return event.outcome
        case "completed" | "yielded" | "limited":
            if any(tool.changes for tool in tools_of_turn(before, event.turn or "")):
                return "patch"
            return "plan_mode_requested" if _is_planning(before) else "none"


def _is_planning(state: State) -> bool:
    """Plan mode was asked for. A run in it that ends otherwise than with a plan has only that to say."""
    mode = state.turn.mode if state.turn and state.turn.mode else state.params.get("mode")
    return bool(mode == "plan")

"""Events as the frames of this contract: pure.

`project(event, memory)` says what is told of one event and moves the memory on. Live and replay are this one function, so a
reload renders what was rendered: same frames, same order, same fields. Every frame has the event's `sequence`; where an
event makes several, they share it and differ in `id`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from palaver.core import queue, requests
from palaver.core.exchanges import ENDS
from palaver.core.state import OPEN_TOOL
from palaver.faces.projected import Told
from palaver.faces.socket.asking import SCOPES, interaction
from palaver.faces.socket.memory import Call, Kind, Memory, Writing
from palaver.faces.socket.sessions import is_list_news, session_frame
from palaver.schema.base import BlobRef, Origin
from palaver.schema.content import ImagePart, TextPart, plain_text
from palaver.schema.events import (
    AnswerStarted,
    Event,
    ExchangeReturned,
    ExchangeSent,
    KnownEvent,
    MessageAdded,
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
    UnknownEvent,
)
from palaver.schema.view import ImageBlock, QueueItem, State, Stopped, TextBlock, ThinkingBlock, ToolBlock, ToolError

Json = dict[str, Any]

FACE = "socket"
GAP = "gap"
"""Marks a place where live frames are missing; a reader reads them from the log."""

ERROR_CODES = {
    "tool_interrupted": "tool_interrupted",
    "interaction_timeout": "interaction_timeout",
    "no_answer": "interaction_unavailable",
    "bad_arguments": "invalid_arguments",
    "invalid": "invalid_arguments",
    "limit_reached": "rate_limit_tools",
    "rate_limit_tools": "rate_limit_tools",
    "busy": "rate_limit_tools",
}
"""Of a failed call, in the contract's words; any other code is plainly `tool_error`."""

BROKEN_OFF: dict[Stopped, str] = {
    "restart": "The server was restarted in the middle of the answer. Send again to go on.",
    "shutdown": "The server was stopped in the middle of the answer. Send again to go on.",
    "limit": "A limit was reached.",
    "backend_exit": "The agent's program ended in the middle of its answer. Send again to go on.",
    "storage": "The server's disk could not take the answer.",
}
"""Ends that were nobody's wish; they are also told as an `error`."""


class SocketProjector:
    """The live end: one a conversation, whoever reads."""

    def __init__(self, memory: Memory, renew: Callable[[State], Memory]) -> None:
        """`renew` gives the memory at a view that takes the place of the one before."""
        self._memory = memory
        self._renew = renew

    def project(self, event: Event, before: State, after: State, number: int) -> Sequence[Told]:
        return told(event, self._memory)

    def renewed(self, state: State, number: int) -> Sequence[Told]:
        self._memory = self._renew(state)
        return (Told(b"", (GAP, str(state.seq))),)


def told(event: Event, memory: Memory) -> list[Told]:
    """The frames of an event, encoded. About its number, and about the connection that need not hear of its own words."""
    if isinstance(event, UnknownEvent):
        return []
    about = (str(event.seq), *sender_of(event))
    return [Told(encoded(frame), about) for frame in project(event, memory)]


def encoded(frame: Json) -> bytes:
    return msgspec.json.encode(frame, enc_hook=str) + b"\n"


def sender_of(event: KnownEvent) -> tuple[str, ...]:
    """The connection that sent a message, and shows it already."""
    origin = event.origin
    is_ours = isinstance(event, MessageAdded) and origin is not None and origin.face == FACE
    return (origin.client,) if is_ours and origin is not None and origin.client else ()


def project(event: KnownEvent, memory: Memory) -> list[Json]:
    """Every frame that is told of an event, in order."""
    frames: list[Json] = []
    for number, (kind, fields) in enumerate(_told(event, memory)):
        frame: Json = {
            "type": kind,
            "sessionId": event.conversation,
            "sequence": event.seq,
            "id": f"{event.id}.{number}" if number else event.id,
        }
        if event.exchange:
            frame["agentExchangeId"] = event.exchange
        frames.append({**frame, **fields})
    return frames


Said = Iterable[tuple[str, Json]]


def _told(event: KnownEvent, memory: Memory) -> Said:
    match event:
        # Deltas first: nine events of ten are deltas.
        case TextDelta():
            return _grown(event, "text", memory)
        case ThinkingDelta():
            return _grown(event, "thinking", memory)
        case ToolOutputDelta():
            return _output(event, memory)
        case ToolInputDelta():
            if event.message in memory.answers and event.call not in memory.calls:
                memory.calls[event.call] = Call(event.message, event.name, told=False)
            return ()
        case TextFinished():
            return _finished(event, "text", memory)
        case ThinkingFinished():
            return _finished(event, "thinking", memory)
        case ToolCalled():
            return _called(event, memory)
        case ToolStarted():
            if call := memory.calls.get(event.call):
                call.runs = True
            return ()
        case ToolFinished():
            return _result(event, memory)
        case AnswerStarted():
            memory.answers.add(event.message)
            return _taken_back(event.replaces, memory) if event.replaces else ()
        case TurnStarted():
            memory.begin_turn(event.turn)
            return ()
        case TurnFinished():
            return _ended(event, memory)
        case TurnInterrupted():
            return _cancelled(event, memory)
        case RequestOpened():
            return _asked(event, memory)
        case RequestResolved():
            return _answered(event, memory)
        case QueueAdded() | QueueEdited() | QueueRemoved():
            return _queue(event, memory)
        case MessageAdded():
            return _message(event, memory)
        case ExchangeSent():
            memory.exchanges[event.exchange] = event.mode == "async"
            return ()
        case ExchangeReturned():
            return _returned(event, memory)
        case _:
            return (session_frame(event),) if is_list_news(event) else ()


# -- text and thinking


def _grown(event: TextDelta | ThinkingDelta, kind: Kind, memory: Memory) -> Said:
    place = (event.message, event.block)
    if not event.text or event.message not in memory.answers or place in memory.written:
        return
    writing = memory.writing.get(place)
    if writing is None:
        writing = memory.writing[place] = Writing(kind)
        if kind == "thinking":
            yield _block("thinking_start", event.message, event.block)
    if writing.kind != kind:
        return
    writing.text += event.text
    memory.said = event.message
    yield _block(f"{kind}_delta", event.message, event.block, delta=event.text)


def _finished(event: TextFinished | ThinkingFinished, kind: Kind, memory: Memory) -> Said:
    place = (event.message, event.block)
    if event.message not in memory.answers or place in memory.written:
        return
    memory.written.add(place)
    writing = memory.writing.pop(place, None)
    if writing is None or writing.kind != kind:
        if not event.text:
            return
        # A backend that delivers whole items: the same grammar, in one breath.
        yield from _begun_whole(kind, event.message, event.block, event.text)
    memory.said = event.message
    blob = event.blob if isinstance(event, TextFinished) else None
    yield _done(kind, event.message, event.block, event.text, interrupted=event.interrupted, blob=blob)


def _begun_whole(kind: Kind, message: str, block: int, text: str) -> Said:
    if kind == "thinking":
        yield _block("thinking_start", message, block)
    yield _block(f"{kind}_delta", message, block, delta=text)


def _block(kind: str, message: str, block: int, **fields: object) -> tuple[str, Json]:
    return kind, {"responseId": message, "block": block, **fields}


def _done(
    kind: Kind, message: str, block: int, text: str, *, interrupted: bool = False, blob: BlobRef | None = None
) -> tuple[str, Json]:
    more: Json = {"interrupted": True} if interrupted else {}
    if blob is not None:
        more["blob"] = msgspec.to_builtins(blob)
    return _block(f"{kind}_done", message, block, text=text, **more)


def _taken_back(message: str, memory: Memory) -> Said:
    """A new attempt takes the place of one that was cut: what had been told of that one is ended."""
    memory.answers.discard(message)
    for place in sorted(place for place in memory.writing if place[0] == message):
        writing = memory.writing.pop(place)
        yield _done(writing.kind, message, place[1], writing.text, interrupted=True)
    for known, call in list(memory.calls.items()):
        if call.message == message and not (call.runs or call.waits):
            del memory.calls[known]
            if call.told:
                error = ToolError(code="tool_interrupted", message="The answer was begun anew; nothing was done.")
                yield "tool_result", _outcome(known, call.name, ok=False, error=error)


# -- calls


def _called(event: ToolCalled, memory: Memory) -> Said:
    known = memory.calls.get(event.call)
    if event.message not in memory.answers or (known is not None and known.told):
        return
    memory.calls[event.call] = Call(event.message, event.name)
    memory.writing.pop((event.message, event.block), None)
    memory.written.add((event.message, event.block))
    memory.said = event.message
    yield _start(event.message, event.call, event.name, event.input)


def _start(message: str, call: str, name: str, given: object) -> tuple[str, Json]:
    arguments = "{}" if given is None else msgspec.json.encode(given, enc_hook=str).decode()
    return "tool_call_start", {"responseId": message, "callId": call, "toolName": name, "arguments": arguments}


def _output(event: ToolOutputDelta, memory: Memory) -> Said:
    call = memory.calls.get(event.call)
    if call is None or not event.text:
        return
    offset, call.output_chars = call.output_chars, call.output_chars + len(event.text)
    yield (
        "tool_output_delta",
        {"callId": event.call, "toolName": call.name, "delta": event.text, "offset": offset},
    )


def _result(event: ToolFinished, memory: Memory) -> Said:
    """The first result is the result."""
    call = memory.calls.pop(event.call, None)
    if call is None:
        return
    if not call.told:
        # Stopped while its arguments were still being written: it was a call of the batch, and has its one result.
        memory.said = call.message
        yield _start(call.message, event.call, call.name, None)
    yield (
        "tool_result",
        _outcome(
            event.call,
            call.name,
            ok=event.ok,
            output=event.output,
            error=event.error,
            truncated=event.truncated,
            lines=event.total_lines,
            size_bytes=event.total_bytes,
        ),
    )


def _outcome(
    call: str,
    name: str,
    *,
    ok: bool,
    output: str = "",
    error: ToolError | None = None,
    truncated: bool = False,
    lines: int | None = None,
    size_bytes: int | None = None,
) -> Json:
    outcome: Json = {"callId": call, "toolName": name, "ok": ok}
    if ok or output:
        outcome["result"] = output
    if not ok:
        code, why = (error.code, error.message) if error else ("tool_error", "The tool failed.")
        outcome["error"] = {"code": ERROR_CODES.get(code, "tool_error"), "message": why}
    if truncated:
        outcome["truncated"] = True
    if lines is not None:
        outcome["totalLines"] = lines
    if size_bytes is not None:
        outcome["totalBytes"] = size_bytes
    return outcome


# -- interactions


def _asked(event: RequestOpened, memory: Memory) -> Said:
    if event.request in memory.requests:
        return
    request = memory.requests[event.request] = requests.opened(event)
    if event.call and (call := memory.calls.get(event.call)):
        call.waits = True
    yield "interaction_request", interaction(request)


def _answered(event: RequestResolved, memory: Memory) -> Said:
    request = memory.requests.pop(event.request, None)
    if request is None:
        return
    if request.call and (call := memory.calls.get(request.call)):
        call.waits = False
    fields = {**interaction(request), "status": event.status}
    if event.status == "answered":
        declined = event.verdict == "deny"
        words = ("cancel", "submit") if request.kind == "question" else ("deny", "approve")
        fields["action"] = words[0] if declined else words[1]
        scope = next((word for word, scope in SCOPES.items() if scope == event.scope), None)
        if request.kind == "approval" and scope and not declined:
            fields["approvalScope"] = scope
    if event.text:
        fields["reason"] = event.text
    yield "interaction_resolved", fields


# -- messages and the queue


def _message(event: MessageAdded, memory: Memory) -> Said:
    if event.hidden:
        return
    if event.role == "user":
        yield "user_message", _user_message(event)
    elif event.role == "assistant" and event.blocks is not None:
        yield from _restored(event, memory)


def _user_message(event: MessageAdded) -> Json:
    text = plain_text(event.content) or "\n".join(
        block.text for block in event.blocks or () if isinstance(block, TextBlock)
    )
    fields: Json = {"messageId": event.message, "text": text, **_from(event.origin)}
    if images := _images(event):
        fields["images"] = images
    blob = next((part.blob for part in event.content if isinstance(part, TextPart) and part.blob), None)
    if blob is not None:
        fields["blob"] = msgspec.to_builtins(blob)
    if event.client_request_id and not _is_agents(event.origin):
        fields["clientMessageId"] = event.client_request_id
    return fields


def _from(origin: Origin | None) -> Json:
    if origin is None or not _is_agents(origin):
        return {}
    told = {"fromAgentId": origin.agent, "fromSessionId": origin.conversation}
    return {name: value for name, value in told.items() if value}


def _is_agents(origin: Origin | None) -> bool:
    return origin is not None and origin.agent is not None


def _images(event: MessageAdded) -> list[str]:
    return [part.image_url.url for part in event.content if isinstance(part, ImagePart)] or [
        block.url for block in event.blocks or () if isinstance(block, ImageBlock)
    ]


def _restored(event: MessageAdded, memory: Memory) -> Said:
    """An answer that comes whole, from a branch or from elsewhere: the same grammar as one that is given now."""
    for block in event.blocks or ():
        match block:
            case TextBlock() | ThinkingBlock() if block.text:
                kind: Kind = "text" if isinstance(block, TextBlock) else "thinking"
                yield from _begun_whole(kind, event.message, block.index, block.text)
                interrupted = block.status == "interrupted"
                yield _done(kind, event.message, block.index, block.text, interrupted=interrupted)
            case ToolBlock():
                yield _start(event.message, block.call, block.name, block.input)
                if block.status in OPEN_TOOL:
                    memory.calls[block.call] = Call(event.message, block.name)
                    continue
                yield (
                    "tool_result",
                    _outcome(
                        block.call,
                        block.name,
                        ok=block.status == "ok",
                        output=block.output,
                        error=block.error,
                        truncated=block.truncated,
                        lines=block.total_lines,
                        size_bytes=block.total_bytes,
                    ),
                )
            case _:
                pass


def _queue(event: QueueAdded | QueueEdited | QueueRemoved, memory: Memory) -> Said:
    match event:
        case QueueAdded():
            memory.waiting = queue.added(memory.waiting, event)
        case QueueEdited():
            memory.waiting = queue.edited(memory.waiting, event)
        case QueueRemoved():
            was_there = memory.place_in_queue(event.item) is not None
            memory.waiting = queue.removed(memory.waiting, event.item)
            return (("message_dequeued", {"messageId": event.item, "reason": event.reason}),) if was_there else ()
    found = memory.place_in_queue(event.item)
    return (("message_queued", _queued(*found)),) if found else ()


def _queued(place: int, item: QueueItem) -> Json:
    by_agent = item.trigger == "callback" or _is_agents(item.origin)
    fields: Json = {
        "messageId": item.id,
        "text": plain_text(item.content),
        "position": place,
        "source": "agent" if by_agent else "user",
        **_from(item.origin),
    }
    if item.client_request_id and not by_agent:
        fields["clientMessageId"] = item.client_request_id
    return fields


# -- how a turn ends, and what other agents answer


def _ended(event: TurnFinished, memory: Memory) -> Said:
    if event.turn != memory.turn:
        return ()
    memory.begin_turn(None)
    if event.error is None:
        return ()
    error: Json = {"code": event.error.code, "message": event.error.message}
    if event.error.retryable:
        error["retryable"] = True
    return (("error", error),)


def _cancelled(event: TurnInterrupted, memory: Memory) -> Said:
    if event.turn != memory.turn:
        return
    said = memory.said
    memory.begin_turn(None)
    if why := BROKEN_OFF.get(event.reason):
        yield "error", {"code": event.reason, "message": event.detail or why, "retryable": True}
    fields: Json = {"responseId": said} if said else {}
    if event.audio_end_ms is not None:
        fields["audioEndMs"] = event.audio_end_ms
    yield "output_cancelled", fields


def _returned(event: ExchangeReturned, memory: Memory) -> Said:
    callback = memory.exchanges.get(event.exchange)
    if callback is None:
        return
    if event.status not in ENDS:
        memory.exchanges[event.exchange] = callback or event.status == "queued"
        return
    del memory.exchanges[event.exchange]
    if callback:
        # The response is known here by its exchange: the id that its own conversation's frames carry.
        yield "agent_callback_result", {"responseId": event.exchange, "result": event.response or ""}

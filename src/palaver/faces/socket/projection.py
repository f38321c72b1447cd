"""Events as the frames of this contract: pure.

`project(event, memory)` says what is told of one event and moves the memory on. Live and replay are this one function, so a
reload renders what was rendered: same frames, same order, same fields. Every frame has a `sequence` of its own (`sequence`)
and the time of its event. A run is one turn: all its frames have the turn's id as `responseId`.
"""

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from palaver.core.exchanges import ENDS
from palaver.core.fold import requests
from palaver.faces.http.timestamps import iso
from palaver.faces.http.websocket_frames import frame_text
from palaver.faces.long_texts import is_cut
from palaver.faces.projection import Told
from palaver.faces.socket import answers, calls, messages
from palaver.faces.socket.frame_types import Json, Said
from palaver.faces.socket.interactions import SCOPES, interaction
from palaver.faces.socket.memory import Call, Memory
from palaver.faces.socket.sequence import sequence_of
from palaver.faces.socket.sessions import is_list_news, session_frame
from palaver.schema import events
from palaver.schema.view import State, Stopped

FACE = "socket"
GAP = "gap"
"""Marks a place where live frames are missing; a reader reads them from the log."""

BROKEN_OFF: dict[Stopped, str] = {
    "restart": "The server was restarted in the middle of the answer. Send again to go on.",
    "shutdown": "The server was stopped in the middle of the answer. Send again to go on.",
    "limit": "A limit was reached.",
    "backend_exit": "The agent's program ended in the middle of its answer. Send again to go on.",
    "storage": "The server's disk could not take the answer.",
}
"""Ends that were nobody's wish; they are also told as an `error`."""
REASONS: dict[Stopped, str] = {"user": "user_cancel"}
"""Why an output was cancelled, where the contract has a word of its own; else it is that of the log."""


class SocketProjector:
    """The live end: one a conversation, whoever reads."""

    def __init__(self, memory: Memory, renew: Callable[[State], Memory]) -> None:
        """`renew` gives the memory at a view that takes the place of the one before."""
        self._memory = memory
        self._renew = renew
        self._cut_turn: str | None = None
        """A run of which the memory holds only the beginning of a text: its `text_done` is read from the log."""

    def project(self, event: events.Event, before: State, after: State) -> Sequence[Told]:
        memory = self._memory
        event, before_turn = _with_whole_text(event, memory), memory.turn
        frames = encode_event(event, memory)
        if is_cut(event):
            # Its text outgrew the event; who reads gets the whole of it from the log, as every later reader will.
            self._cut_turn = memory.turn if _is_said(event) else self._cut_turn
            return (_gap(event.seq),)
        if frames and self._cut_turn is not None and self._cut_turn == before_turn and _may_end_text(event):
            return (_gap(event.seq),)
        return frames

    def renewed(self, state: State) -> Sequence[Told]:
        self._memory = self._renew(state)
        self._cut_turn = None
        return (_gap(state.seq),)


def _is_said(event: events.Event) -> bool:
    return isinstance(event, events.TextFinished) or (
        isinstance(event, events.MessageAdded) and event.role == "assistant"
    )


def _may_end_text(event: events.Event) -> bool:
    """Whether an event gives the `text_done` of its run."""
    match event:
        case events.TurnFinished() | events.TurnInterrupted():
            return True
        case events.TextFinished() | events.ThinkingFinished() | events.ToolFinished():
            return event.cancelled
        case _:
            return False


def _gap(seq: int) -> Told:
    return Told(b"", (GAP, str(seq)))


def _with_whole_text(event: events.Event, memory: Memory) -> events.Event:
    """A text that outgrew its event, from its fragments."""
    if not isinstance(event, events.TextFinished) or event.blob is None:
        return event
    writing = memory.writing.get((event.message, event.block))
    if writing is None or len(writing.text.encode()) != event.blob.size:
        return event
    return replace(event, text=writing.text, blob=None)


def encode_event(event: events.Event, memory: Memory, after: int = 0) -> list[Told]:
    """The frames of an event in one piece, encoded; `after` leaves out those up to that sequence. About the event's
    number, and about the connection that need not hear of its own words."""
    if isinstance(event, events.UnknownEvent):
        return []
    frames = [encode_frame(frame) for frame in project(event, memory) if frame["sequence"] > after]
    return [Told(b"".join(frames), (str(event.seq), *sender_of(event)))] if frames else []


_encoder = msgspec.json.Encoder(enc_hook=str)


def encode_frame(frame: Json) -> bytes:
    """As it goes over a socket: framed once, for everybody who gets it."""
    return frame_text(_encoder.encode(frame))


def sender_of(event: events.KnownEvent) -> tuple[str, ...]:
    """The connection that sent a message, and shows it already."""
    origin = event.origin
    is_ours = isinstance(event, events.MessageAdded) and origin is not None and origin.face == FACE
    return (origin.client,) if is_ours and origin is not None and origin.client else ()


def project(event: events.KnownEvent, memory: Memory) -> list[Json]:
    """Every frame that is told of an event, in order."""
    said = list(_project(event, memory))
    frames: list[Json] = []
    # Counted from the end: the last keeps the event's own id, whether or not a start or a delta had to be said before it.
    for left, (kind, fields) in zip(range(len(said) - 1, -1, -1), said, strict=True):
        frame: Json = {
            "type": kind,
            "sessionId": event.conversation,
            "sequence": sequence_of(event.seq, left),
            "timestamp": iso(event.ts),
            "id": f"{event.id}.{left}" if left else event.id,
        }
        if event.exchange:
            frame["agentExchangeId"] = event.exchange
        frames.append({**frame, **fields})
    return frames


def _project(event: events.KnownEvent, memory: Memory) -> Said:
    match event:
        # Deltas first: nine events of ten are deltas.
        case events.TextDelta():
            return answers.grow(event, "text", memory)
        case events.ThinkingDelta():
            return answers.grow(event, "thinking", memory)
        case events.ToolOutputDelta():
            return calls.output(event, memory)
        case events.ToolInputDelta():
            if event.message in memory.answers and event.call not in memory.calls:
                memory.calls[event.call] = Call(event.message, memory.turn or event.message, event.name, told=False)
            return ()
        case events.TextFinished():
            return answers.finish(event, "text", memory)
        case events.ThinkingFinished():
            return answers.finish(event, "thinking", memory)
        case events.ToolCalled():
            return calls.start_call(event, memory)
        case events.ToolStarted():
            if call := memory.calls.get(event.call):
                call.runs = True
            return ()
        case events.ToolFinished():
            return _result(event, memory)
        case events.AnswerStarted():
            return _begin_run(event, memory)
        case events.TurnStarted():
            memory.begin_turn(event.turn)
            return ()
        case events.TurnFinished():
            return _end_run(event, memory)
        case events.TurnInterrupted():
            return _cancel_run(event, memory)
        case events.RequestOpened():
            return _open_interaction(event, memory)
        case events.RequestResolved():
            return _close_interaction(event, memory)
        case events.QueueAdded() | events.QueueEdited() | events.QueueRemoved():
            return messages.in_queue(event, memory)
        case events.MessageAdded():
            return messages.message(event, memory)
        case events.ExchangeSent():
            memory.exchanges[event.exchange] = event.mode == "async"
            return ()
        case events.ExchangeReturned():
            return _return_exchange(event, memory)
        case _:
            return (session_frame(event),) if is_list_news(event) else ()


# -- interactions


def _open_interaction(event: events.RequestOpened, memory: Memory) -> Said:
    if event.request in memory.requests:
        return
    request = memory.requests[event.request] = requests.request_of(event)
    if event.call and (call := memory.calls.get(event.call)):
        call.waits = True
    yield "interaction_request", interaction(request)


def _close_interaction(event: events.RequestResolved, memory: Memory) -> Said:
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


# -- how a turn ends, and what other agents answer


def _result(event: events.ToolFinished, memory: Memory) -> Said:
    # What a compacted log says in one piece comes first: what follows it has the number that it had live.
    yield from calls.whole_output(event, memory)
    if event.cancelled:
        yield from answers.cut_short(memory)
    yield from calls.result(event, memory)


def _begin_run(event: events.AnswerStarted, memory: Memory) -> Said:
    if event.replaces:
        yield from answers.take_back(event.replaces, memory)
    memory.begin_answer(event.message)


def _end_run(event: events.TurnFinished, memory: Memory) -> Said:
    if event.turn is None or event.turn != memory.turn:
        return
    text, is_cut_off = memory.text(), bool(memory.cut)
    memory.begin_turn(None)
    if event.error is not None:
        error: Json = {"code": event.error.code, "message": event.error.message}
        if event.error.retryable:
            error["retryable"] = True
        yield "error", error
    yield answers.text_done(event.turn, text, interrupted=is_cut_off)


def _cancel_run(event: events.TurnInterrupted, memory: Memory) -> Said:
    if event.turn != memory.turn:
        return
    if why := BROKEN_OFF.get(event.reason):
        yield "error", {"code": event.reason, "message": event.detail or why, "retryable": True}
    yield from answers.cut_short(memory)
    fields: Json = {"responseId": memory.turn} if memory.said else {}
    memory.begin_turn(None)
    fields["reason"] = REASONS.get(event.reason, event.reason)
    if event.audio_end_ms is not None:
        fields["audioEndMs"] = event.audio_end_ms
    yield "output_cancelled", fields


def _return_exchange(event: events.ExchangeReturned, memory: Memory) -> Said:
    callback = memory.exchanges.get(event.exchange)
    if callback is None:
        return
    if event.status not in ENDS:
        memory.exchanges[event.exchange] = callback or event.status == "queued"
        return
    del memory.exchanges[event.exchange]
    if callback:
        # An older log does not name the run that answered.
        yield "agent_callback_result", {"responseId": event.run or event.exchange, "result": event.response or ""}

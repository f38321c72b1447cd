"""Events as the frames of this contract: pure.

`project(event, memory)` says what is told of one event and moves the memory on. Live and replay are this one function, so a
reload renders what was rendered: same frames, same order, same fields. Every frame has the event's `sequence`; where an
event makes several, they share it and differ in `id`.
"""

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from palaver.core import requests
from palaver.core.exchanges import ENDS
from palaver.faces.framed import framed
from palaver.faces.long_texts import is_cut
from palaver.faces.projected import Told
from palaver.faces.socket import answers, calls, messages
from palaver.faces.socket.asking import SCOPES, interaction
from palaver.faces.socket.memory import Call, Memory
from palaver.faces.socket.sessions import is_list_news, session_frame
from palaver.faces.socket.words import Json, Said
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


class SocketProjector:
    """The live end: one a conversation, whoever reads."""

    def __init__(self, memory: Memory, renew: Callable[[State], Memory]) -> None:
        """`renew` gives the memory at a view that takes the place of the one before."""
        self._memory = memory
        self._renew = renew

    def project(self, event: events.Event, before: State, after: State) -> Sequence[Told]:
        event = _made_whole(event, self._memory)
        frames = told(event, self._memory)
        if is_cut(event):
            # Its text outgrew the event; who reads gets the whole of it from the log, as every later reader will.
            return (Told(b"", (GAP, str(event.seq))),)
        return frames

    def renewed(self, state: State) -> Sequence[Told]:
        self._memory = self._renew(state)
        return (Told(b"", (GAP, str(state.seq))),)


def _made_whole(event: events.Event, memory: Memory) -> events.Event:
    """A text that outgrew its event, from its fragments."""
    if not isinstance(event, events.TextFinished) or event.blob is None:
        return event
    writing = memory.writing.get((event.message, event.block))
    if writing is None or len(writing.text.encode()) != event.blob.size:
        return event
    return replace(event, text=writing.text, blob=None)


def told(event: events.Event, memory: Memory) -> list[Told]:
    """The frames of an event in one piece, encoded: a reader has heard all of an event, or nothing of it. About its
    number, and about the connection that need not hear of its own words."""
    if isinstance(event, events.UnknownEvent):
        return []
    frames = [encoded(frame) for frame in project(event, memory)]
    return [Told(b"".join(frames), (str(event.seq), *sender_of(event)))] if frames else []


_encoder = msgspec.json.Encoder(enc_hook=str)


def encoded(frame: Json) -> bytes:
    """As it goes over a socket: framed once, for everybody who gets it."""
    return framed(_encoder.encode(frame))


def sender_of(event: events.KnownEvent) -> tuple[str, ...]:
    """The connection that sent a message, and shows it already."""
    origin = event.origin
    is_ours = isinstance(event, events.MessageAdded) and origin is not None and origin.face == FACE
    return (origin.client,) if is_ours and origin is not None and origin.client else ()


def project(event: events.KnownEvent, memory: Memory) -> list[Json]:
    """Every frame that is told of an event, in order."""
    said = list(_told(event, memory))
    frames: list[Json] = []
    # Counted from the end: the last keeps the event's own id, whether or not a start or a delta had to be said before it.
    for left, (kind, fields) in zip(range(len(said) - 1, -1, -1), said, strict=True):
        frame: Json = {
            "type": kind,
            "sessionId": event.conversation,
            "sequence": event.seq,
            "id": f"{event.id}.{left}" if left else event.id,
        }
        if event.exchange:
            frame["agentExchangeId"] = event.exchange
        frames.append({**frame, **fields})
    return frames


def _told(event: events.KnownEvent, memory: Memory) -> Said:
    match event:
        # Deltas first: nine events of ten are deltas.
        case events.TextDelta():
            return answers.grown(event, "text", memory)
        case events.ThinkingDelta():
            return answers.grown(event, "thinking", memory)
        case events.ToolOutputDelta():
            return calls.output(event, memory)
        case events.ToolInputDelta():
            if event.message in memory.answers and event.call not in memory.calls:
                memory.calls[event.call] = Call(event.message, event.name, told=False)
            return ()
        case events.TextFinished():
            return answers.finished(event, "text", memory)
        case events.ThinkingFinished():
            return answers.finished(event, "thinking", memory)
        case events.ToolCalled():
            return calls.called(event, memory)
        case events.ToolStarted():
            if call := memory.calls.get(event.call):
                call.runs = True
            return ()
        case events.ToolFinished():
            return calls.result(event, memory)
        case events.AnswerStarted():
            memory.answers.add(event.message)
            return answers.taken_back(event.replaces, memory) if event.replaces else ()
        case events.TurnStarted():
            memory.begin_turn(event.turn)
            return ()
        case events.TurnFinished():
            return _ended(event, memory)
        case events.TurnInterrupted():
            return _cancelled(event, memory)
        case events.RequestOpened():
            return _asked(event, memory)
        case events.RequestResolved():
            return _answered(event, memory)
        case events.QueueAdded() | events.QueueEdited() | events.QueueRemoved():
            return messages.in_queue(event, memory)
        case events.MessageAdded():
            return messages.message(event, memory)
        case events.ExchangeSent():
            memory.exchanges[event.exchange] = event.mode == "async"
            return ()
        case events.ExchangeReturned():
            return _returned(event, memory)
        case _:
            return (session_frame(event),) if is_list_news(event) else ()


# -- interactions


def _asked(event: events.RequestOpened, memory: Memory) -> Said:
    if event.request in memory.requests:
        return
    request = memory.requests[event.request] = requests.opened(event)
    if event.call and (call := memory.calls.get(event.call)):
        call.waits = True
    yield "interaction_request", interaction(request)


def _answered(event: events.RequestResolved, memory: Memory) -> Said:
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


def _ended(event: events.TurnFinished, memory: Memory) -> Said:
    if event.turn != memory.turn:
        return ()
    memory.begin_turn(None)
    if event.error is None:
        return ()
    error: Json = {"code": event.error.code, "message": event.error.message}
    if event.error.retryable:
        error["retryable"] = True
    return (("error", error),)


def _cancelled(event: events.TurnInterrupted, memory: Memory) -> Said:
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


def _returned(event: events.ExchangeReturned, memory: Memory) -> Said:
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

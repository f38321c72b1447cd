"""Events as the frames of this face: what each changes of the messages, the thread and the runtime. Pure.

The projector compares the views before and after an event, so whatever a snapshot shows is what the frames before it led to.
It keeps the numbers: the next frame is `seq + 1`, the same for every reader. An ack of something that changed nothing is told
with the number as it stands.

Needs the whole view: `index` counts all messages.
"""

from collections.abc import Iterator, Sequence

from palaver.core.openai_index import index_of, is_draft
from palaver.faces.chats.messages import Json, entries
from palaver.faces.chats.snapshot import (
    activity_of,
    encode_frame,
    first_seq,
    passing,
    patch_of,
    runtime_of,
    snapshot_frame,
    status_of,
    thread_of,
)
from palaver.faces.chats.states import between
from palaver.faces.projection import Told
from palaver.schema.events import (
    AnswerStarted,
    Event,
    MessageRemoved,
    MessageTruncated,
    RequestOpened,
    RequestResolved,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    TurnFinished,
    TurnStarted,
)
from palaver.schema.view import Message, State, TextBlock, ThinkingBlock

Frame = tuple[str, Json]
"""Its type and fields."""

_ACTIVITY = ("state", "error", "is_compressing", "compression_phase", "compression_reason", "compression_strength")


class ChatsProjector:
    def __init__(self, state: State) -> None:
        self.seq = first_seq(state)
        self._chat = state.conversation
        self._thread = thread_of(state)
        self._runtime = runtime_of(state)
        self._owes_runtime = False
        self._delta: Json | None = None
        """The operations of events that came together, which make one frame."""
        self._asked: tuple[Event, State] | None = None
        """Calls are asked for, and decided, several at once: the last of those events, whose view has all of them."""

    def project(self, event: Event, before: State, after: State) -> Sequence[Told]:
        told = [] if _asks(event) else self._pause()
        return [*told, *(one for frame in self._frames(event, before, after) for one in self._frame(*frame))]

    def gathered(self) -> Sequence[Told]:
        return [*self._pause(), *self._flush()]

    def _pause(self) -> list[Told]:
        asked, self._asked = self._asked, None
        return [] if asked is None else [one for frame in self._runtime_frames(*asked) for one in self._frame(*frame)]

    def _flush(self) -> Sequence[Told]:
        delta, self._delta = self._delta, None
        return [] if delta is None else [self._number("stream_delta", delta)]

    def _frame(self, type: str, fields: Json) -> Sequence[Told]:
        if type != "stream_delta":
            return [*self._flush(), self._number(type, fields)]
        if self._delta is not None and self._delta["message_id"] == fields["message_id"]:
            self._delta["ops"] = join_operations(self._delta["ops"], fields["ops"])
            return []
        before, self._delta = self._flush(), {**fields}
        return before

    def renewed(self, state: State) -> Sequence[Told]:
        self.seq = max(self.seq, first_seq(state))
        self._thread, self._runtime, self._owes_runtime = thread_of(state), runtime_of(state), False
        self._delta = self._asked = None
        return [Told(snapshot_frame(state, self.seq))]

    def ack(self, client_request_id: str, accepted: bool, result: Json, *, takes_number: bool) -> Sequence[Told]:
        """The answer to a command, for all who follow."""
        fields: Json = {"client_request_id": client_request_id, "accepted": accepted, "result": result}
        if takes_number:
            # Every command that is taken leaves an event, whose numbers are more than enough for its frames and this one.
            return [self._number("ack", fields)]
        return [Told(encode_frame(self._chat, self.seq, "ack", fields))]

    def _number(self, type: str, fields: Json) -> Told:
        self.seq += 1
        return Told(encode_frame(self._chat, self.seq, type, fields))

    def _frames(self, event: Event, before: State, after: State) -> list[Frame]:
        match event:
            case ToolInputDelta() | ToolOutputDelta() if not self._owes_runtime and before.status == after.status:
                return []  # Arguments and output are told when they are whole.
            case TextDelta() | ThinkingDelta() if not self._owes_runtime:
                grown = _append_fragment(event, before, after)
                if grown is not None:
                    return grown
            case _:
                pass
        frames = [*message_frames(event, before, after), *self._thread_frames(after)]
        if _asks(event):
            self._asked = event, after
            return frames
        return [*frames, *self._runtime_frames(event, after)]

    def _thread_frames(self, after: State) -> Iterator[Frame]:
        known, self._thread = self._thread, thread_of(after)
        if patch := patch_of(known, self._thread):
            yield "thread_updated", patch

    def _runtime_frames(self, event: Event, after: State) -> Iterator[Frame]:
        # Closing a turn passes through states that nobody is in; its end says where it came to rest.
        self._owes_runtime = _is_closing(event, after)
        if self._owes_runtime:
            return
        known, now = self._runtime, runtime_of(after)
        if _is_refused(event, after):
            now |= {name: known.get(name) for name in ("state", "paused")}
        self._runtime = now
        if known["queued_items"] != now["queued_items"]:
            yield "queue_updated", {"queue_size": now["queue_size"], "queued_items": now["queued_items"]}
        if known["pause_reasons"] != now["pause_reasons"]:
            reasons = now["pause_reasons"]
            yield ("pause_required" if reasons else "pause_cleared"), {"reasons": reasons}
        if any(known.get(name) != now.get(name) for name in _ACTIVITY):
            for passed in between(known["state"], now["state"]):
                yield "runtime_updated", passing(passed, after)
            yield "runtime_updated", activity_of(after)


def _asks(event: Event) -> bool:
    """Asks for a decision, is one, or goes on with it where a restart had ended the turn that asked."""
    match event:
        case RequestOpened() | RequestResolved():
            return True
        case TurnStarted():
            return event.trigger.kind == "request"
        case _:
            return False


def _is_refused(event: Event, after: State) -> bool:
    """A call was declined, and the turn with it: no model is asked again, so it goes from where it is to rest."""
    turn = after.turn
    if turn is None or not isinstance(event, RequestResolved | ToolFinished) or status_of(after) != "generating":
        return False
    ends = (known.resolution for known in after.requests if known.turn == turn.id and known.kind == "approval")
    return any(end is not None and end.verdict == "deny" and end.then == "stop" for end in ends)


def _is_closing(event: Event, after: State) -> bool:
    """One of the ends that a stopped or failed turn gives to what it had open; the turn's own end follows them at once."""
    match event:
        case ToolFinished(error=error):
            ended = error is not None and error.code == "tool_interrupted"
        case RequestResolved(status="cancelled"):
            ended = True
        case _:
            return False
    return ended and after.turn is not None and event.turn == after.turn.id


# -- messages


def message_frames(event: Event, before: State, after: State) -> list[Frame]:
    match event:
        case MessageTruncated():
            return _truncate(before, after)
        case MessageRemoved():
            return _remove(event, before, after)
        case _:
            return [
                frame
                for place in _changed_places(before, after)
                for frame in _message_frames(event, place, before, after)
            ]


def _changed_places(before: State, after: State) -> Iterator[int]:
    """Places of messages that are new or not what they were. A turn that is over may show or hide what broke off in it."""
    over = before.turn.id if before.turn is not None and before.turn != after.turn else None
    for place, message in enumerate(after.messages):
        known = before.messages[place] if place < len(before.messages) else None
        if known is not message or (over and message.turn == over and message.status == "interrupted"):
            yield place


def _truncate(before: State, after: State) -> list[Frame]:
    place = len(after.messages)
    if not any(entries(message, before) for message in before.messages[place:]):
        return []
    return [("messages_truncated", {"from_index": index_of(place, before)})]


def _remove(event: MessageRemoved, before: State, after: State) -> list[Frame]:
    if len(before.messages) == len(after.messages):
        return []
    gone = next((message for message in before.messages if message.id == event.message), None)
    return _take_away(gone, before, "abort") if gone is not None else []


def _take_away(message: Message, state: State, reason: str) -> list[Frame]:
    shown = entries(message, state)
    frames: list[Frame] = [("message_removed", {"message_id": entry["message_id"]}) for entry in shown]
    if shown and is_draft(message, state):
        frames.insert(0, ("stream_finished", {"message_id": message.id, "finish_reason": reason}))
    return frames


def _message_frames(event: Event, place: int, before: State, after: State) -> list[Frame]:
    """From what was shown of one message to what is shown of it now."""
    message = after.messages[place]
    known = before.messages[place] if place < len(before.messages) else None
    was, now = entries(known, before) if known else [], entries(message, after)
    if not now:
        reason = "error" if isinstance(event, AnswerStarted | TurnFinished) else "abort"
        return _take_away(known, before, reason) if known else []
    drafted, drafts = bool(known and was and is_draft(known, before)), is_draft(message, after)
    index = index_of(place, after)
    main = now[0]
    frames: list[Frame] = []
    if drafts and not was:
        frames.append(("stream_started", {"message_id": message.id}))
        was, drafted = [{"message_id": message.id, "role": "assistant", "content": ""}], True
    if drafted:
        frames += _flush(was[0], main, finished=not drafts)
        if not drafts:
            frames.append(("stream_finished", {"message_id": message.id, "finish_reason": main.get("finish_reason")}))
            frames.append(("message_added", {"message": main, "index": index}))
    elif not was:
        frames.append(("message_added", {"message": main, "index": index}))
    elif was[0] != main:
        frames.append(("message_updated", {"message_id": message.id, "message": main}))
    return frames + _results(was[1:], now[1:], index + 1)


def _results(was: Sequence[Json], now: Sequence[Json], index: int) -> list[Frame]:
    known = {one["message_id"]: one for one in was}
    kept = {one["message_id"] for one in now}
    frames: list[Frame] = [("message_removed", {"message_id": name}) for name in known if name not in kept]
    for offset, one in enumerate(now):
        name = one["message_id"]
        if name not in known:
            frames.append(("message_added", {"message": one, "index": index + offset}))
        elif known[name] != one:
            frames.append(("message_updated", {"message_id": name, "message": one}))
    return frames


# -- a draft, as it is written


def _flush(was: Json, now: Json, *, finished: bool) -> list[Frame]:
    if (ops := delta_ops(was, now)) is None:
        # `message_added` follows a finished stream, with all of it.
        return [] if finished else [("message_updated", {"message_id": now["message_id"], "message": now})]
    return [("stream_delta", {"message_id": now["message_id"], "ops": ops})] if ops else []


def delta_ops(was: Json, now: Json) -> list[Json] | None:
    """What makes the one into the other. None: no operation says it."""
    ops: list[Json] = []
    for name, op in (("reasoning_content", "append_reasoning"), ("content", "append_content")):
        known, text = was.get(name, ""), now.get(name, "")
        if not text.startswith(known):
            return None
        if len(text) > len(known):
            ops.append({"op": op, "text": text[len(known) :]})
    for name, op, field in _GROWING:
        more, known = now.get(name, []), was.get(name, [])
        if more[: len(known)] != known:
            return None
        ops += [{"op": op, field: one} for one in more[len(known) :]]
    for name, op, field in _SET:
        if was.get(name) != now.get(name):
            if name not in now:
                return None
            ops.append({"op": op, field: now[name]})
    extra = {name: value for name, value in now.items() if name not in _SAID and was.get(name) != value}
    if any(name not in now for name in was):
        return None
    if extra:
        ops.append({"op": "merge_extra", "extra": extra})
    return ops


def join_operations(ops: list[Json], more: list[Json]) -> list[Json]:
    """One after the other; a text that goes on is one operation, of what is set twice the latest counts."""
    together = [*ops]
    for op in more:
        last = together[-1] if together else {}
        if op["op"] in _APPENDS and last.get("op") == op["op"]:
            together[-1] = {**op, "text": last["text"] + op["text"]}
        else:
            together = [known for known in together if known["op"] not in _SETS or known["op"] != op["op"]] + [op]
    return together


_GROWING = (
    ("citations", "add_citation", "citation"),
    ("server_content_blocks", "add_server_content_block", "block"),
)
_APPENDS = frozenset({"append_content", "append_reasoning"})
_SET = (
    ("thinking_blocks", "set_thinking_blocks", "blocks"),
    ("tool_calls", "set_tool_calls", "tool_calls"),
    ("usage", "set_usage", "usage"),
)
_SETS = frozenset(op for _, op, _ in _SET)
_SAID = frozenset(
    {"message_id", "role", "content", "reasoning_content", "citations", "finish_reason", "thinking_blocks"}
    | {"tool_calls", "usage", "server_content_blocks"}
)
"""What the other operations and frames tell."""


def _append_fragment(event: TextDelta | ThinkingDelta, before: State, after: State) -> list[Frame] | None:
    """The common case of a fragment at the end of what was said, without looking at all of it. None: look at all of it."""
    if not before.messages or len(before.messages) != len(after.messages):
        return None
    known, message = before.messages[-1], after.messages[-1]
    if message.id != event.message or message.status != "streaming" or known is message:
        return None
    kind = TextBlock if isinstance(event, TextDelta) else ThinkingBlock
    prose = [block for block in known.blocks if isinstance(block, kind)]
    if not prose or prose[-1].index != event.block or prose[-1].status != "streaming" or not prose[-1].text:
        return None
    op = "append_content" if isinstance(event, TextDelta) else "append_reasoning"
    return [("stream_delta", {"message_id": message.id, "ops": [{"op": op, "text": event.text}]})]

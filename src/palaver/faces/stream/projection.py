"""Turns as the messages of the Claude SDK, in server-sent events: pure.

One turn is told as `system/init`, then an `assistant` message for each answer and a `user` message for each result, then
`result`; requests for permission in between; `error` or `cancelled` when it ended so; `done` last, whatever happened. While
an answer is written its `stream_event` messages come too (`partial.py`), for whoever wants them. Every frame is about its
turn and the messages that the turn answers, so that each caller hears its own.
"""

from collections.abc import Sequence
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import msgspec
from msgspec.structs import replace

from palaver.core.exchanges import answer_of
from palaver.core.state import find_call
from palaver.faces.projection import Told
from palaver.faces.stream.partial import stop_reason, stream_events
from palaver.schema.events import (
    AnswerFinished,
    ConversationDeleted,
    Event,
    QueueRemoved,
    RequestOpened,
    TextFinished,
    ToolFinished,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from palaver.schema.view import Block, Message, State, Stopped, TextBlock, ThinkingBlock, ToolBlock, Turn

STOPPED: dict[Stopped, str] = {
    "restart": "The server was restarted in the middle of the answer.",
    "shutdown": "The server was stopped in the middle of the answer.",
    "limit": "A limit was reached.",
    "backend_exit": "The agent's program ended in the middle of its answer.",
    "storage": "The server's disk could not take the answer.",
}
"""What is an error to whoever asked; any other stop was somebody's wish."""

PARTIAL = "stream event"
"""What a frame of an answer that is still being written is about too. No id: those have no blanks."""

Json = dict[str, Any]


def frame(name: str, data: Json, cursor: int | None) -> bytes:
    line = b"" if cursor is None else b"id: %d\n" % cursor
    return b"event: %s\n%sdata: %s\n\n" % (name.encode(), line, msgspec.json.encode(data, enc_hook=str))


def about(turn: Turn) -> tuple[str, ...]:
    """What a turn is known by: itself, and the messages it answers."""
    return (turn.id, *turn.trigger.messages)


def tracking_id(turn: Turn) -> str:
    """The id of the message that it answers, which its sender knew before it began."""
    return turn.trigger.messages[0] if turn.trigger.messages else turn.id


class StreamProjector:
    def __init__(self, mcp_servers: Sequence[str] = (), *, reset: bool = False) -> None:
        """`reset` tells whoever came back with a number we do not know that this is all of the turn."""
        self._mcp_servers = mcp_servers
        self._reset = reset
        self._long: dict[tuple[str, int], str] = {}
        """Texts of the turn that outgrew their event, by message and block: the view has their beginnings alone."""

    def project(self, event: Event, before: State, after: State) -> Sequence[Told]:
        return (*self._project(event, before, after), *_partial(event, before, after))

    def _project(self, event: Event, before: State, after: State) -> Sequence[Told]:
        match event:
            case TurnStarted():
                return self._begin_turn(event, after)
            case TextFinished() if event.blob is not None:
                self._keep_whole(event, before)
                return ()
            case AnswerFinished():
                return _message(event, after, _assistant(event, self._whole(after)))
            case ToolFinished():
                return _message(event, after, _tool_result(event, after))
            case RequestOpened():
                return _permission(event, after)
            case TurnFinished():
                told = _finish_message(event, self._whole(before))
                self._long.clear()
                return told
            case TurnInterrupted():
                self._long.clear()
                return _interrupt(event, before)
            case QueueRemoved(reason="cancelled"):
                return _end_turn((event.item,), event, after.conversation, ("cancelled", {}))
            case ConversationDeleted():
                waiting = tuple(item.id for item in before.queue)
                return _end_turn(waiting, event, after.conversation, ("cancelled", {})) if waiting else ()
            case _:
                return ()

    def renewed(self, state: State) -> Sequence[Told]:
        return ()

    def _keep_whole(self, event: TextFinished, before: State) -> None:
        """Until this moment the view had all that was streamed."""
        message = next((known for known in reversed(before.messages) if known.id == event.message), None)
        for block in message.blocks if message else ():
            if isinstance(block, TextBlock) and block.index == event.block and len(block.text) > len(event.text):
                self._long[event.message, event.block] = block.text

    def _whole(self, state: State) -> State:
        if not self._long:
            return state
        messages = [
            replace(one, blocks=tuple(self._whole_block(one.id, block) for block in one.blocks))
            for one in state.messages
        ]
        return replace(state, messages=tuple(messages))

    def _whole_block(self, message: str, block: Block) -> Block:
        text = self._long.get((message, block.index))
        return block if text is None or not isinstance(block, TextBlock) else replace(block, text=text)

    def _begin_turn(self, event: TurnStarted, after: State) -> Sequence[Told]:
        conversation = after.conversation
        servers = [{"name": name, "status": "connected"} for name in self._mcp_servers]
        data: Json = {
            "type": "system",
            "subtype": "init",
            "sessionId": conversation,
            "session_id": conversation,
            "mcpServers": servers,
            "mcp_servers": servers,
            "model": event.model,
            "agentId": event.agent,
            "cwd": after.project,
            "permissionMode": event.mode or after.params.get("mode") or "ask",
        }
        return _message(event, after, data | ({"reset": True} if self._reset else {}))


def _message(event: Event, state: State, data: Json | None) -> Sequence[Told]:
    """A message of the SDK that belongs to the active turn."""
    turn = state.turn
    if data is None or turn is None:
        return ()
    return (Told(frame("message", _of_turn(event, state, turn, data), event.seq), about(turn)),)


def _partial(event: Event, before: State, after: State) -> Sequence[Told]:
    """The `stream_event` messages of one event, in one piece. Its last frame alone has the cursor: whoever is cut off
    before it is told all of them again."""
    turn = after.turn
    raw = stream_events(event, before) if turn is not None else []
    if turn is None or not raw:
        return ()
    bodies: list[bytes] = []
    for place, inner in enumerate(raw, 1):
        data: Json = {"type": "stream_event", "event": inner, "parent_tool_use_id": None}
        data = _of_turn(event, after, turn, data) | {"uuid": str(uuid5(NAMESPACE_OID, f"{event.id} {place}"))}
        bodies.append(frame("message", data, event.seq if place == len(raw) else None))
    return (Told(b"".join(bodies), (*about(turn), PARTIAL)),)


def _of_turn(event: Event, state: State, turn: Turn, data: Json) -> Json:
    return {**data, "uuid": event.id, "session_id": state.conversation, "queryTrackingId": tracking_id(turn)}


def _assistant(event: AnswerFinished, state: State) -> Json | None:
    message = next((known for known in reversed(state.messages) if known.id == event.message), None)
    if message is None or message.status == "superseded":
        return None
    content = content_of(message)
    if not content:
        return None
    usage = {
        "input_tokens": message.usage.input_tokens if message.usage else 0,
        "output_tokens": message.usage.output_tokens if message.usage else 0,
        "cache_read_input_tokens": message.usage.cached_tokens if message.usage else 0,
    }
    inner: Json = {
        "id": message.id,
        "type": "message",
        "role": "assistant",
        "model": message.model,
        "content": content,
        "stop_reason": stop_reason(event),
        "usage": usage,
    }
    # The contract's form has the content beside the type, the program's own one level deeper: both are there.
    return {"type": "assistant", "content": content, "message": inner, "parent_tool_use_id": None}


def content_of(message: Message) -> list[Json]:
    parts: list[Json] = []
    for block in message.blocks:
        match block:
            case TextBlock() if block.text:
                parts.append({"type": "text", "text": block.text})
            case ThinkingBlock() if block.text:
                parts.append({"type": "thinking", "thinking": block.text, "signature": block.signature or ""})
            case ToolBlock():
                parts.append(
                    {"type": "tool_use", "id": block.call, "name": block.name, "input": as_object(block.input)}
                )
            case _:
                pass
    return parts


def as_object(value: Any) -> Json:
    return value if isinstance(value, dict) else {} if value is None else {"value": value}


def _tool_result(event: ToolFinished, state: State) -> Json:
    tool = find_call(state, event.call)
    said = event.output if event.ok else event.error.message if event.error else event.output
    content = [{"type": "tool_result", "tool_use_id": event.call, "content": said, "is_error": not event.ok}]
    return {
        "type": "user",
        "content": content,
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": None,
        "toolName": tool.name if tool else None,
    }


def _permission(event: RequestOpened, state: State) -> Sequence[Told]:
    turn = state.turn
    if turn is None:
        return ()
    return (Told(frame("permission_request", permission(event), event.seq), about(turn)),)


def permission(event: RequestOpened) -> Json:
    """A question or a plan comes the same way: whoever knows its kind can answer it, anybody can decline it."""
    name, given = event.tool or "", as_object(event.input)
    if event.kind == "question":
        name, given = "ask_user", {"questions": msgspec.to_builtins(event.questions)}
    elif event.kind == "plan":
        name, given = "plan", {"plan": msgspec.to_builtins(event.plan)}
    return {
        "id": event.request,
        "permissionId": event.request,
        "toolName": name,
        "input": given,
        "kind": event.kind,
        "title": event.title,
    }


def _finish_message(event: TurnFinished, before: State) -> Sequence[Told]:
    turn = before.turn
    if turn is None or turn.id != event.turn:
        return ()
    failed = event.outcome == "failed"
    why = (event.error.message if event.error else "The turn failed.") if failed else None
    said = why or answer_of(before, turn.id) or event.summary or ""
    result = _result(event, before, turn, "error_during_execution" if failed else "success", said)
    end = ("error", {"message": why}) if why is not None else None
    return _end_turn(about(turn), event, before.conversation, ("message", result), end)


def _interrupt(event: TurnInterrupted, before: State) -> Sequence[Told]:
    turn = before.turn
    if turn is None or turn.id != event.turn:
        return ()
    why = STOPPED.get(event.reason)
    end: tuple[str, Json] = ("cancelled", {}) if why is None else ("error", {"message": f"{why} Send again to go on."})
    return _end_turn(about(turn), event, before.conversation, end)


def _result(event: TurnFinished, before: State, turn: Turn, subtype: str, said: str) -> Json:
    usage = event.usage
    answers = sum(1 for message in before.messages if message.turn == turn.id and message.role == "assistant")
    data: Json = {
        "type": "result",
        "subtype": subtype,
        "is_error": subtype != "success",
        "result": said,
        "duration_ms": event.duration_ms or 0,
        "num_turns": answers,
        "total_cost_usd": event.cost_usd or 0.0,
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
        "outcome": event.outcome,
    }
    return _of_turn(event, before, turn, data)


def _end_turn(whom: tuple[str, ...], event: Event, conversation: str, *words: tuple[str, Json] | None) -> list[Told]:
    """One piece, so that nobody is ever cut off before `done`."""
    said = [*(word for word in words if word), ("done", {"sessionId": conversation})]
    return [Told(b"".join([frame(*word, event.seq) for word in said]), whom)]


def is_for(said: Told, wanted: str, *, partial: bool) -> bool:
    """Whether a frame is about this turn or message, and wanted there."""
    return wanted in said.about and (partial or PARTIAL not in said.about)


def is_last(told: bytes) -> bool:
    """`done` is the last frame of every answer."""
    return told.removesuffix(b"\n\n").rpartition(b"\n\n")[2].startswith(b"event: done\n")

"""A chat at one moment: `thread`, `runtime` and messages, and the envelope of every frame. Pure."""

from typing import Any

import msgspec

from palaver.core.fold.compressions import strongest
from palaver.core.queue import words_of
from palaver.core.state import open_requests, open_tools
from palaver.faces.chats.messages import Json, list_messages
from palaver.history.parts import as_json
from palaver.history.trajectory import DEFAULT_TOOL_USE
from palaver.schema.view import COMPRESSING, QueueItem, Request, State, Status

CHATS_STRIDE = 1_024
"""Numbers a chat gives up to each event of the log: more frames than one event makes, so numbers never go back."""
PREVIEW_CHARS = 120
DEFAULT_MODE = "ask"

_ENVELOPE = ("chat_id", "seq", "type")
_OWN = frozenset(
    {*_ENVELOPE, "id", "title", "model", "mode", "tool_use", "agent", "draft", "messages"}
    | {"parent_id", "link_type", "root_chat_id"}
)
"""Names in a thread that no parameter may take."""


def first_seq(state: State) -> int:
    """Where the numbering of a chat stands that nobody follows yet."""
    return CHATS_STRIDE * state.seq


def encode_frame(chat: str, seq: int, type: str, fields: Json) -> bytes:
    """A frame as a server-sent event. It has no name, so that `EventSource.onmessage` hears it; its id is its number."""
    body = msgspec.json.encode({"chat_id": chat, "seq": seq, "type": type, **fields}, enc_hook=str)
    return b"id: %d\ndata: %s\n\n" % (seq, body)


def snapshot_frame(state: State, seq: int) -> bytes:
    fields = {"thread": thread_of(state), "runtime": runtime_of(state), "messages": list_messages(state)}
    return encode_frame(state.conversation, seq, "snapshot", fields)


# -- the frame of a chat


def thread_of(state: State) -> Json:
    thread: Json = {name: value for name, value in state.params.items() if name not in _OWN}
    thread |= {
        "id": state.conversation,
        "title": state.title,
        "model": _model(state),
        "mode": state.params.get("mode") or DEFAULT_MODE,
        "tool_use": state.params.get("tool_use") or DEFAULT_TOOL_USE,
        "agent": state.agent,
        "draft": state.draft,
    }
    if state.parent is not None:
        thread |= {
            "parent_id": state.parent.conversation,
            "link_type": state.parent.kind,
            "root_chat_id": state.parent.root,
        }
    return thread


def _model(state: State) -> str:
    chosen = state.params.get("model")
    if isinstance(chosen, str) and chosen:
        return chosen
    if state.turn is not None and state.turn.model:
        return state.turn.model
    return next((message.model for message in reversed(state.messages) if message.model), "")


# -- what it does


def runtime_of(state: State) -> Json:
    reasons = [pause_reason(request) for request in _approvals(state)]
    items = [queue_item(item) for item in state.queue]
    return {
        **activity_of(state),
        "paused": status_of(state) == "paused",
        "queue_size": len(items),
        "pause_reasons": reasons,
        "queued_items": items,
    }


def activity_of(state: State) -> Json:
    """What `runtime_updated` tells."""
    compressing = state.turn is not None and state.turn.detail == COMPRESSING
    activity: Json = {
        "state": status_of(state),
        "error": _error(state),
        "is_compressing": compressing,
        "compression_strength": strongest(state.compressions),
    }
    if compressing:
        activity |= {"compression_phase": COMPRESSING, "compression_reason": "context_window"}
    return activity


def passing(status: Status, state: State) -> Json:
    """What `runtime_updated` tells of a state on the way to this one."""
    strength = strongest(state.compressions)
    return {"state": status, "error": None, "is_compressing": False, "compression_strength": strength}


def status_of(state: State) -> Status:
    """The log's own word, with two exceptions: calls that a restart left to be decided are a pause here, for they are
    answered like one; and calls that were let through are executed, also while none of them has begun."""
    match state.status:
        case "waiting_user_input" if state.turn is None and _approvals(state):
            return "paused"
        case "generating" if _is_let_through(state):
            return "executing_tools"
        case status:
            return status


def _is_let_through(state: State) -> bool:
    allowed = {known.call for known in state.requests if known.resolution and known.resolution.verdict == "allow"}
    return bool(allowed) and any(tool.call in allowed for _, tool in open_tools(state))


def _approvals(state: State) -> list[Request]:
    return [request for request in open_requests(state) if request.kind == "approval"]


def _error(state: State) -> str | None:
    if state.status != "error" or state.last_turn is None:
        return None
    failure = state.last_turn.error
    return failure.message if failure else "The turn failed."


def pause_reason(request: Request) -> Json:
    return {
        "type": "confirmation",
        "tool_name": request.tool or "",
        "command": _command(request),
        "rule": request.risk or "ask",
        "tool_call_id": request.call or request.id,
    }


def _command(request: Request) -> str:
    match request.input:
        case {"command": str(command), **more}:
            others = {name: value for name, value in more.items() if value is not None}
            return f"{command}\n{as_json(others)}" if others else command
        case None:
            return request.title or request.tool or ""
        case str(words):
            return words
        case _:
            return as_json(request.input)


def queue_item(item: QueueItem) -> Json:
    preview = " ".join(words_of(item).split())
    return {
        "client_request_id": item.client_request_id or item.id,
        "priority": item.priority,
        "command_type": _command_type(item.command),
        "preview": preview if len(preview) <= PREVIEW_CHARS else preview[: PREVIEW_CHARS - 1] + "…",
    }


def _command_type(command: Json | None) -> str:
    if command is None:
        return "user_message"
    name = str(command.get("type"))
    return str(command.get("word", "restore_messages")) if name == "fill" else _COMMANDS.get(name, name)


_COMMANDS = {"retry_from": "retry_from_index", "edit_message": "update_message"}
"""Our words for which this contract has others."""


def patch_of(known: Json, now: Json) -> dict[str, Any]:
    """What changed, name by name; what is no longer there is null."""
    gone: dict[str, Any] = dict.fromkeys(name for name in known if name not in now)
    return {**{name: value for name, value in now.items() if name not in known or known[name] != value}, **gone}

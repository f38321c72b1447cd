"""What an agent is doing, in one status at a time: derived from the view alone, so that it is the same for every reader.

Pure. The status before an event and the one after it say what to tell: the old one is closed before the new one opens.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from palaver.core.state import messages_of_turn, open_requests
from palaver.faces.bus.frames import Json, Told
from palaver.schema.view import Message, State, TextBlock, ThinkingBlock, ToolBlock, Turn

Word = Literal["idle", "model_loading", "thinking", "calling_tool", "working"]

DETAIL_CHARS = 200
"""A line of a status bar."""

VERBS: Mapping[str, tuple[str, str]] = {
    "read": ("Reading", "path"),
    "list": ("Listing", "path"),
    "glob": ("Looking for", "pattern"),
    "grep": ("Searching for", "pattern"),
    "edit": ("Editing", "path"),
    "write": ("Writing", "path"),
    "patch": ("Patching", "path"),
    "shell": ("Running", "command"),
    "fetch": ("Fetching", "url"),
    "task": ("Delegating to", "agent"),
    "agents_message": ("Writing to", "agentId"),
}
USUAL: Mapping[Word, str] = {
    "idle": "Idle",
    "model_loading": "Loading the model…",
    "thinking": "Thinking…",
    "calling_tool": "Calling a tool…",
    "working": "Working…",
}


@dataclass(frozen=True, slots=True)
class Doing:
    """A status while it lasts: known by its id."""

    id: str
    word: Word
    detail: str


def doing(state: State) -> Doing | None:
    """None: it rests, or has nothing to show yet. The first sign of an answer is the answer's own."""
    turn = state.turn
    if turn is None:
        return None
    messages = [message for message in messages_of_turn(state, turn.id) if message.role == "assistant"]
    if (tool := _running(state, messages)) is not None:
        return Doing(f"status-{tool.call}", "calling_tool", tool_detail(tool))
    if asked := open_requests(state):
        return Doing(f"status-{asked[-1].id}", "working", "Waiting for an answer")
    if turn.retry is not None or turn.activity == "model_loading" or (turn.detail and turn.activity != "calling_tool"):
        return _said(turn)
    if messages and messages[-1].status == "streaming" and messages[-1].blocks:
        return _streaming(messages, turn)
    answered = [message for message in messages if message.blocks]
    # Results go back to the model; an answer without calls was the last.
    if answered and turn.activity == "thinking" and isinstance(answered[-1].blocks[-1], ToolBlock):
        return Doing(f"status-{answered[-1].id}-next", "thinking", USUAL["thinking"])
    return None


def _running(state: State, messages: Sequence[Message]) -> ToolBlock | None:
    """The one that started last. A turn that goes on may run calls of the turn before it."""
    whose = messages or [message for message in state.messages[-4:] if message.role == "assistant"]
    tools = [block for message in whose for block in message.blocks if isinstance(block, ToolBlock)]
    running = [tool for tool in tools if tool.status == "running"]
    return max(running, key=lambda tool: tool.started_at or 0) if running else None


def _said(turn: Turn) -> Doing:
    word: Word = "working" if turn.activity == "idle" else turn.activity
    detail = turn.detail or (
        f"{turn.retry.reason} (attempt {turn.retry.attempt} of {turn.retry.of})" if turn.retry else ""
    )
    told = detail[:DETAIL_CHARS] or USUAL[word]
    return Doing(f"status-{turn.id}-{word}-{zlib.crc32(detail.encode()):08x}", word, told)


def _streaming(messages: Sequence[Message], turn: Turn) -> Doing:
    message = messages[-1]
    block = message.blocks[-1]
    match block:
        case ThinkingBlock():
            before = [known for known in messages[:-1] if known.blocks]
            if before and block.index == 0:
                # Goes on from the waiting for it, under the same id.
                return Doing(f"status-{before[-1].id}-next", "thinking", USUAL["thinking"])
            return Doing(f"status-{message.id}-{block.index}", "thinking", USUAL["thinking"])
        case ToolBlock():
            return Doing(f"status-{message.id}-calls", "calling_tool", f"Calling {block.name}")
        case TextBlock():
            return Doing(f"status-{message.id}-{block.index}", "working", USUAL["working"])
        case _:
            return Doing(f"status-{message.id}-{block.index}", "working", USUAL["working"])


def tool_detail(tool: ToolBlock) -> str:
    """Such as `Reading notes.md`."""
    verb, name = VERBS.get(tool.name, ("", ""))
    given: Any = tool.input.get(name) if isinstance(tool.input, dict) else None
    if not verb or not isinstance(given, str) or not given.strip():
        return f"Calling {tool.name}"[:DETAIL_CHARS]
    return f"{verb} {' '.join(given.split())}"[:DETAIL_CHARS]


def changed(before: Doing | None, after: Doing | None, state: State) -> list[Told]:
    """What is told of the way from one status to the next."""
    if before == after:
        return []
    told: list[Told] = []
    if before is not None and (after is None or after.id != before.id):
        told.append(_told(before, "done", state))
    if after is not None:
        told.append(_told(after, "doing", state))
    return told


def at_rest(state: State) -> Told:
    return _told(Doing(f"status-{state.conversation}-idle", "idle", USUAL["idle"]), "done", state)


def _told(status: Doing, phase: Literal["doing", "done"], state: State) -> Told:
    data: Json = {"status": status.word}
    if state.parent is not None and state.parent.kind == "subagent":
        data["parent_id"] = state.parent.conversation
    return Told("activity", phase, status.detail, data, status.id)

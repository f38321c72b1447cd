"""What an agent is doing, in one status at a time: derived from the view alone, so that it is the same for every reader.

Pure. The status before an event and the one after it say what to tell: the old one is closed before the new one opens.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from palaver.core.state import messages_of_turn, open_requests
from palaver.faces.bus.frames import Json, Told
from palaver.schema.view import Message, State, ThinkingBlock, ToolBlock, Turn

Word = Literal["idle", "model_loading", "thinking", "calling_tool", "working"]

IDLE_PROMPT = "idle_prompt_triggered"
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
    "model_loading": "Model loading...",
    "thinking": "Thinking...",
    "calling_tool": "Calling a tool",
    "working": "Running",
}
"""Details of a status that has none of its own. The contract's clients know three of them, to the letter, as passing: they
show no activity for them."""


@dataclass(frozen=True, slots=True)
class Doing:
    """A status while it lasts: known by its id."""

    id: str
    word: Word
    detail: str | None
    message: str | None = None
    """The message whose content the detail shows."""


def doing(state: State) -> Doing | None:
    """The one status of a running turn. None: it rests, or is between two steps."""
    turn = state.turn
    if turn is None:
        return None
    said = messages_of_turn(state, turn.id)
    answers = [message for message in said if message.role == "assistant"]
    if (running := _running(state, answers)) is not None:
        message, tool = running
        return Doing(f"status-{tool.call}", "calling_tool", tool_detail(tool), message.id)
    if asked := open_requests(state):
        return Doing(f"status-{asked[-1].id}", "working", "Waiting for an answer")
    answered = [message for message in answers if message.blocks]
    if not answered:
        return Doing(f"status-{turn.id}-loading", "model_loading", _detail(turn) or USUAL["model_loading"])
    is_streaming = answers[-1].status == "streaming" and answers[-1] is answered[-1]
    is_loading = turn.activity == "model_loading" and not is_streaming
    if turn.retry is not None or is_loading or (turn.detail and turn.activity not in ("calling_tool", "model_loading")):
        return _from_backend(turn)
    if is_streaming:
        return _streaming(answered)
    # Results, or what was delivered meanwhile, go back to the model; an answer without calls was the last.
    goes_on = said[-1].role != "assistant" or any(isinstance(block, ToolBlock) for block in answered[-1].blocks)
    if goes_on and turn.activity == "thinking":
        return _next_step(answered[-1])
    return None


def _running(state: State, answers: Sequence[Message]) -> tuple[Message, ToolBlock] | None:
    """The call that started last. A turn that goes on may run calls of the turn before it."""
    whose = answers or [message for message in state.messages[-4:] if message.role == "assistant"]
    running = [
        (message, block)
        for message in whose
        for block in message.blocks
        if isinstance(block, ToolBlock) and block.status == "running"
    ]
    return max(running, key=lambda pair: pair[1].started_at or 0) if running else None


def _from_backend(turn: Turn) -> Doing:
    """What the backend itself says that it does."""
    word: Word = "working" if turn.activity == "idle" else turn.activity
    detail = _detail(turn)
    return Doing(f"status-{turn.id}-{word}-{zlib.crc32(detail.encode()):08x}", word, detail or USUAL[word])


def _detail(turn: Turn) -> str:
    retry = turn.retry
    retrying = f"{retry.reason} (attempt {retry.attempt} of {retry.of})" if retry else ""
    return (turn.detail or retrying)[:DETAIL_CHARS]


def _next_step(message: Message) -> Doing:
    """Waiting for what the model says to the results of this message."""
    return Doing(f"status-{message.id}-next", "thinking", USUAL["thinking"], message.id)


def _streaming(answered: Sequence[Message]) -> Doing:
    message = answered[-1]
    block = message.blocks[-1]
    match block:
        case ThinkingBlock() if len(answered) > 1 and block.index == 0:
            # Goes on from the waiting for it, under the same id.
            return _next_step(answered[-2])
        case ThinkingBlock():
            return Doing(f"status-{message.id}-{block.index}", "thinking", USUAL["thinking"], message.id)
        case ToolBlock():
            return Doing(f"status-{message.id}-calls", "calling_tool", f"Calling {block.name}", message.id)
        case _:
            return Doing(f"status-{message.id}-{block.index}", "working", USUAL["working"], message.id)


def tool_detail(tool: ToolBlock) -> str:
    """Such as `Reading notes.md`."""
    verb, name = VERBS.get(tool.name, ("", ""))
    given: Any = tool.input.get(name) if isinstance(tool.input, dict) else None
    if not verb or not isinstance(given, str) or not given.strip():
        return f"Calling {tool.name}"[:DETAIL_CHARS]
    return f"{verb} {' '.join(given.split())}"[:DETAIL_CHARS]


def tell_change(before: Doing | None, after: Doing | None, state: State) -> list[Told]:
    """What is told of the way from one status to the next."""
    if before == after:
        return []
    told: list[Told] = []
    if before is not None and (after is None or after.id != before.id):
        told.append(_activity_message(before, "done", state))
    if after is not None:
        told.append(_activity_message(after, "doing", state))
    return told


def at_rest(state: State) -> list[Told]:
    """The agent came to rest. Closed as soon as it is opened: nothing is being done, and what is listed as open is."""
    idle = Doing(f"status-{state.conversation}-idle", "idle", None)
    return [_activity_message(idle, "doing", state), _activity_message(idle, "done", state)]


def tell_wake(prompt: str | None, agent: str, target: str | None) -> Told:
    """An agent is about to be given its idle prompt, in its session of the mission."""
    return Told(
        "activity", "doing", prompt, {"status": IDLE_PROMPT}, f"{IDLE_PROMPT}-{target}", agent=agent, session=target
    )


def awake(state: State) -> Told:
    """The turn that an idle prompt asked for begins, or the prompt was taken back."""
    return Told("activity", "done", None, {"status": IDLE_PROMPT}, f"{IDLE_PROMPT}-{state.conversation}")


def _activity_message(status: Doing, phase: Literal["doing", "done"], state: State) -> Told:
    data: Json = {"status": status.word}
    if state.parent is not None and state.parent.kind == "subagent":
        data["parent_id"] = state.parent.conversation
    messages = (status.message,) if status.message else ()
    return Told("activity", phase, status.detail, data, status.id, messages=messages)

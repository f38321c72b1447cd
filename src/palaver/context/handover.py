"""What another program must be told before it goes on with a conversation that it has not seen to its end.

Used by the backends that drive programs with a memory of their own. Each marks its answers (`answer.finished.provider`:
`{"by": name, "session": id}`), so the log itself says who wrote what and under which id it can be resumed. Pure.

A program that wrote the last part resumes by itself and is told nothing. One that wrote an earlier part resumes and is told
what came after; one that wrote none is told everything. Tool results, files touched and the plan are part of it; what had
to be left out is said.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from palaver.schema.view import ImageBlock, Message, Plan, State, TextBlock, ToolBlock

RESULT_CHARS = 2_000
"""Of one tool result: its beginning and its end. The whole is in the log, and the world is as the tool left it."""
TRANSCRIPT_CHARS = 200_000
"""About 50,000 tokens: every program's window holds it. Older parts are left out first, and that is said."""

OPENING = (
    "[This conversation went on elsewhere. What follows is a faithful record of the part you have not seen, for you to go "
    "on from; the tools in it have run and must not be run again. The person's next message comes after it.]"
)
CLOSING = "[The record ends here. The person says now:]"


@dataclass(frozen=True, slots=True)
class Handover:
    session: str | None
    """The program's own conversation, to be resumed; None: it never took part."""
    record: str
    """What it has not seen, to be put before the person's message; empty when it has seen all."""
    lost: tuple[str, ...] = ()
    """What could not be handed over, in words."""


def mark(backend: str, session: str, **more: Any) -> dict[str, Any]:
    """What a backend attaches to its answers."""
    return {"by": backend, "session": session, **more}


def handover(state: State, backend: str, turn: str) -> Handover:
    """What `backend` needs to know before it takes the turn. The turn's own messages are what it is asked, not told."""
    past = [message for message in state.messages if message.turn != turn and message.status != "superseded"]
    session, last = _last_own(past, backend)
    unseen = past[last + 1 :]
    parts = [part for message in unseen if (part := _part(message))]
    if not parts:
        return Handover(session, "")
    lost: list[str] = []
    if any(isinstance(block, ImageBlock) for message in unseen for block in message.blocks):
        lost.append("images that were shown before")
    kept, left_out = _within(parts)
    if left_out:
        lost.append(f"the {left_out} oldest messages of it")
    told = [OPENING]
    if lost:
        told.append(f"[Not in the record: {'; '.join(lost)}.]")
    told += kept
    if state.plan is not None:
        told.append(_plan(state.plan))
    if state.files:
        told.append("[Files changed so far: " + ", ".join(file.path for file in state.files[-50:]) + "]")
    return Handover(session, "\n\n".join((*told, CLOSING)), tuple(lost))


def _last_own(past: Sequence[Message], backend: str) -> tuple[str | None, int]:
    for place in range(len(past) - 1, -1, -1):
        data = past[place].data
        if isinstance(data, dict) and data.get("by") == backend and isinstance(data.get("session"), str):
            return data["session"], place
    return None, -1


def _part(message: Message) -> str:
    who = {"user": "Person", "assistant": message.agent or "Agent", "summary": "Summary", "plan": "Plan"}
    lines: list[str] = []
    for block in message.blocks:
        match block:
            case TextBlock() if block.text.strip():
                lines.append(block.text if block.status == "done" else f"{block.text}\n[interrupted]")
            case ToolBlock() if block.status != "input":
                lines.append(_tool(block))
            case ImageBlock():
                lines.append("[an image]")
            case _:
                pass
    if not lines or (message.hidden and message.role == "user"):
        return ""
    return f"{who.get(message.role, 'Note')}: " + "\n".join(lines)


def _tool(tool: ToolBlock) -> str:
    asked = msgspec.json.encode(tool.input).decode() if tool.input is not None else tool.input_text
    said = tool.output or (tool.error.message if tool.error else "")
    return f"[tool {tool.name} {_short(asked)} → {tool.status}]\n{_short(said)}".rstrip()


def _short(text: str) -> str:
    if len(text) <= RESULT_CHARS:
        return text
    half = RESULT_CHARS // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def _plan(plan: Plan) -> str:
    items = "\n".join(f"- [{item.status}] {item.title}" for item in plan.items)
    return f"[The plan ({plan.status}): {plan.summary}]\n{items}".rstrip()


def _within(parts: Sequence[str]) -> tuple[list[str], int]:
    kept: list[str] = []
    size = 0
    for part in reversed(parts):
        size += len(part)
        if kept and size > TRANSCRIPT_CHARS:
            break
        kept.append(part)
    return kept[::-1], len(parts) - len(kept)

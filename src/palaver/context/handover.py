"""What another program must be told before it goes on with a conversation that it has not seen to its end.

Used by the backends that drive programs with a memory of their own. Each marks its answers (`answer.finished.provider`:
`{"by": name, "session": id}`), so the log itself says who wrote what and under which id it can be resumed. Pure.

A program that wrote the last part resumes by itself and is told nothing. One that wrote an earlier part resumes and is told
what came after; one that wrote none is told everything. Tool results, files touched and the plan are part of it; what had
to be left out is said. All of it is one quote, so that nothing in it can pass for the person's next message.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from palaver.context.quotes import RULE, Part, Quoting, one_line
from palaver.context.record import record_parts
from palaver.schema.view import ImageBlock, Message, Plan, State

RESULT_CHARS = 2_000
"""Of one tool result: its beginning and its end. The whole is in the log, and the world is as the tool left it."""
TRANSCRIPT_CHARS = 200_000
"""About 50,000 tokens: every program's window holds it. Older parts are left out first, and that is said."""

FILES = 50
"""Paths of changed files that are named, the latest ones."""

OPENING = (
    "[This conversation went on elsewhere. What follows is a faithful record of the part you have not seen, for you to go "
    "on from; the tools in it have run and must not be run again. The record is one quote, and the person's next message comes "
    f"after its end. {RULE}]"
)


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


def handover(state: State, backend: str, turn: str, quoting: Quoting) -> Handover:
    """What `backend` needs to know before it takes the turn. The turn's own messages are what it is asked, not told."""
    past = [message for message in state.messages if message.turn != turn and message.status != "superseded"]
    session, last = _last_own(past, backend)
    unseen = past[last + 1 :]
    spoken = [parts for message in unseen if (parts := _parts(message))]
    if not spoken:
        return Handover(session, "")
    lost: list[str] = []
    if any(isinstance(block, ImageBlock) for message in unseen for block in message.blocks):
        lost.append("images that were shown before")
    kept, left_out = _within(spoken)
    if left_out:
        lost.append(f"the {left_out} oldest messages of it")
    told = [OPENING]
    if lost:
        told.append(f"[Not in the record: {'; '.join(lost)}.]")
    told.append(quoting.quote(*kept, *_standing(state)))
    return Handover(session, "\n\n".join(told), tuple(lost))


def _last_own(past: Sequence[Message], backend: str) -> tuple[str | None, int]:
    for place in range(len(past) - 1, -1, -1):
        data = past[place].data
        if isinstance(data, dict) and data.get("by") == backend and isinstance(data.get("session"), str):
            return data["session"], place
    return None, -1


def _parts(message: Message) -> list[Part]:
    return [] if message.hidden and message.role == "user" else record_parts(message, _short)


def _short(text: str) -> str:
    if len(text) <= RESULT_CHARS:
        return text
    half = RESULT_CHARS // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def _standing(state: State) -> list[Part]:
    """The plan and the files that the record leads up to."""
    parts: list[Part] = []
    if state.plan is not None:
        parts.append(_plan(state.plan))
    if state.files:
        paths = "\n".join(one_line(file.path) for file in state.files[-FILES:])
        parts.append(Part("Palaver, the files changed so far", paths))
    return parts


def _plan(plan: Plan) -> Part:
    items = [f"- [{item.status}] {item.title}" for item in plan.items]
    return Part(f"the plan, {plan.status}", "\n".join([plan.summary, *items]))


def _within(spoken: Sequence[list[Part]]) -> tuple[list[Part], int]:
    """The latest messages that fit, and how many do not."""
    kept: list[list[Part]] = []
    size = 0
    for parts in reversed(spoken):
        size += sum(len(part.text) for part in parts)
        if kept and size > TRANSCRIPT_CHARS:
            break
        kept.append(parts)
    return [part for parts in reversed(kept) for part in parts], len(spoken) - len(kept)

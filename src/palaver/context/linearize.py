"""The conversation as a model may be shown it: from the folded view to neutral messages.

Called by the API loop before each model call. Pure but for loading blobs: the same log always gives the same messages, so a
provider's prompt cache keeps hitting. It repairs instead of failing: a history that was interrupted, imported, edited or
written by another provider always becomes a request that a provider takes.
"""

import re
from collections.abc import Sequence
from typing import Any

from palaver.context.images import LoadBlob, image_of
from palaver.context.prompt import AssistantMessage, Call, Image, Outcome, PromptMessage, Text, Thought, UserMessage
from palaver.schema.view import ImageBlock, Message, TextBlock, ThinkingBlock, ToolBlock

FOR_PEOPLE_ONLY = frozenset({"error", "report", "notice"})
"""Kinds of event messages that tell a person something. Every other event, hidden or not, is addressed to the agent."""

INTERRUPTED_MARK = "[interrupted]"
NO_OUTPUT = "(no output)"
WAITING = "Waiting for the person's decision; it has not run."
LOST = "Interrupted, effect unknown."
GO_ON = "Go on."
BEGINNING = "[The conversation begins here.]"

_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
NAME_CHARS = 64
"""The longest tool name that every provider takes."""

Said = Outcome | Text | Image
Answered = Thought | Text | Call


async def linearize(history: Sequence[Message], *, provider: str, load: LoadBlob) -> tuple[PromptMessage, ...]:
    """`provider` is whose opaque data may go back; what another provider attached is left out."""
    draft = _Draft()
    ids = _CallIds(provider)
    for message in history:
        if message.status == "superseded":
            continue
        if message.role == "assistant":
            parts, outcomes = await _answer(message, ids, provider, load)
            draft.answered(parts)
            draft.said(outcomes)
        elif message.event_kind not in FOR_PEOPLE_ONLY:
            draft.said(await _said(message, load))
    return draft.finished()


class _Draft:
    """Messages while they are gathered: neighbours of one role become one."""

    def __init__(self) -> None:
        self._messages: list[PromptMessage] = []

    def said(self, parts: Sequence[Said]) -> None:
        latest = self._messages[-1] if self._messages else None
        if parts and isinstance(latest, UserMessage):
            self._messages[-1] = UserMessage((*latest.parts, *parts))
        elif parts:
            self._messages.append(UserMessage(tuple(parts)))

    def answered(self, parts: Sequence[Answered]) -> None:
        latest = self._messages[-1] if self._messages else None
        if parts and isinstance(latest, AssistantMessage):
            self._messages[-1] = AssistantMessage((*latest.parts, *parts))
        elif parts:
            self._messages.append(AssistantMessage(tuple(parts)))

    def finished(self) -> tuple[PromptMessage, ...]:
        if self._messages and isinstance(self._messages[0], AssistantMessage):
            self._messages.insert(0, UserMessage((Text(BEGINNING),)))
        if not self._messages or isinstance(self._messages[-1], AssistantMessage):
            self._messages.append(UserMessage((Text(GO_ON),)))
        return tuple(self._messages)


class _CallIds:
    """The provider's own id of a call where it may go back and is still free, else ours: unique within a request."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._used: set[str] = set()

    def choose(self, tool: ToolBlock) -> str:
        theirs = own_data(tool.provider, self._provider).get("id")
        for candidate in (theirs, tool.call):
            if isinstance(candidate, str) and candidate and candidate not in self._used:
                break
        else:
            candidate = next(
                name for number in range(2, 1 << 30) if (name := f"{tool.call}-{number}") not in self._used
            )
        self._used.add(candidate)
        return candidate


def own_data(kept: Any, provider: str) -> dict[str, Any]:
    """What an adapter kept with a block, if that same provider is asked again."""
    return kept if isinstance(kept, dict) and kept.get("by") == provider else {}


# -- the agent's side


async def _answer(
    message: Message, ids: _CallIds, provider: str, load: LoadBlob
) -> tuple[list[Answered], list[Outcome]]:
    parts: list[Answered] = []
    outcomes: list[Outcome] = []
    for block in message.blocks:
        match block:
            case TextBlock():
                text = await _whole_text(block, load)
                if text.strip():
                    interrupted = block.status != "done"
                    parts.append(Text(f"{text}\n\n{INTERRUPTED_MARK}" if interrupted else text))
            case ThinkingBlock():
                if thought := _thought(block, provider):
                    parts.append(thought)
            case ToolBlock():
                if _was_made(block):
                    call = _call(block, ids, provider)
                    parts.append(call)
                    outcomes.append(_outcome(block, call.id))
            case ImageBlock():
                parts.append(Text("[An image that was shown to the person.]"))
    # A thought must lead to something; what it led to was never said.
    while parts and isinstance(parts[-1], Thought):
        parts.pop()
    return parts, outcomes


def _thought(block: ThinkingBlock, provider: str) -> Thought | None:
    """Only whole thoughts go back, and only to the provider that thought them."""
    kept = own_data(block.provider, provider)
    if block.status != "done" or not kept:
        return None
    data = kept.get("data")
    return Thought(text=block.text, signature=block.signature, data=data if isinstance(data, str) else None)


def _was_made(tool: ToolBlock) -> bool:
    """A call that was cut while its arguments streamed in was never made: there is nothing to show, or to answer."""
    return tool.status != "input" and not (tool.status == "interrupted" and tool.input is None)


def _call(tool: ToolBlock, ids: _CallIds, provider: str) -> Call:
    return Call(
        id=ids.choose(tool),
        name=_NOT_IN_A_NAME.sub("_", tool.name)[:NAME_CHARS] or "unnamed",
        arguments=tool.input if isinstance(tool.input, dict) else {},
        opaque=own_data(tool.provider, provider).get("opaque"),
    )


def _outcome(tool: ToolBlock, call: str) -> Outcome:
    match tool.status:
        case "ok":
            return Outcome(call, tool.output if tool.output.strip() else NO_OUTPUT)
        case "error" | "denied" | "interrupted":
            reason = tool.error.message if tool.error else LOST
            return Outcome(call, f"{reason}\n{tool.output}" if tool.output.strip() else reason, failed=True)
        case "waiting":
            return Outcome(call, WAITING, failed=True)
        case _:
            return Outcome(call, LOST, failed=True)


# -- everyone else's side


async def _said(message: Message, load: LoadBlob) -> list[Said]:
    label = _label(message)
    parts: list[Said] = []
    for block in message.blocks:
        match block:
            case TextBlock():
                text = await _whole_text(block, load)
                if text.strip():
                    parts.append(Text(f"{label}{text}"))
            case ImageBlock():
                parts.append(await image_of(block.url, load))
            case _:
                pass
    return parts


def _label(message: Message) -> str:
    match message.role:
        case "event":
            return f"[{message.event_kind or 'event'}] "
        case "system":
            return "[note] "
        case "plan":
            return "[plan] "
        case "summary":
            return "[summary of what came before] "
        case _:
            return ""


async def _whole_text(block: TextBlock, load: LoadBlob) -> str:
    if block.blob is None:
        return block.text
    data = await load(block.blob.id)
    return f"{block.text}\n[The rest is no longer stored.]" if data is None else data.decode(errors="replace")

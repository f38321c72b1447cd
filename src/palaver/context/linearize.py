"""The conversation as a model may be shown it: from the folded view to neutral messages.

Called before each model call. Pure but for loading blobs: the same log, with the compressions it recorded, always gives the
same messages, so a provider's prompt cache keeps hitting. It repairs instead of failing: a history that was interrupted,
imported, edited or written by another provider always becomes a request that a provider takes.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import is_
from typing import Any

from palaver.context.images import LoadBlob, blob_of, image_of
from palaver.context.prompt import AssistantMessage, Call, Image, Outcome, PromptMessage, Text, Thought, UserMessage
from palaver.context.quotes import (
    RECALLED,
    Part,
    Quoting,
    block_source,
    break_control_tokens,
    break_control_tokens_within,
)
from palaver.context.reduce import Redact, horizons_of, reduce_history, same_text
from palaver.schema.view import Compression, ImageBlock, Message, Plan, TextBlock, ThinkingBlock, ToolBlock

POSTED = "posted"
"""The kind of a message that its agent made with a tool: the call says it already."""

FOR_PEOPLE_ONLY = frozenset({"error", "report", "notice", "compression_report", "summarization"})
"""Kinds of event messages that tell a person something, in restored chats of other programs too. Every other event, hidden or
not, is addressed to the agent."""

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


async def linearize(
    history: Sequence[Message],
    *,
    provider: str,
    load: LoadBlob,
    quoting: Quoting,
    compressions: Sequence[Compression] = (),
    plan: Plan | None = None,
    redact: Redact = same_text,
    arranged: "Arranged | None" = None,
) -> tuple[PromptMessage, ...]:
    """`provider` is whose opaque data may go back; what another provider attached is left out.

    `compressions` and `plan` are the view's own. `redact` strikes secrets from whatever is cut. `arranged` is what this
    conversation came to the last time: where the history only grew, the work goes on from there.
    """
    shown = reduce_history(history, horizons_of(compressions), plan=plan, redact=redact)
    arranging = arranged.begun(shown, provider, quoting) if arranged else _Arranging(provider, quoting)
    more = shown[len(arranging.taken) :]
    blobs = await load_blobs(more, load)
    arranging.take(more, blobs)
    if arranged:
        # Pictures are not worth their memory.
        arranged.keep(None if blobs else arranging)
    return arranging.finished()


async def load_blobs(history: Sequence[Message], load: LoadBlob) -> Mapping[str, bytes | None]:
    """Every blob that these messages are shown with."""
    blobs: dict[str, bytes | None] = {}
    for message in history:
        for block in message.blocks:
            if isinstance(block, TextBlock):
                name = block.blob.id if block.blob is not None else None
            elif isinstance(block, ImageBlock) and message.role != "assistant":
                name = blob_of(block.url)
            else:
                continue
            if name is not None and name not in blobs:
                blobs[name] = await load(name)
    return blobs


class Arranged:
    """What one conversation came to the last time. A message that was not changed is the same object."""

    def __init__(self) -> None:
        self._last: _Arranging | None = None

    def begun(self, shown: Sequence[Message], provider: str, quoting: Quoting) -> "_Arranging":
        last, self._last = self._last, None  # Whoever goes on from it changes it.
        if last is not None and last.provider == provider and last.begins(shown):
            return last
        return _Arranging(provider, quoting)

    def keep(self, arranging: "_Arranging | None") -> None:
        self._last = arranging


class _Arranging:
    """A history on its way to a prompt, so far."""

    def __init__(self, provider: str, quoting: Quoting) -> None:
        self.provider = provider
        self._quoting = quoting
        self.taken: list[Message] = []
        self._draft = _Draft()
        self._ids = _CallIds()

    def begins(self, shown: Sequence[Message]) -> bool:
        return len(self.taken) <= len(shown) and all(map(is_, self.taken, shown))

    def take(self, messages: Sequence[Message], blobs: Mapping[str, bytes | None]) -> None:
        self.taken += messages
        for message in messages:
            if message.status == "superseded" or message.event_kind == POSTED:
                continue
            if message.role == "assistant":
                _answer(message, self._ids, self.provider, blobs, self._draft)
            elif message.event_kind not in FOR_PEOPLE_ONLY:
                _add_person_message(message, blobs, self._quoting, self._draft)

    def finished(self) -> tuple[PromptMessage, ...]:
        return self._draft.finished()


class _Draft:
    """Messages while they are gathered: neighbours of one role become one."""

    def __init__(self) -> None:
        self._messages: list[PromptMessage] = []
        self._person_parts: list[Said] = []
        self._answered: list[Answered] = []

    def said(self, parts: Sequence[Said]) -> None:
        if self._answered:
            self._close()
        self._person_parts += parts

    def answered(self, parts: Sequence[Answered]) -> None:
        if self._person_parts:
            self._close()
        self._answered += parts

    def _close(self) -> None:
        if self._person_parts:
            self._messages.append(UserMessage(tuple(self._person_parts)))
            self._person_parts.clear()
        if self._answered:
            self._messages.append(AssistantMessage(tuple(self._answered)))
            self._answered.clear()

    def finished(self) -> tuple[PromptMessage, ...]:
        """As it stands; more may still be said."""
        messages = list(self._messages)
        if self._person_parts:
            messages.append(UserMessage(tuple(self._person_parts)))
        if self._answered:
            messages.append(AssistantMessage(tuple(self._answered)))
        if messages and isinstance(messages[0], AssistantMessage):
            messages.insert(0, UserMessage((Text(BEGINNING),)))
        if not messages or isinstance(messages[-1], AssistantMessage):
            messages.append(UserMessage((Text(GO_ON),)))
        return tuple(messages)


class _CallIds:
    """The provider's own id of a call where it may go back and is still free, else ours: unique within a request."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def choose(self, tool: ToolBlock, theirs: Any) -> str:
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


def _answer(message: Message, ids: _CallIds, provider: str, blobs: Mapping[str, bytes | None], draft: _Draft) -> None:
    parts: list[Answered] = []
    outcomes: list[Outcome] = []
    for block in message.blocks:
        # Plain tests in the order of how common they are: this is the one loop that runs for all there ever was.
        if isinstance(block, ToolBlock):
            if _was_made(block):
                call = _call(block, ids, provider)
                parts.append(call)
                outcomes.append(_outcome(block, call.id))
        elif isinstance(block, TextBlock):
            text = block.text if block.blob is None else _whole_text(block, blobs)
            if text and not text.isspace():
                text = break_control_tokens(text)
                parts.append(Text(text if block.status == "done" else f"{text}\n\n{INTERRUPTED_MARK}"))
        elif isinstance(block, ThinkingBlock):
            if thought := _thinking_of(block, provider):
                parts.append(thought)
        else:
            parts.append(Text("[An image that was shown to the person.]"))
    # A thought must lead to something; what it led to was never said.
    while parts and isinstance(parts[-1], Thought):
        parts.pop()
    if parts:
        draft.answered(parts)
    if outcomes:
        draft.said(outcomes)


def _thinking_of(block: ThinkingBlock, provider: str) -> Thought | None:
    """Only whole thoughts go back, and only to the provider that thought them."""
    kept = own_data(block.provider, provider)
    if block.status != "done" or not kept:
        return None
    data = kept.get("data")
    if block.signature is not None or isinstance(data, str):
        # The provider compares every byte of what it signed.
        return Thought(text=block.text, signature=block.signature, data=data if isinstance(data, str) else None)
    return Thought(text=break_control_tokens(block.text))


def _was_made(tool: ToolBlock) -> bool:
    """A call that was cut while its arguments streamed in was never made: there is nothing to show, or to answer."""
    return tool.status != "input" and not (tool.status == "interrupted" and tool.input is None)


def _call(tool: ToolBlock, ids: _CallIds, provider: str) -> Call:
    kept = own_data(tool.provider, provider)
    arguments = tool.input if isinstance(tool.input, dict) else {}
    opaque = kept.get("opaque")
    if opaque is None:
        # What a provider attached may be a signature over the arguments.
        arguments = break_control_tokens_within(arguments)
    return Call(ids.choose(tool, kept.get("id")), _wire_name(tool.name), arguments, opaque)


@lru_cache(maxsize=1024)
def _wire_name(name: str) -> str:
    return _NOT_IN_A_NAME.sub("_", name)[:NAME_CHARS] or "unnamed"


def _outcome(tool: ToolBlock, call: str) -> Outcome:
    match tool.status:
        case "ok":
            return Outcome(call, break_control_tokens(tool.output) if _says_something(tool.output) else NO_OUTPUT)
        case "error" | "denied" | "interrupted":
            reason = tool.error.message if tool.error else LOST
            text = f"{reason}\n{tool.output}" if _says_something(tool.output) else reason
            return Outcome(call, break_control_tokens(text), failed=True)
        case "waiting":
            return Outcome(call, WAITING, failed=True)
        case _:
            return Outcome(call, LOST, failed=True)


def _says_something(text: str) -> bool:
    return bool(text) and not text.isspace()


# -- everyone else's side


def _add_person_message(message: Message, blobs: Mapping[str, bytes | None], quoting: Quoting, draft: _Draft) -> None:
    parts: list[Said] = []
    if message.knowledge is not None and message.knowledge.text.strip():
        parts.append(Text(quoting.quote(Part(RECALLED, message.knowledge.text))))
    for place, block in enumerate(message.blocks):
        if isinstance(block, TextBlock):
            text = block.text if block.blob is None else _whole_text(block, blobs)
            if text and not text.isspace():
                source = block_source(message, place)
                parts.append(Text(text if source is None else quoting.quote(Part(source, text))))
        elif isinstance(block, ImageBlock):
            parts.append(image_of(block.url, blobs))
    if parts:
        draft.said(parts)


def _whole_text(block: TextBlock, blobs: Mapping[str, bytes | None]) -> str:
    data = blobs.get(block.blob.id) if block.blob else None
    return f"{block.text}\n[The rest is no longer stored.]" if data is None else data.decode(errors="replace")

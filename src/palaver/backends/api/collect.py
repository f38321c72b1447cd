"""From the pieces of one answer to canonical events: blocks numbered, fragments passed on, each block finished once.

Used by the step, one collector an attempt. No input or output. The answer begins with its first piece, so that an attempt
which fails before it leaves no trace in the transcript; calls are made only when the answer is whole. Thinking keeps its
order and its bytes: pieces that come mixed find their block again, and a signature is passed on as it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

import msgspec

from palaver.backends.api.provider import (
    Began,
    CitationPiece,
    ExtraPiece,
    ModelEvent,
    ServerPiece,
    Stopped,
    TextPiece,
    ThinkingPiece,
    ToolPiece,
    UsageSeen,
)
from palaver.core.json_bounds import decode_json
from palaver.errors import LimitReached
from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    CitationAdded,
    KnownEvent,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolInputDelta,
)

DELTA_CHARS = 32_768
"""The longest fragment in one event: an event may hold 256 KiB, and a character up to six bytes of JSON."""
SERVED_BYTES = 64 << 10
"""Of what a provider's own tools found, in one answer: as much as of a tool's output. The answer says what is in it."""

ANSWER_BYTES = 32 << 20
"""Of everything that one answer holds, also what is told only at its end: signatures, a service's own blocks."""
ANSWER_BLOCKS = 1_000
"""Texts, thoughts and calls of one answer; the longest have some tens."""
PIECE_BYTES = 64
"""What a piece takes beside its text."""


@dataclass(slots=True, eq=False)
class _Prose:
    """A text, or a thought."""

    kind: str
    index: int | None
    block: int
    began_ms: int
    parts: list[str] = field(default_factory=list[str])
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    has_grown: bool = False
    """Since it was said to be finished: then it is said once more, whole."""


@dataclass(slots=True)
class _Calling:
    """A call whose arguments are being written."""

    block: int
    call: str
    id: str | None = None
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    opaque: Any = None


class Collector:
    def __init__(
        self,
        *,
        message: str,
        model: str,
        provider: str,
        new_id: Callable[[], str],
        now_ms: Callable[[], int],
        replaces: str | None = None,
        unposted: bool = False,
    ) -> None:
        """`unposted`: plain words of this agent reach nobody."""
        self.message = message
        self.spoke = False
        self.started = False
        self.stopped: Stopped | None = None
        self.usage: Usage | None = None
        self.written_tokens = 0
        self.model = model
        self._provider = provider
        self._new_id = new_id
        self._now_ms = now_ms
        self._replaces = replaces
        self._unposted = unposted
        self._blocks = 0
        self._prose: _Prose | None = None
        self._thoughts: list[_Prose] = []
        self._served: list[Mapping[str, Any]] = []
        self._extra: dict[str, Any] = {}
        self._calls: list[_Calling] = []
        self._calls_by_index: dict[int, _Calling] = {}
        self._held_bytes = 0

    @property
    def made_calls(self) -> bool:
        return bool(self._calls)

    def take(self, event: ModelEvent) -> list[KnownEvent]:
        """Raises LimitReached for an answer without an end."""
        self._hold(event)
        match event:
            case TextPiece():
                return self._text(event) if event.text else []
            case ThinkingPiece():
                return self._thinking(event)
            case ToolPiece():
                return self._call(event)
            case CitationPiece():
                return self._cite(event)
            case ServerPiece():
                self._served.append(event.block)
                return [*self._begin(), *self._close_prose()]
            case ExtraPiece():
                self._extra = _merge(self._extra, event.fields)
            case Began():
                self.model = event.model or self.model
            case UsageSeen():
                self.usage, self.written_tokens = event.usage, event.written_tokens
            case Stopped():
                self.stopped = event
            case _:
                assert_never(event)
        return []

    def _hold(self, event: ModelEvent) -> None:
        match event:
            case TextPiece():
                size = len(event.text)
            case ThinkingPiece():
                size = len(event.text) + len(event.signature or "") + len(event.data or "")
            case ToolPiece():
                size = len(event.arguments)
            case ServerPiece():
                size = len(msgspec.json.encode(event.block))
            case _:
                return
        self._held_bytes += size + PIECE_BYTES
        if self._held_bytes > ANSWER_BYTES:
            raise LimitReached(
                f"The model's answer came to more than {ANSWER_BYTES >> 20} MiB, so it was cut off and the turn was ended."
                " Send again to go on.",
                limit_bytes=ANSWER_BYTES,
            )

    def finish(self) -> list[KnownEvent]:
        """The answer is whole."""
        said = [*self._begin(), *self._close_prose(), *self._grow_thoughts()]
        return [*said, *map(self._finish_call, self._calls), self._finish(self.reason)]

    def cut(self) -> list[KnownEvent]:
        """The answer broke off: what was said stays, marked; no call of it was made."""
        said = [*self._begin(), *self._close_prose(interrupted=True), *self._grow_thoughts()]
        return [*said, self._finish("cut", interrupted=True)]

    @property
    def has_something(self) -> bool:
        """Words to keep, or tokens that were counted and may have to be paid."""
        return self.started or (self.usage is not None and self.usage != Usage())

    @property
    def reason(self) -> str:
        """Some services call it a plain stop when they made calls."""
        reason = self.stopped.reason if self.stopped else "other"
        return "tool_calls" if self._calls and reason in ("stop", "other") else reason

    # -- the answer

    def _begin(self) -> list[KnownEvent]:
        if self.started:
            return []
        self.started = True
        return [AnswerStarted(message=self.message, model=self.model, replaces=self._replaces)]

    def _finish(self, reason: str, *, interrupted: bool = False) -> AnswerFinished:
        return AnswerFinished(
            message=self.message,
            finish_reason=reason,
            usage=self.usage,
            model=self.model,
            interrupted=interrupted,
            provider=_own_fields(self._served, self._extra),
        )

    # -- text and thinking

    def _text(self, piece: TextPiece) -> list[KnownEvent]:
        prose = self._prose
        events: list[KnownEvent] = []
        if prose is None or prose.kind != "text" or prose.index != piece.index:
            events, prose = self._open_prose("text", piece.index)
        prose.parts.append(piece.text)
        events.extend(TextDelta(message=self.message, block=prose.block, text=text) for text in _fragments(piece.text))
        return events

    def _cite(self, piece: CitationPiece) -> list[KnownEvent]:
        events, prose = list[KnownEvent](), self._prose
        if prose is None or prose.kind != "text" or prose.index != piece.index:
            events, prose = self._open_prose("text", piece.index)
        return [*events, CitationAdded(message=self.message, block=prose.block, citation=piece.citation)]

    def _thinking(self, piece: ThinkingPiece) -> list[KnownEvent]:
        events: list[KnownEvent] = []
        thought = self._find_thought(piece)
        if thought is None:
            events, thought = self._open_prose(piece.kind, piece.index)
            self._thoughts.append(thought)
        thought.signature = piece.signature or thought.signature
        thought.data = piece.data or thought.data
        thought.id = thought.id or piece.id
        if piece.text:
            thought.parts.append(piece.text)
        if thought is not self._prose:
            thought.has_grown = True
        elif piece.text:
            events.extend(
                ThinkingDelta(message=self.message, block=thought.block, text=text) for text in _fragments(piece.text)
            )
        return events

    def _find_thought(self, piece: ThinkingPiece) -> _Prose | None:
        alike = [thought for thought in reversed(self._thoughts) if thought.kind == piece.kind]
        if piece.index is not None:
            return next((thought for thought in alike if thought.index == piece.index), None)
        if piece.id is not None:
            return next((thought for thought in alike if thought.id == piece.id), None)
        if piece.signature is not None:
            signed = next((thought for thought in alike if thought.signature == piece.signature), None)
            if signed is not None:
                return signed
        current = self._prose if self._prose in alike else None
        # A signature alone replaces the one before it; with text of its own it signs another block.
        is_other = current is not None and current.signature is not None and piece.signature is not None
        return None if is_other and piece.text else current

    def _open_prose(self, kind: str, index: int | None) -> tuple[list[KnownEvent], _Prose]:
        events = [*self._begin(), *self._close_prose()]
        self._prose = _Prose(kind, index, self._next_block(), self._now_ms())
        return events, self._prose

    def _close_prose(self, *, interrupted: bool = False) -> list[KnownEvent]:
        prose, self._prose = self._prose, None
        if prose is None:
            return []
        if prose.kind != "text":
            return [self._finish_thought(prose, interrupted)]
        text = "".join(prose.parts)
        self.spoke = self.spoke or bool(text.strip())
        return [
            TextFinished(
                message=self.message,
                block=prose.block,
                text=text,
                interrupted=interrupted,
                unposted=self._unposted,
            )
        ]

    def _finish_thought(self, prose: _Prose, interrupted: bool) -> ThinkingFinished:
        text = "".join(prose.parts)
        return ThinkingFinished(
            message=self.message,
            block=prose.block,
            text=text,
            interrupted=interrupted,
            redacted=prose.data is not None and not text,
            signature=prose.signature,
            provider={"by": self._provider} if prose.data is None else {"by": self._provider, "data": prose.data},
            duration_ms=max(0, self._now_ms() - prose.began_ms),
        )

    def _grow_thoughts(self) -> list[KnownEvent]:
        return [self._finish_thought(thought, interrupted=False) for thought in self._thoughts if thought.has_grown]

    # -- calls

    def _call(self, piece: ToolPiece) -> list[KnownEvent]:
        events = [*self._begin(), *self._close_prose()]
        calling = self._calls_by_index.get(piece.index)
        # Some services give every call of an answer the same index, and only the id tells them apart.
        if calling is None or (piece.id and calling.id and piece.id != calling.id):
            calling = _Calling(self._next_block(), self._new_id())
            self._calls.append(calling)
            self._calls_by_index[piece.index] = calling
        calling.id = calling.id or piece.id
        calling.name = calling.name or piece.name or ""
        calling.opaque = piece.opaque if calling.opaque is None else calling.opaque
        if piece.arguments:
            calling.arguments.append(piece.arguments)
        events.extend(
            ToolInputDelta(message=self.message, block=calling.block, call=calling.call, name=calling.name, text=text)
            for text in (_fragments(piece.arguments) if piece.arguments else [""] if piece.name else [])
        )
        return events

    def _finish_call(self, calling: _Calling) -> ToolCalled:
        kept = {"by": self._provider, "id": calling.id, "opaque": calling.opaque}
        return ToolCalled(
            message=self.message,
            block=calling.block,
            call=calling.call,
            name=calling.name,
            input=parse_arguments("".join(calling.arguments)),
            provider={key: value for key, value in kept.items() if value is not None},
        )

    def _next_block(self) -> int:
        if self._blocks == ANSWER_BLOCKS:
            raise LimitReached(
                f"The model's answer came to more than {ANSWER_BLOCKS:,} texts, thoughts and calls, so it was cut off and"
                " the turn was ended. Send again to go on.",
                limit=ANSWER_BLOCKS,
            )
        self._blocks += 1
        return self._blocks - 1


def _merge(extra: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Objects are merged by name, of anything else the latest counts. What would be too long is left out."""
    merged = {**extra}
    for name, value in fields.items():
        known = extra.get(name)
        merged[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
    return merged if len(msgspec.json.encode(merged)) <= SERVED_BYTES else extra


def _own_fields(blocks: Sequence[Mapping[str, Any]], extra: Mapping[str, Any]) -> dict[str, Any] | None:
    """The provider's own fields and blocks, as documents show them; of a block that is too long, that it was there."""
    if not blocks:
        return {"trajectory": {**extra}} if extra else None
    left_bytes, kept = SERVED_BYTES, list[Any]()
    for block in blocks:
        size_bytes = len(msgspec.json.encode(block))
        left_bytes -= size_bytes
        kept.append(block if left_bytes >= 0 else {"type": block.get("type"), "left_out_bytes": size_bytes})
    return {"trajectory": {**extra, "server_content_blocks": kept}}


def parse_arguments(arguments: str) -> Any:
    """The arguments as JSON; as they stand when they are none, so that nobody mistakes them for an object."""
    if not arguments.strip():
        return {}
    try:
        return decode_json(arguments)
    except msgspec.DecodeError:
        return arguments


def _fragments(text: str) -> list[str]:
    if len(text) <= DELTA_CHARS:
        return [text]
    return [text[at : at + DELTA_CHARS] for at in range(0, len(text), DELTA_CHARS)]

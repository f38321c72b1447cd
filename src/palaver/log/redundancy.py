"""Which events a log can lose without anybody noticing: fragments whose block was finished.

Called by compaction. The rule is that of the fold, seen from the other side: a finished block says all of itself, so the
fragments before it no longer matter, and those that come after it never did. Wherever the fold could still tell the
difference (an id used twice, a call that somebody acted on while its input streamed), the fragments are kept.

The first fragment of a text also says where it began. It stays if something else began before the text was finished: a
reader who shows things in the order of the log would otherwise see the text behind a call that was made after it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from palaver.schema.events import (
    AnswerStarted,
    CitationAdded,
    Event,
    MessageAdded,
    MessageEdited,
    MessageRemoved,
    MessageTruncated,
    RequestOpened,
    RequestResolved,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
    TurnFinished,
    TurnInterrupted,
)
from palaver.schema.view import ToolBlock

_Kind = Literal["text", "thinking", "input"]
_Place = tuple[str, int]
"""A block: its message and its index."""


@dataclass(slots=True)
class _Streaming:
    """Fragments of one block whose end has not come yet."""

    kind: _Kind
    call: str = ""
    seqs: list[int] = field(default_factory=list[int])
    begun: int | None = None
    """The first fragment of a text or a thought that says anything."""
    keeps_place: bool = False
    """Something else began since, or was open when it began: the order is known from the first fragment alone."""


class Redundancy:
    """Reads events in order; afterwards `dropped` holds the numbers of those that are redundant."""

    def __init__(self) -> None:
        self.dropped: set[int] = set()
        self._blocks: dict[_Place, _Streaming] = {}
        self._finished: dict[str, set[tuple[_Kind, int, str]]] = {}
        """By message: blocks that are whole. A fragment that comes for one of them is late."""
        self._outputs: dict[str, list[int]] = {}
        self._ended_calls: set[str] = set()
        self._message_of: dict[str, str] = {}
        self._call_of: dict[str, str] = {}
        """By request: the call it asks for."""
        self._turn_ended = 0

    def settled(self, through: int) -> int:
        """Up to where no later event can make another one redundant: where the next compaction begins.

        A turn that ended finishes nothing more, so what it left open does not hold the place for ever.
        """
        fragments = [*(block.seqs for block in self._blocks.values()), *self._outputs.values()]
        open_since = (seqs[0] for seqs in fragments if seqs[0] > self._turn_ended)
        return min([through, *(seq - 1 for seq in open_since)])

    def read(self, seq: int, event: Event) -> None:
        match event:
            case TextDelta():
                self._text_fragment("text", event, seq)
            case ThinkingDelta():
                self._text_fragment("thinking", event, seq)
            case ToolInputDelta():
                if self._fragment("input", event.message, event.block, seq, event.call):
                    self._stands_in(event.call, event.message)
            case ToolOutputDelta():
                self._mark_used(event.call)
                self._output(event.call, seq)
            case TextFinished():
                self._finish("text", event.message, event.block)
            case ThinkingFinished():
                self._finish("thinking", event.message, event.block)
            case ToolCalled():
                self._stands_in(event.call, event.message)
                self._keep_places()
                self._finish("input", event.message, event.block, event.call)
            case ToolFinished():
                self._mark_used(event.call)
                self.dropped.update(self._outputs.pop(event.call, ()))
                self._ended_calls.add(event.call)
            case CitationAdded():
                self._contend("text", (event.message, event.block))
            case ToolStarted():
                self._mark_used(event.call)
            case RequestOpened():
                self._keep_places()
                if event.call:
                    self._mark_used(event.call)
                    self._call_of[event.request] = event.call
            case RequestResolved() if event.request in self._call_of:
                self._mark_used(self._call_of[event.request])
            case AnswerStarted():
                self._restart_message(event.message)
                if event.replaces:
                    self._take_back(event.replaces)
            case MessageAdded():
                self._restart_message(event.message)
                self._keep_places()
                for block in event.blocks or ():
                    if isinstance(block, ToolBlock):
                        self._mark_used(block.call)
                        self._stands_in(block.call, event.message)
            case MessageEdited():
                self._restart_message(event.message)
                self._ended_calls.clear()
            case MessageRemoved() | MessageTruncated():
                # An id used twice: what comes late may now reach the older one.
                self._finished.clear()
                self._ended_calls.clear()
            case TurnFinished() | TurnInterrupted():
                self._turn_ended = seq
            case _:
                pass

    # -- blocks

    def _fragment(self, kind: _Kind, message: str, index: int, seq: int, call: str = "") -> _Streaming | None:
        """None: it is late."""
        if (kind, index, call) in self._finished.get(message, ()):
            self.dropped.add(seq)
            return None
        place = (message, index)
        self._contend(kind, place, call)
        streaming = self._blocks.setdefault(place, _Streaming(kind, call))
        streaming.seqs.append(seq)
        return streaming

    def _text_fragment(self, kind: _Kind, event: TextDelta | ThinkingDelta, seq: int) -> None:
        streaming = self._fragment(kind, event.message, event.block, seq)
        if streaming and streaming.begun is None and event.text:
            # Of two that overlap both keep their place, so that compacting what is left finds the same.
            streaming.keeps_place = self._keep_places()
            streaming.begun = seq

    def _finish(self, kind: _Kind, message: str, index: int, call: str = "") -> None:
        place = (message, index)
        self._contend(kind, place, call)
        streaming = self._blocks.pop(place, None)
        if streaming:
            kept = streaming.begun if streaming.keeps_place else None
            self.dropped.update(seq for seq in streaming.seqs if seq != kept)
        if kind != "input" and (streaming is None or streaming.begun is None):
            self._keep_places()
        self._finished.setdefault(message, set()).add((kind, index, call))

    def _keep_places(self) -> bool:
        """Something begins: texts and thoughts that are open began before it. Whether there are any."""
        is_any = False
        for streaming in self._blocks.values():
            # What an ended turn left open is never finished.
            if streaming.begun is not None and streaming.begun > self._turn_ended:
                streaming.keeps_place = is_any = True
        return is_any

    def _contend(self, kind: _Kind, place: _Place, call: str = "") -> None:
        """Two kinds want one block: which of them has it depends on their fragments, so those stay."""
        streaming = self._blocks.get(place)
        if streaming and (streaming.kind, streaming.call) != (kind, call):
            del self._blocks[place]

    def _restart_message(self, message: str) -> None:
        """What streamed into the message so far has no end any more."""
        self._finished.pop(message, None)
        self._forget(place for place in self._blocks if place[0] == message)

    def _forget(self, places: Iterable[_Place]) -> None:
        for place in list(places):
            del self._blocks[place]

    # -- calls

    def _output(self, call: str, seq: int) -> None:
        if call in self._ended_calls:
            self.dropped.add(seq)
        else:
            self._outputs.setdefault(call, []).append(seq)

    def _mark_used(self, call: str) -> None:
        """Somebody used the call while its input streamed: only the fragments made it exist by then."""
        self._forget(place for place, known in self._blocks.items() if known.kind == "input" and known.call == call)

    def _stands_in(self, call: str, message: str) -> None:
        """From here on the call is this message's; output and an end from before may have been another's."""
        self._outputs.pop(call, None)
        self._ended_calls.discard(call)
        self._message_of[call] = message

    def _take_back(self, message: str) -> None:
        """A cut attempt was replaced, which ended its open calls there and then, with what they had."""
        self._forget(place for place, known in self._blocks.items() if known.kind == "input" and place[0] == message)
        for call in [call for call in self._outputs if self._message_of.get(call, message) == message]:
            del self._outputs[call]

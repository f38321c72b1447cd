"""What an agent says and thinks as frames: deltas, and one done a block. Pure.

Called by `project`. A backend that delivers whole items, and an answer that comes from elsewhere, yield the same grammar.
"""

from palaver.core.state import OPEN_TOOL
from palaver.faces.socket.calls import outcome, start
from palaver.faces.socket.memory import Call, Kind, Memory, Writing
from palaver.faces.socket.words import Json, Said
from palaver.schema.events import MessageAdded, TextDelta, TextFinished, ThinkingDelta, ThinkingFinished
from palaver.schema.view import TextBlock, ThinkingBlock, ToolBlock, ToolError


def grown(event: TextDelta | ThinkingDelta, kind: Kind, memory: Memory) -> Said:
    place = (event.message, event.block)
    if not event.text or event.message not in memory.answers or place in memory.written:
        return
    writing = memory.writing.get(place)
    if writing is None:
        writing = memory.writing[place] = Writing(kind)
        if kind == "thinking":
            yield _block("thinking_start", event.message, event.block)
    if writing.kind != kind:
        return
    writing.pieces.append(event.text)
    memory.said = event.message
    yield _block(f"{kind}_delta", event.message, event.block, delta=event.text)


def finished(event: TextFinished | ThinkingFinished, kind: Kind, memory: Memory) -> Said:
    place = (event.message, event.block)
    if event.message not in memory.answers or place in memory.written:
        return
    memory.written.add(place)
    writing = memory.writing.pop(place, None)
    if writing is not None and writing.kind != kind:
        writing = None
    if writing is None and not event.text:
        return
    if event.message not in memory.half_told:
        yield from _what_is_left(event, kind, writing)
    memory.said = event.message
    yield _done(kind, event.message, event.block, event.text, interrupted=event.interrupted)


def _what_is_left(event: TextFinished | ThinkingFinished, kind: Kind, writing: Writing | None) -> Said:
    """What no fragment said: all of it, from a backend that delivers whole items; else nothing, as a rule."""
    if writing is None:
        yield from _begun_whole(kind, event.message, event.block, event.text)
    elif event.text.startswith(writing.text) and len(event.text) > len(writing.text):
        yield _block(f"{kind}_delta", event.message, event.block, delta=event.text[len(writing.text) :])


def _begun_whole(kind: Kind, message: str, block: int, text: str) -> Said:
    if kind == "thinking":
        yield _block("thinking_start", message, block)
    yield _block(f"{kind}_delta", message, block, delta=text)


def _block(kind: str, message: str, block: int, **fields: object) -> tuple[str, Json]:
    return kind, {"responseId": message, "block": block, **fields}


def _done(kind: Kind, message: str, block: int, text: str, *, interrupted: bool = False) -> tuple[str, Json]:
    return _block(f"{kind}_done", message, block, text=text, **({"interrupted": True} if interrupted else {}))


def taken_back(message: str, memory: Memory) -> Said:
    """A new attempt takes the place of one that was cut: what had been told of that one is ended."""
    memory.answers.discard(message)
    for place in sorted(place for place in memory.writing if place[0] == message):
        writing = memory.writing.pop(place)
        yield _done(writing.kind, message, place[1], writing.text, interrupted=True)
    for known, call in list(memory.calls.items()):
        if call.message == message and not (call.runs or call.waits):
            del memory.calls[known]
            if call.told:
                error = ToolError(code="tool_interrupted", message="The answer was begun anew; nothing was done.")
                yield "tool_result", outcome(known, call.name, ok=False, error=error)


def restored(event: MessageAdded, memory: Memory) -> Said:
    """An answer that comes whole, from a branch or from elsewhere: the same grammar as one that is given now."""
    for block in event.blocks or ():
        match block:
            case TextBlock() | ThinkingBlock() if block.text:
                kind: Kind = "text" if isinstance(block, TextBlock) else "thinking"
                yield from _begun_whole(kind, event.message, block.index, block.text)
                interrupted = block.status == "interrupted"
                yield _done(kind, event.message, block.index, block.text, interrupted=interrupted)
            case ToolBlock():
                yield start(event.message, block.call, block.name, block.input)
                if block.status in OPEN_TOOL:
                    memory.calls[block.call] = Call(event.message, block.name)
                    continue
                yield (
                    "tool_result",
                    outcome(
                        block.call,
                        block.name,
                        ok=block.status == "ok",
                        output=block.output,
                        error=block.error,
                        truncated=block.truncated,
                        lines=block.total_lines,
                        size_bytes=block.total_bytes,
                    ),
                )
            case _:
                pass

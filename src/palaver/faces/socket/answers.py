"""What an agent says and thinks as frames: deltas, one done a block, and one `text_done` a run. Pure.

Called by `project`. A backend that delivers whole items, and an answer that comes from elsewhere, yield the same grammar.
"""

from palaver.core.fold.blocks import of_content
from palaver.core.state import OPEN_TOOL
from palaver.faces.socket.calls import outcome, output_delta, start
from palaver.faces.socket.frame_types import Json, Said
from palaver.faces.socket.memory import Call, Kind, Memory, Place, Writing
from palaver.schema.events import MessageAdded, TextDelta, TextFinished, ThinkingDelta, ThinkingFinished
from palaver.schema.view import Block, TextBlock, ThinkingBlock, ToolBlock, ToolError


def grow(event: TextDelta | ThinkingDelta, kind: Kind, memory: Memory) -> Said:
    place = (event.message, event.block)
    if not event.text or event.message not in memory.answers or place in memory.written:
        return
    writing = memory.writing.get(place)
    if writing is not None and writing.kind != kind:
        return
    number = memory.block_number(place)
    if writing is None:
        writing = memory.writing[place] = Writing(kind)
        if kind == "thinking":
            yield _block("thinking_start", memory, number)
    writing.pieces.append(event.text)
    memory.said = True
    yield _block(f"{kind}_delta", memory, number, delta=event.text)


def finish(event: TextFinished | ThinkingFinished, kind: Kind, memory: Memory) -> Said:
    place = (event.message, event.block)
    if event.message not in memory.answers or place in memory.written:
        return
    memory.written.add(place)
    writing = memory.writing.pop(place, None)
    if writing is not None and writing.kind != kind:
        writing = None
    if writing is not None or event.text:
        yield from _whole(event, place, kind, writing, memory)
    if event.cancelled and not any(known.kind == "text" for known in memory.writing.values()):
        yield from cut_short(memory)


def _whole(
    event: TextFinished | ThinkingFinished, place: Place, kind: Kind, writing: Writing | None, memory: Memory
) -> Said:
    number = memory.block_number(place)
    if event.message not in memory.half_told:
        yield from _what_is_left(event.text, kind, writing, memory, number)
    memory.said = True
    if kind == "text":
        memory.texts[place] = event.text
        memory.cut |= {place} if event.interrupted else set()
    yield _done_frame(kind, memory, place, number, event.text, interrupted=event.interrupted)


def _what_is_left(text: str, kind: Kind, writing: Writing | None, memory: Memory, number: int) -> Said:
    """What no fragment said: all of it, from a backend that delivers whole items; else nothing, as a rule."""
    if writing is None:
        if kind == "thinking":
            yield _block("thinking_start", memory, number)
        yield _block(f"{kind}_delta", memory, number, delta=text)
    elif text.startswith(writing.text) and len(text) > len(writing.text):
        yield _block(f"{kind}_delta", memory, number, delta=text[len(writing.text) :])


def _block(kind: str, memory: Memory, number: int, **fields: object) -> tuple[str, Json]:
    return kind, {"responseId": memory.turn, "block": number, **fields}


def _done_frame(
    kind: Kind, memory: Memory, place: Place, number: int, text: str, *, interrupted: bool = False
) -> tuple[str, Json]:
    flags = {"interrupted": True} if interrupted else {}
    return _block(_DONE[kind], memory, number, messageId=place[0], text=text, **flags)


_DONE = {"text": "text_block_done", "thinking": "thinking_done"}


def text_done(response: str, text: str, *, interrupted: bool) -> tuple[str, Json]:
    """The last word of a run: all that it said."""
    return "text_done", {"responseId": response, "text": text, **({"interrupted": True} if interrupted else {})}


def cut_short(memory: Memory) -> Said:
    """The text of a run that is cancelled, once and before the results of its calls; none where it said nothing."""
    text = memory.text()
    if memory.turn is not None and text and not memory.is_text_done:
        memory.is_text_done = True
        yield text_done(memory.turn, text, interrupted=True)


def take_back(message: str, memory: Memory) -> Said:
    """A new attempt takes the place of one that was cut: what had been told of that one is ended."""
    if message not in memory.answers:
        return
    for place in sorted(place for place in memory.writing if place[0] == message):
        writing, number = memory.writing.pop(place), memory.block_number(place)
        yield _done_frame(writing.kind, memory, place, number, writing.text, interrupted=True)
    memory.forget_answer(message)
    for known, call in list(memory.calls.items()):
        if call.message == message and not (call.runs or call.waits):
            del memory.calls[known]
            if call.told:
                error = ToolError(code="tool_interrupted", message="The answer was begun anew; nothing was done.")
                yield "tool_result", outcome(known, call.name, ok=False, error=error)


def post(event: MessageAdded, memory: Memory) -> Said:
    """What a run says through a tool for it: text like any other that it says."""
    memory.begin_answer(event.message)
    for block in _blocks_of(event):
        if isinstance(block, TextBlock):
            yield from finish(TextFinished(message=event.message, block=block.index, text=block.text), "text", memory)


def _blocks_of(event: MessageAdded) -> tuple[Block, ...]:
    return of_content(event.content) if event.blocks is None else event.blocks


def restore(event: MessageAdded, memory: Memory) -> Said:
    """An answer that comes whole, from a branch or from elsewhere: the same grammar as one that is given now."""
    texts: list[TextBlock] = []
    for block in _blocks_of(event):
        match block:
            case TextBlock() | ThinkingBlock() if block.text:
                texts += [block] if isinstance(block, TextBlock) else []
                yield from _restore_block(event.message, block)
            case ToolBlock():
                yield start(event.message, event.message, block.call, block.name, block.input)
                if block.status in OPEN_TOOL:
                    memory.calls[block.call] = Call(event.message, event.message, block.name)
                    continue
                if block.output:
                    yield output_delta(block.call, block.name, block.output)
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
    text = "\n\n".join(block.text for block in texts)
    yield text_done(event.message, text, interrupted=any(block.status == "interrupted" for block in texts))


def _restore_block(message: str, block: TextBlock | ThinkingBlock) -> Said:
    kind: Kind = "text" if isinstance(block, TextBlock) else "thinking"
    named: Json = {"responseId": message, "block": block.index}
    if kind == "thinking":
        yield "thinking_start", named
    yield f"{kind}_delta", {**named, "delta": block.text}
    flags = {"interrupted": True} if block.status == "interrupted" else {}
    yield _DONE[kind], {**named, "messageId": message, "text": block.text, **flags}

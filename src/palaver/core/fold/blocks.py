"""How one event changes one block of a message.

Called by evolve alone. Pure, and never fails: an event that does not fit the block it names leaves it as it is. Two rules
keep a fold of the compacted log equal to that of the full one: a fragment only ever grows a block that still streams, and
a finished block says all of it, whatever stood there before. A tool call that was made is never written over.
"""

from collections.abc import Callable

from msgspec.structs import replace

from palaver.core.state import OPEN_TOOL
from palaver.schema.content import Content, ImagePart, TextPart
from palaver.schema.events import (
    CitationAdded,
    FilesChanged,
    RequestOpened,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
)
from palaver.schema.view import Block, ImageBlock, TextBlock, ThinkingBlock, ToolBlock, ToolStatus

KEEP_OUTPUT_CHARS = 32_768
"""Live output kept of a running tool: the tail a person watches. The result replaces it. Cut only when twice as much has
gathered, so that a chatty tool costs a copy now and then, not one a line; counted in code points, as TypeScript must."""

_FAILED: dict[str, ToolStatus] = {"tool_interrupted": "interrupted", "tool_denied": "denied"}
"""The status of a call by the code of its error; any other code is plainly an error."""


def with_block(
    blocks: tuple[Block, ...], index: int, change: Callable[[Block | None], Block | None]
) -> tuple[Block, ...]:
    """Blocks ordered by index: a finished block may arrive before the one it follows once deltas are compacted away."""
    at = len(blocks)
    while at and blocks[at - 1].index > index:
        at -= 1
    known = blocks[at - 1] if at and blocks[at - 1].index == index else None
    changed = change(known)
    if changed is known or changed is None:
        return blocks
    return (*blocks[: at - 1 if known else at], changed, *blocks[at:])


def of_content(content: Content) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for index, part in enumerate(content):
        match part:
            case TextPart():
                blocks.append(TextBlock(index=index, text=part.text, blob=part.blob))
            case ImagePart():
                blocks.append(ImageBlock(index=index, url=part.image_url.url))
    return tuple(blocks)


def supersede(block: Block) -> Block:
    """A cut attempt is taken back: what streamed stays to be seen, calls that nobody acted on are off."""
    match block:
        case TextBlock(status="streaming") | ThinkingBlock(status="streaming"):
            return replace(block, status="superseded")
        case ToolBlock(status="input" | "called"):
            return replace(block, status="interrupted")
        case _:
            return block


# -- text and thinking


def text_grown(known: Block | None, event: TextDelta) -> Block:
    if known is None:
        return TextBlock(index=event.block, text=event.text, status="streaming")
    if isinstance(known, TextBlock) and known.status == "streaming":
        return replace(known, text=known.text + event.text)
    return known


def text_finished(known: Block | None, event: TextFinished) -> Block:
    if isinstance(known, ToolBlock) and known.status != "input":
        return known
    return TextBlock(
        index=event.block,
        text=event.text,
        status="interrupted" if event.interrupted else "done",
        blob=event.blob,
        citations=known.citations if isinstance(known, TextBlock) else (),
    )


def cite(known: Block | None, event: CitationAdded) -> Block:
    if known is None:
        return TextBlock(index=event.block, text="", status="streaming", citations=(event.citation,))
    if isinstance(known, TextBlock):
        return replace(known, citations=(*known.citations, event.citation))
    return known


def thinking_grown(known: Block | None, event: ThinkingDelta) -> Block:
    if known is None:
        return ThinkingBlock(index=event.block, text=event.text, status="streaming")
    if isinstance(known, ThinkingBlock) and known.status == "streaming":
        return replace(known, text=known.text + event.text)
    return known


def thinking_finished(known: Block | None, event: ThinkingFinished) -> Block:
    if isinstance(known, ToolBlock) and known.status != "input":
        return known
    return ThinkingBlock(
        index=event.block,
        text=event.text,
        status="interrupted" if event.interrupted else "done",
        redacted=event.redacted,
        signature=event.signature,
        provider=event.provider,
        duration_ms=event.duration_ms,
    )


# -- tool calls: made, waiting, running, ended, in that order and never back


def input_grown(known: Block | None, event: ToolInputDelta) -> Block:
    if known is None:
        return ToolBlock(index=event.block, call=event.call, name=event.name, status="input", input_text=event.text)
    if isinstance(known, ToolBlock) and known.status == "input" and known.call == event.call:
        return replace(known, input_text=known.input_text + event.text)
    return known


def set_input(known: Block | None, event: ToolCalled) -> Block:
    if isinstance(known, ToolBlock) and known.status != "input":
        return known
    return ToolBlock(
        index=event.block,
        call=event.call,
        name=event.name,
        status="called",
        input=event.input,
        provider=event.provider,
    )


def waiting(tool: ToolBlock, event: RequestOpened) -> ToolBlock:
    if tool.status not in OPEN_TOOL:
        return tool
    # A call that runs goes on running while it asks: its effect stays unknown until its result.
    return replace(tool, status=tool.status if tool.status == "running" else "waiting", request=event.request)


def set_result(tool: ToolBlock) -> ToolBlock:
    return replace(tool, status="called") if tool.status == "waiting" else tool


def tool_started(tool: ToolBlock, event: ToolStarted) -> ToolBlock:
    if tool.status not in OPEN_TOOL:
        return tool
    return replace(tool, status="running", grant=event.grant, started_at=event.ts)


def output_grown(tool: ToolBlock, event: ToolOutputDelta) -> ToolBlock:
    if tool.status not in OPEN_TOOL:
        return tool
    output = tool.output + event.text
    if len(output) > 2 * KEEP_OUTPUT_CHARS:
        return replace(tool, output=output[-KEEP_OUTPUT_CHARS:], truncated=True)
    return replace(tool, output=output)


def files_changed(tool: ToolBlock, event: FilesChanged) -> ToolBlock:
    """Told before the result, by the call that did it."""
    return replace(tool, changes=(*tool.changes, *event.files)) if tool.status in OPEN_TOOL else tool


def tool_finished(tool: ToolBlock, event: ToolFinished) -> ToolBlock:
    """The first result is the result."""
    if tool.status not in OPEN_TOOL:
        return tool
    code = event.error.code if event.error else ""
    return replace(
        tool,
        status="ok" if event.ok else _FAILED.get(code, "error"),
        output=event.output,
        error=event.error,
        truncated=event.truncated,
        blob=event.blob,
        total_lines=event.total_lines,
        total_bytes=event.total_bytes,
        exit_code=event.exit_code,
        finished_at=event.ts,
    )

"""An agent's message in the OpenAI shape: its text, its thinking, its calls, and their results as messages of their own.

The half of the trajectory that deals with agents. Blocks usually stand in the order thinking, text, calls; where they do
not, `palaver.layout` says how, in code points of the joined text.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from palaver.core.json_bounds import decode_json
from palaver.history.parts import Json, as_json, blocks_of, integer, own, plain, text_of, unknown_data
from palaver.schema.base import BlobRef, Usage
from palaver.schema.view import (
    Block,
    FileChange,
    ImageBlock,
    Knowledge,
    Message,
    Progress,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    ToolError,
    ToolStatus,
)

BETWEEN = "\n\n"
"""What stands between the texts of one answer."""
NO_RESULT = ToolError(code="tool_interrupted", message="No result was recorded.")

_RAN: frozenset[str] = frozenset({"ok", "error", "denied", "interrupted"})


# -- out


def answer_json(message: Message) -> tuple[Json, list[Json]]:
    """The fields of an agent's message, and the messages that hold its tools' results."""
    texts = [block for block in message.blocks if isinstance(block, TextBlock)]
    thinking = [block for block in message.blocks if isinstance(block, ThinkingBlock)]
    tools = [block for block in message.blocks if isinstance(block, ToolBlock) and _was_made(block)]
    shown: Json = {"content": BETWEEN.join(block.text for block in texts)}
    if message.finish_reason:
        shown["finish_reason"] = message.finish_reason
    if reasoning := BETWEEN.join(block.text for block in thinking if block.text):
        shown["reasoning_content"] = reasoning
    if thinking:
        shown["thinking_blocks"] = [_thinking_json(block) for block in thinking]
    if tools:
        shown["tool_calls"] = [_call_json(tool) for tool in tools]
    if citations := [citation for block in texts for citation in block.citations]:
        shown["citations"] = citations
    if message.usage:
        shown["usage"] = _usage_json(message.usage)
    extra: Json = {}
    if layout := _layout(message.blocks):
        extra["layout"] = layout
    if message.status == "interrupted":
        extra["status"] = message.status
    if message.data is not None and not own(message.data, "trajectory"):
        extra["data"] = message.data
    if extra:
        shown["palaver"] = extra
    return shown, [_result_json(message.id, tool) for tool in tools]


def _was_made(tool: ToolBlock) -> bool:
    """A call cut while its arguments streamed in was never made."""
    return tool.status != "input" and not (tool.status == "interrupted" and tool.input is None)


def _call_json(tool: ToolBlock) -> Json:
    arguments = tool.input if isinstance(tool.input, str) else as_json({} if tool.input is None else tool.input)
    call: Json = {"id": tool.call, "type": "function", "function": {"name": tool.name, "arguments": arguments}}
    return {**call, "provider": tool.provider} if tool.provider is not None else call


def _result_json(message: str, tool: ToolBlock) -> Json:
    content = tool.output
    if tool.error is not None:
        content = f"{tool.error.message}\n{tool.output}" if tool.output else tool.error.message
    extra: Json = {"status": tool.status if tool.status in _RAN else "interrupted"}
    for name in ("exit_code", "total_lines", "total_bytes", "started_at", "finished_at"):
        if (value := getattr(tool, name)) is not None:
            extra[name] = value
    if tool.error is not None:
        extra["error"] = msgspec.to_builtins(tool.error)
    if tool.truncated:
        extra["truncated"] = True
    if tool.blob is not None:
        extra["blob"] = msgspec.to_builtins(tool.blob)
    if tool.changes:
        extra["changes"] = [msgspec.to_builtins(change) for change in tool.changes]
    return {
        "message_id": f"{message}-{tool.index}",
        "role": "tool",
        "content": content,
        "tool_call_id": tool.call,
        "tool_failed": tool.status != "ok",
        "palaver": extra,
    }


def _thinking_json(block: ThinkingBlock) -> Json:
    provider = block.provider if isinstance(block.provider, dict) else {}
    shown: Json = {"type": "redacted_thinking"} if block.redacted else {"type": "thinking", "thinking": block.text}
    if block.redacted and isinstance(provider.get("data"), str):
        shown["data"] = provider["data"]
    if block.signature is not None:
        shown["signature"] = block.signature
    if block.provider is not None:
        shown["provider"] = block.provider
    if block.duration_ms is not None:
        shown["duration_ms"] = block.duration_ms
    return shown


def _usage_json(usage: Usage) -> Json:
    shown: Json = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    if usage.cached_tokens:
        shown["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    if usage.reasoning_tokens:
        shown["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return shown


def _layout(blocks: Sequence[Block]) -> list[Json]:
    """How the blocks stand, where the shape itself does not tell."""
    entries = [entry for block in blocks if (entry := _entry(block)) is not None]
    kinds = [entry["kind"] for entry in entries]
    usual = kinds == sorted(kinds, key=("thinking", "text", "tool", "image").index)
    told = usual and kinds.count("text") <= 1 and "image" not in kinds
    return [] if told and all("status" not in entry for entry in entries) else entries


def _entry(block: Block) -> Json | None:
    match block:
        case TextBlock():
            return _cut_off(block.status, {"kind": "text", "length": len(block.text)})
        case ThinkingBlock():
            return _cut_off(block.status, {"kind": "thinking"})
        case ImageBlock():
            return {"kind": "image", "url": block.url}
        case ToolBlock():
            return {"kind": "tool"} if _was_made(block) else None


def _cut_off(status: Progress, entry: Json) -> Json:
    """What streams at the moment is cut off here: a document holds nothing under way."""
    return entry if status == "done" else {**entry, "status": "interrupted"}


# -- in


class Answer:
    """An agent's message while its results are still being found."""

    def __init__(self, message: Message) -> None:
        self._message = message

    def take_result(self, call: Any, shown: Json) -> bool:
        """True when the result belongs to a call of this answer that has none yet."""
        for place, block in enumerate(self._message.blocks):
            if isinstance(block, ToolBlock) and block.status == "called" and block.call == call:
                blocks = self._message.blocks
                self._message = replace(
                    self._message, blocks=(*blocks[:place], _with_result(block, shown), *blocks[place + 1 :])
                )
                return True
        return False

    @property
    def waits(self) -> bool:
        """A call of it has no result yet."""
        return any(isinstance(block, ToolBlock) and block.status == "called" for block in self._message.blocks)

    def message(self) -> Message:
        """The message with a result for each call; one that nobody recorded is said to be missing."""
        blocks = tuple(
            replace(block, status="interrupted", error=NO_RESULT)
            if isinstance(block, ToolBlock) and block.status == "called"
            else block
            for block in self._message.blocks
        )
        return replace(self._message, blocks=blocks)


def answer_of(shown: Json, place: int) -> Answer:
    extra = own(shown, "palaver")
    status: Progress = "interrupted" if extra.get("status") == "interrupted" else "done"
    return Answer(
        Message(
            id=str(shown.get("message_id") or f"message-{place + 1}"),
            role="assistant",
            seq=place + 1,
            updated_seq=place + 1,
            ts=integer(extra.get("ts")),
            blocks=_laid_out(shown, extra),
            status=status,
            agent=text_of(extra.get("agent")),
            model=text_of(extra.get("model")),
            finish_reason=text_of(shown.get("finish_reason")),
            usage=_usage(shown.get("usage")),
            hidden=shown.get("hidden") is True,
            knowledge=_convert(extra.get("knowledge"), Knowledge),
            data=unknown_data(shown) or extra.get("data"),
        )
    )


def _laid_out(shown: Json, extra: Json) -> tuple[Block, ...]:
    thinking, tools = iter(_thinking(shown)), iter(_tools(shown))
    text = plain(shown.get("content"))
    citations = shown.get("citations")
    blocks: list[Block] = []
    for entry in _entries(extra.get("layout"), text):
        match entry.get("kind"):
            case "text":
                length = integer(entry.get("length"))
                status: Progress = "interrupted" if entry.get("status") == "interrupted" else "done"
                blocks.append(TextBlock(index=0, text=text[:length], status=status))
                text = text[length:].removeprefix(BETWEEN)
            case "thinking":
                for thought in _next_of(thinking):
                    cut = entry.get("status") == "interrupted"
                    blocks.append(replace(thought, status="interrupted") if cut else thought)
            case "tool":
                blocks.extend(_next_of(tools))
            case "image" if isinstance(entry.get("url"), str):
                blocks.append(ImageBlock(index=0, url=entry["url"]))
            case _:
                pass
    blocks.extend(thinking)
    if text:
        blocks.append(TextBlock(index=0, text=text))
    blocks.extend(block for block in blocks_of(shown.get("content")) if isinstance(block, ImageBlock))
    blocks.extend(tools)
    if isinstance(citations, list):
        blocks = _with_citations(blocks, citations)
    return tuple(replace(block, index=index) for index, block in enumerate(blocks))


def _entries(layout: Any, text: str) -> list[Json]:
    """The layout, if it still fits the text: somebody may have edited the document."""
    entries = [entry for entry in layout if isinstance(entry, dict)] if isinstance(layout, list) else []
    lengths = [integer(entry.get("length")) for entry in entries if entry.get("kind") == "text"]
    joined = sum(lengths) + len(BETWEEN) * max(0, len(lengths) - 1)
    return entries if joined == len(text) and all(length >= 0 for length in lengths) else []


def _next_of(blocks: Iterator[Any]) -> list[Any]:
    found = next(blocks, None)
    return [] if found is None else [found]


def _with_citations(blocks: list[Block], citations: list[Any]) -> list[Block]:
    for place, block in enumerate(blocks):
        if isinstance(block, TextBlock):
            blocks[place] = replace(block, citations=tuple(citations))
            break
    return blocks


def _thinking(shown: Json) -> list[ThinkingBlock]:
    kept = shown.get("thinking_blocks")
    blocks = [one for one in kept if isinstance(one, dict)] if isinstance(kept, list) else []
    if not blocks and (reasoning := text_of(shown.get("reasoning_content"))):
        return [ThinkingBlock(index=0, text=reasoning)]
    return [_thinking_of(block) for block in blocks]


def _thinking_of(shown: Json) -> ThinkingBlock:
    redacted = shown.get("type") == "redacted_thinking"
    provider = shown.get("provider")
    if provider is None and redacted and isinstance(shown.get("data"), str):
        provider = {"data": shown["data"]}
    return ThinkingBlock(
        index=0,
        text=text_of(shown.get("thinking")) or "",
        redacted=redacted,
        signature=shown["signature"] if isinstance(shown.get("signature"), str) else None,
        provider=provider,
        duration_ms=integer(shown["duration_ms"]) if "duration_ms" in shown else None,
    )


def _tools(shown: Json) -> list[ToolBlock]:
    calls = shown.get("tool_calls")
    return [_tool(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _tool(call: Json) -> ToolBlock:
    function = own(call, "function")
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        with suppress(msgspec.DecodeError):  # What a model wrote and nobody could read stays as it is.
            arguments = decode_json(arguments or "{}")
    return ToolBlock(
        index=0,
        call=str(call.get("id") or ""),
        name=str(function.get("name") or "unnamed"),
        status="called",
        input={} if arguments is None else arguments,
        provider=call.get("provider"),
    )


def _with_result(tool: ToolBlock, shown: Json) -> ToolBlock:
    extra = own(shown, "palaver")
    output = plain(shown.get("content"))
    failed = shown.get("tool_failed") is True
    status: ToolStatus = "error" if failed else "ok"
    if extra.get("status") in _RAN & frozenset(get_args(ToolStatus)):
        status = extra["status"]
    error = _convert(extra.get("error"), ToolError)
    if error is not None:
        output = output.removeprefix(error.message).removeprefix("\n")
    elif status != "ok":
        error, output = ToolError(code="tool_error", message=output or "It failed."), ""
    changes = extra.get("changes")
    return replace(
        tool,
        status=status,
        output=output,
        error=error,
        truncated=extra.get("truncated") is True,
        blob=_convert(extra.get("blob"), BlobRef),
        changes=_convert(changes, tuple[FileChange, ...]) or (),
        **{
            name: integer(extra[name])
            for name in ("exit_code", "total_lines", "total_bytes", "started_at", "finished_at")
            if name in extra
        },
    )


def _usage(shown: Any) -> Usage | None:
    if not isinstance(shown, dict):
        return None
    cached, reasoning = own(shown, "prompt_tokens_details"), own(shown, "completion_tokens_details")
    return Usage(
        input_tokens=integer(shown.get("prompt_tokens")) or integer(shown.get("input_tokens")),
        output_tokens=integer(shown.get("completion_tokens")) or integer(shown.get("output_tokens")),
        cached_tokens=integer(cached.get("cached_tokens")) or integer(shown.get("cache_read_tokens")),
        reasoning_tokens=integer(reasoning.get("reasoning_tokens")),
    )


def _convert(value: Any, kind: Any) -> Any:
    """A part of ours, or None when somebody made something else of it."""
    if value is None:
        return None
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None

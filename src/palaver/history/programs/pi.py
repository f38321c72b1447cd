"""One session file of Pi: `$PI_CODING_AGENT_DIR/sessions/<folder>/<time>_<session>.jsonl`, versions 1 to 3 of its format.

The first line says where and when; the others form a tree by `parentId`, and the conversation is the path to the last one.
Files of version 1 have no ids and are read in their order.

Pure: lines in, a conversation out. Unknown types and fields are passed over; a line that cannot be read is counted.
"""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from palaver.history.parts import integer, own, text_of
from palaver.history.programs.foreign import (
    ForeignConversation,
    Telling,
    image,
    milliseconds,
    objects,
    on_path,
    text,
    thought,
)
from palaver.schema.base import Usage
from palaver.schema.view import Block, ImageBlock, TextBlock, ToolStatus

OURS = "palaver"
"""The type of an entry that says that the session was begun from here."""

_FINISHED = {"stop": "stop", "toolUse": "tool_calls", "length": "length", "aborted": "interrupted", "error": "error"}
_EXIT = re.compile(r"Command exited with code (\d{1,9})\s*\Z")
_ABORTED = ("Command aborted", "Operation aborted")

_decoder = msgspec.json.Decoder(dict[str, Any])


def read(lines: Iterable[bytes]) -> ForeignConversation:
    telling = Telling("pi")
    entries = list(objects(lines, _decoder, telling))
    header: dict[str, Any] = next((entry for entry in entries if entry.get("type") == "session"), {})
    kept = _path(entries)
    title = ""
    for place, entry in enumerate(entries):
        if entry.get("type") == "session_info":
            title = text_of(entry.get("name")) or title
        elif kept is None or _id(entry, place) in kept:
            _take(telling, entry)
        elif entry.get("type") == "message":
            telling.left_out["messages of ways not taken"] += 1
    return telling.told(
        str(header.get("id") or ""),
        title=title,
        project=text_of(header.get("cwd")),
        of_another="it was driven from here" if _is_ours(entries) else None,
    )


def _is_ours(entries: list[dict[str, Any]]) -> bool:
    """Begun from here: an extension of ours left its sign before anybody spoke."""
    for entry in entries:
        if entry.get("type") == "custom" and entry.get("customType") == OURS:
            return True
        if own(entry, "message").get("role") == "user":
            return False
    return False


def _id(entry: dict[str, Any], place: int) -> str:
    return str(entry.get("id") or f"line {place}")


def _path(entries: list[dict[str, Any]]) -> set[str] | None:
    """None: all of it."""
    parents: dict[str, str | None] = {}
    for place, entry in enumerate(entries):
        if entry.get("type") != "session" and "parentId" in entry:
            parents[_id(entry, place)] = text_of(entry.get("parentId"))
    if not parents:
        return None
    order = {name: place for place, name in enumerate(parents)}
    return on_path(parents, order, next(reversed(parents)))


def _take(telling: Telling, entry: dict[str, Any]) -> None:
    message = own(entry, "message")
    ts = milliseconds(message.get("timestamp")) or milliseconds(entry.get("timestamp"))
    match entry.get("type"), message.get("role"):
        case ("message", "user"):
            telling.say("user", ts, _blocks(message.get("content")))
        case ("message", "assistant"):
            _answer(telling, message, ts, str(entry.get("id") or ts))
        case ("message", "toolResult"):
            _result(telling, message, ts)
        case ("message", "bashExecution"):
            telling.left_out["commands of the person"] += 1
        case ("message", _):
            telling.left_out["notes of the program to the model"] += 1
        case ("compaction" | "branch_summary", _):
            if said := text_of(entry.get("summary")):
                telling.say("summary", ts, [text(said)], hidden=True)
        case ("custom_message", _):
            telling.left_out["notes of the program to the model"] += 1
        case _:
            pass


def _answer(telling: Telling, message: dict[str, Any], ts: int, key: str) -> None:
    draft = telling.answer(ts, key, text_of(message.get("model")))
    content = message.get("content")
    for part in content if isinstance(content, list) else []:
        match part:
            case {"type": "text", "text": str(said)} if said.strip():
                draft.blocks.append(text(said))
            case {"type": "thinking", "thinking": str(said)}:
                draft.blocks.append(thought(said, text_of(part.get("thinkingSignature"))))
            case {"type": "toolCall", "id": str(call), "name": str(name)}:
                telling.call(draft, call, name, part.get("arguments"))
            case _:
                pass
    draft.finish_reason = _FINISHED.get(str(message.get("stopReason")))
    draft.interrupted = message.get("stopReason") == "aborted"
    if usage := own(message, "usage"):
        cached = integer(usage.get("cacheRead"))
        draft.usage = Usage(
            input_tokens=integer(usage.get("input")) + cached + integer(usage.get("cacheWrite")),
            output_tokens=integer(usage.get("output")),
            cached_tokens=cached,
        )


def _result(telling: Telling, message: dict[str, Any], ts: int) -> None:
    blocks = _blocks(message.get("content"))
    words = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
    images = [block for block in blocks if isinstance(block, ImageBlock)]
    status: ToolStatus = "error" if message.get("isError") is True else "ok"
    if status == "error" and words.rstrip().endswith(_ABORTED):
        status = "interrupted"
    elif status == "error" and words.startswith("Denied by the user"):
        status = "denied"
    code = _EXIT.search(words) if status == "error" else None
    telling.result(
        str(message.get("toolCallId") or ""), words, status, images, ts or None, int(code[1]) if code else None
    )


def _blocks(content: Any) -> list[Block]:
    blocks: list[Block] = []
    for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        match part:
            case {"type": "text", "text": str(said)} if said.strip():
                blocks.append(text(said))
            case {"type": "image", "data": data, "mimeType": media_type}:
                if shown := image(media_type, data):
                    blocks.append(shown)
            case _:
                pass
    return blocks

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
    text,
    thinking_block,
)
from palaver.history.programs.scratch import LineTree, Scratch
from palaver.schema.base import Usage
from palaver.schema.view import Block, ImageBlock, TextBlock, ToolStatus

OURS = "palaver"
"""The type of an entry that says that the session was begun from here."""

_FINISHED = {"stop": "stop", "toolUse": "tool_calls", "length": "length", "aborted": "interrupted", "error": "error"}
_EXIT = re.compile(r"Command exited with code (\d{1,9})\s*\Z")
_ABORTED = ("Command aborted", "Operation aborted")

_decoder = msgspec.json.Decoder(dict[str, Any])


def read(lines: Iterable[bytes], scratch: Scratch | None = None) -> ForeignConversation:
    """The lines are walked twice: which of them are the conversation is known only at their end."""
    scratch = scratch or Scratch()
    known = _Known(scratch)
    for place, entry in enumerate(objects(lines, _decoder, Telling("pi", scratch))):
        known.look_at(entry, place)
    known.finish()
    telling = Telling("pi", scratch)
    title = ""
    for place, entry in enumerate(objects(lines, _decoder, telling)):
        if entry.get("type") == "session_info":
            title = text_of(entry.get("name")) or title
        elif known.is_on_path(entry, place):
            _take(telling, entry)
        elif entry.get("type") == "message":
            telling.left_out["messages of ways not taken"] += 1
    return telling.told(
        known.session,
        title=title,
        project=known.project,
        of_another="it was driven from here" if known.is_ours else None,
    )


class _Known:
    """What the file says of itself, and how its lines hang together."""

    def __init__(self, scratch: Scratch) -> None:
        self.session = ""
        self.project: str | None = None
        self.is_ours = False
        """Begun from here: an extension of ours left its sign before anybody spoke."""
        self._has_header = self._has_spoken = False
        self._tree = LineTree(scratch)
        self._leaf: str | None = None

    def look_at(self, entry: dict[str, Any], place: int) -> None:
        if entry.get("type") == "session":
            if not self._has_header:
                self.session, self.project = str(entry.get("id") or ""), text_of(entry.get("cwd"))
            self._has_header = True
        elif "parentId" in entry:
            self._tree.add(_id(entry, place), text_of(entry.get("parentId")))
        if entry.get("type") == "custom" and entry.get("customType") == OURS and not self._has_spoken:
            self.is_ours = True
        self._has_spoken = self._has_spoken or own(entry, "message").get("role") == "user"

    def finish(self) -> None:
        self._leaf = self._tree.last()
        if self._leaf is not None:
            self._tree.keep_path(self._leaf)

    def is_on_path(self, entry: dict[str, Any], place: int) -> bool:
        """Without any parents all of it is."""
        return self._leaf is None or self._tree.is_kept(_id(entry, place))


def _id(entry: dict[str, Any], place: int) -> str:
    return str(entry.get("id") or f"line {place}")


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
                draft.blocks.append(thinking_block(said, text_of(part.get("thinkingSignature"))))
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

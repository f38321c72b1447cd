"""The contents of a message in the OpenAI shape: a text, or text and image parts. Used by the trajectory and its answers.

Also reads the part shapes of other programs (`m_type`, `m_content`; lists of files). Whatever is not understood becomes its
JSON as text: an import must never lose what was said.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from palaver.core.json_bounds import DEPTH, BeyondBounds, decode_json
from palaver.errors import Invalid
from palaver.schema.view import Block, ImageBlock, TextBlock

Json = dict[str, Any]

KEY = "palaver"
"""What only Palaver understands stands under this key, in the document and in each message."""
MESSAGE_KEYS = frozenset(
    {"message_id", "role", "content", "finish_reason", "reasoning_content", "tool_calls", "tool_call_id", "tool_failed"}
    | {"usage", "thinking_blocks", "citations", "event_kind", "hidden", KEY}
)

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements = msgspec.json.Decoder(list[msgspec.Raw] | None)


def unknown_data(shown: Json) -> Json | None:
    """What a message says beyond its shape, to be kept with it and said again."""
    unknown = {name: value for name, value in shown.items() if name not in MESSAGE_KEYS}
    return {"trajectory": unknown} if unknown else None


def parse_json(data: bytes) -> Any:
    """JSON that somebody else wrote. Raises Invalid, also for what is nested so deep that reading it later would fail."""
    try:
        return decode_json(data)
    except BeyondBounds as problem:
        raise Invalid(f"The JSON {problem}.", limit=DEPTH) from None
    except msgspec.DecodeError as problem:
        raise Invalid(f"This is not valid JSON: {problem}.") from None


def decode_document(data: bytes) -> Any:
    """A trajectory that somebody else wrote: one object, which may be as long as all of its messages. Raises Invalid.

    Each message is decoded on its own. So the bounds count for a message, and whoever reads a long document in a thread
    leaves room for others in between: the decoder lets nothing else run.
    """
    try:
        members = _members.decode(data)
        messages = _elements.decode(members["messages"]) if "messages" in members else None
    except msgspec.ValidationError:
        return parse_json(data)  # No such document; whoever asked says so.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise Invalid(f"This is not valid JSON: {problem}.") from None
    document = {name: parse_json(bytes(member)) for name, member in members.items() if name != "messages"}
    if messages is not None:
        document["messages"] = [parse_json(bytes(message)) for message in messages]
    return document


def own(value: Any, key: str) -> Json:
    """The object under a key, or an empty one."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def integer(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def text_of(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def as_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def parts_of(blocks: Sequence[Block]) -> str | list[Json]:
    """One text is a bare string."""
    parts: list[Json] = []
    for block in blocks:
        match block:
            case TextBlock():
                parts.append({"type": "text", "text": block.text})
            case ImageBlock():
                parts.append({"type": "image_url", "image_url": {"url": block.url}})
            case _:
                pass  # Only an agent thinks and calls.
    if not parts:
        return ""
    return str(parts[0]["text"]) if len(parts) == 1 and parts[0]["type"] == "text" else parts


def blocks_of(content: Any) -> tuple[TextBlock | ImageBlock, ...]:
    match content:
        case None | "":
            return ()
        case str():
            return (TextBlock(index=0, text=content),)
        case list():
            return tuple(_block(index, part) for index, part in enumerate(content))
        case _:
            return (TextBlock(index=0, text=as_json(content)),)


def plain(content: Any) -> str:
    """The words of a content of any shape: what a tool answered."""
    return "\n".join(block.text for block in blocks_of(content) if isinstance(block, TextBlock))


def _block(index: int, part: Any) -> TextBlock | ImageBlock:
    match part:
        case str():
            return TextBlock(index=index, text=part)
        case {"type": "text", "text": str(text)} | {"m_type": "text", "m_content": str(text)}:
            return TextBlock(index=index, text=text)
        case {"type": "image_url", "image_url": {"url": str(url)}} | {"type": "image_url", "image_url": str(url)}:
            return ImageBlock(index=index, url=url)
        case {"m_type": str(kind), "m_content": str(data)} if kind.startswith("image/"):
            return ImageBlock(index=index, url=f"data:{kind};base64,{data}")
        case {"file_name": str(name), "file_content": str(text)}:
            return TextBlock(index=index, text=f"{name}\n{text}")
        case _:
            return TextBlock(index=index, text=as_json(part))

"""The contents of a message in the OpenAI shape: a text, or text and image parts. Used by the trajectory and its answers.

Also reads the part shapes of other programs (`m_type`, `m_content`; lists of files). Whatever is not understood becomes its
JSON as text: an import must never lose what was said.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from palaver.errors import Invalid
from palaver.schema.view import Block, ImageBlock, TextBlock

Json = dict[str, Any]

KEY = "palaver"
"""What only Palaver understands stands under this key, in the document and in each message."""
DEPTH = 64
"""As deep as any body that a server takes."""
MESSAGE_KEYS = frozenset(
    {"message_id", "role", "content", "finish_reason", "reasoning_content", "tool_calls", "tool_call_id", "tool_failed"}
    | {"usage", "thinking_blocks", "citations", "event_kind", "hidden", KEY}
)


def unknown_data(shown: Json) -> Json | None:
    """What a message says beyond its shape, to be kept with it and said again."""
    unknown = {name: value for name, value in shown.items() if name not in MESSAGE_KEYS}
    return {"trajectory": unknown} if unknown else None


def decoded(data: bytes) -> Any:
    """JSON that somebody else wrote. Raises Invalid, also for what is nested so deep that reading it later would fail."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise Invalid(f"This is not valid JSON: {problem}.") from None
    level = [value]
    for _ in range(DEPTH):
        level = [inner for outer in level for inner in _within(outer)]
        if not level:
            return value
    raise Invalid(f"The JSON is nested more than {DEPTH} levels deep.", limit=DEPTH)


def _within(value: Any) -> Iterable[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (one for one in inner if isinstance(one, dict | list))


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

"""The tools of the two inbox servers: their names, what they take and give, and on which side each is.

Pure. A name may be written with `.` or with `_`: models are given the latter.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from palaver.errors import Invalid
from palaver.faces.inbox.pages import PAGE, PAGE_MOST
from palaver.faces.rights import Act, Side, may_act
from palaver.people.authentication import Kind

MIME = re.compile(r"(?<![\w.+-])[\w.+-]++/[\w.+-]++(?:\s*+;\s*+[\w.+-]++=[\w.+\"-]++)*", re.ASCII)

Subscriber = Annotated[str, Meta(min_length=1, max_length=128)]

T = TypeVar("T")


class ReadArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    after_id: str | None = None
    limit: int | None = None
    subscriber: Subscriber | None = None


class PostArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    content: str
    mime: str = "text/markdown"
    subscriber: Subscriber | None = None


class YieldArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    subscriber: Subscriber | None = None


@dataclass(frozen=True, slots=True)
class InboxTool:
    name: str
    act: Act
    description: str
    sides: tuple[Side, ...] = field(default=("human", "assistant"))

    @property
    def key(self) -> str:
        return as_key(self.name)


SUBSCRIBER = {"type": "string", "description": "With an owner's token: act for this subscriber."}
MESSAGE = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "ts": {"type": "string"},
        "author": {"enum": ["user", "assistant"]},
        "mime": {"type": "string"},
        "content": {"type": "string"},
    },
    "required": ["id", "ts", "author", "mime", "content"],
}

INPUT: dict[Act, dict[str, Any]] = {
    "read": {
        "type": "object",
        "properties": {
            "after_id": {
                "type": ["string", "null"],
                "description": "The last id you have; absent: from the beginning.",
            },
            "limit": {
                "type": ["integer", "null"],
                "minimum": 1,
                "description": f"{PAGE} unless told, {PAGE_MOST} at most.",
            },
            "subscriber": SUBSCRIBER,
        },
        "additionalProperties": False,
    },
    "post": {
        "type": "object",
        "properties": {
            "mime": {"type": "string", "description": "What kind of text, for example text/markdown."},
            "content": {"type": "string"},
            "subscriber": SUBSCRIBER,
        },
        "required": ["mime", "content"],
        "additionalProperties": False,
    },
    "yield": {"type": "object", "properties": {"subscriber": SUBSCRIBER}, "additionalProperties": False},
}
OUTPUT: dict[Act, dict[str, Any]] = {
    "read": {
        "type": "object",
        "properties": {"messages": {"type": "array", "items": MESSAGE}, "last_id": {"type": ["string", "null"]}},
        "required": ["messages", "last_id"],
    },
    "post": {
        "type": "object",
        "properties": {"id": {"type": "string"}, "ts": {"type": "string"}},
        "required": ["id", "ts"],
    },
    "yield": {"type": "object", "properties": {"ok": {"const": True}}, "required": ["ok"]},
}

READ_WORDS = "Messages after an id, oldest first. Ask again with the last id for more."
POST_WORDS = "Say something to the people of this conversation."
YIELD_WORDS = "End your turn once the current calls have their results. The next message of a person wakes you."

TOOLS = (
    InboxTool("chat_read_since", "read", READ_WORDS),
    InboxTool("chat.read_since", "read", f"{READ_WORDS} The same as chat_read_since."),
    InboxTool("ui.chat_read_since", "read", f"{READ_WORDS} The same as chat_read_since."),
    InboxTool("chat.human.post", "post", "Say something to the agent of this conversation.", ("human",)),
    InboxTool("chat.assistant.post", "post", POST_WORDS, ("assistant",)),
    InboxTool("loop.yield_turn", "yield", YIELD_WORDS, ("assistant",)),
    InboxTool("ui.send_message", "post", "Deprecated: use chat.assistant.post, which does the same.", ("assistant",)),
    InboxTool("ui.end_turn", "yield", "Deprecated: use loop.yield_turn, which does the same.", ("assistant",)),
)


def as_key(name: str) -> str:
    return name.replace(".", "_")


def rule_name(tool: InboxTool) -> str:
    """The name by which rules know a call: an alias does not lead around them."""
    return next(known.key for known in TOOLS if known.act == tool.act and "assistant" in known.sides)


def tools_for(side: Side, kind: Kind) -> tuple[InboxTool, ...]:
    """What a server shows to a token: its side's tools, to an observer only those that read."""
    return tuple(tool for tool in TOOLS if side in tool.sides and may_act(side, tool.act, kind))


def decode_arguments(arguments: Mapping[str, Any] | None, kind: type[T]) -> T:
    try:
        return msgspec.convert(dict(arguments or {}), kind)
    except msgspec.ValidationError as problem:
        raise Invalid(f"The arguments do not fit: {problem}.") from None


def check_mime(mime: str) -> str:
    if not MIME.fullmatch(mime):
        raise Invalid("`mime` is a media type such as text/markdown.")
    return mime

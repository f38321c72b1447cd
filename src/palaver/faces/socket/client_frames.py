"""What a client may say over the socket. Unknown fields are left alone; an unknown type is answered by an error.

What may be left out may also be null: that is how many clients write it.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from palaver.errors import Invalid
from palaver.faces.http.body import decode
from palaver.faces.socket.interactions import ApprovalScope
from palaver.schema.base import Id

PROTOCOL_VERSION = 2

Cursor = int | str
"""The `sequence` of the last frame seen, or a `nextCursor`."""


class _Asked(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel"):
    pass


class Wanted(Struct, frozen=True, kw_only=True, rename="camel"):
    session_id: Id
    after: Cursor | None = None


class Hello(_Asked, tag="hello"):
    """`protocolVersion` of any kind is read, so that a wrong one, or none, is refused by its name."""

    protocol_version: Any = None
    subscriptions: tuple[str | Wanted, ...] | None = None
    session_id: Id | None = None


class Subscribe(_Asked, tag="subscribe"):
    session_id: Id
    after: Cursor | None = None


class Unsubscribe(_Asked, tag="unsubscribe"):
    session_id: Id


class TextInput(_Asked, tag="text_input"):
    """Without a `sessionId` the one that `hello` named is meant."""

    text: str
    session_id: Id | None = None
    client_message_id: Id | None = None


class Control(_Asked, tag="control"):
    action: Literal["cancel"]
    target: Literal["output"] = "output"
    session_id: Id | None = None
    audio_end_ms: float | None = None
    """Where a player stood: those count in fractions."""


class CancelQueuedMessage(_Asked, tag="cancel_queued_message"):
    message_id: Id
    session_id: Id | None = None


class ToolInteractionResponse(_Asked, tag="tool_interaction_response"):
    session_id: Id
    interaction_id: Id
    action: Literal["approve", "deny", "submit", "cancel"]
    call_id: str | None = None
    approval_scope: ApprovalScope | None = None
    input: Any = None
    reason: str | None = None


class SetSessionModel(_Asked, tag="set_session_model"):
    session_id: Id
    model: str


class Ping(_Asked, tag="ping"):
    nonce: Any = None


Order = TextInput | Control | CancelQueuedMessage | ToolInteractionResponse | SetSessionModel
"""What becomes a command."""
Asked = Hello | Subscribe | Unsubscribe | Order | Ping


class UnknownType(Invalid):
    """A frame of a kind that this release does not know."""


class _Kind(Struct):
    type: str


_asked: "msgspec.json.Decoder[Asked]" = msgspec.json.Decoder(Asked)
_kind = msgspec.json.Decoder(_Kind)
KINDS = frozenset(kind.__struct_config__.tag for kind in (Hello, Subscribe, Unsubscribe, TextInput, Control)) | {
    kind.__struct_config__.tag for kind in (CancelQueuedMessage, ToolInteractionResponse, SetSessionModel, Ping)
}


def read(frame: bytes) -> Asked:
    kind = decode(frame, _kind).type
    if kind not in KINDS:
        raise UnknownType(f"There is no frame “{kind[:64]}” here. There are: {', '.join(sorted(map(str, KINDS)))}.")
    return decode(frame, _asked)

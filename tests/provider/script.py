"""What a scripted answer is made of, and how it goes wrong. The same structs are the JSON of a script file."""

import hashlib
from typing import Any, Literal

from msgspec import Struct


class _Tagged(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    pass


# -- what is said


class Say(_Tagged, tag="text"):
    text: str


class Think(_Tagged, tag="thinking"):
    """Without a `signature` one is made from the text, so that it can be checked when it comes back, also by another run."""

    text: str = ""
    signature: str | None = None


class Redacted(_Tagged, tag="redacted"):
    """Thinking that the provider keeps to itself. OpenAI's format has no word for it."""

    data: str


class Call(_Tagged, tag="tool"):
    """A tool call. `raw` is sent in place of the JSON of `input`, for arguments that are not JSON."""

    name: str
    input: Any = {}
    id: str | None = None
    raw: str | None = None


class Gate(_Tagged, tag="gate"):
    """The answer stops here until the test opens the gate."""

    name: str


class Pause(_Tagged, tag="pause"):
    """The answer stops here for a while. For eyes and browsers; tests of ours use gates."""

    seconds: float


Block = Say | Think | Redacted | Call | Gate | Pause


# -- how it goes wrong


class Status(_Tagged, tag="status"):
    """An error answer instead of a stream."""

    status: int
    retry_after: str | None = None
    message: str = "scripted failure"
    kind: str | None = None


class Cut(_Tagged, tag="cut"):
    """The connection breaks after so many bytes of the body. `clean` ends the body properly instead, too early."""

    after_bytes: int
    clean: bool = False


class Hang(_Tagged, tag="hang"):
    """Nothing more comes after so many bytes; without a number not even headers."""

    after_bytes: int | None = None


class Malformed(_Tagged, tag="malformed"):
    """A frame that is not JSON, after so many good ones."""

    after_frames: int = 0


class ErrorFrame(_Tagged, tag="error_frame"):
    """The stream itself says that it failed, after so many good frames."""

    after_frames: int = 0
    kind: str = "overloaded_error"
    message: str = "scripted overload"


class ContentType(_Tagged, tag="content_type"):
    value: str = "text/html"


class Empty(_Tagged, tag="empty"):
    """Headers, and a body without a byte."""


Fault = Status | Cut | Hang | Malformed | ErrorFrame | ContentType | Empty


Stop = Literal["stop", "tool_calls", "length", "refusal"]


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    blocks: tuple[Block, ...] = ()
    chunk_chars: int = 16
    """Characters a delta."""
    slice_bytes: int | None = None
    """Write the body in pieces of so many bytes, across the borders of lines and frames."""
    burst: bool = False
    """Write as much at once as gates and cuts allow."""
    delay_s: float = 0.0
    stop: Stop | None = None
    """Else what the blocks imply."""
    extra: dict[str, Any] | None = None
    """A delta with fields of the service's own, where the wire has deltas of a message (OpenAI)."""
    input_tokens: int = 10
    cached_tokens: int = 0
    output_tokens: int = 5
    fault: Fault | None = None
    when: str | None = None
    repeat: bool = False
    """Stays in the script after it was used."""

    @staticmethod
    def of(
        *blocks: str | Block,
        fault: Fault | None = None,
        stop: Stop | None = None,
        chunk_chars: int = 16,
        slice_bytes: int | None = None,
        when: str | None = None,
    ) -> "Answer":
        said = tuple(Say(text=block) if isinstance(block, str) else block for block in blocks)
        return Answer(blocks=said, fault=fault, stop=stop, chunk_chars=chunk_chars, slice_bytes=slice_bytes, when=when)

    @property
    def stop_word(self) -> Stop:
        if self.stop:
            return self.stop
        return "tool_calls" if any(isinstance(block, Call) for block in self.blocks) else "stop"


def signature_of(thinking: str) -> str:
    """What this provider signs a thought with. Has the letters that base64 has, so that a careless copy shows."""
    return f"sig+/{hashlib.sha256(thinking.encode()).hexdigest()[:32]}=="


def pieces(text: str, chars: int) -> list[str]:
    return [text[at : at + chars] for at in range(0, len(text), chars)]

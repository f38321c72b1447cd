"""What goes over the bus: one shape for everything, numbered by the place of its event in the store.

An event of the log may be several frames, so each has a number of its own: `STRIDE` times the store-wide position of the
event, and its place among the event's frames. It only grows, is the same for every reader and after every restart, and a
reader that was cut off between two frames of one event is given the second when it comes back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec
from msgspec import Struct

STRIDE = 1024
"""From one event's numbers to the next one's: a store of a billion events still counts below 2⁵³."""
FRAMES = STRIDE // 2
"""Numbers of an event's own frames: more than any has. The rest are for what changes beside the log until the next event."""

Kind = Literal[
    "run", "message", "activity", "queue", "token", "text_segment", "ask_user", "model_fallback", "tool_progress"
]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """A frame before it has its number. Without an `id` it replaces nothing, and gets one that nothing else has."""

    kind: Kind
    phase: str | None = None
    text: str | None = None
    data: Json | None = None
    id: str | None = None
    agent: str | None = None
    session: str | None = None
    """Where it differs from the conversation of its event: a project's event about one of its conversations."""
    place: int = 0
    """At least so far behind the beginning: what may or may not come before it must not change its number."""
    messages: tuple[str, ...] = ()
    """Ids of the messages whose content it carries: it goes with them when they are removed."""


class BusMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    seq: int
    rev: int
    ts_ms: int
    kind: Kind
    phase: str | None = None
    text: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    project_root: str | None = None
    data: Json | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """Ready to be written. `session` and `projects` are what readers choose by."""

    seq: int
    body: bytes
    session: str | None
    projects: tuple[str, ...]
    is_beside: bool = False
    """Of no event of the log: told to whoever listens at that moment."""
    messages: tuple[str, ...] = ()
    """As in `Told`."""


def number_of(position: int, place: int = 0) -> int:
    return position * STRIDE + place


def position_of(number: int) -> int:
    return number // STRIDE


_encoder = msgspec.json.Encoder(enc_hook=str)


_decoder = msgspec.json.Decoder(BusMessage)


def encode_message(message: BusMessage) -> bytes:
    # Without an `event:` line: `EventSource.onmessage` hears unnamed events only.
    return b"id: %d\ndata: %s\n\n" % (message.seq, _encoder.encode(message))


def redact(frame: Frame) -> Frame:
    """The frame once a message whose content it carries was removed.

    What opens or closes something stays, without its words: a client that heard the one must hear the other. The rest
    becomes empty and keeps its place.
    """
    message = _decoder.decode(frame.body.partition(b"\ndata: ")[2])
    stays = message.kind == "activity" or (message.kind, message.phase) == ("run", "outcome")
    body = encode_message(msgspec.structs.replace(message, text=None)) if stays else b""
    return replace(frame, body=body, messages=())


@dataclass(frozen=True, slots=True)
class Source:
    """The event that frames tell of."""

    position: int
    id: str
    ts: int
    session: str | None
    agent: str | None
    projects: tuple[str, ...]
    """The names of its folder, the one that is shown first."""


def number_frames(told: Sequence[Told], source: Source) -> list[Frame]:
    frames: list[Frame] = []
    place = -1
    for one in told:
        place = max(place + 1, one.place)
        seq = number_of(source.position, place)
        session = one.session or source.session
        message = BusMessage(
            id=one.id or (f"{source.id}-{place}" if place else source.id),
            seq=seq,
            rev=seq,
            ts_ms=source.ts,
            kind=one.kind,
            phase=one.phase,
            text=one.text,
            agent_id=one.agent or source.agent,
            session_id=session,
            project_root=source.projects[0] if source.projects else None,
            data=one.data,
        )
        frames.append(Frame(seq, encode_message(message), session, source.projects, messages=one.messages))
    return frames


def beside(seq: int, ts: int) -> Frame:
    """Something changed that no event tells of, such as an agent or a setting: look again."""
    message = BusMessage(id=f"sync-{seq}", seq=seq, rev=seq, ts_ms=ts, kind="run", phase="sync")
    return Frame(seq, encode_message(message), None, (), is_beside=True)


def resync(seq: int, ts: int, reason: str, lagged_count: int) -> bytes:
    """Something was missed: whoever is told this fetches everything anew. What follows it is whole."""
    data: Json = {"reason": reason, "lagged_count": lagged_count}
    return encode_message(
        BusMessage(id=f"resync-{seq}", seq=seq, rev=seq, ts_ms=ts, kind="run", phase="resync", data=data)
    )

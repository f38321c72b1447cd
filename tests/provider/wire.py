"""The seam between the server and a wire format: a new format is one more `Wire` in `server.WIRES`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from tests.provider.script import Answer, Gate, Pause

Json = dict[str, Any]
Step = bytes | Gate | Pause
"""One frame of a stream, or a place where it waits."""


class Refused(Exception):
    """What the real service would answer 400 to."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a model sees it, whatever its format."""

    text: str
    """The latest user text."""
    results: tuple[str, ...]
    """Tool results that came after it."""
    steps: int
    """Answers already given to it."""
    tools: tuple[str, ...]


class Wire(Protocol):
    def check(self, body: Json) -> None:
        """Raises `Refused` for a request the real service would not take."""
        ...

    def asked(self, body: Json) -> Asked: ...

    def frames(self, answer: Answer, body: Json, number: int) -> Iterator[Step]:
        """The stream of an answer. `number` makes its ids unique on this server."""
        ...

    def whole(self, answer: Answer, body: Json, number: int) -> Json:
        """The same answer without a stream."""
        ...

    def issued(self, answer: Answer, body: Json, number: int) -> dict[str, list[Json]]:
        """By call, the thinking that an answer goes back with, where the service holds one to it."""
        ...

    def check_kept(self, body: Json, issued: dict[str, list[Json]]) -> None:
        """Raises `Refused` when thinking that was issued comes back changed, or not at all."""
        ...

    def error(self, kind: str | None, message: str, status: int) -> Json: ...

    def error_frame(self, kind: str, message: str) -> bytes: ...


def sse(data: Json, event: str | None = None) -> bytes:
    name = f"event: {event}\n" if event else ""
    return f"{name}data: ".encode() + msgspec.json.encode(data) + b"\n\n"


def only(fields: Json, allowed: set[str], where: str) -> None:
    for field in fields:
        if field not in allowed:
            raise Refused(f"{where}.{field}: Extra inputs are not permitted")


def need(condition: object, message: str) -> None:
    if not condition:
        raise Refused(message)

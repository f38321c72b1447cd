"""JSON decoding with bounds on depth and on the number of values: for every text that a client, model or program wrote.

Used by the HTTP bodies, by the lines of agent programs, by arguments of tool calls and by imported files. Pure. msgspec
itself neither crashes nor hangs, but it keeps the interpreter to itself while it decodes, and what is nested deeper than the
walkers of this house recurse would fail later, far from who sent it.
"""

from itertools import accumulate
from typing import Any

import msgspec

DEPTH = 64
"""Deeper than any body of ours, far from what would exhaust the stack."""
VALUES = 100_000
"""In one text. Decoding as many takes some fifty milliseconds, during which nothing else runs."""

_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class BeyondBounds(msgspec.DecodeError):
    """JSON that is nested too deep or holds too many values, in a sentence without its end."""


def decode_json(data: bytes | str) -> Any:
    """Any JSON value within the bounds. Raises msgspec.DecodeError, of which BeyondBounds is one."""
    body = data.encode(errors="replace") if isinstance(data, str) else data
    check_bounds(body)
    try:
        return msgspec.json.decode(body)
    except (UnicodeDecodeError, RecursionError) as problem:
        raise msgspec.DecodeError(str(problem)) from None


def check_bounds(body: bytes) -> None:
    """Raises BeyondBounds. Of what is no JSON the answer means nothing, and the decoder says so."""
    # Counting bytes settles nearly every text; only one with many brackets or commas is looked into.
    brackets = body.count(b"[") + body.count(b"{")
    if brackets <= DEPTH and brackets + body.count(b",") <= VALUES:
        return
    texts, outside = _without_texts(body)
    # A text with more brackets than these holds too many values, which is told next.
    steps = map(_STEPS.__getitem__, outside.translate(None, _NO_BRACKETS)[: 2 * VALUES + 2])
    if max(accumulate(steps), default=0) > DEPTH:
        raise BeyondBounds(f"is nested more than {DEPTH} levels deep")
    if texts + sum(map(outside.count, (b",", b"[", b"{"))) > VALUES:
        raise BeyondBounds(f"holds more than {VALUES:,} values")


def _without_texts(body: bytes) -> tuple[int, bytes]:
    """How many texts there are, and what stands outside of them. Every pass is linear, and in C."""
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    texts = body.count(b'"') // 2
    if texts > VALUES:
        return texts, b""
    return texts, b"".join(body.split(b'"')[::2])

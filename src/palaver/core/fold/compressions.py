"""Recorded compressions in the view: which of them count, and which stay to be seen.

Called by evolve. Pure. Of each stage the furthest horizon says how a history is shown; of a stage at its strongest the
furthest counts besides. Those always stay; of the others the latest.
"""

from collections.abc import Iterable, Sequence
from typing import get_args

from palaver.schema.base import Strength
from palaver.schema.events import ContextCompressed, MessageTruncated
from palaver.schema.view import Compression, State

KEEP_LATEST = 20
"""Enough to see how it came about; what counts is kept beside them, at most two a stage."""


def compression_of(event: ContextCompressed) -> Compression:
    return Compression(
        stage=event.stage,
        horizon=event.horizon,
        strength=event.strength,
        ts=event.ts,
        seq=event.seq,
        before_tokens=event.before_tokens,
        after_tokens=event.after_tokens,
        summary=event.summary,
    )


def strongest(compressions: Iterable[Compression]) -> Strength:
    """Strength of the strongest compression; `absent` without any."""
    return max((one.strength for one in compressions), key=get_args(Strength).index, default="absent")


def keep_latest(compressions: Sequence[Compression]) -> tuple[Compression, ...]:
    if len(compressions) <= KEEP_LATEST:
        return tuple(compressions)
    furthest: dict[tuple[str, bool], Compression] = {}
    for one in compressions:
        for key in ((one.stage, False), (one.stage, one.strength == "high")):
            if key not in furthest or one.horizon >= furthest[key].horizon:
                furthest[key] = one
    counting = {one.seq for one in furthest.values()}
    older, latest = compressions[:-KEEP_LATEST], compressions[-KEEP_LATEST:]
    return (*(one for one in older if one.seq in counting), *latest)


def before(state: State, event: MessageTruncated) -> tuple[Compression, ...]:
    """What was compressed beyond the first message that goes is forgotten with it."""
    if event.first_seq is None:
        return state.compressions
    return tuple(known for known in state.compressions if known.horizon <= event.first_seq)

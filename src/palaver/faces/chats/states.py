"""Which state may follow which in this contract, and the way between two that it does not join. Pure.

Called by the projector. The core knows shorter ways (a failed conversation goes on at once, calls of one batch run and ask side
by side); a client of this contract may hold us to its diagram, so it is led along its arrows.
"""

from collections.abc import Mapping

from palaver.schema.view import Status

FOLLOWING: Mapping[Status, frozenset[Status]] = {
    "idle": frozenset({"generating"}),
    "generating": frozenset(
        {"executing_tools", "idle", "completed", "waiting_user_input", "waiting_ide", "paused", "error"}
    ),
    "executing_tools": frozenset({"generating", "completed", "waiting_user_input", "idle", "error"}),
    "paused": frozenset({"generating", "executing_tools", "idle", "error"}),
    "waiting_ide": frozenset({"generating", "idle", "error"}),
    "waiting_user_input": frozenset({"generating", "idle", "error"}),
    "completed": frozenset({"idle"}),
    "error": frozenset({"idle"}),
}
"""The contract's diagram with what it adds: from `paused` to running the tools or to rest, and to `error` from what is active."""


def between(known: Status, now: Status) -> tuple[Status, ...]:
    """The states on the way, without its ends."""
    if now == known or now in FOLLOWING[known]:
        return ()
    # What has ended comes to rest first; all that is active meets where the model is asked.
    first: Status = "idle" if known in ("completed", "error") else "generating"
    return (first, *between(first, now))

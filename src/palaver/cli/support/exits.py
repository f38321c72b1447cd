"""What the exit code of a command says. Scripts rely on these numbers: none ever changes its meaning.

The one table; `docs/cli.md` is made from it. Every command ends through here: `exit_of` for a failure, else its own choice.
"""

from enum import IntEnum

from palaver.errors import (
    Conflict,
    Forbidden,
    Gone,
    LogCorrupt,
    NotFound,
    PalaverError,
    TimedOut,
    Unauthorized,
)


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    STOPPED = 4
    REFUSED = 5
    NOT_FOUND = 6
    CONFLICT = 7
    TIMED_OUT = 8
    WAITING = 9
    INTERRUPTED = 130


MEANINGS = {
    Exit.OK: "It did what was asked. Also when whoever read its output had seen enough (`| head`).",
    Exit.FAILED: "It did not: the turn failed, a file is damaged, a test did not pass. The sentence on standard error says why.",
    Exit.USAGE: "The command was called wrongly: an unknown option, a missing argument, nothing to send.",
    Exit.UNREACHABLE: "No server answered.",
    Exit.STOPPED: "The turn was stopped before it finished, by you or by somebody else.",
    Exit.REFUSED: "Not signed in, or this token may not do it.",
    Exit.NOT_FOUND: "There is no such conversation, agent, request or token, or a short id fits several.",
    Exit.CONFLICT: "Something else was first: the request is answered, the name is taken, nothing is left to be done.",
    Exit.TIMED_OUT: "It took longer than --timeout allows. The turn goes on.",
    Exit.WAITING: "The turn waits for a person. `palaver requests` shows what for.",
    Exit.INTERRUPTED: "Ctrl-C.",
}


def exit_of(error: PalaverError) -> Exit:
    match error:
        case Unauthorized() | Forbidden():
            return Exit.REFUSED
        case NotFound() | Gone():
            return Exit.NOT_FOUND
        case Conflict():
            return Exit.CONFLICT
        case TimedOut():
            return Exit.TIMED_OUT
        case LogCorrupt():
            return Exit.FAILED
        case _:
            return Exit.UNREACHABLE if error.code == "unavailable" else Exit.FAILED

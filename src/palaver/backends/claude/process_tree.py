"""Who lives below a running program. Used to see, after a stop, whether something of the turn is left.

The program ends the command it ran, not what that command hid from it (setsid, nohup). Below the warden nobody can hide.
Linux only; elsewhere nobody is seen.
"""

import os
import sys
from collections.abc import Collection
from pathlib import Path

from palaver.backends.warden import listed_children, scanned_children

WALKS = 10
"""A run that starts and ends processes faster than it can be walked is not at rest: what was met last is told."""


def family(program: int | None, known: Collection[int] = ()) -> set[int]:
    """Living processes of the program's run but itself, without those `known` and whatever these started."""
    if program is None or sys.platform != "linux":
        return set()
    # One walk can miss an orphan: it is listed neither below its parent, which has just died, nor below the warden, which
    # was looked at before. Two walks that meet the same processes missed none.
    before: set[int] | None = None
    for _ in range(WALKS):
        met = _walk(program, known)
        if met == before:
            break
        before = met
    return {pid for pid in before or () if not str(_read_proc(pid, "State:") or "Z").startswith("Z")}


def _walk(program: int, known: Collection[int]) -> set[int]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children").exists()
    children_of = listed_children if listed else scanned_children()
    found: set[int] = set()
    # From the warden down: an orphan of the run is its child.
    waiting = [int(_read_proc(program, "PPid:") or program)]
    while waiting:
        for child in children_of(waiting.pop()):
            if child in known and child != program:
                continue
            waiting.append(child)
            if child != program:
                found.add(child)
    return found


def _read_proc(pid: int, what: str) -> str | None:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(what):
                return line.removeprefix(what).strip()
    except OSError:
        pass
    return None

"""Who lives below a running program. Used to see, after a stop, whether something of the turn is left.

The program ends the command it ran, not what that command hid from it (setsid, nohup). Below the warden nobody can hide.
Linux only; elsewhere nobody is seen.
"""

import os
import sys
from collections.abc import Collection
from pathlib import Path

from palaver.backends.warden import listed_children, scanned_children


def family(program: int | None, known: Collection[int] = ()) -> set[int]:
    """Living processes of the program's run but itself, without those `known` and whatever these started."""
    if program is None or sys.platform != "linux":
        return set()
    listed = Path(f"/proc/self/task/{os.getpid()}/children").exists()
    children_of = listed_children if listed else scanned_children()
    found: set[int] = set()
    # From the warden down: an orphan of the run is its child.
    waiting = [int(_told(program, "PPid:") or program)]
    while waiting:
        for child in children_of(waiting.pop()):
            if child in known and child != program:
                continue
            waiting.append(child)
            if child != program and not str(_told(child, "State:") or "Z").startswith("Z"):
                found.add(child)
    return found


def _told(pid: int, what: str) -> str | None:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(what):
                return line.removeprefix(what).strip()
    except OSError:
        pass
    return None

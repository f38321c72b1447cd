"""What `make test` costs in a checkout that is set up: CPU time of everything it starts, and wall time.

The floor is an interpreter that does nothing, which says how quick the machine is at the moment.
"""

import resource
import subprocess
import sys
import time
from pathlib import Path

from bench.table import Row

ROOT = Path(__file__).parent.parent
CPU_GOAL_MIN = 25.0
WALL_GOAL_MIN = 15.0
TRIES = 20


def measure() -> list[Row]:
    floor_s = min(_cpu_s([sys.executable, "-c", "pass"]) for _ in range(TRIES))
    begun = time.monotonic()
    cpu_min = _cpu_s(["make", "test"]) / 60
    wall_min = (time.monotonic() - begun) / 60
    return [
        Row(
            what="make test: CPU time",
            measured=f"{cpu_min:.1f} min",
            floor=f"python -c pass, {floor_s * 1e3:.0f} ms",
            ratio=cpu_min * 60 / floor_s,
            goal=f"≤ {CPU_GOAL_MIN:.0f} min",
            met=cpu_min <= CPU_GOAL_MIN,
        ),
        Row(
            what="make test: wall time",
            measured=f"{wall_min:.1f} min",
            goal=f"≤ {WALL_GOAL_MIN:.0f} min on two quiet cores",
            met=wall_min <= WALL_GOAL_MIN,
        ),
    ]


def _cpu_s(command: list[str]) -> float:
    """Of the command and of everything it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

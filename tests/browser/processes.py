"""Which processes of this machine carry a mark in their command line. One that ended, and only waits to be buried, has none."""

import asyncio
from contextlib import suppress
from pathlib import Path

WAIT_S = 30.0
"""The promise is two seconds. This bounds the test; what it asserts is the count."""
LOOK_EVERY_S = 0.02


def alive(mark: str) -> list[str]:
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if mark in command:
                found.append(f"{process.name} {command.strip()}")
    return found


async def settle_at(mark: str, most: int, least: int = 0) -> list[str]:
    """Those alive once their number is within the bounds, or after the longest wait."""
    loop = asyncio.get_running_loop()
    until = loop.time() + WAIT_S
    while not least <= len(found := alive(mark)) <= most and loop.time() < until:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(LOOK_EVERY_S)
    return found

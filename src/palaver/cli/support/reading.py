"""Text that a person reads to its end on a terminal before a question, a screen at a time; and the lines they type.

Called by whatever asks on the terminal. Nothing typed before a question appeared can answer it, and no words of an agent pass
for a line of ours: what a narrow terminal breaks goes on behind a sign.
"""

import asyncio
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

from palaver.core.text.approval_text import Shown

ROWS_OF_OURS = 2
"""Of each screen: what asks to go on, and what was typed there."""
LEAST_ROWS = 3
LEAST_COLUMNS = 20
TAB_COLUMNS = 4
GOES_ON = "  ┊ "

_SIGNS = {
    "plain": "│ ",
    "add": "│ +",
    "cut": "│ -",
    "same": "│  ",
    "head": "│ ",
    "label": "├ ",
    "note": "⚠ ",
    "fold": "┆ ",
}
"""Before each line that is not our own: none can pass for one of ours."""


def content_line(line: Shown) -> str:
    return f"  {_SIGNS[line.kind]}{line.text}".rstrip(" ")


async def show_to_end(lines: Iterable[str]) -> None:
    """All of it, and no question before its end was on the screen. Raises EOFError when the person leaves before that."""
    columns, height = shutil.get_terminal_size()
    rows = [row for line in lines for row in rows_of(line, columns)]
    screen = max(LEAST_ROWS, height - ROWS_OF_OURS)
    for start in range(0, len(rows), screen):
        print("\n".join(rows[start : start + screen]), file=sys.stderr)
        if left := max(0, len(rows) - start - screen):
            question = f"{left:,} more {'line' if left == 1 else 'lines'}, Enter to go on, q to leave: "
            answer = await ask_line(question)
            if not answer or answer.strip().casefold() in ("q", "n", "no"):
                raise EOFError


def rows_of(line: str, columns: int) -> Iterator[str]:
    """A line as it is broken on a terminal so wide."""
    from rich.cells import cell_len, chop_cells

    columns = max(LEAST_COLUMNS, columns)
    line = line.expandtabs(TAB_COLUMNS)
    if cell_len(line) <= columns:
        yield line
        return
    first, *_ = chop_cells(line, columns)
    yield first
    yield from (f"{GOES_ON}{row}" for row in chop_cells(line[len(first) :], columns - len(GOES_ON)))


async def ask_line(question: str) -> str:
    """The line typed after the question; empty at the end of the input (Ctrl-D)."""
    _forget_what_was_typed()
    print(question, end="", file=sys.stderr, flush=True)
    return await _line()


async def is_confirmed(lines: Iterable[str], question: str) -> bool:
    """Shows all of it and asks whether it is meant."""
    try:
        await show_to_end(lines)
    except EOFError:
        return False
    return (await ask_line(f"{question} y yes, n no: ")).strip().casefold() in ("y", "yes")


async def _line() -> str:
    """A line from the terminal that can be given up: a thread in `readline` could not."""
    loop = asyncio.get_running_loop()
    got: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not got.done():
            got.set_result(sys.stdin.readline())

    loop.add_reader(sys.stdin.fileno(), read)
    try:
        return await got
    finally:
        loop.remove_reader(sys.stdin.fileno())


def _forget_what_was_typed() -> None:
    import termios

    with suppress(termios.error, ValueError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

"""How the command line prints: tables and colours for people, JSON for programs, progress for whoever waits.

Standard output is for what was asked; everything else (notes, progress, problems) goes to standard error. Colours only on a
terminal, and not with NO_COLOR. Words that are not our own are made harmless before they get here, or by `cell`. What rich
would do for a terminal is done without it for a pipe, letter for letter the same: a script waits for no library.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from palaver.cli.support.terminal import json_text, raw_stream
from palaver.client.safe_text import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

UNBROKEN_COLUMNS = 4_000
"""The width of what is no terminal: a pipe gets whole rows, for `grep` and `cut`."""
SHAPING = ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE")
"""With one of these in the environment a pipe is treated as a terminal, in part or in whole; rich knows how."""
TAB_CELLS = 8
FLEXIBLE_CELLS = 8
"""What a column that gives way always has."""


class Cell(NamedTuple):
    words: str
    style: str = ""


def is_plain() -> bool:
    """Whether what is printed goes out as bare text."""
    return not (sys.stdout.isatty() or any(name in os.environ for name in SHAPING))


def console(stderr: bool = False) -> "Console":
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            # Whoever read has seen enough; `main` ends quietly.
            raise BrokenPipeError

    # What moves the cursor is on standard error alone: a bar of our own words.
    stream = raw_stream(sys.stderr) if stderr else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else UNBROKEN_COLUMNS
    return Piped(file=stream, width=width, highlight=False, markup=False, emoji=False)


def cell(words: object, style: str = "", limit: int = 300) -> Cell:
    """One line of anybody's words, harmless."""
    return Cell(one_line(str(words), limit), style)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[Cell]], flexible: str | None = None) -> None:
    """`flexible` is the column that may give way when the terminal is narrow; the others are never cut."""
    if is_plain():
        least = [FLEXIBLE_CELLS if heading == flexible else 0 for heading in headings]
        _print_columns([headings, *([one.words for one in row] for row in rows)], least)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in headings:
        gives = heading == flexible
        table.add_column(
            heading,
            overflow="ellipsis" if gives else "fold",
            no_wrap=gives,
            min_width=FLEXIBLE_CELLS if gives else None,
        )
    for row in rows:
        table.add_row(*(Text(one.words, style=one.style) for one in row))
    print_rich(table)


def _print_columns(rows: Sequence[Sequence[str]], least: Sequence[int]) -> None:
    columns = zip(least, zip(*rows, strict=True), strict=True)
    widths = [max(width, *(_cells(words) for words in column)) for width, column in columns]
    for row in rows:
        padded = (words + " " * (width - _cells(words)) for words, width in zip(row, widths, strict=True))
        print("  ".join(padded).rstrip())


def _cells(words: str) -> int:
    """How much room words take in a line."""
    if words.isascii():
        return len(words)
    from rich.cells import cell_len

    return cell_len(words)


def line_printer() -> Callable[[str, str], None]:
    """Prints words in a style, in lines as long as they are."""
    if is_plain():
        return lambda words, style: print(_without_tabs(words), flush=True)
    to = console()
    return lambda words, style: to.print(words, style=style or None, soft_wrap=True)


def _without_tabs(words: str) -> str:
    return "\n".join(_space(line) if "\t" in line else line for line in words.split("\n"))


def _space(line: str) -> str:
    *parts, last = line.split("\t")
    return "".join(part + " " * (TAB_CELLS - _cells(part) % TAB_CELLS) for part in parts) + last


def print_rich(table: "Table") -> None:
    to = console()
    if to.is_terminal:
        to.print(table)
        return
    with to.capture() as capture:
        to.print(table)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def print_json(value: object) -> None:
    """One document, or one line of many. Flushed: whoever reads a stream reads it now."""
    print_json_line(msgspec.json.encode(value))


def print_json_line(encoded: bytes) -> None:
    """A document that is JSON already."""
    sys.stdout.write(json_text(encoded) + "\n")
    sys.stdout.flush()


def note(sentence: str) -> None:
    """An aside, dim where it can be. Whoever wrote its words, they neither colour nor hide anything."""
    from palaver.client.safe_text import visible

    sentence = visible(sentence)
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        sentence = f"\033[2m{sentence}\033[0m"
    print(sentence, file=sys.stderr, flush=True)


class Bar(Protocol):
    def __call__(self, done: int, total: int | None) -> None: ...


@contextmanager
def progress(doing: str, *, quiet: bool = False, bytes_: bool = False) -> Iterator[Bar]:
    """A bar on standard error while something long goes on. Nothing where nobody looks."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    counted = DownloadColumn() if bytes_ else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), counted, TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bars:
        task = bars.add_task(doing, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def when(ts_ms: int) -> str:
    return datetime.fromtimestamp(ts_ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def count_of(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def is_interactive() -> bool:
    """Somebody sits there who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()

"""How the command line prints: tables and colours for people, JSON for programs, progress for whoever waits.

Standard output is for what was asked; everything else (notes, progress, problems) goes to standard error. Colours only on a
terminal, and not with NO_COLOR. Words that are not our own are made harmless before they get here, or by `cell`.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

import msgspec

from palaver.client.harmless import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

UNBROKEN_COLUMNS = 4_000
"""The width of what is no terminal: a pipe gets whole rows, for `grep` and `cut`."""


def console(stderr: bool = False) -> "Console":
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            # Whoever read has seen enough; `main` ends quietly.
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else UNBROKEN_COLUMNS
    return Piped(file=stream, width=width, highlight=False, markup=False, emoji=False)


def cell(words: object, style: str = "", limit: int = 300) -> "Text":
    """One line of anybody's words, harmless."""
    from rich.text import Text

    return Text(one_line(str(words), limit), style=style)


def print_table(headings: Sequence[str], rows: Iterable[Sequence["Text"]], flexible: str | None = None) -> None:
    """`flexible` is the column that may give way when the terminal is narrow; the others are never cut."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in headings:
        gives = heading == flexible
        table.add_column(
            heading, overflow="ellipsis" if gives else "fold", no_wrap=gives, min_width=8 if gives else None
        )
    for row in rows:
        table.add_row(*row)
    print_rich(table)


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
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def note(sentence: str) -> None:
    """An aside, dim where it can be. Its words must be harmless already."""
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


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def is_interactive() -> bool:
    """Somebody sits there who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()

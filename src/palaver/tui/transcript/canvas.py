"""Lines of styled text: what rows are drawn with. Pure; every text that comes in here was made safe before."""

from collections.abc import Iterable, Iterator

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from palaver.tui.text.markdown import Line, fold_line, ink_of, wrap_plain
from palaver.tui.text.safe import Colour, parse_colours, visible
from palaver.tui.theme import Palette
from palaver.tui.transcript.diffs import DiffLine

ELLIPSIS = "…"
RULE = "│ "
"""Left of what was opened: it belongs to the line above."""


def width_of(line: Line) -> int:
    return sum(cell_len(segment.text) for segment in line)


def cut(text: str, width: int) -> str:
    """Text of one line that fits."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + ELLIPSIS if width > 0 else ""


def crop(line: Line, width: int) -> Line:
    """A line that fits, its last visible part cut."""
    if width_of(line) <= width:
        return line
    fitting: Line = []
    room = width
    for segment in line:
        cells = cell_len(segment.text)
        if cells > room:
            fitting.append(Segment(cut(segment.text, room), segment.style))
            return fitting
        fitting.append(segment)
        room -= cells
    return fitting


def on_one_line(line: Line) -> Line:
    """A name or a path may hold a line's end; it is shown where it stands, and ends nothing."""
    if not any("\n" in segment.text or "\t" in segment.text for segment in line):
        return line
    return [Segment(segment.text.replace("\n", "␊").replace("\t", " "), segment.style) for segment in line]


def sides(left: Line, right: Line, width: int) -> Line:
    """One at each edge; the left one gives way."""
    room = width - width_of(right) - 1
    kept = crop(left, room) if right else crop(left, width)
    if not right:
        return kept
    return [*kept, Segment(" " * max(1, width - width_of(kept) - width_of(right))), *right]


def beneath(lines: Iterable[Line], palette: Palette, width: int) -> Iterator[Line]:
    """What was opened, under the line that opens it."""
    bar = Segment(RULE, Style(color=palette.line_strong))
    for line in lines:
        yield [bar, *crop(line, width - len(RULE))]


def divider(words: str, width: int, palette: Palette, style: Style | None = None) -> Line:
    """A rule with words in its middle."""
    ink = ink_of(palette)
    said = cut(words, max(0, width - 6))
    left = max(1, (width - cell_len(said) - 2) // 2)
    right = max(1, width - cell_len(said) - 2 - left)
    return [
        Segment("─" * left + " ", ink.rule),
        Segment(said, style or ink.faint),
        Segment(" " + "─" * right, ink.rule),
    ]


def on_panel(lines: Iterable[Line], width: int, colour: str) -> Iterator[Line]:
    """Lines on a ground of their own, as wide as the column."""
    ground = Style(bgcolor=colour)
    for line in lines:
        grounded = [Segment(segment.text, (segment.style or Style.null()) + ground) for segment in line]
        pad = max(0, width - 2 - width_of(line))
        yield [Segment(" ", ground), *grounded, Segment(" " * (pad + 1), ground)]


def terminal_lines(output: str, width: int, palette: Palette) -> list[Line]:
    """The output of a terminal: its colours in ours, everything else it wanted told instead of obeyed."""
    base = Style(color=palette.ink_soft)
    lines: list[Line] = [[]]
    for run in parse_colours(output):
        pen = run.pen
        style = base + Style(
            color=_colour(pen.colour, palette) if pen.colour else None,
            bold=pen.bold or None,
            dim=pen.dim or None,
            italic=pen.italic or None,
            underline=pen.underline or None,
        )
        for number, part in enumerate(run.text.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append(Segment(part.expandtabs(8), style))
    if lines and not lines[-1]:
        lines.pop()
    return [part for line in lines for part in fold_line(line, width)]


def _colour(colour: Colour, palette: Palette) -> str:
    return {
        "red": palette.bad,
        "green": palette.good,
        "yellow": palette.wait,
        "blue": palette.live,
        "magenta": palette.code_word,
        "cyan": palette.code_name,
        "grey": palette.ink_faint,
    }[colour]


def diff_lines(lines: Iterable[DiffLine], width: int, palette: Palette) -> Iterator[Line]:
    """A change by its signs; colour only helps."""
    grounds = {
        "+": Style(color=palette.good, bgcolor=palette.good_soft),
        "-": Style(color=palette.bad, bgcolor=palette.bad_soft),
        " ": Style(color=palette.ink_soft),
        "@": Style(color=palette.ink_faint),
    }
    for line in lines:
        style = grounds[line.sign]
        sign = " " if line.sign == "@" else line.sign
        text = visible(line.text).expandtabs(4) or ("⋯" if line.sign == "@" else "")
        for part in fold_line([Segment(f"{sign} {text}", style)], width):
            pad = width - width_of(part)
            yield [*part, Segment(" " * pad, style)] if line.sign in "+-" else part


def faint_lines(text: str, width: int, palette: Palette) -> list[Line]:
    return wrap_plain(text, width, ink_of(palette).faint)

"""Lines of a change as text for a widget: signs and colours, with hidden characters made visible. Pure."""

from collections.abc import Iterable

from textual.content import Content

from palaver.tui.text.safe import limit_lines, visible
from palaver.tui.transcript.diffs import DiffLine

_STYLES = {"+": "$good on $good-soft", "-": "$bad on $bad-soft", "@": "$ink-faint", " ": "$ink-soft"}
LINE_CHARACTERS = 500
"""A longer line of a change is cut in its middle, and says so."""


def diff_content(lines: Iterable[DiffLine]) -> Content:
    return Content("\n").join(diff_line(line) for line in lines)


def diff_line(line: DiffLine) -> Content:
    text = limit_lines(visible(line.text.expandtabs(4)), LINE_CHARACTERS)
    if line.sign == "@":
        return Content.styled(text or "⋯", _STYLES["@"])
    return Content.styled(f"{line.sign} {text}", _STYLES[line.sign])

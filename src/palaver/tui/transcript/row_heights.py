"""What the transcript knows of rows without drawing them: how many are the same, about how high each is. Pure."""

from collections.abc import Sequence

from palaver.tui.transcript.rows import ChangesRow, ErrorRow, GroupRow, Row, TextRow, UserRow, WorkRow
from palaver.tui.transcript.style import LONG_LINES


def common(one: Sequence[Row], other: Sequence[Row]) -> int:
    """How many rows at the beginning are the very same."""
    at = 0
    for a, b in zip(one, other, strict=False):
        if a is not b:
            break
        at += 1
    return at


def belongs(row: Row, message: str) -> bool:
    """Whether a row shows something of a message; it may be folded into a group."""
    if isinstance(row, GroupRow):
        return any(belongs(member, message) for member in row.members)
    if isinstance(row, WorkRow):
        return any(belongs(member, message) for member in row.hidden)
    return row.key == message or row.key.startswith(f"{message}:")


def guess_lines(row: Row, column: int) -> int:
    """Good enough for a scroll bar; the true height comes with the first look."""
    match row:
        case TextRow():
            text = row.block.text
            return 1 + len(text) // column + text.count("\n")
        case UserRow():
            return 2 + min(LONG_LINES, len(row.text) // column + row.text.count("\n"))
        case ErrorRow():
            return 5
        case ChangesRow():
            return 1 + min(LONG_LINES, len(row.changes))
        case _:
            return 1

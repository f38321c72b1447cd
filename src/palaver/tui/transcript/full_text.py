"""All of what a row shows a part of: an output cut in its middle, a text of which only the beginning is at hand. Pure.

Called by the conversation screen when somebody wants to read or edit it; `screens/full_text.py` shows it.
"""

from dataclasses import dataclass

from palaver.schema.base import BlobRef
from palaver.schema.view import TextBlock
from palaver.tui.text import rows
from palaver.tui.text.safe import one_line
from palaver.tui.transcript.calls import object_text, verb_of
from palaver.tui.transcript.rows import AttemptRow, NoteRow, Row, TextRow, ThinkingRow, ToolRow, UserRow


@dataclass(frozen=True, slots=True)
class Whole:
    title: str
    text: str
    """What is at hand of it."""
    blob: BlobRef | None = None
    """Where all of it is kept, when that is more."""


def whole_of(row: Row) -> Whole | None:
    """None: it shows all there is."""
    match row:
        case ToolRow(block=block):
            title = one_line(f"{verb_of(block)} {object_text(block)}")
            changed = "\n".join(change.diff.rstrip("\n") for change in block.changes if change.diff)
            text = block.output or changed or block.input_text
            return Whole(title, text, block.blob) if text or block.blob else None
        case TextRow(block=block):
            return Whole(rows.ANSWER, block.text, block.blob)
        case ThinkingRow(block=block):
            return Whole(rows.THOUGHT, block.text) if block.text else None
        case UserRow(message=message, text=text):
            blobs = (block.blob for block in message.blocks if isinstance(block, TextBlock))
            return Whole(rows.MESSAGE, text, next((blob for blob in blobs if blob is not None), None))
        case NoteRow(text=text) | AttemptRow(text=text):
            return Whole(rows.MESSAGE, text) if text else None
        case _:
            return None

"""Which message of one's own is edited and sent again, and all of its words. Called by the conversation screen."""

from collections.abc import Sequence

from palaver.client.client import Client
from palaver.tui.docks.edits import OfTranscript
from palaver.tui.transcript.full_text import whole_of
from palaver.tui.transcript.rows import InterruptedRow, Row, UserRow


def to_resend(rows: Sequence[Row], chosen: Row | None) -> UserRow | None:
    """The one that was chosen; the last where it was a stop, or nothing. Another agent's is not the reader's to change."""
    own = [row for row in rows if isinstance(row, UserRow) and not _is_of_agent(row)]
    if isinstance(chosen, InterruptedRow | None):
        return own[-1] if own else None
    return chosen if isinstance(chosen, UserRow) and chosen in own else None


def _is_of_agent(row: UserRow) -> bool:
    return row.message.origin is not None and row.message.origin.agent is not None


async def whole_edit(client: Client, row: UserRow) -> OfTranscript:
    """Raises PalaverError. Where only the beginning is at hand, sending that again would lose the rest."""
    whole = whole_of(row)
    text = row.text
    if whole is not None and whole.blob is not None:
        text = (await client.blob(whole.blob.id)).decode(errors="replace")
    return OfTranscript(row.message.id, text, row.images)

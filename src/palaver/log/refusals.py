"""What every store refuses before it writes, in the same words."""

from pathlib import Path

from palaver.errors import HeadMoved, Invalid
from palaver.log.base import Append


def body_of(append: Append) -> bytes:
    """The lines as a segment's body. Raises ValueError for what would break the numbering by lines."""
    # One search through all of them: asking each line takes three times as long.
    if not append.lines or b"\n" in b"".join(append.lines):
        raise ValueError("An append needs at least one line, and no line may contain a newline.")
    return b"\n".join([*append.lines, b""])


def head_moved(append: Append, head: int) -> HeadMoved:
    return HeadMoved(
        f"Conversation {append.conversation} stands at event {head}, not at {append.after}: another writer was faster. "
        "Read what is new and decide again.",
        conversation=append.conversation,
        head=head,
    )


def claim_used(append: Append, client_request_id: str) -> HeadMoved:
    return HeadMoved(
        f"The client request id {client_request_id} was used in conversation {append.conversation} before. "
        "Look up what it was used for.",
        conversation=append.conversation,
        client_request_id=client_request_id,
    )


def snapshot_ahead(conversation: str, seq: int, head: int) -> HeadMoved:
    return HeadMoved(
        f"A snapshot at event {seq} of conversation {conversation} is ahead of its log, which ends at {head}.",
        conversation=conversation,
        head=head,
    )


def refuse_occupied(target: Path) -> Invalid | None:
    """A backup never writes over anything."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        return Invalid(f"{target} exists and is not empty. Name a new directory for the backup.")
    return None

"""Small logs to store: lines that are numbered and rows that fit them."""

from palaver.log.base import Append, Claim, Document, EventLog, lines_of
from palaver.schema.events import TextDelta, TextFinished, encode_event
from palaver.schema.view import Listing


def deltas(first: int, count: int, conversation: str = "c", message: str = "m") -> list[bytes]:
    return [
        encode_event(
            TextDelta(seq=seq, id=f"e{seq}", conversation=conversation, message=message, block=0, text=f"t{seq} ")
        )
        for seq in range(first, first + count)
    ]


def finished(seq: int, text: str, conversation: str = "c") -> bytes:
    return encode_event(TextFinished(seq=seq, id=f"e{seq}", conversation=conversation, message="m", block=0, text=text))


def row(conversation: str, updated_at: int = 1, **fields: object) -> Listing:
    known: dict[str, object] = {
        "title": conversation,
        "agent": "default",
        "project": None,
        "status": "idle",
        "created_at": 1,
        "seq": 1,
    }
    return Listing(id=conversation, updated_at=updated_at, **{**known, **fields})  # type: ignore[arg-type]


async def write(
    log: EventLog,
    conversation: str,
    after: int = 0,
    count: int = 1,
    listing: Listing | None = None,
    documents: list[Document] | None = None,
    claims: list[Claim] | None = None,
) -> None:
    lines = deltas(after + 1, count, conversation)
    await log.append(Append(conversation, after, lines, listing, documents or (), (), claims or ()))


async def all_lines(log: EventLog, conversation: str, after: int = 0, limit_bytes: int = 256 << 10) -> list[bytes]:
    """Everything after a seq, read page by page as the feed does. Lines up to the cursor are left in."""
    lines: list[bytes] = []
    while segments := await log.read(conversation, after, limit_bytes):
        for segment in segments:
            lines.extend(lines_of(segment))
        after = segments[-1].last
    return lines

"""What was taken out of a conversation after it was posted: removed, cleared, or taken back from the queue. Pure.

Used by the reader of an inbox: a message that is gone from the history on any face is gone from the inbox too. Ids are not
used again, so a cursor that names such a message stays valid.
"""

from palaver.schema.events import Event, MessageAdded, MessageRemoved, MessageTruncated, QueueRemoved

TELLING = (b'{"type":"message.removed"', b'{"type":"message.truncated"', b'{"type":"queue.removed"')
"""How the lines begin that take something away."""
_DELIVERED = b'{"type":"message.added"'


def is_telling(line: bytes) -> bool:
    """Whether a line must be looked into. A queued message takes its place in the history when it is delivered."""
    return line.startswith(TELLING) or (line.startswith(_DELIVERED) and b'"item":"' in line)


class Removals:
    def __init__(self) -> None:
        self._removed: set[str] = set()
        self._cuts: list[tuple[int, int]] = []
        """From which place of the history on, and when."""
        self._delivered: dict[str, int] = {}

    def take(self, event: Event) -> None:
        match event:
            case MessageRemoved():
                self._removed.add(event.message)
            case QueueRemoved(reason="cancelled"):
                self._removed.add(event.item)
            case MessageTruncated():
                # Logs of the first releases do not say at which event a cut begins, but for one of everything.
                first = 0 if event.index == 0 else event.first_seq
                if first is not None:
                    self._cuts.append((first, event.seq))
            case MessageAdded() if event.item is not None:
                self._delivered[event.item] = event.seq
            case _:
                pass

    def covers(self, source: str, began: int | None) -> bool:
        """Whether a message is gone. `began` is where it stands in the history; None: it was queued."""
        if source in self._removed:
            return True
        place = self._delivered.get(source) if began is None else began
        return place is not None and any(first <= place < cut for first, cut in self._cuts)

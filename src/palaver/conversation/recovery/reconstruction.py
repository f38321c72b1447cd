"""Derived rows of a conversation, reconstructed from its events alone: its row of the list, search texts, claims and runs.

Called by salvage, and by the log's repair through the composition root. Pure: proven segments in, rows out.
"""

from collections.abc import Sequence
from dataclasses import replace

from palaver.conversation.creation import document_of
from palaver.conversation.index_rows import listing_of, runs_of
from palaver.conversation.recovery.load import message_to_store
from palaver.core.fold.evolve import fold
from palaver.log.segments import Stored
from palaver.log.sqlite.salvage_store import Kept, UsedClaim
from palaver.schema.events import ConversationCreated, KnownEvent, UnknownEvent, decode_event
from palaver.schema.view import State


def reconstruct(name: str, segments: Sequence[Stored]) -> Kept | None:
    """None: not even the first events fold."""
    kept, state = fold_longest(name, segments)
    if kept is None or state is None:
        return kept
    # An answer without a word may yet be taken back; a stored row of it would stay behind.
    settled = [message for message in state.messages if message.blocks or message.status != "streaming"]
    return replace(kept, messages=[message_to_store(message) for message in settled])


def fold_longest(name: str, segments: Sequence[Stored]) -> tuple[Kept | None, State | None]:
    """The rows and the view at the last segment; of events that do not fold, those before them.

    A project's stream has no view.
    """
    for count in range(len(segments), 0, -1):
        try:
            return _fold(name, segments[:count])
        except Exception:  # noqa: BLE001, S112 - proven bytes of a release with a defect: less of them may still fold
            continue
    return None, None


def _fold(name: str, segments: Sequence[Stored]) -> tuple[Kept, State | None]:
    events = [decode_event(line) for one in segments for line in one.body.split(b"\n") if line]
    if not isinstance(events[0], ConversationCreated):
        # A project's stream, which is in no list.
        return Kept(name, segments), None
    state = fold(State(), events)
    known: list[KnownEvent] = [event for event in events if not isinstance(event, UnknownEvent)]
    shown = [document_of(message) for message in state.messages if not message.hidden]
    documents = [document for document in shown if document.text.strip()]
    kept = Kept(name, segments, listing_of(state), documents, _claims(known), runs_of(State(), state, known))
    return kept, state


def _claims(events: Sequence[KnownEvent]) -> list[UsedClaim]:
    """Which request ids were used up, by which events: neighbours that carry the same id and hash."""
    claims: dict[str, UsedClaim] = {}
    for event in events:
        if event.client_request_id and event.body_hash:
            known = claims.get(event.client_request_id)
            first = known.first if known and known.last == event.seq - 1 else event.seq
            claims[event.client_request_id] = UsedClaim(event.client_request_id, event.body_hash, first, event.seq)
    return list(claims.values())

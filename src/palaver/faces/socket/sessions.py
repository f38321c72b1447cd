"""Sessions in the words of this contract: news of the list as frames, and rows of it. Pure.

Called by `project` for whoever subscribed, by `bulletin` for everybody else, and by `operations`.
"""

from palaver.faces.http.timestamps import iso
from palaver.faces.socket.frame_types import Json
from palaver.faces.socket.sequence import sequence_of
from palaver.schema.base import Shown
from palaver.schema.content import plain_text
from palaver.schema.events import (
    ConversationCreated,
    ConversationDeleted,
    ConversationUpdated,
    KnownEvent,
    MessageEdited,
    MessageRemoved,
    MessageTruncated,
)
from palaver.schema.view import Listing

ListNews = (
    ConversationCreated | ConversationUpdated | ConversationDeleted | MessageTruncated | MessageRemoved | MessageEdited
)

OUTPUT_MODE = "output_mode"
"""The parameter of a conversation that says whether answers are spoken."""


def is_list_news(event: KnownEvent) -> bool:
    """What the list of sessions shows, or what takes messages out of the transcript that were shown."""
    match event:
        case MessageRemoved():
            # A turn itself only takes away an answer that said nothing: nobody was told of that one.
            return event.turn is None
        case ConversationCreated() | ConversationUpdated() | ConversationDeleted():
            return True
        case MessageTruncated() | MessageEdited():
            return True
        case _:
            return False


def session_frame(event: KnownEvent) -> tuple[str, Json]:
    match event:
        case ConversationCreated():
            fields: Json = {"agentId": event.agent, "title": event.title, "createdAt": iso(event.ts)}
            if event.project:
                fields["projectRoot"] = event.project
            return "session_created", {**fields, **_params(event.params)}
        case ConversationDeleted():
            return "session_deleted", {}
        case MessageTruncated(index=0):
            return "session_cleared", {}
        case _:
            return "session_updated", {"updatedAt": iso(event.ts), **_changes(event)}


def _changes(event: KnownEvent) -> Json:
    match event:
        case ConversationUpdated():
            fields = {"title": event.title, "agentId": event.agent, "archived": event.archived}
            told = {name: value for name, value in fields.items() if value is not None}
            return {**told, **_params(event.params or {})}
        case MessageTruncated():
            return {"truncatedFrom": event.index}
        case MessageRemoved():
            return {"removedMessageId": event.message}
        case MessageEdited():
            return {"editedMessageId": event.message, "text": plain_text(event.content)}
        case _:
            return {}


def _params(params: Json) -> Json:
    names = {"model": "model", OUTPUT_MODE: "outputMode", "mode": "mode"}
    return {names[name]: value for name, value in params.items() if name in names}


class Row(Shown, rename="camel"):
    session_id: str
    title: str
    agent_id: str
    project_root: str | None
    status: str
    created_at: str
    updated_at: str
    message_count: int
    sequence: int


def row(listing: Listing) -> Row:
    return Row(
        session_id=listing.id,
        title=listing.title,
        agent_id=listing.agent,
        project_root=listing.project,
        status=listing.status,
        created_at=iso(listing.created_at),
        updated_at=iso(listing.updated_at),
        message_count=listing.message_count,
        sequence=sequence_of(listing.seq),
    )

"""Chats that somebody follows, and the answers to commands that all of them are told.

One projection a chat, whoever reads, with every text whole: this face has no word for one that is cut. A command and its
repetition come one after the other, so that one of them is told that it is the repetition. Holds nothing that outlives a
connection or a request.
"""

import asyncio
from collections.abc import AsyncGenerator
from weakref import WeakValueDictionary

from msgspec.structs import replace

from palaver.conversation.project_files.transcripts import with_whole_texts
from palaver.faces.chats.messages import Json
from palaver.faces.chats.projection import ChatsProjector
from palaver.faces.chats.snapshot import snapshot_frame
from palaver.faces.http.rings import Beat, Behind
from palaver.faces.http.sse import BEHIND_COMMENT, HEARTBEAT_COMMENT
from palaver.faces.long_texts import with_whole_text
from palaver.faces.projection import Following, Projected, Projector, Told, View
from palaver.feed.feed import Feed
from palaver.log.base import Blobs
from palaver.schema.view import State

LONG_MESSAGES = 200
"""A longer chat is encoded beside the loop: others are served on it."""


class Rooms:
    def __init__(self, feed: Feed, whole: View, blobs: Blobs) -> None:
        """`whole`: the view of a conversation with all its messages."""

        async def view(chat: str) -> State:
            state = await whole(chat)
            return replace(state, messages=tuple([await with_whole_texts(one, blobs) for one in state.messages]))

        self._projected = Projected(feed, view, ChatsProjector, lambda event: with_whole_text(event, blobs))
        self._under_way: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @property
    def kept_bytes(self) -> int:
        return self._projected.kept_bytes

    def one_at_a_time(self, chat: str, client_request_id: str) -> asyncio.Lock:
        """For commands under one request id. Held while its command is recorded, which waits for no agent."""
        return self._under_way.setdefault((chat, client_request_id), asyncio.Lock())

    def tell_ack(self, chat: str, client_request_id: str, accepted: bool, result: Json, *, takes_number: bool) -> None:
        def words(projector: Projector) -> list[Told]:
            assert isinstance(projector, ChatsProjector)
            return [*projector.ack(client_request_id, accepted, result, takes_number=takes_number)]

        self._projected.tell(chat, words)

    async def frames(self, chat: str) -> AsyncGenerator[bytes, None]:
        """A snapshot, then everything after it; another snapshot for a reader that fell behind."""
        async with self._projected.following(chat) as following:
            yield await _snapshot(*_now(following))
            while True:
                item = await following.next()
                match item:
                    case Beat():
                        yield HEARTBEAT_COMMENT
                    case Behind():
                        # Waits until the reader takes something: the snapshot is of the moment it is written.
                        yield BEHIND_COMMENT
                        following.begin_anew()
                        yield await _snapshot(*_now(following))
                    case _:
                        yield item.body


def _now(following: Following) -> tuple[State, int]:
    """The view and its number, of one moment: nothing may be awaited between the two."""
    projector = following.projector
    assert isinstance(projector, ChatsProjector)
    return following.state, projector.seq


async def _snapshot(state: State, seq: int) -> bytes:
    if len(state.messages) <= LONG_MESSAGES:
        return snapshot_frame(state, seq)
    return await asyncio.to_thread(snapshot_frame, state, seq)

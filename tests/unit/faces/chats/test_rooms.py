"""Readers of a chat: one who falls behind gets a fresh snapshot, and everybody hears every ack."""

import asyncio
from contextlib import aclosing

import pytest

from palaver.clock import ManualClock
from palaver.core.fold.evolve import evolve
from palaver.faces.chats.rooms import Rooms
from palaver.faces.http.sse import BEHIND_COMMENT, HEARTBEAT_COMMENT
from palaver.faces.projection import RING_BYTES
from palaver.feed.feed import HEARTBEAT_S, Feed
from palaver.log.base import Append
from palaver.log.memory import MemoryLog
from palaver.schema.events import ConversationCreated, DraftSet, KnownEvent, encode_event
from palaver.schema.view import State
from tests.unit.faces.chats.client import ChatsClient, frames_of

pytestmark = pytest.mark.anyio

WAIT_S = 10.0


class World:
    def __init__(self) -> None:
        self.log = MemoryLog()
        self.clock = ManualClock()
        self.feed = Feed(self.log, self.clock, self.snapshot)
        self.view = State()
        self.rooms = Rooms(self.feed, self.whole, self.log.blobs)

    async def snapshot(self, conversation: str) -> tuple[int, bytes]:
        return self.view.seq, b"{}"

    async def whole(self, conversation: str) -> State:
        return self.view

    async def add(self, event: KnownEvent) -> None:
        line = encode_event(event)
        await self.log.append(Append("c", self.view.seq, [line]))
        self.view = evolve(self.view, event)
        self.feed.publish("c", event.seq, event.seq, line + b"\n")

    async def draft(self, text: str) -> None:
        await self.add(DraftSet(seq=self.view.seq + 1, conversation="c", text=text))


async def begun() -> World:
    world = World()
    await world.add(ConversationCreated(seq=1, conversation="c"))
    return world


async def test_reader_that_falls_behind_gets_a_fresh_snapshot_and_goes_on_from_it() -> None:
    world = await begun()
    slow, quick = ChatsClient(), ChatsClient()
    async with aclosing(world.rooms.frames("c")) as lagging, aclosing(world.rooms.frames("c")) as keeping_up:
        async with asyncio.timeout(WAIT_S):
            for client, frames in ((slow, lagging), (quick, keeping_up)):
                for frame in frames_of(await anext(frames)):
                    client.apply(frame)
            size = 64 << 10
            for number in range(2 * RING_BYTES // size):
                await world.draft(f"{number} " + "x" * size)
                while quick.thread["draft"] != world.view.draft:
                    for frame in frames_of(await anext(keeping_up)):
                        quick.apply(frame)
            assert await anext(lagging) == BEHIND_COMMENT
            (snapshot,) = frames_of(await anext(lagging))
            slow.apply(snapshot)
            assert snapshot["type"] == "snapshot"
            assert (slow.seq, slow.thread) == (quick.seq, quick.thread)
            await world.draft("the end")
            for client, frames in ((slow, lagging), (quick, keeping_up)):
                (told,) = frames_of(await anext(frames))
                client.apply(told)
                assert client.thread["draft"] == "the end"


async def test_every_reader_hears_every_ack_and_silence_is_a_comment() -> None:
    world = await begun()
    beating = asyncio.create_task(world.feed.beat())
    try:
        async with aclosing(world.rooms.frames("c")) as one, aclosing(world.rooms.frames("c")) as other:
            async with asyncio.timeout(WAIT_S):
                clients = [(ChatsClient(), one), (ChatsClient(), other)]
                for client, frames in clients:
                    client.apply(frames_of(await anext(frames))[0])
                world.rooms.tell_ack("c", "taken", True, {"status": "applied"}, takes_number=True)
                world.rooms.tell_ack("c", "refused", False, {"status": "invalid_content"}, takes_number=False)
                world.rooms.tell_ack("nobody", "x", True, {}, takes_number=True)
                for client, frames in clients:
                    first = client.seq
                    for frame in frames_of(await anext(frames)):
                        client.apply(frame)
                    assert [ack["seq"] - first for ack in client.acks] == [1, 1]
                    assert [ack["accepted"] for ack in client.acks] == [True, False]
                silent = asyncio.ensure_future(anext(one))
                while not silent.done():
                    await asyncio.sleep(0)
                    await world.clock.advance(HEARTBEAT_S)
                assert await silent == HEARTBEAT_COMMENT
    finally:
        beating.cancel()
        await asyncio.wait({beating})

"""Following one conversation as server-sent events: replay and live are the same bytes, and no cursor meets silence."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from palaver.backends.script.script import Say, Wait
from palaver.clock import ManualClock
from tests.flows.served import WAIT_S, Served, ended_turn, serving

pytestmark = pytest.mark.anyio


async def test_live_and_replay_are_the_same_bytes(tmp_path: Path) -> None:
    async with serving(tmp_path, (Say("A good long answer. " * 20), Wait("gate"), Say("The end."))) as server:
        conversation = await server.create()
        async with server.events(conversation, after=1) as live, server.events(conversation, after=1) as second:
            await live.next()
            await second.next()
            await server.send(conversation, "go")
            async with asyncio.timeout(WAIT_S):
                await server.agent.reached("gate")
            async with server.events(conversation, after=1) as half:
                server.agent.open_gate("gate")
                streams = [live, second, half]
                seen = [[event async for event in stream.until(ended_turn)] for stream in streams]
        async with server.events(conversation, after=1) as replay:
            seen.append([event async for event in replay.until(ended_turn)])
            streams.append(replay)

    assert all(events == seen[0] for events in seen)
    assert [event["seq"] for event in seen[0]] == list(range(2, len(seen[0]) + 2))
    written = [_events_of(stream.raw) for stream in streams]
    assert all(events == written[0] for events in written)


def _events_of(raw: bytes) -> list[bytes]:
    return [block for block in raw.split(b"\n\n") if block.startswith(b"id: ")]


async def test_events_are_the_bytes_of_the_log(shared: Served) -> None:
    conversation = await shared.create()
    await shared.send(conversation, "hello")
    async with shared.events(conversation, after=0) as stream:
        [_ async for _ in stream.until(ended_turn)]

    stored = b"".join(segment.body for segment in await shared.app.log.read(conversation, 0, 1 << 20))
    assert [block.partition(b"data: ")[2] for block in _events_of(stream.raw)] == stored.splitlines()


async def test_last_event_id_continues_where_a_reader_stopped(shared: Served) -> None:
    conversation = await shared.create()
    await shared.send(conversation, "hello")
    events = await shared.settled(conversation)

    # A browser that reconnects repeats the address it began with.
    async with shared.events(conversation, after=0, headers={"Last-Event-ID": "3"}) as stream:
        rest = [event async for event in stream.until(ended_turn)]

    assert rest == events[3:]


async def test_stream_without_a_cursor_starts_live(shared: Served) -> None:
    conversation = await shared.create()
    await shared.send(conversation, "before")
    events = await shared.settled(conversation)

    async with shared.events(conversation) as stream:
        await stream.next()
        await shared.send(conversation, "after")
        _, first = await stream.data()

    assert first["seq"] == events[-1]["seq"] + 1


async def test_headers_are_flushed_at_once_and_forbid_buffering(shared: Served) -> None:
    conversation = await shared.create()

    async with asyncio.timeout(WAIT_S), shared.events(conversation) as stream:
        headers = stream.response.headers

    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-store"
    assert headers["x-accel-buffering"] == "no"


@pytest.mark.parametrize("cursor", [99_999, 10**17])
async def test_cursor_from_the_future_gets_a_snapshot_at_once(shared: Served, cursor: int) -> None:
    conversation = await shared.create(title="Here")

    async with shared.events(conversation, after=cursor) as stream:
        fields = await stream.next()
        await shared.command(conversation, type="set_draft", text="x")
        _, event = await stream.data()

    snapshot = msgspec.json.decode(fields["data"])
    assert (fields["event"], fields["id"]) == ("snapshot", "1")
    assert (snapshot["type"], snapshot["reason"], snapshot["seq"]) == ("snapshot", "future", 1)
    assert snapshot["conversation"] == snapshot["state"]["conversation"] == conversation
    assert snapshot["epoch"] == shared.app.log.epoch
    assert (event["type"], event["seq"]) == ("draft.set", 2)


async def test_cursor_of_another_store_gets_a_snapshot_at_once(shared: Served) -> None:
    conversation = await shared.create()

    async with shared.events(conversation, after=1, epoch="another") as stream:
        _, snapshot = await stream.data()
    async with shared.events(conversation, after=0, epoch=shared.app.log.epoch) as stream:
        _, event = await stream.data()

    assert (snapshot["type"], snapshot["reason"]) == ("snapshot", "epoch")
    assert event["type"] == "conversation.created"


@pytest.mark.parametrize("cursor", ["abc", "-1", "1.5", "0x10", "²", ""])
async def test_cursor_that_is_no_number_is_refused(shared: Served, cursor: str) -> None:
    conversation = await shared.create()

    answer = await shared.http.get(f"/api/conversations/{conversation}/events", params={"after": cursor})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert "`after`" in answer.json()["message"]


async def test_silent_stream_has_a_heartbeat(tmp_path: Path) -> None:
    clock = ManualClock()
    async with serving(tmp_path, clock=clock) as server:
        conversation = await server.create()
        async with server.events(conversation) as stream:
            await stream.next()
            await clock.advance(15)
            beat = await stream.next()

    assert beat == {"": "heartbeat"}


async def test_stream_of_a_deleted_conversation_shows_the_deletion_and_then_is_gone(shared: Served) -> None:
    conversation = await shared.create()
    async with shared.events(conversation) as stream:
        await stream.next()
        await shared.http.delete(f"/api/conversations/{conversation}")
        _, event = await stream.data()

    later = await shared.http.get(f"/api/conversations/{conversation}/events", params={"after": 99})
    assert event["type"] == "conversation.deleted"
    assert later.status_code == 410


async def test_closed_reader_leaves_nothing_behind(server: Served) -> None:
    conversation = await server.create()
    for _ in range(5):
        async with server.events(conversation) as stream:
            await stream.next()

    await server.deserted()
    assert (server.app.streams.count, server.app.feed.readers) == (0, 0)


async def test_stream_ends_when_the_server_stops(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        conversation = await server.create()
        async with server.events(conversation) as stream:
            await stream.next()
            server.app.streams.close()
            with pytest.raises(StopAsyncIteration):
                await stream.next()
        refused = await server.http.get(f"/api/conversations/{conversation}/events")

    assert refused.status_code == 503

"""The socket: many conversations and the list over one connection, each gap-free, none ended by a wrong line."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from palaver.backends.script.script import Say, Wait
from palaver.clock import ManualClock
from palaver.faces.native import socket as native_socket
from tests.flows.served import Lines, Served, serving

pytestmark = pytest.mark.anyio


def of(lines: list[dict[str, Any]], conversation: str) -> list[dict[str, Any]]:
    return [line for line in lines if line.get("conversation") == conversation and "seq" in line and "id" in line]


async def test_socket_greets_with_the_store_and_the_version(shared: Served) -> None:
    async with shared.socket() as socket:
        hello = await socket.next()

    assert hello == {"type": "hello", "epoch": shared.app.log.epoch, "version": "0.1.0", "server": "Palaver"}


async def test_three_conversations_stream_over_one_socket_each_without_a_gap(server: Served) -> None:
    conversations = [await server.create(title=f"Number {number}") for number in range(3)]
    seen: list[dict[str, Any]] = []
    async with server.socket() as socket:
        for conversation in conversations:
            await socket.say(type="subscribe", conversation=conversation)
            seen += await socket.until(type="caught_up", conversation=conversation)
        await asyncio.gather(*(server.send(conversation, "hello") for conversation in conversations))
        waiting = set(conversations)
        while waiting:
            seen.append(await socket.next())
            if seen[-1]["type"] == "turn.finished":
                waiting.discard(seen[-1]["conversation"])

    for conversation in conversations:
        snapshot = next(line for line in seen if line["type"] == "snapshot" and line["conversation"] == conversation)
        events = of(seen, conversation)
        assert (snapshot["reason"], snapshot["seq"], snapshot["state"]["seq"]) == ("start", 1, 1)
        assert [event["seq"] for event in events] == list(range(2, len(events) + 2))
        assert events == await server.settled(conversation, after=1)


async def test_subscription_with_a_cursor_replays_and_says_when_it_is_live(shared: Served) -> None:
    conversation = await shared.create()
    await shared.send(conversation, "hello")
    events = await shared.settled(conversation)

    async with shared.socket() as socket:
        await socket.next()
        await socket.say(type="subscribe", conversation=conversation, after=2)
        lines = await socket.until(type="caught_up")

    assert lines[:-1] == events[2:]
    assert lines[-1] == {"type": "caught_up", "conversation": conversation, "seq": events[-1]["seq"]}


async def test_what_waits_goes_out_as_one_frame(shared: Served) -> None:
    conversation = await shared.create()
    await shared.send(conversation, "hello")
    events = await shared.settled(conversation)

    async with shared.socket() as socket:
        await socket.next()
        await socket.say(type="subscribe", conversation=conversation, after=0)
        await socket.until(type="caught_up")

    assert len(socket.frames) - 1 < len(events)
    assert not any(frame.endswith("\n") for frame in socket.frames)


async def test_cursor_from_the_future_or_of_another_store_gets_a_snapshot(shared: Served) -> None:
    conversation = await shared.create()
    async with shared.socket() as socket:
        await socket.next()
        await socket.say(type="subscribe", conversation=conversation, after=50)
        future = await socket.next()
        await socket.say(type="subscribe", conversation=conversation, after=1, epoch="another")
        other = (await socket.until(type="snapshot"))[-1]

    assert (future["type"], future["reason"], future["seq"]) == ("snapshot", "future", 1)
    assert (other["type"], other["reason"], other["epoch"]) == ("snapshot", "epoch", shared.app.log.epoch)


async def test_subscribing_again_replaces_and_unsubscribing_ends(shared: Served) -> None:
    conversation, other = await shared.create(), await shared.create()
    async with shared.socket() as socket:
        for _ in range(2):
            await socket.say(type="subscribe", conversation=conversation)
            await socket.until(type="caught_up")
        await shared.command(conversation, type="set_draft", text="once")
        await socket.say(type="subscribe", conversation=other)
        first = await socket.until(type="caught_up", conversation=other)
        await socket.say(type="unsubscribe", conversation=conversation)
        await socket.say(type="ping", nonce="done")
        await socket.until(type="pong", nonce="done")
        await shared.command(conversation, type="set_draft", text="twice")
        await shared.command(other, type="set_draft", text="seen")
        later = await socket.until(type="draft.set")

    assert len(of(first, conversation)) == 1
    assert [line["conversation"] for line in later] == [other]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "null",
        '{"type": "explode"}',
        '{"type": "subscribe"}',
        '{"type": "subscribe", "conversation": 5}',
        '{"type": "subscribe", "conversation": "x", "after": "1"}',
        '{"type": "subscribe", "conversation": "x", "after": -1}',
        "[" * 50_000,
    ],
    ids=lambda line: line[:40] or "empty",
)
async def test_line_that_is_not_understood_is_answered_by_an_error_and_nothing_ends(shared: Served, line: str) -> None:
    async with shared.socket() as socket:
        await socket.next()
        await socket.connection.send(line)
        error = await socket.next()
        await socket.say(type="ping", nonce=7)
        pong = await socket.next()

    assert (error["type"], error["code"]) == ("error", "invalid")
    assert error["message"]
    assert pong == {"type": "pong", "nonce": 7}


async def test_binary_frame_is_answered_by_an_error(shared: Served) -> None:
    async with shared.socket() as socket:
        await socket.next()
        await socket.connection.send(b"\x00\x01")
        error = await socket.next()

    assert (error["type"], error["code"]) == ("error", "invalid")


async def test_unknown_and_deleted_conversations_are_named_in_their_errors(shared: Served) -> None:
    gone = await shared.create()
    await shared.http.delete(f"/api/conversations/{gone}")
    async with shared.socket() as socket:
        await socket.next()
        await socket.say(type="subscribe", conversation="nobody")
        unknown = await socket.next()
        await socket.say(type="subscribe", conversation=gone)
        deleted = await socket.next()

    assert (unknown["type"], unknown["code"], unknown["conversation"]) == ("error", "not_found", "nobody")
    assert (deleted["type"], deleted["code"], deleted["conversation"]) == ("error", "gone", gone)


async def test_subscription_too_many_is_refused_and_the_others_stay(
    shared: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_socket, "SUBSCRIPTIONS", 2)
    first, second, third = [await shared.create() for _ in range(3)]
    async with shared.socket() as socket:
        await socket.next()
        for conversation in (first, second):
            await socket.say(type="subscribe", conversation=conversation)
            await socket.until(type="caught_up")
        await socket.say(type="subscribe", conversation=third)
        refused = await socket.next()
        await shared.command(first, type="set_draft", text="still here")
        event = await socket.next()

    assert (refused["type"], refused["code"]) == ("error", "busy")
    assert (event["type"], event["conversation"]) == ("draft.set", first)


async def test_frame_of_more_than_a_mebibyte_closes_the_socket(shared: Served) -> None:
    async with shared.socket() as socket:
        await socket.next()
        await socket.connection.send("x" * ((1 << 20) + 1))
        with pytest.raises(ConnectionClosed) as closed:
            await socket.next()

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


async def test_socket_has_a_heartbeat(tmp_path: Path) -> None:
    clock = ManualClock()
    async with serving(tmp_path, clock=clock) as server, server.socket() as socket:
        await socket.next()
        await socket.say(type="ping", nonce="there")
        await socket.next()
        await clock.advance(15)
        beat = await socket.next()

    assert beat == {"type": "heartbeat", "ts": clock.now_ms()}


async def test_list_follows_from_the_position_of_the_page_it_was_read_with(server: Served) -> None:
    kept, doomed = await server.create(title="Kept"), await server.create(title="Doomed")
    page = (await server.http.get("/api/conversations")).json()
    fresh = await server.create(title="Fresh")
    await server.http.patch(f"/api/conversations/{kept}", json={"title": "Renamed"})
    await server.http.delete(f"/api/conversations/{doomed}")

    rows = {row["id"]: row for row in page["items"]}
    async with server.socket() as socket:
        await socket.next()
        await socket.say(type="follow_list", after_pos=page["pos"])
        rows |= await listed(socket, until=doomed)
        await server.send(kept, "hello")
        rows |= await listed(socket, until=kept)

    assert set(rows) == {kept, doomed, fresh}
    assert rows[doomed]["deleted"] is True
    assert (rows[kept]["title"], rows[fresh]["title"]) == ("Renamed", "Fresh")


async def listed(socket: Lines, until: str) -> dict[str, Any]:
    """Rows by id from `listed` lines, up to the line that holds the row of a conversation."""
    rows: dict[str, Any] = {}
    while until not in rows:
        line = (await socket.until(type="listed"))[-1]
        assert line["pos"] == max(row["pos"] for row in line["items"])
        rows |= {row["id"]: row for row in line["items"]}
    return rows


async def test_list_without_a_position_starts_now_and_one_from_the_future_is_told_to_start_anew(
    server: Served,
) -> None:
    await server.create(title="Before")
    async with server.socket() as socket:
        await socket.next()
        await socket.say(type="follow_list", after_pos=10_000)
        reset = await socket.next()
        await socket.say(type="follow_list")
        await socket.say(type="ping", nonce="there")
        await socket.until(type="pong")
        after = await server.create(title="After")
        rows = await listed(socket, until=after)

    assert reset == {"type": "listed", "items": [], "pos": reset["pos"], "reset": True}
    assert set(rows) == {after}


async def test_closed_socket_leaves_nothing_behind(tmp_path: Path) -> None:
    async with serving(tmp_path, (Say("Going on"), Wait("gate"))) as server:
        conversation = await server.create()
        for _ in range(3):
            async with server.socket() as socket:
                await socket.say(type="subscribe", conversation=conversation)
                await socket.say(type="follow_list")
                await socket.until(type="caught_up")
        await server.deserted()

    assert (server.app.streams.count, server.app.feed.readers) == (0, 0)


async def test_socket_is_closed_with_the_restart_code_when_the_server_stops(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, server.socket() as socket:
        await socket.next()
        server.app.streams.close()
        with pytest.raises(ConnectionClosed) as closed:
            await socket.next()

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012

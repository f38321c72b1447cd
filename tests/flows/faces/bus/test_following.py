"""Following the bus: from a cursor, through a filter, slowly, or not at all."""

import asyncio
import socket
from pathlib import Path

import pytest

from palaver.backends.script.script import Say
from palaver.clock import ManualClock
from palaver.errors import LogUnavailable
from palaver.faces.bus import pump
from palaver.faces.http import sse
from palaver.log.memory import MemoryLog
from tests.flows.engine import engine
from tests.flows.faces.bus.listening import Event, chat, free_session, is_a, listening, of, post, statuses
from tests.flows.served import PATIENCE_S, Served, serving

OUTCOME = is_a("run", "outcome")
RESYNC = is_a("run", "resync")


async def turn(server: Served, **fields: str) -> str:
    """A session in which one turn was had."""
    async with listening(server) as bus:
        session = str((await chat(server, "Hello there.", **fields))["session_id"])
        await bus.until(is_a("run", "outcome", session_id=session))
    return session


def marks(events: list[Event]) -> list[tuple[object, ...]]:
    return [(event["seq"], event["id"], event["kind"], event.get("phase")) for event in events]


async def test_cursor_gets_exactly_what_was_missed(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        async with listening(server) as whole:
            await turn(server)
            await turn(server)
            second = [await whole.until(OUTCOME), await whole.until(OUTCOME)][1]
            heard = list(whole.heard)
            for place in range(0, len(heard) - 1, 7):
                seq = heard[place]["seq"]
                async with listening(server, after=seq) as behind:
                    assert marks(await behind.until(lambda event: event == second[-1])) == marks(heard[place + 1 :])
        await server.deserted()
        # Nobody listened meanwhile, and something happened.
        await server.create(title="Quiet")
        async with listening(server, headers={"Last-Event-ID": str(second[-1]["seq"])}) as alone:
            (created,) = await alone.until(is_a("run", "sync"))
    assert created["seq"] > second[-1]["seq"]


async def test_cursor_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, listening(server) as bus:
        await chat(server, "Hello there.")
        heard = await bus.until(OUTCOME)
    message = next(place for place, event in enumerate(heard) if event["kind"] == "message")
    tokens = [place for place, event in enumerate(heard) if is_a("token")(event)]
    async with serving(tmp_path) as again:
        async with listening(again, after=heard[message]["seq"]) as behind:
            missed = await behind.until(lambda event: event["seq"] == heard[-1]["seq"])
        # In the middle of fragments that are no longer kept.
        async with listening(again, after=heard[tokens[1]]["seq"]) as lost:
            told = await lost.next()
    assert RESYNC(told)
    # The fragments of what was finished may come as one; everything else is the same.
    words = "".join(event["text"] for event in of(heard, "token"))
    assert "".join(event["text"] for event in of(missed, "token")) == words
    lasting = [event for event in heard[message + 1 :] if event["kind"] not in ("token", "activity")]
    assert [event for event in missed if event["kind"] not in ("token", "activity")] == lasting


async def test_cursor_that_nobody_knows_gets_one_resync_and_then_live(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        await turn(server)
        strange: list[tuple[dict[str, int], str]] = [
            ({"after": after}, "") for after in (10**15, 2**63 - 1, 10**30, -1)
        ]
        for query, seen in (*strange, ({}, "another-server"), ({}, str(10**30))):
            async with listening(server, headers={"Last-Event-ID": seen}, **query) as lost:
                (told,) = await lost.until(RESYNC)
                session = await turn(server)
                live = await lost.until(OUTCOME)
            assert sorted(told["data"]) == ["lagged_count", "reason"]
            assert {event["session_id"] for event in live} == {session}
            assert all(event["seq"] > told["seq"] for event in live)
        refused = await server.http.get("/api/events", params={"after": "yesterday"})
    assert refused.status_code == 400


async def test_reader_behind_what_is_kept_gets_exactly_one_resync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump, "RING_BYTES", 16_000)
    async with serving(tmp_path) as server, listening(server) as bus:
        await turn(server)
        first = (await bus.until(OUTCOME))[0]
        for _ in range(5):
            await turn(server)
        async with listening(server, after=first["seq"]) as late:
            session = await turn(server)
            told = await late.until(OUTCOME)
    assert [RESYNC(event) for event in told] == [True, *[False] * (len(told) - 1)]
    assert told[0]["data"]["lagged_count"] > 0
    assert {event["session_id"] for event in told[1:]} == {session}


async def test_without_a_cursor_it_begins_live(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        await turn(server)
        async with listening(server) as bus:
            session = await turn(server)
            told = await bus.until(OUTCOME)
    assert {event["session_id"] for event in told} == {session}


async def test_filters_choose_a_project_or_a_session(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to(folders[0])
    async with serving(tmp_path / "data") as server:
        async with (
            listening(server, project_root=str(folders[0])) as here,
            listening(server, project_root=str(link)) as linked,
        ):
            await turn(server, project_root=str(folders[1]))
            mine = await turn(server, project_root=str(folders[0]))
            told, through = await here.until(OUTCOME), await linked.until(OUTCOME)
        async with listening(server, session_id=mine) as only:
            await turn(server, project_root=str(folders[0]))
            await chat(server, "Again.", session_id=mine)
            heard = await only.until(OUTCOME)
    assert {event["session_id"] for event in told} == {mine}
    assert through == told
    assert {event["session_id"] for event in heard} == {mine}


async def test_every_change_reaches_the_bus_and_deletions_too(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, listening(server) as bus:
        session = await turn(server)
        await bus.until(OUTCOME)
        state = await server.state(session)
        message = state["messages"][0]["id"]
        for command in (
            {"type": "update_conversation", "title": "Renamed"},
            {"type": "update_conversation", "archived": True},
            {"type": "set_params", "patch": {"temperature": 0.5}},
            {"type": "set_draft", "text": "Dear"},
            {"type": "clear_draft"},
            {"type": "edit_message", "message": message, "content": "Other words"},
            {"type": "remove_message", "message": message},
            {"type": "truncate_messages", "from_index": 0},
            {"type": "delete_conversation"},
        ):
            assert (await server.command(session, **command)).status_code == 202
            (told,) = await bus.until(is_a("run", "sync"))
            assert (told["session_id"], told["project_root"]) == (session, str(server.app.directory.home))
            assert "data" not in told


@pytest.mark.parametrize("way", ["remove", "truncate", "clear", "delete"])
async def test_what_was_removed_is_gone_from_the_replay(tmp_path: Path, way: str) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        await work.server.create()
        (start,) = await bus.until(is_a("run", "sync"))
        session = await free_session(work.server, work.project)
        words = "!think A secret thought.\n!shell echo secret\n!write secret.txt secret\n---\n!say The secret word."
        await chat(work.server, words, session_id=session)
        first = await bus.until(OUTCOME)
        await chat(work.server, "!say In the open.", session_id=session)
        second = await bus.until(OUTCOME)
        messages = (await work.server.state(session))["messages"]
        if way == "remove":
            for message in messages[:3]:
                gone = await work.server.command(session, type="remove_message", message=message["id"])
                assert gone.status_code == 202
            await bus.until(is_a("run", "sync"))
            await bus.until(is_a("run", "sync"))
        elif way == "truncate":
            assert (await work.server.command(session, type="truncate_messages", from_index=0)).status_code == 202
        elif way == "clear":
            assert await post(work.server, "/api/chat/clear", session_id=session) == {"removed": 5}
        else:
            assert (await work.server.command(session, type="delete_conversation")).status_code == 202
        last = (await bus.until(is_a("run", "sync")))[-1]
        before = [*first, *second]
        halfway = before.index(of(before, "activity", "doing", status="calling_tool")[1])
        replays = []
        for cursor in (start["seq"], before[halfway]["seq"]):
            async with listening(work.server, after=cursor) as again:
                replays.append(await again.until(lambda event: event["seq"] == last["seq"]))
    # And from the log, when the server was started anew.
    async with engine(tmp_path) as work, listening(work.server, after=start["seq"]) as again:
        replays.append(await again.until(lambda event: event["seq"] == last["seq"]))
    assert "secret" in str(before)
    for replay in replays:
        assert "secret" not in str(replay)
        assert ("In the open." in str(replay)) == (way == "remove")
        # What has begun still ends.
        assert len(of(replay, "run", "outcome")) == 2
    for replay in replays[:2]:
        assert {event["seq"] for event in replay} < {event["seq"] for event in bus.heard}
    for replay, heard in zip(replays, ([], before[: halfway + 1], []), strict=True):
        statuses([*heard, *replay])


async def test_message_that_was_taken_back_is_gone_from_the_replay(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began = await chat(work.server, "!say Wait.\n!gate hold")
        await work.provider.gates.reached("hold")
        await chat(work.server, "A secret.", session_id=began["session_id"])
        await chat(work.server, "In the open.", session_id=began["session_id"])
        waits = await bus.until(lambda event: event["kind"] == "queue" and len(event["data"]["items"]) == 2)
        await work.server.http.delete(f"/api/chat/queue/{waits[-1]['data']['items'][0]['id']}")
        last = (await bus.until(is_a("run", "sync")))[-1]
        async with listening(work.server, after=waits[0]["seq"]) as again:
            replay = await again.until(lambda event: event["seq"] == last["seq"])
    assert "A secret." in str(waits)
    assert "A secret." not in str(replay)
    assert [event["text"] for event in of(replay, "message")][-1] == "In the open."
    assert [item["preview"] for item in of(replay, "queue")[-1]["data"]["items"]] == ["In the open."]


async def test_slow_reader_is_let_go_and_the_others_do_not_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "SEND_S", PATIENCE_S)
    async with serving(tmp_path, [Say("x" * 1_500_000, chunk=60_000)] * 8) as server:
        request = f"GET /api/events HTTP/1.1\r\nHost: {server.host}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", int(server.host.rpartition(":")[2]))) as deaf:
            deaf.setblocking(False)
            await asyncio.get_running_loop().sock_sendall(deaf, request.encode())
            async with listening(server) as bus:
                await chat(server, "Flood me.")
                told = await bus.until(OUTCOME)
        await server.deserted()
    assert told[-1]["data"] == {"outcome": "none"}
    if not of(told, "run", "resync"):
        assert sum(len(event["text"]) for event in of(told, "token")) == 12_000_000


async def test_heartbeat_is_a_comment_every_fifteen_seconds(tmp_path: Path) -> None:
    clock = ManualClock()
    async with serving(tmp_path, clock=clock) as server, listening(server) as bus:
        for _ in range(2):
            # The reader waits for it before the time goes by.
            waiting = asyncio.create_task(bus.stream.next())
            await server.http.get("/api/health")
            await clock.advance(15)
            assert await waiting == {"": "heartbeat"}


async def test_log_that_fails_for_a_moment_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "AGAIN_S", 0.01)
    log = MemoryLog()
    async with serving(tmp_path, log=log) as server, listening(server) as bus:
        reading, failures = log.read_all, iter([True, True])

        async def failing(after_pos: int, limit_bytes: int = 1) -> object:
            if next(failures, False):
                raise LogUnavailable("The disk does not answer.")
            return await reading(after_pos, limit_bytes)

        monkeypatch.setattr(log, "read_all", failing)
        await server.create(title="Kept")
        (told,) = await bus.until(is_a("run", "sync"))
    assert told["kind"] == "run"


async def test_whoever_has_no_token_or_comes_from_elsewhere_hears_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, server.browser() as stranger:
        nobody = await stranger.get("/api/events")
        foreign = await server.http.get("/api/events", headers={"Origin": "https://example.invalid"})
        host = await server.http.get("/api/events", headers={"Host": "example.invalid"})
    assert nobody.status_code == 401
    assert foreign.status_code in (403, 421)
    assert host.status_code in (400, 403, 421)

"""The connection itself: its greeting, its subscriptions, its errors, and who may come in."""

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from palaver.backends.script.script import Say
from palaver.faces import projection
from palaver.faces.socket import connection as face_connection
from palaver.faces.socket.replay import replay
from palaver.faces.socket.sequence import Position, sequence_of
from tests.flows.faces.socket.client import Frame, client, events, of, operation, rendered, subscribed, types
from tests.flows.served import PATIENCE_S, WAIT_S, Served, serving

pytestmark = pytest.mark.anyio

BLOCKS = 45
"""Of 200 KB each: more than the kernel and the server hold for one who does not read."""


@pytest.fixture
async def session(shared: Served) -> str:
    return str((await operation(shared, "create", 201, title="Here"))["sessionId"])


async def test_greeting_is_answered_and_subscribes(shared: Served, session: str) -> None:
    async with client(shared) as one:
        await one.say("hello", protocolVersion=2, subscriptions=[session], sessionId=session)
        ready, confirmed = await one.next(), await one.next()
    assert (ready["type"], ready["protocolVersion"], ready["sessionId"]) == ("session_ready", 2, session)
    assert (confirmed["type"], confirmed["sessionId"], confirmed["reset"]) == ("subscribed", session, False)


async def test_greeting_may_say_null_for_what_it_may_leave_out(shared: Served) -> None:
    async with client(shared) as one:
        await one.say("hello", protocolVersion=2, subscriptions=None, sessionId=None)
        assert (await one.next())["type"] == "session_ready"


async def test_second_greeting_is_an_error_and_the_connection_lives(shared: Served) -> None:
    async with subscribed(shared) as one:
        await one.say("hello", protocolVersion=2)
        error = await one.next()
        assert (error["type"], error["code"]) == ("error", "duplicate_hello")
        assert await one.flush() == []


@pytest.mark.parametrize("version", [1, 3, "2", None])
async def test_wrong_version_is_an_error_and_the_end(shared: Served, version: object) -> None:
    async with client(shared) as one:
        await one.say("hello", protocolVersion=version)
        error = await one.next()
        assert (error["type"], error["code"]) == ("error", "unsupported_protocol_version")
        with pytest.raises(ConnectionClosed):
            await one.next()


async def test_greeting_without_a_version_is_an_error_and_the_end(shared: Served) -> None:
    async with client(shared) as one:
        await one.say("hello")
        assert (await one.next())["code"] == "unsupported_protocol_version"
        with pytest.raises(ConnectionClosed):
            await one.next()


async def test_other_frames_before_the_greeting_are_refused(shared: Served, session: str) -> None:
    async with client(shared) as one:
        await one.say("text_input", sessionId=session, text="hello")
        assert (await one.next())["code"] == "hello_required"
        await one.hello(session)
    assert of(await events(shared, session), "user_message") == []


async def test_ping_is_answered_with_its_nonce(shared: Served) -> None:
    async with subscribed(shared) as one:
        await one.say("ping", nonce="n-1")
        assert await one.next() == {"type": "pong", "nonce": "n-1"}
        await one.say("ping")
        assert await one.next() == {"type": "pong"}


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("no json", "invalid"),
        ("[]", "invalid"),
        ('{"type":"dance"}', "unknown_message_type"),
        ('{"type":"text_input"}', "invalid"),
        ('{"type":"text_input","text":"hi","sessionId":"nobody"}', "not_found"),
        ('{"type":"text_input","text":"hi"}', "invalid"),
        ('{"type":"text_input","text":" ","sessionId":"nobody"}', "invalid"),
        ('{"type":"subscribe","sessionId":"nobody"}', "not_found"),
        ('{"type":"subscribe","sessionId":"not an id"}', "invalid"),
        ('{"type":"control","action":"dance","sessionId":"nobody"}', "invalid"),
        ('{"type":"cancel_queued_message","messageId":"nobody"}', "not_found"),
        ('{"type":"set_session_model","sessionId":"nobody","model":"x"}', "not_found"),
    ],
)
async def test_what_is_not_understood_is_an_error_and_the_connection_lives(
    shared: Served, frame: str, code: str
) -> None:
    async with subscribed(shared) as one:
        await one.connection.send(frame)
        error = await one.next()
        assert (error["type"], error["code"]) == ("error", code)
        assert error["message"]
        assert await one.flush() == []


async def test_unsubscribed_session_is_not_heard_of_any_more(shared: Served, session: str) -> None:
    async with subscribed(shared, session) as one, subscribed(shared, session) as other:
        await one.say("unsubscribe", sessionId=session)
        assert await one.next() == {"type": "unsubscribed", "sessionId": session}
        await other.say("text_input", sessionId=session, text="hello")
        await other.until("text_done")
        assert of(await one.flush(), "user_message", "text_delta", "text_done") == []


async def test_sessions_made_changed_and_deleted_are_told_to_everybody(shared: Served) -> None:
    async with subscribed(shared) as one:
        session = (await operation(shared, "create", 201, agentId="other"))["sessionId"]
        made = (await one.until(lambda frame: frame.get("sessionId") == session))[-1]
        assert (made["type"], made["agentId"], made["sequence"]) == ("session_created", "other", sequence_of(1))
        await operation(shared, "update", sessionId=session, title="Renamed")
        changed = (await one.until("session_updated"))[-1]
        assert (changed["sessionId"], changed["title"]) == (session, "Renamed")
        await operation(shared, "message", sessionId=session, content="hello")
        await operation(shared, "clear", sessionId=session)
        assert (await one.until("session_cleared"))[-1]["sessionId"] == session
        await operation(shared, "delete", sessionId=session)
        assert (await one.until("session_deleted"))[-1]["sessionId"] == session


async def test_subscriber_hears_of_its_session_once_and_in_order(shared: Served, session: str) -> None:
    async with subscribed(shared, session) as one:
        await operation(shared, "update", sessionId=session, title="Renamed", agentId="other")
        await operation(shared, "delete", sessionId=session)
        heard = await one.until("session_deleted")
        # The bulletin for everybody comes within a tenth of a second; whoever subscribed is spared it.
        later = await operation(shared, "create", 201)
        heard += await one.until(lambda frame: frame.get("sessionId") == later["sessionId"])
    assert types([frame for frame in heard if frame["sessionId"] == session]) == ["session_updated", "session_deleted"]


async def test_news_told_to_a_subscriber_are_not_told_again_when_it_unsubscribes(shared: Served, session: str) -> None:
    async with subscribed(shared, session) as one:
        await operation(shared, "update", sessionId=session, title="Renamed")
        heard = await one.until("session_updated")
        await one.say("unsubscribe", sessionId=session)
        # The bulletin for everybody is a moment behind; what is made now comes after it.
        later = await operation(shared, "create", 201)
        heard += await one.until(lambda frame: frame.get("sessionId") == later["sessionId"])
        await operation(shared, "update", sessionId=session, title="Renamed again")
        heard += await one.until("session_updated")
    of_session = [frame for frame in heard if frame["sessionId"] == session]
    assert types(of_session) == ["session_updated", "unsubscribed", "session_updated"]
    assert of_session[-1]["title"] == "Renamed again"


async def test_deleted_session_is_gone_for_whoever_comes_later_while_others_still_listen(
    shared: Served, session: str
) -> None:
    await operation(shared, "message", sessionId=session, content="hello")
    async with subscribed(shared, session) as early:
        await operation(shared, "delete", sessionId=session)
        await early.until("session_deleted")
        async with subscribed(shared) as late:
            await late.say("subscribe", sessionId=session, after=0)
            heard = await late.until("error")
    assert (types(heard), heard[-1]["code"], heard[-1]["sessionId"]) == (["error"], "gone", session)


async def test_foreign_page_and_stranger_are_refused_before_it_opens(shared: Served) -> None:
    url = shared.url.replace("http://", "ws://") + "/ws"
    for headers, status in (
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Bearer {shared.token}", "Origin": "https://elsewhere.example"}, 403),
    ):
        with pytest.raises(InvalidStatus) as refused:
            async with connect(url, additional_headers=headers, open_timeout=WAIT_S):
                pass
        assert refused.value.response.status_code == status


async def test_client_that_stops_reading_is_let_go_and_the_others_read_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(face_connection, "SEND_S", PATIENCE_S)
    async with serving(tmp_path, (Say("x" * 200_000, chunk=20_000),) * BLOCKS) as server:
        session = await server.create()
        url, headers = server.url.replace("http", "ws", 1) + "/ws", {"Authorization": f"Bearer {server.token}"}
        async with connect(url, additional_headers=headers, max_queue=1, max_size=None, close_timeout=0.1) as deaf:
            await deaf.send(f'{{"type":"hello","protocolVersion":2,"subscriptions":["{session}"]}}')
            async with subscribed(server, session) as one:
                await server.send(session, "flood me")
                heard = await one.until("text_done")
            await server.deserted()
    assert sum(len(frame["delta"]) for frame in of(heard, "text_delta")) == BLOCKS * 200_000


async def test_client_that_was_too_slow_gets_what_it_missed_from_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projection, "RING_BYTES", 100_000)
    missed: list[int] = []

    def counted(log: Any, session: str, after: Position, until: int, **more: Any) -> Any:
        missed.append(until - after.events)
        return replay(log, session, after, until, **more)

    monkeypatch.setattr(face_connection, "replay", counted)
    async with serving(tmp_path, (Say("x" * 200_000, chunk=20_000),) * BLOCKS) as server:
        session = await server.create()
        url, headers = server.url.replace("http", "ws", 1) + "/ws", {"Authorization": f"Bearer {server.token}"}
        async with connect(url, additional_headers=headers, max_queue=1, max_size=None) as slow:
            await slow.send(f'{{"type":"hello","protocolVersion":2,"subscriptions":["{session}"]}}')
            async with subscribed(server, session) as one:
                await server.send(session, "flood me")
                last = (await one.until("text_done"))[-1]
            heard: list[Frame] = []
            async with asyncio.timeout(WAIT_S):
                while not heard or (heard[-1]["type"], heard[-1]["sequence"]) != ("text_done", last["sequence"]):
                    heard.append({"sequence": 0, **msgspec.json.decode(await slow.recv())})
    whole = [msgspec.json.decode(frame) for frame in one.raw]
    assert rendered(heard) == rendered(whole)
    numbers = [frame["sequence"] for frame in heard if frame["type"] not in ("session_ready", "subscribed", "resync")]
    assert all(later > earlier for earlier, later in pairwise(numbers))
    assert max(missed) > 0

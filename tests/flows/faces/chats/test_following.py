"""Following a chat: a snapshot, then contiguous numbers, the same for everybody, whoever comes and goes."""

from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from palaver.backends.script.script import Say, Wait
from palaver.people.authentication import KeyRecord, token_hash
from tests.flows.faces.chats.chat import Chat, command, following, fresh
from tests.flows.served import WAIT_S, Served, serving

pytestmark = pytest.mark.anyio


def as_observer(server: Served) -> httpx.AsyncClient:
    """A client that may only read."""
    server.app.keys.replace(server.token, [KeyRecord(name="guest", kind="observer", hash=token_hash("guest-token"))])
    return httpx.AsyncClient(base_url=server.url, headers={"Authorization": "Bearer guest-token"}, timeout=WAIT_S)


async def test_subscription_makes_the_chat_and_begins_with_a_snapshot(server: Served) -> None:
    async with following(server, "brand-new") as chat:
        first = chat.frames[0]
        assert first["thread"].items() >= {"id": "brand-new", "title": "", "mode": "ask", "draft": ""}.items()
        assert first["thread"].keys() >= {"model", "tool_use"}
        assert first["messages"] == []
        assert first["runtime"] == {
            "state": "idle",
            "paused": False,
            "error": None,
            "queue_size": 0,
            "is_compressing": False,
            "compression_strength": "absent",
            "pause_reasons": [],
            "queued_items": [],
        }
        await chat.say("Hello")
        assert chat.texts == [("user", "Hello"), ("assistant", "Hello there, how are you?")]
        assert (await chat.snapshot())["messages"] == chat.client.messages
    assert (await server.state("brand-new"))["status"] == "idle"


@pytest.mark.parametrize("query", [{}, {"chat_id": ""}, {"chat_id": "a/b"}, {"chat_id": "x" * 129}])
async def test_subscription_without_a_proper_id_is_refused(shared: Served, query: dict[str, str]) -> None:
    answer = await shared.http.get("/v1/chats/subscribe", params=query)
    assert answer.status_code == 400
    assert "chat_id" in answer.json()["message"]


async def test_stream_has_numbers_and_no_names_and_flushes_its_headers(server: Served) -> None:
    async with server.http.stream("GET", "/v1/chats/subscribe", params={"chat_id": "framed"}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        number, data = (await anext(response.aiter_raw())).split(b"\n\n")[0].split(b"\n")
    frame = msgspec.json.decode(data.removeprefix(b"data: "))
    assert (number, frame["type"]) == (f"id: {frame['seq']}".encode(), "snapshot")
    assert type(frame["seq"]) is int


async def test_observer_follows_what_is_there_and_makes_nothing(server: Served) -> None:
    conversation = await server.create()
    async with as_observer(server) as guest:
        made = await guest.get("/v1/chats/subscribe", params={"chat_id": "not-mine"})
        async with guest.stream("GET", "/v1/chats/subscribe", params={"chat_id": conversation}) as response:
            assert response.status_code == 200
        said = await guest.post(
            f"/v1/chats/{conversation}/commands",
            json={"client_request_id": "r", "type": "user_message", "content": "x"},
        )
    assert (made.status_code, said.status_code) == (403, 403)
    assert (await server.http.get("/api/conversations/not-mine")).status_code == 404
    assert (await server.http.get("/v1/trajectories")).json()["total_count"] == 1


async def test_deleted_chat_is_not_made_again(server: Served) -> None:
    conversation = await server.create()
    await server.http.delete(f"/api/conversations/{conversation}")
    followed = await server.http.get("/v1/chats/subscribe", params={"chat_id": conversation})
    said = await command(server, conversation, "user_message", content="x")
    assert (followed.status_code, said.status_code) == (410, 410)


async def test_snapshot_while_generating_holds_the_draft_and_the_end_does_not_double_it(tmp_path: Path) -> None:
    script = (Say("The first half,"), Wait("half"), Say(" and the second."))
    async with serving(tmp_path / "data", script) as server, following(server, "c") as first:
        await first.did("user_message", content="Go")
        await first.until(lambda frame: "half," in str(frame))
        async with following(server, "c") as second:
            draft = second.frames[0]["messages"][-1]
            assert draft["role"] == "assistant"
            assert draft["content"].startswith("The first half")
            assert "finish_reason" not in draft
            server.agent.open_gate("half")
            mine, theirs = await first.answered(), await second.answered()
            finished = [frame for frame in theirs if frame["type"] == "stream_finished"]
            added = [frame for frame in theirs if frame["type"] == "message_added"]
            assert [frame["message_id"] for frame in finished] == [draft["message_id"]]
            assert [frame["message"]["message_id"] for frame in added] == [draft["message_id"]]
            # The same bytes for both, from the moment the second came.
            assert theirs == mine[-len(theirs) :]
            assert first.client.messages == second.client.messages == (await first.snapshot())["messages"]
            assert second.texts[1] == ("assistant", "The first half,\n\n and the second.")


async def test_subscribers_who_come_at_any_moment_end_with_the_same_messages(server: Served) -> None:
    async with following(server, "crowd") as first:
        async with following(server, "crowd") as second:
            await first.say("one")
            await second.answered()
        async with following(server, "crowd") as third:
            await first.say("two")
            await third.answered()
            assert third.client.seq == first.client.seq
            assert third.client.messages == first.client.messages
            assert len(third.client.messages) == 4


async def test_numbers_never_go_back_over_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server, following(server, "c") as chat:
        await chat.say("one")
        before: Chat = chat
    async with serving(tmp_path / "data") as server, following(server, "c") as again:
        assert again.client.seq >= before.client.seq
        assert again.client.messages == before.client.messages
        await again.say("two")


async def test_numbers_go_on_where_nobody_followed(server: Served) -> None:
    async with following(server, "c") as chat:
        await chat.say("one")
        last = chat.client.seq
    await server.deserted()
    async with following(server, "c") as chat:
        assert chat.client.seq >= last


async def test_native_client_and_chat_speak_in_the_same_conversation(server: Served) -> None:
    conversation = await server.create()
    async with following(server, conversation) as chat:
        await server.send(conversation, "from elsewhere", client_request_id=fresh())
        frames = await chat.answered()
        assert chat.texts[0] == ("user", "from elsewhere")
        assert not [frame for frame in frames if frame["type"] == "ack"]
        await chat.say("from here")
    state = await server.state(conversation)
    faces = [message["origin"].get("face", "native") for message in state["messages"] if message["role"] == "user"]
    assert faces == ["native", "chats"]


async def test_unknown_keys_of_an_imported_message_are_kept(server: Served) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Hi", "checkpoints": [{"workspace": "w"}]},
        {"role": "assistant", "content": "Ho", "mood": "merry"},
    ]
    async with following(server, "kept") as chat:
        await chat.did("restore_messages", messages=messages)
        await chat.until(lambda frame: len(chat.client.messages) == 2)
        assert chat.client.messages[0]["checkpoints"] == [{"workspace": "w"}]
        assert chat.client.messages[1]["mood"] == "merry"

"""Commands: each answered in the contract's words, once for each request id, and acked to all who follow."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from palaver.people.authentication import KeyRecord, token_hash
from tests.flows.at_work import Work
from tests.flows.engine import engine
from tests.flows.faces.chats.chat import command, did, following, fresh
from tests.flows.served import Served, serving

pytestmark = pytest.mark.anyio

QUEUE_ITEMS = 50


@pytest.fixture(scope="module")
async def work(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Work]:
    async with engine(tmp_path_factory.mktemp("chats")) as started:
        yield started


async def busy(work: Work, word: str) -> str:
    """A chat whose answer waits at the gate of that name."""
    chat = await work.server.create(project=str(work.project))
    await did(work.server, chat, "user_message", content=f"{word}\n!say Wait.\n!gate {word}")
    await work.provider.gates.reached(word)
    return chat


def answered(answer: httpx.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json()


# -- the answer and the ack


async def test_each_command_is_answered_and_acked_in_the_contracts_words(shared: Served) -> None:
    async with following(shared, fresh("words")) as chat:
        names = [fresh() for _ in range(4)]
        answers = [
            await chat.command("set_params", patch={"temperature": 1}, client_request_id=names[0]),
            await chat.command("user_message", content="Hello", client_request_id=names[1]),
            await chat.command("user_message", content="  ", client_request_id=names[2]),
            await chat.command("abort", client_request_id=names[3]),
        ]
        acks = [await chat.acked(name) for name in names]
    assert [answer.status_code for answer in answers] == [200, 202, 400, 200]
    assert [answer.json()["status"] for answer in answers] == ["applied", "accepted", "invalid_content", "aborted"]
    assert answers[2].json().keys() == {"status", "error"}
    assert all(answer.json().keys() == {"status"} for answer in (answers[0], answers[1], answers[3]))
    assert [ack["accepted"] for ack in acks] == [True, True, False, True]
    assert [ack["result"]["status"] for ack in acks] == [answer.json()["status"] for answer in answers]


async def test_optional_field_that_is_null_is_as_good_as_absent(shared: Served) -> None:
    chat, name = fresh("null"), fresh()
    body = {"content": "Hello", "attachments": None, "priority": None, "client_request_id": name}
    assert answered(await command(shared, chat, "user_message", **body)) == (202, {"status": "accepted"})
    again = await command(shared, chat, "user_message", content="Hello", client_request_id=name)
    assert answered(again) == (200, {"status": "duplicate"})


async def test_ack_of_a_refused_command_takes_no_number_and_one_that_is_taken_does(shared: Served) -> None:
    async with following(shared, fresh("numbers")) as chat:
        await chat.command("approve_tools", client_request_id=(refused := fresh()))
        first = chat.frames[0]["seq"]
        assert (await chat.acked(refused))["seq"] == first
        # At rest there is nothing to stop, but the wish was taken.
        await chat.command("abort", client_request_id=(taken := fresh()))
        assert (await chat.acked(taken))["seq"] == first + 1
        await chat.did("set_draft", text="x")
        await chat.until_type("thread_updated")


async def test_acks_of_commands_that_had_nothing_to_do_never_lead_past_the_numbers_of_a_later_subscription(
    server: Served,
) -> None:
    name, requests = fresh("idle"), [fresh() for _ in range(3)]
    async with following(server, name) as chat:
        first = chat.client.seq
        for request in requests:
            assert await chat.did("abort", client_request_id=request) == "aborted"
        assert [(await chat.acked(request))["seq"] for request in requests] == [first + 1, first + 2, first + 3]
    await server.deserted()
    async with following(server, name) as later:
        assert later.client.seq > first + 3


async def test_command_without_a_request_id_gets_one_in_its_answer_and_its_ack(shared: Served) -> None:
    async with following(shared, fresh("unnamed")) as chat:
        taken = await chat.command("UserMessage", content="Hello", client_request_id=None)
        assert (taken.status_code, taken.json()["status"]) == (202, "accepted")
        assert taken.json().keys() == {"status", "client_request_id"}
        assert (await chat.acked(taken.json()["client_request_id"]))["accepted"] is True
        again = await chat.command("UserMessage", content="Hello", client_request_id=None)
        assert again.json()["status"] == "accepted"
        assert again.json()["client_request_id"] != taken.json()["client_request_id"]
        repeated = await chat.command("UserMessage", content="Hello", **taken.json())
        assert answered(repeated) == (200, {"status": "duplicate"})
        body = {"type": "Sing"}
        refused = await shared.http.post(f"/v1/chats/{chat.id}/commands", json=body)
        assert refused.json().keys() == {"status", "error", "client_request_id"}
        assert (await chat.acked(refused.json()["client_request_id"]))["accepted"] is False
        while [text for role, text in chat.texts if role == "user"] != ["Hello", "Hello"]:
            await chat.next()


async def test_same_id_twice_has_one_effect_and_an_ack_each(shared: Served) -> None:
    async with following(shared, fresh("twice")) as chat:
        name = fresh()
        first = await chat.command("user_message", content="Once", client_request_id=name)
        await chat.acked(name)
        await chat.answered()
        second = await chat.command("UserMessage", content=[{"type": "text", "text": "Once"}], client_request_id=name)
        seq = chat.client.seq
        await chat.until(lambda frame: frame["type"] == "ack" and frame["client_request_id"] == name)
        assert answered(first) == (202, {"status": "accepted"})
        assert answered(second) == (200, {"status": "duplicate"})
        assert chat.client.seq == seq
        assert [ack["accepted"] for ack in chat.client.acks] == [True, True]
        assert [text for role, text in chat.texts if role == "user"] == ["Once"]


async def test_same_id_at_the_same_moment_has_one_effect(shared: Served) -> None:
    name, request = fresh("racing"), fresh()
    answers = await asyncio.gather(
        *(command(shared, name, "user_message", content="Race", client_request_id=request) for _ in range(8))
    )
    statuses = sorted(answer.json()["status"] for answer in answers)
    assert statuses == ["accepted", *["duplicate"] * 7]
    state = await shared.state(name)
    assert [message["role"] for message in state["messages"]].count("user") == 1


async def test_same_id_is_remembered_over_a_restart(tmp_path: Path) -> None:
    body = {"content": "Once", "client_request_id": "kept"}
    async with serving(tmp_path / "data") as server:
        assert await did(server, "c", "user_message", **body) == "accepted"
    async with serving(tmp_path / "data") as server:
        assert await did(server, "c", "user_message", **body) == "duplicate"


async def test_command_that_had_nothing_to_do_is_remembered_and_does_nothing_later(work: Work) -> None:
    name = fresh("nothing")
    stop, clear = {"client_request_id": fresh()}, {"client_request_id": fresh()}
    assert await did(work.server, name, "abort", **stop) == "aborted"
    assert await did(work.server, name, "clear_draft", **clear) == "applied"
    async with following(work.server, name) as chat:
        await chat.did("user_message", content="nothing\n!say Wait.\n!gate nothing")
        await work.provider.gates.reached("nothing")
        await chat.did("set_draft", text="Dear")
        assert await chat.did("abort", **stop) == "duplicate"
        assert await chat.did("clear_draft", **clear) == "duplicate"
        assert (await chat.command("set_draft", text="x", **clear)).status_code == 400
        now = await chat.snapshot()
        assert (now["runtime"]["state"], now["thread"]["draft"]) == ("generating", "Dear")
        work.provider.gates.open("nothing")
        await chat.answered()


async def test_same_id_with_another_body_is_invalid(shared: Served) -> None:
    name = fresh("other")
    request = fresh()
    await did(shared, name, "user_message", content="One", client_request_id=request)
    other = await command(shared, name, "user_message", content="Two", client_request_id=request)
    abort = await command(shared, name, "abort", client_request_id=request)
    status, body = answered(other)
    assert (status, body["status"]) == (400, "invalid_content")
    assert "client_request_id" in body["error"]
    assert abort.status_code == 400


async def test_repeated_index_is_a_duplicate_though_it_means_another_place_by_now(shared: Served) -> None:
    async with following(shared, fresh("again")) as chat:
        await chat.say("one")
        await chat.say("two")
        cut = {"from_index": 2, "client_request_id": fresh()}
        assert await chat.did("truncate_messages", **cut) == "accepted"
        await chat.until_type("messages_truncated")
        await chat.say("three")
        assert await chat.did("truncate_messages", **cut) == "duplicate"
        other = await chat.command("truncate_messages", **{**cut, "from_index": 1})
        assert other.status_code == 400
        assert len(chat.client.messages) == 4


async def test_repeated_picture_is_a_duplicate(shared: Served) -> None:
    png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    body = {
        "content": "Look",
        "attachments": [{"type": "image_url", "image_url": {"url": png}}],
        "client_request_id": fresh(),
    }
    async with following(shared, fresh("picture")) as chat:
        assert await chat.did("user_message", **body) == "accepted"
        assert await chat.did("user_message", **body) == "duplicate"
        await chat.answered()
        text, image = chat.client.messages[0]["content"]
        assert text == {"type": "text", "text": "Look"}
        assert image["type"] == "image_url"
        assert image["image_url"]["url"].startswith("/api/blobs/")


async def test_rejected_command_does_not_burn_its_id(shared: Served) -> None:
    name, request = fresh("unburned"), fresh()
    refused = await command(shared, name, "reject_tools", client_request_id=request)
    assert refused.status_code == 400
    assert await did(shared, name, "user_message", content="Hello", client_request_id=request) == "accepted"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"client_request_id": "r", "content": "x"}',
        b'{"client_request_id": 7, "type": "abort"}',
        b'{"client_request_id": "r", "type": "sing"}',
        b'{"client_request_id": "r", "type": "user_message"}',
        b'{"client_request_id": "r", "type": "user_message", "content": 7}',
        b'{"client_request_id": "r", "type": "user_message", "content": []}',
        b'{"client_request_id": "r", "type": "user_message", "content": "x", "attachments": [{"type": "tune"}]}',
        b'{"client_request_id": "r", "type": "user_message", "content": "x", "attachments": ["http://far.example/a.png"]}',
        b'{"client_request_id": "a b", "type": "abort"}',
        b'{"client_request_id": "r", "type": "set_params", "patch": []}',
        b'{"client_request_id": "r", "type": "set_params", "patch": {"temperature": "hot"}}',
        b'{"client_request_id": "r", "type": "truncate_messages", "from_index": 9}',
        b'{"client_request_id": "r", "type": "retry_from_index", "index": -1, "content": "x"}',
        b'{"client_request_id": "r", "type": "remove_message", "message_id": "nobody"}',
        b'{"client_request_id": "r", "type": "ide_tool_result", "tool_call_id": "c", "content": "x"}',
        b'{"client_request_id": "r", "type": "tool_decisions", "decisions": []}',
        b'{"client_request_id": "r", "type": "branch_from_chat", "source_chat_id": "nowhere"}',
        b'{"client_request_id": "r", "type": "restore_from_trajectory", "trajectory_id": "nowhere"}',
        b'{"client_request_id": "r", "type": "restore_messages"}',
        b'{"client_request_id": "r", "type": "restore_messages", "messages": [7]}',
    ],
)
async def test_body_that_says_nothing_is_invalid_content(shared: Served, body: bytes) -> None:
    answer = await shared.http.post("/v1/chats/nonsense/commands", content=body)
    assert answer.status_code == 400, answer.text
    assert answer.json().keys() - {"client_request_id"} == {"status", "error"}
    assert answer.json()["status"] == "invalid_content"
    assert answer.json()["error"]


# -- the queue


async def test_messages_waiting_at_dequeue_become_one_turn_as_separate_messages_in_order(work: Work) -> None:
    async with following(work.server, await busy(work, "merging")) as chat:
        for text in ("one", "two", "three"):
            await chat.did("user_message", content=text)
        await chat.until(lambda frame: frame.get("queue_size") == 3)
        assert [item["preview"] for item in chat.client.runtime["queued_items"]] == ["one", "two", "three"]
        assert chat.client.runtime["queued_items"][0].keys() == {
            "client_request_id",
            "priority",
            "command_type",
            "preview",
        }
        work.provider.gates.open("merging")
        await chat.until_state("idle")
        await chat.answered()
        assert [role for role, _ in chat.texts] == ["user", "assistant", "user", "user", "user", "assistant"]
        assert [text for role, text in chat.texts if role == "user"][1:] == ["one", "two", "three"]
        assert chat.client.runtime["queue_size"] == 0


async def test_priority_message_goes_in_at_the_next_boundary_before_the_others(work: Work) -> None:
    chat_id = await work.server.create(project=str(work.project))
    async with following(work.server, chat_id) as chat:
        await chat.did("user_message", content="urgent\n!say Wait.\n!gate urgent\n!list .\n---\n!say Done.")
        await work.provider.gates.reached("urgent")
        await chat.did("user_message", content="ordinary")
        await chat.did("user_message", content="at once", priority=True)
        await chat.until(lambda frame: frame.get("queue_size") == 2)
        items = chat.client.runtime["queued_items"]
        assert [(item["preview"], item["priority"]) for item in items] == [("at once", True), ("ordinary", False)]
        assert {item["command_type"] for item in items} == {"user_message"}
        work.provider.gates.open("urgent")
        await chat.until(lambda frame: "ordinary" in str(frame.get("message", {}).get("content")))
        await chat.answered()
        roles = [role if role != "user" else text.split()[0] for role, text in chat.texts]
        assert roles == ["urgent", "assistant", "tool", "at", "assistant", "ordinary", "assistant"]


async def test_queued_message_is_taken_back_by_its_request_id_once(work: Work) -> None:
    chat_id = await busy(work, "withdrawn")
    name = fresh("taken-back")
    await did(work.server, chat_id, "user_message", content="never mind", client_request_id=name)
    first = await work.server.http.delete(f"/v1/chats/{chat_id}/queue/{name}")
    again = await work.server.http.delete(f"/v1/chats/{chat_id}/queue/{name}")
    nowhere = await work.server.http.delete(f"/v1/chats/nowhere/queue/{name}")
    assert answered(first) == (200, {"status": "cancelled"})
    assert answered(again) == answered(nowhere) == (404, {"status": "not_found"})
    async with following(work.server, chat_id) as chat:
        assert chat.client.runtime["queue_size"] == 0
        work.provider.gates.open("withdrawn")
        await chat.until_state("idle")
        assert len(chat.client.messages) == 2


async def test_full_queue_is_429_burns_no_id_and_takes_a_stop_and_parameters(work: Work) -> None:
    chat_id = await busy(work, "crowded")
    for number in range(QUEUE_ITEMS):
        await did(work.server, chat_id, "user_message", content=f"message {number}")
    async with following(work.server, chat_id) as chat:
        more = {"content": "one more", "client_request_id": fresh()}
        full = await chat.command("user_message", **more)
        ack = await chat.acked(more["client_request_id"])
        assert answered(full) == (429, {"status": "queue_full"})
        assert int(full.headers["retry-after"]) > 0
        assert (ack["accepted"], ack["seq"]) == (False, chat.client.seq)
        assert await chat.did("set_params", patch={"temperature": 1}) == "applied"
        assert await chat.did("abort") == "aborted"
        await chat.until(lambda frame: frame.get("queue_size") == 0)
        assert await chat.did("user_message", **more) == "accepted"


async def test_decisions_and_results_are_refused_where_nothing_waits_for_one(shared: Served) -> None:
    async with following(shared, fresh("nothing")) as chat:
        answers = [
            await chat.command("approve_tools"),
            await chat.command("reject_tools", tool_call_ids=["c"]),
            await chat.command("tool_decision", tool_call_id="c", accepted=True),
            await chat.command("ide_tool_result", tool_call_id="c", content="x", tool_failed=False),
        ]
        assert {answer.status_code for answer in answers} == {400}
        assert chat.client.messages == []


async def test_forbidden_command_is_acked_to_whoever_follows_and_changes_nothing(server: Served) -> None:
    server.app.keys.replace(server.token, [KeyRecord(name="bot", kind="agent", hash=token_hash("bot-token"))])
    name, request = fresh("forbidden"), fresh()
    async with following(server, name) as chat:
        seq = chat.client.seq
        body = {"client_request_id": request, "type": "approve_tools"}
        headers = {"Authorization": "Bearer bot-token"}
        answer = await server.http.post(f"/v1/chats/{name}/commands", json=body, headers=headers)
        ack = await chat.acked(request)
    assert answer.status_code == 403
    assert (ack["accepted"], ack["result"]["status"], ack["seq"]) == (False, "forbidden", seq)
    assert ack["result"]["error"]


async def test_observer_is_not_even_told_that_a_command_was_given(server: Served) -> None:
    server.app.keys.replace(server.token, [KeyRecord(name="eye", kind="observer", hash=token_hash("eye-token"))])
    name, headers = fresh("observed"), {"Authorization": "Bearer eye-token"}
    body = {"client_request_id": fresh(), "type": "set_draft", "text": "Mine"}
    assert (await server.http.post(f"/v1/chats/{name}/commands", json=body)).status_code == 200
    assert (await server.http.post(f"/v1/chats/{name}/commands", json=body, headers=headers)).status_code == 403


async def test_agent_token_says_but_does_not_decide(server: Served) -> None:
    server.app.keys.replace(server.token, [KeyRecord(name="bot", kind="agent", hash=token_hash("bot-token"))])
    headers = {"Authorization": "Bearer bot-token"}

    async def ask(type: str, **fields: Any) -> int:
        body = {"client_request_id": fresh(), "type": type, **fields}
        return (await server.http.post("/v1/chats/bots/commands", json=body, headers=headers)).status_code

    assert await ask("user_message", content="Hello") == 202
    assert await ask("approve_tools") == 403
    assert await ask("set_params", patch={"mode": "auto"}) == 403
    assert await ask("set_params", patch={"mode": "agent"}) == 200

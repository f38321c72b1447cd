"""Commands over HTTP: accepted means on disk, once, whatever is repeated, raced, stopped or malformed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import pytest

from palaver.backends.script.script import Say, Tool, Wait
from palaver.schema.commands import Command, Order
from tests.flows.served import WAIT_S, Served, ended_turn, serving

pytestmark = pytest.mark.anyio


async def test_message_is_answered_and_its_events_are_numbered_without_a_gap(shared: Served) -> None:
    conversation = await shared.create(title="First")

    accepted = await shared.send(conversation, "hello")
    events = await shared.settled(conversation)

    assert accepted["turn"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    said = [message for message in (await shared.state(conversation))["messages"] if message["role"] == "assistant"]
    assert said[0]["blocks"][0]["text"] == "Hello there, how are you?"


async def test_creating_with_a_message_starts_a_turn_and_repeating_it_makes_nothing_new(server: Served) -> None:
    body = {"client_request_id": "make-1", "message": "hello", "title": "One"}

    first = await server.http.post("/api/conversations", json=body)
    again = await server.http.post("/api/conversations", json=body)

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["conversation"] == again.json()["conversation"]
    assert first.json()["turn"]
    await server.settled(first.json()["conversation"])
    state = await server.state(first.json()["conversation"])
    assert [message["role"] for message in state["messages"]].count("user") == 1


async def test_same_client_request_id_has_one_effect_and_the_same_answer(shared: Served) -> None:
    conversation = await shared.create()

    answers = await asyncio.gather(*(shared.send(conversation, "hello", client_request_id="twice") for _ in range(8)))
    await shared.settled(conversation)

    assert all(answer == answers[0] for answer in answers)
    state = await shared.state(conversation)
    assert [message["role"] for message in state["messages"]].count("user") == 1


async def test_another_body_under_a_used_client_request_id_is_refused(shared: Served) -> None:
    conversation = await shared.create()
    await shared.send(conversation, "hello", client_request_id="once")

    refused = await shared.command(conversation, type="send_message", content="other", client_request_id="once")

    assert refused.status_code == 409
    assert refused.json()["code"] == "conflict"


async def test_client_request_id_is_remembered_over_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        conversation = await server.create()
        before = await server.send(conversation, "hello", client_request_id="kept")
        await server.settled(conversation)

    async with serving(tmp_path) as server:
        after = await server.send(conversation, "hello", client_request_id="kept")
        other = await server.command(conversation, type="send_message", content="x", client_request_id="kept")
        state = await server.state(conversation)

    assert after == before
    assert other.status_code == 409
    assert [message["role"] for message in state["messages"]].count("user") == 1


async def test_two_clients_race_for_a_request_and_one_decision_is_recorded(tmp_path: Path) -> None:
    script = (Tool("shell", {"command": "ls"}, output="a.txt", asks=True, title="Run ls"), Say("Done."))
    async with serving(tmp_path, script) as server:
        conversation = await server.create()
        await server.send(conversation, "look")
        async with server.events(conversation, after=0) as stream:
            opened = [event async for event in stream.until(lambda event: event["type"] == "request.opened")][-1]
        request = opened["request"]
        waiting = (await server.http.get("/api/requests")).json()["items"]

        verdicts = ("allow", "deny") * 4
        answers = await asyncio.gather(
            *(server.command(conversation, type="resolve_request", request=request, verdict=one) for one in verdicts)
        )
        events = await server.settled(conversation)
        state = await server.state(conversation)

    assert [entry["request"]["id"] for entry in waiting] == [request]
    assert waiting[0]["conversation"] == conversation
    assert all(answer.status_code == 202 for answer in answers)
    assert [answer.json().get("applied", True) for answer in answers].count(True) == 1
    resolved = [event for event in events if event["type"] == "request.resolved"]
    assert len(resolved) == 1
    assert state["requests"][0]["resolution"]["verdict"] == resolved[0]["verdict"]


async def test_interrupt_that_holds_the_queue_keeps_it_over_a_restart_until_all_are_let_go(tmp_path: Path) -> None:
    stop = {"type": "interrupt", "hold_queue": True, "client_request_id": "stop"}
    async with serving(tmp_path, (Say("Half"), Wait("gate"))) as server:
        conversation = await server.create()
        await server.send(conversation, "go")
        async with asyncio.timeout(WAIT_S):
            await server.agent.reached("gate")
        for text in ("one", "two"):
            await server.send(conversation, text, merge=True)
        stopped = await server.command(conversation, **stop)
        events = await server.settled(conversation)
        own = [event["type"] for event in events if event.get("client_request_id") == "stop"]
        assert own[:2] == ["queue.edited", "queue.edited"]
        assert own[-1] == "turn.interrupted"

    async with serving(tmp_path, (Say("Done."),)) as server:
        again = await server.command(conversation, **stop)
        state = await server.state(conversation)
        assert again.json() == stopped.json()
        assert (state.get("turn"), [item["held"] for item in state["queue"]]) == (None, [True, True])
        await server.send(conversation, "in between")
        await server.settled(conversation, after=state["seq"])
        state = await server.state(conversation)
        assert [item["held"] for item in state["queue"]] == [True, True]

        released = await server.command(conversation, type="edit_queued", held=False)
        events = await server.settled(conversation, after=state["seq"])

    assert released.status_code == 202
    (turn,) = [event for event in events if event["type"] == "turn.started"]
    said = {event["message"]: event["content"][0]["text"] for event in events if event["type"] == "message.added"}
    assert [said[message] for message in turn["trigger"]["messages"]] == ["one", "two"]


async def test_message_that_is_sent_held_waits_at_rest_until_it_is_let_go(tmp_path: Path) -> None:
    async with serving(tmp_path, (Say("Done."),)) as server:
        conversation = await server.create()
        sent = await server.command(conversation, type="send_message", content="not yet", held=True)
        state = await server.state(conversation)
        assert (sent.json()["queued"], state.get("turn")) == (True, None)
        assert [(item["id"], item["held"]) for item in state["queue"]] == [(sent.json()["id"], True)]
        await server.command(conversation, type="edit_queued", item=sent.json()["id"], held=False)
        events = await server.settled(conversation, after=state["seq"])
    (turn,) = [event for event in events if event["type"] == "turn.started"]
    assert turn["trigger"]["messages"] == [sent.json()["id"]]


async def test_release_of_all_that_is_repeated_lets_nothing_go_that_was_held_since(tmp_path: Path) -> None:
    release = {"type": "edit_queued", "held": False, "client_request_id": "release"}
    async with serving(tmp_path, (Say("Half"), Wait("gate"))) as server:
        conversation = await server.create()
        await server.send(conversation, "go")
        async with asyncio.timeout(WAIT_S):
            await server.agent.reached("gate")
        await server.send(conversation, "wait")
        await server.command(conversation, type="edit_queued", held=True)
        first = await server.command(conversation, **release)
        released = await server.state(conversation)
        await server.command(conversation, type="edit_queued", held=True)
        again = await server.command(conversation, **release)
        other = await server.command(conversation, **{**release, "held": True})
        state = await server.state(conversation)
    assert (first.status_code, again.json(), other.status_code) == (202, first.json(), 409)
    assert [[queued["held"] for queued in known["queue"]] for known in (released, state)] == [[False], [True]]


SERVERS_OWN = sorted(
    str(order.__struct_config__.tag) for order in {*get_args(Order)} - {*get_args(Command)} if order is not Command
)


@pytest.mark.parametrize("type", SERVERS_OWN)
async def test_order_that_only_the_server_gives_is_refused_from_a_client(shared: Served, type: str) -> None:
    conversation = await shared.create()
    before = (await shared.state(conversation))["seq"]
    answer = await shared.command(conversation, type=type, content="Dig", trigger="task", turn="chosen", reason="user")
    assert answer.status_code == 400
    assert type in answer.json()["message"]
    assert (await shared.state(conversation))["seq"] == before


async def test_interrupt_ends_the_turn_keeps_its_text_and_may_be_repeated(tmp_path: Path) -> None:
    async with serving(tmp_path, (Say("Half a sentence"), Wait("gate"), Say(" and the rest."))) as server:
        conversation = await server.create()
        await server.send(conversation, "go")
        async with asyncio.timeout(WAIT_S):
            await server.agent.reached("gate")

        stopped = await server.command(conversation, type="interrupt")
        again = await server.command(conversation, type="interrupt")
        events = await server.settled(conversation)
        state = await server.state(conversation)

    assert (stopped.status_code, again.status_code) == (202, 202)
    assert again.json()["applied"] is False
    assert events[-1]["type"] == "turn.interrupted"
    assert state["turn"] is None
    assert state["messages"][-1]["blocks"][0]["text"] == "Half a sentence"


async def test_message_to_a_busy_agent_waits_in_the_queue_and_can_be_edited_or_removed(tmp_path: Path) -> None:
    async with serving(tmp_path, (Wait("gate"), Say("Done."))) as server:
        conversation = await server.create()
        await server.send(conversation, "first")
        async with asyncio.timeout(WAIT_S):
            await server.agent.reached("gate")
        second = await server.send(conversation, "second")
        third = await server.send(conversation, "third")

        edited = await server.command(conversation, type="edit_queued", item=second["id"], content="second, better")
        removed = await server.command(conversation, type="remove_queued", item=third["id"])
        gone = await server.command(conversation, type="remove_queued", item=third["id"])
        queue = (await server.state(conversation))["queue"]
        server.agent.open_gate("gate")
        finished: list[dict[str, Any]] = []
        async with server.events(conversation, after=0) as stream:
            while sum(map(ended_turn, finished)) < 2:
                finished += [event async for event in stream.until(ended_turn)]
        state = await server.state(conversation)

    assert (edited.status_code, removed.status_code, gone.status_code) == (202, 202, 404)
    assert second["queued"] is True
    assert [item["content"][0]["text"] for item in queue] == ["second, better"]
    asked = [message["blocks"][0]["text"] for message in state["messages"] if message["role"] == "user"]
    assert asked == ["first", "second, better"]


async def test_conversation_is_renamed_archived_and_deleted(server: Served) -> None:
    conversation = await server.create(title="Old")
    path = f"/api/conversations/{conversation}"

    renamed = await server.http.patch(path, json={"title": "New"})
    shown = await server.http.get(path)
    archived = await server.http.patch(path, json={"archived": True})
    listed = (await server.http.get("/api/conversations")).json()["items"]
    kept = (await server.http.get("/api/conversations", params={"archived": "true"})).json()["items"]
    both = (await server.http.get("/api/conversations", params={"archived": "all"})).json()["items"]
    deleted = await server.http.delete(path)
    gone = [await server.http.get(path), await server.http.get(f"{path}/snapshot")]
    refused = await server.command(conversation, type="send_message", content="hello?")

    assert (renamed.status_code, archived.status_code, deleted.status_code) == (200, 200, 200)
    assert shown.json()["title"] == "New"
    assert listed == []
    assert [row["id"] for row in kept] == [row["id"] for row in both] == [conversation]
    assert [answer.status_code for answer in (*gone, refused)] == [410, 410, 410]


async def test_lists_are_paged_and_searched_by_title_and_text(server: Served) -> None:
    made = [await server.create(title=f"Number {number}") for number in range(5)]
    talked = await server.create(title="Weather")
    await server.send(talked, "will the zeppelin fly?")
    await server.settled(talked)

    page = (await server.http.get("/api/conversations", params={"limit": 4})).json()
    rest = (await server.http.get("/api/conversations", params={"limit": 4, "cursor": page["next_cursor"]})).json()
    by_title = (await server.http.get("/api/conversations", params={"query": "number 3"})).json()["items"]
    by_text = (await server.http.get("/api/conversations", params={"query": "zeppelin"})).json()["items"]
    hits = (await server.http.get("/api/search", params={"q": "zeppelin"})).json()["items"]

    assert [row["id"] for row in page["items"] + rest["items"]] == [talked, *reversed(made)]
    assert rest["next_cursor"] is None
    assert [row["id"] for row in by_title] == [made[3]]
    assert [row["id"] for row in by_text] == [talked]
    assert (hits[0]["conversation"], hits[0]["match"]) == (talked, "zeppelin")


async def test_older_messages_are_paged_by_seq(shared: Served) -> None:
    conversation = await shared.create()
    for number in range(3):
        sent = await shared.send(conversation, f"message {number}")
        await shared.settled(conversation, after=sent["seq"] - 1)
    messages = (await shared.state(conversation))["messages"]

    path = f"/api/conversations/{conversation}/messages"
    page = (await shared.http.get(path, params={"before": messages[-2]["seq"], "limit": 2})).json()["items"]

    assert [message["id"] for message in page] == [message["id"] for message in messages[-4:-2]]


# -- bad input: a clear refusal each, and the conversation goes on


BAD_BODIES = {
    "not json": (b"{", 400, "not valid JSON"),
    "empty": (b"", 400, "required"),
    "not an object": (b"[1, 2]", 400, "object"),
    "no type": (b'{"content": "x"}', 400, "type"),
    "unknown type": (b'{"type": "explode"}', 400, "explode"),
    "wrong field": (b'{"type": "send_message", "content": 5}', 400, "`content`"),
    "missing field": (b'{"type": "send_message"}', 400, "`content`"),
    "bad id": (b'{"type": "send_message", "content": "x", "client_request_id": "no spaces"}', 400, "client_request_id"),
    "blank": (b'{"type": "send_message", "content": "  "}', 400, "text"),
    "not utf-8": (b'{"type": "send_message", "content": "\xff"}', 400, "JSON"),
    "too deep": (b'{"type": "set_params", "patch": {"x": ' + b"[" * 100 + b"]" * 100 + b"}}", 400, "64"),
    "far too deep": (b'{"type": "set_params", "patch": {"x": ' + b"[" * 99_999 + b"]" * 99_999 + b"}}", 400, "64"),
    "two megabytes": (b'{"type": "send_message", "content": "' + b"x" * 2_000_000 + b'"}', 413, "1 MiB"),
    "sixteen megabytes": (b'{"type": "send_message", "content": "' + b"x" * (16 << 20) + b'"}', 413, "large"),
    "remote image": (
        b'{"type": "send_message", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}',
        400,
        "remote",
    ),
}


@pytest.mark.parametrize("name", BAD_BODIES)
async def test_bad_command_is_refused_in_words_and_the_conversation_still_works(shared: Served, name: str) -> None:
    body, status, part = BAD_BODIES[name]
    conversation = await shared.create()

    refused = await shared.http.post(f"/api/conversations/{conversation}/commands", content=body)
    await shared.send(conversation, "hello")
    events = await shared.settled(conversation)

    assert refused.status_code == status, refused.text
    assert set(refused.json()) == {"code", "message", "retryable", "details"}
    assert part in refused.json()["message"]
    assert events[-1]["type"] == "turn.finished"


async def test_text_that_spells_null_is_a_message_like_any_other(shared: Served) -> None:
    conversation = await shared.create()

    await shared.send(conversation, "null")

    messages = (await shared.state(conversation))["messages"]
    assert messages[0]["blocks"][0]["text"] == "null"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/conversations/nobody", 404, "not_found"),
        ("GET", "/api/conversations/nobody/snapshot", 404, "not_found"),
        ("GET", "/api/conversations/nobody/messages", 404, "not_found"),
        ("GET", "/api/conversations/nobody/events", 404, "not_found"),
        ("DELETE", "/api/conversations/nobody", 404, "not_found"),
        ("GET", "/api/conversations?limit=0", 400, "invalid"),
        ("GET", "/api/conversations?limit=many", 400, "invalid"),
        ("GET", "/api/search", 400, "invalid"),
        ("GET", "/api/blobs/..%2f..%2ftoken", 404, "not_found"),
        ("GET", "/api/blobs/0000", 404, "not_found"),
        ("GET", "/api/nothing/here", 404, "not_found"),
        ("PUT", "/api/conversations", 405, "invalid"),
    ],
)
async def test_wrong_address_or_parameter_has_the_one_error_shape(
    shared: Served, method: str, path: str, status: int, code: str
) -> None:
    answer = await shared.http.request(method, path)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert set(answer.json()) == {"code", "message", "retryable", "details"}


async def test_wrong_parameter_is_named_and_a_wrong_method_says_what_is_possible(shared: Served) -> None:
    limit = await shared.http.get("/api/conversations", params={"limit": 0})
    method = await shared.http.put("/api/conversations")

    assert "`limit`" in limit.json()["message"]
    assert {"GET", "POST"} <= set(method.headers["allow"].split(", "))


async def test_body_of_two_megabytes_is_too_large_where_no_message_is_expected(shared: Served) -> None:
    conversation = await shared.create()
    path = f"/api/conversations/{conversation}"

    known_length = await shared.http.patch(path, json={"title": "x" * 2_000_000})
    streamed = await shared.http.patch(path, content=_pieces(2_000_000))

    assert [answer.status_code for answer in (known_length, streamed)] == [413, 413]
    assert known_length.json()["code"] == "too_large"


async def _pieces(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 50_000):
        yield b" " * 50_000


@pytest.mark.parametrize("project", ["relative", "/no/such/folder", "/etc/hostname"])
async def test_project_that_is_no_folder_is_refused(shared: Served, project: str) -> None:
    answer = await shared.http.post("/api/conversations", json={"project": project})

    assert answer.status_code == 400
    assert "`project`" in answer.json()["message"]


async def test_unknown_conversation_and_unknown_agent_are_told_apart(shared: Served) -> None:
    nowhere = await shared.command("nobody", type="send_message", content="hello")
    nobody = await shared.http.post("/api/conversations", json={"agent": "nobody"})

    assert (nowhere.status_code, nowhere.json()["message"]) == (404, "No such conversation.")
    assert (nobody.status_code, nobody.json()["details"]) == (404, {"agent": "nobody"})

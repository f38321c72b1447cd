"""Branches over HTTP: a conversation goes on from any message of another, and neither knows of the other's future."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from palaver.backends.script.script import Say, Tool, Wait
from tests.flows.served import Served, ended_turn, serving

pytestmark = pytest.mark.anyio


async def talked(server: Served, *texts: str, **fields: Any) -> str:
    conversation = await server.create(**fields)
    for text in texts:
        sent = await server.send(conversation, text)
        await server.settled(conversation, after=sent["seq"] - 1)
    return conversation


def said(state: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (message["role"], block["text"])
        for message in state["messages"]
        for block in message["blocks"]
        if block["type"] == "text"
    ]


async def test_branch_copies_up_to_the_message_under_new_ids(shared: Served) -> None:
    source = await talked(shared, "one", "two", title="Plans", params={"temperature": 1})
    before = await shared.state(source)
    chosen = before["messages"][1]

    branch = await shared.create(branch={"conversation": source, "message": chosen["id"]})
    state = await shared.state(branch)

    assert said(state) == said(before)[:2]
    assert not {one["id"] for one in state["messages"]} & {one["id"] for one in before["messages"]}
    assert [one["ts"] for one in state["messages"]] == [one["ts"] for one in before["messages"][:2]]
    assert (state["title"], state["params"], state["project"]) == (
        "Plans (branch)",
        {"temperature": 1},
        before["project"],
    )
    assert state["parent"] == {
        "conversation": source,
        "kind": "branch",
        "root": source,
        "message": chosen["id"],
        "call": None,
        "depth": 0,
    }
    assert await shared.state(source) == before
    row = (await shared.http.get(f"/api/conversations/{branch}")).json()
    assert (row["parent"], row["message_count"]) == (source, 2)
    assert row["updated_at"] >= before["updated_at"]


async def test_branch_of_a_branch_knows_the_root_and_goes_on_with_its_own_message(shared: Served) -> None:
    source = await talked(shared, "one", "two")
    first = await shared.create(branch={"conversation": source})
    upto = (await shared.state(first))["messages"][1]["id"]

    answer = await shared.http.post(
        "/api/conversations",
        json={"branch": {"conversation": first, "message": upto}, "message": "three", "title": "Other"},
    )
    branch = answer.json()["conversation"]
    await shared.settled(branch)
    state = await shared.state(branch)

    assert (state["parent"]["conversation"], state["parent"]["root"], state["title"]) == (first, source, "Other")
    assert [text for role, text in said(state) if role == "user"] == ["one", "three"]
    assert said(await shared.state(source))[-1][1] == "Hello there, how are you?"
    assert len((await shared.state(first))["messages"]) == 4


async def test_branch_is_made_once_however_often_it_is_asked_for(server: Served) -> None:
    source = await talked(server, "one")
    body = {"client_request_id": "fork-1", "branch": {"conversation": source}, "message": "go on"}

    answers = await asyncio.gather(*(server.http.post("/api/conversations", json=body) for _ in range(4)))
    await server.settled(answers[0].json()["conversation"])
    await server.http.delete(f"/api/conversations/{source}")
    later = await server.http.post("/api/conversations", json=body)
    other = await server.http.post("/api/conversations", json={**body, "title": "Another"})

    assert {answer.status_code for answer in (*answers, later)} == {201}
    assert len({answer.text for answer in (*answers, later)}) == 1
    assert other.status_code == 409
    state = await server.state(answers[0].json()["conversation"])
    assert [text for role, text in said(state) if role == "user"] == ["one", "go on"]


async def test_branch_while_a_turn_runs_closes_what_is_open_in_the_copy_alone(tmp_path: Path) -> None:
    script = (Tool("shell", {"command": "make"}, output="x", asks=True), Say("Half"), Wait("gate"), Say(" whole."))
    async with serving(tmp_path, script) as server:
        source = await server.create()
        await server.send(source, "build")
        async with server.events(source, after=0) as stream:
            opened = [event async for event in stream.until(lambda event: event["type"] == "request.opened")][-1]

        waiting = await server.state(await server.create(branch={"conversation": source}))
        await server.command(source, type="resolve_request", request=opened["request"], verdict="allow")
        async with server.events(source, after=0) as stream:
            # On disk, and not only said: the agent is ahead of the log by a moment.
            assert [event async for event in stream.until(lambda event: event.get("text") == "Half")]
        cut = await server.state(await server.create(branch={"conversation": source}))
        server.agent.open_gate("gate")
        await server.settled(source)
        whole = await server.state(source)

    (tool,) = (block for block in waiting["messages"][-1]["blocks"] if block["type"] == "tool")
    assert (tool["status"], tool["request"], waiting["requests"], waiting["turn"]) == ("interrupted", None, [], None)
    assert said(cut)[-1] == ("assistant", "Half")
    assert cut["messages"][-1]["status"] == "interrupted"
    assert whole["messages"][-1]["status"] == "done"
    calls = [
        block["call"]
        for state in (waiting, cut, whole)
        for one in state["messages"]
        for block in one["blocks"]
        if "call" in block
    ]
    assert len(calls) == len(set(calls))


async def test_branch_of_a_history_longer_than_memory_is_whole(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        source = await server.create()
        for number in range(60):
            sent = await server.send(source, f"message {number}")
            await server.settled(source, after=sent["seq"] - 1)
        await server.app.directory.let_rest(0)

        branch = await server.create(branch={"conversation": source})
        row = (await server.http.get(f"/api/conversations/{branch}")).json()
        found = (await server.http.get("/api/search", params={"q": "message 7"})).json()["items"]
        page = (await server.http.get(f"/api/conversations/{branch}/messages", params={"limit": 500})).json()["items"]

    assert row["message_count"] == 120
    assert [one["blocks"][0]["text"] for one in page if one["role"] == "user"] == [f"message {n}" for n in range(60)]
    assert {hit["conversation"] for hit in found} == {source, branch}


async def test_branch_survives_a_restart_and_verifies(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        branch = await server.create(branch={"conversation": await talked(server, "one")})
        before = await server.state(branch)
    async with serving(tmp_path) as server:
        after = await server.state(branch)
        verified = await server.app.log.verify(branch)

    assert before == after
    assert not verified.damages


@pytest.mark.parametrize(
    ("branch", "status"),
    [
        ({"conversation": "nobody"}, 404),
        ({"conversation": "SOURCE", "message": "nobody"}, 404),
        ({"conversation": "no spaces"}, 400),
        ({}, 400),
    ],
)
async def test_branch_of_what_is_not_there_is_refused(shared: Served, branch: dict[str, str], status: int) -> None:
    source = await talked(shared, "one")
    wanted = {name: value.replace("SOURCE", source) for name, value in branch.items()}

    answer = await shared.http.post("/api/conversations", json={"branch": wanted})

    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"code", "message", "retryable", "details"}


async def test_edited_message_is_resent_in_a_branch(shared: Served) -> None:
    source = await talked(shared, "one", "two")
    messages = (await shared.state(source))["messages"]
    before_edited = messages[1]["id"]

    branch = await shared.create(branch={"conversation": source, "message": before_edited}, message="two, but better")
    events = await shared.settled(branch)

    assert ended_turn(events[-1])
    assert [text for role, text in said(await shared.state(branch)) if role == "user"] == ["one", "two, but better"]
    assert [text for role, text in said(await shared.state(source)) if role == "user"] == ["one", "two"]

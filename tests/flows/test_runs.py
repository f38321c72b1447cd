"""Every turn as a run, over a real server: listed by conversation and project, with its children, read, and stopped."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.backends.script.script import Fail, Prompt, Say, Script, Wait
from palaver.client import Client
from palaver.conversation import creation
from palaver.errors import NotFound, TimedOut
from palaver.log.base import Claim
from palaver.people.authentication import KeyRecord, token_hash
from palaver.schema.commands import CreateConversation, Deliver, SendMessage
from palaver.schema.events import ConversationCreated
from palaver.schema.view import Parent
from tests.crash.rig import rigged
from tests.flows.at_work import at_work
from tests.flows.served import LOOK_EVERY_S, WAIT_S, Served, serving
from tests.provider import Answer, Hang, ScriptedProvider
from tests.provider.server import serving as service

pytestmark = pytest.mark.anyio

ASKS = [{"tool": "shell", "decision": "ask"}]
"""Every command, so that whoever runs one waits."""


def script(prompt: Prompt) -> Script:
    match prompt.text.split()[0]:
        case "wait":
            return (Say("I begin. "), Wait(prompt.text), Say("I end."))
        case "fail":
            return (Fail(TimedOut("Nothing came from the model.")),)
        case _:
            return (Say(f"You said {prompt.text}."),)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "data", script) as served:
        yield served


async def runs(server: Served, **query: Any) -> list[dict[str, Any]]:
    answer = await server.http.get("/api/runs", params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


async def run(server: Served, turn: str) -> dict[str, Any]:
    answer = await server.http.get(f"/api/runs/{turn}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def cancel(server: Served, turn: str) -> list[str]:
    answer = await server.http.post(f"/api/runs/{turn}/cancel")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["cancelled"])


async def ran(server: Served, conversation: str, text: str) -> str:
    """A turn from its beginning to its end."""
    sent = await server.send(conversation, text)
    await server.settled(conversation, after=sent["seq"])
    return str(sent["turn"])


async def subagent(server: Served, above: str, turn: str, root: str, text: str) -> tuple[str, str]:
    """A conversation that works for a turn of another, and its own turn."""
    app = server.app
    conversation = f"child-of-{turn}-{text.replace(' ', '-')}"
    claim = Claim(conversation, "hash")
    parent = Parent(kind="subagent", conversation=above, root=root)
    created = ConversationCreated(agent="default", project=str(app.directory.home), parent=parent)
    ids = iter(range(100))
    maker = creation.Maker(conversation, claim, 0, lambda: f"{conversation}-{next(ids)}"[-120:])
    await app.directory.begin(creation.beginning_of(maker.with_times([(maker.with_claim(created), 0)])), claim, None)
    sent = await app.directory.command(conversation, Deliver(content=text, trigger="task", parent=turn), None)
    assert sent.turn is not None
    return conversation, sent.turn


async def begun_saying(server: Served, conversation: str) -> None:
    async with server.events(conversation, after=0) as stream:
        async for _ in stream.until(lambda event: event["type"] == "text.delta"):
            pass


# -- lists


async def test_runs_of_a_conversation_say_what_ran_and_how_it_ended(server: Served) -> None:
    conversation = await server.create()
    good = await ran(server, conversation, "hello there")
    bad = await ran(server, conversation, "fail now")
    other = await server.create()
    await ran(server, other, "hello")
    failed, completed = await runs(server, conversation=conversation)
    assert (completed["run"], completed["status"], completed["detail"]) == (good, "completed", None)
    assert (completed["agent"], completed["backend"], completed["trigger"]) == ("default", "scripted", "message")
    assert (completed["conversation"], completed["parent"], completed["exchange"]) == (conversation, None, None)
    assert completed["ended_at"] >= completed["started_at"] > 0
    assert completed["output_tokens"] > 0
    assert (failed["run"], failed["status"]) == (bad, "failed")
    assert failed["detail"] == "Nothing came from the model."
    assert await run(server, good) == completed


async def test_runs_of_a_project_are_those_of_its_conversations(server: Served, tmp_path: Path) -> None:
    (tmp_path / "tea").mkdir()
    project = str(tmp_path / "tea")
    expected = [await ran(server, await server.create(project=project), f"hello {number}") for number in range(3)]
    await ran(server, await server.create(), "elsewhere")
    assert [one["run"] for one in await runs(server, project=project)] == expected[::-1]
    first = await runs(server, project=project, limit=2)
    rest = await runs(server, project=project, limit=2, before=first[-1]["run"])
    assert [one["run"] for one in (*first, *rest)] == expected[::-1]
    assert len(await runs(server)) == 4


async def test_a_run_is_running_from_the_answer_to_its_message_on(server: Served) -> None:
    conversation = await server.create()
    sent = await server.send(conversation, "wait here")
    known = await run(server, sent["turn"])
    assert (known["status"], known["ended_at"]) == ("running", None)
    server.agent.open_gate("wait here")
    await server.settled(conversation)
    assert (await run(server, sent["turn"]))["status"] == "completed"


@pytest.mark.parametrize("path", ["", "/children", "/context"])
async def test_an_unknown_run_is_not_found(server: Served, path: str) -> None:
    answer = await server.http.get(f"/api/runs/nobody{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_page_before_an_unknown_run_is_refused(server: Served) -> None:
    answer = await server.http.get("/api/runs", params={"before": "nobody"})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


async def test_children_of_a_run_are_found_through_it_and_not_among_the_conversations_own(server: Served) -> None:
    conversation = await server.create()
    sent = await server.send(conversation, "wait above")
    below, child = await subagent(server, conversation, sent["turn"], conversation, "look around")
    await server.settled(below)
    answer = await server.http.get(f"/api/runs/{sent['turn']}/children")
    (found,) = answer.json()["items"]
    assert (found["run"], found["conversation"], found["parent"]) == (child, below, sent["turn"])
    assert (found["trigger"], found["status"]) == ("task", "completed")
    assert [one["run"] for one in await runs(server, conversation=conversation)] == [sent["turn"]]


# -- the list of conversations


async def test_subagents_are_listed_only_when_asked_for_and_found_by_what_they_said(server: Served) -> None:
    conversation, other = await server.create(title="Tea"), await server.create()
    turn = await ran(server, conversation, "hello")
    below, _ = await subagent(server, conversation, turn, conversation, "find marzipan")
    await server.settled(below)

    async def listed(**query: Any) -> set[str]:
        return {row["id"] for row in (await server.http.get("/api/conversations", params=query)).json()["items"]}

    assert await listed() == {conversation, other}
    assert await listed(children="true") == {conversation, other, below}
    assert await listed(root=conversation) == {conversation, below}
    assert await listed(query="marzipan") == {below}
    assert await listed(query="arzipa") == {below}, "by a part of its title"


# -- what was said


async def test_context_counts_what_was_said_in_that_run_alone(server: Served) -> None:
    conversation = await server.create()
    await ran(server, conversation, "first")
    turn = await ran(server, conversation, "second")
    await ran(server, conversation, "third")
    answer = (await server.http.get(f"/api/runs/{turn}/context")).json()
    known = await run(server, turn)
    assert answer == {
        "run": known,
        "summary": {
            "message_count": 2,
            "user_messages": 1,
            "agent_messages": 1,
            "system_messages": 0,
            "started_at": known["started_at"],
            "ended_at": known["ended_at"],
        },
        "messages": None,
    }


async def test_raw_context_holds_the_messages_however_far_back_they_stand(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pages of three: a turn's two messages come in different ones.
    monkeypatch.setattr("palaver.agents.runs.PAGE_MESSAGES", 3)
    conversation = await server.create()
    turn = await ran(server, conversation, "the first of many")
    for number in range(4):
        await ran(server, conversation, f"again {number}")
    answer = await server.http.get(f"/api/runs/{turn}/context", params={"view": "raw"})
    messages = answer.json()["messages"]
    assert [(message["role"], message["blocks"][0]["text"]) for message in messages] == [
        ("user", "the first of many"),
        ("assistant", "You said the first of many."),
    ]


# -- stopping


async def test_cancelling_a_run_stops_its_whole_tree_and_nothing_else(server: Served) -> None:
    conversation, other = await server.create(), await server.create()
    top = (await server.send(conversation, "wait top"))["turn"]
    beside = (await server.send(other, "wait beside"))["turn"]
    middle, child = await subagent(server, conversation, top, conversation, "wait middle")
    deep, grandchild = await subagent(server, middle, child, conversation, "wait deep")
    done, finished = await subagent(server, conversation, top, conversation, "hello")
    await server.settled(done)
    assert await cancel(server, top) == [top, child, grandchild]
    ended = [await run(server, turn) for turn in (top, child, grandchild)]
    assert [one["status"] for one in ended] == ["cancelled"] * 3
    assert [one["detail"] for one in ended] == [
        "Stopped by a person.",
        "Stopped with the turn it worked for.",
        "Stopped with the turn it worked for.",
    ]
    assert (await server.state(deep))["turn"] is None
    assert (await run(server, beside))["status"] == "running"
    assert (await run(server, finished))["status"] == "completed"
    assert await cancel(server, top) == []


async def test_cancelling_a_run_that_gave_tasks_stops_those_who_do_them(tmp_path: Path) -> None:
    """With real delegation: the parent stops its subagents by itself, and the answer names them all the same."""
    deep = {"prompt": '!tool shell {"command": "date"}'}
    task = {"prompt": f"!tool task {msgspec.json.encode(deep).decode()}"}
    async with at_work(tmp_path) as work:
        conversation = await work.begin(f"!tool task {msgspec.json.encode(task).decode()}", policy=ASKS)
        async with asyncio.timeout(WAIT_S):
            while not (waiting := (await work.server.http.get("/api/requests")).json()["items"]):  # noqa: ASYNC110 - as a person looks again
                await asyncio.sleep(LOOK_EVERY_S)
        (top,) = await runs(work.server, conversation=conversation)
        (child,) = (await work.server.http.get(f"/api/runs/{top['run']}/children")).json()["items"]
        (grandchild,) = (await work.server.http.get(f"/api/runs/{child['run']}/children")).json()["items"]
        assert grandchild["conversation"] == waiting[0]["conversation"]
        tree = [top["run"], child["run"], grandchild["run"]]
        assert [one["status"] for one in (top, child, grandchild)] == ["running"] * 3
        assert await cancel(work.server, top["run"]) == tree
        assert [(await run(work.server, one))["status"] for one in tree] == ["cancelled"] * 3
        assert [one["run"] for one in await runs(work.server, project=str(work.project))] == tree[::-1]
        assert (await work.server.http.get("/api/requests")).json()["items"] == []


async def test_cancelling_a_child_leaves_its_parent_at_work(server: Served) -> None:
    conversation = await server.create()
    top = (await server.send(conversation, "wait top"))["turn"]
    _, child = await subagent(server, conversation, top, conversation, "wait child")
    assert await cancel(server, child) == [child]
    assert (await run(server, child))["detail"] == "Stopped by a person."
    assert (await run(server, top))["status"] == "running"


async def test_cancelling_a_run_lets_the_queue_go_on(server: Served) -> None:
    conversation = await server.create()
    sent = await server.send(conversation, "wait here")
    await begun_saying(server, conversation)
    queued = await server.send(conversation, "and then this")
    assert queued["queued"]
    assert await cancel(server, sent["turn"]) == [sent["turn"]]
    async with server.events(conversation, after=0) as stream:
        events = [event async for event in stream.until(lambda event: event["type"] == "turn.finished")]
    assert [event["reason"] for event in events if event["type"] == "turn.interrupted"] == ["user"]
    assert [(one["run"] == sent["turn"], one["status"]) for one in await runs(server, conversation=conversation)] == [
        (False, "completed"),
        (True, "cancelled"),
    ]


async def test_cancelling_what_is_over_or_unknown_stops_nothing(server: Served) -> None:
    conversation = await server.create()
    turn = await ran(server, conversation, "hello")
    # Another turn of the same conversation runs by now: it is not meant.
    running = (await server.send(conversation, "wait here"))["turn"]
    assert await cancel(server, turn) == []
    assert await cancel(server, "nobody") == []
    assert (await run(server, running))["status"] == "running"


async def test_a_token_that_may_only_read_stops_nothing(server: Served, tmp_path: Path) -> None:
    key = KeyRecord(name="guest", kind="observer", hash=token_hash("guest-token"))
    server.app.keys.replace(server.token, [key])
    conversation = await server.create()
    turn = (await server.send(conversation, "wait here"))["turn"]
    guest = {"Authorization": "Bearer guest-token"}
    assert (await server.http.get(f"/api/runs/{turn}", headers=guest)).status_code == 200
    assert (await server.http.post(f"/api/runs/{turn}/cancel", headers=guest)).status_code == 403
    assert (await run(server, turn))["status"] == "running"


async def test_runs_of_a_deleted_conversation_are_gone(server: Served) -> None:
    conversation = await server.create()
    turn = (await server.send(conversation, "wait here"))["turn"]
    await server.http.delete(f"/api/conversations/{conversation}")
    assert await runs(server) == []
    assert (await server.http.get(f"/api/runs/{turn}")).status_code == 404


# -- the typed client, and a restart


async def test_client_reads_and_stops_runs(server: Served) -> None:
    async with Client.connect(server.url, server.token) as client:
        conversation = (await client.create(CreateConversation())).conversation
        sent = await client.command(conversation, SendMessage(content="wait here"))
        assert sent.turn is not None
        await begun_saying(server, conversation)
        _, child = await subagent(server, conversation, sent.turn, conversation, "wait child")
        assert [one.run for one in await client.runs(conversation=conversation)] == [sent.turn]
        assert [one.run for one in await client.children_of_run(sent.turn)] == [child]
        context = await client.run_context(sent.turn, raw=True)
        assert (context.run.status, context.summary.message_count) == ("running", 2)
        assert [message.role for message in context.messages or ()] == ["user", "assistant"]
        assert {row.id for row in await client.conversations(root=conversation)} > {conversation}
        assert await client.cancel_run(sent.turn) == [sent.turn, child]
        assert (await client.run(sent.turn)).status == "cancelled"
        with pytest.raises(NotFound):
            await client.run("nobody")


@pytest.mark.crash
async def test_a_run_that_a_killed_server_left_running_is_cancelled_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    cut = Answer(blocks=Answer.of("Half a word.").blocks, chunk_chars=5, fault=Hang(after_bytes=700))
    async with service(ScriptedProvider([cut])) as provider, rigged(tmp_path / "data", provider.url) as rig:
        await rig.start()
        await rig.up()
        async with Client.connect(rig.url, rig.token) as client:
            begun = await client.create(CreateConversation(project=str(tmp_path / "project"), message="go"))
            assert begun.turn is not None
            before = await client.run(begun.turn)
        await rig.kill()
        await rig.start()
        await rig.up()
        async with Client.connect(rig.url, rig.token) as client:
            after = await client.run(begun.turn)
            found = await client.runs(project=str(tmp_path / "project"))
    assert before.status == "running"
    assert (after.status, after.detail) == ("cancelled", "Cut by the end of the server.")
    assert after.started_at == before.started_at
    assert after.ended_at is not None
    assert found == [after]


async def test_runs_survive_a_restart_and_what_ran_is_cancelled(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", script) as server:
        conversation = await server.create()
        done = await ran(server, conversation, "hello")
        running = (await server.send(conversation, "wait here"))["turn"]
        await begun_saying(server, conversation)
    async with serving(tmp_path / "data", script) as server:
        found = await runs(server, conversation=conversation)
    assert [(one["run"], one["status"], one["detail"]) for one in found] == [
        (running, "cancelled", "Stopped with the server."),
        (done, "completed", None),
    ]

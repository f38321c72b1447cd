"""Regenerate, edit and resend, retry, branch and restore with the built-in agent: the service that is asked refuses
whatever a real one would, so a request that comes through has every call paired and every signature whole.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.backends.script.script import Emit, Finish, Say, Wait
from palaver.schema.events import RequestOpened
from palaver.schema.view import Plan, PlanItem
from tests.flows.served import WAIT_S, Served, serving
from tests.provider import Answer, Call, ScriptedProvider, Think, scripted_provider

pytestmark = pytest.mark.anyio

LOOKS = Answer.of(Think(text="Let me look."), "I look.", Call(name="list", input={"path": "."}))
WIRES = ("anthropic", "openai")


def variables(wire: str, url: str) -> dict[str, str]:
    if wire == "anthropic":
        return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k"}
    return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "k"}


@asynccontextmanager
async def agent(wire: str, data: Path, *script: Answer) -> AsyncIterator[tuple[Served, ScriptedProvider]]:
    async with scripted_provider(*script, obedient=False) as provider:
        environment = {"PATH": os.environ["PATH"], **variables(wire, provider.url)}
        async with serving(data, environment=environment, model="scripted-1") as server:
            yield server, provider
        assert [request.refused for request in provider.requests if request.refused] == []


async def said(server: Served, conversation: str, text: str) -> list[dict[str, Any]]:
    sent = await server.send(conversation, text)
    return await server.settled(conversation, after=sent["seq"] - 1)


async def did(server: Served, conversation: str, **command: Any) -> list[dict[str, Any]]:
    answer = await server.command(conversation, **command)
    assert answer.status_code == 202, answer.text
    return await server.settled(conversation, after=answer.json()["seq"] - 1)


def texts(state: dict[str, Any]) -> list[str]:
    return [block["text"] for one in state["messages"] for block in one["blocks"] if block["type"] == "text"]


def last_words(provider: ScriptedProvider) -> str:
    return msgspec.json.encode(provider.bodies[-1]["messages"]).decode()


@pytest.mark.parametrize("wire", WIRES)
async def test_regenerate_forgets_the_calls_it_takes_back(wire: str, tmp_path: Path) -> None:
    async with agent(wire, tmp_path, LOOKS, Answer.of("One file."), LOOKS, Answer.of("Two files.")) as (
        server,
        provider,
    ):
        conversation = await server.create()
        await said(server, conversation, "look")
        await did(server, conversation, type="regenerate")
        first, again = provider.bodies[0], provider.bodies[2]
        state = await server.state(conversation)

    assert first["messages"] == again["messages"]
    assert texts(state) == ["look", "I look.", "Two files."]


@pytest.mark.parametrize("wire", WIRES)
async def test_edited_message_is_answered_again_without_what_followed_it(wire: str, tmp_path: Path) -> None:
    script = (Answer.of("Hello."), LOOKS, Answer.of("One file."), Answer.of("Done differently."))
    async with agent(wire, tmp_path, *script) as (server, provider):
        conversation = await server.create()
        await said(server, conversation, "hi")
        await said(server, conversation, "look")
        edited = (await server.state(conversation))["messages"][2]["id"]
        await did(server, conversation, type="edit_message", message=edited, content="do not look", regenerate=True)
        state = await server.state(conversation)

    assert texts(state) == ["hi", "Hello.", "do not look", "Done differently."]
    assert "I look." not in last_words(provider)


@pytest.mark.parametrize("wire", WIRES)
async def test_retry_from_an_index_inside_a_tool_turn_leaves_a_well_formed_request(wire: str, tmp_path: Path) -> None:
    script = (LOOKS, Answer.of("One file."), Answer.of("As you say."))
    async with agent(wire, tmp_path, *script) as (server, provider):
        conversation = await server.create()
        await said(server, conversation, "look")
        await did(server, conversation, type="retry_from", index=2, content="never mind the rest")
        state = await server.state(conversation)

    assert texts(state) == ["look", "I look.", "never mind the rest", "As you say."]
    assert "I look." in last_words(provider)
    assert "One file." not in last_words(provider)


@pytest.mark.parametrize("wire", WIRES)
async def test_branch_from_a_message_with_calls_goes_on_with_its_pairs_and_thinking(wire: str, tmp_path: Path) -> None:
    script = (LOOKS, Answer.of("One file."), Answer.of("In the branch."), Answer.of("In the source."))
    async with agent(wire, tmp_path, *script) as (server, provider):
        source = await server.create()
        await said(server, source, "look")
        calling = (await server.state(source))["messages"][1]
        branch = await server.create(branch={"conversation": source, "message": calling["id"]}, message="and then?")
        await server.settled(branch)
        in_branch = last_words(provider)
        await said(server, source, "go on")
        state = await server.state(branch)

    assert texts(state) == ["look", "I look.", "and then?", "In the branch."]
    assert "One file." not in in_branch
    assert "In the branch." not in last_words(provider)
    if wire == "anthropic":
        assert "Let me look." in in_branch


@pytest.mark.parametrize("wire", WIRES)
async def test_trajectory_beside_the_project_is_restored_and_gone_on_with(wire: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("x")
    script = (LOOKS, Answer.of("One file."), Answer.of("Still one."))
    async with agent(wire, tmp_path / "data", *script) as (server, provider):
        source = await server.create(project=str(project), title="Kept")
        await said(server, source, "look")
        before = await server.state(source)
        await until_written(server, project, source)
        file = trajectory_file(project, source).read_bytes()
        made = await server.http.post("/api/conversations/import", content=file, params={"project": str(project)})
        copy = made.json()["conversation"]
        await said(server, copy, "and now?")
        state = await server.state(copy)

    assert texts(state) == [*texts(before), "and now?", "Still one."]
    assert "a.txt" in last_words(provider)
    assert len(trajectory_names(project)) == 2


async def until_written(server: Served, project: Path, conversation: str) -> None:
    """The writer comes by twice a second; asking the server for its health is how this test waits."""
    for _ in range(5_000):
        if trajectory_file(project, conversation).exists():
            return
        await server.http.get("/api/health")
    raise AssertionError("no trajectory was written")


def trajectory_file(project: Path, conversation: str) -> Path:
    return project / ".palaver" / "trajectories" / f"{conversation}.json"


def trajectory_names(project: Path) -> list[str]:
    return [path.name for path in (project / ".palaver" / "trajectories").glob("*.json")]


async def test_messages_are_restored_into_an_empty_conversation_alone(tmp_path: Path) -> None:
    async with agent("openai", tmp_path, LOOKS, Answer.of("One file."), Answer.of("Go on.")) as (server, _):
        source = await server.create()
        await said(server, source, "look")
        messages = (await server.state(source))["messages"]
        copy = await server.create()
        restored = await server.command(copy, type="restore_messages", messages=messages)
        again = await server.command(copy, type="restore_messages", messages=messages)
        await said(server, copy, "and?")
        state = await server.state(copy)

    assert (restored.status_code, again.status_code) == (202, 409)
    assert texts(state) == [*texts({"messages": messages}), "and?", "Go on."]
    ids = {one["id"] for one in messages}
    assert not ids & {one["id"] for one in state["messages"]}


# -- while something else waits: the scripted agent stands in, what is asked of the core is the same


PLAN = RequestOpened(request="plan-1", kind="plan", plan=Plan(summary="Tidy up", items=(PlanItem(title="Sweep"),)))
REWRITINGS: dict[str, dict[str, Any]] = {
    "regenerate": {"type": "regenerate"},
    "retry": {"type": "retry_from", "index": 0, "content": "otherwise"},
    "edit": {"type": "edit_message", "content": "otherwise", "regenerate": True},
}


def rewriting(name: str, state: dict[str, Any]) -> dict[str, Any]:
    command = REWRITINGS[name]
    return {**command, "message": state["messages"][0]["id"]} if name == "edit" else command


@pytest.mark.parametrize("name", REWRITINGS)
async def test_plan_that_waits_gives_way_to_another_answer(name: str, tmp_path: Path) -> None:
    async with serving(tmp_path, (Say("I propose."), Emit(PLAN), Finish(outcome="plan"))) as server:
        conversation = await server.create()
        await said(server, conversation, "tidy up")
        waiting = await server.state(conversation)
        await server.command(conversation, **rewriting(name, waiting))
        events = await server.settled(conversation, after=waiting["seq"])
        state = await server.state(conversation)

    assert waiting["status"] == "waiting_user_input"
    resolved = next(event for event in events if event["type"] == "request.resolved")
    assert (resolved["request"], resolved["status"]) == ("plan-1", "superseded")
    assert [one["role"] for one in state["messages"]] == ["user", "assistant"]


@pytest.mark.parametrize("name", REWRITINGS)
async def test_message_that_is_held_in_the_queue_stays_there(name: str, tmp_path: Path) -> None:
    async with serving(tmp_path, (Wait("gate"), Say("Done."))) as server:
        conversation = await server.create()
        sent = await server.send(conversation, "first")
        async with asyncio.timeout(WAIT_S):
            await server.agent.reached("gate")
        waiting = await server.send(conversation, "second")
        await server.command(conversation, type="edit_queued", item=waiting["id"], held=True)
        state = await server.state(conversation)
        refused = await server.command(conversation, **rewriting(name, state))
        server.agent.open_gate("gate")
        await server.settled(conversation, after=sent["seq"])
        events = await did(server, conversation, **rewriting(name, await server.state(conversation)))
        after = await server.state(conversation)

    assert refused.status_code == 409
    assert events[-1]["type"] == "turn.finished"
    assert [item["content"][0]["text"] for item in after["queue"]] == ["second"]
    assert [one["role"] for one in after["messages"]] == ["user", "assistant"]

"""Which agent answers: the best that the surroundings offer, and what is said when that is little."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from palaver.config import ProviderSettings
from tests.flows.served import Served, serving
from tests.provider import Answer, Call, ScriptedProvider, scripted_provider

pytestmark = pytest.mark.anyio

PATH = {"PATH": os.environ["PATH"]}


@pytest.fixture
async def provider() -> AsyncIterator[ScriptedProvider]:
    async with scripted_provider(Answer.of("I am here.")) as running:
        yield running


async def ask(server: Served) -> tuple[dict[str, Any], str]:
    """The turn that answers a message to the default agent, and the answer."""
    conversation = await server.create()
    await server.send(conversation, "are you there?")
    events = await server.settled(conversation)
    started = next(event for event in events if event["type"] == "turn.started")
    texts = [event["text"] for event in events if event["type"] == "text.finished"]
    assert events[-1].get("error") is None, events[-1]
    return started, "".join(texts)


async def test_anthropic_address_and_key_make_the_default_agent_speak_to_it(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    both = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "other"}
    async with serving(tmp_path, environment={**PATH, **both}) as server:
        started, answer = await ask(server)
        agents = (await server.http.get("/api/agents")).json()["items"]

    assert (started["backend"], answer) == ("api", "I am here.")
    assert [request.path for request in provider.requests if request.path.endswith("messages")]
    assert agents[0]["ready"] is True
    assert agents[0]["note"].startswith("Anthropic Messages at 127.0.0.1:")


async def test_only_an_openai_address_and_key_make_it_speak_chat_completions(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    openai = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k"}
    async with serving(tmp_path, environment={**PATH, **openai}, model="chosen-model") as server:
        started, answer = await ask(server)

    assert (started["model"], answer) == ("chosen-model", "I am here.")
    asked = [request for request in provider.requests if request.path.endswith("chat/completions")]
    assert [request.body["model"] for request in asked] == ["chosen-model"]


async def test_demo_answers_without_any_set_up(tmp_path: Path) -> None:
    async with serving(tmp_path, environment=PATH) as server:
        agents = {agent["id"]: agent for agent in (await server.http.get("/api/agents")).json()["items"]}
        conversation = await server.create(agent="demo")
        await server.send(conversation, "error")
        started = (await server.state(conversation))["turn"]
        await server.command(conversation, type="interrupt")

    assert (agents["demo"]["backend"], agents["demo"]["ready"]) == ("demo", True)
    assert agents["default"]["note"]
    assert started["backend"] == "demo"


async def test_named_provider_serves_its_models_and_the_environment_stays_preferred(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    environment = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "k", "OWN_KEY": "own-secret"}
    named = ProviderSettings(name="own", kind="openai-responses", base_url=provider.url, api_key_env="OWN_KEY")
    async with serving(tmp_path, environment={**PATH, **environment}, providers=(named,)) as server:
        conversation = await server.create()
        await server.command(conversation, type="set_params", patch={"model": "own/small-1"})
        await server.send(conversation, "are you there?")
        await server.settled(conversation)
        agents = (await server.http.get("/api/agents")).json()["items"]

    (asked,) = [request for request in provider.requests if request.path == "/v1/responses"]
    assert (asked.body["model"], asked.headers["Authorization"]) == ("small-1", "Bearer own-secret")
    assert agents[0]["note"].startswith("Anthropic Messages at 127.0.0.1:")
    assert agents[0]["note"].endswith("Also: own.")
    assert "own-secret" not in str(agents)


async def test_model_that_cannot_be_had_is_taken_over_by_the_next_and_said_so(tmp_path: Path) -> None:
    async with scripted_provider(any_model=False) as broken, scripted_provider(Answer.of("I stand in.")) as other:
        providers = (
            ProviderSettings(name="first", kind="anthropic", base_url=broken.url),
            ProviderSettings(name="second", kind="openai", base_url=other.url),
        )
        params = {"model": "first/gone", "fallbacks": ["second/there"]}
        async with serving(tmp_path, environment=PATH, providers=providers) as server:
            conversation = await server.create()
            await server.command(conversation, type="set_params", patch=params)
            await server.send(conversation, "are you there?")
            events = await server.settled(conversation)

    (switched,) = [event for event in events if event["type"] == "model.switched"]
    assert (switched["from_model"], switched["to_model"]) == ("first/gone", "second/there")
    assert "404" in switched["reason"]
    assert "".join(event["text"] for event in events if event["type"] == "text.finished") == "I stand in."
    assert events[-1]["outcome"] == "completed"


async def test_provider_without_its_key_is_taken_over_too(tmp_path: Path, provider: ScriptedProvider) -> None:
    providers = (
        ProviderSettings(name="first", kind="anthropic", base_url=provider.url, api_key_env="NEVER_SET"),
        ProviderSettings(name="second", kind="openai-responses", base_url=provider.url),
    )
    async with serving(tmp_path, environment=PATH, providers=providers) as server:
        conversation = await server.create()
        patch = {"model": "first/any", "fallbacks": ["second/there"]}
        await server.command(conversation, type="set_params", patch=patch)
        await server.send(conversation, "are you there?")
        events = await server.settled(conversation)

    (switched,) = [event for event in events if event["type"] == "model.switched"]
    assert "NEVER_SET" in switched["reason"]
    assert events[-1]["outcome"] == "completed"


async def test_key_of_the_file_is_struck_from_what_a_tool_says(tmp_path: Path, provider: ScriptedProvider) -> None:
    home = tmp_path / "project"
    home.mkdir()
    (home / "notes.txt").write_text("the key is sk-in-the-file, keep it")
    provider.script[:] = [Answer.of(Call(name="read", input={"path": str(home / "notes.txt")})), Answer.of("Done.")]
    named = ProviderSettings(name="own", kind="openai", base_url=provider.url, api_key="sk-in-the-file")
    async with serving(tmp_path / "data", environment=PATH, providers=(named,)) as server:
        conversation = await server.create(project=str(home))
        await server.send(conversation, "read it")
        events = await server.settled(conversation)

    (result,) = [event for event in events if event["type"] == "tool.finished"]
    assert "the key is" in result["output"]
    assert "sk-in-the-file" not in str(events)
    assert "sk-in-the-file" not in str(provider.bodies)

"""Which model services are set up, and which of them serves a model."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from palaver.agents.services import (
    choice,
    connect,
    describe,
    found_services,
    lacks_key,
    ollama_here,
    service_for,
    services_of,
)
from palaver.backends.api.provider import ModelRequest
from palaver.config import Config, ProviderSettings
from palaver.errors import NotLoggedIn
from tests.provider import scripted_provider

BOTH = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}
GATEWAY = ProviderSettings(
    name="gateway", kind="openai", base_url="https://gate.example/v1", api_key="g", models=("house/large", "tiny")
)


def chosen(services: tuple[ProviderSettings, ...], model: str | None) -> tuple[str, str | None]:
    service, called = service_for(services, model)
    return service.name, called


def test_service_is_chosen_by_how_the_models_name_begins() -> None:
    services = services_of(BOTH)
    names = [chosen(services, model)[0] for model in (None, "claude-x", "gpt-5", "o3-mini", "llama")]
    assert names == ["anthropic", "anthropic", "openai", "openai", "anthropic"]


def test_service_is_chosen_by_its_list_then_by_its_name_before_a_slash() -> None:
    services = services_of(BOTH, (GATEWAY,))
    assert chosen(services, "tiny") == ("gateway", "tiny")
    assert chosen(services, "house/large") == ("gateway", "house/large")
    assert chosen(services, "gateway/anthropic/claude-x") == ("gateway", "anthropic/claude-x")
    assert chosen(services, "openai/gpt-5") == ("openai", "gpt-5")
    assert chosen(services, "unheard/of") == ("anthropic", "unheard/of")


def test_own_address_of_a_maker_goes_before_others_of_its_format() -> None:
    services = services_of({}, (GATEWAY, ProviderSettings(name="maker", kind="openai-responses", api_key="m")))
    assert chosen(services, "gpt-5") == ("maker", "gpt-5")
    assert chosen(services, None) == ("gateway", "house/large")


def test_empty_variables_set_up_nothing() -> None:
    assert services_of({"ANTHROPIC_API_KEY": "", "OPENAI_BASE_URL": ""}) == ()


def test_key_comes_from_the_variable_that_is_named_and_never_shows() -> None:
    (service,) = services_of({"GATE": "secret-key"}, (ProviderSettings(name="g", kind="openai", api_key_env="GATE"),))
    assert service.api_key == "secret-key"
    assert "secret-key" not in repr(service)
    headed = ProviderSettings(name="g", kind="openai", headers={"x-token": "secret-token"})
    assert "secret-token" not in repr(headed)


def test_standard_key_goes_to_the_makers_own_address_alone() -> None:
    official = ProviderSettings(name="fast", kind="openai-responses")
    elsewhere = ProviderSettings(name="other", kind="openai", base_url="https://other.example")
    keys = {service.name: service.api_key for service in services_of({"OPENAI_API_KEY": "o"}, (official, elsewhere))}
    assert keys == {"openai": "o", "fast": "o", "other": None}


async def test_provider_without_its_key_is_passed_over_and_says_so_when_asked() -> None:
    services = services_of({}, (ProviderSettings(name="g", kind="openai", api_key_env="UNSET_KEY"), GATEWAY))
    assert lacks_key(services[0])
    assert chosen(services, None)[0] == "gateway"
    candidate = choice(services)("g/model")
    with pytest.raises(NotLoggedIn, match="UNSET_KEY"):
        await anext(candidate.provider.stream(ModelRequest(model="model", system="", messages=())))


async def test_provider_is_made_once() -> None:
    choose = choice((GATEWAY,))
    assert choose("tiny").provider is choose("gateway/other").provider
    await choose("tiny").provider.close()


@pytest.mark.parametrize("kind", ["anthropic", "openai", "openai-responses", "google"])
async def test_every_kind_has_an_adapter_that_names_its_host(kind: str) -> None:
    provider = connect(ProviderSettings(name="x", kind=kind, base_url="https://host.example/v1", api_key="k"))
    assert provider.identity == f"{kind}@host.example"
    await provider.close()


def test_service_is_described_by_what_is_spoken_and_where() -> None:
    assert describe(GATEWAY) == "OpenAI Chat Completions at gate.example"
    assert describe(ProviderSettings(name="x", kind="openai-responses")) == "OpenAI Responses at api.openai.com"


# -- Ollama


async def test_ollama_that_answers_is_taken_when_nothing_else_is_set_up() -> None:
    async with scripted_provider(models=("llama-small", "nomic-embed")) as ollama:
        environment = {"OLLAMA_HOST": ollama.url}
        (found,) = await found_services(_config(environment))
        assert (found.name, found.base_url, found.models) == ("ollama", ollama.url, ("llama-small",))
        assert [service.name for service in await found_services(_config({**environment, **BOTH}))] == [
            "anthropic",
            "openai",
        ]


async def test_ollama_that_is_not_there_or_has_no_model_is_nothing() -> None:
    async with scripted_provider(models=()) as empty:
        assert await ollama_here({"OLLAMA_HOST": empty.url}) is None
    assert await ollama_here({"OLLAMA_HOST": empty.url.removeprefix("http://")}) is None


async def test_ollama_that_never_answers_holds_nobody_up() -> None:
    async with _silent() as address, asyncio.timeout(10):
        assert await ollama_here({"OLLAMA_HOST": address}) is None


@asynccontextmanager
async def _silent() -> AsyncIterator[str]:
    """Takes connections and says nothing."""

    async def wait(_request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", wait)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _config(environment: dict[str, str]) -> Config:
    return Config(data=Path("unused"), home=Path("unused"), environment=environment)

"""The model services that are set up here, and which of them serves a model.

Called by `sources.py` and by `palaver doctor`. Services come from the standard variables, from `palaver.toml`, and last from
an Ollama on this machine when there is nothing else. Keys stay in the settings and in the providers they are given to; a
standard key goes to its maker's own address alone. An adapter is imported when it is first used.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from palaver.config import Config, ProviderSettings
from palaver.errors import AgentError, NotLoggedIn

if TYPE_CHECKING:
    from palaver.backends.api.provider import Provider
    from palaver.backends.api.route import Candidate, Choose

STANDARD_KEYS: dict[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
}
"""By kind, where a key is looked for when the file names neither a key nor an address."""
SPOKEN = {
    "anthropic": ("Anthropic Messages", "api.anthropic.com"),
    "openai": ("OpenAI Chat Completions", "api.openai.com"),
    "openai-responses": ("OpenAI Responses", "api.openai.com"),
    "google": ("Google Gemini", "generativelanguage.googleapis.com"),
}
FAMILIES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("claude",), ("anthropic",)),
    (("gpt-", "chatgpt-", "o1", "o3", "o4"), ("openai", "openai-responses")),
    (("gemini-",), ("google",)),
)
"""How models begin, and the kinds of services that have them."""
OLLAMA = "ollama"
"""The name of the one that was found, not set up."""
OLLAMA_ADDRESS = "127.0.0.1:11434"
KNOCK_S = 0.25
"""For a connection on this machine: it comes at once or not at all."""
LIST_S = 1.0
"""For the list of its models. The server's start waits for it, so it gets no more."""


# -- what is there


def services_of(
    environment: Mapping[str, str], providers: Sequence[ProviderSettings] = ()
) -> tuple[ProviderSettings, ...]:
    """The services somebody has set up, the preferred one first. An address alone is enough: not every server has keys."""
    found: dict[str, ProviderSettings] = {}
    for kind in ("anthropic", "openai"):
        key, address = environment.get(f"{kind.upper()}_API_KEY"), environment.get(f"{kind.upper()}_BASE_URL")
        if key or address:
            found[kind] = ProviderSettings(name=kind, kind=kind, base_url=address or None, api_key=key or None)
    for settings in providers:
        found[settings.name] = _with_key(settings, environment)
    return tuple(found.values())


def _with_key(settings: ProviderSettings, environment: Mapping[str, str]) -> ProviderSettings:
    if settings.api_key:
        return settings
    names: tuple[str, ...] = (settings.api_key_env,) if settings.api_key_env else ()
    if not names and settings.base_url is None:
        names = STANDARD_KEYS.get(settings.kind, ())
    key = next((value for name in names if (value := environment.get(name))), None)
    return replace(settings, api_key=key)


async def found_services(config: Config) -> tuple[ProviderSettings, ...]:
    """What is set up; else an Ollama that answers."""
    services = services_of(config.environment, config.providers)
    if any(not lacks_key(service) for service in services):
        return services
    ollama = await ollama_here(config.environment)
    return (*services, ollama) if ollama else services


async def ollama_here(environment: Mapping[str, str]) -> ProviderSettings | None:
    """An Ollama with at least one model. Where nobody listens the answer comes at once."""
    address = _ollama_address(environment)
    parts = urlsplit(address)
    try:
        async with asyncio.timeout(KNOCK_S):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
            writer.close()
        async with asyncio.timeout(LIST_S):
            listed = await _list_models(address)
    except (OSError, ValueError):
        return None
    return ProviderSettings(name=OLLAMA, kind="openai", base_url=address, models=listed) if listed else None


def _ollama_address(environment: Mapping[str, str]) -> str:
    """Ollama's own variable may name the address it listens at: any address then means this machine."""
    given = (environment.get("OLLAMA_HOST") or OLLAMA_ADDRESS).strip().rstrip("/").replace("0.0.0.0", "127.0.0.1")  # noqa: S104
    address = given if "://" in given else f"http://{given}"
    return address if urlsplit(address).port else f"{address}:11434"


async def _list_models(address: str) -> tuple[str, ...]:
    from palaver.backends.api.endpoint import Endpoint

    endpoint = Endpoint(address, {}, key="")
    try:
        return tuple(await endpoint.models())
    finally:
        await endpoint.close()


def lacks_key(service: ProviderSettings) -> bool:
    """It said where its key is, and there is none."""
    return service.api_key_env is not None and not service.api_key


def secrets_of(services: Sequence[ProviderSettings]) -> dict[str, str]:
    """Keys and headers under names that look secret: what is struck from everything a tool says."""
    found: dict[str, str] = {}
    for service in services:
        secrets = (service.api_key, *service.headers.values())
        found |= {f"PROVIDER_{service.name}_KEY_{at}": secret for at, secret in enumerate(secrets) if secret}
    return found


def describe(service: ProviderSettings) -> str:
    spoken, usual = SPOKEN.get(service.kind, (service.kind, "its usual address"))
    return f"{spoken} at {urlsplit(service.base_url).netloc if service.base_url else usual}"


# -- who serves a model


def service_for(services: Sequence[ProviderSettings], model: str | None) -> tuple[ProviderSettings, str | None]:
    """Who serves a model, and what it is called there: by the services' own lists, by a name before a slash, by how it
    begins, else by the preferred service."""
    preferred = next((service for service in services if not lacks_key(service)), services[0])
    if model is None:
        return preferred, next(iter(preferred.models), None)
    for service in services:
        if model in service.models:
            return service, model
    name, _, rest = model.partition("/")
    for service in services:
        if rest and service.name == name:
            return service, rest
    for beginnings, kinds in FAMILIES:
        alike = [service for service in services if service.kind in kinds and not lacks_key(service)]
        if model.startswith(beginnings) and alike:
            return next((service for service in alike if service.base_url is None), alike[0]), model
    return preferred, model


def choice(services: Sequence[ProviderSettings]) -> "Choose":
    from palaver.backends.api.route import Absent, Candidate

    made: dict[str, Provider] = {}

    def choose(model: str | None) -> "Candidate":
        service, called = service_for(services, model)
        if service.name not in made:
            try:
                made[service.name] = connect(service)
            except AgentError as missing:
                # Said when it is asked: then another model may take over.
                made[service.name] = Absent(service.name, missing)
        return Candidate(made[service.name], called, model, service.window_tokens)

    return choose


def connect(service: ProviderSettings) -> "Provider":
    """Nothing is sent yet. Raises an AgentError when it cannot be used."""
    if lacks_key(service):
        raise NotLoggedIn(
            f"The provider “{service.name}” takes its key from the variable {service.api_key_env}, which is not set. "
            "Set it and start the server again, or choose another model."
        )
    headers, address, key = service.headers, service.base_url, service.api_key
    match service.kind:
        case "anthropic" | "openai" | "openai-responses":
            from palaver.backends.api.formats import FORMATS
            from palaver.backends.api.wire import WireProvider

            return WireProvider(FORMATS[service.kind], address, key, headers=headers)
        case kind:
            from palaver.backends.api.longtail import longtail_provider

            return longtail_provider(kind, address, key, headers=headers)

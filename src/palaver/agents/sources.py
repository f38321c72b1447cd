"""What can run agents here: model services with a key, the small local model, the scripted demo.

Called by the composition root once. It looks at the configuration and imports a backend only when it is first used, so a
server starts at once and says what is missing instead of failing. Keys stay in the providers they are given to.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from palaver.agents.roster import Roster, Source
from palaver.backends.base import Backend, Readiness
from palaver.backends.demo import DEMO, demo_backend
from palaver.clock import Clock
from palaver.config import Config
from palaver.errors import NotLoggedIn
from palaver.schema.records import AgentRecord
from palaver.tools.standing import StandingGrants
from palaver.tools.toolbox import Toolbox, open_toolbox

if TYPE_CHECKING:
    from palaver.backends.api.provider import Provider
    from palaver.backends.api.route import Choose

HOW_TO_GET_ONE = (
    "For a real agent set ANTHROPIC_API_KEY or OPENAI_API_KEY (or OPENAI_BASE_URL for a server of your own) and start "
    "again, or run `palaver model install tiny`."
)

Format = Literal["anthropic", "openai"]


@dataclass(frozen=True, slots=True)
class Service:
    """A model service that the environment describes."""

    format: Format
    base_url: str | None
    api_key: str | None = field(repr=False)

    @property
    def words(self) -> str:
        spoken, usual = _FORMATS[self.format]
        return f"{spoken} at {urlsplit(self.base_url).netloc if self.base_url else usual}"

    def provider(self) -> "Provider":
        match self.format:
            case "anthropic":
                from palaver.backends.api.anthropic import anthropic_provider

                return anthropic_provider(self.base_url, self.api_key)
            case "openai":
                from palaver.backends.api.openai import openai_provider

                return openai_provider(self.base_url, self.api_key)


_FORMATS: dict[Format, tuple[str, str]] = {
    "anthropic": ("Anthropic Messages", "api.anthropic.com"),
    "openai": ("OpenAI Chat Completions", "api.openai.com"),
}


@asynccontextmanager
async def open_roster(config: Config, clock: Clock, standing: StandingGrants | None = None) -> AsyncIterator[Roster]:
    """The agents this configuration gives; everything they started is gone on exit."""
    toolbox = await open_toolbox(
        config.environment,
        rules=config.rules,
        full_enabled=config.full_enabled,
        hidden=(config.data,),
        standing=standing,
    )
    roster = roster_for(config, clock, toolbox)
    try:
        yield roster
    finally:
        await roster.close()


def roster_for(config: Config, clock: Clock, toolbox: Toolbox) -> Roster:
    services = services_of(config.environment)
    sources = {
        "api": _api_source(services, toolbox),
        "local": _local_source(config, clock),
        "demo": Source(demo_backend, lambda: Readiness(True, "Plays a script; needs no model."), DEMO.model),
    }
    best = "api" if services else "local" if sources["local"].readiness().ready else "demo"
    default = AgentRecord(
        id="default",
        name="Assistant",
        description="The best agent that is set up here.",
        backend=best,
        model=config.model if best == "api" else None,
    )
    notes = {"default": f"This is only the demo. {HOW_TO_GET_ONE}"} if best == "demo" else {}
    return Roster((default, DEMO), sources, notes)


def services_of(environment: Mapping[str, str]) -> tuple[Service, ...]:
    """The services somebody has set up, the preferred one first. An address alone is enough: not every server has keys."""
    found: list[Service] = []
    names: tuple[tuple[Format, str], ...] = (("anthropic", "ANTHROPIC"), ("openai", "OPENAI"))
    for format, name in names:
        key, address = environment.get(f"{name}_API_KEY") or None, environment.get(f"{name}_BASE_URL") or None
        if key or address:
            found.append(Service(format, address, key))
    return tuple(found)


def service_for(services: tuple[Service, ...], model: str | None) -> Service:
    """The one that serves a model, as far as its name tells; else the preferred one."""
    wanted: Format | None = None
    if model is not None and model.startswith("claude"):
        wanted = "anthropic"
    elif model is not None and model.startswith(("gpt-", "o1", "o3", "o4")):
        wanted = "openai"
    return next((service for service in services if service.format == wanted), services[0])


def _api_source(services: tuple[Service, ...], toolbox: Toolbox) -> Source:
    if not services:

        def without_key() -> Backend:
            raise NotLoggedIn(f"No model service is set up. {HOW_TO_GET_ONE}")

        return Source(without_key, lambda: Readiness(False, "No model service is set up.", HOW_TO_GET_ONE))

    def make() -> Backend:
        from palaver.backends.api.loop import ApiBackend

        return ApiBackend(_choice(services), toolbox)

    return Source(make, lambda: Readiness(True, services[0].words))


def _choice(services: tuple[Service, ...]) -> "Choose":
    from palaver.backends.api.route import Candidate

    made: dict[Format, Provider] = {}

    def choose(model: str | None) -> "Candidate":
        service = service_for(services, model)
        if service.format not in made:
            made[service.format] = service.provider()
        return Candidate(made[service.format], model, model)

    return choose


def _local_source(config: Config, clock: Clock) -> Source:
    from palaver.backends.local import MODEL, LocalBackend, LocalModel

    model = LocalModel(clock, config.environment)
    return Source(lambda: LocalBackend(model, _local_api), model.readiness, MODEL)


def _local_api(base_url: str, api_key: str) -> Backend:
    from palaver.backends.api.loop import ApiBackend
    from palaver.backends.api.openai import openai_provider
    from palaver.backends.api.route import only
    from palaver.backends.local import MODEL

    provider = openai_provider(base_url, api_key, MODEL)
    return ApiBackend(only(provider), Toolbox(tools={}))

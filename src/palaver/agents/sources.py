"""What can run agents here: model services with a key, the small local model, the scripted demo.

Called by the composition root once. It looks at the configuration and imports a backend only when it is first used, so a
server starts at once and says what is missing instead of failing. Which services there are is said in `services.py`.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from palaver.agents.catalog import Book
from palaver.agents.default_agents import DEMO, PROGRAMS
from palaver.agents.delegation import describe_agents
from palaver.agents.last_used import LastUsed
from palaver.agents.program_settings import ProgramTrust
from palaver.agents.programs import program_sources
from palaver.agents.roster import Roster, Source
from palaver.agents.services import OLLAMA, choice, describe, found_services, lacks_key, secrets_of
from palaver.agents.trust import Trust
from palaver.approval.standing_grants import StandingGrants
from palaver.backends.base import Backend, Readiness
from palaver.backends.program_lookup import ProgramLookup
from palaver.clock import Clock
from palaver.config import Config, ProviderSettings
from palaver.errors import NotLoggedIn
from palaver.schema.records import AgentRecord
from palaver.tools.mcp.servers import McpServers
from palaver.tools.shell.background import Processes
from palaver.tools.toolbox import Toolbox, open_toolbox

HOW_TO_GET_ONE = (
    "For a real agent set ANTHROPIC_API_KEY or OPENAI_API_KEY (or OPENAI_BASE_URL for a server of your own), or name a "
    "provider in palaver.toml, and start again; or run `palaver model install tiny`."
)

API_MODULES = ("palaver.backends.api.loop", "palaver.backends.api.formats", "palaver.backends.api.wire")


@asynccontextmanager
async def open_roster(
    config: Config,
    clock: Clock,
    programs: ProgramLookup,
    standing: StandingGrants | None = None,
    processes: Processes | None = None,
    new_id: Callable[[], str] | None = None,
) -> AsyncIterator[Roster]:
    """The agents this configuration gives; everything they started is gone on exit, but for background `processes`."""
    services = await found_services(config)
    roster: Roster | None = None

    def agents(folder: str | None) -> Sequence[tuple[str, str]]:
        # The agents have tools, and one of the tools tells of the agents: one must come first.
        return describe_agents(roster, folder) if roster is not None else ()

    toolbox = await open_toolbox(
        {**config.environment, **secrets_of(services)},
        rules=config.rules,
        full_enabled=config.full_enabled,
        hidden=(config.data,),
        strongest=config.sandbox,
        programs=programs,
        standing=standing,
        processes=processes,
        new_id=new_id,
        agents=agents,
    )
    roster = roster_for(config, clock, toolbox, services)
    try:
        yield roster
    finally:
        await roster.close()


def roster_for(config: Config, clock: Clock, toolbox: Toolbox, services: Sequence[ProviderSettings]) -> Roster:
    trust = Trust(config.data / "trusted.json")
    sources = {
        "api": _api_source(services, toolbox, McpServers(config.environment, clock)),
        "local": _local_source(config, clock),
        "demo": Source(
            _demo,
            lambda _: Readiness(True, "Plays a script; needs no model."),
            DEMO.model,
            ("palaver.backends.demo.backend",),
        ),
        **program_sources(config.environment, clock, toolbox, trust),
    }
    best = _best(sources, services)
    default = AgentRecord(
        id="default",
        name="Assistant",
        description="The best agent that is set up here.",
        backend=best,
        model=config.model if best == "api" else None,
    )
    book = Book(
        (default, *PROGRAMS, DEMO),
        config.data / "agents",
        trust,
        best,
        tuple(sources),
    )
    if toolbox.standing is not None:
        # What a record allows counts from the next call on, so it is asked for at each.
        toolbox.standing.records = book.allowed_tools
    notes = {"default": f"This is only the demo. {HOW_TO_GET_ONE}"} if best == "demo" else {}
    settings = ProgramTrust(trust, config.environment.get("HOME"))
    return Roster(book, sources, notes, LastUsed(config.data / "last_agent"), clock, settings)


def _best(sources: Mapping[str, Source], services: Sequence[ProviderSettings]) -> str:
    """A service that somebody set up, a program that somebody is logged in to, an Ollama, the small model, the demo."""
    usable = [service for service in services if not lacks_key(service)]
    if any(service.name != OLLAMA for service in usable):
        return "api"
    for record in PROGRAMS:
        if sources[record.backend].readiness(record).ready:
            return record.backend
    if usable:
        return "api"
    return "local" if sources["local"].readiness(DEMO).ready else "demo"


def _api_source(services: Sequence[ProviderSettings], toolbox: Toolbox, mcp: McpServers) -> Source:
    if not services:

        def without_key() -> Backend:
            raise NotLoggedIn(f"No model service is set up. {HOW_TO_GET_ONE}")

        return Source(without_key, lambda _: Readiness(False, "No model service is set up.", HOW_TO_GET_ONE))

    def make() -> Backend:
        from palaver.backends.api.loop import ApiBackend

        return ApiBackend(choice(services), toolbox, mcp=mcp)

    return Source(make, lambda _: _readiness(services), modules=API_MODULES)


def _readiness(services: Sequence[ProviderSettings]) -> Readiness:
    preferred, *others = sorted(services, key=lacks_key)
    if lacks_key(preferred):
        return Readiness(
            False, f"The provider “{preferred.name}” has no key.", f"Set {preferred.api_key_env} and start again."
        )
    also = ", ".join(service.name for service in others if not lacks_key(service))
    return Readiness(True, f"{describe(preferred)}. Also: {also}." if also else describe(preferred))


def _demo() -> Backend:
    from palaver.backends.demo.backend import demo_backend

    return demo_backend()


def _local_source(config: Config, clock: Clock) -> Source:
    from palaver.backends.local.backend import MODEL, LocalBackend, LocalModel

    model = LocalModel(clock, config.environment)
    return Source(lambda: LocalBackend(model, _local_api), lambda _: model.readiness(), MODEL, API_MODULES)


def _local_api(base_url: str, api_key: str) -> Backend:
    from palaver.backends.api.loop import ApiBackend
    from palaver.backends.api.openai import CHAT_COMPLETIONS
    from palaver.backends.api.route import only
    from palaver.backends.api.wire import WireProvider
    from palaver.backends.local.backend import MODEL

    provider = WireProvider(CHAT_COMPLETIONS, base_url, api_key, MODEL)
    return ApiBackend(only(provider), Toolbox(tools={}))

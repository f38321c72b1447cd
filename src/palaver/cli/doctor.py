"""`palaver doctor`: what was found on this machine, what is missing, and what to do about it."""

import asyncio
import platform
import shutil
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from palaver import __version__
from palaver.cli.support import options
from palaver.cli.support.connection import read_token, server_address
from palaver.cli.support.exits import Exit
from palaver.cli.support.output import count_of, print_json, print_rich
from palaver.cli.support.settings import Flags, process_environment, read_config
from palaver.cli.support.shell_completion import agents as agent_ids
from palaver.config import Config
from palaver.errors import ConfigurationError, PalaverError, Unauthorized
from palaver.journal import write_journal

if TYPE_CHECKING:
    from palaver.agents.backends import BackendEntry
    from palaver.agents.roster import AgentEntry
    from palaver.agents.test_turn import Tried as TriedHere
    from palaver.backends.program_lookup import ProgramLookup
    from palaver.client import Client
    from palaver.client.agents import AgentInfo, BackendInfo, Tried

EXAMPLES = ("palaver doctor", "palaver doctor --test", "palaver doctor --test claude codex")

PROGRAMS = ("claude", "codex", "pi", "acp")
SHOWN_CHARS = 80
"""Of an agent's answer: it was asked for a word."""
OWN_KINDS = ("anthropic", "openai", "openai-responses")
MODELS_SHOWN = 5
"""Of a provider: a line's worth."""
COUNTED = 500
"""Conversations of the running server: whoever has more need not know how many."""
AS_IT_SEES = "agents and programs are told as it sees them"
LITTLE_SPACE_BYTES = 1 << 30
"""Below this a day of work with large outputs may fill the disk."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`state`: `ok`; `note` works but could be better; `wrong` will not work until it is mended."""

    state: Literal["ok", "note", "wrong"]
    what: str
    says: str
    fix: str | None = None


def doctor(
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT", help="With --test: these agents; else every one that is ready.", autocompletion=agent_ids
        ),
    ] = None,
    test: Annotated[
        bool, typer.Option("--test", help="Let agents answer one word for real. It may cost what a word costs.")
    ] = False,
    data: options.Data = None,
    json: options.Json = False,
) -> None:
    """Say what was found and what is missing. Exits 1 when something will not work."""
    if agents and not test:
        raise typer.BadParameter("Agents are named only with --test.")
    # Standard output is for the findings, which say all that the parts would log.
    write_journal()
    try:
        config = read_config(Flags(data=data), process_environment(), Path.cwd())
        findings = [*_here(config), *asyncio.run(_found(config, agents or () if test else None))]
    except ConfigurationError as failure:
        findings = [Finding("wrong", "configuration", failure.message)]
    if json:
        print_json(findings)
    else:
        _print(findings)
    raise typer.Exit(Exit.FAILED if any(finding.state == "wrong" for finding in findings) else Exit.OK)


def _here(config: Config) -> Iterator[Finding]:
    yield Finding("ok", "Palaver", f"{__version__} on Python {platform.python_version()}, {platform.system()}")
    yield _data(config.data)
    yield from _installation(config)
    if (resources.files("palaver") / "web_dist" / "index.html").is_file():
        yield Finding("ok", "page", "built")
    else:
        yield Finding("note", "page", "not built: the server runs without it", "make web")


def _installation(config: Config) -> Iterator[Finding]:
    """What of this installation lies in folders that agents work in."""
    from palaver.conversation.folders import ProjectFolders
    from palaver.installation import places_in

    folders = ProjectFolders(config.data, config.home, path=config.data / "folders.json").chosen()
    for place in sorted({place for folder in folders for place in places_in(folder.resolve())}):
        says = f"{place} lies in a project: agents can read it and not change it, because the server runs it"
        yield Finding(
            "note", "installation", says, "Install Palaver elsewhere (pipx install palaver) to let them change it"
        )


def _data(data: Path) -> Finding:
    if not data.exists():
        return Finding("ok", "data", f"{data} (made at the first start)")
    free = shutil.disk_usage(data).free
    if free < LITTLE_SPACE_BYTES:
        return Finding("note", "data", f"{data}: {free >> 20:,} MiB left on its disk", "Make room, or move it: --data")
    return Finding("ok", "data", f"{data}, {free >> 30:,} GiB left on its disk")


async def _found(config: Config, tried: Sequence[str] | None) -> list[Finding]:
    """What must be asked for. `tried`: the agents to test, none for all that are ready; None tests nobody."""
    async with _running(config) as (client, server):
        agents = await (_agents_there(client) if client else _agents_here(config))
        tests: list[Finding] = []
        if tried is not None:
            tests = await (_tests_there(client, tried) if client else _tests_here(config, tried))
        grants = _grants(config)
        found = [await _sandbox(config), *((grants,) if grants else ()), *await providers_found(config)]
        return [*found, *agents, server, *tests]


@asynccontextmanager
async def _running(config: Config) -> "AsyncIterator[tuple[Client | None, Finding]]":
    """The server of this data directory, None when there is none to ask, and what there is to say of it."""
    from palaver.client import Client

    address = server_address(config.data, None)
    try:
        token = read_token(config.data)
    except Unauthorized:
        yield None, Finding("note", "server", "never started with this data directory", "palaver serve")
        return
    async with Client.connect(address, token) as client:
        finding = await _server(client, address)
        yield (client if finding.state == "ok" else None), finding


async def _server(client: "Client", address: str) -> Finding:
    try:
        about = await client.about()
        listed = len(await client.conversations(limit=COUNTED))
    except PalaverError as failure:
        if failure.code == "unavailable":
            return Finding("note", "server", f"none at {address}", "palaver serve")
        return Finding("wrong", "server", f"{address}: {failure.message}")
    count = f"{COUNTED} or more conversations" if listed == COUNTED else count_of(listed, "conversation")
    return Finding("ok", "server", f"running at {address}, version {about.get('version')}, {count}; {AS_IT_SEES}")


def _programs(config: Config) -> "ProgramLookup":
    """As the server finds them: outside all project folders."""
    from palaver.conversation.folders import ProjectFolders

    return ProjectFolders(config.data, config.home, path=config.data / "folders.json").programs


async def _sandbox(config: Config) -> Finding:
    """What holds the commands of agents here, by trying it."""
    from palaver.tools.shell.sandbox import probe

    programs = _programs(config)
    found = await probe(config.environment, (config.data,), strongest=config.sandbox, programs=programs)
    if found.level == "bubblewrap":
        return Finding("ok", "sandbox", found.words)
    if found.level == config.sandbox:
        return Finding(
            "note", "sandbox", found.words, "Remove the setting sandbox (PALAVER_SANDBOX), which allows no more"
        )
    better = "Install bubblewrap (bwrap), which holds more"
    fix = better if found.level == "landlock" else f"{better}, or use a Linux kernel of 6.2 or later"
    return Finding("note", "sandbox", found.words, fix)


def _grants(config: Config) -> Finding | None:
    from palaver.approval.standing_grants import StandingGrants

    standing = StandingGrants(config.data / "grants.json")
    count = len(standing.all())
    if standing.problem:
        return Finding("wrong", "grants", standing.problem)
    return Finding("ok", "grants", f"{count} always allowed for an agent or a project") if count else None


async def providers_found(config: Config) -> list[Finding]:
    from palaver.agents.services import describe, found_services, lacks_key

    findings: list[Finding] = []
    for service in await found_services(config):
        what, says = f"provider {service.name}", describe(service)
        if service.models:
            says += f": {', '.join(service.models[:MODELS_SHOWN])}{' …' if len(service.models) > MODELS_SHOWN else ''}"
        if lacks_key(service):
            findings.append(Finding("note", what, f"{says}, without a key", f"Set {service.api_key_env}"))
        elif service.kind not in OWN_KINDS and find_spec("pydantic_ai") is None:
            findings.append(Finding("note", what, f"{says}, not installed", "pip install 'palaver[providers]'"))
        else:
            findings.append(Finding("ok", what, says))
    file = config.data / "palaver.toml"
    if any(provider.api_key for provider in config.providers) and file.stat().st_mode & 0o077:
        findings.append(Finding("note", "palaver.toml", "holds a key that others can read", f"chmod 600 {file}"))
    return findings


async def _agents_there(client: "Client") -> list[Finding]:
    return _agents(await client.backends(), await client.agents())


async def _agents_here(config: Config) -> list[Finding]:
    from palaver.agents.backends import Backends
    from palaver.agents.sources import open_roster
    from palaver.clock import SystemClock

    clock = SystemClock()
    async with open_roster(config, clock, _programs(config)) as roster:
        return _agents(
            await Backends(roster, clock, config.environment, lambda: (config.home,)).entries(), roster.entries()
        )


def _agents(
    backends: "Sequence[BackendEntry | BackendInfo]", agents: "Sequence[AgentEntry | AgentInfo]"
) -> list[Finding]:
    programs = [_program(entry) for entry in backends if entry.name.partition(":")[0] in PROGRAMS]
    return [*programs, *map(_agent, agents)]


def _agent(entry: "AgentEntry | AgentInfo") -> Finding:
    what = f"agent {entry.id}"
    if entry.problem:
        return Finding("wrong", what, entry.problem, "Mend the file, or remove it")
    name = f"{entry.name} ({entry.model})" if entry.model else entry.name
    return Finding("ok" if entry.ready else "note", what, f"{name}: {entry.note or entry.backend}")


def _program(entry: "BackendEntry | BackendInfo") -> Finding:
    """An agent program: installed or not, which version, logged in or not, what to do."""
    logins = {"ok": "logged in", "missing": "nobody is logged in", "unknown": "the login is its own affair"}
    parts = [f"{entry.title} {entry.version}" if entry.version else entry.title]
    parts.append("installed" if entry.installed else "not installed")
    if entry.login is not None:
        parts.append(logins[entry.login])
    return Finding("ok" if entry.ready else "note", f"program {entry.name}", ", ".join(parts), entry.fix)


# -- test turns


async def _tests_there(client: "Client", agents: Sequence[str]) -> list[Finding]:
    chosen = _choose([(agent.id, agent.backend, agent.ready) for agent in await client.agents()], agents)
    return [await _test_there(client, agent) for agent in _announce(chosen)]


async def _test_there(client: "Client", agent: str) -> Finding:
    try:
        return _finding_of(agent, await client.test(agent))
    except PalaverError as failure:
        return Finding("wrong", f"test {agent}", failure.message)


async def _tests_here(config: Config, agents: Sequence[str]) -> list[Finding]:
    """In this process, with a log that is gone afterwards."""
    from palaver.app import open_app
    from palaver.log.memory import MemoryLog

    async with open_app(replace(config, trajectories=False), log=MemoryLog()) as app:
        known = [(entry.id, entry.backend, entry.ready) for entry in app.roster.entries()]
        findings: list[Finding] = []
        for agent in _announce(_choose(known, agents)):
            record = app.roster.agent(agent)
            assert record is not None
            findings.append(_finding_of(agent, await app.trials.of(record)))
        return findings


def _choose(known: Sequence[tuple[str, str, bool]], wanted: Sequence[str]) -> list[str]:
    """Those that were named, else every one that is ready, but for the demo, which plays a script."""
    ids = [agent for agent, _, _ in known]
    for agent in wanted:
        if agent not in ids:
            raise ConfigurationError(f"No agent is called “{agent}”. There are: {', '.join(ids)}.")
    return list(wanted) or [agent for agent, backend, ready in known if ready and backend != "demo"]


def _announce(agents: Sequence[str]) -> Iterator[str]:
    """A line for each before it is tried: a turn may take a minute."""
    for place, agent in enumerate(agents, 1):
        print(f"Testing {agent} ({place} of {len(agents)}) …", file=sys.stderr, flush=True)
        yield agent


def _finding_of(agent: str, tried: "Tried | TriedHere") -> Finding:
    if tried.error is not None:
        return Finding("wrong", f"test {agent}", tried.error.message)
    first = tried.text.splitlines()[0][:SHOWN_CHARS] if tried.text else ""
    return Finding("ok", f"test {agent}", f"answered in {tried.duration_ms / 1000:.1f} s: {first}")


def _print(findings: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    from palaver.client.safe_text import prose

    signs = {"ok": ("✓", "green"), "note": ("!", "yellow"), "wrong": ("✗", "red")}
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        says = Text(prose(finding.says))
        if finding.fix:
            says.append(f"\n→ {prose(finding.fix)}", "dim")
        table.add_row(Text(*signs[finding.state]), Text(prose(finding.what)), says)
    print_rich(table)

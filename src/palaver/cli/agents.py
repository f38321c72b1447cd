"""`palaver agents`: who can be talked to, and what one of them is made of."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from palaver.cli.connection import run
from palaver.client import Client
from palaver.client.agents import AgentDetails, AgentInfo

Data = Annotated[Path | None, typer.Option(help="The server's data directory.")]
Url = Annotated[str | None, typer.Option(help="The server's address.")]
Project = Annotated[Path | None, typer.Option(help="With the agents of this project, which work only there.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def agents() -> None:
    """List the agents of a server, or show one."""


@app.command("list")
def list_agents(project: Project = None, json: Json = False, data: Data = None, url: Url = None) -> None:
    """Who can be talked to, and what is wrong with those who cannot."""
    folder = str(project.resolve()) if project else None

    async def fetch(client: Client) -> list[AgentInfo]:
        return await client.agents(folder)

    found = run(data, url, fetch)
    if json:
        for agent in found:
            print(msgspec.json.encode(agent).decode())
        return
    _print_table(found)
    for agent in found:
        if agent.problem:
            print(f"{agent.id}: {agent.problem}", file=sys.stderr)


@app.command("show")
def show_agent(
    agent: Annotated[str, typer.Argument(help="The agent's id.")],
    project: Project = None,
    json: Json = False,
    data: Data = None,
    url: Url = None,
) -> None:
    """Everything an agent is made of, but for the secrets in it."""
    folder = str(project.resolve()) if project else None

    async def fetch(client: Client) -> AgentDetails:
        return await client.agent(agent, folder)

    found = run(data, url, fetch)
    if json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        _print_details(found)


def _print_table(agents: list[AgentInfo]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("id", "name", "backend", "model", "from", "state"):
        table.add_column(heading, overflow="ellipsis", no_wrap=heading != "name")
    for agent in agents:
        table.add_row(agent.id, agent.name, agent.backend, agent.model or "", agent.source, _state(agent))
    Console().print(table)


def _state(agent: AgentInfo) -> str:
    if not agent.trusted:
        return "not trusted"
    return "broken" if agent.problem else "ready" if agent.ready else "not ready"


def _print_details(agent: AgentDetails) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    fields = {
        "name": agent.name,
        "description": agent.description,
        "from": agent.source,
        "state": agent.problem or agent.note or _state(agent),
        "backend": agent.backend,
        "model": agent.model,
        "fallbacks": ", ".join(agent.fallbacks),
        "tools": ", ".join(agent.tools) or "all",
        "allowed_tools": ", ".join(agent.allowed_tools),
        "mcp_servers": ", ".join(str(server.get("name")) for server in agent.mcp_servers),
        "policy": "; ".join(" ".join(str(part) for part in rule.values()) for rule in agent.policy),
        "mode": agent.mode,
        "spend_limit_usd": agent.spend_limit_usd,
        "idle_prompt": agent.idle_prompt,
        "idle_interval_s": agent.idle_interval_s,
        "strict_inbox": agent.strict_inbox or None,
        "knowledge": None if agent.knowledge else "no",
        "params": ", ".join(f"{name}: {value}" for name, value in agent.params.items()),
        "command": " ".join(agent.command),
        "environment": ", ".join(agent.environment),
        "hash": agent.hash,
    }
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in fields.items():
        if value not in (None, ""):
            # As text: what a file says must not colour the terminal.
            table.add_row(Text(name, style="dim"), Text(str(value)))
    console = Console()
    console.print(table)
    if agent.system_prompt:
        console.print()
        console.print(Text(agent.system_prompt))

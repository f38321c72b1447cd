"""`palaver agents`: who can be talked to, and what one of them is made of."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import Server, run
from palaver.cli.support.shell_completion import agents as agent_ids
from palaver.errors import NotFound

if TYPE_CHECKING:
    from palaver.client import Client
    from palaver.client.agents import AgentDetails, AgentInfo

Project = Annotated[
    Path | None,
    typer.Option("--project", "--folder", "-d", help="With the agents of this folder, which work only there."),
]

EXAMPLES = ("palaver agents list", "palaver agents list --folder .", "palaver agents show claude")

app = options.group("List the agents of a server, or show one.")


@app.command("list")
def list_agents(
    project: Project = None,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Who can be talked to, and what is wrong with those who cannot."""
    from palaver.cli.support.output import note, print_json
    from palaver.client.safe_text import one_line

    folder = str(project.resolve()) if project else None

    async def fetch(client: "Client") -> "list[AgentInfo]":
        return await client.agents(folder)

    found = run(Server(data, url, token), fetch)
    if json:
        for agent in found:
            print_json(agent)
        return
    _print_table(found)
    for agent in found:
        if agent.problem:
            note(f"{agent.id}: {one_line(agent.problem)}")


@app.command("show")
def show_agent(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent's id.", autocompletion=agent_ids)],
    project: Project = None,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Everything an agent is made of, but for the secrets in it."""
    from palaver.cli.support.output import print_json

    folder = str(project.resolve()) if project else None

    async def fetch(client: "Client") -> "AgentDetails":
        from palaver.cli.support.resolve_id import no_agent

        try:
            return await client.agent(agent, folder)
        except NotFound:
            raise no_agent(agent, [one.id for one in await client.agents(folder)]) from None

    found = run(Server(data, url, token), fetch)
    if json:
        print_json(found)
    else:
        _print_details(found)


def _print_table(agents: "list[AgentInfo]") -> None:
    from palaver.cli.support.output import cell, print_table

    colours = {"ready": "green", "broken": "red"}
    print_table(
        ("id", "name", "backend", "model", "from", "state"),
        [
            (
                cell(agent.id, "bold"),
                cell(agent.name),
                cell(agent.backend),
                cell(agent.model or ""),
                cell(agent.source),
                cell(_state(agent), colours.get(_state(agent), "yellow")),
            )
            for agent in agents
        ],
        flexible="name",
    )


def _state(agent: "AgentInfo") -> str:
    if not agent.trusted:
        return "not trusted"
    return "broken" if agent.problem else "ready" if agent.ready else "not ready"


def _print_details(agent: "AgentDetails") -> None:
    from rich.table import Table
    from rich.text import Text

    from palaver.cli.support.output import console
    from palaver.client.safe_text import prose

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
            table.add_row(Text(name, style="dim"), Text(prose(str(value))))
    to = console()
    to.print(table)
    if agent.system_prompt:
        to.print()
        to.print(Text(prose(agent.system_prompt)))

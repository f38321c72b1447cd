"""`palaver missions`: what a folder's agents are to go on with by themselves."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import Server, complain, run
from palaver.cli.support.exits import Exit
from palaver.cli.support.shell_completion import agents

if TYPE_CHECKING:
    from palaver.client import Client
    from palaver.client.projects import MissionAgent, MissionInfo, PastMission

app = options.group("Missions: what agents go on with by themselves.")

EXAMPLES = (
    "palaver missions list",
    'palaver missions set "Keep the tests green" --agent fixer --prompt "Look again." --every 600 --budget 5',
    "palaver missions clear",
)

Project = Annotated[Path | None, typer.Option("--project", "--folder", "-d", help="The folder; without it, this one.")]

STANDS = {
    "resting": "rests",
    "busy": "works",
    "waiting": "waits for you",
    "no_prompt": "has no idle prompt",
    "unknown_agent": "is not here any more",
    "deleted": "its conversation was deleted",
    "limit": "was woken often enough",
    "budget": "the budget is spent",
}


@app.command("list")
def list_missions(
    project: Project = None,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Show the mission of a folder and those before it."""
    from palaver.cli.support.output import print_json, when

    async def fetch(client: "Client") -> "tuple[MissionInfo, list[PastMission]]":
        return await client.mission(_folder(project)), await client.missions(_folder(project))

    now, history = run(Server(data, url, token), fetch)
    if json:
        for one in history:
            print_json(one)
        return
    if not history:
        print('No missions yet. Set one: palaver missions set "…" --agent NAME', file=sys.stderr)
    if now.active:
        _print_active(now)
    for one in history:
        if not one.active:
            print(
                f"{when(one.created_at)}  {_line(one.text)}  (ended {when(one.ended_at or 0)}, {one.triggered} times)"
            )


@app.command("set")
def set_mission(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is to be done.")],
    agent: Annotated[
        list[str],
        typer.Option("--agent", "-a", help="Who goes on with it; may be given several times.", autocompletion=agents),
    ],
    prompt: Annotated[str | None, typer.Option(help="What they are told after a rest; without it, their own.")] = None,
    every: Annotated[int | None, typer.Option(help="Seconds of rest, at least 30.")] = None,
    budget: Annotated[float | None, typer.Option(help="Dollars after which nobody is woken any more.")] = None,
    project: Project = None,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Give a folder a mission. The former one ends and stays in the history."""
    from palaver.cli.support.output import print_json

    async def send(client: "Client") -> "MissionInfo":
        from palaver.client.projects import NamedAgent

        named = [NamedAgent(agent=name, idle_prompt=prompt, idle_interval_s=every) for name in agent]
        return await client.set_mission(_folder(project), text, named, budget_usd=budget)

    now = run(Server(data, url, token), send)
    if json:
        print_json(now)
    else:
        _print_active(now)


@app.command("clear")
def clear_mission(
    project: Project = None,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """End the mission of a folder. What runs goes on; nobody is woken any more."""
    from palaver.cli.support.output import print_json

    async def send(client: "Client") -> "tuple[bool, MissionInfo]":
        folder = _folder(project)
        was_active = (await client.mission(folder)).active
        return was_active, await client.clear_mission(folder)

    was_active, now = run(Server(data, url, token), send)
    if json:
        print_json(now)
    elif was_active:
        print("Cleared.")
    if not was_active:
        complain("There is no mission to clear.")
        raise typer.Exit(Exit.CONFLICT)


def _folder(project: Path | None) -> str:
    return str((project or Path.cwd()).resolve())


def _print_active(mission: "MissionInfo") -> None:
    spent = f", ${mission.spent_usd:.2f}" + (f" of ${mission.budget_usd:.2f}" if mission.budget_usd else "")
    print(f"{_line(mission.text)}\n  {mission.triggered} of {mission.limit} times{spent if mission.triggered else ''}")
    for one in mission.agents:
        print(f"  {one.agent}: {_stands(one)}")


def _stands(one: "MissionAgent") -> str:
    from palaver.cli.support.output import when

    stands = STANDS.get(one.status, one.status)
    due = f", is woken at {when(one.next_due_at)}" if one.next_due_at else ""
    return f"{stands}{due}, every {one.idle_interval_s} s"


def _line(text: str) -> str:
    from palaver.client.safe_text import one_line

    return one_line(" ".join(text.split()), 100)

"""`palaver missions`: what a folder's agents are to go on with by themselves."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from palaver.cli.connection import FAILED, complain, run
from palaver.client import Client
from palaver.client.projects import MissionAgent, MissionInfo, NamedAgent, PastMission

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Missions: what agents go on with by themselves.")

Project = Annotated[Path | None, typer.Option(help="The folder; without it, this one.")]
Data = Annotated[Path | None, typer.Option(help="The server's data directory.")]
Url = Annotated[str | None, typer.Option(help="The server's address.")]

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
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    data: Data = None,
    url: Url = None,
) -> None:
    """Show the mission of a folder and those before it."""

    async def fetch(client: Client) -> tuple[MissionInfo, list[PastMission]]:
        return await client.mission(_folder(project)), await client.missions(_folder(project))

    now, history = run(data, url, fetch)
    if json:
        for one in history:
            print(msgspec.json.encode(one).decode())
        return
    if not history:
        print('No missions yet. Set one: palaver missions set "…" --agent NAME', file=sys.stderr)
    if now.active:
        _print_active(now)
    for one in history:
        if not one.active:
            print(
                f"{_when(one.created_at)}  {_line(one.text)}  (ended {_when(one.ended_at or 0)}, {one.triggered} times)"
            )


@app.command("set")
def set_mission(
    text: Annotated[str, typer.Argument(help="What is to be done.")],
    agent: Annotated[list[str], typer.Option(help="Who goes on with it; may be given several times.")],
    prompt: Annotated[str | None, typer.Option(help="What they are told after a rest; without it, their own.")] = None,
    every: Annotated[int | None, typer.Option(help="Seconds of rest, at least 30.")] = None,
    budget: Annotated[float | None, typer.Option(help="Dollars after which nobody is woken any more.")] = None,
    project: Project = None,
    data: Data = None,
    url: Url = None,
) -> None:
    """Give a folder a mission. The former one ends and stays in the history."""
    agents = [NamedAgent(agent=name, idle_prompt=prompt, idle_interval_s=every) for name in agent]

    async def send(client: Client) -> MissionInfo:
        return await client.set_mission(_folder(project), text, agents, budget_usd=budget)

    _print_active(run(data, url, send))


@app.command("clear")
def clear_mission(project: Project = None, data: Data = None, url: Url = None) -> None:
    """End the mission of a folder. What runs goes on; nobody is woken any more."""

    async def send(client: Client) -> bool:
        folder = _folder(project)
        was_active = (await client.mission(folder)).active
        await client.clear_mission(folder)
        return was_active

    if not run(data, url, send):
        complain("There is no mission to clear.")
        raise typer.Exit(FAILED)
    print("Cleared.")


def _folder(project: Path | None) -> str:
    return str((project or Path.cwd()).resolve())


def _print_active(mission: MissionInfo) -> None:
    spent = f", ${mission.spent_usd:.2f}" + (f" of ${mission.budget_usd:.2f}" if mission.budget_usd else "")
    print(f"{_line(mission.text)}\n  {mission.triggered} of {mission.limit} times{spent if mission.triggered else ''}")
    for one in mission.agents:
        print(f"  {one.agent}: {_stands(one)}")


def _stands(one: MissionAgent) -> str:
    stands = STANDS.get(one.status, one.status)
    due = f", is woken at {_when(one.next_due_at)}" if one.next_due_at else ""
    return f"{stands}{due}, every {one.idle_interval_s} s"


def _line(text: str) -> str:
    return " ".join(text.split())[:100]


def _when(ts_ms: int) -> str:
    return datetime.fromtimestamp(ts_ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")

"""`palaver backends`: what runs agents on the server, whether it can, what to do about it, and a try of each."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import Server, run
from palaver.cli.support.exits import Exit

if TYPE_CHECKING:
    from palaver.client import Client
    from palaver.client.agents import BackendInfo, Tried

EXAMPLES = (
    "palaver backends",
    "palaver backends claude --test",
    "palaver backends --json | jq -r 'select(.ready) | .name'",
)

LOGINS = {"ok": "logged in", "missing": "nobody is logged in", "unknown": "its own affair"}
ANSWER_CHARS = 80
"""Of an agent's answer: it was asked for a word."""


def backends(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Only these.")] = None,
    test: Annotated[
        bool,
        typer.Option("--test", help="Let an agent of each ready one answer a word. It may cost what a word costs."),
    ] = False,
    json: options.Json = False,
    data: options.Data = None,
    url: options.Url = None,
    token: options.Token = None,
) -> None:
    """Show what runs agents here. With --test exits 1 when one does not answer."""
    from palaver.cli.support.output import print_json

    async def fetch(client: "Client") -> "tuple[list[BackendInfo], dict[str, Tried]]":
        found = _choose(await client.backends(), names or [])
        return found, await _test(client, found) if test else {}

    found, tried = run(Server(data, url, token), fetch)
    if json:
        for one in found:
            print_json({**_fields(one), "test": tried.get(one.name)} if test else one)
    else:
        _print(found, tried)
    raise typer.Exit(Exit.OK if all(one.ok for one in tried.values()) else Exit.FAILED)


def _fields(one: "BackendInfo") -> dict[str, object]:
    from msgspec.structs import asdict

    return asdict(one)


def _choose(found: "list[BackendInfo]", names: list[str]) -> "list[BackendInfo]":
    from difflib import get_close_matches

    from palaver.errors import NotFound

    there = [one.name for one in found]
    for name in names:
        if name not in there:
            close = get_close_matches(name, there, n=1)
            meant = f" Did you mean “{close[0]}”?" if close else ""
            raise NotFound(f"No backend is called “{name}”.{meant} There are: {', '.join(there)}.")
    return [one for one in found if one.name in names] if names else found


async def _test(client: "Client", found: "list[BackendInfo]") -> "dict[str, Tried]":
    from palaver.client.agents import TrialError, Tried
    from palaver.errors import PalaverError

    ready = [one for one in found if one.ready and one.agents]
    tried: dict[str, Tried] = {}
    for place, one in enumerate(ready, 1):
        # A turn may take a minute, so it is said before.
        print(f"Testing {one.name} ({place} of {len(ready)}) …", file=sys.stderr, flush=True)
        try:
            tried[one.name] = await client.test(one.agents[0])
        except PalaverError as failure:
            tried[one.name] = Tried(ok=False, error=TrialError(failure.code, failure.message))
    return tried


def _print(found: "list[BackendInfo]", tried: "dict[str, Tried]") -> None:
    from palaver.cli.support.output import cell, note, print_table
    from palaver.client.safe_text import one_line

    def state(one: "BackendInfo") -> tuple[str, str]:
        if one.ready:
            return "ready", "green"
        return ("not installed", "dim") if not one.installed else ("not ready", "yellow")

    print_table(
        ("name", "state", "version", "login", "agents"),
        [
            (
                cell(one.name, "bold"),
                cell(*state(one)),
                cell(one.version or ""),
                cell(LOGINS.get(one.login or "", "")),
                cell(", ".join(one.agents)),
            )
            for one in found
        ],
        flexible="agents",
    )
    for one in found:
        if one.fix and not one.ready:
            note(f"{one.name}: {one_line(one.fix)}")
        if one.last_error is not None:
            note(f"{one.name}: its last turn failed: {one_line(one.last_error.message)}")
    for name, result in tried.items():
        said = one_line(result.text, ANSWER_CHARS) if result.error is None else one_line(result.error.message)
        print(f"{'✓' if result.ok else '✗'} {name}: {result.duration_ms / 1000:.1f} s: {said}")

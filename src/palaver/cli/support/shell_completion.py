"""What the shell offers after Tab: ids and names from the running server, at once and without a word.

Called by typer while a line is being typed, through `options`. It asks with the standard library alone, because importing the
client takes longer than the answer. Whatever goes wrong, nothing is offered: a shell is no place for an error.
"""

import json
import re
from typing import Any
from urllib.parse import urlsplit

import typer

from palaver.cli.support.connection import Server
from palaver.errors import PalaverError

PATIENCE_S = 0.7
"""Somebody waits with a finger on the key."""
OFFERED = 50
TITLE_CHARS = 60

_NAME = re.compile("[A-Za-z0-9_-]{1,128}")
_UNSPEAKABLE = re.compile(r"[^\w .,-]+")
"""A title may be anybody's words, and zsh evaluates what it is offered: nothing that means something to a shell gets there."""


def conversations(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    rows = _items(ctx, f"/api/conversations?limit={OFFERED}")
    latest = ("last", "the latest conversation")
    return _offer(incomplete, [latest, *((row["id"], row.get("title") or "untitled") for row in rows)])


def agents(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    return _offer(incomplete, [(row["id"], row.get("name", "")) for row in _items(ctx, "/api/agents")])


def requests(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    rows = (row["request"] for row in _items(ctx, "/api/requests"))
    return _offer(incomplete, [(row["id"], row.get("title") or row.get("tool") or row["kind"]) for row in rows])


def _offer(incomplete: str, named: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [
        (name, _UNSPEAKABLE.sub(" ", words)[:TITLE_CHARS].strip())
        for name, words in named
        if _NAME.fullmatch(name) and name.startswith(incomplete)
    ]


def _items(ctx: typer.Context, path: str) -> list[dict[str, Any]]:
    try:
        server = Server(ctx.params.get("data"), ctx.params.get("url"), ctx.params.get("token"))
        return list(_ask_server(server, path)["items"])
    except (OSError, PalaverError, ValueError, KeyError, TypeError):
        return []


def _ask_server(server: Server, path: str) -> Any:
    # Every command imports this module, and hardly ever asks.
    import http.client

    address = urlsplit(server.address)
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.hostname or "127.0.0.1", address.port, timeout=PATIENCE_S)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {server.key()}"})
        return json.loads(connection.getresponse().read())
    except http.client.HTTPException as problem:
        raise ValueError(f"no answer of ours: {problem}") from problem
    finally:
        connection.close()

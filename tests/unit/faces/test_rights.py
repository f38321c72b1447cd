"""The table of rights: it has a row for everything that a client can ask for, and nothing else; the guard obeys it."""

from types import SimpleNamespace
from typing import Any, get_args

import msgspec
import pytest
from litestar import asgi, get

from palaver.errors import ConfigurationError, Forbidden
from palaver.faces.all_faces import ROUTES as WHOLE
from palaver.faces.chats import commands as chats
from palaver.faces.http import gate
from palaver.faces.http.route_app import build_routes
from palaver.faces.inbox.tools import TOOLS, tools_for
from palaver.faces.rights import (
    COMMANDS,
    FRAMES,
    INBOX_ACTS,
    INBOX_MEMBERS,
    ROUTES,
    guard,
    operations_of,
    role_for,
    role_for_params,
)
from palaver.faces.socket.client_frames import KINDS
from palaver.people.authentication import ROLES, Kind, Principal
from palaver.schema import commands
from palaver.schema.commands import Command, Fill
from palaver.schema.view import State

pytestmark = pytest.mark.anyio

KIND_NAMES: tuple[Kind, ...] = ("owner", "human", "agent", "observer")
READING = ("GET", "HEAD", "WEBSOCKET", "ASGI")
READS_BY_POST = {
    "POST /api/chat/sessions/search",
    "POST /api/plugins/sessions/operations/events",
    "POST /api/plugins/sessions/operations/list",
    "POST /api/conversations/{conversation}/commands",
    "POST /v1/chats/{chat_id}/commands",
}
"""Open to who may only read, though no plain read: they read, or each command says what it needs."""
BUILT_ELSEWHERE = {
    "ASGI /mcp/assistant",
    "ASGI /mcp/human",
    "GET /api/schema",
    "GET /api/schema/openapi.json",
    "GET /api/schema/reference.css",
    "GET /api/schema/{path}",
}
"""Added when the whole application is composed; the attack tests ask those of a real server."""


async def _nothing(_: Any) -> None: ...


APP = build_routes(WHOLE, {"server": None, "live": None}, _nothing)
OPERATIONS = sorted(operations_of(APP))


def test_table_has_exactly_the_operations_that_there_are() -> None:
    assert set(ROUTES) - BUILT_ELSEWHERE == set(OPERATIONS)


async def test_route_without_a_row_keeps_the_server_from_starting() -> None:
    @get("/api/forgotten")
    async def forgotten() -> None: ...

    with pytest.raises(ConfigurationError, match="GET /api/forgotten"):
        build_routes([forgotten], {}, _nothing)


async def _mounted(scope: Any, receive: Any, send: Any) -> None: ...


async def lets_in(operation: str, principal: Principal | None) -> bool:
    method, _, path = operation.partition(" ")
    scope = {"path_template": path} | ({"method": method} if method not in ("WEBSOCKET", "ASGI") else {})
    connection: Any = SimpleNamespace(auth=principal, scope=scope)
    handler: Any = asgi(path, is_mount=True, copy_scope=False)(_mounted) if method == "ASGI" else None
    try:
        await guard(connection, handler)
    except Forbidden:
        return False
    return True


@pytest.mark.parametrize("kind", KIND_NAMES)
@pytest.mark.parametrize("operation", sorted(ROUTES))
async def test_guard_lets_in_who_holds_the_role_of_the_row(operation: str, kind: Kind) -> None:
    need = ROUTES[operation]
    expected = need in ("open", "signed_in") or need in ROLES[kind]
    assert await lets_in(operation, Principal("somebody", kind, "key")) == expected


async def test_guard_refuses_what_has_no_row_to_everybody() -> None:
    assert not await lets_in("GET /api/unheard-of", Principal("owner", "owner", "key"))


def test_what_is_open_is_what_the_gate_lets_pass_without_a_token() -> None:
    assert {f"{method} {path}" for method, path in gate.OPEN} == {op for op, need in ROUTES.items() if need == "open"}


@pytest.mark.parametrize("operation", sorted(op for op in ROUTES if op.partition(" ")[0] not in READING))
def test_no_row_lets_an_observer_change_anything(operation: str) -> None:
    reads = operation in READS_BY_POST or ROUTES[operation] in ("open", "signed_in")
    assert (ROUTES[operation] == "read" or ROUTES[operation] in ("open", "signed_in")) == reads


# -- commands


def test_table_has_exactly_the_commands_that_clients_can_give() -> None:
    assert set(COMMANDS) == {*get_args(Command), Fill}


def test_frames_are_exactly_those_that_the_socket_reads() -> None:
    assert set(FRAMES) == set(KINDS)


@pytest.mark.parametrize("mode", ["accept_edits", "auto", "full", "agent", "FULL", 7, ["plan"]])
def test_bolder_mode_is_a_decision_whatever_carries_it(mode: Any) -> None:
    assert role_for_params({"mode": mode}) == "decide"
    assert role_for(commands.SetParams(patch={"mode": mode})) == "decide"
    assert role_for(commands.SendMessage(content="x", mode=mode)) == "decide"


@pytest.mark.parametrize("value", [None, [], [{"tool": "*", "decision": "allow"}]])
def test_rules_are_a_decision_also_when_they_are_cleared(value: Any) -> None:
    assert role_for(commands.SetParams(patch={"policy": value})) == "decide"


@pytest.mark.parametrize("command", get_args(Command), ids=lambda one: one.__struct_config__.tag)
def test_no_command_is_an_observers(command: Any) -> None:
    assert COMMANDS[command] != "read"


@pytest.mark.parametrize("command", ["approve_tools", "reject_tools", "tool_decision", "tool_decisions"])
def test_decisions_of_chats_become_commands_that_need_decide(command: str) -> None:
    body = {"tool_call_id": "c", "accepted": True, "decisions": [{"tool_call_id": "c", "accepted": True}]}
    read = chats.read_command(msgspec.json.encode({"type": command, **body}))
    assert not isinstance(read.asked, Exception)
    meant = chats.meant_by(read.asked, State(conversation="c"), decides=True)  # type: ignore[arg-type]
    assert role_for(meant.command) == "decide"


# -- the inbox


@pytest.mark.parametrize("kind", KIND_NAMES)
@pytest.mark.parametrize("side", list(INBOX_MEMBERS))
def test_inbox_offers_what_the_table_says(side: Any, kind: Kind) -> None:
    names = {tool.name for tool in tools_for(side, kind)}
    for tool in TOOLS:
        expected = (
            side in tool.sides
            and INBOX_ACTS[tool.act] in ROLES[kind]
            and (kind in INBOX_MEMBERS[side] or (kind == "observer" and tool.act == "read"))
        )
        assert (tool.name in names) == expected

"""Which token may use a route: every route of every face is asked with a token of each kind, without a server."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.routes import HTTPRoute

from palaver.errors import Forbidden
from palaver.faces.keys import Kind, Principal
from palaver.faces.routed import routed
from palaver.faces.whole import ROUTES

pytestmark = pytest.mark.anyio

READING = ("GET", "HEAD", "OPTIONS")
WITHOUT_GUARD = {
    "GET /api/health": "says that the server is there, and nothing else",
    "GET /api/about": "its name and version, behind the gate like everything else",
    "GET /api/session": "says who is signed in",
    "POST /api/session": "signing in",
    "DELETE /api/session": "signing out",
}
"""Routes that need no right of their own, and why."""
OPEN_TO_OBSERVERS = {
    "POST /api/session": "signing in",
    "DELETE /api/session": "signing out",
    "POST /api/chat/sessions/search": "reads only",
    "POST /api/plugins/sessions/operations/events": "reads only",
    "POST /api/plugins/sessions/operations/list": "reads only",
    "POST /api/conversations/{conversation}/commands": "each command says which right it needs",
    "POST /v1/chats/{chat_id}/commands": "each command says which right it needs",
}
"""What is no plain read and yet open to a token that may only read, and why."""


async def _nothing(_: Any) -> None: ...


def operations() -> dict[str, BaseRouteHandler]:
    app = routed(ROUTES, {"server": None, "live": None}, _nothing)
    found: dict[str, BaseRouteHandler] = {}
    for route in app.routes:
        path = re.sub(r"\{(\w+):\w+\}", r"{\1}", route.path_format)
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else [route.route_handler]:
            methods = handler.http_methods if isinstance(handler, HTTPRouteHandler) else {"WEBSOCKET"}
            found |= {f"{method} {path}": handler for method in methods if method != "OPTIONS"}
    return found


OPERATIONS = operations()


async def lets_in(operation: str, kind: Kind) -> bool:
    handler = OPERATIONS[operation]
    connection: Any = SimpleNamespace(auth=Principal("somebody", kind, "key"))
    try:
        for guard in handler.guards or ():
            await guard(connection, handler)  # type: ignore[misc]
    except Forbidden:
        return False
    return True


def test_routes_of_every_face_are_asked() -> None:
    paths = {operation.partition(" ")[2] for operation in OPERATIONS}
    assert {"/api/conversations", "/api/events", "/v1/chats/subscribe", "/api/chat/sessions/list", "/ws"} <= paths


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_route_says_which_right_it_needs(operation: str) -> None:
    assert bool(OPERATIONS[operation].guards) != (operation in WITHOUT_GUARD)


@pytest.mark.parametrize(
    "operation", sorted(name for name in OPERATIONS if name.partition(" ")[0] not in (*READING, "WEBSOCKET"))
)
async def test_observer_may_change_nothing(operation: str) -> None:
    assert await lets_in(operation, "observer") == (operation in OPEN_TO_OBSERVERS)


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
async def test_owner_may_use_every_route(operation: str) -> None:
    assert await lets_in(operation, "owner")

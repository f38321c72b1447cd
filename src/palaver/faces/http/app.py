"""All faces as one ASGI application, behind the gate.

Called by the composition root. The native face is there when the server is: the page, the terminal and the command line
ask for it at once. The others are imported and built when somebody first asks for what is not native, beside the loop: most
servers are never asked, and all of them would wait for it at their start.
"""

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litestar import Litestar, Request
from litestar.types import ASGIApp, ControllerRouterHandler, Receive, Scope, Send

from palaver.agents.changes import RESERVED
from palaver.faces import native
from palaver.faces.bus.changes import is_change
from palaver.faces.http.gate import Gate
from palaver.faces.http.hosts import Hosts
from palaver.faces.http.page import Page
from palaver.faces.http.route_app import build_routes
from palaver.faces.server import ServerParts

if TYPE_CHECKING:
    from palaver.faces.live import LiveFaces

WEB_DIST = Path(__file__).parents[2] / "web_dist"

_PARAMETER = re.compile(r"\\\{[^/]+\\\}")
_VALUE = rf"(?!(?:{'|'.join(sorted(RESERVED))})(?![^/]))[^/]+"
"""Of a parameter. `/api/agents/list` is another face's, and no agent can be called “list”."""


def build_app(
    server: ServerParts,
    hosts: Hosts,
    more_routes: Iterable[ControllerRouterHandler] = (),
    page_folder: Path = WEB_DIST,
    *,
    behind_proxy: bool = False,
) -> ASGIApp:
    door = {"name": server.name, "version": server.version}
    faces = Faces(server, more_routes)
    return Gate(
        faces, Page(page_folder), server.keys, server.failures, hosts, server.port, door, behind_proxy=behind_proxy
    )


class Faces:
    """Sends a request whose address only the native face has to that face, and every other one to the whole."""

    def __init__(self, server: ServerParts, more_routes: Iterable[ControllerRouterHandler]) -> None:
        self._server = server
        self._more_routes = tuple(more_routes)
        self._native = build_routes(native.ROUTES, {"server": server}, self._tell_change)
        self._is_native = addresses_of(self._native)
        self._whole: ASGIApp | None = None
        self._live: LiveFaces | None = None
        self._building: asyncio.Task[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_native.fullmatch(scope["path"]):
            app: ASGIApp = self._native
        else:
            app = self._whole or await self._build_once()
        await app(scope, receive, send)

    async def _build_once(self) -> ASGIApp:
        """Once, however many ask for it at once and go away again."""
        if self._building is None or (self._building.done() and self._whole is None):
            self._building = asyncio.create_task(self._build(), name="build the other faces")
        return await asyncio.shield(self._building)

    async def _build(self) -> ASGIApp:
        # In a thread: it takes a tenth of a second, in which nobody else should wait.
        whole, self._live = await asyncio.to_thread(self._make)
        self._whole = whole
        return whole

    def _make(self) -> "tuple[ASGIApp, LiveFaces]":
        from palaver.faces.all_faces import build_whole

        return build_whole(self._server, self._more_routes, self._tell_change)

    async def _tell_change(self, request: Request[Any, Any, Any]) -> None:
        """Whichever face a change came through, the bus says it. Before there is one, nobody listens to it."""
        if self._live is not None and is_change(request):
            self._live.bus.changed()


def addresses_of(native_face: Litestar) -> "re.Pattern[str]":
    """Matches what no other face may be meant by. What it does not match may still be native: the whole knows."""
    paths = sorted({route.path for route in native_face.routes})
    return re.compile("|".join(_PARAMETER.sub(_VALUE, re.escape(path)) for path in paths))

"""All faces as one ASGI application, behind the gate.

Called by the composition root. A new face adds its routes to `routes` and nothing else: the checks at the door, the shape
of errors and the headers are the same for all.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from litestar import Litestar
from litestar.di import Provide
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from litestar.types import ASGIApp, ControllerRouterHandler

from palaver.faces import native, talk
from palaver.faces.bus import routes as bus
from palaver.faces.bus.changes import telling_changes
from palaver.faces.chats import routes as chats
from palaver.faces.gate import Gate, allowed_hosts
from palaver.faces.live import live_faces
from palaver.faces.page import Page
from palaver.faces.reference import ReferencePage, SchemaFile
from palaver.faces.refusals import answer
from palaver.faces.server import Server
from palaver.faces.socket import routes as socket
from palaver.faces.stream import routes as stream

BODY_BYTES = 1 << 20
"""Of a request whose route says nothing else."""

WEB_DIST = Path(__file__).parent.parent / "web_dist"


class _Faces(Litestar):
    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        """Without those for pydantic: importing it takes a third of the server's start, and nothing here uses it."""
        return [*plugins, MsgspecDIPlugin()]


def build_app(
    server: Server,
    public_hosts: Iterable[str] = (),
    more_routes: Iterable[ControllerRouterHandler] = (),
    page_folder: Path = WEB_DIST,
) -> ASGIApp:
    routes: list[Any] = [
        *native.ROUTES,
        *talk.ROUTES,
        *bus.ROUTES,
        *stream.ROUTES,
        *chats.ROUTES,
        *socket.ROUTES,
        *more_routes,
    ]
    live = live_faces(server)
    litestar = _Faces(
        routes,
        dependencies={
            "server": Provide(lambda: server, sync_to_thread=False, use_cache=True),
            "live": Provide(lambda: live, sync_to_thread=False, use_cache=True),
        },
        exception_handlers={Exception: answer},
        after_response=telling_changes(live.bus),
        request_max_body_size=BODY_BYTES,
        openapi_config=_openapi(server),
        # Logging is the command line's; Litestar would configure the root logger.
        logging_config=None,
    )
    hosts = allowed_hosts(server.port, public_hosts)
    door = {"name": server.name, "version": server.version}
    return Gate(litestar, Page(page_folder), server.keys, server.failures, hosts, server.port, door)


def _openapi(server: Server) -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Palaver",
        version=server.version,
        description="The native face. Errors have one shape: `code`, `message`, `retryable`, `details`.",
        path="/api/schema",
        render_plugins=[ReferencePage(), SchemaFile()],
        use_handler_docstrings=True,
        components=Components(security_schemes={"token": SecurityScheme(type="http", scheme="bearer")}),
        security=[{"token": []}],
    )

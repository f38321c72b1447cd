"""Every face, built as one application with its description.

Imported and built by `app.py` when somebody asks for what is not of the native face. A new face adds its routes here and
nothing else: the checks at the door, the shape of errors and the headers are the same for all.
"""

from collections.abc import Iterable

from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ASGIApp, ControllerRouterHandler

from palaver.faces import chat_route, native
from palaver.faces.bus import routes as bus
from palaver.faces.chats import routes as chats
from palaver.faces.http.openapi_document import ReferencePage, SchemaFile
from palaver.faces.http.route_app import AfterResponse, build_routes
from palaver.faces.live import LiveFaces, live_faces
from palaver.faces.server import ServerParts
from palaver.faces.socket import routes as socket
from palaver.faces.stream import routes as stream

ROUTES: list[ControllerRouterHandler] = [
    *native.ROUTES,
    *chat_route.ROUTES,
    *bus.ROUTES,
    *stream.ROUTES,
    *chats.ROUTES,
    *socket.ROUTES,
]


def build_whole(
    server: ServerParts, more_routes: Iterable[ControllerRouterHandler], after_response: AfterResponse
) -> tuple[ASGIApp, LiveFaces]:
    live = live_faces(server)
    given = {"server": server, "live": live}
    return build_routes([*ROUTES, *more_routes], given, after_response, _description(server)), live


def _description(server: ServerParts) -> OpenAPIConfig:
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

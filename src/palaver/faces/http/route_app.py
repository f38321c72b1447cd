"""Routes as an application of the web framework, with what those of every face have in common.

Called by `app.py` for the native face alone and by `faces/all_faces.py` for all of them.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from litestar import Litestar, Request
from litestar.di import Provide
from litestar.openapi import OpenAPIConfig
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from litestar.types import ControllerRouterHandler

from palaver.faces.http.errors import answer
from palaver.faces.rights import check_rows, guard

BODY_BYTES = 1 << 20
"""Of a request whose route says nothing else."""

AfterResponse = Callable[[Request[Any, Any, Any]], Awaitable[None]]


class _Routed(Litestar):
    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        """Without those for pydantic: importing it takes a third of the server's start, and nothing here uses it."""
        return [*plugins, MsgspecDIPlugin()]


def build_routes(
    routes: Sequence[ControllerRouterHandler],
    given: dict[str, Any],
    after_response: AfterResponse,
    description: OpenAPIConfig | None = None,
) -> Litestar:
    """`given`: what routes ask for by name. Raises ConfigurationError for a route that the table of rights does not know."""
    app = _Routed(
        routes,
        guards=[guard],
        dependencies={name: _provide(value) for name, value in given.items()},
        exception_handlers={Exception: answer},
        after_response=after_response,
        request_max_body_size=BODY_BYTES,
        openapi_config=description,
        # Logging is the command line's; Litestar would configure the root logger.
        logging_config=None,
    )
    check_rows(app)
    return app


def _provide(value: Any) -> Provide:
    return Provide(lambda: value, sync_to_thread=False, use_cache=True)

"""Settings of the whole server: read, and merged into. Keys and tokens are no settings: they never come in and never leave."""

from collections.abc import Callable
from typing import Any

from litestar import get
from litestar.params import JSONBody

from palaver.errors import NotFound
from palaver.faces.bus.frames import Json
from palaver.faces.http.json_route import json_post
from palaver.faces.server import Server


def _name_operation(word: str) -> Callable[..., str]:
    """Two addresses share each route; in the API's description every operation has a name of its own."""
    return lambda _route, _method, path: f"{word}_{path[-1]}"


@get(["/api/settings", "/api/config"], operation_id=_name_operation("bus"), tags=["bus", "settings"])
async def settings(server: Server) -> Json:
    """What counts where nobody said otherwise, and what clients keep here."""
    return server.defaults.shown


@json_post(["/api/settings", "/api/config"], _name_operation("bus_set"), "bus", "settings")
async def merge(data: JSONBody[dict[str, Any]], server: Server) -> Json:
    """Change what is given; everything else stays, null clears. What looks like a secret is not kept, and named."""
    agent = data.get("default_agent")
    if isinstance(agent, str) and server.agents.agent(agent) is None:
        raise NotFound(server.agents.why_not(agent), agent=agent)
    ignored = await server.defaults.merge(data)
    return {**server.defaults.shown, **({"ignored": ignored} if ignored else {})}


ROUTES = [settings, merge]

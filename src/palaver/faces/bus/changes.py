"""Changes that are in no conversation's log, told on the bus: somebody made, changed or deleted an agent, or a setting.

Hung behind every route by `faces/app.py`: whichever face the change came through, the bus says `run/sync`.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from litestar import Request

from palaver.faces.bus.pump import Bus

CHANGING = frozenset({"agents", "settings"})
"""What routes are about, by their tags."""


def telling_changes(bus: Bus) -> Callable[[Request[Any, Any, Any]], Awaitable[None]]:
    async def told(request: Request[Any, Any, Any]) -> None:
        if request.method != "GET" and not CHANGING.isdisjoint(request.route_handler.tags or ()):
            bus.changed()

    return told

"""Changes that are in no conversation's log, told on the bus: somebody made, changed or deleted an agent, or a setting.

Asked by `faces/http/app.py` behind every route: whichever face the change came through, the bus says `run/sync`.
"""

from typing import Any

from litestar import Request

CHANGING = frozenset({"agents", "settings"})
"""What routes are about, by their tags."""


def is_change(request: Request[Any, Any, Any]) -> bool:
    return request.method != "GET" and not CHANGING.isdisjoint(request.route_handler.tags or ())

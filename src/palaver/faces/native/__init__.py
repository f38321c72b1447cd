"""The native face: Palaver's own contract, which the page, the terminal and the command line speak.

One module a noun. `docs/protocol/native.md` says what each route takes and gives.
"""

from palaver.faces.native import (
    agents,
    backends,
    conversations,
    events,
    grants,
    history,
    imports,
    processes,
    projects,
    requests,
    runs,
    session,
    socket,
    speech,
    uploads,
)

ROUTES = [
    *session.ROUTES,
    *conversations.ROUTES,
    *history.ROUTES,
    *imports.ROUTES,
    *events.ROUTES,
    *socket.ROUTES,
    *requests.ROUTES,
    *grants.ROUTES,
    *agents.ROUTES,
    *backends.ROUTES,
    *processes.ROUTES,
    *projects.ROUTES,
    *runs.ROUTES,
    *speech.ROUTES,
    *uploads.ROUTES,
]

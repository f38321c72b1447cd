"""Routes of this face. `POST /api/chat`, shared with the stream face, is in `faces/chat_route.py`; `/api/health` is native."""

from palaver.faces.bus import answers, chat, events, projects, runs, settings

ROUTES = [
    *events.ROUTES,
    *chat.ROUTES,
    *runs.ROUTES,
    *answers.ROUTES,
    *projects.ROUTES,
    *settings.ROUTES,
]

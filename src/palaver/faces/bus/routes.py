"""All routes of this face. `POST /api/chat`, which it shares with another, is in `faces/talk.py`; `/api/health` is native."""

from palaver.faces.bus import asking, chat, events, projects, runs, settings

ROUTES = [
    *events.ROUTES,
    *chat.ROUTES,
    *runs.ROUTES,
    *asking.ROUTES,
    *projects.ROUTES,
    *settings.ROUTES,
]

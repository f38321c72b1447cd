"""All routes of this face. `POST /api/chat`, which it shares with another, is in `faces/chat_route.py`."""

from palaver.faces.stream import agents, answer, sessions, uploads

ROUTES = [*answer.ROUTES, *sessions.ROUTES, *uploads.ROUTES, *agents.ROUTES]

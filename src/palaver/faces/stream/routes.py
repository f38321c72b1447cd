"""All routes of this face. `POST /api/chat`, which it shares with another, is in `faces/talk.py`."""

from palaver.faces.stream import agents, answering, sessions, uploads

ROUTES = [*answering.ROUTES, *sessions.ROUTES, *uploads.ROUTES, *agents.ROUTES]

"""One bus for everything that happens on a server: `GET /api/events`, and the calls that go with it.

`project` says events in the bus's words, `pump` reads the log once for all who listen, `chat`, `runs`, `asking`, `plans`,
`settings` and `projects` are what such a client calls. `POST /api/chat` itself is in `faces/chat_route.py`.
"""

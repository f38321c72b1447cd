"""One POST, one stream of server-sent events: chat clients written for the Claude SDK.

`project` says turns in the SDK's messages, `answering` sends a message and follows its turn, `sessions`, `uploads` and
`agents` are what such a client keeps its lists and files with. `POST /api/chat` itself is in `faces/chat_route.py`.
"""

"""One WebSocket with deltas, and the log replayed in the same words.

`project` says events as frames (with `memory`, what it must know of the events before, and `asking`, requests as
interactions), `replay` reads them out of the log again, `connection` is one client's socket, `asked` what it may say,
`carrying_out` what becomes of that, `bulletin` the news of sessions it did not subscribe to, `operations` the requests
beside the socket, `speech` answers read aloud.
"""

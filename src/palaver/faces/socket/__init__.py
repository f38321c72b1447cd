"""One WebSocket with deltas, and the log replayed in the same words.

`project` says events as frames (`answers`, `calls`, `messages`, `sessions` and `asking` are its parts, `memory` what it must
know of the events before, `sequence` the numbers of frames), `replay` reads them out of the log again, without what was
removed since (`rewrites`), `connection` is one client's socket, `asked` what it
may say, `carrying_out` what becomes of that, `live` and `pieces` what all sockets share, `bulletin` the news of sessions a
client did not subscribe to, `operations` the requests beside the socket, `speech` and `voices` answers read aloud.
"""

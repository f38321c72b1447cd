"""Claude Code as a backend: the real program, driven through `claude-agent-sdk`.

The walk: `backend` takes a turn, `program` starts the program under our warden and keeps it, `wire` carries its lines,
`conduct` runs the turn, `translate` makes events of the lines, `requests` judges its permission questions and puts them to a
person in the words of `asking`, `tools` offers ours to it. The SDK speaks the control protocol; it is imported only when a
turn needs it.
"""

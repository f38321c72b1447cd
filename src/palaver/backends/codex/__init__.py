"""Codex as a backend: `codex app-server`, one process for all conversations, each a thread of its own.

Chosen by the composition root for agents with backend `codex`. The walk: `backend` gives a turn the shared program
(`shared`, `rpc`), `threads` finds the thread to go on with, `turn` runs it, `translate` and `items` put its lines into our
events, `requests` judges what it asks and puts it to a person in the words of `asking`, `own_calls` are its calls of our
tools. Seen with 0.163.
"""

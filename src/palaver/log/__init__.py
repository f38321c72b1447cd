"""The log: an append-only list of events a conversation, numbered 1, 2, 3 …, and what is derived in the same commit."""

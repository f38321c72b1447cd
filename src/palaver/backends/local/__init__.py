"""The small local model: the backend, its server process, and its prompt."""

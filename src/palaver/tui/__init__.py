"""The terminal UI: a Textual app over the client. It knows the schema and the fold, and nothing of the server."""

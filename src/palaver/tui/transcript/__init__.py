"""The transcript of the terminal: rows of a conversation, and the lines they are drawn as."""

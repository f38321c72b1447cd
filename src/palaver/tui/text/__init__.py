"""Text of the terminal: UI words, Markdown, code, and text made safe for a terminal."""

"""The histories that other programs keep: where they lie, and what one file of theirs says. One reader a program."""

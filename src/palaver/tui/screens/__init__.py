"""What opens over or beside a conversation: lists, search, inspector, diffs, inbox, palette, key help."""

"""Loading a conversation from its log: snapshots, reconstruction of what follows from events, salvage."""

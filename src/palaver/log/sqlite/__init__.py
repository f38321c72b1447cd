"""The SQLite store: one file of segments with its indexes, and a folder of blobs. The default store."""

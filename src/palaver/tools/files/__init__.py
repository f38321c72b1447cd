"""Tools that find, read and change files, and the server's own reading of projects and git."""

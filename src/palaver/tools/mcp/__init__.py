"""MCP servers of an agent, as tools. `servers.py` holds them; nothing is imported of the `mcp` package before one is used."""

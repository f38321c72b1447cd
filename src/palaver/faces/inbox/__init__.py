"""The inbox face: a conversation as chat over MCP, one server for people and one for agents."""

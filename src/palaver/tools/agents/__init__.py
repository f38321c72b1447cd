"""Tools that address people, other agents and earlier conversations, and those that end a turn."""

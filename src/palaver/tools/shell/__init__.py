"""The tools that run commands, background processes, and the sandbox that confines them."""

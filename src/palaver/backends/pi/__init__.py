"""Pi, driven through its RPC mode, with an extension of ours that asks before each tool."""

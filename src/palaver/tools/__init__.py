"""Tools: what the built-in agent can do on this machine, each behind the policy."""

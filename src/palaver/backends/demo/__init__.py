"""The demo agent: a script that shows everything an agent can do, with no model and no effect."""

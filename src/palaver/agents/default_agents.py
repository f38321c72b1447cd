"""The agents that come with Palaver, as records: the programs it drives, and the demo.

Plain data. What runs them is found by `sources.py` and `programs.py`, and imported when somebody wants it.
"""

from palaver.schema.records import AgentRecord

PROGRAMS = (
    AgentRecord(id="claude", name="Claude Code", description="Anthropic's coding agent", backend="claude"),
    AgentRecord(id="codex", name="Codex", description="OpenAI's coding agent", backend="codex"),
    AgentRecord(id="pi", name="Pi", description="A small coding agent for any model", backend="pi"),
)
"""In the order in which `default` takes one that is ready."""
DEMO = AgentRecord(
    id="demo",
    name="Demo",
    description="A script that shows what agents can do here. No model, no account, no effect on your machine.",
    backend="demo",
    model="demo-large",
)
NO_ACP_AGENT = AgentRecord(id="acp", name="Agents that speak ACP", backend="acp")
"""Stands for those that nobody has set up."""

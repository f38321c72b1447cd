"""Before there is a conversation: who answers the first words, and what is said until they are written. Pure.

Used by the app and by the screen for a new conversation, which offer the same agent first.
"""

from collections.abc import Sequence

from palaver.client.agents import AgentInfo
from palaver.tui.text import rows, words
from palaver.tui.text.safe import visible

DEMO = "demo"


def first_agent(agents: Sequence[AgentInfo], last_used: str | None) -> AgentInfo | None:
    """The one that was chosen last, if it can answer; else the first that can. A look at the demo is no choice."""
    ready = [agent for agent in agents if agent.ready and not agent.problem]
    wanted = (agent for agent in ready if agent.id == last_used and agent.id != DEMO)
    return next(wanted, ready[0] if ready else None)


def welcome(agent: AgentInfo | None) -> str:
    """`agent`: who answers; None: nobody can."""
    if agent is None:
        return "\n".join((rows.FRESH, "", rows.FRESH_NOBODY))
    makeshift = rows.FRESH_MAKESHIFT.get(agent.backend) if agent.id != DEMO else None
    told = (
        rows.answers(words.join(visible(agent.name), visible(agent.model or ""))),
        *((makeshift,) if makeshift else ()),
        *((rows.FRESH_TRY,) if agent.backend == DEMO else ()),
        rows.FRESH_KEYS,
    )
    return "\n".join((rows.FRESH, "", *told))

"""The system prompt of a step: who the agent is and where it stands.

Called by the API loop before each model call. Pure: the folder, the system and the day are told, so the prompt changes at
most once a day and a provider's prompt cache keeps hitting.
"""

from dataclasses import dataclass
from pathlib import Path

from palaver.context.quotes import RULE, one_line
from palaver.schema.records import AgentRecord

DEFAULT_PROMPT = """\
You are a careful assistant who helps with code and with anything else a person asks. Answer in the language of the \
person, briefly and in plain words; use Markdown where it helps. When tools are there, look before you answer and check \
what you did. Say what you could not do or are not sure of. Never claim to have done what you did not do."""


@dataclass(frozen=True, slots=True)
class Place:
    """What is told of the world: all of it chosen by the caller."""

    project: Path
    system: str
    """The operating system, by its everyday name."""
    date: str
    """ISO date."""
    has_tools: bool = True


def system_prompt(agent: AgentRecord, place: Place, instructions: str = "") -> str:
    """The agent's own words, or ours, the facts of the place, and the section of the project's instructions."""
    words = agent.system_prompt.strip() or DEFAULT_PROMPT
    facts = [f"Operating system: {place.system}", f"Today: {place.date}"]
    if place.has_tools:
        facts.insert(0, f"Project folder: {one_line(str(place.project))} (paths given to tools are relative to it)")
        facts.append(RULE)
    section = f"\n\n{instructions}" if instructions else ""
    return f"{words}\n\n" + "\n".join(facts) + section

"""The system prompt."""

from pathlib import Path

from palaver.context.prepare import DEFAULT_PROMPT, Place, system_prompt
from palaver.schema.records import AgentRecord

PLACE = Place(project=Path("/home/me/project"), system="Linux", date="2026-11-15")


def test_prompt_is_the_agents_own_with_the_facts_of_the_place() -> None:
    prompt = system_prompt(AgentRecord(id="a", name="A", system_prompt="  Speak like a sailor.\n"), PLACE)
    assert prompt.startswith("Speak like a sailor.\n\n")
    assert "/home/me/project" in prompt
    assert "Linux" in prompt
    assert "2026-11-15" in prompt
    assert DEFAULT_PROMPT not in prompt


def test_prompt_without_words_of_the_agent_is_the_default() -> None:
    assert system_prompt(AgentRecord(id="a", name="A"), PLACE).startswith(DEFAULT_PROMPT)


def test_prompt_of_an_agent_without_tools_names_no_folder() -> None:
    place = Place(project=Path("/home/me/project"), system="Linux", date="2026-11-15", has_tools=False)
    assert "/home/me" not in system_prompt(AgentRecord(id="a", name="A"), place)

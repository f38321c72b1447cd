"""Before there is a conversation: who answers, and that a makeshift says what it is."""

from palaver.client.agents import AgentInfo
from palaver.tui.welcome import first_agent, welcome

UNREADY = AgentInfo(id="codex", name="Codex", ready=False)
BROKEN = AgentInfo(id="mine", name="Mine", problem="`model` is missing.")
READY = AgentInfo(id="default", name="Assistant", backend="api", model="large")
OTHER = AgentInfo(id="other", name="Other")


def test_first_agent_is_the_one_chosen_last_if_it_can_answer() -> None:
    agents = [UNREADY, BROKEN, READY, OTHER]
    assert first_agent(agents, "other") is OTHER
    assert first_agent(agents, "codex") is READY
    assert first_agent(agents, None) is READY
    assert first_agent([READY, AgentInfo(id="demo", name="Demo")], "demo") is READY
    assert first_agent([UNREADY, BROKEN], "codex") is None


def test_welcome_says_who_answers_and_how_to_choose_another() -> None:
    assert welcome(READY).split("\n") == [
        "What shall we work on?",
        "",
        "Assistant · large answers.",
        "Ctrl+N chooses another agent, a folder or a mode.",
    ]


def test_welcome_says_that_only_a_makeshift_answers_or_nobody() -> None:
    demo = AgentInfo(id="default", name="Assistant", backend="demo")
    assert "No model is set up here yet, so a demonstration answers." in welcome(demo)
    assert "make a plan" in welcome(demo)
    assert "not for real work" in welcome(AgentInfo(id="default", name="Assistant", backend="local"))
    assert "No model" not in welcome(AgentInfo(id="demo", name="Demo", backend="demo"))
    assert "palaver doctor" in welcome(None)

"""The inbox example: a person and an assistant at the two MCP servers of one conversation."""

from pathlib import Path

from tests.browser.served import Palaver
from tests.examples.running import running
from tests.examples.scripts import WRITTEN, create, decide, script_approval, script_held
from tests.provider import ScriptedProvider

CLIENT = "inbox_client.py"


async def test_person_reads_every_text_of_a_turn_and_a_second_client_reads_the_same(
    palaver: Palaver, provider: ScriptedProvider
) -> None:
    conversation = await create(palaver)
    name = script_approval(provider, "inboxtide")
    async with running(palaver, CLIENT, "human", conversation) as human:
        await human.type("Note the inboxtide")
        await human.shows("user: Note the inboxtide")
        await human.shows("assistant: I will write it down.")
        await decide(palaver, conversation)
        await human.shows("assistant: Done with that.")
        live = human.output.strip()
    assert (palaver.project / name).read_text() == WRITTEN
    async with running(palaver, CLIENT, "human", conversation) as human:
        await human.shows("assistant: Done with that.")
        assert human.output.strip() == live


async def test_message_to_a_busy_agent_is_in_the_inbox_at_once_and_is_answered(
    palaver: Palaver, provider: ScriptedProvider
) -> None:
    conversation = await create(palaver)
    script_held(provider, "inboxheld")
    async with running(palaver, CLIENT, "human", conversation) as human:
        await human.type("Tell the inboxheld")
        await provider.gates.reached("inboxheld")
        await human.type("And the next?")
        await human.shows("user: And the next?")
        assert "assistant" not in human.output
        provider.gates.open("inboxheld")
        await human.shows("assistant: Half of the answer and the rest.")
        await human.shows("assistant: You said: And the next?")


async def test_default_inbox_is_one_conversation_for_all_who_name_none(palaver: Palaver) -> None:
    async with running(palaver, CLIENT, "human") as ada, running(palaver, CLIENT, "human") as bob:
        await ada.type("Is anybody here?")
        await bob.shows("user: Is anybody here?")
        await bob.shows("assistant: You said: Is anybody here?")
        await ada.shows("assistant: You said: Is anybody here?")


async def test_assistant_answers_each_message_once_also_those_that_came_while_it_was_away(
    palaver: Palaver, tmp_path: Path
) -> None:
    conversation = await create(palaver)
    assistant = (CLIENT, "assistant", conversation, "--mark", str(tmp_path / "mark"))
    async with running(palaver, CLIENT, "human", conversation) as human:
        async with running(palaver, *assistant) as first:
            await human.type("Deploy now?")
            await human.shows("assistant: Acknowledged: Deploy now?")
            await first.shows("read ")
            await first.kill()
        await human.type("Roll back.")
        await human.type("Is CI green?")
        await human.shows("user: Is CI green?")
        async with running(palaver, *assistant):
            await human.shows("assistant: Acknowledged: Roll back.")
            await human.shows("assistant: Acknowledged: Is CI green?")
            await human.type("Thank you.")
            await human.shows("assistant: Acknowledged: Thank you.")
    for text in ("Deploy now?", "Roll back.", "Is CI green?", "Thank you."):
        assert human.output.count(f"Acknowledged: {text}") == 1

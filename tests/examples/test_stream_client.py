"""The stream example in a terminal: permissions, cancelling, sessions that are opened again."""

import re

from tests.browser.served import Palaver
from tests.examples.running import Program, running
from tests.examples.scripts import WRITTEN, script_approval, script_held, until_queued, until_said
from tests.provider import Answer, ScriptedProvider, Status

CLIENT = "stream_client.py"
ID = re.compile(r"[0-9a-f-]{36}")


async def session_of(chat: Program, title: str) -> str:
    await chat.type("/sessions")
    return str(ID.findall(await chat.shows(title))[-1])


async def test_turn_with_a_permission_reads_the_same_when_the_session_is_opened_again(
    palaver: Palaver, provider: ScriptedProvider
) -> None:
    name = script_approval(provider, "streamtide")
    async with running(palaver, CLIENT) as chat:
        await chat.type("Note the streamtide")
        asked = await chat.shows("Allow write")
        assert asked.index("(The tide table is wanted.)") < asked.index("I will write it down.")
        assert not (palaver.project / name).exists()
        await chat.type("y")
        await chat.shows(f'"content": "{WRITTEN}"}}] output-available Created {name}')
        await chat.shows("Done with that.")
        session = await session_of(chat, "Note the streamtide")
    assert (palaver.project / name).read_text() == WRITTEN
    async with running(palaver, CLIENT) as chat:
        await chat.type(f"/open {session}")
        again = await chat.shows("Done with that.")
        for text in (
            "> Note the streamtide\n  (The tide table is wanted.)\nI will write it down.\n  [write ",
            f"output-available Created {name}",
        ):
            assert text in again
        await chat.type("And now?")
        await chat.shows("You said: And now?")


async def test_denied_call_is_an_error_that_the_model_answers(palaver: Palaver, provider: ScriptedProvider) -> None:
    name = script_approval(provider, "streamdenied")
    async with running(palaver, CLIENT) as chat:
        await chat.type("Note the streamdenied")
        await chat.shows("Allow write")
        await chat.type("n")
        await chat.shows("output-error")
        await chat.shows("Done with that.")
    assert not (palaver.project / name).exists()


async def test_cancelled_answer_keeps_what_was_said_and_the_session_goes_on(
    palaver: Palaver, provider: ScriptedProvider
) -> None:
    script_held(provider, "streamheld")
    async with running(palaver, CLIENT) as chat, running(palaver, CLIENT) as other:
        await chat.type("Tell the streamheld")
        await provider.gates.reached("streamheld")
        await until_said(palaver, await session_of(other, "Tell the streamheld"), "Half of the answer")
        assert "Half of the answer\n" in await chat.interrupt("(cancelled)")
        await chat.type("And now?")
        await chat.shows("You said: And now?")
        session = await session_of(chat, "Tell the streamheld")
        await chat.type(f"/open {session}")
        again = await chat.shows("You said: And now?")
        assert "> Tell the streamheld\nHalf of the answer\n> And now?\n" in again


async def test_message_to_a_busy_session_is_answered_after_the_running_one(
    palaver: Palaver, provider: ScriptedProvider
) -> None:
    script_held(provider, "streambusy")
    async with running(palaver, CLIENT) as first, running(palaver, CLIENT) as second:
        await first.type("Tell the streambusy")
        await provider.gates.reached("streambusy")
        session = await session_of(second, "Tell the streambusy")
        await second.type(f"/open {session}")
        await second.shows("> Tell the streambusy")
        await second.type("Meanwhile?")
        await until_queued(palaver, session)
        provider.gates.open("streambusy")
        await first.shows("Half of the answer and the rest.")
        await second.shows("You said: Meanwhile?")


async def test_sessions_are_found_by_what_was_said_and_take_a_title(palaver: Palaver) -> None:
    async with running(palaver, CLIENT) as chat:
        await chat.type("A word about bladderwrack")
        await chat.shows("You said: A word about bladderwrack")
        await chat.type("/title Seaweeds")
        await chat.type("/sessions BLADDERWRACK")
        assert len(ID.findall(await chat.shows("Seaweeds"))) == 1


async def test_failure_of_the_model_is_said(palaver: Palaver, provider: ScriptedProvider) -> None:
    provider.script.append(Answer(fault=Status(status=400, message="no such tide"), when="streamfails"))
    async with running(palaver, CLIENT) as chat:
        await chat.type("The streamfails")
        await chat.shows("! ")
        await chat.shows("no such tide")
        await chat.type("And now?")
        await chat.shows("You said: And now?")

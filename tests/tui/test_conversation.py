"""The terminal UI on a real server, by keyboard alone: sending, stopping, queueing, steering, reading, switching."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from palaver.backends.script.script import Ask, Boundary, Fail, Prompt, Say, Step, Think, Tool, Tools, Wait
from palaver.errors import ProviderUnavailable
from palaver.schema.view import Question, QuestionOption
from palaver.tui.docks.card import RequestCard
from palaver.tui.docks.requests import RequestDock
from tests.flows.served import Served, serving
from tests.tui.opened import Opened, opened

HORN = Tool("shell", {"command": "make horn"}, "toot", asks=True)
LIGHT = Question(question="Which light?", options=(QuestionOption(label="Red"), QuestionOption(label="Green")))

SCRIPTS: dict[str, tuple[Sequence[Step], ...]] = {
    # By what is said to the agent: what it does the first time, the second …
    "horn": ([HORN, Say("It ran.")],),
    "slow horn": ([Say("Wait."), Wait("ask"), HORN, Say("It ran.")],),
    "light": ([Ask((LIGHT,)), Say("Thank you.")],),
    "halves": ([Say("Half an ans"), Wait("never")],),
    "Continue.": ([Say("The other half.")],),
    "queue": ([Say("One moment."), Wait("queued")],),
    "and then this": ([Say("Now to the second.")],),
    "steps": ([Say("Step one."), Wait("steered"), Boundary(), Say("Step two.")],),
    "look": (
        [
            Tools(
                (
                    Tool("read", {"path": "a.py"}, "1\n2\n"),
                    Tool("read", {"path": "b.py"}, error="There is no b.py.", ok=False),
                    Tool("grep", {"pattern": "tide"}, "a.py:1\n"),
                )
            ),
            Say("Done."),
        ],
    ),
    "make": ([Think("I wonder."), Tool("shell", {"command": "make"}, "\x1b[31mred\x1b[0m \x1b]0;title\x07end\n")],),
    "fail": ([Say("Hm."), Fail(ProviderUnavailable("It is away."))], [Say("Back again.")]),
}


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    said: Counter[str] = Counter()

    def script(prompt: Prompt) -> Sequence[Step]:
        scripts = SCRIPTS.get(prompt.text, ([Say("Hello there, how are you?")],))
        said[prompt.text] += 1
        return scripts[min(said[prompt.text], len(scripts)) - 1]

    async with serving(tmp_path_factory.mktemp("terminal") / "data", script) as server:
        yield server


def heard(terminal: Opened) -> bool:
    """A request is on the screen and not deaf any more."""
    card = terminal.app.main.query_one(RequestDock).card
    # Once it is mounted it is deaf anew, which may come later than the end of its first deafness.
    return isinstance(card, RequestCard) and card.is_mounted and card.is_heard


async def test_message_is_sent_with_enter_and_answered(served: Served) -> None:
    conversation = await served.create(title="A talk")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("A talk")
        await terminal.write("hi there")
        await terminal.press("enter")
        await terminal.until_shown("Hello there, how are you?")
        assert terminal.shows("hi there")


async def test_first_words_without_a_conversation_begin_one(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as fresh, opened(fresh) as terminal:
        await terminal.until_shown("What shall we work on?")
        await terminal.until_shown("Default answers.")
        await terminal.until_shown("Ctrl+N chooses another agent, a folder or a mode.")
        await terminal.write("begin")
        await terminal.press("enter")
        await terminal.until_shown("Hello there, how are you?")


async def test_approval_is_given_by_keyboard(served: Served) -> None:
    conversation = await served.create(message="horn")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("make horn")
        await terminal.until(lambda: heard(terminal))
        await terminal.press("alt+1")
        await terminal.until_shown("Allowed once · by you")
        await terminal.until_shown("It ran.")
        await terminal.until_shown("▸ Ran 1 command · 1 tool call")


async def test_denial_is_given_by_the_key_every_terminal_sends(served: Served) -> None:
    conversation = await served.create(message="horn")
    async with opened(served, conversation) as terminal:
        await terminal.until(lambda: heard(terminal))
        await terminal.press("f9")
        await terminal.until_shown("denied")


async def test_typing_while_an_approval_arrives_never_answers_it(served: Served) -> None:
    conversation = await served.create(message="slow horn")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("Wait.")
        await terminal.write("1 yes 1")
        served.agent.open_gate("ask")
        await terminal.write("23 y n a")
        await terminal.until_shown("waits for you")
        await terminal.until(lambda: heard(terminal))
        await terminal.write(" 1 2 3 y")
        await terminal.until_shown("1 yes 123 y n a 1 2 3 y")
        request = (await terminal.client.snapshot(conversation)).requests[0]
        assert request.status == "open"


async def test_question_is_answered_by_keyboard(served: Served) -> None:
    conversation = await served.create(message="light")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("Which light?")
        await terminal.until(lambda: heard(terminal))
        await terminal.press("f6", "2", "enter")
        await terminal.until_shown("Thank you.")


async def test_escape_stops_the_turn_and_continue_goes_on(served: Served) -> None:
    conversation = await served.create(message="halves")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("Half an ans")
        await terminal.press("escape")
        await terminal.until_shown("Interrupted by you")
        assert terminal.shows("Half an ans")
        await terminal.press("ctrl+r")
        await terminal.until_shown("The other half.")


async def test_words_written_while_the_agent_works_wait_in_the_queue(served: Served) -> None:
    conversation = await served.create(message="queue")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("One moment.")
        await terminal.write("and then this")
        await terminal.press("enter")
        await terminal.until(lambda: len(terminal.state.queue) == 1)
        await terminal.until_shown("and then this")
        served.agent.open_gate("queued")
        await terminal.until_shown("Now to the second.")


async def test_stop_that_holds_the_queue_keeps_it_until_it_is_let_go(served: Served) -> None:
    conversation = await served.create(message="halves")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("Half an ans")
        for words in ("and then this", "anything else"):
            await terminal.write(words)
            await terminal.press("enter")
            await terminal.until_shown(words)
        await terminal.until(lambda: len(terminal.state.queue) == 2)
        await terminal.until_shown("Ctrl+G stop and hold")
        await terminal.press("ctrl+g")
        await terminal.until_shown("Interrupted by you")
        await terminal.until_shown("Paused: you stopped the agent.")
        await terminal.until_shown("F6 A let all go")
        assert [item.held for item in terminal.state.queue] == [True, True]
        # From the transcript the way leads over the message box.
        terminal.transcript.focus()
        await terminal.until_shown("F6 F6 A let all go")
        await terminal.press("f6", "f6", "a")
        await terminal.until_shown("Now to the second.")
        await terminal.until_shown("Hello there, how are you?")
        assert terminal.text().index("Now to the second.") < terminal.text().index("Hello there")
        await terminal.until(lambda: terminal.state.queue == () and terminal.state.turn is None)


async def test_running_turn_is_steered_with_the_key_every_terminal_sends(served: Served) -> None:
    conversation = await served.create(message="steps")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("Step one.")
        await terminal.write("left")
        await terminal.press("ctrl+s")
        await terminal.until(lambda: any(item.delivery == "boundary" for item in terminal.state.queue))
        served.agent.open_gate("steered")
        await terminal.until_shown("You · steered the running turn")
        await terminal.until_shown("Step two.")
        await terminal.until(lambda: terminal.state.turn is None)
        said = [message.role for message in terminal.state.messages]
        assert said == ["user", "assistant", "user", "assistant"]


async def test_exploring_is_one_line_and_a_failure_in_it_is_seen(served: Served) -> None:
    conversation = await served.create(message="look")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("Explored · 2 files, 1 search · 1 failed")
        await terminal.until_shown("Read b.py · failed · There is no b.py.")
        await terminal.until_shown("Done.")
        assert not terminal.shows("Searched tide")
        terminal.transcript.focus()
        await terminal.press("k", "k", "o")
        await terminal.until_shown("Searched tide · 1 match")
        # Each call of it is a row of its own, which opens too.
        await terminal.press("j", "o")
        await terminal.until_shown('"path": "a.py"')


async def test_tool_row_opens_and_closes_by_keyboard(served: Served) -> None:
    conversation = await served.create(message="make")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("▸ Ran 1 command · 1 tool call")
        assert not terminal.shows("Ran make")
        terminal.transcript.focus()
        await terminal.press("k", "o", "j", "j", "o")
        await terminal.until_shown("red ⟨OSC 0⟩end")
        await terminal.press("o")
        await terminal.until_gone("red ⟨OSC 0⟩end")


async def test_failed_turn_is_a_card_that_says_what_to_do(served: Served) -> None:
    conversation = await served.create(message="fail")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("The provider is not available")
        assert terminal.shows("It is away.")
        assert terminal.shows("Wait a moment, then try again.")
        await terminal.press("ctrl+r")
        await terminal.until_shown("Back again.")


async def test_another_conversation_is_opened_by_keyboard(served: Served) -> None:
    first = await served.create(title="Tides", message="of the sea")
    await served.settled(first)
    second = await served.create(title="Winds", message="of the sky")
    await served.settled(second)
    async with opened(served, second) as terminal:
        await terminal.until_shown("of the sky")
        await terminal.press("ctrl+l")
        await terminal.until_shown("Tides")
        await terminal.press("down", "enter")
        await terminal.until_shown("of the sea")
        await terminal.until(lambda: terminal.state.conversation == first)


async def test_two_terminals_agree_on_an_answer(served: Served) -> None:
    conversation = await served.create(message="horn")
    async with opened(served, conversation) as one:
        await one.until(lambda: heard(one))
        await served.command(conversation, type="resolve_request", request=one.state.requests[0].id, verdict="allow")
        await one.until_shown("answered elsewhere")
        await one.until_shown("It ran.")

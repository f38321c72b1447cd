"""The phases of a turn in the terminal: it works in sight, then its work is one line that opens; the same after a reload."""

import json
from collections.abc import AsyncIterator, Sequence

import pytest

from palaver.backends.script.script import Finish, Prompt, Say, Step, Think, Tool, Tools
from palaver.schema.view import FileChange
from palaver.tui.theme import DARK, LIGHT, LIGHT_NAME, Palette
from palaver.tui.transcript.renderer import PULSE
from palaver.tui.transcript.rows import WorkRow
from tests.flows.served import Served, serving
from tests.tui.opened import Opened, opened
from tests.tui.test_conversation import heard

MAKE = Tool("shell", {"command": "make"}, "built\n")
EDIT = Tool(
    "edit",
    {"path": "a.py", "old": "x", "new": "y"},
    changes=(FileChange(path="a.py", kind="modified", additions=1, deletions=1, diff="@@ -1 +1 @@\n-x\n+y"),),
)
ASKED = {
    "type": "ask_user",
    "questions": [
        {"question": "Which light?", "options": [{"label": "Red", "description": "port"}, {"label": "Green"}]}
    ],
}


def work(gate: str) -> Sequence[Step]:
    return [
        Think("I wonder."),
        Say("I look first."),
        Tools((Tool("read", {"path": "a.py"}, "1\n"), Tool("read", {"path": "b.py"}, "2\n"))),
        Tool("shell", {"command": "make slow"}, wait=gate, live=("half way\n",)),
        EDIT,
        Say("All is done."),
    ]


SCRIPTS: dict[str, Sequence[Step]] = {
    "work": work("work"),
    "more work": work("more"),
    "trouble": [MAKE, Tool("shell", {"command": "false"}, ok=False, exit_code=1), Say("It failed.")],
    "stop": [MAKE, Tool("shell", {"command": "sleep 99"}, wait="never")],
    "needle": [
        Tools((Tool("read", {"path": "a.py"}, "hay"), Tool("read", {"path": "b.py"}, "hay\nsome Needle here\nhay"))),
        MAKE,
        Say("No such thing."),
    ],
    "task": [MAKE, Tool("finish_task", {"summary": "The **horn** is built."}), Finish("task", "The horn is built.")],
    "ask": [Say(json.dumps(ASKED))],
}


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    def script(prompt: Prompt) -> Sequence[Step]:
        return SCRIPTS.get(prompt.text, [Say(f"You said: {prompt.text}")])

    async with serving(tmp_path_factory.mktemp("work") / "data", script) as server:
        yield server


def transcript_of(terminal: Opened) -> list[str]:
    """Every line of the transcript, without the marks that turn."""
    drawn = terminal.transcript._drawn
    return [strip.text.rstrip() for place in range(len(drawn.rows)) for strip in drawn.strips(place)]


async def test_turn_works_in_sight_and_becomes_one_line_above_its_final_text(served: Served) -> None:
    conversation = await served.create(message="work")
    async with opened(served, conversation, size=(80, 24)) as terminal:
        await terminal.until_shown("half way")
        await terminal.until_shown("Working: read 2 files, ran 1 command · 3 tool calls")
        assert terminal.shows("I look first.")
        assert terminal.shows("✓ Explored · 2 files")
        assert any(mark in terminal.text() for mark in PULSE)
        served.agent.open_gate("work")
        await terminal.until_shown("▸ Read 2 files, edited 1 file, ran 1 command · 4 tool calls")
        await terminal.until_shown("± Changed 1 file +1 \N{MINUS SIGN}1")
        assert terminal.shows("All is done.")
        assert not terminal.shows("I look first.")
        assert not terminal.shows("Edited a.py")
        live = transcript_of(terminal)
    async with opened(served, conversation, size=(80, 24)) as again:
        await again.until(lambda: transcript_of(again) == live)


async def test_work_opens_to_its_rows_and_each_of_them_opens(served: Served) -> None:
    conversation = await served.create(message="trouble")
    await served.settled(conversation)
    async with opened(served, conversation, size=(80, 24)) as terminal:
        await terminal.until_shown("▸ Ran 2 commands · 1 failed · 2 tool calls")
        # A failure is seen without opening anything.
        assert terminal.shows("✗ Ran false · exit 1")
        assert not terminal.shows("✓ Ran make")
        terminal.transcript.focus()
        await terminal.press("k", "k", "k", "o")
        await terminal.until_shown("│ ✓ Ran make")
        assert terminal.shows("▾ Ran 2 commands")
        await terminal.press("j", "o")
        await terminal.until_shown("│ built")
        await terminal.press("k", "o")
        await terminal.until_gone("Ran make")


async def test_interruption_is_named_in_the_line_and_on_the_call(served: Served) -> None:
    conversation = await served.create(message="stop")
    async with opened(served, conversation, size=(80, 24)) as terminal:
        await terminal.until_shown("Running sleep 99")
        await terminal.press("escape")
        await terminal.until_shown("▸ Ran 2 commands · 1 interrupted · 2 tool calls")
        await terminal.until_shown("◇ Ran sleep 99 · ⚠ Interrupted")
        await terminal.until_shown("⚠ Interrupted by you")
        # Another terminal did not stop it; all else is the same.
        live = [line for line in transcript_of(terminal) if "⚠ Interrupted by you" not in line]
    async with opened(served, conversation, size=(80, 24)) as again:
        await again.until_shown("⚠ Interrupted from another client")
        await again.until(lambda: [one for one in transcript_of(again) if "⚠ Interrupted from" not in one] == live)


async def test_words_found_in_hidden_work_open_it_down_to_the_call(served: Served) -> None:
    conversation = await served.create(message="needle")
    await served.settled(conversation)
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("No such thing.")
        assert not terminal.shows("Explored")
        await terminal.press("ctrl+f", *"some needle")
        await terminal.until_shown("1 match")
        await terminal.press("enter")
        await terminal.until_shown("some Needle here")
        row = terminal.transcript.selected_row()
        assert row is not None
        assert terminal.shows("Read b.py")


async def test_jump_to_a_message_of_hidden_work_opens_it(served: Served) -> None:
    conversation = await served.create(message="needle")
    await served.settled(conversation)
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("No such thing.")
        hidden = next(message for message in terminal.state.messages if message.role == "assistant")
        terminal.app.main.jump(hidden.id, hidden.seq)
        await terminal.until_shown("Explored · 2 files")


async def test_reader_further_up_keeps_the_work_open_when_the_turn_ends(served: Served) -> None:
    conversation = await served.create(message="more work")
    async with opened(served, conversation, size=(80, 24)) as terminal:
        await terminal.until_shown("half way")
        terminal.transcript.focus()
        await terminal.press("k")
        await terminal.until(lambda: terminal.transcript.selected_row() is not None)
        served.agent.open_gate("more")
        await terminal.until(lambda: terminal.state.turn is None)
        await terminal.until_shown("▾ Read 2 files")
        assert terminal.shows("Ran make slow")


async def test_live_work_can_be_closed_and_stays_closed(served: Served) -> None:
    conversation = await served.create(message="stop")
    async with opened(served, conversation, size=(80, 24)) as terminal:
        await terminal.until_shown("Running sleep 99")
        work = next(row for row in terminal.transcript.rows if isinstance(row, WorkRow))
        terminal.transcript.toggle(work.key)
        await terminal.until_gone("✓ Ran make")
        # What runs is seen all the same.
        assert terminal.shows("Running sleep 99")


async def test_summary_of_a_finished_task_is_in_the_transcript(served: Served) -> None:
    conversation = await served.create(message="task")
    async with opened(served, conversation, size=(80, 24)) as terminal:
        await terminal.until_shown("✓ Finished the task")
        await terminal.until_shown("│ The horn is built.")


async def test_question_written_as_an_answer_is_answered_with_a_message(served: Served) -> None:
    conversation = await served.create(message="ask")
    async with opened(served, conversation, size=(80, 24)) as terminal:
        await terminal.until_shown("? Which light?")
        await terminal.until_shown("│ 1 Red  port")
        assert not terminal.shows('"ask_user"')
        # The card above the message box.
        await terminal.until_shown("2 ( ) Green")
        await terminal.until(lambda: heard(terminal))
        await terminal.press("f6", "2", "enter")
        await terminal.until_shown("You said: Green")
        await terminal.until_gone("2 ( ) Green")
        said = [message.role for message in terminal.state.messages]
        assert said == ["user", "assistant", "user", "assistant"]
        assert terminal.shows("? Which light?")


async def test_written_question_can_be_left_alone(served: Served) -> None:
    conversation = await served.create(message="ask")
    async with opened(served, conversation, size=(80, 24)) as terminal:
        await terminal.until(lambda: heard(terminal))
        await terminal.press("f9")
        await terminal.until_gone("2 ( ) Green")
        assert terminal.shows("? Which light?")


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=["dark", "light"])
async def test_marks_of_what_runs_turn_and_nothing_else_is_drawn_anew(served: Served, palette: Palette) -> None:
    conversation = await served.create(message="stop")
    async with opened(served, conversation, size=(80, 24)) as terminal:
        if palette is LIGHT:
            terminal.app.theme = LIGHT_NAME
        await terminal.until_shown("Running sleep 99")
        seen: set[str] = set()

        def turned() -> bool:
            line = next((line for line in terminal.lines() if line.endswith("Running sleep 99")), "")
            seen.update(mark for mark in PULSE if mark in line)
            return len(seen) > 2

        await terminal.until(turned)
        assert any("✓ Ran make" in line for line in terminal.lines())
        await terminal.press("escape")
        await terminal.until_shown("⚠ Interrupted by you")
        assert not any(mark in terminal.text() for mark in PULSE)

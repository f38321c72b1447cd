"""The demo agent: what it shows for which words, and that none of it is real."""

import asyncio
import base64
from collections.abc import Sequence

import pytest

from palaver.agents.default_agents import DEMO
from palaver.backends.demo.backend import SCENES, TOKENS_PER_S, Scene, demo_backend, scenes_for
from palaver.backends.demo.text import SUNSET
from palaver.core.state import open_requests, open_tools
from palaver.errors import ProviderUnavailable
from palaver.schema.commands import Answer
from palaver.schema.content import ImagePart, ImageUrl, TextPart
from palaver.schema.events import (
    ExchangeReturned,
    FilesChanged,
    PlanUpdated,
    RequestOpened,
    RequestResolved,
    TextDelta,
    ToolFinished,
    TurnFinished,
    TurnStatus,
)
from palaver.schema.view import Message, TextBlock, ToolBlock
from tests.unit.backends.memory_turn import WAIT_S, MemoryTurn, deny, play

pytestmark = pytest.mark.anyio

ENDING = [scene for scene in SCENES if scene.ends_well]


def agree(request: RequestOpened) -> RequestResolved:
    chosen = tuple(Answer(selected=(question.options[0].label,)) for question in request.questions)
    return RequestResolved(request=request.request, status="answered", verdict="allow", answers=chosen)


async def demo(text: str, earlier: Sequence[Message] = ()) -> MemoryTurn:
    return await play(demo_backend(), MemoryTurn(text, agent=DEMO, decide=agree, earlier=earlier))


def tools_of(turn: MemoryTurn) -> list[ToolBlock]:
    return [block for message in turn.state.messages for block in message.blocks if isinstance(block, ToolBlock)]


@pytest.mark.parametrize("scene", ENDING, ids=[scene.name for scene in ENDING])
async def test_scene_is_played_for_its_name_and_comes_to_rest(scene: Scene) -> None:
    turn = await demo(f"Please show me: {scene.name}!")
    assert turn.of(TurnFinished)[0].outcome == "completed"
    assert turn.state.status == "idle"
    assert not open_tools(turn.state)
    assert not open_requests(turn.state)
    assert turn.answer_text


async def test_everything_shows_every_kind_of_event_an_agent_makes() -> None:
    turn = await demo("Show me everything")
    assert set(turn.types) == {
        "turn.status",
        "answer.started",
        "thinking.delta",
        "thinking.finished",
        "text.delta",
        "text.finished",
        "answer.finished",
        "tool.input.delta",
        "tool.called",
        "tool.started",
        "tool.output.delta",
        "tool.finished",
        "request.opened",
        "request.resolved",
        "files.changed",
        "plan.updated",
        "context.measured",
        "context.compressed",
        "knowledge.recalled",
        "process.started",
        "model.switched",
        "exchange.sent",
        "exchange.returned",
        "turn.finished",
    }
    assert {request.kind for request in turn.of(RequestOpened)} == {"approval", "question", "plan"}
    assert {finished.ok for finished in turn.of(ToolFinished)} == {True, False}


async def test_nothing_the_demo_does_has_an_effect() -> None:
    turn = await demo("Show me everything")
    assert {finished.effect for finished in turn.of(ToolFinished)} == {"none"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("make a plan, then a table", ["plan", "table"]),
        ("APPROVAL please", ["edit"]),
        ("run a command", ["shell"]),
        ("what went wrong? an error?", ["error"]),
        ("hello there", []),
        ("the planet is tabled", ["plan", "table"]),
        ("reshelled unthinking", []),
    ],
)
def test_words_choose_scenes_in_their_order(text: str, names: list[str]) -> None:
    assert [scene.name for scene in scenes_for(text)] == names


async def test_first_greeting_is_a_tour_that_names_every_word() -> None:
    turn = await demo("hello")
    for scene in SCENES:
        assert f"**{scene.name}**" in turn.answer_text
    assert "palaver doctor" in turn.answer_text


async def test_later_words_it_does_not_know_get_the_list_again_without_the_welcome() -> None:
    earlier = Message(id="m", role="user", seq=1, updated_seq=1, ts=0, blocks=(TextBlock(index=0, text="x"),), turn="t")
    turn = await demo("hello again", earlier=(earlier,))
    assert "Welcome" not in turn.answer_text
    assert "**plan**" in turn.answer_text


async def test_plan_becomes_done_item_by_item() -> None:
    turn = await demo("plan")
    plans = [event.plan for event in turn.of(PlanUpdated) if event.plan]
    done = [sum(item.status == "done" for item in plan.items) for plan in plans]
    assert done == [0, 0, 1, 2, 3, 4]
    assert [plan.status for plan in plans] == ["planned", *["executing"] * 4, "completed"]


async def test_declined_edit_changes_no_file_and_declined_plan_goes_away() -> None:
    turn = await play(demo_backend(), MemoryTurn("edit, then plan", agent=DEMO, decide=deny))
    assert not turn.of(FilesChanged)
    assert turn.state.plan is None
    assert turn.of(TurnFinished)[0].outcome == "completed"


async def test_approved_edit_shows_its_difference_and_says_that_it_is_not_real() -> None:
    turn = await demo("edit")
    [changed] = [change for tool in tools_of(turn) for change in tool.changes]
    [asked] = turn.of(RequestOpened)
    assert changed.diff == asked.preview
    assert [file.path for file in turn.state.files] == [changed.path]
    assert "No file was touched" in turn.answer_text


async def test_question_leads_to_what_was_chosen() -> None:
    turn = await demo("ask me a question")
    assert "You answered: **A plan**" in turn.answer_text
    assert turn.state.plan is not None


async def test_outage_shows_retries_and_then_fails_the_turn() -> None:
    turn = MemoryTurn("outage", agent=DEMO)
    with pytest.raises(ProviderUnavailable, match="Nothing is wrong"):
        await play(demo_backend(), turn)
    assert [status.retry.attempt for status in turn.of(TurnStatus) if status.retry] == [2, 3]


async def test_long_answer_takes_a_message_in_between() -> None:
    backend = demo_backend()
    turn = MemoryTurn("a long answer", agent=DEMO, decide=agree)
    playing = asyncio.create_task(play(backend, turn))
    async with asyncio.timeout(WAIT_S):
        while not turn.of(TextDelta):  # noqa: ASYNC110 the turn's clock moves only while others may run
            await asyncio.sleep(0)
    turn.deliver("Shorter, please")
    await playing
    answers = [message for message in turn.state.messages if message.role == "assistant"]
    reaction = next(at for at, message in enumerate(answers) if "> Shorter, please" in str(message.blocks))
    assert 0 < reaction < len(answers) - 1


async def test_long_answer_lasts_long_enough_to_be_stopped() -> None:
    turn = await demo("long")
    seconds_to_find_the_button = 5
    assert turn.slept_s > seconds_to_find_the_button
    assert turn.slept_s == pytest.approx(len(turn.of(TextDelta)) / TOKENS_PER_S)


async def test_attached_image_is_acknowledged() -> None:
    image = ImagePart(image_url=ImageUrl(url="data:image/png;base64,AA=="))
    turn = await play(demo_backend(), MemoryTurn((TextPart(text="see"), image, image), agent=DEMO))
    assert "2 pictures" in turn.answer_text


async def test_picture_arrives_in_one_piece_and_is_a_png() -> None:
    turn = await demo("picture")
    assert any(SUNSET in delta.text for delta in turn.of(TextDelta))
    assert base64.b64decode(SUNSET.partition(",")[2]).startswith(b"\x89PNG")


async def test_calls_asked_together_are_all_open_before_one_runs() -> None:
    turn = await demo("together")
    kinds = [kind for kind in turn.types if kind in ("request.opened", "tool.started")]
    assert kinds[:4] == ["request.opened", "request.opened", "request.opened", "tool.started"]
    assert [change.path for tool in tools_of(turn) for change in tool.changes] == ["src/horn.py", "LOG.md"]


async def test_compression_covers_what_came_before_it_and_names_its_stages() -> None:
    turn = await demo("context")
    horizons = {one.horizon for one in turn.state.compressions}
    assert len(horizons) == 1
    answers = [message for message in turn.state.messages if message.role == "assistant"]
    assert answers[0].seq < horizons.pop() <= answers[1].seq
    assert [one.stage for one in turn.state.compressions] == ["deduplicate", "shorten", "summarize"]


async def test_recalled_knowledge_stands_with_the_message_it_was_recalled_for() -> None:
    turn = await demo("knowledge")
    [asked] = [message for message in turn.state.messages if message.role == "user"]
    assert asked.knowledge is not None
    assert [source.kind for source in asked.knowledge.sources] == ["note", "note", "file"]


async def test_exchange_returns_what_the_other_agent_said() -> None:
    turn = await demo("agents")
    assert "Fog" in (turn.of(ExchangeReturned)[0].response or "")
    assert turn.state.exchanges[0].status == "complete"

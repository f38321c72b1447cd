"""The scripted backend: the shapes it yields, what it asks, and how it stops."""

import asyncio

import pytest

from palaver.backends.script.backend import ScriptedBackend
from palaver.backends.script.player import fragments
from palaver.backends.script.script import (
    Ask,
    Boundary,
    Dialogue,
    Emit,
    Fail,
    Finish,
    Pause,
    Prompt,
    Reply,
    Say,
    ShowPlan,
    Status,
    Step,
    Think,
    Tool,
    Tools,
    Wait,
    turns,
)
from palaver.core.settle import fail, settle
from palaver.core.state import open_requests, open_tools
from palaver.errors import ProviderUnavailable
from palaver.schema.commands import Answer
from palaver.schema.content import ImagePart, ImageUrl, TextPart
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ContextMeasured,
    ModelSwitched,
    RequestOpened,
    RequestResolved,
    TextDelta,
    TextFinished,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from palaver.schema.view import FileChange, Message, Plan, Question, QuestionOption, TextBlock, ToolBlock
from tests.unit.backends.memory_turn import WAIT_S, MemoryTurn, allow, deny, play

pytestmark = pytest.mark.anyio


async def played(*steps: Step, turn: MemoryTurn | None = None) -> MemoryTurn:
    return await play(ScriptedBackend(steps), turn or MemoryTurn())


async def test_text_streams_in_pieces_that_join_to_the_finished_block() -> None:
    turn = await played(Say("One two three,\n\n  four.\n"))
    assert turn.types == [
        "turn.status",
        "answer.started",
        "turn.status",
        "text.delta",
        "text.finished",
        "answer.finished",
        "turn.finished",
    ]
    assert "".join(delta.text for delta in turn.of(TextDelta)) == turn.of(TextFinished)[0].text
    assert len(turn.of(TextDelta)) > 3
    assert turn.state.turn is None
    assert turn.state.messages[-1].status == "done"


@pytest.mark.parametrize("text", ["", " ", "\n\nword", "a" * 100, "ein Wörtchen 😀 \t ende  "])
@pytest.mark.parametrize("chunk", [None, 1, 7])
def test_fragments_join_to_the_text(text: str, chunk: int | None) -> None:
    assert "".join(fragments(text, chunk)) == text


async def test_neighbouring_thoughts_and_texts_are_blocks_of_one_answer() -> None:
    turn = await played(Think("hm"), Say("a"), Say("b"))
    assert len(turn.of(AnswerStarted)) == 1
    assert [block.index for block in turn.state.messages[-1].blocks] == [0, 1, 2]


async def test_tool_commits_its_grant_before_its_first_output() -> None:
    turn = await played(Tool("shell", {"command": "ls"}, live=("a\n", ("stderr", "b\n")), exit_code=0))
    after_start = turn.events.index(turn.of(ToolStarted)[0]) + 1
    assert turn.committed_counts == [after_start]
    assert turn.types[-6:] == [
        "answer.finished",
        "turn.status",
        "tool.started",
        "tool.output.delta",
        "tool.finished",
        "turn.finished",
    ]
    finished = turn.of(ToolFinished)[0]
    assert (finished.ok, finished.output, finished.exit_code) == (True, "a\nb\n", 0)


async def test_tools_of_one_answer_are_all_called_before_the_first_runs() -> None:
    turn = await played(Tools((Tool("read", {"path": "a"}), Tool("grep", {"pattern": "b"}))), Say("done"))
    order = [kind for kind in turn.types if kind in ("tool.called", "tool.started", "answer.started")]
    assert order == ["answer.started", "tool.called", "tool.called", "tool.started", "tool.started", "answer.started"]
    assert [finished.finish_reason for finished in turn.of(AnswerFinished)] == ["tool_calls", "stop"]


async def test_approved_tool_runs_under_its_request() -> None:
    change = FileChange(path="a.py", kind="modified", additions=1)
    turn = await played(
        Tool("edit", {"path": "a.py"}, asks=True, title="Edit a.py", preview="+x", changes=(change,)),
        turn=MemoryTurn(decide=allow),
    )
    [request], [started] = turn.of(RequestOpened), turn.of(ToolStarted)
    assert (request.kind, request.tool, request.preview, request.call) == ("approval", "edit", "+x", started.call)
    assert (started.request, started.hash) == (request.request, request.hash)
    assert turn.state.files == (change,)


async def test_declined_tool_never_starts_and_the_script_is_told() -> None:
    heard: list[Reply] = []

    def script(_: Prompt) -> Dialogue:
        heard.append((yield Tool("edit", {}, asks=True)))
        yield Say("As you wish.")

    turn = await play(ScriptedBackend(script), MemoryTurn(decide=deny))
    assert not turn.of(ToolStarted)
    [tool] = [block for message in turn.state.messages for block in message.blocks if isinstance(block, ToolBlock)]
    assert tool.status == "denied"
    assert not heard[0].allowed
    assert turn.answer_text == "As you wish."


async def test_declining_with_stop_ends_the_turn_and_leaves_no_call_open() -> None:
    def stop(request: RequestOpened) -> RequestResolved:
        return RequestResolved(request=request.request, status="answered", verdict="deny", then="stop")

    turn = await played(
        Tools((Tool("edit", {}, asks=True), Tool("read", {}))), Say("unsaid"), turn=MemoryTurn(decide=stop)
    )
    assert turn.answer_text == ""
    assert not open_tools(turn.state)
    assert turn.of(TurnFinished)[0].outcome == "interrupted"


async def test_question_returns_the_answers_to_the_script() -> None:
    def pick(request: RequestOpened) -> RequestResolved:
        chosen = request.questions[0].options[1].label
        return RequestResolved(request=request.request, status="answered", answers=(Answer(selected=(chosen,)),))

    def script(_: Prompt) -> Dialogue:
        options = (QuestionOption(label="red"), QuestionOption(label="blue"))
        reply = yield Ask((Question(question="Which?", options=options),))
        yield Say(f"You chose {reply.answers[0].selected[0]}.")

    turn = await play(ScriptedBackend(script), MemoryTurn(decide=pick))
    assert turn.answer_text == "You chose blue."
    assert '"blue"' in turn.of(ToolFinished)[0].output


async def test_question_nobody_answers_ends_as_a_typed_failure() -> None:
    def expire(request: RequestOpened) -> RequestResolved:
        return RequestResolved(request=request.request, status="expired", verdict="deny")

    turn = await played(Ask((Question(question="There?"),)), turn=MemoryTurn(decide=expire))
    error = turn.of(ToolFinished)[0].error
    assert error is not None
    assert error.code == "interaction_timeout"


async def test_plan_waits_for_its_approval() -> None:
    plan = Plan(summary="Tidy up")
    turn = await played(ShowPlan(plan, asks=True), turn=MemoryTurn(decide=allow))
    assert turn.of(RequestOpened)[0].plan == plan
    assert turn.state.plan == plan


async def test_script_is_chosen_by_what_the_turn_was_asked() -> None:
    image = ImagePart(image_url=ImageUrl(url="data:image/png;base64,AA=="))
    backend = ScriptedBackend(lambda prompt: [Say(f"{prompt.text} {prompt.image_count}")])
    turn = await play(backend, MemoryTurn((TextPart(text="ping"), image)))
    assert turn.answer_text == "ping 1"


async def test_fixed_scripts_follow_one_another_turn_by_turn() -> None:
    backend = ScriptedBackend(turns([Say("first")], [Say("second")]))
    first = await play(backend, MemoryTurn())
    earlier = [_by("turn-0", "user", "a"), _by("turn-0", "assistant", "first"), _by("turn-1", "user", "b")]
    second = await play(backend, MemoryTurn(earlier=earlier[:2]))
    third = await play(backend, MemoryTurn(earlier=earlier))
    assert [turn.of(TextFinished)[0].text for turn in (first, second, third)] == ["first", "second", "second"]


async def test_delivered_message_joins_at_the_next_model_call() -> None:
    turn = MemoryTurn()
    turn.deliver("also this")
    await played(Say("a"), turn=turn)
    assert [message.role for message in turn.state.messages] == ["user", "user", "assistant"]


async def test_delivered_message_is_reacted_to_and_the_script_goes_on() -> None:
    def noted(messages: object) -> list[Step]:
        return [Say("Noted.")]

    backend = ScriptedBackend([Say("a"), Wait("half"), Boundary(), Say("b")], delivered=noted)
    turn = MemoryTurn()
    playing = asyncio.create_task(play(backend, turn))
    await backend.reached("half")
    turn.deliver("one thing")
    backend.open_gate("half")
    await playing
    assert turn.answer_text == "a\nNoted.\nb"


async def test_message_delivered_during_the_last_words_belongs_to_this_turn() -> None:
    backend = ScriptedBackend([Say("a"), Wait("end")], delivered=lambda messages: [Say(f"{len(messages)} more")])
    turn = MemoryTurn()
    playing = asyncio.create_task(play(backend, turn))
    await backend.reached("end")
    turn.deliver("late")
    backend.open_gate("end")
    await playing
    assert turn.answer_text == "a\n1 more"


async def test_unreactive_script_leaves_a_late_message_to_the_next_turn() -> None:
    backend = ScriptedBackend([Say("a"), Wait("end")])
    turn = MemoryTurn()
    playing = asyncio.create_task(play(backend, turn))
    await backend.reached("end")
    turn.deliver("late")
    backend.open_gate("end")
    await playing
    assert [message.role for message in turn.state.messages] == ["user", "assistant"]


@pytest.mark.parametrize(
    "steps",
    [
        (Say("half"), Wait("here")),
        (Tool("shell", {}, live=("some",), wait="here"),),
        (Tool("edit", {}, asks=True), Wait("here")),
    ],
    ids=["text", "tool", "request"],
)
async def test_cancelled_turn_leaves_what_settle_can_close(steps: tuple[Step, ...]) -> None:
    backend = ScriptedBackend(steps)
    turn = MemoryTurn()
    playing = asyncio.create_task(play(backend, turn))
    reached = asyncio.create_task(backend.reached("here"))
    opened = asyncio.create_task(turn.opened.wait())
    await asyncio.wait({reached, opened}, return_when=asyncio.FIRST_COMPLETED, timeout=WAIT_S)
    for task in (playing, reached, opened):
        task.cancel()
    await asyncio.gather(playing, reached, opened, return_exceptions=True)
    assert playing.cancelled()
    assert turn.state.turn is not None
    for event in settle(turn.state, "user", now=turn.now_ms()):
        turn.record(event)
    assert turn.state.turn is None
    assert not open_tools(turn.state)
    assert not open_requests(turn.state)


async def test_failing_script_raises_after_what_it_said() -> None:
    turn = MemoryTurn()
    error = ProviderUnavailable("The service is down. Try again later.")
    with pytest.raises(ProviderUnavailable):
        await played(Say("half"), Fail(error), turn=turn)
    for event in fail(turn.state, error.wire(), now=turn.now_ms()):
        turn.record(event)
    assert turn.answer_text == "half"
    assert turn.state.status == "error"


async def test_finish_ends_the_script_with_its_outcome() -> None:
    turn = await played(Say("a"), Finish("task", "All done"), Say("unsaid"))
    assert turn.answer_text == "a"
    assert turn.state.status == "completed"
    assert turn.of(TurnFinished)[0].summary == "All done"


async def test_usage_is_counted_by_answer_and_summed_for_the_turn() -> None:
    turn = await played(Say("one two"), Boundary(), Say("three"))
    usages = [finished.usage for finished in turn.of(AnswerFinished)]
    assert [usage.output_tokens for usage in usages if usage] == [2, 1]
    assert usages[0] is not None
    assert usages[1] is not None
    assert turn.of(TurnFinished)[0].usage == usages[0] + usages[1]


async def test_text_is_paced_on_the_turns_clock() -> None:
    turn = await play(ScriptedBackend([Say("a b c d"), Pause(2)], tokens_per_s=4), MemoryTurn())
    assert turn.slept_s == pytest.approx(3.0)
    assert turn.of(TurnFinished)[0].duration_ms == 3000


async def test_other_events_pass_and_a_switched_model_signs_what_follows() -> None:
    turn = await played(
        Status("model_loading", "Loading"),
        Emit(ContextMeasured(used_tokens=1, window_tokens=10)),
        Emit(ModelSwitched(to_model="scripted-2", reason="busy")),
        Say("a"),
    )
    assert turn.types[0] == "turn.status"
    assert turn.state.context is not None
    assert turn.state.messages[-1].model == "scripted-2"


async def test_same_script_yields_the_same_events_every_time() -> None:
    steps = (Think("hm"), Say("one two"), Tool("read", {"path": "a"}, output="x"))
    assert (await played(*steps)).events == (await played(*steps)).events


def _by(turn: str, role: str, text: str) -> Message:
    blocks = (TextBlock(index=0, text=text),)
    return Message(
        id=f"{turn}-{role}",
        role="user" if role == "user" else "assistant",
        seq=1,
        updated_seq=1,
        ts=0,
        blocks=blocks,
        turn=turn,
    )

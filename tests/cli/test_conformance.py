"""The same scenarios over every program, real and against a scripted model: what a person sees is the same everywhere.

Each takes a conversation where the one before it left it, so it looks at its own turns alone.
"""

import secrets

import pytest

from palaver.backends.program_pool import RunsPrograms
from palaver.schema.commands import Answer as Answered
from palaver.schema.content import ImagePart, ImageUrl, TextPart
from palaver.schema.events import RequestResolved, TextDelta, ToolStarted, TurnFinished
from palaver.schema.view import Request, TextBlock, ThinkingBlock
from tests.cli.programs import able, every_program, every_start
from tests.cli.rig import Stand, of_kind, remembered, requests, running, said, tools, until
from tests.provider import Answer, Status
from tests.provider.turn import MemoryTurn, allow, deny, drive, leave_open

pytestmark = [pytest.mark.cli, pytest.mark.timeout(180)]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

WORDS = " ".join(f"word{number}" for number in range(1, 401))
LONG_WINDED = f"!slow 0.05\n{WORDS}"
"""Is repeated slowly. Only its first line is an order, and in a record that line begins with who said it: a program that is
told the record of it, because it was slow to stop and was ended, does not say it all again."""


def _session(turn: MemoryTurn) -> str:
    own = [message.data for message in turn.history if message.turn == turn.id]
    marked = [data for data in own if isinstance(data, dict) and "session" in data]
    assert marked, "no answer says which session it belongs to"
    return str(marked[-1]["session"])


@every_program
async def test_text_streams_and_is_there_once(at_work: Stand) -> None:
    turn = await at_work.say("!say The tide comes in twice a day.")
    assert turn.error is None
    assert said(turn).strip() == "The tide comes in twice a day."
    assert turn.of(TextDelta)
    assert len(turn.of(TurnFinished)) == 1
    assert turn.finished.outcome == "completed"
    assert _session(turn)


@able("odd text")
async def test_text_that_looks_like_an_option_or_a_command_is_text(at_work: Stand) -> None:
    for first in ("-rf", "/", "--help", "/exit"):
        turn = await at_work.say(f"{first} is what I typed\n!say Understood, {first}.")
        assert turn.error is None, first
        assert f"Understood, {first}." in said(turn)


@able("thinking")
async def test_thinking_is_kept_apart_from_text(at_work: Stand) -> None:
    turn = await at_work.say("!think Which tide?\n!say The spring tide.")
    thoughts = [b.text for m in turn.history if m.turn == turn.id for b in m.blocks if isinstance(b, ThinkingBlock)]
    assert any("Which tide?" in thought for thought in thoughts)
    assert "Which tide?" not in said(turn)


@every_program
async def test_allowed_tool_runs_and_gives_its_result(at_work: Stand) -> None:
    turn = await at_work.say(at_work.subject.shell("echo tide-$((40+2)) > out.txt; cat out.txt"), decide=allow)
    written = at_work.place.project / "out.txt"
    assert written.read_text().strip() == "tide-42"
    assert turn.error is None
    (tool,) = tools(turn)
    assert tool.status == "ok"
    assert "tide-42" in tool.output
    assert bool(requests(turn)) == ("ask" not in at_work.subject.lacks)


@able("deny")
async def test_denied_tool_does_not_run_and_the_turn_goes_on_or_ends_cleanly(at_work: Stand) -> None:
    turn = await at_work.say(at_work.subject.shell("touch forbidden.txt"), decide=deny)
    assert not (at_work.place.project / "forbidden.txt").exists()
    after = await at_work.say("!say Still here.", state=turn.state)
    (tool,) = tools(turn)
    assert tool.status in ("denied", "error", "interrupted")
    assert "Still here." in said(after)


@every_program
async def test_failing_tool_is_a_result(at_work: Stand) -> None:
    turn = await at_work.say(at_work.subject.shell("echo broken-$((1+1)); exit 3"), decide=allow)
    assert turn.error is None
    (tool,) = tools(turn)
    assert tool.status in ("ok", "error")
    assert "broken-2" in tool.output + (tool.error.message if tool.error else "")


@every_program
async def test_long_output_arrives_bounded(at_work: Stand) -> None:
    turn = await at_work.say(at_work.subject.shell("seq 1 40000"), decide=allow)
    assert turn.error is None
    (tool,) = tools(turn)
    assert tool.status == "ok"
    assert len(tool.output) <= 70_000
    # Which part a program keeps is its own affair; opencode 1.18.33 loses the very end on a busy machine.
    assert sum(line.isdecimal() for line in tool.output.splitlines()) >= 400


@every_program
async def test_stop_in_text_keeps_the_part_and_the_next_message_works(at_work: Stand) -> None:
    turn = at_work.turn(LONG_WINDED)
    await at_work.interrupted(turn, lambda: turn.seen(TextDelta))
    count = len(turn.events)
    blocks = [b for m in turn.history if m.turn == turn.id for b in m.blocks if isinstance(b, TextBlock)]
    assert [b for b in blocks if b.status == "interrupted"]
    after = await at_work.say("!say Again.", state=turn.state)
    assert len(turn.events) == count
    assert said(after).strip() == "Again."


@every_program
async def test_stop_in_a_tool_ends_its_process(at_work: Stand) -> None:
    # Known by its command line: a program may run commands where processes have other numbers.
    mark = f"300.{secrets.randbelow(10**9):09}"
    turn = at_work.turn(at_work.subject.shell(f"sleep {mark} & wait"), decide=allow)
    await at_work.interrupted(turn, lambda: until(lambda: bool(running(mark))))
    await until(lambda: not running(mark))
    after = await at_work.say("!say Again.", state=turn.state)
    assert [tool.status for tool in tools(turn)] == ["interrupted"]
    assert said(after).strip() == "Again."


@able("ask")
async def test_stop_while_it_asks_withdraws_the_question(at_work: Stand) -> None:
    turn = at_work.turn(at_work.subject.shell("touch never.txt"), decide=leave_open)
    await at_work.interrupted(turn, lambda: turn.opened(1))
    assert [request.status for request in requests(turn)] == ["cancelled"]
    after = await at_work.say("!say Again.", state=turn.state)
    assert not (at_work.place.project / "never.txt").exists()
    assert said(after).strip() == "Again."


@able("api error")
async def test_refused_request_fails_the_turn_with_words_and_the_next_works(at_work: Stand) -> None:
    turn = await at_work.say("!status 400")
    after = await at_work.say("!say Again.", state=turn.state)
    assert turn.finished.outcome == "failed"
    assert turn.finished.error is not None
    assert "scripted failure" in turn.finished.error.message
    assert said(after).strip() == "Again."


@able("retry")
async def test_overloaded_service_is_tried_again(at_work: Stand) -> None:
    busy = Answer.of(fault=Status(status=529, message="Overloaded"), when="Be patient")
    at_work.place.service.script.append(busy)
    turn = await at_work.say("Be patient\n!say Here at last.")
    assert turn.error is None
    assert said(turn).strip() == "Here at last."


@able("cut")
async def test_cut_stream_never_doubles_text(at_work: Stand) -> None:
    # Slow enough that what was said before the cut has arrived.
    turn = await at_work.say(f"!cut 4000\n!slow 0.01\n{WORDS}")
    after = await at_work.say("!say Again.", state=turn.state)
    # It was cut in the middle of its words, and what is left of every attempt stands there once.
    assert any("word2" in event.text for event in turn.of(TextDelta))
    assert said(turn).count("word2 ") <= 1
    assert said(after).strip() == "Again."


@every_program
async def test_restarted_server_resumes_where_it_was(at_work: Stand) -> None:
    first = await at_work.say("!say My favourite tide is the neap tide.")
    await at_work.restart()
    asked = len(at_work.place.service.requests)
    second = await at_work.say("!say I remember.", state=first.state)
    told = str(at_work.place.service.bodies[asked:])
    assert said(second).strip() == "I remember."
    assert remembered("neap tide", told)
    assert _session(second) == _session(first)


@every_start
async def test_conversation_that_another_agent_began_is_handed_over(at_work: Stand) -> None:
    elsewhere = at_work.turn("The harbour is closed on Mondays.")
    elsewhere.interrupt()
    asked = len(at_work.place.service.requests)
    turn = await at_work.say("!say Noted.", state=elsewhere.state)
    told = str(at_work.place.service.bodies[asked:])
    assert "Noted." in said(turn)
    assert "closed on Mondays" in told


class Elsewhere(MemoryTurn):
    """Of another conversation, which began as this one did."""

    @property
    def conversation(self) -> str:
        return "branch"


@every_program
async def test_branch_knows_what_was_before_it_and_nothing_of_the_other(at_work: Stand) -> None:
    root = await at_work.say("!say The root.")
    trunk = await at_work.say("!say The trunk.", state=root.state)
    branch = Elsewhere("!say The branch.", state=root.state, **at_work.here)
    asked = len(at_work.place.service.requests)
    await drive(at_work.backend, branch)
    told_branch = str(at_work.place.service.bodies[asked:])
    assert isinstance(at_work.backend, RunsPrograms)
    await at_work.backend.let_go("branch")
    asked = len(at_work.place.service.requests)
    again = await at_work.say("!say More.", state=trunk.state)
    told_trunk = str(at_work.place.service.bodies[asked:])
    assert "The root." in told_branch
    assert "The trunk." not in told_branch
    assert "The trunk." in told_trunk
    assert "The branch." not in told_trunk
    # In a record the model reads its own words, and obeys what it reads.
    assert said(branch).strip().endswith("The branch.")
    assert said(again).strip() == "More."


@every_program
async def test_image_reaches_the_model(at_work: Stand) -> None:
    image = ImagePart(image_url=ImageUrl(url=f"data:image/png;base64,{PIXEL}"))
    asked = len(at_work.place.service.requests)
    turn = await at_work.say((TextPart(text="Look at this"), image))
    told = str(at_work.place.service.bodies[asked:])
    assert turn.finished.outcome == "completed"
    assert "image/png" in told
    assert PIXEL in told


@able("question")
async def test_question_of_the_model_is_put_to_the_person(at_work: Stand) -> None:
    def answer(request: Request) -> RequestResolved | None:
        if request.kind != "question":
            return None
        answers = (Answered(question_index=0, selected=("Flow",)),)
        return RequestResolved(request=request.id, status="answered", verdict="allow", answers=answers)

    turn = await at_work.say(at_work.subject.question, decide=answer, params=at_work.subject.question_params)
    (last, *_) = [str(body) for body in reversed(at_work.place.service.bodies)]
    (asked,) = [request for request in requests(turn) if request.kind == "question"]
    assert [(one.question, [option.label for option in one.options]) for one in asked.questions] == [
        ("Which tide?", ["Ebb", "Flow"])
    ]
    assert turn.error is None
    assert last.count("Flow") > str(at_work.subject.question).count("Flow"), "the answer reaches the model"


@able("steer")
async def test_steered_message_joins_the_running_turn(at_work: Stand) -> None:
    assert at_work.backend.capabilities.steer
    turn = at_work.turn(at_work.subject.shell("sleep 1; echo slept"), decide=allow)
    turn.deliver("!say Steered.")
    await drive(at_work.backend, turn)
    assert turn.error is None
    assert "Steered." in said(turn)


@every_program
async def test_grant_is_on_record_before_a_tool_runs(at_work: Stand) -> None:
    turn = await at_work.say(at_work.subject.shell("echo hi"), decide=allow)
    names = [type(event).__name__ for event in turn.events]
    assert names.index("ToolStarted") < names.index("ToolFinished")
    assert len(turn.of(ToolStarted)) == 1
    if "ask" not in at_work.subject.lacks:
        assert names.index("RequestResolved") < names.index("ToolStarted")
    assert not of_kind(turn.events[names.index("TurnFinished") + 1 :], "TextDelta")

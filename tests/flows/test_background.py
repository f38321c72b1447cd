"""Background processes and plans over the real server: they outlive their turn, and nothing outlives what must end it."""

import asyncio
import secrets
from pathlib import Path

import pytest

from tests.flows.at_work import Event, Work, at_work, of
from tests.flows.engine import gone
from tests.provider import Answer, Call
from tests.unit.tools.workshop import processes_with

pytestmark = pytest.mark.anyio

LIMIT_S = 60.0


def tagged() -> str:
    return f"86{secrets.randbelow(10**9)}"


def start(command: str) -> Call:
    return Call(name="shell", input={"command": command, "background": True})


async def begun(work: Work) -> tuple[str, Event]:
    """A conversation whose agent has started its process, and how that was recorded."""
    conversation = await work.begin("go")
    (request,) = await work.opened(conversation)
    assert request["title"].startswith("Run in the background ")
    await work.decide(conversation, request)
    events = await work.until(conversation, lambda event: event["type"] == "turn.finished")
    (started,) = of(events, "process.started")
    return conversation, started


async def test_end_of_a_process_is_a_hidden_message_that_wakes_the_agent_who_waits(tmp_path: Path) -> None:
    command = "until [ -e go ]; do sleep 0.01; done; echo built; exit 2"
    waiting = Call(name="loop_yield_turn", input={})
    script = (Answer.of(start(command)), Answer.of(waiting), Answer.of("It failed."))
    async with at_work(tmp_path, *script) as work, asyncio.timeout(LIMIT_S):
        conversation, started = await begun(work)
        (work.project / "go").touch()
        answered = 0

        def twice(event: Event) -> bool:
            nonlocal answered
            answered += event["type"] == "turn.finished"
            return bool(answered == 2)

        events = await work.until(conversation, twice)
        state = await work.server.state(conversation)
    (finished,) = of(events, "process.finished")
    assert (finished["process"], finished["exit_code"]) == (started["process"], 2)
    (told,) = [event for event in of(events, "message.added") if event.get("event_kind") == "process_completed"]
    assert (told["role"], told["hidden"]) == ("event", True)
    assert "built" in str(told["content"])
    assert not any(process["running"] for process in state["processes"])
    assert [event["outcome"] for event in of(events, "turn.finished")] == ["yielded", "completed"]
    assert "built" in str(work.provider.bodies[-1])


async def test_process_that_ends_at_once_is_not_left_running_on_record(tmp_path: Path) -> None:
    script = (Answer.of(start("true")), Answer.of("It runs."), Answer.of("It ended."))
    async with at_work(tmp_path, *script) as work, asyncio.timeout(LIMIT_S):
        conversation = await work.begin("go")
        (request,) = await work.opened(conversation)
        await work.decide(conversation, request)
        events = await work.until(conversation, lambda event: event["type"] == "process.finished")
    assert [event["type"] for event in events if event["type"].startswith("process.")] == [
        "process.started",
        "process.finished",
    ]


@pytest.mark.parametrize("how", ["stop_process", "delete"])
async def test_person_ends_a_process_with_all_it_started(how: str, tmp_path: Path) -> None:
    tag = tagged()
    command = f"trap '' TERM INT; (setsid sleep {tag} &); sleep {tag}; sleep {tag}"
    script = (Answer.of(start(command)), Answer.of("It runs."), Answer.of("Stopped."))
    async with at_work(tmp_path, *script) as work, asyncio.timeout(LIMIT_S):
        conversation, started = await begun(work)
        assert processes_with(tag)
        if how == "delete":
            answer = await work.server.command(conversation, type="delete_conversation")
        else:
            answer = await work.server.command(conversation, type="stop_process", process=started["process"])
        assert answer.status_code == 202, answer.text
        await gone(tag)


async def test_process_ends_with_the_server_and_is_on_record_as_ended(tmp_path: Path) -> None:
    tag = tagged()
    script = (Answer.of(start(f"sleep {tag}")), Answer.of("It runs."), Answer.of("I see."))
    async with at_work(tmp_path, *script) as work, asyncio.timeout(LIMIT_S):
        conversation, _ = await begun(work)
        assert processes_with(tag)
    await gone(tag)
    async with at_work(tmp_path, Answer.of("I see.")) as work, asyncio.timeout(LIMIT_S):
        state = await work.server.state(conversation)
    assert not any(process["running"] for process in state["processes"])


async def test_plan_waits_for_its_answer_after_the_turn_and_is_then_carried_out(tmp_path: Path) -> None:
    plan = Call(name="plan", input={"summary": "Do it", "items": [{"title": "One"}, {"title": "Two"}]})
    done = Call(name="finish_task", input={"summary": "Both done."})
    async with at_work(tmp_path, Answer.of("My plan:", plan), Answer.of(done)) as work, asyncio.timeout(LIMIT_S):
        conversation = await work.begin("go", mode="plan")
        await work.until(conversation, lambda event: event["type"] == "turn.finished")
        (request,) = await work.waiting(conversation)
        assert (request["kind"], request["plan"]["summary"]) == ("plan", "Do it")
        await work.decide(conversation, request)
        ended = 0

        def twice(event: Event) -> bool:
            nonlocal ended
            ended += event["type"] == "turn.finished"
            return bool(ended == 2)

        events = await work.until(conversation, twice)
        state = await work.server.state(conversation)
    assert [event["outcome"] for event in of(events, "turn.finished")] == ["plan", "task"]
    assert (state["status"], state["plan"]["status"]) == ("completed", "completed")
    assert [item["status"] for item in state["plan"]["items"]] == ["skipped", "skipped"]


async def test_second_plan_of_one_answer_is_refused_in_words_and_the_first_waits(tmp_path: Path) -> None:
    broken = Call(name="plan", input={"summary": "Nothing", "items": []})
    first, second = (
        Call(name="plan", input={"summary": summary, "items": [{"title": "One"}]}) for summary in ("Do it", "Or this")
    )
    async with at_work(tmp_path, Answer.of(broken, first, second)) as work, asyncio.timeout(LIMIT_S):
        conversation = await work.begin("go", mode="plan")
        events = await work.events(conversation)
        (request,) = await work.waiting(conversation)
    assert request["plan"]["summary"] == "Do it"
    assert [event["outcome"] for event in of(events, "turn.finished")] == ["plan"]
    calls = [event["call"] for event in of(events, "tool.called")]
    results = {event["call"]: event for event in of(events, "tool.finished")}
    assert [results[call]["ok"] for call in calls] == [False, True, False]
    assert "only one" in results[calls[2]]["error"]["message"]

"""Calls over the real server: decided together or by a rule, bound to what was asked about, once each, always answered."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.flows.at_work import Event, Work, at_work, of
from tests.flows.engine import FREE, WIRES, bodies, engine, nth, said, stop
from tests.provider import Answer, Call, scripted_provider

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=WIRES)
async def work(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Work]:
    async with engine(tmp_path_factory.mktemp("calls"), request.param) as started:
        yield started


def run(command: str) -> Call:
    return Call(name="shell", input={"command": command})


def told(body: Mapping[str, Any]) -> list[str]:
    """The results in a request, in either format."""
    found: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            found.append(str(message["content"]))
        elif isinstance(message["content"], list):
            found += [str(part["content"]) for part in message["content"] if part["type"] == "tool_result"]
    return found


def by_command(events: list[Event]) -> dict[str, Event]:
    """The result of each call, by what it would run."""
    called = {event["call"]: event["input"]["command"] for event in of(events, "tool.called")}
    return {called[event["call"]]: event for event in of(events, "tool.finished")}


# -- decided


async def test_all_accepted_run_in_order_and_the_agent_goes_on(work: Work) -> None:
    work.provider.script.append(Answer(blocks=(run("echo 1 >> all"), run("echo 2 >> all")), when="all-accepted"))
    conversation = await work.begin("all-accepted go")
    await work.opened(conversation, 2)
    decided = await work.server.command(conversation, type="decide_tools", accepted=True)
    events = await work.events(conversation)
    assert decided.status_code == 202
    assert (work.project / "all").read_text() == "1\n2\n"
    (work.project / "all").unlink()
    assert events[-1]["outcome"] == "completed"
    assert len(bodies(work, "all-accepted")) == 2


async def test_any_rejection_lets_the_accepted_run_and_goes_on_with_every_call_answered(work: Work) -> None:
    work.provider.script.append(
        Answer(blocks=(run("touch yes"), run("touch no"), run("touch also")), when="some-rejected")
    )
    conversation = await work.begin("some-rejected go")
    requests = {request["preview"]: request["call"] for request in await work.opened(conversation, 3)}

    async def decide(**decisions: bool) -> int:
        listed = [{"call": requests[f"touch {name}"], "accepted": word} for name, word in decisions.items()]
        return (await work.server.command(conversation, type="decide_tools", decisions=listed)).status_code

    assert await decide(yes=True) == 202
    assert (await work.server.state(conversation))["status"] == "paused"
    assert len(await work.waiting(conversation)) == 2
    assert await decide(no=False, also=True) == 202
    events = await work.events(conversation)
    assert (await work.server.state(conversation))["status"] == "idle"
    results = by_command(events)
    assert [results[f"touch {name}"]["ok"] for name in ("yes", "no", "also")] == [True, False, True]
    assert results["touch no"]["error"]["code"] == "tool_denied"
    assert events[-1]["outcome"] == "completed"
    assert len(bodies(work, "some-rejected")) == 2
    assert len(told(bodies(work, "some-rejected")[-1])) == 3
    for name in ("yes", "also"):
        (work.project / name).unlink()
    assert not (work.project / "no").exists()


async def test_denial_by_a_rule_is_a_failed_result_and_the_agent_goes_on(work: Work) -> None:
    work.provider.script.append(Answer(blocks=(run("touch ruled-out"), run("echo fine")), when="ruled-out"))
    policy = [*FREE, {"tool": "shell", "match": "touch*", "decision": "deny_continue"}]
    conversation = await work.begin("ruled-out go", policy=policy)
    events = await work.events(conversation)
    results = by_command(events)
    assert of(events, "request.opened") == []
    assert (results["touch ruled-out"]["ok"], results["touch ruled-out"]["error"]["code"]) == (False, "tool_denied")
    assert results["echo fine"]["ok"]
    assert events[-1]["outcome"] == "completed"
    assert len(told(bodies(work, "ruled-out")[-1])) == 2
    assert not (work.project / "ruled-out").exists()


async def test_rule_that_aborts_runs_nothing_more_and_the_next_request_is_well_formed(work: Work) -> None:
    work.provider.script.append(Answer(blocks=(run("touch aborted"), run("touch beside")), when="abort-rule"))
    policy = [*FREE, {"tool": "shell", "match": "touch abort*", "decision": "deny_abort"}]
    conversation = await work.begin("abort-rule go", policy=policy)
    events = await work.events(conversation)
    assert (events[-1]["outcome"], events[-1]["error"]["code"]) == ("failed", "forbidden")
    assert of(events, "tool.started") == []
    seq = (await work.server.send(conversation, "And now?"))["seq"]
    after = await work.server.settled(conversation, after=seq)
    assert after[-1]["outcome"] == "completed"
    assert len(told(bodies(work, "abort-rule")[-1])) == 2
    assert not list(work.project.glob("aborted")) + list(work.project.glob("beside"))


async def test_racing_yes_and_no_are_recorded_once_and_only_the_recorded_one_has_an_effect(work: Work) -> None:
    for number in range(4):
        name = f"raced{number}"
        conversation = await work.begin(f"{name}\n!shell echo x >> {name}")
        (request,) = await work.opened(conversation)
        answers = await asyncio.gather(
            *(work.decide(conversation, request, verdict) for verdict in ("allow", "deny") * 4)
        )
        events = await work.events(conversation)
        (resolved,) = of(events, "request.resolved")
        assert [answer.get("applied", True) for answer in answers].count(True) == 1
        assert len(of(events, "tool.finished")) == 1
        file = work.project / name
        assert (file.read_text() if file.exists() else "") == ("x\n" if resolved["verdict"] == "allow" else "")
        late = await work.decide(conversation, request, "allow")
        assert late["applied"] is False


async def test_decision_on_a_request_that_a_stop_withdrew_has_no_effect(work: Work) -> None:
    conversation = await work.begin("withdrawn\n!shell touch withdrawn")
    (request,) = await work.opened(conversation)
    await stop(work, conversation)
    late = await asyncio.gather(*(work.decide(conversation, request) for _ in range(8)))
    tools = await work.server.command(conversation, type="decide_tools")
    state = await work.server.state(conversation)
    assert [answer["applied"] for answer in late] == [False] * 8
    assert tools.status_code == 409
    assert (state["requests"][0]["status"], state["turn"], state["status"]) == ("cancelled", None, "idle")
    assert not (work.project / "withdrawn").exists()


# -- bound to what was asked about


async def test_file_that_changed_after_the_question_is_asked_about_again(work: Work) -> None:
    file = work.project / "bound.txt"
    file.write_text("one\nold\n")
    conversation = await work.begin("bound-edit\n!edit bound.txt old => new")
    (first,) = await work.opened(conversation)
    file.write_text("two\nold\n")
    await work.decide(conversation, first)
    (second,) = await work.opened(conversation, 2)
    unchanged = file.read_text()
    await work.decide(conversation, second)
    events = await work.events(conversation)
    assert unchanged == "two\nold\n"
    assert first["hash"] != second["hash"]
    assert "two" in second["preview"]
    assert file.read_text() == "two\nnew\n"
    assert [event["request"] for event in of(events, "tool.started")] == [second["id"]]
    assert of(events, "tool.started")[0]["hash"] == second["hash"]


async def test_file_that_came_to_be_after_the_question_is_not_written_over(work: Work) -> None:
    file = work.project / "appeared.txt"
    file.unlink(missing_ok=True)
    conversation = await work.begin("bound-write\n!write appeared.txt mine")
    (first,) = await work.opened(conversation)
    file.write_text("somebody else's")
    await work.decide(conversation, first)
    (second,) = await work.opened(conversation, 2)
    await work.decide(conversation, second, "deny")
    await work.events(conversation)
    assert "somebody else's" in second["preview"]
    assert file.read_text() == "somebody else's"


async def test_file_changed_by_an_earlier_call_of_the_batch_is_asked_about_again(work: Work) -> None:
    file = work.project / "batch.txt"
    file.write_text("old\n")
    work.provider.script.append(
        Answer(
            blocks=(
                run("echo more >> batch.txt"),
                Call(name="edit", input={"path": "batch.txt", "old": "old", "new": "new"}),
            ),
            when="bound-batch",
        )
    )
    conversation = await work.begin("bound-batch go")
    for request in await work.opened(conversation, 2):
        await work.decide(conversation, request)
    (again,) = await work.opened(conversation, 3)
    assert "more" in again["preview"]
    await work.decide(conversation, again)
    await work.events(conversation)
    assert file.read_text() == "new\nmore\n"


# -- ids and restarts


async def test_call_ids_that_a_service_uses_again_and_again_are_told_apart(work: Work) -> None:
    work.provider.script += [
        Answer(blocks=(Call(name="list", input={"path": "."}, id="call_1"),), when="same-ids") for _ in range(3)
    ]
    conversation = await work.begin("same-ids go")
    seq = (await work.events(conversation))[-1]["seq"]
    work.provider.script.append(Answer(blocks=(Call(name="list", input={"path": "."}, id="call_1"),), when="same-ids"))
    await work.server.send(conversation, "same-ids again")
    await work.server.settled(conversation, after=seq)
    events = await work.until(conversation, nth(2, "turn.finished"))
    calls = [event["call"] for event in of(events, "tool.called")]
    assert len(set(calls)) == len(calls) == 4
    assert [event["call"] for event in of(events, "tool.finished")] == calls
    assert len(told(bodies(work, "same-ids")[-1])) == 4


@pytest.mark.parametrize("wire", WIRES)
async def test_call_that_ran_when_the_server_ended_is_never_run_again_and_its_result_says_so(
    wire: str, tmp_path: Path
) -> None:
    command = "echo begun >> effects; echo here; until [ -e never ]; do sleep 0.01; done"
    async with scripted_provider(Answer.of(run(command), run("touch second")), obedient=False) as provider:
        more = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "k"} if wire == "anthropic" else {}
        async with at_work(tmp_path, provider=provider, environment=more) as work:
            conversation = await work.begin("go", policy=FREE)
            await work.until(conversation, said("here", "tool.output.delta"))
        provider.script.append(Answer.of("I see."))
        async with at_work(tmp_path, provider=provider, environment=more) as work:
            state = await work.server.state(conversation)
            seq = (await work.server.send(conversation, "And now?"))["seq"]
            events = await work.server.settled(conversation, after=seq)
            refused = [request.refused for request in provider.requests]
    assert (state["status"], state["turn"]) == ("idle", None)
    assert refused == [None, None]
    assert events[-1]["outcome"] == "completed"
    first, second = told(provider.bodies[-1])
    assert "effect unknown" in first
    assert "unknown" not in second
    assert (tmp_path / "project/effects").read_text() == "begun\n"
    assert not (tmp_path / "project/second").exists()


async def test_approved_part_of_a_batch_runs_once_over_a_restart(tmp_path: Path) -> None:
    """The first was decided before the restart, the second after it: each runs once, and then the agent goes on."""
    calls = (run("echo 1 >> once"), run("echo 2 >> once"))
    async with scripted_provider(Answer.of(*calls), Answer.of("Done.")) as provider:
        async with at_work(tmp_path, provider=provider) as work:
            conversation = await work.begin("go")
            first, _ = await work.opened(conversation, 2)
            await work.decide(conversation, first)
            await work.until(conversation, nth(1, "tool.finished"))
        async with at_work(tmp_path, provider=provider) as work:
            (second,) = await work.waiting(conversation)
            seq = (await work.server.state(conversation))["seq"]
            await work.decide(conversation, second)
            events = await work.server.settled(conversation, after=seq)
        refused = [request.refused for request in provider.requests]
    assert events[-1]["outcome"] == "completed"
    assert refused == [None, None]
    assert (tmp_path / "project/once").read_text() == "1\n2\n"


@pytest.mark.parametrize("accepted", [True, False])
async def test_calls_left_waiting_by_a_restart_are_decided_together(accepted: bool, tmp_path: Path) -> None:
    calls = (run("touch one"), run("touch two"))
    async with scripted_provider(Answer.of(*calls), Answer.of("Done.")) as provider:
        async with at_work(tmp_path, provider=provider) as work:
            conversation = await work.begin("go")
            await work.opened(conversation, 2)
        async with at_work(tmp_path, provider=provider) as work:
            seq = (await work.server.state(conversation))["seq"]
            decided = await work.server.command(conversation, type="decide_tools", accepted=accepted)
            events = await work.server.settled(conversation, after=seq)
            state = await work.server.state(conversation)
            again = await work.server.command(conversation, type="decide_tools")
    assert (decided.status_code, again.status_code) == (202, 409)
    assert events[-1]["outcome"] == "completed"
    assert state["status"] == "idle"
    assert [event["ok"] for event in of(events, "tool.finished")] == [accepted, accepted]
    assert len(list((tmp_path / "project").glob("[ot]*"))) == (2 if accepted else 0)


async def test_two_requests_left_by_a_restart_are_both_answered_and_both_count(tmp_path: Path) -> None:
    calls = (run("touch one"), run("touch two"))
    async with scripted_provider(Answer.of(*calls), Answer.of("Done.")) as provider:
        async with at_work(tmp_path, provider=provider) as work:
            conversation = await work.begin("go")
            await work.opened(conversation, 2)
        async with at_work(tmp_path, provider=provider) as work:
            seq = (await work.server.state(conversation))["seq"]
            requests = await work.waiting(conversation)
            assert len(requests) == 2
            await asyncio.gather(*(work.decide(conversation, request) for request in requests))
            events = await work.server.settled(conversation, after=seq)
    assert events[-1]["outcome"] == "completed"
    assert len(of(events, "turn.started")) == 1
    assert {path.name for path in (tmp_path / "project").glob("[ot]*")} == {"one", "two"}

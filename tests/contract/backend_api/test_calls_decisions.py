"""What a person's yes and no do: partly, for longer, and what rules of others say about it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from palaver.approval.policy import Policy, Rule
from palaver.approval.standing_grants import StandingGrants
from palaver.core.decide.decide import decide
from palaver.core.decide.facts import Facts, Runner
from palaver.schema.base import Scope, Then
from palaver.schema.commands import DecideTools, ToolDecision
from palaver.schema.events import GrantAdded, RequestOpened, RequestResolved, ToolFinished, ToolStarted
from palaver.schema.records import AgentRecord, PolicyRule
from palaver.schema.view import Request
from palaver.tools.shell.sandbox import unsandboxed
from palaver.tools.shell.shell import Shell
from palaver.tools.toolbox import Toolbox
from tests.contract.backend_api.rig import agent, serve, tool_results
from tests.provider import Answer, Call
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import MemoryTurn, allow, drive

WIRE = "openai"
CALLS = [Call(name="shell", input={"n": n}) for n in range(3)]


def decided(turn: MemoryTurn, command: DecideTools) -> None:
    facts = Facts(now=0, new_id=turn.new_id, runner=Runner(agent="default", backend="api"))
    events = decide(turn.state, command, facts)
    assert isinstance(events, list), events
    for event in events:
        assert isinstance(event, RequestResolved)
        turn.resolve(event)


async def test_partial_decisions_keep_it_paused_with_the_rest() -> None:
    shell = CountingTool("shell")
    turn = MemoryTurn("hi")
    async with (
        serve(Answer.of(*CALLS), Answer.of("ok")) as service,
        agent(WIRE, service, tools=toolbox(shell)) as backend,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(drive(backend, turn))
        first, second, third = await turn.opened(3)
        decided(turn, DecideTools(decisions=(ToolDecision(call=str(second.call), accepted=True),)))
        await turn.committed()
        assert turn.state.status == "paused"
        assert [request.id for request in turn.state.requests if request.status == "open"] == [first.id, third.id]
        decided(turn, DecideTools(accepted=True))
    assert shell.runs == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert turn.finished.outcome == "completed"


@pytest.mark.parametrize("rejected", [0, 1, 2])
@pytest.mark.parametrize("then", ["continue", "stop"])
async def test_any_rejection_lets_the_accepted_run_and_goes_on_unless_it_is_to_stop(rejected: int, then: Then) -> None:
    shell = CountingTool("shell")
    turn = MemoryTurn("hi")
    async with (
        serve(Answer.of(*CALLS), Answer.of("ok")) as service,
        agent(WIRE, service, tools=toolbox(shell)) as backend,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(drive(backend, turn))
        requests = await turn.opened(3)
        decisions = [ToolDecision(call=str(one.call), accepted=at != rejected) for at, one in enumerate(requests)]
        decided(turn, DecideTools(decisions=tuple(decisions), then=then))
    assert shell.runs == [{"n": n} for n in range(3) if n != rejected]
    assert sorted(result.ok for result in turn.of(ToolFinished)) == [False, True, True]
    outcome = "completed" if then == "continue" else "interrupted"
    assert (turn.finished.outcome, turn.state.status) == (outcome, "idle")
    assert len(service.bodies) == (2 if then == "continue" else 1)


async def test_denial_by_policy_writes_a_failed_result_and_goes_on() -> None:
    shell, read = CountingTool("shell"), CountingTool("read", reads_only=True)
    box = toolbox(shell, read, policy=Policy((Rule("shell", "deny_continue"),)))
    async with (
        serve(Answer.of(CALLS[0], Call(name="read")), Answer.of("ok")) as service,
        agent(WIRE, service, tools=box) as backend,
    ):
        turn = await drive(backend, MemoryTurn("hi", decide=allow))
        told = tool_results(service.bodies[1])
    assert told == ["The rules of this server forbid this call of shell.", "read done"]
    assert turn.of(RequestOpened) == []
    assert turn.finished.outcome == "completed"


@pytest.mark.parametrize("source", ["agent", "conversation"])
async def test_rules_of_agent_and_conversation_count(source: str) -> None:
    rule: Any = {"tool": "shell", "decision": "allow"}
    record = AgentRecord(id="default", name="D", policy=(PolicyRule(**rule),) if source == "agent" else ())
    shell = CountingTool("shell")
    async with (
        serve(Answer.of(*CALLS), Answer.of("ok")) as service,
        agent(WIRE, service, tools=toolbox(shell)) as backend,
    ):
        params = {"policy": [rule]} if source == "conversation" else {}
        turn = await drive(backend, MemoryTurn("hi", agent=record, params=params))
    assert len(shell.runs) == 3
    assert {started.grant for started in turn.of(ToolStarted)} == {"rule"}


# -- for longer


def shells(tmp_path: Path) -> Toolbox:
    return Toolbox(
        tools={"shell": Shell(unsandboxed())},
        environment={"PATH": "/usr/bin:/bin"},
        standing=StandingGrants(tmp_path / "grants.json"),
    )


def made_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("?"))


def run(command: str) -> Call:
    return Call(name="shell", input={"command": command})


def always(scope: Scope, offer: int = 0) -> Any:
    def answer(request: Request) -> RequestResolved:
        return RequestResolved(request=request.id, status="answered", verdict="allow", scope=scope, offer=offer)

    return answer


async def test_request_offers_scopes_and_extents_narrowest_first(tmp_path: Path) -> None:
    async with (
        serve(Answer.of(run("seq 1"), run("touch a")), Answer.of("ok")) as service,
        agent(WIRE, service, tools=shells(tmp_path)) as backend,
    ):
        turn = await drive(backend, MemoryTurn("hi", project=tmp_path, decide=allow))
    asked, writing = turn.of(RequestOpened)
    assert asked.scopes == ("once", "conversation", "agent")
    assert [(offer.match, offer.label) for offer in asked.offers] == [
        ("seq 1", "exactly this command"),
        ("program:seq", "seq with any arguments"),
    ]
    assert [offer.match for offer in writing.offers] == ["touch a"]
    assert asked.sandbox == unsandboxed().words


async def test_yes_to_a_program_covers_it_and_nothing_disguised_as_it(tmp_path: Path) -> None:
    answers: list[Any] = [always("conversation", 1)]

    def first_only(request: Request) -> RequestResolved | None:
        return answers.pop()(request) if answers else None

    turn = MemoryTurn("hi", project=tmp_path, decide=first_only)
    script = (Answer.of(run("seq 1")), Answer.of(run("seq 2 3"), run("seq 4; touch e"), run("seq $(touch f)")))
    async with serve(*script) as service, agent(WIRE, service, tools=shells(tmp_path)) as backend:
        running = asyncio.create_task(drive(backend, turn))
        waiting = await turn.opened(2)
        while len(turn.of(ToolFinished)) < 2:
            await turn.committed()
        running.cancel()
        await asyncio.wait({running})
    assert [request.input["command"] for request in waiting] == ["seq 4; touch e", "seq $(touch f)"]
    assert len(turn.of(ToolStarted)) == 2
    assert made_in(tmp_path) == []
    assert [(grant.match, grant.scope) for grant in turn.of(GrantAdded)] == [("program:seq", "conversation")]


@pytest.mark.parametrize("scope", ["agent", "project"])
async def test_lasting_yes_holds_in_another_conversation_and_not_beyond_its_scope(scope: Scope, tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    box = shells(tmp_path)
    ada, bob = AgentRecord(id="ada", name="Ada"), AgentRecord(id="bob", name="Bob")
    script = [answer for _ in range(4) for answer in (Answer.of(run("touch a")), Answer.of("ok"))]
    async with serve(*script) as service, agent(WIRE, service, tools=box) as backend:
        given = MemoryTurn("hi", project=tmp_path / "here", agent=ada, decide=always(scope))
        await drive(backend, given)
        asked: dict[tuple[str, str], bool] = {}
        for who, where in ((ada, "here"), (ada, "there"), (bob, "here")):
            turn = await drive(backend, MemoryTurn("hi", project=tmp_path / where, agent=who, decide=allow))
            asked[who.id, where] = bool(turn.of(RequestOpened))
            if not asked[who.id, where]:
                assert turn.of(ToolStarted)[0].grant == scope
    assert [grant.scope for grant in given.of(GrantAdded)] == [scope]
    assert asked == {
        ("ada", "here"): False,
        ("ada", "there"): scope == "project",
        ("bob", "here"): scope == "agent",
    }


async def test_rule_that_denies_beats_what_was_always_allowed(tmp_path: Path) -> None:
    box = shells(tmp_path)
    script = [answer for _ in range(2) for answer in (Answer.of(run("touch a")), Answer.of("ok"))]
    async with serve(*script) as service, agent(WIRE, service, tools=box) as backend:
        await drive(backend, MemoryTurn("hi", project=tmp_path, decide=always("agent")))
        (tmp_path / "a").unlink()
        params = {"policy": [{"tool": "shell", "decision": "deny_continue", "match": "touch*"}]}
        turn = await drive(backend, MemoryTurn("hi", project=tmp_path, params=params))
    assert not (tmp_path / "a").exists()
    assert turn.of(ToolStarted) == []


async def test_lasting_yes_to_changed_arguments_is_given_for_once(tmp_path: Path) -> None:
    """What the person allowed for longer is what the request showed, not what they made of it."""

    def change(request: Request) -> RequestResolved:
        if request.input == {"command": "touch b"}:
            return allow(request)
        return RequestResolved(
            request=request.id, status="answered", verdict="allow", scope="conversation", input={"command": "touch b"}
        )

    async with (
        serve(Answer.of(run("touch a")), Answer.of("ok")) as service,
        agent(WIRE, service, tools=shells(tmp_path)) as backend,
    ):
        turn = await drive(backend, MemoryTurn("hi", project=tmp_path, decide=change))
    assert turn.of(GrantAdded) == []
    assert made_in(tmp_path) == ["b"]

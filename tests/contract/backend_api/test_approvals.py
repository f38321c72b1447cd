"""Approvals: what a person allows is what runs, and nothing else."""

import asyncio

from palaver.approval.policy import Policy, Rule
from palaver.schema.events import (
    GrantAdded,
    RequestOpened,
    RequestResolved,
    ToolFinished,
    ToolStarted,
)
from palaver.schema.view import Request
from tests.contract.backend_api.rig import FIRST, agent, serve, tool_results
from tests.provider import (
    Answer,
    Call,
)
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import MemoryTurn, allow, allow_always, deny, drive


async def test_asked_tool_runs_after_a_yes_under_that_request(wire: str) -> None:
    shell = CountingTool("shell")
    script = (Answer.of(FIRST), Answer.of("ok"))
    async with serve(*script) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        turn = await drive(backend, MemoryTurn("hi", decide=allow))
    asked = turn.of(RequestOpened)[0]
    assert (asked.kind, asked.tool, asked.input) == ("approval", "shell", {"command": "ls"})
    assert (asked.hash, asked.scopes, asked.sandbox) == (
        'shell:{"command":"ls"}:',
        ("once", "conversation"),
        "none: a test",
    )
    started = turn.of(ToolStarted)[0]
    assert (started.grant, started.request, started.hash) == (f"request:{asked.request}", asked.request, asked.hash)
    assert len(shell.runs) == 1


async def test_denied_tool_does_not_run_and_the_model_is_told(wire: str) -> None:
    shell = CountingTool("shell")
    script = (Answer.of(FIRST), Answer.of("Then not."))
    async with serve(*script) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        turn = await drive(backend, MemoryTurn("hi", decide=deny))
        told = tool_results(service.bodies[1])
    assert shell.runs == []
    assert "declined" in told[0]
    assert "not now" in told[0]
    result = turn.of(ToolFinished)[0]
    assert result.error is not None
    assert (result.error.code, result.effect) == ("tool_denied", "none")
    assert turn.finished.outcome == "completed"


async def test_denial_with_stop_ends_the_turn_after_the_accepted_ran(wire: str) -> None:
    def decide(request: Request) -> RequestResolved:
        refused = request.input == {"command": "no"}
        return RequestResolved(
            request=request.id,
            status="answered",
            verdict="deny" if refused else "allow",
            then="stop" if refused else "continue",
        )

    shell = CountingTool("shell")
    calls = (Call(name="shell", input={"command": "no"}), Call(name="shell", input={"command": "yes"}))
    async with serve(Answer.of(*calls)) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        turn = await drive(backend, MemoryTurn("hi", decide=decide))
        assert len(service.requests) == 1
    assert shell.runs == [{"command": "yes"}]
    assert turn.finished.outcome == "interrupted"
    assert turn.state.status == "idle"


async def test_rule_that_aborts_runs_nothing_and_fails_the_turn(wire: str) -> None:
    shell, read = CountingTool("shell"), CountingTool("read", reads_only=True)
    policy = Policy(rules=(Rule(tool="shell", decision="deny_abort"),))
    calls = (Call(name="read"), FIRST)
    box = toolbox(shell, read, policy=policy)
    async with serve(Answer.of(*calls)) as service, agent(wire, service, tools=box) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert (shell.runs, read.runs) == ([], [])
    assert [result.ok for result in turn.of(ToolFinished)] == [False, False]
    assert turn.finished.outcome == "failed"
    assert turn.finished.error is not None
    assert turn.finished.error.code == "forbidden"


async def test_expired_request_is_a_denial_that_says_so(wire: str) -> None:
    def expire(request: Request) -> RequestResolved:
        return RequestResolved(request=request.id, status="expired", verdict="deny")

    shell = CountingTool("shell")
    script = (Answer.of(FIRST), Answer.of("ok"))
    async with serve(*script) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        turn = await drive(backend, MemoryTurn("hi", decide=expire))
    assert shell.runs == []
    result = turn.of(ToolFinished)[0]
    assert result.error is not None
    assert result.error.code == "interaction_timeout"


async def test_requests_of_a_batch_are_open_together_and_calls_run_in_order(wire: str) -> None:
    shell = CountingTool("shell")
    calls = [Call(name="shell", input={"n": n}) for n in (1, 2, 3)]
    turn = MemoryTurn("hi")
    async with (
        serve(Answer.of(*calls), Answer.of("ok")) as service,
        agent(wire, service, tools=toolbox(shell)) as backend,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(drive(backend, turn))
        first, second, third = await turn.opened(3)
        assert turn.state.status == "paused"
        turn.resolve(allow(third))
        turn.resolve(deny(second))
        await turn.committed()
        assert shell.runs == []
        turn.resolve(allow(first))
    assert shell.runs == [{"n": 1}, {"n": 3}]
    assert turn.finished.outcome == "completed"


async def test_yes_for_the_conversation_covers_waiting_and_later_calls(wire: str) -> None:
    shell = CountingTool("shell")
    script = (Answer.of(FIRST, FIRST), Answer.of(FIRST), Answer.of("ok"))
    turn = MemoryTurn("hi")
    async with (
        serve(*script) as service,
        agent(wire, service, tools=toolbox(shell)) as backend,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(drive(backend, turn))
        first, _ = await turn.opened(2)
        turn.resolve(allow_always(first))
    assert len(shell.runs) == 3
    assert len(turn.of(RequestOpened)) == 2
    assert [grant.tool for grant in turn.of(GrantAdded)] == ["shell"]
    assert turn.of(GrantAdded)[0].request == first.id
    assert turn.of(ToolStarted)[-1].grant == "conversation"


async def test_yes_for_the_conversation_does_not_cover_another_command(wire: str) -> None:
    shell = CountingTool("shell")
    other = Call(name="shell", input={"command": "rm"})
    script = (Answer.of(FIRST), Answer.of(other), Answer.of("ok"))
    async with serve(*script) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        turn = await drive(backend, MemoryTurn("hi", decide=allow_always))
    assert len(turn.of(RequestOpened)) == 2


async def test_yes_for_the_conversation_still_holds_in_a_new_process(wire: str) -> None:
    shell = CountingTool("shell")
    script = (Answer.of(FIRST), Answer.of("ok"), Answer.of(FIRST), Answer.of("ok"))
    async with serve(*script) as service:
        async with agent(wire, service, tools=toolbox(shell)) as backend:
            turn = await drive(backend, MemoryTurn("hi", decide=allow_always))
        async with agent(wire, service, tools=toolbox(shell)) as backend:
            again = await drive(backend, MemoryTurn("again", state=turn.state))
    assert len(shell.runs) == 2
    assert again.of(RequestOpened) == []


async def test_yes_to_what_has_changed_is_asked_again(wire: str) -> None:
    shell = CountingTool("shell")
    asked: list[str | None] = []

    def change_then_allow(request: Request) -> RequestResolved:
        asked.append(request.hash)
        if len(asked) == 1:
            shell.world = "changed"
        return allow(request)

    script = (Answer.of(FIRST), Answer.of("ok"))
    async with serve(*script) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        turn = await drive(backend, MemoryTurn("hi", decide=change_then_allow))
    assert len(set(asked)) == 2
    assert turn.of(ToolStarted)[0].hash == asked[1]
    assert len(shell.runs) == 1


async def test_arguments_a_person_changed_are_asked_again_and_told_to_the_model(wire: str) -> None:
    def decide(request: Request) -> RequestResolved:
        answer = allow(request)
        edited = {"command": "ls -l"}
        if request.input == edited:
            return answer
        return RequestResolved(request=request.id, status="answered", verdict="allow", input=edited)

    shell = CountingTool("shell")
    script = (Answer.of(FIRST), Answer.of("ok"))
    async with serve(*script) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        turn = await drive(backend, MemoryTurn("hi", decide=decide))
        told = tool_results(service.bodies[1])
    assert len(turn.of(RequestOpened)) == 2
    assert shell.runs == [{"command": "ls -l"}]
    assert "changed the arguments" in told[0]

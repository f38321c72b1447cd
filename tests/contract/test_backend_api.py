"""The built-in loop as a backend, over both wire formats, against a service that misbehaves and refuses like the real ones."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from palaver.backends.api.anthropic import anthropic_provider
from palaver.backends.api.loop import ApiBackend, Conduct
from palaver.backends.api.openai import openai_provider
from palaver.backends.api.provider import Provider
from palaver.backends.api.retry import RetryPolicy
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    FilesChanged,
    GrantAdded,
    KnownEvent,
    RequestOpened,
    RequestResolved,
    TextDelta,
    TextFinished,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    TurnFinished,
    TurnStatus,
)
from palaver.schema.records import AgentRecord
from palaver.schema.view import FileChange, Request, TextBlock, ToolBlock, Trigger
from palaver.tools.base import ToolResult, Workplace
from palaver.tools.policy import Policy, Rule
from palaver.tools.toolbox import Toolbox
from tests.provider import (
    Answer,
    Call,
    ContentType,
    Cut,
    Empty,
    ErrorFrame,
    Gate,
    Hang,
    Malformed,
    Redacted,
    Say,
    ScriptedProvider,
    Status,
    Think,
    scripted_provider,
)
from tests.provider.server import WIRES as FORMATS
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import DRIVE_S, MemoryTurn, allow, allow_always, deny, drive

Connect = Callable[..., Provider]

WIRES: dict[str, Connect] = {"anthropic": anthropic_provider, "openai": openai_provider}


@pytest.fixture(params=list(WIRES))
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def agent(
    wire: str,
    service: ScriptedProvider,
    *,
    tools: Toolbox | None = None,
    read_timeout_s: float = 20.0,
    key: str | None = "key",
    conduct: Conduct | None = None,
) -> AsyncIterator[ApiBackend]:
    provider = WIRES[wire](service.url, key, read_timeout_s=read_timeout_s)
    backend = ApiBackend(lambda _agent, _params: provider, tools or toolbox(), conduct or Conduct(chance=lambda: 1.0))
    try:
        yield backend
    finally:
        await backend.close()


Serve = Callable[..., AbstractAsyncContextManager[ScriptedProvider]]
serve: Serve = scripted_provider

FIRST = Call(name="shell", input={"command": "ls"})


def text_of(turn: MemoryTurn) -> str:
    blocks = [block for message in turn.history for block in message.blocks]
    return "".join(block.text for block in blocks if isinstance(block, TextBlock) and block.status == "done")


def tool_results(body: Mapping[str, Any]) -> list[str]:
    """What the model was told of its calls, in either format."""
    found: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            found.append(message["content"])
        elif isinstance(message["content"], list):
            found += [part["content"] for part in message["content"] if part["type"] == "tool_result"]
    return found


def kinds(events: list[KnownEvent]) -> list[str]:
    return [type(event).__name__ for event in events]


# -- answers


async def test_turn_streams_text_and_finishes_with_usage(wire: str) -> None:
    answer = Answer(blocks=(Say(text="Hello there, person."),), chunk_chars=5, cached_tokens=4)
    async with serve(answer) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    finished = turn.of(AnswerFinished)[0]
    assert "".join(delta.text for delta in turn.of(TextDelta)) == "Hello there, person."
    assert turn.of(TextFinished)[0].text == "Hello there, person."
    assert (finished.finish_reason, finished.model) == ("stop", "scripted-1")
    assert finished.usage is not None
    assert (finished.usage.input_tokens, finished.usage.cached_tokens, finished.usage.output_tokens) == (10, 4, 5)
    assert (turn.finished.outcome, turn.finished.usage) == ("completed", finished.usage)
    assert turn.state.status == "idle"
    assert turn.of(TurnStatus)[0].status == "thinking"


async def test_request_carries_prompt_settings_and_tools(wire: str) -> None:
    shell = CountingTool("shell")
    record = AgentRecord(id="a", name="A", model="agents-own", system_prompt="Be brief.", params={"temperature": 0.5})
    turn = MemoryTurn("hi", agent=record, params={"max_tokens": 321, "model": "chosen"})
    async with serve(Answer.of("ok")) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        await drive(backend, turn)
        body = service.bodies[0]
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("chosen", 321, 0.5)
    system = body["system"][0]["text"] if wire == "anthropic" else body["messages"][0]["content"]
    assert system.startswith("Be brief.")
    assert "/nowhere" in system
    assert "2025-10-09" in system
    tool = body["tools"][0]
    assert (tool["name"] if wire == "anthropic" else tool["function"]["name"]) == "shell"


async def test_model_defaults_to_the_first_the_service_lists(wire: str) -> None:
    answers = (Answer.of("ok"), Answer.of("ok"))
    async with serve(*answers, models=("text-embedding-3", "local-7b")) as service, agent(wire, service) as backend:
        await drive(backend, MemoryTurn("hi"))
        await drive(backend, MemoryTurn("hi", agent=AgentRecord(id="a", name="A", model="agents-own")))
        assert [body["model"] for body in service.bodies] == ["local-7b", "agents-own"]


async def test_thinking_goes_back_byte_for_byte(wire: str) -> None:
    thought = "First ünïcode\nthen a tool."
    answers = (
        Answer.of(Think(text=thought), Redacted(data="c2VjcmV0+/=="), "I look.", FIRST),
        Answer.of(Think(text="done"), "Finished."),
    )
    params = {"thinking_budget": 2048} if wire == "anthropic" else {"reasoning_effort": "low"}
    shell = CountingTool("shell", reads_only=True)
    async with serve(*answers) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        turn = await drive(backend, MemoryTurn("hi", params=params))
        body = service.bodies[1]
    assert turn.error is None
    kept = turn.of(ThinkingFinished)[0]
    assert kept.text == thought
    said = next(message for message in body["messages"] if message["role"] == "assistant")
    if wire == "anthropic":
        assert said["content"][0] == {"type": "thinking", "thinking": thought, "signature": kept.signature}
        assert said["content"][1] == {"type": "redacted_thinking", "data": "c2VjcmV0+/=="}
        assert body["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    else:
        assert said["reasoning_content"] == thought
        assert body["reasoning_effort"] == "low"


async def test_thinking_of_one_provider_never_reaches_another() -> None:
    shell = CountingTool("shell", reads_only=True)
    box = toolbox(shell)
    first = Answer.of(Think(text="secret thought", signature="scripted-1"), FIRST)
    async with serve(first, Answer.of("over")) as service, agent("anthropic", service, tools=box) as backend:
        turn = await drive(backend, MemoryTurn("hi", params={"thinking_budget": 1024}))
    for wire in WIRES:
        async with serve(Answer.of("ok")) as service, agent(wire, service, tools=box) as backend:
            again = await drive(backend, MemoryTurn("more", state=turn.state, params={"thinking_budget": 1024}))
            assert again.error is None
            assert "secret thought" not in str(service.bodies[0])
            assert "scripted-1" not in str(service.bodies[0]["messages"])


async def test_thinking_is_left_off_for_a_tool_loop_that_has_none_to_show() -> None:
    """Begun with one service, gone on with another: a budget would be refused."""
    shell = CountingTool("shell", reads_only=True)
    begun = MemoryTurn("hi")
    begun.accept(AnswerStarted(message="m"))
    begun.accept(ToolCalled(message="m", block=0, call="c", name="shell", input={}))
    begun.accept(AnswerFinished(message="m", finish_reason="tool_calls"))
    async with serve(Answer.of("ok")) as service, agent("anthropic", service, tools=toolbox(shell)) as backend:
        turn = await drive(backend, begun)
        assert turn.error is None
        assert "thinking" not in service.bodies[0]


async def test_length_ends_the_turn_and_says_so(wire: str) -> None:
    async with serve(Answer.of("Once upon", stop="length")) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert turn.of(AnswerFinished)[0].finish_reason == "length"
    assert turn.finished.outcome == "limited"
    assert turn.finished.error is not None
    assert "max_tokens" in turn.finished.error.message


async def test_refusal_ends_the_turn_and_says_so(wire: str) -> None:
    async with serve(Answer.of("I", stop="refusal")) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert (turn.of(AnswerFinished)[0].finish_reason, turn.finished.outcome) == ("refusal", "failed")


async def test_empty_answer_completes_the_turn(wire: str) -> None:
    async with serve(Answer.of()) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert kinds(turn.events) == ["TurnStatus", "AnswerStarted", "AnswerFinished", "TurnFinished"]


# -- tools


async def test_allowed_tool_runs_once_and_its_result_goes_back(wire: str) -> None:
    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        await place.output("one\n", "stdout")
        await place.output("two\n", "stderr")
        change = FileChange(path="a.txt", kind="created", additions=1)
        return ToolResult(ok=True, output="one\ntwo\n", exit_code=0, total_lines=2, changes=(change,))

    read = CountingTool("read", work, reads_only=True)
    script = (Answer.of("Looking.", Call(name="read", input={"path": "a"})), Answer.of("Seen."))
    async with serve(*script) as service, agent(wire, service, tools=toolbox(read)) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        bodies = service.bodies
    assert read.runs == [{"path": "a"}]
    assert tool_results(bodies[1]) == ["one\ntwo\n"]
    assert [delta.text for delta in turn.of(ToolOutputDelta)] == ["one\n", "two\n"]
    assert turn.of(FilesChanged)[0].files[0].path == "a.txt"
    result = turn.of(ToolFinished)[0]
    assert (result.ok, result.exit_code, result.total_lines, result.effect) == (True, 0, 2, "done")
    assert turn.of(ToolStarted)[0].grant == "reads_only"
    assert turn.finished.outcome == "completed"
    assert turn.finished.usage.output_tokens == 10


async def test_calls_have_our_ids_and_keep_the_providers(wire: str) -> None:
    read = CountingTool("read", reads_only=True)
    script = (Answer.of(Call(name="read", id="call_theirs")), Answer.of("ok"))
    async with serve(*script) as service, agent(wire, service, tools=toolbox(read)) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        body = service.bodies[1]
    called = turn.of(ToolCalled)[0]
    assert called.call != "call_theirs"
    assert called.provider["id"] == "call_theirs"
    assert turn.of(ToolFinished)[0].call == called.call
    assert "call_theirs" in str(body["messages"])


async def test_call_ids_the_provider_reuses_stay_unique_in_a_request(wire: str) -> None:
    """The service answers 400 to a request that uses an id twice."""
    read = CountingTool("read", reads_only=True)
    again = Call(name="read", id="call_1")
    script = (Answer.of(again), Answer.of(again), Answer.of(again), Answer.of("ok"))
    async with serve(*script) as service, agent(wire, service, tools=toolbox(read)) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        assert [request.refused for request in service.requests] == [None] * 4
    assert turn.error is None
    assert len(read.runs) == 3


async def test_grant_is_committed_before_the_tool_runs(wire: str) -> None:
    on_disk: list[int] = []

    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        on_disk.append(turn.waited_for_seq)
        return ToolResult(ok=True)

    shell = CountingTool("shell", work)
    script = (Answer.of(FIRST), Answer.of("ok"))
    turn = MemoryTurn("hi", decide=allow)
    async with serve(*script) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        await drive(backend, turn)
    assert turn.of(ToolStarted)[0].seq <= on_disk[0]


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


async def test_unknown_tool_and_bad_arguments_fail_at_once(wire: str) -> None:
    shell = CountingTool("shell", required=("command",))
    calls = (
        Call(name="sheell", input={}),
        Call(name="shell", input={}),
        Call(name="shell", raw='{"command": "l'),
        Call(name="shell", raw='["ls"]'),
    )
    script = (Answer.of(*calls), Answer.of("I see."))
    async with serve(*script) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        told = tool_results(service.bodies[1])
    assert turn.error is None
    assert shell.runs == []
    codes = [result.error.code for result in turn.of(ToolFinished) if result.error]
    assert codes == ["unknown_tool", "bad_arguments", "bad_arguments", "bad_arguments"]
    assert "sheell" in told[0]
    assert "command" in told[1]
    assert '{"command": "l' in told[2]
    assert turn.of(RequestOpened) == []


async def test_failing_and_crashing_tools_are_results(wire: str) -> None:
    async def fails(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        return ToolResult(ok=False, output="no such file", error="exit 1", exit_code=1)

    async def crashes(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        raise RuntimeError("boom")

    async def cancels_itself(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        raise asyncio.CancelledError

    works = {"fails": fails, "crashes": crashes, "cancels": cancels_itself}
    box = toolbox(*(CountingTool(name, work, reads_only=True) for name, work in works.items()))
    script = (Answer.of(*(Call(name=name) for name in works)), Answer.of("ok"))
    async with serve(*script) as service, agent(wire, service, tools=box) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        told = tool_results(service.bodies[1])
    assert turn.error is None
    assert told[0] == "exit 1\nno such file"
    assert "boom" in told[1]
    assert "effect is unknown" in told[2]
    assert [result.ok for result in turn.of(ToolFinished)] == [False] * 3


async def test_results_too_long_for_an_event_are_cut_and_kept_whole(wire: str) -> None:
    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        return ToolResult(ok=True, output="x" * 300_000)

    script = (Answer.of(Call(name="read")), Answer.of("ok"))
    box = toolbox(CountingTool("read", work, reads_only=True))
    async with serve(*script) as service, agent(wire, service, tools=box) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    result = turn.of(ToolFinished)[0]
    assert result.truncated
    assert len(result.output) < 70_000
    assert result.blob is not None
    assert turn.blobs[result.blob.id] == b"x" * 300_000


async def test_reading_tools_run_together_and_others_in_order(wire: str) -> None:
    together = asyncio.Barrier(3)
    order: list[str] = []

    async def meet(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        async with asyncio.timeout(10):
            await together.wait()
        order.append("read")
        return ToolResult(ok=True)

    async def act(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        order.append(str(arguments["n"]))
        await asyncio.sleep(0)
        return ToolResult(ok=True)

    read, act_tool = CountingTool("read", meet, reads_only=True), CountingTool("act", act)
    box = toolbox(read, act_tool, policy=Policy(rules=(Rule(tool="act", decision="allow"),)))
    reads = [Call(name="read", input={"n": n}) for n in range(3)]
    calls = (*reads, Call(name="act", input={"n": 1}), Call(name="act", input={"n": 2}))
    async with serve(Answer.of(*calls), Answer.of("ok")) as service, agent(wire, service, tools=box) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert read.most_at_once == 3
    assert act_tool.most_at_once == 1
    assert order == ["read", "read", "read", "1", "2"]
    names = kinds(turn.events)
    assert names.index("ToolStarted") > len(names) - names[::-1].index("ToolCalled") - 1


async def test_call_whose_world_the_one_before_changed_still_runs(wire: str) -> None:
    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        edit.world += "x"
        return ToolResult(ok=True)

    edit = CountingTool("edit", work, edits_only=True)
    calls = (Call(name="edit", input={"n": 1}), Call(name="edit", input={"n": 2}))
    async with (
        serve(Answer.of(*calls), Answer.of("ok")) as service,
        agent(wire, service, tools=toolbox(edit)) as backend,
    ):
        turn = await drive(backend, MemoryTurn("hi", params={"mode": "accept_edits"}))
    assert edit.runs == [{"n": 1}, {"n": 2}]
    assert [result.ok for result in turn.of(ToolFinished)] == [True, True]
    assert {started.grant for started in turn.of(ToolStarted)} == {"mode:accept_edits"}


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


async def test_tool_with_a_name_no_service_takes_is_left_out(wire: str) -> None:
    box = toolbox(CountingTool("notes.search"), CountingTool("shell"))
    async with serve(Answer.of("ok")) as service, agent(wire, service, tools=box) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        assert len(service.bodies[0]["tools"]) == 1
    assert turn.error is None


async def test_step_limit_ends_the_turn_as_limited(wire: str) -> None:
    read = CountingTool("read", reads_only=True)
    endless = Answer(blocks=(Call(name="read"),), repeat=True)
    conduct = Conduct(step_limit=3)
    async with serve(endless) as service, agent(wire, service, tools=toolbox(read), conduct=conduct) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        assert len(service.requests) == 3
    assert turn.finished.outcome == "limited"
    assert turn.finished.error is not None
    assert turn.finished.error.code == "limit_reached"
    assert len(read.runs) == 3


# -- boundaries


async def test_message_at_a_boundary_joins_before_the_next_model_call(wire: str) -> None:
    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        turn.deliver("also this")
        return ToolResult(ok=True)

    turn = MemoryTurn("hi")
    script = (Answer.of(Call(name="read")), Answer.of("both done"))
    box = toolbox(CountingTool("read", work, reads_only=True))
    async with serve(*script) as service, agent(wire, service, tools=box) as backend:
        await drive(backend, turn)
        assert "also this" in str(service.bodies[1]["messages"][-1])
        assert len(service.requests) == 2


async def test_message_that_comes_during_the_last_answer_gets_its_own(wire: str) -> None:
    turn = MemoryTurn("hi")
    script = (Answer.of("half", Gate(name="g"), " and whole"), Answer.of("more"))
    async with serve(*script) as service, agent(wire, service) as backend, asyncio.TaskGroup() as tasks:
        tasks.create_task(drive(backend, turn))
        await service.gates.reached("g")
        turn.deliver("one more thing")
        service.gates.open("g")
    assert text_of(turn) == "hihalf and wholeone more thingmore"
    assert len(turn.of(TurnFinished)) == 1


# -- services that fail


def body_size(wire: str) -> int:
    """The bytes of the small answer that is cut below."""
    path = "/v1/messages" if wire == "anthropic" else "/v1/chat/completions"
    body: dict[str, Any] = {"model": "m", "stream_options": {"include_usage": True}}
    return sum(len(frame) for frame in FORMATS[path].frames(SMALL, body, 1) if isinstance(frame, bytes))


SMALL = Answer(blocks=(Think(text="hm"), Say(text="Hi."), Call(name="read", id="c1")), chunk_chars=2, burst=True)


async def test_answer_cut_at_any_byte_ends_whole_exactly_once(wire: str) -> None:
    """Every byte, ended properly or broken in turns. One step a turn: what follows the answer is tested elsewhere."""
    read = CountingTool("read", reads_only=True)
    conduct = Conduct(step_limit=1)
    async with serve() as service, agent(wire, service, tools=toolbox(read), conduct=conduct) as backend:
        for after_bytes in range(body_size(wire) + 1):
            read.runs.clear()
            service.requests.clear()
            service.script[:] = [replace(SMALL, fault=Cut(after_bytes=after_bytes, clean=after_bytes % 2 == 0)), SMALL]
            turn = await drive(backend, MemoryTurn("hi", params={"model": "m"}))
            where = f"cut after {after_bytes} bytes"
            assert turn.error is None, where
            assert [request.refused for request in service.requests if request.refused] == [], where
            shown = [message for message in turn.history if message.status != "superseded"]
            texts = [block.text for message in shown for block in message.blocks if isinstance(block, TextBlock)]
            assert texts == ["hi", "Hi."], where
            assert len(read.runs) == 1, where
            assert {message.status for message in shown} == {"done"}, where
            cut = [event for event in turn.of(AnswerFinished) if event.finish_reason == "cut"]
            assert all(event.interrupted for event in cut), where
            replaced = [event.replaces for event in turn.of(AnswerStarted) if event.replaces]
            assert replaced == [event.message for event in cut], where


async def test_cut_answer_stays_marked_when_retries_are_used_up(wire: str) -> None:
    cut = Answer(blocks=(Say(text="Half of an answer"),), chunk_chars=4, fault=Cut(after_bytes=700), repeat=True)
    conduct = Conduct(retry=RetryPolicy(attempts=3), chance=lambda: 1.0)
    async with serve(cut) as service, agent(wire, service, conduct=conduct) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        assert len(service.requests) == 3
    assert turn.error is not None
    assert turn.error.code == "stream_cut"
    last = turn.history[-1]
    assert last.status == "interrupted"
    assert isinstance(last.blocks[0], TextBlock)
    assert last.blocks[0].text
    assert last.blocks[0].status == "interrupted"
    assert [message.status for message in turn.history] == ["done", "superseded", "superseded", "interrupted"]
    assert [event.finish_reason for event in turn.of(AnswerFinished)] == ["cut"] * 3


async def test_words_that_arrived_together_with_the_failure_are_kept(wire: str) -> None:
    broken = Answer(blocks=(Say(text="Half an answer"),), chunk_chars=4, burst=True, fault=Malformed(after_frames=5))
    async with serve(broken, Answer.of("Whole")) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    first = turn.history[1]
    assert first.status == "superseded"
    assert isinstance(first.blocks[0], TextBlock)
    assert first.blocks[0].text.startswith("Half")


async def test_too_many_requests_waits_as_long_as_asked_and_shows_it(wire: str) -> None:
    script = (Answer.of(fault=Status(status=429, retry_after="7")), Answer.of("ok"))
    async with serve(*script) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert turn.pauses_s == [7.0]
    retries = [event.retry for event in turn.of(TurnStatus) if event.retry]
    assert [(retry.attempt, retry.of, retry.after_s) for retry in retries] == [(2, 5, 7.0)]
    assert "429" in retries[0].reason
    assert len(turn.of(AnswerStarted)) == 1
    assert turn.finished.outcome == "completed"


@pytest.mark.parametrize("status", [500, 503, 529])
async def test_broken_service_is_tried_a_bounded_number_of_times(wire: str, status: int) -> None:
    broken = Answer(fault=Status(status=status), repeat=True)
    async with serve(broken) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        assert len(service.requests) == 5
    assert turn.pauses_s == [1.0, 2.0, 4.0, 8.0]
    assert turn.error is not None
    assert (turn.error.code, turn.finished.outcome) == ("provider_unavailable", "failed")
    assert turn.of(AnswerStarted) == []


@pytest.mark.parametrize(
    "fault", [Hang(), Hang(after_bytes=600), Empty(), Malformed(after_frames=4), ErrorFrame(after_frames=4)]
)
async def test_misbehaving_stream_is_tried_again(wire: str, fault: Any) -> None:
    script = (Answer.of("Hello there", chunk_chars=2, fault=fault), Answer.of("Hello there"))
    # Long enough for a busy machine to give a good answer.
    read_timeout_s = 0.5 if isinstance(fault, Hang) else 20.0
    async with serve(*script) as service, agent(wire, service, read_timeout_s=read_timeout_s) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        assert len(service.requests) == 2
    assert turn.error is None
    visible = [message for message in turn.history if message.status == "done"]
    assert len(visible) == 2
    assert turn.finished.outcome == "completed"


async def test_service_that_is_no_model_service_is_said_at_once(wire: str) -> None:
    async with serve(Answer.of("x", fault=ContentType())) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        assert len(service.requests) == 1
    assert turn.error is not None
    assert turn.error.code == "protocol_broken"
    assert "text/html" in turn.error.message


async def test_wrong_key_is_said_at_once_and_never_shown(wire: str) -> None:
    async with serve(api_key="right") as service, agent(wire, service, key="wrong-secret") as backend:
        turn = await drive(backend, MemoryTurn("hi", params={"model": "m"}))
        assert len(service.requests) == 1
    assert turn.error is not None
    assert turn.error.code == "not_logged_in"
    assert "refused the key" in turn.error.message
    assert "wrong-secret" not in str(turn.error.wire())


async def test_unknown_model_is_named(wire: str) -> None:
    async with serve(any_model=False) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi", params={"model": "no-such"}))
    assert turn.error is not None
    assert turn.error.code == "provider_refused"
    assert "'no-such'" in turn.error.message


async def test_address_where_nobody_listens_is_named(wire: str) -> None:
    async with serve() as service:
        pass
    async with agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert turn.error is not None
    assert turn.error.code == "provider_unavailable"
    assert service.url in turn.error.message
    assert len(turn.pauses_s) == 2


async def test_context_too_long_is_said_in_plain_words(wire: str) -> None:
    too_long = Status(status=400, message="prompt is too long: 300000 tokens > 200000 maximum")
    async with serve(Answer.of(fault=too_long)) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert turn.error is not None
    assert "no longer fits" in turn.error.message
    assert turn.error.details["reason"] == "context_exceeded"


# -- stopping


async def test_cancel_in_mid_stream_closes_the_connection_and_tries_no_more(wire: str) -> None:
    answer = Answer.of("Hello ", Gate(name="never"), "there")
    turn = MemoryTurn("hi")
    async with serve(answer) as service, agent(wire, service) as backend:
        running = asyncio.create_task(drive(backend, turn))
        await turn.seen(TextDelta)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await service.requests[0].end()
        assert service.requests[0].closed_by_client
        turn.interrupt()
        assert len(service.requests) == 1
    assert turn.pauses_s == []
    last = turn.history[-1]
    assert isinstance(last.blocks[0], TextBlock)
    assert (last.status, last.blocks[0].text) == ("interrupted", "Hello ")


async def test_cancel_before_the_service_answers_closes_the_connection(wire: str) -> None:
    async with serve(Answer.of(fault=Hang())) as service, agent(wire, service) as backend:
        running = asyncio.create_task(drive(backend, MemoryTurn("hi")))
        await service.received(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await service.requests[0].end()
        assert service.requests[0].closed_by_client


async def test_closing_the_iteration_closes_the_connection(wire: str) -> None:
    async with serve(Answer.of("Hello ", Gate(name="never"), "there")) as service, agent(wire, service) as backend:
        async with aclosing(backend.run(MemoryTurn("hi"))) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        await service.requests[0].end()
        assert service.requests[0].closed_by_client


async def test_cancel_ends_a_running_tool_before_it_goes_on_up(wire: str) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        started.set()
        try:
            await asyncio.sleep(DRIVE_S)
        finally:
            ended.set()
        return ToolResult(ok=True)

    turn = MemoryTurn("hi", decide=allow)
    box = toolbox(CountingTool("shell", work))
    async with serve(Answer.of(FIRST)) as service, agent(wire, service, tools=box) as backend:
        running = asyncio.create_task(drive(backend, turn))
        async with asyncio.timeout(10):
            await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert ended.is_set()
        turn.interrupt()
    assert turn.of(ToolFinished)[0].effect == "unknown"


async def test_cancel_while_a_person_is_asked_leaves_no_task_behind(wire: str) -> None:
    before = asyncio.all_tasks()
    turn = MemoryTurn("hi")
    async with (
        serve(Answer.of(FIRST, FIRST)) as service,
        agent(wire, service, tools=toolbox(CountingTool("shell"))) as b,
    ):
        running = asyncio.create_task(drive(b, turn))
        await turn.opened(2)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not [task for task in asyncio.all_tasks() - before if task.get_name().startswith("request")]


# -- after a restart


async def stopped_while_asking(wire: str, service: ScriptedProvider, box: Toolbox) -> MemoryTurn:
    turn = MemoryTurn("hi")
    async with agent(wire, service, tools=box) as backend:
        running = asyncio.create_task(drive(backend, turn))
        await turn.opened(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    return turn


@pytest.mark.parametrize("verdict", ["allow", "deny"])
async def test_request_answered_after_a_restart_is_honoured(wire: str, verdict: str) -> None:
    shell = CountingTool("shell")
    box = toolbox(shell)
    async with serve(Answer.of("I look.", FIRST), Answer.of("There.")) as service:
        turn = await stopped_while_asking(wire, service, box)
        state = turn.restart()
        assert state.status == "waiting_user_input"
        request = state.requests[0]
        turn.resolve(allow(request) if verdict == "allow" else deny(request))
        trigger = Trigger(kind="request", request=request.id)
        async with agent(wire, service, tools=box) as backend:
            again = await drive(backend, MemoryTurn(state=turn.state, trigger=trigger))
        assert [known.refused for known in service.requests] == [None, None]
    assert len(shell.runs) == (1 if verdict == "allow" else 0)
    assert again.of(RequestOpened) == []
    assert len(again.of(ToolFinished)) == 1
    assert again.finished.outcome == "completed"
    tools = [block for message in again.history for block in message.blocks if isinstance(block, ToolBlock)]
    assert [tool.status for tool in tools] == ["ok" if verdict == "allow" else "denied"]


async def test_request_still_open_after_a_restart_is_waited_for_under_its_id(wire: str) -> None:
    """Of two waiting calls one was answered; the turn that goes on waits for the other."""
    shell = CountingTool("shell")
    box = toolbox(shell)
    calls = (FIRST, Call(name="shell", input={"command": "pwd"}))
    async with serve(Answer.of(*calls), Answer.of("There.")) as service:
        turn = await stopped_while_asking(wire, service, box)
        state = turn.restart()
        first, second = state.requests
        turn.resolve(allow(first))
        resumed = MemoryTurn(state=turn.state, trigger=Trigger(kind="request", request=first.id))
        async with agent(wire, service, tools=box) as backend, asyncio.TaskGroup() as tasks:
            tasks.create_task(drive(backend, resumed))
            (waiting,) = await resumed.opened(1)
            assert waiting.id == second.id
            resumed.resolve(allow(second))
    assert shell.runs == [{"command": "ls"}, {"command": "pwd"}]
    assert resumed.of(RequestOpened) == []
    assert resumed.finished.outcome == "completed"


async def test_yes_given_before_a_restart_is_void_when_the_world_changed(wire: str) -> None:
    shell = CountingTool("shell")
    box = toolbox(shell)
    async with serve(Answer.of(FIRST), Answer.of("There.")) as service:
        turn = await stopped_while_asking(wire, service, box)
        state = turn.restart()
        turn.resolve(allow(state.requests[0]))
        shell.world = "another"
        async with agent(wire, service, tools=box) as backend:
            again = await drive(backend, MemoryTurn(state=turn.state, decide=deny))
    assert shell.runs == []
    assert len(again.of(RequestOpened)) == 1


@pytest.mark.parametrize("settled", [True, False])
async def test_call_that_was_running_when_the_server_died_never_runs_again(wire: str, settled: bool) -> None:
    shell = CountingTool("shell")
    begun = MemoryTurn("hi")
    begun.accept(AnswerStarted(message="m"))
    begun.accept(ToolCalled(message="m", block=0, call="c", name="shell", input={"command": "ls"}))
    begun.accept(AnswerFinished(message="m", finish_reason="tool_calls"))
    begun.accept(ToolStarted(call="c", grant="rule"))
    await begun.committed()
    async with serve(Answer.of("ok")) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        state = begun.restart() if settled else begun.state
        again = await drive(backend, MemoryTurn("go on", state=state, decide=allow))
        told = tool_results(service.bodies[0])
    assert shell.runs == []
    assert told == ["Interrupted, effect unknown."]
    assert again.error is None

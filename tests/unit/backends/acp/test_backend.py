"""The ACP backend with a small agent of our own as a real process: permissions, stops, sessions, and bad manners."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from palaver.backends.acp import own_calls
from palaver.backends.acp.backend import AcpBackend
from palaver.backends.acp.installation import readiness
from palaver.backends.own_tools import NOT_WANTED
from palaver.clock import Clock, ManualClock, SystemClock
from palaver.errors import Exited, NotInstalled, ProviderRefused
from palaver.schema.commands import Answer
from palaver.schema.content import ImagePart, ImageUrl, TextPart
from palaver.schema.events import AnswerFinished, RequestResolved, TextDelta, ToolOutputDelta, ToolStarted
from palaver.schema.records import AgentRecord, PolicyRule
from palaver.schema.view import Request, TextBlock, ToolBlock
from palaver.tools.agents.ask_user import AskUser
from palaver.tools.agents.task import TaskTool
from palaver.tools.toolbox import Toolbox
from tests.provider.turn import MemoryTurn, allow, allow_always, deny, drive, leave_open

AGENT = Path(__file__).with_name("agent.py")
WAIT_S = 20.0
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Rig:
    def __init__(self, folder: Path, *flags: str, clock: Clock | None = None) -> None:
        self.sessions = folder / "sessions"
        self.sessions.mkdir(exist_ok=True)
        self.project = folder
        command = (sys.executable, str(AGENT), str(self.sessions), *flags)
        self.agent = AgentRecord(id="tester", name="Tester", backend="acp", command=command)
        box = Toolbox(tools={"task": TaskTool(lambda _: ()), "ask_user": AskUser()}) if "tools" in flags else None
        self.backend = AcpBackend(clock or SystemClock(), {"PATH": "/usr/bin:/bin"}, others=box)

    def turn(self, *said: Any, **more: Any) -> MemoryTurn:
        return MemoryTurn(*said, project=self.project, **{"agent": self.agent, **more})

    async def say(self, *said: Any, **more: Any) -> MemoryTurn:
        return await drive(self.backend, self.turn(*said, **more))

    async def stopped(self, turn: MemoryTurn, seen: Any) -> MemoryTurn:
        running = asyncio.create_task(drive(self.backend, turn))
        await (seen if asyncio.iscoroutine(seen) else turn.seen(seen))
        turn.interrupt()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        return turn

    def pids(self) -> list[int | None]:
        return [row.pid for row in self.backend.table()]

    async def restart(self) -> None:
        await self.backend.close()
        self.backend = AcpBackend(SystemClock(), {"PATH": "/usr/bin:/bin"})


@asynccontextmanager
async def rigged(folder: Path, *flags: str, clock: Clock | None = None) -> AsyncIterator[Rig]:
    rig = Rig(folder, *flags, clock=clock)
    try:
        yield rig
    finally:
        await rig.backend.close()


def said(turn: MemoryTurn) -> str:
    return "".join(
        block.text
        for message in turn.history
        if message.turn == turn.id and message.role == "assistant"
        for block in message.blocks
        if isinstance(block, TextBlock)
    )


def tool(turn: MemoryTurn) -> ToolBlock:
    (found,) = [block for message in turn.history for block in message.blocks if isinstance(block, ToolBlock)]
    return found


def deny_for_good(request: Request) -> RequestResolved:
    return RequestResolved(request=request.id, status="answered", verdict="deny", scope="conversation")


def deny_and_stop(request: Request) -> RequestResolved:
    return RequestResolved(request=request.id, status="answered", verdict="deny", then="stop")


def allow_something_else(request: Request) -> RequestResolved:
    return RequestResolved(request=request.id, status="answered", verdict="allow", input={"command": "other"})


@pytest.mark.parametrize(
    ("decide", "option"),
    [(allow, "o"), (allow_always, "o"), (deny, "r"), (deny_for_good, "n"), (allow_something_else, "r")],
)
async def test_permission_is_answered_by_kind(
    decide: Callable[[Request], RequestResolved], option: str, tmp_path: Path
) -> None:
    async with rigged(tmp_path) as rig:
        turn = await rig.say("permission", decide=decide)
    assert f'"optionId": "{option}"' in said(turn)
    (request,) = turn.state.requests
    assert request.scopes == ("once", "conversation")
    assert [offer.label for offer in request.offers] == ["exactly this command"]
    assert request.preview == "do it"


async def test_grant_is_on_disk_before_the_agent_is_told(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        turn = await rig.say("permission", decide=allow)
    (started,) = turn.of(ToolStarted)
    assert started.request == turn.state.requests[0].id
    assert turn.waited_for_seq >= started.seq


async def test_declining_for_good_ends_the_turn(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        turn = await rig.say("permission", decide=deny_and_stop)
    assert turn.finished.outcome == "interrupted"
    assert tool(turn).status == "denied"


async def test_stop_answers_open_permissions_itself(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        turn = rig.turn("permission", decide=leave_open)
        await rig.stopped(turn, turn.opened(1))
        before = rig.pids()
        after = await rig.say("still there", state=turn.state)
        assert rig.pids() == before
    assert said(after).startswith("heard: ")


async def test_stopped_agent_stays_and_its_late_words_are_lost(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        turn = rig.turn("forever")
        await rig.stopped(turn, TextDelta)
        before = rig.pids()
        after = await rig.say("next", state=turn.state)
        assert rig.pids() == before
    assert said(after) == "heard: next"
    assert "late words" not in str(turn.events) + str(after.events)


async def test_agent_that_does_not_stop_is_ended_and_resumed(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        first = await rig.say("one")
        turn = rig.turn("deaf", state=first.state)
        await rig.stopped(turn, TextDelta)
        assert rig.pids() == []
        after = await rig.say("next", state=turn.state)
    assert after.history[-1].data["session"] == first.history[-1].data["session"]
    assert "begun" in said(after), "what the session may not know is told"


async def test_agent_that_leaves_a_tool_running_is_ended(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        turn = rig.turn("abandon")
        await rig.stopped(turn, ToolOutputDelta)
        assert rig.pids() == []
    assert tool(turn).status == "interrupted"


async def test_noise_and_long_lines_do_no_harm(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        turn = await rig.say("noise")
    assert turn.error is None
    assert len(said(turn)) == 300_000
    assert max(len(event.text) for event in turn.of(TextDelta)) <= 16_000


async def test_failure_is_told_in_words_and_the_next_turn_works(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        turn = await rig.say("fail")
        after = await rig.say("next", state=turn.state)
    assert isinstance(turn.error, ProviderRefused)
    assert turn.error.message == "tester could not answer: bad request"
    assert said(after) == "heard: next"


async def test_agent_that_dies_says_why(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        turn = await rig.say("die")
        after = await rig.say("next", state=turn.state)
    assert isinstance(turn.error, Exited)
    assert "out of luck" in turn.error.message
    assert said(after).endswith("next")


async def test_cost_is_of_the_turn_even_after_a_restart(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        first = await rig.say("one")
        second = await rig.say("two", state=first.state)
        await rig.restart()
        third = await rig.say("three", state=second.state)
    assert [turn.of(AnswerFinished)[-1].cost_usd for turn in (first, second, third)] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("flags", [(), ("late",)], ids=["told", "told late"])
async def test_restarted_server_resumes_and_tells_nothing_twice(flags: tuple[str, ...], tmp_path: Path) -> None:
    async with rigged(tmp_path, *flags) as rig:
        first = await rig.say("one")
        await rig.restart()
        second = await rig.say("two", state=first.state)
        await rig.restart()
        third = await rig.say("three", state=second.state)
    assert said(second) == "heard: two"
    assert said(third) == "heard: three"
    assert third.history[-1].data["session"] == first.history[-1].data["session"]


async def test_agent_without_load_is_told_the_whole_record(tmp_path: Path) -> None:
    async with rigged(tmp_path, "noload") as rig:
        first = await rig.say("one")
        await rig.restart()
        second = await rig.say("two", state=first.state)
    assert "from the person, earlier]\none\n" in said(second)
    assert second.history[-1].data["session"] != first.history[-1].data["session"]


async def test_session_that_is_gone_is_begun_anew(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        first = await rig.say("one")
        (rig.sessions / first.history[-1].data["session"]).unlink()
        await rig.restart()
        second = await rig.say("two", state=first.state)
    assert "from the person, earlier]\none\n" in said(second)


@pytest.mark.parametrize("live", [True, False])
async def test_session_that_knows_what_was_taken_back_is_left(live: bool, tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        first = await rig.say("one")
        second = await rig.say("a slip", state=first.state)
        if not live:
            await rig.restart()
        taken_back = replace(second.state, messages=first.state.messages)
        third = await rig.say("two", state=taken_back)
    assert third.history[-1].data["session"] != first.history[-1].data["session"]
    assert "from the person, earlier]\none\n" in said(third)
    assert "slip" not in said(third)


@pytest.mark.parametrize("flags", [("fork",), ()])
async def test_branch_goes_on_with_a_copy_or_the_record(flags: tuple[str, ...], tmp_path: Path) -> None:
    async with rigged(tmp_path, *flags) as rig:
        first = await rig.say("one")
        data = {**first.history[-1].data, "conversation": "another"}
        *before, last = first.state.messages
        branch = replace(first.state, messages=(*before, replace(last, data=data)))
        await rig.restart()
        second = await rig.say("two", state=branch)
    session = second.history[-1].data["session"]
    assert session != data["session"]
    assert session.endswith("-copy") == bool(flags)
    assert ("from the person, earlier]\none\n" in said(second)) != bool(flags)


async def test_images_and_commands_reach_the_agent_as_they_are(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        content = (TextPart(text="/exit"), ImagePart(image_url=ImageUrl(url=PIXEL)))
        turn = await rig.say(content)
    assert said(turn) == "heard: [The person says:]\n/exit<image>"


@pytest.mark.parametrize(("mode", "told"), [("plan", ["plan"]), ("ask", []), ("full", []), (None, [])])
async def test_mode_is_the_agents_own_and_full_needs_the_server(
    mode: str | None, told: list[str], tmp_path: Path
) -> None:
    async with rigged(tmp_path) as rig:
        await rig.say("hello", params={"mode": mode} if mode else None)
        modes = rig.sessions / "modes"
        assert (modes.read_text().split() if modes.exists() else []) == told


async def test_missing_program_is_said_with_what_to_do(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        agent = replace(rig.agent, command=("no-such-agent", "acp"))
        turn = await rig.say("hello", agent=agent)
    assert isinstance(turn.error, NotInstalled)
    assert "no-such-agent was not found" in turn.error.message
    path = {"PATH": "/usr/bin:/bin"}
    assert not readiness(path, agent).ready
    assert not readiness(path, replace(agent, command=())).ready
    assert readiness(path, replace(agent, command=("sh",))).ready
    assert readiness(path).ready


@pytest.mark.parametrize(
    ("rule", "option", "status"),
    [
        (PolicyRule(tool="shell", decision="allow", match="do it"), "o", "error"),
        (PolicyRule(tool="shell", decision="deny_continue", match="do *"), "r", "denied"),
    ],
)
async def test_rules_of_the_record_decide_without_a_person(
    rule: PolicyRule, option: str, status: str, tmp_path: Path
) -> None:
    async with rigged(tmp_path) as rig:
        turn = await rig.say("permission", agent=replace(rig.agent, policy=(rule,)))
    assert f'"optionId": "{option}"' in said(turn)
    assert not turn.state.requests
    assert tool(turn).status == status


async def test_plan_mode_refuses_what_is_more_than_reading(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        turn = await rig.say("permission", params={"mode": "plan"}, decide=allow)
    assert tool(turn).status == "denied"
    assert not turn.state.requests


@pytest.mark.parametrize("order", ["task told", "task untold"])
async def test_task_is_given_whether_or_not_the_agent_tells_of_the_call(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_calls, "TOLD_S", 10.0 if order == "task told" else 0.1)
    async with rigged(tmp_path, "tools") as rig:
        turn = await rig.say(order)
    ((agent, prompt, call),) = turn.tasks
    assert (agent, prompt) == (None, "Count the tides.")
    assert "reports:" in said(turn)
    if order == "task told":
        assert (tool(turn).call, tool(turn).status) == (call, "ok")
        assert turn.of(ToolStarted)[0].grant == "reads_only"
        assert turn.waited_for_seq >= turn.of(ToolStarted)[0].seq


async def test_agents_word_of_a_call_is_awaited_on_the_clock_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_calls, "TOLD_S", 3600.0)
    clock = ManualClock()
    async with rigged(tmp_path, "tools", clock=clock) as rig:
        turn = rig.turn("task untold")
        running = asyncio.create_task(drive(rig.backend, turn))
        async with asyncio.timeout(WAIT_S):
            while not running.done():
                await clock.advance(own_calls.TOLD_S)
                await asyncio.wait({running}, timeout=0.01)
    assert [prompt for _, prompt, _ in turn.tasks] == ["Count the tides."]


@pytest.mark.parametrize("order", ["task told", "task untold"])
async def test_task_that_a_rule_forbids_is_not_given(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_calls, "TOLD_S", 10.0 if order == "task told" else 0.1)
    async with rigged(tmp_path, "tools") as rig:
        agent = replace(rig.agent, policy=(PolicyRule(tool="task", decision="deny_continue"),))
        turn = await rig.say(order, agent=agent)
    assert not turn.tasks
    assert turn.error is None
    if order == "task told":
        assert tool(turn).status == "denied"


@pytest.mark.parametrize(("decide", "given"), [(allow, 1), (deny, 0)])
async def test_task_that_a_rule_asks_about_is_asked_about(
    decide: Callable[[Request], RequestResolved], given: int, tmp_path: Path
) -> None:
    async with rigged(tmp_path, "tools") as rig:
        agent = replace(rig.agent, policy=(PolicyRule(tool="task", decision="ask"),))
        turn = await rig.say("task told", agent=agent, decide=decide)
    (request,) = turn.state.requests
    assert (request.tool, request.scopes) == ("palaver_task", ("once",))
    assert len(turn.tasks) == given


# -- questions through our own tool


def ebb(request: Request) -> RequestResolved:
    answers = (Answer(question_index=0, selected=("Ebb",)),)
    return RequestResolved(request=request.id, status="answered", verdict="allow", answers=answers)


@pytest.mark.parametrize("order", ["question told", "question untold"])
async def test_question_of_the_agent_is_put_and_the_answer_is_its_result(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_calls, "TOLD_S", 10.0 if order == "question told" else 0.1)
    async with rigged(tmp_path, "tools") as rig:
        turn = await rig.say(order, decide=ebb)
    (request,) = turn.state.requests
    assert (request.kind, request.tool, request.agent, request.title) == (
        "question",
        "ask_user",
        "tester",
        "Which tide?",
    )
    assert [option.label for option in request.questions[0].options] == ["Ebb", "Flow"]
    assert '"chosen": ["Ebb"]' in said(turn)
    if order == "question told":
        assert (tool(turn).call, tool(turn).status) == (request.call, "ok")
        assert '"chosen": ["Ebb"]' in tool(turn).output


async def test_question_is_stopped_with_its_turn(tmp_path: Path) -> None:
    async with rigged(tmp_path, "tools") as rig:
        turn = rig.turn("question told")
        stopped = await rig.stopped(turn, turn.opened(1))
        after = await rig.say("hello", state=stopped.state)
    assert [request.status for request in stopped.state.requests] == ["cancelled"]
    assert "heard:" in said(after)


async def test_question_that_the_agent_gives_up_is_taken_back_while_the_turn_goes_on(tmp_path: Path) -> None:
    async with rigged(tmp_path, "tools") as rig:
        turn = rig.turn("question given up")
        running = asyncio.create_task(drive(rig.backend, turn))
        waiting = {request.kind: request for request in await turn.opened(2)}
        turn.resolve(allow(waiting["approval"]))
        async with asyncio.timeout(WAIT_S):
            while waiting["question"].status == "open":
                await asyncio.wait({running}, timeout=0.01)
                waiting = {request.kind: request for request in turn.state.requests}
        assert not running.done()
        turn.interrupt()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    assert waiting["question"].status == "cancelled"
    assert waiting["question"].resolution is not None
    assert waiting["question"].resolution.text == NOT_WANTED

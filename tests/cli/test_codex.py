"""What only Codex does: patches, many threads in one process, forks, a lasting yes, retries. Real, with a scripted model."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from palaver.backends.codex.backend import CodexBackend
from palaver.clock import ManualClock
from palaver.core.fold.evolve import fold
from palaver.errors import Exited
from palaver.schema.base import Decision, Usage
from palaver.schema.content import as_content
from palaver.schema.events import (
    AnswerFinished,
    ContextMeasured,
    FilesChanged,
    GrantAdded,
    MessageEdited,
    RequestResolved,
    TextDelta,
    ToolStarted,
    TurnStatus,
)
from palaver.schema.records import McpServer, PolicyRule
from palaver.schema.view import Request, TextBlock
from tests.cli.rig import START_S, Stand, running, said, stand, tools, until
from tests.cli.subjects.codex import SUBJECT, environment_of, patch, shell
from tests.provider import Answer, Cut, Gate
from tests.provider.turn import MemoryTurn, allow, allow_always, deny, drive, leave_open

pytestmark = [pytest.mark.cli, pytest.mark.timeout(90)]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ADD = "*** Begin Patch\n*** Add File: tide.txt\n+low\n*** End Patch\n"
MOVE = "*** Begin Patch\n*** Update File: tide.txt\n*** Move to: high.txt\n@@\n-low\n+high\n*** End Patch\n"


class OtherTurn(MemoryTurn):
    """Of another conversation."""

    name = "other"

    @property
    def conversation(self) -> str:
        return self.name


@asynccontextmanager
async def codex(tmp_path: Path, *script: Answer) -> AsyncIterator[Stand]:
    async with stand(SUBJECT, tmp_path, *script) as at_work:
        yield at_work


def deny_and_stop(request: Request) -> RequestResolved:
    return RequestResolved(request=request.id, status="answered", verdict="deny", then="stop")


def pid_of(at_work: Stand) -> int:
    (row,) = cast(CodexBackend, at_work.backend).table()
    assert row.pid is not None
    return row.pid


def running_with(word: str) -> Iterator[str]:
    """Commands run in a process namespace of their own, so they are known by their words, not their ids."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"sleep", word.encode()]:
                yield process.name


async def bodies_of(at_work: Stand, turn: MemoryTurn) -> str:
    """What the model was shown in that turn."""
    before = len(at_work.place.service.requests)
    await drive(at_work.backend, turn)
    assert turn.error is None
    return str([body["input"] for body in at_work.place.service.bodies[before:]])


async def test_patch_is_asked_about_with_its_diff_and_told_as_changed_files(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        turn = await at_work.say(patch(ADD), decide=allow)
        moved = await at_work.say(patch(MOVE), decide=allow, state=turn.state)
        assert (at_work.place.project / "high.txt").read_text() == "high\n"
    (request,) = turn.state.requests
    assert (request.tool, request.title) == ("apply_patch", "Change tide.txt")
    assert "+low" in (request.preview or "")
    assert [(file.path, file.kind) for event in turn.of(FilesChanged) for file in event.files] == [
        ("tide.txt", "created")
    ]
    (change,) = tools(moved)[0].changes
    assert (change.path, change.kind, change.additions, change.deletions) == ("high.txt", "renamed", 1, 1)


async def test_denied_patch_changes_nothing(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        turn = await at_work.say(patch(ADD), decide=deny)
        assert not (at_work.place.project / "tide.txt").exists()
        told = str(at_work.place.service.bodies)
    assert [tool.status for tool in tools(turn)] == ["denied"]
    assert turn.finished.outcome == "completed"
    assert "not now" in told, "the person's reason reaches the model"


async def test_denial_that_stops_ends_the_turn(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        turn = await at_work.say(shell("touch no.txt"), decide=deny_and_stop)
        assert not (at_work.place.project / "no.txt").exists()
        after = await at_work.say("!say Still here.", state=turn.state)
    assert turn.finished.outcome == "interrupted"
    assert turn.finished.summary == "Run touch no.txt was declined."
    assert [tool.status for tool in tools(turn)] == ["denied"]
    assert said(after) == "Still here."


async def test_yes_for_the_conversation_holds_through_a_restart(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        first = await at_work.say(shell("echo ebb"), decide=allow_always)
        second = await at_work.say(shell("echo ebb"), decide=leave_open, state=first.state)
        await at_work.restart()
        third = await at_work.say(shell("echo ebb"), decide=leave_open, state=second.state)
        other = await at_work.say(shell("echo flow"), decide=deny, state=third.state)
    assert [(grant.tool, grant.match) for grant in first.of(GrantAdded)] == [("shell", "echo ebb")]
    assert [[tool.status for tool in tools(turn)] for turn in (first, second, third)] == [["ok"], ["ok"], ["ok"]]
    assert [event.grant for event in third.of(ToolStarted)] == ["conversation"]
    assert [tool.status for tool in tools(other)] == ["denied"], "another command is asked about"


@pytest.mark.parametrize(("decision", "outcome"), [("deny_continue", "completed"), ("deny_abort", "interrupted")])
async def test_rule_that_forbids_a_command_is_obeyed_unasked(decision: Decision, outcome: str, tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        rule = PolicyRule(tool="shell", decision=decision, match="touch *")
        agent = replace(SUBJECT.agent, policy=(rule,))
        turn = MemoryTurn(shell("touch no.txt"), project=at_work.place.project, agent=agent, decide=leave_open)
        await drive(at_work.backend, turn)
        assert not (at_work.place.project / "no.txt").exists()
    assert not turn.state.requests
    assert [tool.status for tool in tools(turn)] == ["denied"]
    assert turn.finished.outcome == outcome


async def test_accepted_edits_are_not_asked_about_but_commands_are(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        turn = await at_work.say(patch(ADD), decide=leave_open, params={"mode": "accept_edits"})
        assert (at_work.place.project / "tide.txt").exists()
        asked = await at_work.say(shell("echo hi"), decide=allow, state=turn.state)
    assert not turn.state.requests
    assert [event.grant for event in turn.of(ToolStarted)] == ["mode:accept_edits"]
    assert [request.tool for request in asked.state.requests] == ["shell"]


@pytest.mark.parametrize("mode", ["auto", "full"])
async def test_mode_that_trusts_lets_a_command_write_without_asking(mode: str, tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        turn = await at_work.say(shell("echo hi > out.txt"), decide=leave_open, params={"mode": mode})
        assert (at_work.place.project / "out.txt").exists()
    assert [event.grant for event in turn.of(ToolStarted)] == [f"mode:{mode}"]


async def test_edit_through_a_link_out_of_the_project_is_asked_about(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        outside = at_work.place.home / "outside"
        outside.mkdir()
        (at_work.place.project / "link").symlink_to(outside)
        order = patch(ADD.replace("tide.txt", "link/tide.txt"))
        turn = await at_work.say(order, decide=deny, params={"mode": "accept_edits"})
        assert not (outside / "tide.txt").exists()
    assert [request.tool for request in turn.state.requests] == ["apply_patch"]


async def test_planning_reads_and_cannot_write(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        (at_work.place.project / "tide.txt").write_text("low\n")
        read = await at_work.say(shell("cat tide.txt"), decide=leave_open, params={"mode": "plan"})
        turn = await at_work.say(shell("echo high > tide.txt"), decide=leave_open, state=read.state)
        assert (at_work.place.project / "tide.txt").read_text() == "low\n"
    assert [(tool.status, tool.output) for tool in tools(read)] == [("ok", "low\n")]
    assert read.finished.outcome == turn.finished.outcome == "plan"


async def test_mode_that_changes_holds_from_the_next_turn_on(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        planned = await at_work.say("!say First this, then that.", params={"mode": "plan"})
        turn = await at_work.say(
            shell("echo hi > out.txt"), state=planned.state, params={"mode": "full"}, decide=leave_open
        )
        assert (at_work.place.project / "out.txt").exists()
    assert planned.finished.outcome == "plan"
    assert [tool.status for tool in tools(turn)] == ["ok"]


async def test_usage_is_the_turns_own_and_the_context_is_measured(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        first = await at_work.say(shell("echo hi"), decide=allow)
        second = await at_work.say("!say Hi.", state=first.state)
        await at_work.restart()
        third = await at_work.say("!say Hi.", state=second.state)
    assert first.finished.usage == Usage(input_tokens=20, output_tokens=10)
    assert second.finished.usage == third.finished.usage == Usage(input_tokens=10, output_tokens=5)
    assert [(event.used_tokens, event.estimated) for event in second.of(ContextMeasured)] == [(15, False)]


async def test_cut_attempt_is_replaced_by_the_next(tmp_path: Path) -> None:
    text = "The tide comes in twice a day, and goes out twice as well."
    cut = Answer.of(text, fault=Cut(after_bytes=1800), when="Tell me")
    whole = Answer.of(text, when="Tell me")
    async with codex(tmp_path, cut, whole) as at_work:
        turn = await at_work.say("Tell me")
    assert turn.error is None
    attempts = [message for message in turn.history if message.role == "assistant"]
    assert [message.status for message in attempts] == ["superseded", "done"]
    assert said(turn) == text
    assert [event.retry.attempt for event in turn.of(TurnStatus) if event.retry] == [2]


async def test_tool_servers_of_the_agent_are_started_for_its_conversations(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        told = at_work.place.project / "told"
        server = McpServer(
            name="tides", command=("sh", "-c", 'echo "$TIDE" > "$0"', str(told)), environment={"TIDE": "ebb"}
        )
        agent = replace(SUBJECT.agent, mcp_servers=(server,))
        turn = MemoryTurn("!say Hi.", project=at_work.place.project, agent=agent)
        await drive(at_work.backend, turn)
        await until(lambda: told.exists() and told.read_text() == "ebb\n")
    assert turn.error is None


async def test_history_that_was_taken_back_is_forgotten(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        place: dict[str, Any] = {"project": at_work.place.project, "agent": SUBJECT.agent}
        kept = await at_work.say("!say Kept.")
        await at_work.say("!say Taken back.", state=kept.state)
        await at_work.restart()
        shown = await bodies_of(at_work, MemoryTurn("!say Anew.", state=kept.state, **place))
    assert "Kept." in shown
    assert "Taken back." not in shown


async def test_message_that_was_edited_is_known_as_it_reads_now(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        place: dict[str, Any] = {"project": at_work.place.project, "agent": SUBJECT.agent}
        first = await at_work.say("The harbour is open.")
        said_first = next(message for message in first.history if message.role == "user")
        edit = MessageEdited(
            message=said_first.id, content=as_content("The harbour is closed."), seq=first.state.seq + 1
        )
        turn = MemoryTurn("!say Noted.", state=fold(first.state, [edit]), **place)
        shown = await bodies_of(at_work, turn)
    assert "The harbour is closed." in shown
    assert "'text': 'The harbour is open.'" not in shown


async def test_thread_that_codex_lost_is_told_anew(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        first = await at_work.say("!say The harbour is closed.")
        await at_work.restart()
        for kept in (at_work.place.home / ".codex" / "sessions").rglob("*.jsonl"):
            kept.unlink()
        for kept in (at_work.place.home / ".codex").glob("*.sqlite*"):
            kept.unlink()
        turn = MemoryTurn("!say Noted.", state=first.state, project=at_work.place.project, agent=SUBJECT.agent)
        shown = await bodies_of(at_work, turn)
    assert "The harbour is closed." in shown
    assert said(turn) == "Noted."


async def test_stopped_command_is_ended_and_its_neighbour_goes_on(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        place: dict[str, Any] = {"project": at_work.place.project, "agent": SUBJECT.agent}
        neighbour = OtherTurn(shell("sleep 311.5 & touch there; wait"), decide=allow, **place)
        beside = asyncio.create_task(drive(at_work.backend, neighbour))
        await until((at_work.place.project / "there").exists)
        turn = at_work.turn(shell("sleep 311.7 & touch here; wait"), decide=allow)
        await at_work.interrupted(turn, lambda: until((at_work.place.project / "here").exists))
        await until(lambda: not list(running_with("311.7")))
        assert list(running_with("311.5")), "a stop is one conversation's own"
        assert len(cast(CodexBackend, at_work.backend).table()) == 1
        after = await at_work.say("!say Again.", state=turn.state)
        neighbour.interrupt()
        beside.cancel()
        await asyncio.wait({beside})
        await until(lambda: not list(running_with("311.5")))
    assert [tool.status for tool in tools(turn)] == ["interrupted"]
    assert said(after) == "Again."


async def test_three_conversations_at_once_share_one_process(tmp_path: Path) -> None:
    held = [Answer.of("Held ", Gate(name="gate"), f"and let go {name}.", when=f"Hold {name}") for name in "abc"]
    async with codex(tmp_path, *held) as at_work:
        turns: list[OtherTurn] = []
        for name in "abc":
            turn = OtherTurn(f"Hold {name}", project=at_work.place.project, agent=SUBJECT.agent)
            turn.name = name
            turns.append(turn)
        driven = [asyncio.create_task(drive(at_work.backend, turn)) for turn in turns]
        for turn in turns:
            await turn.seen(TextDelta)
        assert len(cast(CodexBackend, at_work.backend).table()) == 1
        at_work.place.service.gates.open("gate")
        await asyncio.gather(*driven)
    assert [said(turn).endswith(f"{turn.name}.") for turn in turns] == [True, True, True]


async def test_program_that_dies_fails_the_turn_in_words_and_the_next_resumes(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        first = await at_work.say("!say The neap tide.")
        dead = pid_of(at_work)
        turn = at_work.turn("!slow 0.05\n!long 400", state=first.state)
        driven = asyncio.create_task(drive(at_work.backend, turn))
        await turn.seen(TextDelta)
        os.kill(dead, signal.SIGKILL)
        await driven
        after = MemoryTurn("!say Back.", state=turn.state, project=at_work.place.project, agent=SUBJECT.agent)
        shown = await bodies_of(at_work, after)
        assert pid_of(at_work) != dead
    assert isinstance(turn.error, Exited)
    assert "The next message starts it again" in turn.error.message
    assert [block.status for m in turn.history for block in m.blocks if isinstance(block, TextBlock)][
        -1
    ] == "interrupted"
    assert "The neap tide." in shown
    assert said(after) == "Back."


async def test_message_that_comes_with_the_last_word_is_still_answered(tmp_path: Path) -> None:
    async with codex(tmp_path) as at_work:
        turn = at_work.turn("!say First.")
        # Counted as they come: what was accepted is committed only later, when many lines arrive at once.
        answers = 0
        async with asyncio.timeout(START_S), aclosing(cast(Any, at_work.backend.run(turn))) as events:
            async for event in events:
                turn.accept(event)
                if isinstance(event, AnswerFinished):
                    answers += 1
                    if answers == 1:
                        turn.deliver("!say Second.")
        await turn.committed()
    assert answers == 2
    assert "First." in said(turn)
    assert "Second." in said(turn)
    assert turn.finished.outcome == "completed"


async def test_command_that_outlives_its_turn_is_said_to_run_on(tmp_path: Path) -> None:
    order = '!tool exec_command {"cmd": "sleep 311.9", "yield_time_ms": 300}'
    async with codex(tmp_path) as at_work:
        turn = await at_work.say(order, decide=allow)
        assert list(running_with("311.9"))
        (tool,) = tools(turn)
        assert (tool.status, "still runs" in tool.output) == ("ok", True)
        await at_work.leave()
        await until(lambda: not list(running_with("311.9")))


async def test_idle_codex_is_kept_while_a_command_of_its_own_runs_and_then_let_go(tmp_path: Path) -> None:
    clock, mark = ManualClock(), "8642.5"
    command = f'!tool exec_command {{"cmd": "sleep {mark}", "yield_time_ms": 250}}'
    async with codex(tmp_path) as at_work, asyncio.timeout(START_S):
        backend = CodexBackend(clock, environment_of(at_work.place), idle_s=60)
        try:
            await drive(backend, at_work.turn(f"{command}\n---\n!say It runs.", decide=allow))
            (sleeping,) = running(mark)
            # Several sweeps, each of which asks the program.
            for _ in range(5):
                await clock.advance(120)
                await backend._programs.let_idle_go()
            assert running(mark) == [sleeping]
            assert [row.busy for row in backend.table()] == [False]
            os.kill(sleeping, signal.SIGTERM)
            await until(lambda: not running(mark))
            while backend.table():
                await backend._programs.let_idle_go()
        finally:
            await backend.close()

"""What only Claude Code does, over the real program: its rules, its questions, its subagents, its sessions."""

import asyncio
import base64
import os
import shlex
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from palaver.approval.policy import Policy, Rule
from palaver.approval.program_calls import Judging
from palaver.approval.turn_grants import Grants
from palaver.backends.claude.backend import ClaudeBackend
from palaver.backends.claude.events import RULES_GRANT
from palaver.core.fold.evolve import fold
from palaver.errors import NotLoggedIn
from palaver.schema.base import Then
from palaver.schema.commands import Answer as Answered
from palaver.schema.events import (
    FilesChanged,
    GrantAdded,
    MessageTruncated,
    ProcessFinished,
    ProcessStarted,
    RequestOpened,
    RequestResolved,
    TextDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    TurnStatus,
)
from palaver.schema.view import Request, State, Trigger
from palaver.tools.base import Passage
from tests.cli.rig import said, stand, tools, until
from tests.cli.subjects.claude import SUBJECT
from tests.provider import Answer, Call, Gate, Status
from tests.provider.turn import Decide, MemoryTurn, allow, allow_always, deny, drive, leave_open

pytestmark = [pytest.mark.cli, pytest.mark.timeout(180)]

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def order(tool: str, given: Mapping[str, Any]) -> str:
    return f"!tool {tool} {msgspec.json.encode(given).decode()}"


def answering(**fields: Any) -> Decide:
    def decide(request: Request) -> RequestResolved:
        return RequestResolved(request=request.id, status="answered", verdict="allow", **fields)

    return decide


def session_of(state: State) -> str:
    marks = [message.data for message in state.messages if isinstance(message.data, dict)]
    return str(marks[-1]["session"])


async def test_edited_input_is_what_runs(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        decide = answering(input={"command": "echo changed > b.txt"})
        turn = await at_work.say(SUBJECT.shell("echo asked > a.txt"), decide=decide)
        assert not (at_work.place.project / "a.txt").exists()
        assert (at_work.place.project / "b.txt").read_text() == "changed\n"
    assert [tool.status for tool in tools(turn)] == ["ok"]


async def test_lasting_yes_holds_for_the_conversation_and_through_a_restart(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        command = order("Bash", {"command": "touch made.txt"})
        first = await at_work.say(command, decide=allow_always)
        again = await at_work.say(command, state=first.state, decide=leave_open)
        await at_work.restart()
        after = await at_work.say(command, state=again.state, decide=leave_open)
    (grant,) = first.of(GrantAdded)
    assert (grant.tool, grant.match, grant.scope) == ("shell", "touch made.txt", "conversation")
    assert not again.of(RequestOpened)
    assert not after.of(RequestOpened)
    assert _grants(again) == _grants(after) == ["conversation"]
    assert not list(at_work.place.project.glob(".claude/settings*"))


async def test_call_that_its_rules_let_through_is_on_record_while_it_runs(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        turn = at_work.turn(order("Bash", {"command": "sleep 1.9; echo slept"}), decide=leave_open)
        await at_work.interrupted(turn, lambda: turn.seen(ToolStarted))
    assert not turn.of(RequestOpened)
    assert [started.grant for started in turn.of(ToolStarted)] == [RULES_GRANT]
    (finished,) = turn.of(ToolFinished)
    assert (finished.ok, finished.effect) == (False, "unknown")


async def test_no_that_stops_ends_the_turn(tmp_path: Path) -> None:
    then: Then = "stop"

    def decline(request: Request) -> RequestResolved:
        return RequestResolved(request=request.id, status="answered", verdict="deny", then=then)

    async with stand(SUBJECT, tmp_path) as at_work:
        turn = await at_work.say(SUBJECT.shell("touch a.txt"), decide=decline)
        after = await at_work.say("!say Again.", state=turn.state)
    assert turn.error is None
    assert turn.finished.outcome == "interrupted"
    assert [tool.status for tool in tools(turn)] == ["denied"]
    assert said(after).strip() == "Again."


async def test_retry_is_shown(tmp_path: Path) -> None:
    busy = Answer.of(fault=Status(status=529, message="Overloaded"), when="Be patient")
    async with stand(SUBJECT, tmp_path, busy) as at_work:
        turn = await at_work.say("Be patient\n!say Here.")
    (shown,) = [status for status in turn.of(TurnStatus) if status.retry]
    assert shown.retry is not None
    assert shown.retry.attempt == 1
    assert "529" in shown.retry.reason


async def test_cost_is_of_the_turn_and_not_of_the_session(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        first = await at_work.say("!say One.")
        second = await at_work.say("!say Two.", state=first.state)
        await at_work.restart()
        third = await at_work.say("!say Three.", state=second.state)
    costs = [turn.finished.cost_usd for turn in (first, second, third)]
    assert costs[0]
    assert costs == pytest.approx([costs[0]] * 3)
    assert second.finished.usage == first.finished.usage


async def test_subagent_speaks_in_its_own_place_and_what_follows_it_is_part_of_the_turn(tmp_path: Path) -> None:
    sent = {"description": "look around", "prompt": "SUBAGENT: where are you?", "subagent_type": "general-purpose"}
    script = (
        Answer.of(Call(name="Agent", input=sent), when="delegate"),
        Answer.of(Call(name="Bash", input={"command": "touch from-subagent"}), when="SUBAGENT"),
        Answer.of("The subagent says hello.", when="SUBAGENT"),
        Answer.of("It is on its way.", when="delegate"),
        Answer.of("It came back.", when="task-notification"),
    )
    async with stand(SUBJECT, tmp_path, *script) as at_work:
        turn = await at_work.say("delegate it", decide=allow)
        assert (at_work.place.project / "from-subagent").exists()
        after = await at_work.say("!say Next.", state=turn.state)
    (tool,) = tools(turn)
    assert tool.status == "ok"
    assert "The subagent says hello." in tool.output
    streamed = "".join(event.text for event in turn.of(ToolOutputDelta))
    assert "touch from-subagent" in streamed
    (opened,) = turn.of(RequestOpened)
    assert opened.call == tool.call
    assert (opened.title or "").startswith("Subagent:")
    assert "subagent says" not in said(turn)
    assert said(turn).split("\n") == ["It is on its way.", "It came back."]
    assert turn.finished.outcome == "completed"
    assert said(after) == "Next."


async def test_background_command_yields_and_the_next_turn_reads_what_it_woke(tmp_path: Path) -> None:
    script = (
        Answer.of(Call(name="Bash", input={"command": "sleep 1; echo x", "run_in_background": True}), when="begin"),
        Answer.of("Begun.", when="begin"),
        Answer.of("It is over.", when="task-notification"),
    )
    async with stand(SUBJECT, tmp_path, *script) as at_work:
        turn = await at_work.say("begin", decide=allow)
        (started,) = turn.of(ProcessStarted)
        await turn.until(lambda: bool(turn.processes_ended))
        following = at_work.turn(state=turn.state, trigger=Trigger(kind="process"))
        await drive(at_work.backend, following)
        after = await at_work.say("!say Next.", state=following.state)
    assert turn.finished.outcome == "yielded"
    assert [(process, code) for process, code, _ in turn.processes_ended] == [(started.process, 0)]
    assert said(following) == "It is over."
    assert following.finished.outcome == "completed"
    assert said(after) == "Next."


async def test_message_after_it_woke_by_itself_is_answered_and_both_are_kept(tmp_path: Path) -> None:
    script = (
        Answer.of(Call(name="Bash", input={"command": "sleep 1; echo x", "run_in_background": True}), when="begin"),
        Answer.of("Begun.", when="begin"),
        Answer.of("It is over.", when="task-notification"),
    )
    async with stand(SUBJECT, tmp_path, *script) as at_work:
        turn = await at_work.say("begin", decide=allow)
        await turn.until(lambda: bool(turn.processes_ended))
        after = await at_work.say("!say Next.", state=turn.state)
    assert said(after).split("\n") == ["It is over.", "Next."]


async def test_stop_ends_what_the_turn_left_in_the_background(tmp_path: Path) -> None:
    command = "echo $$ > pid; sleep 300"
    script = (
        Answer.of(Call(name="Bash", input={"command": command, "run_in_background": True}), when="begin"),
        Answer.of(Gate(name="never"), "Begun.", when="begin"),
    )
    async with stand(SUBJECT, tmp_path, *script) as at_work:
        pid = at_work.place.project / "pid"

        async def at_work_in_the_background() -> None:
            await turn.seen(ProcessStarted)
            await until(lambda: pid.exists() and bool(pid.read_text().strip()))

        turn = at_work.turn("begin", decide=allow)
        await at_work.interrupted(turn, at_work_in_the_background)
        process = Path("/proc") / pid.read_text().strip()
        await until(lambda: not process.exists())
        after = await at_work.say("!say Again.", state=turn.state)
    assert [event.end for event in turn.of(ProcessFinished)] == ["stopped"]
    assert said(after).endswith("Again.")


async def test_stop_reaches_a_process_that_left_its_group_and_ignores_signals(tmp_path: Path) -> None:
    hidden = "(trap '' TERM INT HUP; echo $BASHPID > pid; sleep 300; sleep 300)"
    async with stand(SUBJECT, tmp_path) as at_work:
        pid = at_work.place.project / "pid"
        command = f"export -n X; setsid bash -c {shlex.quote(hidden)} & wait"
        turn = at_work.turn(order("Bash", {"command": command}), decide=allow)
        await at_work.interrupted(turn, lambda: until(lambda: pid.exists() and bool(pid.read_text().strip())))
        # The stop has returned: nothing of the turn is left.
        assert not (Path("/proc") / pid.read_text().strip()).exists()
        after = await at_work.say("!say Again.", state=turn.state)
    assert said(after).endswith("Again.")


class Elsewhere(MemoryTurn):
    @property
    def conversation(self) -> str:
        return "branch"


async def test_branch_goes_on_in_a_session_of_its_own(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        first = await at_work.say("!say Spring tide.")
        branch = Elsewhere("!say Here too.", project=at_work.place.project, agent=SUBJECT.agent, state=first.state)
        asked = len(at_work.place.service.requests)
        await drive(at_work.backend, branch)
        told = str(at_work.place.service.bodies[asked:])
        trunk = await at_work.say("!say Still here.", state=first.state)
    assert said(branch) == "Here too."
    assert "Spring tide" in told
    assert "went on elsewhere" not in told
    assert session_of(branch.state) != session_of(first.state)
    assert session_of(trunk.state) == session_of(first.state)
    assert branch.finished.cost_usd == pytest.approx(first.finished.cost_usd)


async def test_what_was_taken_back_is_forgotten(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        first = await at_work.say("!say Ebb.")
        second = await at_work.say("!say Flood.", state=first.state)
        count = len(first.state.messages)
        cut = fold(second.state, (MessageTruncated(seq=second.state.seq + 1, index=count),))
        asked = len(at_work.place.service.requests)
        third = await at_work.say("!say Slack.", state=cut)
        told = str([body["messages"] for body in at_work.place.service.bodies[asked:]])
    assert said(third) == "Slack."
    assert "Ebb." in told
    assert "Flood." not in told


async def test_forgotten_session_begins_anew_with_the_whole_record(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        first = await at_work.say("!say The harbour is closed.")
        await at_work.leave()
        for transcript in at_work.place.home.rglob("*.jsonl"):
            transcript.unlink()
        await at_work.enter()
        asked = len(at_work.place.service.requests)
        second = await at_work.say("!say Noted.", state=first.state)
        told = str(at_work.place.service.bodies[asked:])
    assert said(second) == "Noted."
    assert "The harbour is closed." in told
    assert session_of(second.state) != session_of(first.state)


async def test_session_without_the_line_to_go_on_from_begins_anew(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        first = await at_work.say("!say The harbour is closed.")
        *earlier, last = first.state.messages
        lost = replace(last, data={**last.data, "at": "00000000-0000-4000-8000-000000000009"})
        await at_work.restart()
        asked = len(at_work.place.service.requests)
        second = await at_work.say("!say Noted.", state=replace(first.state, messages=(*earlier, lost)))
        told = str(at_work.place.service.bodies[asked:])
    assert second.error is None
    assert said(second) == "Noted."
    assert "The harbour is closed." in told


async def test_approved_plan_is_an_approval_and_plan_mode_holds_for_the_next_turn(tmp_path: Path) -> None:
    script = (
        Answer.of(Call(name="ExitPlanMode"), when="plan it"),
        Answer.of("Good.", when="plan it"),
    )
    async with stand(SUBJECT, tmp_path, *script) as at_work:
        turn = await at_work.say("plan it", params={"mode": "plan"}, decide=allow)
        asked = len(at_work.place.service.requests)
        after = await at_work.say("!say Still planning.", state=turn.state)
        told = str(at_work.place.service.bodies[asked:])
    (request,) = turn.of(RequestOpened)
    assert request.title == "Carry out this plan"
    assert said(after) == "Still planning."
    assert told.count("Plan mode is active") + told.count("Re-entering Plan Mode") > 0


async def test_our_tools_are_there_and_belong_to_the_turn(tmp_path: Path) -> None:
    question = {"questions": [{"question": "How deep?", "options": [{"label": "Two fathoms"}, {"label": "Ten"}]}]}
    async with stand(SUBJECT, tmp_path) as at_work:
        decide = answering(answers=(Answered(question_index=0, selected=("Two fathoms",)),))
        searching = at_work.turn(order("mcp__palaver__search_conversations", {"query": "tide"}), decide=leave_open)
        searching.passages = [Passage("c-1", "Tides", "Neap tides are weak.", 3, 0)]
        await drive(at_work.backend, searching)
        asking = await at_work.say(order("mcp__palaver__ask_user", question), state=searching.state, decide=decide)
    assert "Neap tides are weak." in tools(searching)[0].output
    (opened,) = asking.of(RequestOpened)
    assert opened.kind == "question"
    assert opened.call == tools(asking)[0].call
    assert "Two fathoms" in tools(asking)[0].output


async def test_written_file_is_told_with_its_diff(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        path = at_work.place.project / "tide.txt"
        turn = await at_work.say(order("Write", {"file_path": str(path), "content": "high\n"}), decide=allow)
        edit = {"file_path": str(path), "old_string": "high", "new_string": "low"}
        changed = await at_work.say(order("Edit", edit), state=turn.state, decide=allow)
        assert path.read_text() == "low\n"
    (created,) = turn.of(FilesChanged)[0].files
    assert (created.kind, created.additions) == ("created", 1)
    (modified,) = changed.of(FilesChanged)[0].files
    assert (modified.kind, modified.additions, modified.deletions) == ("modified", 1, 1)
    (asked,) = changed.of(RequestOpened)
    assert asked.preview is not None
    assert "-high" in asked.preview
    assert "+low" in asked.preview


async def test_mode_full_asks_nobody_and_plan_mode_changes_nothing(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        at_work.backend._judging = Judging(Policy(full_enabled=True), Grants(None))  # type: ignore[attr-defined]
        turn = await at_work.say(SUBJECT.shell("touch a.txt"), params={"mode": "full"}, decide=leave_open)
        assert (at_work.place.project / "a.txt").exists()
        planned = await at_work.say(
            SUBJECT.shell("touch b.txt"), state=turn.state, params={"mode": "plan"}, decide=deny
        )
        assert not (at_work.place.project / "b.txt").exists()
    assert [started.grant for started in turn.of(ToolStarted)] == ["mode:full"]
    assert not turn.of(RequestOpened)
    assert planned.error is None


async def test_its_tools_see_no_variable_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALAVER_SECRET_THING", "very-secret-tide")
    async with stand(SUBJECT, tmp_path) as at_work:
        turn = await at_work.say(SUBJECT.shell("env"), decide=allow)
    assert "very-secret-tide" not in tools(turn)[0].output
    assert "sk-ant-test" not in tools(turn)[0].output
    assert "HOME=" in tools(turn)[0].output


async def test_wrong_key_is_said_with_what_to_do(tmp_path: Path) -> None:
    refused = Answer(fault=Status(status=401, message="invalid x-api-key", kind="authentication_error"), repeat=True)
    async with stand(SUBJECT, tmp_path, refused) as at_work:
        turn = await at_work.say("Hello")
    assert isinstance(turn.error, NotLoggedIn)
    assert "/login" in turn.error.message


async def test_program_that_dies_fails_the_turn_and_the_next_resumes(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        first = await at_work.say("!say Ebb.")
        turn = at_work.turn("!slow 0.05\n!long 400", state=first.state)
        running = asyncio.create_task(drive(at_work.backend, turn))
        await turn.seen(TextDelta)
        backend = at_work.backend
        assert isinstance(backend, ClaudeBackend)
        (row,) = backend.table()
        assert row.pid
        os.kill(row.pid, signal.SIGKILL)
        await running
        after = await at_work.say("!say Again.", state=turn.state)
    assert turn.error is not None
    assert turn.error.code == "exited"
    # It is told again what was asked when it died, and the obedient model takes that for orders too.
    assert said(after).endswith("Again.")
    assert session_of(after.state) == session_of(first.state)


def _grants(turn: MemoryTurn) -> list[str]:
    return [event.grant for event in turn.of(ToolStarted)]


async def test_full_mode_is_no_more_than_asking_without_the_servers_flag(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        turn = await at_work.say(SUBJECT.shell("touch asked.txt"), params={"mode": "full"}, decide=deny)
        assert not (at_work.place.project / "asked.txt").exists()
    assert len(turn.state.requests) == 1


async def test_rules_of_the_server_hold_for_it(tmp_path: Path) -> None:
    rules = (
        Rule(tool="shell", decision="deny_continue", match="touch forbidden*"),
        Rule(tool="shell", decision="allow", match="touch allowed.txt"),
    )
    async with stand(SUBJECT, tmp_path) as at_work:
        at_work.backend._judging = Judging(Policy(rules=rules), Grants(None))  # type: ignore[attr-defined]
        denied = await at_work.say(order("Bash", {"command": "touch forbidden.txt"}))
        allowed = await at_work.say(order("Bash", {"command": "touch allowed.txt"}), state=denied.state)
        files = sorted(path.name for path in at_work.place.project.glob("*.txt"))
    assert files == ["allowed.txt"]
    assert [tool.status for tool in tools(denied)] == ["denied"]
    assert (denied.state.requests, allowed.state.requests) == ((), ())
    assert _grants(allowed) == ["rule"]


@pytest.mark.parametrize(
    "command", ["git log", "cat secret.txt", "git -C . log", "sh -c 'cat secret.txt'", "/bin/cat secret.txt"]
)
async def test_denied_command_is_not_run_by_its_own_list_of_harmless_ones_nor_by_its_settings(
    tmp_path: Path, command: str
) -> None:
    rules = (
        Rule(tool="shell", decision="deny_continue", match="git log*"),
        Rule(tool="shell", decision="deny_continue", match="program:cat"),
    )
    async with stand(SUBJECT, tmp_path) as at_work:
        settings = at_work.place.home / ".claude" / "settings.json"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text('{"permissions": {"allow": ["Bash"]}}')
        (at_work.place.project / "secret.txt").write_text("very-secret-tide\n")
        at_work.backend._judging = Judging(Policy(rules=rules), Grants(None))  # type: ignore[attr-defined]
        turn = await at_work.say(order("Bash", {"command": command}), decide=leave_open)
    assert [tool.status for tool in tools(turn)] == ["denied"]
    assert "very-secret-tide" not in str(turn.state)

"""What Pi can that not every program can, with the real one: edited input, standing grants, copies, images, retries."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from palaver.schema.events import GrantAdded, RequestResolved, TextDelta, ToolStarted, TurnStatus
from palaver.schema.view import Request
from tests.cli.rig import Stand, said, stand, tools
from tests.cli.subjects.pi import SUBJECT
from tests.provider.turn import MemoryTurn, allow, allow_always, leave_open

pytestmark = [pytest.mark.cli, pytest.mark.timeout(120)]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one pixel


def session(turn: MemoryTurn) -> str:
    return str(turn.history[-1].data["session"])


def asked_since(at_work: Stand, count: int) -> str:
    return str(at_work.place.service.bodies[count:])


async def test_edited_input_is_what_runs(tmp_path: Path) -> None:
    def rather(request: Request) -> RequestResolved:
        given = {"command": "echo rather-this"}
        return RequestResolved(request=request.id, status="answered", verdict="allow", input=given)

    async with stand(SUBJECT, tmp_path) as at_work:
        turn = await at_work.say(SUBJECT.shell("touch not-this.txt"), decide=rather)
        assert not (at_work.place.project / "not-this.txt").exists()
    assert tools(turn)[0].output.strip() == "rather-this"


async def test_lasting_yes_is_on_record_and_asks_no_more(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        first = await at_work.say(SUBJECT.shell("echo one"), decide=allow_always)
        second = await at_work.say(SUBJECT.shell("echo one"), decide=leave_open, state=first.state)
    (grant,) = first.of(GrantAdded)
    assert (grant.tool, grant.scope, grant.match) == ("shell", "conversation", "echo one")
    assert second.of(ToolStarted)[0].request is None
    assert tools(second)[0].status == "ok"


async def test_denial_tells_the_model_why(tmp_path: Path) -> None:
    def no(request: Request) -> RequestResolved:
        return RequestResolved(request=request.id, status="answered", verdict="deny", text="use the other folder")

    async with stand(SUBJECT, tmp_path) as at_work:
        turn = await at_work.say(SUBJECT.shell("touch x"), decide=no)
    assert "use the other folder" in said(turn)


async def test_declining_for_good_ends_the_turn_without_an_error(tmp_path: Path) -> None:
    def no_more(request: Request) -> RequestResolved:
        return RequestResolved(request=request.id, status="answered", verdict="deny", then="stop")

    async with stand(SUBJECT, tmp_path) as at_work:
        turn = await at_work.say(SUBJECT.shell("touch x"), decide=no_more)
        after = await at_work.say("!say Again.", state=turn.state)
    assert turn.error is None
    assert turn.finished.outcome == "interrupted"
    assert said(after).strip() == "Again."


async def test_plan_mode_runs_nothing(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        turn = await at_work.say(SUBJECT.shell("touch x"), params={"mode": "plan"}, decide=allow)
        assert not (at_work.place.project / "x").exists()
    assert tools(turn)[0].status == "denied"
    assert not turn.state.requests


async def test_branch_goes_on_with_a_copy(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        first = await at_work.say("!say The neap tide.")
        *before, last = first.state.messages
        elsewhere = replace(last, data={**last.data, "conversation": "another"})
        await at_work.restart()
        count = len(at_work.place.service.requests)
        branch = await at_work.say("!say Copied.", state=replace(first.state, messages=(*before, elsewhere)))
        told = asked_since(at_work, count)
    assert session(branch) != session(first)
    assert "The neap tide." in told
    assert "went on elsewhere" not in told


@pytest.mark.parametrize("live", [True, False])
async def test_session_that_knows_what_was_taken_back_is_left(live: bool, tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        first = await at_work.say("!say The neap tide.")
        second = await at_work.say("!say A slip.", state=first.state)
        if not live:
            await at_work.restart()
        count = len(at_work.place.service.requests)
        third = await at_work.say("!say Anew.", state=replace(second.state, messages=first.state.messages))
        told = asked_since(at_work, count)
    assert session(third) != session(first)
    assert "The neap tide." in told
    assert "A slip." not in told


async def test_session_that_is_gone_is_begun_anew(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        first = await at_work.say("!say The neap tide.")
        await at_work.leave()
        for kept in (at_work.place.home / ".pi" / "agent" / "sessions").rglob("*.jsonl"):
            kept.unlink()
        await at_work.enter()
        count = len(at_work.place.service.requests)
        second = await at_work.say("!say Anew.", state=first.state)
        told = asked_since(at_work, count)
    assert said(second).strip() == "Anew."
    assert "The neap tide." in told


async def test_stopped_turn_is_not_told_again_to_the_live_session(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        turn = at_work.turn("!slow 0.05\n!long 400")
        await at_work.interrupted(turn, lambda: turn.seen(TextDelta))
        count = len(at_work.place.service.requests)
        after = await at_work.say("!say Again.", state=turn.state)
        assert "went on elsewhere" not in asked_since(at_work, count)
    assert said(after).strip() == "Again."


async def test_retry_is_shown(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        turn = at_work.turn("!status 529")
        await at_work.interrupted(turn, lambda: turn.until(lambda: any(event.retry for event in turn.of(TurnStatus))))
    shown = [event.retry for event in turn.of(TurnStatus) if event.retry]
    assert shown[0].attempt == 1
    assert shown[0].after_s > 0
    assert "529" in shown[0].reason


async def test_question_of_pi_is_withdrawn_with_its_turn_and_the_next_is_answered(tmp_path: Path) -> None:
    async with stand(SUBJECT, tmp_path) as at_work:
        turn = at_work.turn(SUBJECT.question)
        await at_work.interrupted(turn, lambda: turn.opened(1))
        after = await at_work.say("!say Again.", state=turn.state)
    assert [(request.tool, request.status) for request in turn.state.requests] == [("ask_user", "cancelled")]
    assert said(after).strip() == "Again."

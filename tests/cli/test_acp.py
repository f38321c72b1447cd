"""What ACP agents can that not every program can, with the real ones: images, copies of a session, the meter, lasting words."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from palaver.schema.events import ContextMeasured, ToolOutputDelta
from tests.cli.rig import Subject, said, stand, tools
from tests.cli.subjects.gemini import SUBJECT as GEMINI
from tests.cli.subjects.opencode import SUBJECT as OPENCODE
from tests.provider.turn import allow, allow_always, drive, leave_open

pytestmark = [pytest.mark.cli, pytest.mark.timeout(180)]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one pixel

both = pytest.mark.parametrize("subject", [OPENCODE, GEMINI], ids=lambda subject: subject.name)


@both
async def test_lasting_yes_asks_no_more(subject: Subject, tmp_path: Path) -> None:
    async with stand(subject, tmp_path) as at_work:
        first = await at_work.say(subject.shell("touch one.txt"), decide=allow_always)
        second = await at_work.say(subject.shell("touch one.txt"), decide=leave_open, state=first.state)
    assert first.state.requests[0].scopes == ("once", "conversation")
    assert tools(second)[0].status == "ok"


async def test_meter_and_output_of_opencode_are_shown(tmp_path: Path) -> None:
    async with stand(OPENCODE, tmp_path) as at_work:
        turn = await at_work.say(OPENCODE.shell("echo one; sleep 0.5; echo two"), decide=allow)
    assert turn.of(ContextMeasured)[-1].window_tokens == 100_000
    assert "".join(event.text for event in turn.of(ToolOutputDelta)).startswith("one\n")
    assert turn.state.usage.input_tokens > 0


async def test_branch_goes_on_with_a_copy_in_opencode(tmp_path: Path) -> None:
    async with stand(OPENCODE, tmp_path) as at_work:
        first = await at_work.say("!say The neap tide.")
        *before, last = first.state.messages
        elsewhere = replace(last, data={**last.data, "conversation": "another"})
        await at_work.restart()
        count = len(at_work.place.service.requests)
        branch = await at_work.say("!say Copied.", state=replace(first.state, messages=(*before, elsewhere)))
        told = str(at_work.place.service.bodies[count:])
    assert branch.history[-1].data["session"] != last.data["session"]
    assert "The neap tide." in told
    assert "went on elsewhere" not in told
    assert said(branch).strip() == "Copied."


async def test_opencode_is_told_the_mode_and_the_model(tmp_path: Path) -> None:
    async with stand(OPENCODE, tmp_path) as at_work:
        agent = replace(OPENCODE.agent, model="scripted/small-1")
        turn = at_work.turn("What would you do?", agent=agent, params={"mode": "plan"})
        await drive(at_work.backend, turn)
        body = at_work.place.service.bodies[-1]
        unknown = replace(OPENCODE.agent, model="no/such")
        refused = at_work.turn("!say No.", agent=unknown, state=turn.state)
        await drive(at_work.backend, refused)
    assert turn.error is None
    assert body["model"] == "small-1"
    assert "Plan Mode" in str(body["messages"])
    assert refused.error is not None
    assert "no/such" in refused.error.message

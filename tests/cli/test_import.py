"""A history that the real program wrote is read from its own files, and the program goes on with it."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import msgspec
import pytest

from palaver.backends.claude.installation import executable
from palaver.backends.codex.installation import find_codex
from palaver.context.handover import OPENING
from palaver.conversation import imported_conversation
from palaver.conversation.creation import Maker, Wishes
from palaver.history.programs import places
from palaver.history.programs.foreign import ForeignConversation, Program
from palaver.history.programs.scratch import Scratch
from palaver.log.base import Claim
from palaver.schema.view import State, TextBlock, ToolBlock
from tests.cli.desk import WAIT_S, Desk, served, set_up
from tests.cli.rig import Subject, remembered, said, stand
from tests.cli.subjects import claude, codex, pi
from tests.flows.served import Served
from tests.provider.turn import allow
from tests.unit.history.programs.lines import texts, tools

pytestmark = [pytest.mark.cli, pytest.mark.timeout(180)]

REFACT = {
    "id": "nets",
    "title": "Nets",
    "created_at": "2026-05-01T10:00:00Z",
    "messages": [
        {"role": "user", "content": "Please mend the nets."},
        {"role": "assistant", "content": "The nets are mended."},
    ],
}
PROGRAMS: list[tuple[Program, Subject]] = [("claude", claude.SUBJECT), ("codex", codex.SUBJECT), ("pi", pi.SUBJECT)]


def taken_over(found: ForeignConversation, project: Path) -> State:
    numbers = count()
    (batch,) = imported_conversation.batches(found, 0)
    maker = Maker(
        "imported", Claim(imported_conversation.claim_id(found), batch.body_hash), 1, lambda: f"new-{next(numbers)}"
    )
    whole = replace(batch, messages=imported_conversation.mark_answers(found, batch.messages))
    return imported_conversation.beginning(found, whole, Wishes(str(project), lambda _: True), maker).state


@pytest.mark.parametrize(("program", "subject"), PROGRAMS, ids=[program for program, _ in PROGRAMS])
async def test_imported_history_is_continued_by_its_program(program: Program, subject: Subject, tmp_path: Path) -> None:
    async with stand(subject, tmp_path) as at_work:
        wrote = f"!think Tides come and go.\n!say My favourite tide is the neap tide.\n{subject.shell('echo salt')}"
        await at_work.say(f"{wrote}\n---\n!say It is salty.", decide=allow)
        await at_work.restart()
        (file,) = places.files_since(program, places.places_of({"HOME": str(at_work.place.home)}))
        found = places.read(file, Scratch())
        asked = len(at_work.place.service.requests)
        state = taken_over(found, at_work.place.project)
        turn = await at_work.say("!say I remember.", state=state)
        told = str(at_work.place.service.bodies[asked:])
        (again,) = places.files_since(program, places.places_of({"HOME": str(at_work.place.home)}))
        later = places.read(again, Scratch())

    assert [words for role, words in texts(found) if role == "assistant"] == [
        "My favourite tide is the neap tide.",
        "It is salty.",
    ]
    assert len(tools(found)) == 1
    assert (found.project, state.agent) == (str(at_work.place.project), program)
    assert said(turn).strip() == "I remember."
    assert "neap tide" in told
    assert OPENING[:40] not in told
    assert (later.session, texts(later)[-1]) == (found.session, ("assistant", "I remember."))
    have = len(found.messages)
    assert imported_conversation.inspect(later, have) == imported_conversation.inspect(found, have)


def by_itself(program: Program, subject: Subject, text: str) -> list[str]:
    """The program as a person runs it in a terminal, for one answer."""
    match program:
        case "claude":
            allowed = ("--model", str(subject.agent.model), "--allowedTools", "Bash")
            return [str(executable({})), "-p", text, *allowed]
        case "codex":
            return [str(find_codex({})), "exec", "--skip-git-repo-check", text]
        case "pi":
            return [*subject.agent.command, "-p", "--model", str(subject.agent.model), text]
        case "refact":
            raise AssertionError("an editor's extension; its histories are files that were recorded")


async def run(argv: Sequence[str], desk: Desk, **more: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=desk.place.project,
        env={**desk.environment, **more},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(WAIT_S):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, out.decode()
    return out.decode()


async def brought(desk: Desk, server: Served, program: Program) -> str:
    """What `palaver import` says of it."""
    command = (sys.executable, "-c", "from palaver.cli.main import main; main()", "import", program)
    return await run(command, desk, PALAVER_URL=server.url, PALAVER_TOKEN=server.token)


@pytest.mark.parametrize(("program", "subject"), PROGRAMS, ids=[program for program, _ in PROGRAMS])
async def test_history_of_a_program_is_imported_twice_and_found_and_continued(
    program: Program, subject: Subject, tmp_path: Path
) -> None:
    async with set_up(tmp_path, subject) as desk, served(desk) as server:
        text = f"Which tide?\n!say My favourite tide is the neap tide.\n{subject.shell('echo salt')}\n---\n!say It is salty."
        await run(by_itself(program, subject, text), desk, **subject.agent.environment)
        first = await brought(desk, server, program)
        listed = await desk.at.conversations()
        second = await brought(desk, server, program)
        assert await desk.at.conversations() == listed
        (found,) = listed
        hits = await desk.at.search("favourite neap")
        before = await desk.at.snapshot(found.id)

        after, told = await desk.whole(found.id, "!say I remember.")
        third = await brought(desk, server, program)
        assert await desk.at.snapshot(found.id) == after
        assert len(await desk.at.conversations()) == 1
    assert "1 new" in first
    assert "1 known already" in second
    assert "0 messages were added" in third
    assert found.id in {hit.conversation for hit in hits}
    said_before = [block.text for m in before.messages for block in m.blocks if isinstance(block, TextBlock)]
    assert said_before[1:] == ["My favourite tide is the neap tide.", "It is salty."]
    (tool,) = [block for m in before.messages for block in m.blocks if isinstance(block, ToolBlock)]
    assert (tool.status, "salt" in tool.output) == ("ok", True)
    assert remembered("neap tide", told)
    sessions = {m.data["session"] for m in after.messages if isinstance(m.data, dict) and "session" in m.data}
    assert len(sessions) == 1, "it went on in the session it had written itself"


async def test_history_of_refact_is_imported_twice_and_found_and_continued(tmp_path: Path) -> None:
    async with set_up(tmp_path) as desk, served(desk) as server:
        kept = desk.place.project / ".refact" / "trajectories" / "nets.json"
        kept.parent.mkdir(parents=True)
        kept.write_bytes(msgspec.json.encode(REFACT))
        first = await brought(desk, server, "refact")
        listed = await desk.at.conversations()
        second = await brought(desk, server, "refact")
        assert await desk.at.conversations() == listed
        (found,) = listed
        hits = await desk.at.search("mend nets")
        _, told = await desk.whole(found.id, "!say I remember.")
    assert "1 new" in first
    assert "1 known already" in second
    assert found.id in {hit.conversation for hit in hits}
    # It is no program that could go on: the built-in agent does, which is told everything.
    assert "The nets are mended." in told


@pytest.mark.parametrize(("program", "subject"), PROGRAMS, ids=[program for program, _ in PROGRAMS])
async def test_history_that_was_driven_from_here_is_left_out(
    program: Program, subject: Subject, tmp_path: Path
) -> None:
    async with stand(subject, tmp_path) as at_work:
        await at_work.say("!say One.")
        await at_work.restart()
        (file,) = places.files_since(program, places.places_of({"HOME": str(at_work.place.home)}))
        found = places.read(file, Scratch())

    assert imported_conversation.announce(found, "imported").outcome == "not_yours"

"""A history that the real program wrote is read from its own files, and the program goes on with it."""

from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from palaver.context.handover import OPENING
from palaver.conversation import taking
from palaver.conversation.beginnings import Maker, Wishes
from palaver.history.programs import places
from palaver.history.programs.foreign import ForeignConversation, Program
from palaver.log.base import Claim
from palaver.schema.view import State
from tests.cli.rig import Subject, said, stand
from tests.cli.subjects import claude, codex, pi
from tests.provider.turn import allow
from tests.unit.history.programs.lines import texts, tools

pytestmark = [pytest.mark.cli, pytest.mark.timeout(180)]

PROGRAMS: list[tuple[Program, Subject]] = [("claude", claude.SUBJECT), ("codex", codex.SUBJECT), ("pi", pi.SUBJECT)]


def taken_over(found: ForeignConversation, project: Path) -> State:
    numbers = count()
    claim = Claim(taking.claim_id(found), taking.body_hash(found.messages))
    maker = Maker("imported", claim, 1, lambda: f"new-{next(numbers)}")
    whole = replace(found, messages=taking.marked(found, found.messages))
    return taking.beginning(whole, Wishes(str(project), lambda _: True), maker).state


@pytest.mark.parametrize(("program", "subject"), PROGRAMS, ids=[program for program, _ in PROGRAMS])
async def test_imported_history_is_continued_by_its_program(program: Program, subject: Subject, tmp_path: Path) -> None:
    async with stand(subject, tmp_path) as at_work:
        wrote = f"!think Tides come and go.\n!say My favourite tide is the neap tide.\n{subject.shell('echo salt')}"
        await at_work.say(f"{wrote}\n---\n!say It is salty.", decide=allow)
        await at_work.restart()
        (file,) = places.chosen(program, places.places_of({"HOME": str(at_work.place.home)}))
        found = places.read(file)
        asked = len(at_work.place.service.requests)
        state = taken_over(found, at_work.place.project)
        turn = await at_work.say("!say I remember.", state=state)
        told = str(at_work.place.service.bodies[asked:])
        (again,) = places.chosen(program, places.places_of({"HOME": str(at_work.place.home)}))
        later = places.read(again)

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
    assert taking.body_hash(later.messages[: len(found.messages)]) == taking.body_hash(found.messages)


@pytest.mark.parametrize(("program", "subject"), PROGRAMS, ids=[program for program, _ in PROGRAMS])
async def test_history_that_was_driven_from_here_is_left_out(
    program: Program, subject: Subject, tmp_path: Path
) -> None:
    async with stand(subject, tmp_path) as at_work:
        await at_work.say("!say One.")
        await at_work.restart()
        (file,) = places.chosen(program, places.places_of({"HOME": str(at_work.place.home)}))
        found = places.read(file)

    assert taking.announced(found, "imported").outcome == "not_yours"

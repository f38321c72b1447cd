"""A first turn that was stopped: no answer of it carries the program's mark, and still nothing of it is lost."""

from pathlib import Path

import pytest

from palaver.context.handover import OPENING
from palaver.schema.events import TextDelta
from tests.cli.rig import Subject, said, stand
from tests.cli.subjects import claude, codex, opencode, pi

pytestmark = [pytest.mark.cli, pytest.mark.timeout(120)]

SUBJECTS = [claude.SUBJECT, codex.SUBJECT, opencode.SUBJECT, pi.SUBJECT]
BEGINS_ANEW = {"codex"}
"""Its thread has forgotten what it was saying when it was stopped; it is told the record instead."""


@pytest.mark.parametrize("restarted", [False, True], ids=["live", "restarted"])
@pytest.mark.parametrize("subject", SUBJECTS, ids=[subject.name for subject in SUBJECTS])
async def test_stopped_first_turn_is_known_to_the_next(subject: Subject, restarted: bool, tmp_path: Path) -> None:
    async with stand(subject, tmp_path) as at_work:
        turn = at_work.turn("My favourite tide is the neap tide.\n!slow 0.05\n!long 60")
        await at_work.interrupted(turn, lambda: turn.seen(TextDelta))
        if restarted:
            await at_work.restart()
        asked = len(at_work.place.service.requests)
        after = await at_work.say("!say Again.", state=turn.state)
        told = str(at_work.place.service.bodies[asked:])
    # The model obeys what it reads, also in the record.
    assert said(after).strip().endswith("Again.")
    assert "neap tide" in told
    assert (OPENING[:40] in told) == (restarted or subject.name in BEGINS_ANEW)

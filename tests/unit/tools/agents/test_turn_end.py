"""The tools with which an agent ends its own turn."""

from pathlib import Path

import pytest

from palaver.tools.agents.turn_end import FinishTask, YieldTurn
from tests.unit.tools.workshop import Listener, Workshop

pytestmark = pytest.mark.anyio


async def test_yielding_ends_the_turn_to_wait(root: Path) -> None:
    host = Listener()
    assert (await Workshop(root, host=host).run(YieldTurn())).ok
    assert host.outcome == ("yielded", None)


async def test_finishing_ends_the_turn_with_what_was_done(root: Path) -> None:
    host = Listener()
    assert (await Workshop(root, host=host).run(FinishTask(), summary="All green.")).ok
    assert host.outcome == ("task", "All green.")


@pytest.mark.parametrize("arguments", [{}, {"summary": ""}, {"summary": " "}, {"summary": 1}])
async def test_finishing_without_a_word_is_refused_and_the_turn_goes_on(
    arguments: dict[str, object], root: Path
) -> None:
    host = Listener()
    result = await FinishTask().run(arguments, Workshop(root, host=host).place)
    assert (result.ok, result.error_code, host.outcome) == (False, "invalid", None)

"""Attacks on rules by way of another agent: what is forbidden in a conversation stays so for whom its agent asks.

The rule is `agents/addressing.py: escapes` and `agents/delegation.py: handed_on`.
"""

from pathlib import Path
from typing import Any

import pytest

from palaver.agents.addressing import escapes
from palaver.approval.policy import Rule
from palaver.schema.view import State
from palaver.tools.base import Reply
from tests.unit.agents.post import open_office, to, writes

pytestmark = pytest.mark.anyio

DENY = {"tool": "shell", "decision": "deny_continue"}
ASK = {"tool": "edit", "decision": "ask"}
ALLOW = {"tool": "write", "decision": "allow"}


async def test_conversation_that_an_exchange_begins_has_the_rules_of_the_caller() -> None:
    async with open_office() as office:
        caller = await office.begin("ada", params={"policy": [DENY, ASK, ALLOW], "tool_calls_per_minute": 3})
        await office.ask(caller, writes(to(conversation="create")))
        await office.at_rest(caller, turns=1)
        (target,) = await office.conversations("bea")
        params = (await office.directory.state(target)).params
    assert params["policy"] == [DENY, ASK]
    assert params["tool_calls_per_minute"] == 3


async def test_exchange_goes_around_a_conversation_that_lacks_the_rules() -> None:
    replies: list[Reply] = []
    async with open_office() as office:
        lax = await office.begin("bea")
        caller = await office.begin("ada", params={"policy": [DENY]})
        await office.ask(caller, writes(to(conversation=lax), replies))
        await office.at_rest(caller, turns=1)
        await office.ask(caller, writes(to(conversation="latest-or-create"), replies, "y"))
        await office.at_rest(caller, turns=2)
        made = [known for known in await office.conversations("bea") if known != lax]
        untouched = await office.directory.state(lax)
        params = (await office.directory.state(made[0])).params
    assert (replies[0].status, "lacks rules" in replies[0].response) == ("failed", True)
    assert replies[1].status == "complete"
    assert untouched.messages == ()
    assert params["policy"] == [DENY]


def state(project: str | None = "/usr", *rules: dict[str, Any]) -> State:
    return State(conversation="c", project=project, params={"policy": list(rules)} if rules else {})


@pytest.mark.parametrize(
    ("caller", "target", "escaping"),
    [
        ([], [], False),
        ([], [DENY], False),
        ([ALLOW], [], False),
        ([DENY], [], True),
        ([DENY], [DENY], False),
        ([DENY, ASK], [DENY], True),
        ([DENY, ASK], [ASK, ALLOW, DENY], False),
        ([ASK], [{**ASK, "match": "x"}], True),
    ],
)
def test_exchange_reaches_only_conversations_that_are_held_to_as_much(
    caller: list[dict[str, Any]], target: list[dict[str, Any]], escaping: bool
) -> None:
    assert escapes(state("/usr", *caller), state("/usr", *target), ()) is escaping


def test_rules_of_a_project_do_not_end_at_its_border() -> None:
    deny = Rule(tool="shell", decision="deny_continue", source="project", project=Path("/usr/lib"))
    everywhere = Rule(tool="shell", decision="deny_continue")
    allow = Rule(tool="shell", decision="allow", source="project", project=Path("/usr/lib"))
    inside, outside = state("/usr/lib"), state("/usr/share")
    assert escapes(inside, outside, [deny])
    assert not escapes(inside, state("/usr/lib/x"), [deny])
    assert not escapes(outside, inside, [deny])
    assert not escapes(inside, outside, [everywhere, allow])

"""What a person allowed for a conversation, kept and rebuilt."""

from pathlib import Path

import pytest

from palaver.backends.api.grants import KEEP_CONVERSATIONS, Grants
from palaver.schema.base import Scope, Verdict
from palaver.schema.view import Request, Resolution, State
from palaver.tools.policy import Rule
from tests.provider.tools import CountingTool, toolbox


def resolved(verdict: Verdict = "allow", scope: Scope = "conversation", tool: str = "shell") -> Request:
    resolution = Resolution(status="answered", ts=1, verdict=verdict, scope=scope)
    return Request(id="r", kind="approval", ts=1, tool=tool, input={"a": 1}, resolution=resolution, status="answered")


@pytest.mark.parametrize(
    ("request_", "grants"),
    [
        (resolved(), {Rule(tool="shell", decision="allow", match='{"a":1}')}),
        (resolved(tool="edit"), {Rule(tool="edit", decision="allow")}),
        (resolved(scope="once"), set()),
        (resolved(verdict="deny"), set()),
        (resolved(tool="gone"), set()),
    ],
)
async def test_grants_are_rebuilt_from_what_was_answered(request_: Request, grants: set[Rule]) -> None:
    known = Grants()
    box = toolbox(CountingTool("shell"), CountingTool("edit", edits_only=True))
    await known.rebuild(State(conversation="c", requests=(request_,)), box, Path())
    assert known.of("c") == grants
    assert known.of("another") == frozenset()


def test_grants_of_conversations_that_rest_longest_are_forgotten() -> None:
    known = Grants()
    for number in range(KEEP_CONVERSATIONS + 1):
        known.add(str(number), Rule(tool="shell", decision="allow"))
    assert known.of("0") == frozenset()
    assert known.of(str(KEEP_CONVERSATIONS)) != frozenset()

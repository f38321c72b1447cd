"""Attacks on rules by way of another agent: what is forbidden in a conversation stays so for whom its agent asks.

The rule is `core/restraints.py`: what holds in a conversation are its rules and limits and those of its agent's record.
"""

from pathlib import Path
from typing import Any

import pytest

from palaver.agents.addressing import escapes
from palaver.approval.policy import Rule
from palaver.core.restraints import inherit_params
from palaver.schema.records import AgentRecord, PolicyRule
from palaver.schema.view import State
from palaver.tools.base import Reply
from tests.flows.at_work import at_work
from tests.provider import Answer, Call
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
    assert escapes((state("/usr", *caller), None), (state("/usr", *target), None), ()) is escaping


def test_rules_of_a_project_do_not_end_at_its_border() -> None:
    deny = Rule(tool="shell", decision="deny_continue", source="project", project=Path("/usr/lib"))
    everywhere = Rule(tool="shell", decision="deny_continue")
    allow = Rule(tool="shell", decision="allow", source="project", project=Path("/usr/lib"))
    inside, outside = state("/usr/lib"), state("/usr/share")
    assert escapes((inside, None), (outside, None), [deny])
    assert not escapes((inside, None), (state("/usr/lib/x"), None), [deny])
    assert not escapes((outside, None), (inside, None), [deny])
    assert not escapes((inside, None), (outside, None), [everywhere, allow])


# -- what the caller's agent is held to by its record


def record(name: str = "ada", **fields: Any) -> AgentRecord:
    return AgentRecord(id=name, name=name, backend="p", **fields)


NO_TOUCH = PolicyRule(tool="shell", decision="deny_continue", match="touch denied*")
NO_TOUCH_WRITTEN = {"tool": "shell", "decision": "deny_continue", "match": "touch denied*"}
MAY_READ = PolicyRule(tool="read", decision="allow")


@pytest.mark.parametrize(
    ("caller", "target", "escaping"),
    [
        ((record(policy=(NO_TOUCH,)), []), (record("bea"), []), True),
        ((record(policy=(NO_TOUCH,)), []), (None, []), True),
        ((record(policy=(NO_TOUCH,)), []), (record("bea", policy=(NO_TOUCH,)), []), False),
        ((record(policy=(NO_TOUCH,)), []), (record("bea"), [NO_TOUCH_WRITTEN]), False),
        ((record(), [NO_TOUCH_WRITTEN]), (record("bea", policy=(NO_TOUCH,)), []), False),
        ((record(policy=(NO_TOUCH,)), [ASK]), (record("bea", policy=(NO_TOUCH,)), []), True),
        ((record(policy=(MAY_READ,)), []), (record("bea"), []), False),
        ((record(), [{**DENY, "match": None}]), (record("bea"), [DENY]), False),
    ],
)
def test_exchange_reaches_only_agents_that_are_held_to_as_much_by_record_or_conversation(
    caller: tuple[AgentRecord | None, list[Any]], target: tuple[AgentRecord | None, list[Any]], escaping: bool
) -> None:
    (whose, rules), (others, there) = caller, target
    assert escapes((state("/usr", *rules), whose), (state("/usr", *there), others), ()) is escaping


@pytest.mark.parametrize(
    ("params", "own", "to", "inherited"),
    [
        ({}, {}, {}, {}),
        ({}, {"policy": (NO_TOUCH, MAY_READ)}, {}, {"policy": [NO_TOUCH_WRITTEN]}),
        ({"policy": [DENY, ALLOW]}, {"policy": (NO_TOUCH,)}, {}, {"policy": [DENY, NO_TOUCH_WRITTEN]}),
        ({"policy": [NO_TOUCH_WRITTEN]}, {"policy": (NO_TOUCH,)}, {}, {"policy": [NO_TOUCH_WRITTEN]}),
        ({}, {"spend_limit_usd": 0.5}, {}, {"spend_limit_usd": 0.5}),
        ({"spend_limit_usd": 2}, {"spend_limit_usd": 0.5}, {}, {"spend_limit_usd": 2}),
        ({}, {"spend_limit_usd": 5}, {"spend_limit_usd": 0.5}, {"spend_limit_usd": 0.5}),
        ({}, {"params": {"tool_calls_per_minute": 3}}, {}, {"tool_calls_per_minute": 3}),
        (
            {"tool_calls_per_minute": 0},
            {},
            {"params": {"tool_calls_per_minute": 2}},
            {"tool_calls_per_minute": 2},
        ),
        ({"request_timeout_s": 60}, {}, {"params": {"request_timeout_s": 5}}, {"request_timeout_s": 5}),
        ({"request_timeout_s": 60}, {}, {"params": {"request_timeout_s": 0}}, {"request_timeout_s": 60}),
        ({"max_tokens": 10}, {}, {}, {}),
    ],
)
def test_conversation_that_an_agent_begins_inherits_rules_of_its_record_and_the_stricter_limit(
    params: dict[str, Any], own: dict[str, Any], to: dict[str, Any], inherited: dict[str, Any]
) -> None:
    assert inherit_params(params, record(**own), record("bea", **to)) == inherited


STRICT = record(policy=(NO_TOUCH,), mode="auto", spend_limit_usd=1.0)
LOOSE = record("bea", mode="auto")


async def test_exchange_with_another_agent_is_held_to_the_rules_of_the_callers_record() -> None:
    replies: list[Reply] = []
    async with open_office(None, STRICT, LOOSE) as office:
        lax = await office.begin("bea")
        caller = await office.begin("ada")
        for place, conversation in enumerate((lax, "latest-or-create", "create"), 1):
            await office.ask(caller, writes(to(conversation=conversation), replies, f"call-{place}"))
            await office.at_rest(caller, turns=place)
        made = [known for known in await office.conversations("bea") if known != lax]
        params = [(await office.directory.state(known)).params for known in made]
        untouched = await office.directory.state(lax)
    assert [reply.status for reply in replies] == ["failed", "complete", "complete"]
    assert untouched.messages == ()
    assert params == [{"mode": "auto", "policy": [NO_TOUCH_WRITTEN], "spend_limit_usd": 1.0}] * 2


async def test_exchange_among_agents_of_the_same_rules_uses_the_conversation_that_is_there() -> None:
    replies: list[Reply] = []
    async with open_office(None, STRICT, record("bea", policy=(NO_TOUCH,))) as office:
        there = await office.begin("bea")
        caller = await office.begin("ada")
        await office.ask(caller, writes(to(conversation=there), replies))
        await office.at_rest(caller, turns=1)
    assert [reply.status for reply in replies] == ["complete"]


@pytest.mark.parametrize("way", ["task", "agents_message"])
async def test_command_that_an_agents_record_denies_is_denied_to_whom_it_asks(tmp_path: Path, way: str) -> None:
    """The whole way: `strict` may not, `loose` may, and `strict` asks `loose`."""
    agents = tmp_path / "data" / "agents"
    agents.mkdir(parents=True)
    rule = '\npolicy:\n  - {tool: shell, decision: deny_continue, match: "touch denied*"}'
    (agents / "strict.md").write_text(f"---\nname: Strict\nmode: accept_edits{rule}\n---\nHi\n")
    (agents / "loose.md").write_text("---\nname: Loose\nmode: accept_edits\nallowed_tools: [shell]\n---\nHi\n")
    given = {"agent": "loose", "prompt": "touch"} if way == "task" else {"agentId": "loose", "content": "touch"}
    denied, allowed = (Call(name="shell", input={"command": f"touch {name}"}) for name in ("denied-a", "fine-a"))
    script = Answer.of(Call(name=way, input=given)), Answer.of(denied, allowed), Answer.of("Tried."), Answer.of("Done.")
    async with at_work(tmp_path, *script) as work:
        conversation = await work.server.create(project=str(work.project), agent="strict")
        await work.server.send(conversation, "go")
        await work.events(conversation)
        left = {path.name for path in (tmp_path / "project").iterdir()}
    assert "fine-a" in left
    assert "denied-a" not in left

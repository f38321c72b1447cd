"""Every tool, crossed with everybody: the tools, the resource and the subscription of both inboxes, and the agents' own tools.

Taken from the registries, so a tool that is new is asked too.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from mcp.shared.exceptions import MCPError

from palaver.approval.policy import Policy, as_mode
from palaver.core.params import MODES
from palaver.faces.inbox.endpoints import ASSISTANT, HUMAN
from palaver.faces.inbox.tools import TOOLS, InboxTool
from palaver.faces.rights import INBOX_ACTS, INBOX_MEMBERS, Act, Side, role_for_params
from palaver.people.authentication import ROLES, Kind
from palaver.tools.base import Proposal
from palaver.tools.effects import EFFECTS, UNASKED, Effect
from palaver.tools.shell.background import Processes
from palaver.tools.shell.sandbox import unsandboxed
from palaver.tools.toolbox import built_in_tools
from tests.attacks.test_rights_table import ASKING, REFUSED_UNKNOWN, WRONG, Asking, Table, shared_server
from tests.flows.faces.inbox.client import INBOX, Inbox, inbox

pytestmark = pytest.mark.anyio

SIDES: tuple[Side, ...] = get_args(Side)
KINDS: tuple[Kind, ...] = get_args(Kind)
ARGUMENTS: dict[Act, dict[str, Any]] = {"read": {}, "post": {"mime": "text/plain", "content": "said"}, "yield": {}}
DOORS: dict[Side, str] = {"human": HUMAN, "assistant": ASSISTANT}


def may(kind: Kind, side: Side, act: Act) -> bool:
    """As `faces/rights.py` has it, from its rows alone."""
    member = kind in INBOX_MEMBERS[side] or (kind == "observer" and INBOX_ACTS[act] == "read")
    return member and INBOX_ACTS[act] in ROLES[kind]


# -- the inboxes


def test_table_has_every_side_and_every_act() -> None:
    assert set(INBOX_MEMBERS) == set(SIDES) == set(DOORS) == {side for tool in TOOLS for side in tool.sides}
    assert set(INBOX_ACTS) == set(get_args(Act)) == set(ARGUMENTS) == {tool.act for tool in TOOLS}


REQUESTS: dict[str, dict[str, Any]] = {
    "tools/list": {},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": INBOX},
    "resources/subscribe": {"uri": INBOX},
    "resources/unsubscribe": {"uri": INBOX},
    "subscriptions/listen": {"resourceSubscriptions": [INBOX]},
    **{f"tools/call {tool.name}": {"name": tool.name, "arguments": ARGUMENTS[tool.act]} for tool in TOOLS},
}


async def knock(table: Table, kind: Asking, side: Side, request: str) -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": request.partition(" ")[0], "params": REQUESTS[request]}
    accept = {"Accept": "application/json, text/event-stream"}
    async with table.client(kind) as http:
        return await http.post(f"{DOORS[side]}/known", json=body, headers=accept)


@pytest.mark.parametrize("side", SIDES)
async def test_no_request_of_an_inbox_is_answered_to_who_is_none_of_its_side(tmp_path: Path, side: Side) -> None:
    async with shared_server(tmp_path) as table:
        before = await table.fingerprint()
        wrong: list[str] = []
        for request in REQUESTS:
            for kind in ASKING:
                if any(kind == known and may(known, side, "read") for known in KINDS):
                    continue
                answer = await knock(table, kind, side, request)
                if answer.status_code not in (REFUSED_UNKNOWN if kind in WRONG else (403,)):
                    wrong.append(f"{request} by {kind}: {answer.status_code} {answer.text}")
        after = await table.fingerprint()
    assert wrong == []
    assert after == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", SIDES)
async def test_every_tool_of_an_inbox_does_for_a_token_what_the_table_says(
    tmp_path: Path, side: Side, kind: Kind
) -> None:
    if not may(kind, side, "read"):
        return  # Not let in at all: the test before this one.
    async with shared_server(tmp_path) as table:
        token = table.headers(kind)["Authorization"].removeprefix("Bearer ")
        wrong: list[str] = []
        async with inbox(table.server, side, "known", token) as visitor:
            # In both spellings of a name: models are given the other one. Those that change nothing first, all together.
            named = sorted({(name, tool) for tool in TOOLS for name in (tool.name, tool.key)}, key=_changes(side, kind))
            before = await table.fingerprint()
            for name, tool in named:
                should = _should_answer(tool, side, kind)
                if should and tool.act != "read" and before:
                    assert await table.fingerprint() == before
                    before = ()
                if await _answers(visitor, name, ARGUMENTS[tool.act]) != should:
                    wrong.append(name)
            assert not before or await table.fingerprint() == before
            listed = {tool.name for tool in (await visitor.client.list_tools()).tools}
            read = await visitor.read()
        assert wrong == []
        assert listed == {tool.name for tool in TOOLS if _should_answer(tool, side, kind)}
        assert any(message["content"] == "hello" for message in read["messages"])


def _changes(side: Side, kind: Kind) -> Callable[[tuple[str, InboxTool]], bool]:
    return lambda one: one[1].act != "read" and _should_answer(one[1], side, kind)


async def _answers(visitor: Inbox, name: str, arguments: dict[str, Any]) -> bool:
    try:
        result = await visitor.client.call_tool(name, arguments)
    except MCPError as refused:
        if "There is no tool" in refused.message:
            return False
        raise
    assert not result.is_error, result.content
    return True


def _should_answer(tool: InboxTool, side: Side, kind: Kind) -> bool:
    return side in tool.sides and may(kind, side, tool.act)


# -- the tools of agents

SPECS = {
    tool.spec.name: tool.spec
    for tool in built_in_tools(unsandboxed(), Processes(lambda: "id"), lambda: "id", lambda _: [])
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", sorted(SPECS))
def test_tool_runs_unasked_for_a_token_only_by_a_mode_that_the_token_may_choose(name: str, kind: Kind) -> None:
    """What a token can have an agent do without anybody being asked."""
    spec = SPECS[name]
    effect: Effect = EFFECTS[name]
    proposal = Proposal(title=name, hash="hash", reads_only=spec.reads_only)
    policy = Policy(sandboxed=True, full_enabled=True)
    can_choose = {mode for mode in MODES if "send" in ROLES[kind] and role_for_params({"mode": mode}) in ROLES[kind]}
    unasked = {mode for mode in can_choose if policy.verdict(spec, proposal, as_mode(mode)).decision == "allow"}
    assert unasked == {mode for mode in UNASKED[effect] if mode in can_choose}
    if "decide" not in ROLES[kind]:
        assert not unasked or effect == "reads"
    if "send" not in ROLES[kind]:
        assert unasked == set()

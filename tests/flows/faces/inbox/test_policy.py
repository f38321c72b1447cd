"""An agent's calls at its inbox are decided like all its others; a denial is an error with a code of its own."""

from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

import palaver.tools.policy
from tests.flows.faces.inbox.client import TOKENS, inbox, with_tokens
from tests.flows.served import Served, serving

POST = {"mime": "text/plain", "content": "Pushed to main."}


def ruled(decision: str, tool: str = "chat.assistant.post", **more: Any) -> dict[str, Any]:
    return {"policy": [{"tool": tool, "decision": decision, **more}]}


async def denial(served: Served, params: dict[str, Any], tool: str = "chat.assistant.post") -> MCPError:
    conversation = await served.create(params=params)
    async with inbox(served, "assistant", conversation, TOKENS["agent"]) as agent:
        with pytest.raises(MCPError) as denied:
            await agent.client.call_tool(tool, POST if "post" in tool or "send" in tool else {})
    assert (await served.state(conversation))["messages"] == []
    return denied.value


async def test_denied_call_is_an_error_that_says_whether_to_go_on(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        for decision, code in (("deny_abort", -32950), ("deny_continue", -32951)):
            assert (await denial(served, ruled(decision))).code == code
            assert (await denial(served, ruled(decision, "chat_assistant_post"))).code == code
            assert (await denial(served, ruled(decision, "loop.yield_turn"), "loop.yield_turn")).code == code
            assert (await denial(served, ruled(decision, "*"), "ui.send_message")).code == code


async def test_rule_may_look_at_what_is_said(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        params = ruled("deny_continue", match="*main*")
        assert (await denial(served, params)).code == -32951
        conversation = await served.create(params=params)
        async with inbox(served, "assistant", conversation, TOKENS["agent"]) as agent:
            await agent.call("chat.assistant.post", mime="text/plain", content="Nothing to tell.")


async def test_retired_name_does_not_lead_around_a_rule(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        assert (await denial(served, ruled("deny_continue"), "ui.send_message")).code == -32951
        assert (await denial(served, ruled("deny_continue", "loop.yield_turn"), "ui.end_turn")).code == -32951


async def test_policy_that_cannot_be_evaluated_denies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no rule can be read")

    async with serving(with_tokens(tmp_path)) as served:
        monkeypatch.setattr(palaver.tools.policy, "_judge", broken)
        assert (await denial(served, {})).code == -32953


async def test_people_are_not_judged_by_rules_for_agents(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create(params=ruled("deny_abort", "*"))
        async with inbox(served, "human", conversation, TOKENS["human"]) as human:
            await human.say("Hello")

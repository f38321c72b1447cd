"""An agent's calls at its inbox are decided like all its others; a denial is an error with a code of its own."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

import palaver.approval.policy
from palaver.backends.script.script import Tool
from palaver.clock import ManualClock
from tests.flows.faces.inbox.client import ERAS, TOKENS, Era, inbox, with_tokens
from tests.flows.served import WAIT_S, Served, serving

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


@pytest.mark.parametrize(("decision", "ends"), [("deny_abort", True), ("deny_continue", False)])
async def test_denial_that_aborts_ends_the_turn_and_one_that_does_not_leaves_it(
    tmp_path: Path, decision: str, ends: bool
) -> None:
    script = [Tool("shell", {"command": "make"}, wait="gate")]
    async with serving(with_tokens(tmp_path), script) as served:
        conversation = await served.create(params=ruled(decision), message="Begin")
        await served.agent.reached("gate")
        async with inbox(served, "assistant", conversation, TOKENS["agent"]) as agent:
            with pytest.raises(MCPError):
                await agent.client.call_tool("chat.assistant.post", POST)
        if not ends:
            assert (await served.state(conversation))["turn"] is not None
            served.agent.open_gate("gate")
        events = await served.settled(conversation)
    assert events[-1]["type"] == ("turn.interrupted" if ends else "turn.finished")
    # The call that was pending has its one result either way.
    (result,) = [event for event in events if event["type"] == "tool.finished"]
    assert result["ok"] is not ends


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
        monkeypatch.setattr(palaver.approval.policy, "_judge", broken)
        assert (await denial(served, {})).code == -32953


async def test_people_are_not_judged_by_rules_for_agents(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create(params=ruled("deny_abort", "*"))
        async with inbox(served, "human", conversation, TOKENS["human"]) as human:
            await human.say("Hello")


async def waiting(served: Served, conversation: str) -> dict[str, Any]:
    """The one request that waits for a person, as soon as it is announced."""
    async with served.events(conversation, after=0) as stream:
        opened = [event async for event in stream.until(lambda event: event["type"] == "request.opened")][-1]
    (item,) = (await served.http.get("/api/requests", params={"root": conversation})).json()["items"]
    assert item["request"]["id"] == opened["request"]
    return dict(item["request"])


async def answer(served: Served, conversation: str, request: str, verdict: str, **more: Any) -> None:
    told = await served.command(conversation, type="resolve_request", request=request, verdict=verdict, **more)
    assert told.status_code == 202, told.text


@pytest.mark.parametrize("era", ERAS)
async def test_call_that_must_be_asked_for_waits_and_runs_once_when_a_person_agrees(tmp_path: Path, era: Era) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create(params=ruled("ask"))
        async with inbox(served, "assistant", conversation, TOKENS["agent"], era) as agent:
            calling = asyncio.create_task(agent.call("chat.assistant.post", **POST))
            request = await waiting(served, conversation)
            assert (request["agent"], request["tool"], request["input"]) == ("the agent", "chat_assistant_post", POST)
            assert (await served.state(conversation))["messages"] == []
            # At once, by two of them: one decides, and the call runs once.
            await asyncio.gather(
                *(answer(served, conversation, request["id"], "allow") for _ in range(2)),
            )
            async with asyncio.timeout(WAIT_S):
                sent = await calling
            assert [message["id"] for message in (await agent.read())["messages"]] == [sent["id"]]
            # Nothing else began: it is another agent's call.
            assert (await served.state(conversation))["last_turn"] is None


@pytest.mark.parametrize(("then", "code"), [("continue", -32951), ("stop", -32950)])
async def test_call_that_a_person_denies_is_not_run(tmp_path: Path, then: str, code: int) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create(params=ruled("ask"))
        async with inbox(served, "assistant", conversation, TOKENS["agent"]) as agent:
            calling = asyncio.create_task(agent.client.call_tool("chat.assistant.post", POST))
            request = await waiting(served, conversation)
            await answer(served, conversation, request["id"], "deny", then=then, text="Not now")
            with pytest.raises(MCPError, match="Not now") as denied:
                await calling
            assert denied.value.code == code
            assert (await agent.read())["messages"] == []


async def test_stop_gives_the_call_that_waits_its_end(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create(params=ruled("ask"))
        async with inbox(served, "assistant", conversation, TOKENS["agent"]) as agent:
            calling = asyncio.create_task(agent.client.call_tool("chat.assistant.post", POST))
            await waiting(served, conversation)
            await served.command(conversation, type="interrupt")
            with pytest.raises(MCPError) as denied:
                await calling
            assert denied.value.code == -32950


async def test_request_that_nobody_answers_waits_and_is_a_denial_where_a_time_was_set(tmp_path: Path) -> None:
    clock = ManualClock()
    async with serving(with_tokens(tmp_path), clock=clock) as served:
        patient = await served.create(params=ruled("ask"))
        conversation = await served.create(params={**ruled("ask"), "request_timeout_s": 300})
        async with (
            inbox(served, "assistant", patient, TOKENS["agent"]) as other,
            inbox(served, "assistant", conversation, TOKENS["agent"]) as agent,
        ):
            asking = asyncio.create_task(other.client.call_tool("chat.assistant.post", POST))
            request = await waiting(served, patient)
            calling = asyncio.create_task(agent.client.call_tool("chat.assistant.post", POST))
            await waiting(served, conversation)
            await clock.advance(86_400)
            with pytest.raises(MCPError, match="in time") as denied:
                await calling
            assert denied.value.code == -32951
            await served.command(patient, type="resolve_request", request=request["id"], verdict="allow")
            assert not (await asking).is_error


async def test_caller_that_goes_away_takes_its_request_back(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create(params=ruled("ask"))
        async with inbox(served, "assistant", conversation, TOKENS["agent"]) as agent:
            calling = asyncio.create_task(agent.client.call_tool("chat.assistant.post", POST))
            await waiting(served, conversation)
            calling.cancel()
            async with served.events(conversation, after=0) as stream:
                resolved = [event async for event in stream.until(lambda event: event["type"] == "request.resolved")][
                    -1
                ]
            assert (resolved["verdict"], resolved["text"]) == ("deny", "The caller went away.")
            assert (await served.http.get("/api/requests")).json()["items"] == []

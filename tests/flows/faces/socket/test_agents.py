"""Agents that write to each other, as clients of the socket see it: one exchange joins both sides."""

from pathlib import Path

import msgspec
import pytest

from palaver.faces.socket.sequence import FRAMES
from tests.flows.faces.socket.client import events, of, operation, subscribed, types
from tests.flows.test_exchange import begin, two_agents, write

pytestmark = pytest.mark.anyio


async def test_exchange_is_on_the_call_the_result_and_every_frame_of_the_targets_turn(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as work:
        caller = await begin(work)
        async with subscribed(work.server, caller) as one:
            await one.say("text_input", sessionId=caller, text=write("!list .\n---\n!say It is blue."))
            heard = await one.until("text_done")
        (call,) = of(heard, "tool_call_start")
        (result,) = of(heard, "tool_result")
        said = msgspec.json.decode(result["result"])
        theirs = await events(work.server, said["sessionId"])
    assert call["agentExchangeId"] == result["agentExchangeId"] == call["callId"]
    assert (said["status"], said["response"], said["toolCallCount"]) == ("complete", "It is blue.", 1)
    (message,) = of(theirs, "user_message")
    assert (message["fromAgentId"], message["fromSessionId"]) == ("ada", caller)
    of_turn = [frame for frame in theirs if not frame["type"].startswith("session_")]
    assert {frame.get("agentExchangeId") for frame in of_turn} == {call["callId"]}
    assert {"tool_call_start", "tool_result", "text_done"} <= set(types(of_turn))


async def test_answer_that_comes_later_is_a_callback_and_one_turn_of_the_caller(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as work:
        caller = await begin(work)
        async with subscribed(work.server, caller) as one:
            order = write("!gate answer\n!say It is blue.", mode="async")
            await one.say("text_input", sessionId=caller, text=f"{order}\n---\n!say I wait.")
            heard = await one.until(lambda frame: frame.get("text") == "I wait.")
            work.provider.gates.open("answer")
            later = await one.until("agent_callback_result")
            after = await one.until("text_done")
        replayed = await events(work.server, caller)
        log = await work.server.settled(caller, after=later[-1]["sequence"] // FRAMES)
        theirs = await events(work.server, msgspec.json.decode(of(heard, "tool_result")[0]["result"])["sessionId"])
    (call,) = of(heard, "tool_call_start")
    started = msgspec.json.decode(of(heard, "tool_result")[0]["result"])
    assert started["status"] == "started"
    callback = later[-1]
    assert (callback["result"], callback["agentExchangeId"]) == ("It is blue.", call["callId"])
    assert callback["responseId"] == of(theirs, "text_done")[0]["responseId"]
    assert [event["trigger"]["kind"] for event in log if event["type"] == "turn.started"] == ["callback"]
    assert of(after, "user_message") == []
    assert len(of(replayed, "agent_callback_result")) == 1


async def test_message_of_an_agent_to_a_busy_one_waits_with_its_source(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as work:
        target = await begin(work, agent="bea")
        caller = await begin(work)
        async with subscribed(work.server, target, caller) as one:
            await one.say("text_input", sessionId=target, text="!gate busy\n!say Done.")
            await work.provider.received(1)
            await one.say("text_input", sessionId=caller, text=write("!say Blue.", session=target))
            queued = (await one.until("message_queued"))[-1]
            work.provider.gates.open("busy")
            callback = (await one.until("agent_callback_result"))[-1]
    assert (queued["sessionId"], queued["source"], queued["position"]) == (target, "agent", 1)
    assert (queued["fromAgentId"], queued["fromSessionId"]) == ("ada", caller)
    assert (callback["sessionId"], callback["result"]) == (caller, "Blue.")


async def test_answer_to_a_deleted_caller_is_dropped_quietly(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as work:
        target, caller = await begin(work, agent="bea"), await begin(work)
        async with subscribed(work.server, target, caller) as one:
            order = write("!gate answer\n!say Blue.", mode="async", session=target)
            await one.say("text_input", sessionId=caller, text=order)
            await one.until(lambda frame: frame["type"] == "user_message" and frame["sessionId"] == target)
            await operation(work.server, "delete", sessionId=caller)
            await one.until("session_deleted")
            work.provider.gates.open("answer")
            heard = await one.until(lambda frame: frame["type"] == "text_done" and frame["sessionId"] == target)
            heard += await one.flush()
    assert of(heard, "agent_callback_result", "error") == []

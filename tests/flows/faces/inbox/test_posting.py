"""Posting over MCP: people's words start or join a turn, each once and in order; agents speak, yield, and use old names."""

import asyncio
from pathlib import Path

from palaver.backends.script.script import Boundary, Say, Tool, Wait, turns
from tests.flows.faces.inbox.client import TOKENS, inbox, with_tokens
from tests.flows.served import Served, serving


async def users(served: Served, conversation: str) -> list[str]:
    """What people said, as the agent is shown it."""
    view = await served.state(conversation)
    return [block["text"] for message in view["messages"] if message["role"] == "user" for block in message["blocks"]]


async def test_every_message_is_injected_in_order_and_none_is_merged_away(tmp_path: Path) -> None:
    script = turns([Wait("gate"), Boundary(), Say("All heard.")])
    async with serving(tmp_path, script) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation) as human:
            said = ["Begin", "and this", "and this", "and that"]
            sent = [await human.say(text) for text in said]
            # They wait for the next boundary, and are in the inbox already, each with its own id.
            page = await human.read()
            assert [message["content"] for message in page["messages"]] == said
            assert [message["id"] for message in page["messages"]] == [one["id"] for one in sent]
            served.agent.open_gate("gate")
            events = await served.settled(conversation)
            assert len([event for event in events if event["type"] == "turn.started"]) == 1
            assert await users(served, conversation) == said
            # Delivered is not posted again.
            assert [message["content"] for message in (await human.read())["messages"]] == [*said, "All heard."]


async def test_messages_that_wait_over_a_restart_are_injected_once_and_in_order(tmp_path: Path) -> None:
    async with serving(tmp_path, [Wait("never")]) as served:
        conversation = await served.create(id="talk")
        async with inbox(served, "human", conversation) as human:
            before = [await human.say(text) for text in ("Begin", "then", "last")]
    async with serving(tmp_path, [Say("Here again.")]) as served, inbox(served, "human", conversation) as human:
        messages = await human.until("Begin", "then", "last", "Here again.")
        assert [message["id"] for message in messages[:3]] == [one["id"] for one in before]
        assert await users(served, conversation) == ["Begin", "then", "last"]


async def test_message_starts_a_turn_and_carries_its_origin(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation, TOKENS["human"]) as human:
            await human.say("Hello")
            await served.settled(conversation)
        (message, *_) = (await served.state(conversation))["messages"]
        assert message["origin"]["face"] == "inbox"
        assert message["origin"]["user"] == "the human"


async def test_agent_from_elsewhere_speaks_on_screen_and_in_the_inbox_without_a_turn(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create()
        async with (
            inbox(served, "assistant", conversation, TOKENS["agent"]) as agent,
            inbox(served, "human", conversation) as human,
        ):
            sent = await agent.call("chat.assistant.post", mime="text/plain", content="The build is done.")
            (message,) = (await human.read())["messages"]
            assert message == {**sent, "author": "assistant", "mime": "text/plain", "content": "The build is done."}
        view = await served.state(conversation)
        (shown,) = view["messages"]
        assert (shown["role"], shown["agent"], shown["blocks"][0]["text"]) == (
            "assistant",
            "the agent",
            "The build is done.",
        )
        assert view["turn"] is None
        assert view["last_turn"] is None


async def test_each_post_is_answered_with_its_own_id_whatever_was_said_just_before(tmp_path: Path) -> None:
    async with serving(tmp_path, [Say("An answer.")]) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation) as human, inbox(served, "assistant", conversation) as agent:
            asked = await human.say("A question.")
            await human.until("A question.", "An answer.")
            await served.settled(conversation)
            posts = [
                await agent.call("chat.assistant.post", mime="text/plain", content=text) for text in ("one", "two")
            ]
            messages = await human.until("one", "two")
            told = [{"id": message["id"], "ts": message["ts"]} for message in messages]
            assert [asked, *posts] == [told[0], *told[2:]]


async def test_retired_names_do_the_same_and_are_said_to_be_deprecated(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        conversation = await served.create()
        async with inbox(served, "assistant", conversation) as agent:
            tools = await agent.tools()
            for name in ("ui.send_message", "ui.end_turn"):
                assert "deprecated" in (tools[name].description or "").lower()
            sent = await agent.call("ui.send_message", mime="text/markdown", content="As of old.")
            assert set(sent) == {"id", "ts"}
            assert (await agent.read())["last_id"] == sent["id"]
            assert await agent.call("ui.end_turn") == {"ok": True}
            # As a model is given the names.
            assert await agent.call("loop_yield_turn") == {"ok": True}


async def test_yielding_ends_the_turn_after_the_current_calls_and_the_next_message_wakes(tmp_path: Path) -> None:
    script = turns([Say("Look."), Tool("look", output="found", wait="gate"), Say("Never said.")], [Say("Awake.")])
    async with serving(tmp_path, script) as served:
        conversation = await served.create()
        async with (
            inbox(served, "human", conversation) as human,
            inbox(served, "assistant", conversation) as agent,
        ):
            await human.say("Go")
            async with served.events(conversation, after=0) as stream:
                async for event in stream.until(lambda event: event["type"] == "tool.started"):
                    assert event["type"] != "turn.finished"
            assert await agent.call("loop.yield_turn") == {"ok": True}
            assert (await served.state(conversation))["turn"]["yielding"]
            served.agent.open_gate("gate")
            events = await served.settled(conversation)
            assert events[-1]["outcome"] == "yielded"
            # The result is kept; nothing more is said.
            assert [event["output"] for event in events if event["type"] == "tool.finished"] == ["found"]
            assert [message["content"] for message in (await human.read())["messages"]] == ["Go", "Look."]
            await human.say("Wake up")
            await human.until("Go", "Look.", "Wake up", "Awake.")


async def test_yielding_at_rest_is_no_failure(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        conversation = await served.create()
        async with inbox(served, "assistant", conversation) as agent:
            assert await agent.call("loop.yield_turn") == {"ok": True}
            assert (await agent.read())["messages"] == []


async def test_owner_acts_for_a_subscriber_and_nobody_else_does(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation) as owner:
            await owner.say("For Ada", subscriber="ada")
            await served.settled(conversation)
            assert (await owner.call("chat_read_since", subscriber="ada"))["messages"]
        (message, *_) = (await served.state(conversation))["messages"]
        assert message["origin"]["user"] == "ada"
        async with inbox(served, "human", conversation, TOKENS["human"]) as human:
            refusal = await human.refused("chat.human.post", mime="text/plain", content="x", subscriber="ada")
            assert "owner" in refusal
        async with inbox(served, "assistant", conversation) as owner:
            await owner.call("chat.assistant.post", mime="text/plain", content="I am Bob", subscriber="bob")
        assert (await served.state(conversation))["messages"][-1]["agent"] == "bob"


async def test_posts_that_make_no_sense_are_refused_in_words(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation) as human:
            assert "content" in await human.refused("chat.human.post", mime="text/plain", content="  ")
            assert "mime" in await human.refused("chat.human.post", mime="markdown", content="x")
            assert "content" in await human.refused("chat.human.post", mime="text/plain")
            assert "1 MiB" in await human.refused("chat.human.post", mime="text/plain", content="x" * ((1 << 20) + 1))
            assert (await human.read())["messages"] == []


async def test_full_queue_is_told_to_the_poster(tmp_path: Path) -> None:
    async with serving(tmp_path, [Wait("never")]) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation) as human:
            await human.say("Begin")
            for lot in ("first", "second"):  # A token has 32 streams at once, and each answer is one while it is given.
                await asyncio.gather(*(human.say(f"More of the {lot} lot, {number}") for number in range(25)))
            assert "queue is full" in await human.refused("chat.human.post", mime="text/plain", content="one more")

"""Reading an inbox over MCP: the resource and the tool agree, ids only grow, paging is exact."""

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from palaver.backends.script.script import Boundary, Emit, Pause, Say, Step, Think, Tool, Wait, turns
from palaver.clock import ManualClock
from palaver.schema.events import AnswerStarted, TextDelta
from tests.flows.faces.inbox.client import ERAS, INBOX, Era, inbox
from tests.flows.served import WAIT_S, serving


def _told(text: str) -> dict[str, Any]:
    """A message as one brings it from elsewhere."""
    block = {"type": "text", "index": 0, "text": text}
    return {"id": "m", "role": "user", "seq": 0, "updated_seq": 0, "ts": 0, "blocks": [block]}


def contents(page: dict[str, Any]) -> list[str]:
    return [message["content"] for message in page["messages"]]


async def test_empty_inbox_has_no_last_id(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation) as human:
            assert await human.read() == {"last_id": None, "messages": []}
            assert await human.since() == {"last_id": None, "messages": []}


@pytest.mark.parametrize("era", ERAS)
async def test_posted_message_is_in_the_resource_with_its_id_time_and_kind_of_text(tmp_path: Path, era: Era) -> None:
    async with serving(tmp_path, [Say("Hello there.")]) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation, era=era) as human:
            sent = await human.say("**Deploy** now?", mime="text/plain")
            user, answer = await human.until("**Deploy** now?", "Hello there.")
            assert user == {**sent, "author": "user", "mime": "text/plain", "content": "**Deploy** now?"}
            assert answer["author"] == "assistant"
            assert answer["mime"] == "text/markdown"
            assert set(answer) == {"id", "ts", "author", "mime", "content"}
            assert answer["ts"].endswith("Z")
            resources = (await human.client.list_resources()).resources
            assert [(known.uri, known.mime_type) for known in resources] == [(INBOX, "application/json")]


async def test_ids_increase_within_a_millisecond_and_over_a_restart_with_an_earlier_clock(tmp_path: Path) -> None:
    ids: list[str] = []
    for start_ms in (1_760_000_000_000, 1_750_000_000_000):
        async with serving(tmp_path, [Say("Well."), Boundary()], clock=ManualClock(start_ms)) as served:
            conversation = "talk" if ids else await served.create(id="talk")
            async with inbox(served, "human", conversation) as human:
                ids += [(await human.say(word))["id"] for word in ("a", "b", "c")]
                await served.settled(conversation)
                page = await human.since()
                known = [message["id"] for message in page["messages"]]
                assert set(ids) <= set(known)
                assert known == sorted(set(known))
    assert all(before < after for before, after in pairwise(ids))


async def test_pages_are_exact_and_an_empty_one_returns_the_given_id(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        conversation = await served.create()
        async with (
            inbox(served, "human", conversation) as human,
            inbox(served, "assistant", conversation) as assistant,
        ):
            said = [f"Line {number}" for number in range(105)]
            for line in said:
                await assistant.call("chat.assistant.post", mime="text/markdown", content=line)
            found: list[str] = []
            last: str | None = None
            while (page := await human.since(last, limit=10))["messages"]:
                found += contents(page)
                assert page["last_id"] == page["messages"][-1]["id"]
                assert last is None or page["messages"][0]["id"] > last
                last = page["last_id"]
            assert found == said
            assert page == {"messages": [], "last_id": last}
            assert await human.read() == await human.since(limit=200)
            for name in ("chat.read_since", "ui.chat_read_since", "ui_chat_read_since"):
                assert await human.call(name, after_id=last) == page


async def test_resource_gives_everything_up_to_a_thousand_messages_and_then_the_newest(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for count in (1_000, 1_001):
            said = [f"Line {number}" for number in range(count)]
            conversation = await served.create()
            filled = await served.command(
                conversation, type="restore_messages", messages=[_told(line) for line in said]
            )
            assert filled.status_code == 202, filled.text
            async with inbox(served, "human", conversation) as human:
                page = await human.read()
                assert contents(page) == said[-1_000:]
                assert page.get("truncated", False) is (count > 1_000)
                newest = await human.since(page["messages"][-51]["id"])
                assert (newest["messages"], newest["last_id"]) == (page["messages"][-50:], page["last_id"])
                assert "truncated" not in newest


async def test_resource_ends_at_a_megabyte_of_text_and_says_so(tmp_path: Path) -> None:
    long = "x" * 200_000
    async with serving(tmp_path) as served:
        conversation = await served.create()
        async with inbox(served, "assistant", conversation) as agent:
            for number in range(7):
                await agent.call("chat.assistant.post", mime="text/plain", content=f"{number}{long}")
            page = await agent.read()
            assert [text[0] for text in contents(page)] == ["2", "3", "4", "5", "6"]
            assert page["truncated"] is True
            first = await agent.since(limit=3)
            assert [text[0] for text in contents(first)] == ["0", "1", "2"]


async def test_message_that_was_removed_or_cleared_on_another_face_is_gone(tmp_path: Path) -> None:
    answers: dict[str, list[Step]] = {"First": [Say("One.")], "Second": [Say("Two.")], "Third": [Wait("never")]}
    async with serving(tmp_path, lambda prompt: answers[prompt.text]) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation) as human:

            async def both() -> list[str]:
                page = await human.read()
                assert page == await human.since()
                return contents(page)

            first = await human.say("First")
            await human.until("First", "One.")
            await served.settled(conversation)
            await human.say("Second")
            await human.until("Second", "Two.")
            view = await served.state(conversation)
            await served.settled(conversation, after=view["seq"] - 1)
            asked, answered = (message["id"] for message in view["messages"][:2])
            await served.command(conversation, type="remove_message", message=asked)
            assert await both() == ["One.", "Second", "Two."]
            await served.command(conversation, type="remove_message", message=answered)
            assert await both() == ["Second", "Two."]
            # A cursor of what is gone stays valid.
            assert contents(await human.since(first["id"])) == ["Second", "Two."]
            await served.command(conversation, type="truncate_messages", from_index=0)
            assert await both() == []
            await human.say("Third")
            await served.agent.reached("never")
            await human.say("Taken back")
            queued = (await served.state(conversation))["queue"][0]["id"]
            assert await both() == ["Third", "Taken back"]
            await served.command(conversation, type="remove_queued", item=queued)
            assert await both() == ["Third"]


async def test_queued_message_that_was_delivered_and_then_cut_off_is_gone(tmp_path: Path) -> None:
    async with serving(tmp_path, turns([Wait("gate"), Boundary(), Say("Both.")], [Say("Again.")])) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation) as human:
            await human.say("Begin")
            await served.agent.reached("gate")
            await human.say("This too")
            served.agent.open_gate("gate")
            await human.until("Begin", "This too", "Both.")
            await served.settled(conversation)
            await served.command(conversation, type="truncate_messages", from_index=1)
            assert contents(await human.read()) == ["Begin"]
            await served.command(conversation, type="regenerate")
            await human.until("Begin", "Again.")


async def test_unknown_cursor_is_said_and_never_answered_with_everything(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        conversation = await served.create(message="Hello")
        async with inbox(served, "human", conversation) as human:
            for strange in ("yesterday", "", "9" * 16):
                assert "after_id" in await human.refused("chat_read_since", after_id=strange)
            assert "limit" in await human.refused("chat_read_since", limit=0)
            assert "wanted" in await human.refused("chat_read_since", wanted=1)


async def test_text_before_a_tool_call_is_posted_at_once_and_once(tmp_path: Path) -> None:
    script: list[Step] = [Think("Hm."), Say("Let me look."), Tool("look", wait="gate"), Say("It is green.")]
    async with serving(tmp_path, script) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation) as human:
            await human.say("Is CI green?")
            # The tool stands still, and what was said before it is there.
            await human.until("Is CI green?", "Let me look.")
            served.agent.open_gate("gate")
            await served.settled(conversation)
            assert contents(await human.read()) == ["Is CI green?", "Let me look.", "It is green."]


async def test_text_that_broke_off_is_not_posted(tmp_path: Path) -> None:
    half = (AnswerStarted(message="half"), TextDelta(message="half", block=0, text="Half of"))
    async with serving(
        tmp_path, [Say("All of it."), Boundary(), *(Emit(event) for event in half), Wait("never")]
    ) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation) as human:
            await human.say("Go")
            await served.agent.reached("never")
            await served.command(conversation, type="interrupt")
            events = await served.settled(conversation)
            assert "Half of" in [event["text"] for event in events if event["type"] == "text.finished"]
            assert contents(await human.read()) == ["Go", "All of it."]


async def test_resource_and_tool_agree_at_every_moment(tmp_path: Path) -> None:
    script = [step for number in range(20) for step in (Say(f"Word {number}."), Pause(0.001), Boundary())]
    async with serving(tmp_path, script) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation) as human:
            await human.say("Talk")
            settled = asyncio.create_task(served.settled(conversation))
            rounds = 0
            async with asyncio.timeout(WAIT_S):
                while not settled.done() or not rounds:
                    before = await human.since(limit=200)
                    resource = await human.read()
                    after = await human.since(limit=200)
                    # Append-only: what was read between two reads lies between them.
                    length = len(resource["messages"])
                    assert len(before["messages"]) <= length <= len(after["messages"])
                    assert after["messages"][:length] == resource["messages"]
                    assert resource["messages"][: len(before["messages"])] == before["messages"]
                    rounds += 1
            await settled
            assert await human.read() == await human.since(limit=200)


async def test_inbox_has_the_order_of_the_screen(tmp_path: Path) -> None:
    script: list[Step] = [Say("One."), Tool("look", output="x"), Say("Two.")]
    async with serving(tmp_path, script) as served:
        conversation = await served.create()
        async with (
            inbox(served, "human", conversation) as human,
            inbox(served, "assistant", conversation) as assistant,
        ):
            await human.say("First")
            await served.settled(conversation)
            await assistant.call("chat.assistant.post", mime="text/markdown", content="From elsewhere.")
            await human.say("Second")
            await human.until("Second", "One.", "Two.")
            view = await served.state(conversation)
            shown = [
                (message["role"], block["text"])
                for message in view["messages"]
                for block in message["blocks"]
                if block["type"] == "text"
            ]
            page = await human.read()
            assert [(message["author"], message["content"]) for message in page["messages"]] == shown


async def test_long_message_is_whole_in_the_inbox(tmp_path: Path) -> None:
    long = "word " * 40_000
    async with serving(tmp_path) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation) as human:
            await human.say(long)
            assert contents(await human.read())[0] == long
            assert contents(await human.since(limit=1)) == [long]

"""Being told of what people say: once a batch, in both eras, never of an agent's own words; what is missed is read."""

from pathlib import Path

import mcp_types as types
import pytest

from palaver.backends.script.script import Say, Wait
from tests.flows.faces.inbox.client import ERAS, INBOX, Era, inbox
from tests.flows.served import serving


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("side", ["human", "assistant"])
async def test_subscriber_is_told_of_people_and_not_of_the_agent(tmp_path: Path, era: Era, side: str) -> None:
    async with serving(tmp_path, [Say("An answer."), Say("And more.")]) as served:
        conversation = await served.create()
        async with (
            inbox(served, side, conversation, era=era) as listener,
            inbox(served, "assistant", conversation) as agent,
            listener.subscribed(),
        ):
            await agent.call("chat.assistant.post", mime="text/plain", content="Of my own accord.")
            await served.send(conversation, "From the page")
            assert await listener.update() == INBOX
            await served.settled(conversation)
            await served.send(conversation, "Once more")
            assert await listener.update() == INBOX
            await served.settled(conversation)
            # Two messages of people, two updates: none for what the agents said before, between and after.
            assert listener.told.empty()


@pytest.mark.parametrize("era", ERAS)
async def test_waiting_message_is_told_when_it_is_posted_and_not_again_when_it_is_delivered(
    tmp_path: Path, era: Era
) -> None:
    async with serving(tmp_path, [Wait("gate"), Say("Done.")]) as served:
        conversation = await served.create(message="Begin")
        await served.agent.reached("gate")
        async with inbox(served, "human", conversation, era=era) as human, human.subscribed():
            await human.say("This too")
            assert await human.update() == INBOX
            served.agent.open_gate("gate")
            await human.until("Begin", "This too", "Done.")
            await served.send(conversation, "Last")
            assert await human.update() == INBOX
            await served.settled(conversation, after=(await served.state(conversation))["seq"] - 1)
            assert human.told.empty()


@pytest.mark.parametrize("era", ERAS)
async def test_lost_update_is_recovered_by_the_next_read_and_a_doubled_one_brings_nothing_twice(
    tmp_path: Path, era: Era
) -> None:
    async with serving(tmp_path) as served:
        conversation = await served.create(message="While nobody listened")
        await served.settled(conversation)
        async with inbox(served, "human", conversation, era=era) as human:
            mark = (await human.since())["last_id"]
            await served.send(conversation, "Missed")
            async with human.subscribed():
                await human.say("Heard")
                await human.update()
                page = await human.since(mark)
                said = [message["content"] for message in page["messages"] if message["author"] == "user"]
                assert said == ["Missed", "Heard"]
                # Told again, one reads on from the mark: nothing of it comes twice.
                await served.settled(conversation, after=(await served.state(conversation))["seq"] - 1)
                rest = await human.since(page["last_id"])
                assert not [message for message in rest["messages"] if message["author"] == "user"]


async def test_who_unsubscribed_is_told_no_more(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation, era="legacy") as human:
            async with human.subscribed():
                pass
            await human.say("Unheard")
            await human.client.session.send_ping()
            assert human.told.empty()
        await served.deserted()


async def test_session_that_ends_leaves_no_reader_behind(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation, era="legacy") as human:
            subscribe = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=INBOX))
            await human.client.session.send_request(subscribe, types.EmptyResult)
            assert served.app.feed.readers == 1
        await served.deserted()

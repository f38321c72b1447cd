"""Commands over HTTP: accepted means on disk, once, whatever is repeated, raced or malformed."""

import pytest

from tests.flows.served import Served

pytestmark = pytest.mark.anyio


async def test_message_is_answered_and_its_events_are_numbered_without_a_gap(server: Served) -> None:
    conversation = await server.create(title="First")

    accepted = await server.send(conversation, "hello")
    events = await server.settled(conversation)

    assert accepted["turn"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    said = [message for message in (await server.state(conversation))["messages"] if message["role"] == "assistant"]
    assert said[0]["blocks"][0]["text"] == "Hello there, how are you?"

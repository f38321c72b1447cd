"""Following a chat: a snapshot, then contiguous numbers, whoever comes and goes."""

from pathlib import Path

import pytest

from tests.flows.faces.chats.chat import following
from tests.flows.served import Served

pytestmark = pytest.mark.anyio


async def test_subscription_makes_the_chat_and_begins_with_a_snapshot(server: Served) -> None:
    async with following(server, "brand-new") as chat:
        first = chat.frames[0]
        assert first["thread"]["id"] == "brand-new"
        assert first["messages"] == []
        frames = await chat.say("Hello")
        print(frames)
        assert chat.texts == [("user", "Hello"), ("assistant", "Hello there, how are you?")]
        assert (await chat.snapshot())["messages"] == chat.client.messages

"""The typed client over a real server: commands that survive lost answers, a view that survives lost connections."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from palaver.backends.script.script import Say, Step, Wait
from palaver.client import Client
from palaver.client.client import Unreachable
from palaver.errors import Conflict, NotFound, TooLarge, Unauthorized
from palaver.schema.commands import CreateConversation, Interrupt, SendMessage, UpdateConversation
from palaver.schema.view import State, TextBlock
from tests.flows.served import WAIT_S, Served, serving


def texts(state: State) -> list[str]:
    return [block.text for message in state.messages for block in message.blocks if isinstance(block, TextBlock)]


async def until(client: Client, conversation: str, holds: Callable[[State], bool], start: State | None = None) -> State:
    async with asyncio.timeout(WAIT_S), aclosing(client.follow(conversation, start)) as views:
        async for followed in views:
            if holds(followed.state):
                return followed.state
    raise AssertionError("following never ends by itself")


async def until_rest(client: Client, conversation: str, start: State) -> State:
    return await until(client, conversation, lambda state: state.last_turn is not None and state.turn is None, start)


async def test_conversation_is_followed_from_the_first_message_to_the_answer(server: Served) -> None:
    async with Client.connect(server.url, server.token) as client:
        created = await client.create(CreateConversation(title="By the client"))
        before = await client.snapshot(created.conversation)
        await client.command(created.conversation, SendMessage(content="hello"))
        state = await until_rest(client, created.conversation, before)
        assert texts(state) == ["hello", "Hello there, how are you?"]
        assert state == await client.snapshot(created.conversation)
        assert [row.title for row in await client.conversations()] == ["By the client"]
        assert (await client.search("hello"))[0].conversation == created.conversation
        assert {agent.id for agent in await client.agents()} == {"default", "other"}
        assert await client.requests() == []


async def test_command_repeated_by_hand_with_its_id_has_one_effect(server: Served) -> None:
    async with Client.connect(server.url, server.token) as client:
        conversation = (await client.create(CreateConversation(client_request_id="make-it"))).conversation
        assert (await client.create(CreateConversation(client_request_id="make-it"))).conversation == conversation
        rename = UpdateConversation(title="Once", client_request_id="rename")
        assert await client.command(conversation, rename) == await client.command(conversation, rename)
        with pytest.raises(Conflict):
            await client.command(conversation, UpdateConversation(title="Twice", client_request_id="rename"))


async def test_following_goes_on_through_a_restart_of_the_server(tmp_path: Path) -> None:
    script: list[Step] = [Say("one "), Wait("gate"), Say("two")]
    async with serving(tmp_path / "data", script) as first:
        port = first.app.config.port
        async with Client.connect(first.url, first.token) as client:
            conversation = (await client.create(CreateConversation(message="go"))).conversation
            held = await until(client, conversation, lambda state: "one " in texts(state))
    async with serving(tmp_path / "data", script, port=port) as again, Client.connect(again.url, again.token) as client:
        state = await until_rest(client, conversation, held)
        assert state == await client.snapshot(conversation)
        assert state.messages[-1].status == "interrupted"


async def test_refusals_come_back_as_the_errors_they_are(server: Served) -> None:
    async with Client.connect(server.url, server.token) as client:
        with pytest.raises(NotFound):
            await client.snapshot("nobody")
        conversation = (await client.create(CreateConversation())).conversation
        with pytest.raises(TooLarge, match="1 MiB"):
            await client.command(conversation, SendMessage(content="x" * (2 << 20)))
        assert not (await client.command(conversation, Interrupt())).applied
    async with Client.connect(server.url, "wrong") as stranger:
        with pytest.raises(Unauthorized):
            await stranger.conversations()
    async with Client.connect("http://127.0.0.1:9", "x") as nowhere:
        with pytest.raises(Unreachable, match="palaver serve"):
            await nowhere.conversations()


async def test_client_is_named_in_what_it_causes(server: Served) -> None:
    async with Client.connect(server.url, server.token) as one, Client.connect(server.url, server.token) as other:
        assert one.name != other.name
    async with Client.connect(server.url, server.token, name="desk") as client:
        conversation = (await client.create(CreateConversation(message="hello"))).conversation
        state = await until(client, conversation, lambda state: bool(state.messages))
        origin = state.messages[0].origin
        assert origin is not None
        assert origin.client == client.name == "desk"


async def test_search_in_one_conversation_finds_nothing_of_another(server: Served) -> None:
    async with Client.connect(server.url, server.token) as client:
        first = (await client.create(CreateConversation(message="of herrings"))).conversation
        second = (await client.create(CreateConversation(message="more herrings"))).conversation
        async with asyncio.timeout(WAIT_S):
            while len(await client.search("herrings")) < 2:
                _ = await client.health()
        assert [hit.conversation for hit in await client.search("herrings", conversation=first)] == [first]
        assert [hit.conversation for hit in await client.search("herrings", conversation=second)] == [second]


async def test_long_text_is_read_from_where_it_is_kept(server: Served) -> None:
    text = "herring " * 40_000
    async with Client.connect(server.url, server.token) as client:
        conversation = (await client.create(CreateConversation(message=text))).conversation
        state = await until(client, conversation, lambda state: bool(state.messages))
        (block,) = [block for block in state.messages[0].blocks if isinstance(block, TextBlock)]
        assert block.blob is not None
        assert len(block.text) < len(text)
        assert (await client.blob(block.blob.id)).decode() == text
        with pytest.raises(NotFound):
            await client.blob("0" * 64)

"""Commands that change the history while the agent works: they wait in order, are seen waiting, and can be taken back."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.flows.at_work import Work
from tests.flows.engine import FREE, engine
from tests.flows.faces.chats.chat import Chat, following, fresh
from tests.flows.served import WAIT_S
from tests.provider import Answer, Call

pytestmark = pytest.mark.anyio

RENAME = {"name": "rename", "description": "Renames.", "parameters": {"type": "object"}}
GATE = "{0}\n!say Wait.\n!gate {0}"


@pytest.fixture(scope="module")
async def work(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Work]:
    async with engine(tmp_path_factory.mktemp("waiting")) as started:
        yield started


@asynccontextmanager
async def chatting(work: Work, **params: Any) -> AsyncIterator[Chat]:
    conversation = await work.server.create(project=str(work.project), params=params)
    async with following(work.server, conversation) as chat:
        yield chat


@asynccontextmanager
async def working(work: Work, word: str) -> AsyncIterator[Chat]:
    """A chat with a message and its answer, whose second answer waits at the gate of that name."""
    async with chatting(work) as chat:
        await chat.say("first")
        await chat.did("user_message", content=GATE.format(word))
        await work.provider.gates.reached(word)
        await chat.until(lambda frame: frame["type"] == "stream_delta")
        yield chat


@asynccontextmanager
async def paused(work: Work, word: str) -> AsyncIterator[Chat]:
    """A chat that is paused with a call."""
    call = Call(name="shell", input={"command": f"touch {word}"})
    work.provider.script.append(Answer(blocks=(call,), when=f"^{word}$"))
    async with chatting(work) as chat:
        await chat.say("first")
        await chat.did("user_message", content=word)
        await chat.until_state("paused")
        yield chat


def waiting(chat: Chat) -> list[tuple[str, str]]:
    return [(item["command_type"], item["preview"]) for item in chat.client.runtime["queued_items"]]


def said(chat: Chat) -> list[str]:
    return [text for role, text in chat.texts if role == "user"]


def notices(chat: Chat) -> list[str]:
    return [one["content"] for one in chat.client.messages if one.get("event_kind") == "notice"]


async def until_waiting(chat: Chat, size: int) -> None:
    await _until(chat, lambda: chat.client.runtime["queue_size"] == size)


async def until_rest(chat: Chat, *words: str) -> None:
    """Nothing waits and nothing runs; these are the words of people in it, and a new subscriber sees just that."""
    async with asyncio.timeout(WAIT_S):
        while not await _rests(chat):
            await chat.next()
    assert said(chat) == list(words)
    await same(chat)


async def _rests(chat: Chat) -> bool:
    """As the server sees it, and heard up to there."""
    now = await chat.snapshot()
    while chat.client.seq < now["seq"]:
        await chat.next()
    return (now["runtime"]["queue_size"], now["runtime"]["state"]) == (0, "idle")


async def _until(chat: Chat, is_so: Callable[[], bool]) -> None:
    """Whatever is heard until then; fails with what it is instead."""
    try:
        async with asyncio.timeout(WAIT_S):
            while not is_so():
                await chat.next()
    except TimeoutError:
        raise AssertionError(f"it stayed {chat.client.runtime} with {chat.texts}") from None


async def same(chat: Chat) -> None:
    """What the frames led to is what a new subscriber sees."""
    now = await chat.snapshot()
    assert chat.client.messages == now["messages"]
    assert chat.client.runtime == now["runtime"]


# -- in order


async def test_paused_chat_lets_every_change_of_its_history_wait_in_order(work: Work) -> None:
    async with paused(work, "patient") as chat:
        first, answer = (one["message_id"] for one in chat.client.messages[:2])
        asked = [
            await chat.did("user_message", content="between"),
            await chat.did("update_message", message_id=first, content="changed"),
            await chat.did("remove_message", message_id=answer),
            await chat.did("truncate_messages", from_index=1),
            await chat.did("retry_from_index", index=1, content="again"),
        ]
        await until_waiting(chat, 5)
        assert set(asked) == {"accepted"}
        assert waiting(chat) == [
            ("user_message", "between"),
            ("update_message", "Edit a message: changed"),
            ("remove_message", "Remove a message"),
            ("truncate_messages", "Truncate from message 2"),
            ("retry_from_index", "Try again from message 2: again"),
        ]
        assert chat.client.runtime["state"] == "paused"
        await same(chat)
        await chat.did("approve_tools")
        await until_rest(chat, "changed", "again")
        assert [role for role, _ in chat.texts] == ["user", "user", "assistant"]
        assert notices(chat) == []


async def test_chat_that_waits_for_its_editor_lets_history_wait_too(work: Work) -> None:
    work.provider.script.append(Answer(blocks=(Call(name="rename", input={"to": "x"}),), when="^renaming$"))
    async with chatting(work, policy=FREE) as chat:
        await chat.did("set_params", patch={"ide_tools": [RENAME]})
        await chat.did("user_message", content="renaming")
        await chat.until_state("waiting_ide")
        (call,) = chat.client.messages[-1]["tool_calls"]
        assert await chat.did("regenerate") == "accepted"
        assert await chat.did("user_message", content="later") == "accepted"
        await until_waiting(chat, 2)
        assert waiting(chat) == [("regenerate", "Answer again"), ("user_message", "later")]
        work.provider.script.append(Answer.of("Once more.", when="^renaming$"))
        await chat.did("ide_tool_result", tool_call_id=call["id"], content="Renamed.", tool_failed=False)
        await until_rest(chat, "renaming", "later")
        # The answer that the call belonged to is gone: it was given again, and then the message was answered.
        assert [role for role, _ in chat.texts] == ["user", "assistant", "user", "assistant"]


async def test_index_counts_what_is_there_when_its_turn_comes(work: Work) -> None:
    async with working(work, "counting") as chat:
        await chat.did("truncate_messages", from_index=1)
        await chat.did("retry_from_index", index=1, content="second")
        work.provider.gates.open("counting")
        await until_rest(chat, "first", "second")
        assert notices(chat) == []


async def test_priority_puts_a_change_before_the_others(work: Work) -> None:
    async with working(work, "hurried") as chat:
        await chat.did("user_message", content="later")
        await chat.did("truncate_messages", from_index=0, priority=True)
        await until_waiting(chat, 2)
        assert [kind for kind, _ in waiting(chat)] == ["truncate_messages", "user_message"]
        work.provider.gates.open("hurried")
        await until_rest(chat, "later")


async def test_stop_ends_the_turn_and_what_waits_goes_on(work: Work) -> None:
    async with working(work, "stopped") as chat:
        await chat.did("truncate_messages", from_index=2)
        await until_waiting(chat, 1)
        assert await chat.did("abort") == "aborted"
        await until_rest(chat, "first")


async def test_chat_is_emptied_and_filled_again_by_what_waits(work: Work) -> None:
    async with working(work, "filling") as chat:
        await chat.did("truncate_messages", from_index=0)
        await chat.did("restore_messages", messages=[{"role": "user", "content": "Once upon a time"}])
        await until_waiting(chat, 2)
        assert [kind for kind, _ in waiting(chat)] == ["truncate_messages", "restore_messages"]
        work.provider.gates.open("filling")
        await until_rest(chat, "Once upon a time")


# -- left out, taken back, repeated


async def test_change_that_no_longer_applies_is_left_out_with_a_word_and_blocks_nothing(work: Work) -> None:
    async with working(work, "too-late") as chat:
        first = chat.client.messages[0]["message_id"]
        await chat.did("remove_message", message_id=first)
        await chat.did("update_message", message_id=first, content="changed")
        await chat.did("branch_from_chat", source_chat_id=chat.id)
        await chat.did("user_message", content="on we go")
        work.provider.gates.open("too-late")
        await until_rest(chat, GATE.format("too-late"), "on we go")
        assert notices(chat) == [
            "“Edit a message: changed” was left out: No such message in this conversation.",
            "“Fill with messages from elsewhere” was left out: Only an empty conversation can be filled from elsewhere.",
        ]


async def test_change_that_can_never_apply_is_refused_at_once(work: Work) -> None:
    async with working(work, "never") as chat:
        refused = [
            await chat.command("remove_message", message_id="nobody"),
            await chat.command("truncate_messages", from_index=-1),
            await chat.command("retry_from_index", index=0, content=" "),
            await chat.command("branch_from_chat", source_chat_id="nowhere"),
        ]
        assert [answer.status_code for answer in refused] == [400] * 4
        assert chat.client.runtime["queue_size"] == 0
        work.provider.gates.open("never")
        await until_rest(chat, "first", GATE.format("never"))


async def test_waiting_change_is_taken_back_by_its_request_id_and_its_repetition_is_a_duplicate(work: Work) -> None:
    async with working(work, "taken-back") as chat:
        kept = {"from_index": 2, "client_request_id": fresh()}
        gone = {"client_request_id": fresh()}
        assert await chat.did("truncate_messages", **kept) == "accepted"
        assert await chat.did("regenerate", **gone) == "accepted"
        assert await chat.did("truncate_messages", **kept) == "duplicate"
        assert (await chat.command("truncate_messages", **{**kept, "from_index": 0})).status_code == 400
        address = f"/v1/chats/{chat.id}/queue/{gone['client_request_id']}"
        answers = [await work.server.http.delete(address) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 404]
        work.provider.gates.open("taken-back")
        await until_rest(chat, "first")
        assert await chat.did("truncate_messages", **kept) == "duplicate"
        assert await chat.did("regenerate", **gone) == "duplicate"
        assert len(chat.client.messages) == 2

"""Changing a chat: its parameters and draft, its history, and what it begins with."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.flows.at_work import Work
from tests.flows.engine import bodies, engine
from tests.flows.faces.chats.chat import Chat, following, fresh, types
from tests.flows.served import Served

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def work(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Work]:
    async with engine(tmp_path_factory.mktemp("rewriting")) as started:
        yield started


async def same(chat: Chat) -> None:
    """What the frames led to is what a new subscriber sees."""
    now = await chat.snapshot()
    assert chat.client.messages == now["messages"]
    assert chat.client.thread == {name: value for name, value in now["thread"].items() if value is not None}


def said(chat: Chat) -> list[str]:
    return [text for role, text in chat.texts if role == "user"]


# -- parameters and drafts


async def test_parameters_apply_at_once_are_clamped_cleared_and_refused_by_name(shared: Served) -> None:
    async with following(shared, fresh("params")) as chat:
        patch = {"temperature": 9, "frequency_penalty": -7, "max_tokens": 0, "model": "m-1", "boost_reasoning": True}
        assert await chat.did("set_params", patch=patch) == "applied"
        told = await chat.until_type("thread_updated")
        assert told.items() >= {"temperature": 2, "frequency_penalty": -2, "max_tokens": 1, "model": "m-1"}.items()
        assert told["boost_reasoning"] is True
        assert await chat.did("set_params", patch={"temperature": None, "mode": "agent", "title": "Mine"}) == "applied"
        await chat.until(lambda frame: chat.client.thread["title"] == "Mine")
        assert "temperature" not in chat.client.thread
        assert chat.client.thread["mode"] == "ask"
        wrong = await chat.command("set_params", patch={"max_tokens": "many"})
        assert (wrong.status_code, "max_tokens" in wrong.json()["error"]) == (400, True)
        await same(chat)


async def test_parameter_never_takes_the_place_of_the_envelope(shared: Served) -> None:
    async with following(shared, fresh("envelope")) as chat:
        await chat.did("set_params", patch={"seq": "7", "chat_id": "x", "id": "y", "shape": "round"})
        told = await chat.until_type("thread_updated")
        assert (told["chat_id"], told["shape"]) == (chat.id, "round")
        assert (await chat.snapshot())["thread"]["id"] == chat.id


async def test_draft_is_in_every_snapshot_until_it_is_cleared(shared: Served) -> None:
    async with following(shared, fresh("draft")) as chat:
        assert await chat.did("set_draft", text="half a thought") == "applied"
        assert (await chat.until_type("thread_updated"))["draft"] == "half a thought"
        assert (await chat.snapshot())["thread"]["draft"] == "half a thought"
        assert await chat.did("clear_draft") == "applied"
        assert (await chat.until_type("thread_updated"))["draft"] == ""


# -- history


async def test_retry_from_an_index_truncates_appends_and_generates(work: Work) -> None:
    async with following(work.server, fresh("retry")) as chat:
        await chat.say("one\n!list .\n---\n!say Listed.")
        await chat.say("two")
        index = next(place for place, (_, text) in enumerate(chat.texts) if text == "two")
        assert index == 4
        assert await chat.did("retry_from_index", index=index, content="two, better") == "accepted"
        frames = await chat.answered()
        assert types(frames)[:2] == ["messages_truncated", "message_added"]
        assert frames[0]["from_index"] == index
        assert said(chat)[1:] == ["two, better"]
        assert chat.texts[-1] == ("assistant", "You said: two, better")
        await same(chat)


async def test_regenerate_drops_what_follows_the_last_user_message(work: Work) -> None:
    async with following(work.server, fresh("regenerate")) as chat:
        await chat.say("again")
        before = chat.client.messages[-1]["message_id"]
        assert await chat.did("regenerate") == "accepted"
        await chat.answered()
        assert [role for role, _ in chat.texts] == ["user", "assistant"]
        assert chat.client.messages[-1]["message_id"] != before
        await same(chat)


async def test_message_is_updated_and_with_it_the_answer_if_wanted(work: Work) -> None:
    async with following(work.server, fresh("update")) as chat:
        await chat.say("old words")
        user, answer = (message["message_id"] for message in chat.client.messages)
        assert await chat.did("update_message", message_id=answer, content="mended") == "accepted"
        told = await chat.until_type("message_updated")
        assert (told["message_id"], told["message"]["content"]) == (answer, "mended")
        await chat.did("update_message", message_id=user, content="new words", regenerate=True)
        await chat.answered()
        assert chat.texts == [("user", "new words"), ("assistant", "You said: new words")]
        await same(chat)


async def test_removing_an_answer_removes_its_results(work: Work) -> None:
    async with following(work.server, fresh("remove")) as chat:
        await chat.say("look\n!list .\n---\n!say Listed.")
        _, answer, result, _ = chat.client.messages
        refused = await chat.command("remove_message", message_id=result["message_id"])
        assert refused.status_code == 400
        assert await chat.did("remove_message", message_id=answer["message_id"]) == "accepted"
        first = await chat.until_type("message_removed")
        second = await chat.until_type("message_removed")
        assert [first["message_id"], second["message_id"]] == [answer["message_id"], result["message_id"]]
        assert [role for role, _ in chat.texts] == ["user", "assistant"]
        await same(chat)


async def test_truncating_inside_an_answer_takes_it_as_a_whole(work: Work) -> None:
    async with following(work.server, fresh("inside")) as chat:
        await chat.say("look\n!list .\n---\n!say Listed.")
        assert await chat.did("truncate_messages", from_index=2) == "accepted"
        # The result alone would leave its call without one.
        assert (await chat.until_type("messages_truncated"))["from_index"] == 1
        assert [role for role, _ in chat.texts] == ["user"]
        assert (await chat.snapshot())["messages"] == chat.client.messages


@pytest.mark.parametrize(
    ("text", "state"), [("failing\n!status 400", "error"), ('!tool finish_task {"summary": "Done."}', "completed")]
)
@pytest.mark.parametrize("command", ["truncate_messages", "remove_message"])
async def test_chat_whose_last_turn_is_taken_away_is_idle(work: Work, text: str, state: str, command: str) -> None:
    async with following(work.server, fresh("withdrawn")) as chat:
        await chat.say("before")
        await chat.say(text)
        assert chat.client.runtime["state"] == state
        assert await chat.did("abort") in ("applied", "aborted")
        assert (await chat.snapshot())["runtime"]["state"] == state
        fields = {"from_index": 2} if command == "truncate_messages" else {}
        if command == "remove_message":
            own = [message for message in chat.client.messages if message["role"] in ("user", "assistant")]
            fields = {"message_id": own[-1]["message_id"]}
        assert await chat.did(command, **fields) == "accepted"
        await chat.until_state("idle")
        assert chat.client.runtime["error"] is None
        assert (await chat.snapshot())["runtime"].items() >= {"state": "idle", "error": None}.items()
        await chat.say("And now?")
        assert chat.texts[-1] == ("assistant", "You said: And now?")
        await same(chat)


# -- beginnings


async def test_branch_has_new_ids_and_a_parent_link(work: Work) -> None:
    source, branch, second = fresh("source"), fresh("branch"), fresh("twig")
    async with following(work.server, source) as chat:
        await chat.say("one\n!list .\n---\n!say Listed.")
        await chat.say("two")
        known = chat.client.messages
    # Up to a result means up to the answer it belongs to.
    ask = {"source_chat_id": source, "up_to_message_id": known[2]["message_id"], "client_request_id": fresh()}
    async with following(work.server, branch) as chat:
        assert await chat.did("branch_from_chat", **ask) == "accepted"
        await chat.until(lambda frame: len(chat.client.messages) == 3)
        await chat.until(lambda frame: chat.client.thread["title"] != "")
        assert [message["content"] for message in chat.client.messages] == [one["content"] for one in known[:3]]
        assert not {message["message_id"] for message in chat.client.messages} & {one["message_id"] for one in known}
        assert (
            chat.client.thread.items() >= {"parent_id": source, "link_type": "branch", "root_chat_id": source}.items()
        )
        assert await chat.did("branch_from_chat", **ask) == "duplicate"
        await same(chat)
        await chat.say("another way")
        assert chat.texts[-1] == ("assistant", "You said: another way")
        await same(chat)
        assert (await chat.command("branch_from_chat", source_chat_id=source)).status_code == 400
    async with following(work.server, second) as chat:
        await chat.did("branch_from_chat", source_chat_id=branch)
        await chat.until(lambda frame: len(chat.client.messages) == 5)
        lines = (await work.server.http.get(f"/api/conversations/{second}/export", params={"format": "jsonl"})).text
        made = [line for line in lines.splitlines() if msgspec.json.decode(line)["type"] == "conversation.created"]
        assert len(made) == 1
        assert chat.client.thread.items() >= {"parent_id": branch, "root_chat_id": source}.items()
    assert [request.refused for request in work.provider.requests if request.refused] == []


MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Look"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "call-1", "type": "function", "function": {"name": "list", "arguments": "{}"}}],
    },
    {"role": "tool", "content": "a.txt", "tool_call_id": "call-1"},
    {"role": "assistant", "content": "I see a.txt."},
]


async def test_messages_are_restored_into_an_empty_chat_alone_and_gone_on_with(work: Work) -> None:
    async with following(work.server, fresh("restored")) as chat:
        ask = {"messages": MESSAGES, "client_request_id": fresh()}
        assert await chat.did("restore_messages", **ask) == "accepted"
        assert await chat.did("restore_messages", **ask) == "duplicate"
        await chat.until(lambda frame: len(chat.client.messages) == 5)
        assert [role for role, _ in chat.texts] == ["system", "user", "assistant", "tool", "assistant"]
        call, result = chat.client.messages[2]["tool_calls"][0], chat.client.messages[3]
        assert result["tool_call_id"] == call["id"]
        assert (await chat.command("restore_messages", messages=MESSAGES)).status_code == 400
        await chat.say("And?")
        assert chat.texts[-1] == ("assistant", "You said: And?")
        await same(chat)


@pytest.mark.parametrize(("program", "name"), [(".palaver", "ours-kept"), (".refact", "theirs-kept")])
async def test_chat_is_restored_from_a_trajectory_of_either_program(work: Work, program: str, name: str) -> None:
    home = work.server.app.directory.home
    folder = home / program / "trajectories"
    folder.mkdir(parents=True, exist_ok=True)
    document = {"id": name, "title": "Kept", "messages": MESSAGES}
    (folder / f"{name}.json").write_bytes(msgspec.json.encode(document))
    async with following(work.server, fresh("from-file")) as chat:
        assert await chat.did("restore_from_trajectory", trajectory_id=name) == "accepted"
        await chat.until(lambda frame: chat.client.thread["title"] == "Kept")
        assert [role for role, _ in chat.texts] == ["system", "user", "assistant", "tool", "assistant"]
    # A chat of that very id begins with it.
    async with following(work.server, name) as chat:
        assert len(chat.client.messages) == 5
        assert chat.client.thread["title"] == "Kept"


UNUSABLE = {
    "of-another": '{"id": "somebody-elses", "messages": [{"role": "user", "content": "Not yours"}]}',
    "no-json": '{"id": "ID", "messages": [',
    "no-object": "[1, 2]",
    "no-messages": '{"id": "ID"}',
    "no-roles": '{"id": "ID", "messages": [7]}',
}


@pytest.mark.parametrize("program", [".palaver", ".refact"])
@pytest.mark.parametrize("kind", UNUSABLE)
async def test_file_that_cannot_be_used_is_named_in_a_notice_and_left_alone(
    work: Work, kind: str, program: str
) -> None:
    folder = work.server.app.directory.home / program / "trajectories"
    folder.mkdir(parents=True, exist_ok=True)
    name = fresh(kind)
    file, written = folder / f"{name}.json", UNUSABLE[kind].replace("ID", name)
    file.write_text(written)
    async with following(work.server, fresh("other")) as chat:
        refused = await chat.command("restore_from_trajectory", trajectory_id=name)
        assert (refused.status_code, refused.json()["status"]) == (400, "invalid_content")
    async with following(work.server, name) as chat:
        (notice,) = chat.client.messages
        assert (notice["role"], notice["event_kind"]) == ("event", "notice")
        assert "was not loaded" in notice["content"]
        # It is for people alone, and the chat is as good as empty.
        await chat.did("restore_messages", messages=[{"role": "user", "content": "Mine"}])
        await chat.until(lambda frame: len(chat.client.messages) == 2)
        await chat.say(f"{kind} {program}")
        assert "was not loaded" not in str(bodies(work, f"{kind} {program}")[-1])
        await same(chat)
    assert file.read_text() == written


async def test_chat_is_restored_from_another_chat(work: Work) -> None:
    source = fresh("spoken")
    async with following(work.server, source) as chat:
        await chat.say("remember")
    async with following(work.server, fresh("recalled")) as chat:
        assert await chat.did("RestoreFromTrajectory", trajectory_id=source) == "accepted"
        await chat.until(lambda frame: len(chat.client.messages) == 2)
        assert chat.texts == [("user", "remember"), ("assistant", "You said: remember")]
        assert "parent_id" not in chat.client.thread

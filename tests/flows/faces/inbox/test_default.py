"""The inbox of those who name no conversation: one for all, begun by the first post, heard by who listened before."""

from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from palaver.backends.script.script import Say
from tests.flows.faces.inbox.client import ERAS, INBOX, TOKENS, Era, inbox, with_tokens
from tests.flows.faces.inbox.test_streams import bridged
from tests.flows.served import serving

EMPTY: dict[str, Any] = {"messages": [], "last_id": None}


@pytest.mark.parametrize("era", ERAS)
async def test_first_post_begins_it_and_a_subscriber_of_before_hears_it(tmp_path: Path, era: Era) -> None:
    async with (
        serving(with_tokens(tmp_path), [Say("Hello.")]) as served,
        inbox(served, "human", None, TOKENS["human"], era) as human,
        inbox(served, "assistant", None, TOKENS["agent"], era) as agent,
        human.subscribed(),
        agent.subscribed(),
    ):
        assert await human.read() == EMPTY == await human.since()
        assert await agent.read() == EMPTY
        assert await agent.call("loop.yield_turn") == {"ok": True}
        assert "after_id" in await human.refused("chat_read_since", after_id="0" * 16)
        assert (await served.http.get("/api/conversations")).json()["items"] == []
        assert "content" in await human.refused("chat.human.post", mime="text/plain", content=" ")
        assert (await served.http.get("/api/conversations")).json()["items"] == []
        sent = await human.say("Anybody there?")
        assert (await human.update(), await agent.update()) == (INBOX, INBOX)
        messages = await agent.until("Anybody there?", "Hello.")
        assert messages[0]["id"] == sent["id"]
        await human.say("Good.")
        assert await human.update() == INBOX
        (row,) = (await served.http.get("/api/conversations")).json()["items"]
        # It is a conversation like every other, under its own address too.
        async with inbox(served, "human", row["id"]) as named:
            assert (await named.since(limit=1))["messages"] == messages[:1]


async def test_all_who_name_none_share_one_over_a_restart_and_a_deleted_one_is_begun_anew(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, inbox(served, "assistant", None) as agent:
        await agent.call("chat.assistant.post", mime="text/plain", content="First.")
    async with serving(tmp_path) as served:
        async with inbox(served, "human", None) as human:
            assert [message["content"] for message in (await human.read())["messages"]] == ["First."]
            (row,) = (await served.http.get("/api/conversations")).json()["items"]
            await served.command(row["id"], type="delete_conversation")
            assert await human.read() == EMPTY
            await human.say("Anew")
            assert (await human.since(limit=1))["messages"][0]["content"] == "Anew"
        assert len((await served.http.get("/api/conversations")).json()["items"]) == 1


async def test_rules_for_agents_count_before_it_has_begun(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    record = (
        "---\nname: Default\nbackend: scripted\npolicy:\n- {tool: chat_assistant_post, decision: deny_continue}\n---\n"
    )
    (tmp_path / "agents" / "default.md").write_text(record)
    async with (
        serving(tmp_path, agents_folder=tmp_path / "agents") as served,
        inbox(served, "assistant", None) as agent,
    ):
        with pytest.raises(MCPError) as refused:
            await agent.client.call_tool("chat.assistant.post", {"mime": "text/plain", "content": "x"})
        assert refused.value.code == -32951
        assert (await served.http.get("/api/conversations")).json()["items"] == []


async def test_ids_keep_rising_when_it_is_deleted_and_begun_anew(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, inbox(served, "assistant", None) as agent:

        async def post(content: str) -> str:
            sent = await agent.call("chat.assistant.post", mime="text/plain", content=content)
            return str(sent["id"])

        async def delete() -> None:
            (row,) = (await served.http.get("/api/conversations")).json()["items"]
            await served.command(row["id"], type="delete_conversation")

        marks = [(await post("Old."), await post("Older cursors end here."))[1]]
        # As before: cursors of a first default inbox stay valid.
        assert int(marks[0]) < 10**6
        for round_ in ("second", "third"):
            await delete()
            # The next one has not begun: nothing is after the mark yet, and the mark stays good.
            assert await agent.since(marks[-1]) == {"messages": [], "last_id": marks[-1]}
            texts = [f"{round_} {number}" for number in range(4)]
            ids = [await post(text) for text in texts]
            everything = await agent.since()
            assert [message["id"] for message in everything["messages"]] == ids
            assert (await agent.read())["messages"] == everything["messages"]
            assert [*marks, *ids] == sorted({*marks, *ids})
            assert {len(one) for one in (*marks, *ids)} == {16}
            for mark in marks:
                assert await agent.since(mark) == everything
            assert (await agent.since(ids[1]))["messages"] == everything["messages"][2:]
            assert await agent.since(ids[-1]) == {"messages": [], "last_id": ids[-1]}
            assert "another inbox" in await agent.refused("chat_read_since", after_id="9" * 16)
            marks.append(ids[-1])


@pytest.mark.parametrize("era", ERAS)
async def test_standard_streams_without_a_session_offer_it_too(tmp_path: Path, era: Era) -> None:
    async with (
        serving(tmp_path, [Say("Hello.")]) as served,
        bridged(served, tmp_path, "human", None, era) as human,
        human.subscribed(),
    ):
        assert await human.read() == EMPTY
        await human.say("Over a pipe")
        assert await human.update() == INBOX
        await human.until("Over a pipe", "Hello.")

"""Who comes in at which of the two servers, what each is offered, and what the gate refuses before MCP is spoken."""

import asyncio
import sys
from pathlib import Path

import httpx
import pytest
from mcp.shared.exceptions import MCPError

from palaver.people.authentication import KeyRecord, token_hash
from palaver.people.token_files import rotate_token, write_key_records
from tests.flows.faces.inbox.client import ERAS, TOKENS, Era, inbox, with_tokens
from tests.flows.served import WAIT_S, Served, serving

READING = {"chat_read_since", "chat.read_since", "ui.chat_read_since"}
HUMAN = READING | {"chat.human.post"}
ASSISTANT = READING | {"chat.assistant.post", "loop.yield_turn", "ui.send_message", "ui.end_turn"}

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


async def knock(served: Served, side: str, conversation: str, **headers: str) -> httpx.Response:
    given = {"Authorization": f"Bearer {served.token}", **ACCEPT, **headers}
    async with served.browser() as stranger:
        return await stranger.post(f"/mcp/{side}/{conversation}", json=HELLO, headers=given)


@pytest.mark.parametrize("era", ERAS)
async def test_server_offers_its_sides_tools_only_and_an_observer_those_that_read(tmp_path: Path, era: Era) -> None:
    offers = [
        ("human", None, HUMAN),
        ("human", TOKENS["human"], HUMAN),
        ("human", TOKENS["observer"], READING),
        ("assistant", None, ASSISTANT),
        ("assistant", TOKENS["agent"], ASSISTANT),
        ("assistant", TOKENS["observer"], READING),
    ]
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create()
        for side, token, names in offers:
            async with inbox(served, side, conversation, token, era) as visitor:
                assert set(await visitor.tools()) == names
                assert (await visitor.read())["messages"] == []


async def test_argument_that_a_tool_does_not_take_is_refused_as_its_schema_says(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create()
        for side in ("human", "assistant"):
            async with inbox(served, side, conversation) as visitor:
                tools = await visitor.tools()
                assert [tool.input_schema["additionalProperties"] for tool in tools.values()] == [False] * len(tools)
                assert "afterId" in await visitor.refused("chat_read_since", afterId="0")


async def test_token_of_the_other_side_is_refused(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create()
        for side, kind in (("human", "agent"), ("assistant", "human")):
            answer = await knock(served, side, conversation, Authorization=f"Bearer {kind}-token")
            assert answer.status_code == 403
            assert answer.json()["code"] == "forbidden"
        assert (await knock(served, "human", conversation)).status_code == 200


async def test_token_counts_from_the_moment_it_is_made(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        conversation = await served.create()
        ada = KeyRecord(name="Ada", kind="human", hash=token_hash("made-a-moment-ago"))
        write_key_records(tmp_path, [ada])
        answer = await knock(served, "human", conversation, Authorization="Bearer made-a-moment-ago")
        assert answer.status_code == 200


async def test_tool_of_the_other_side_does_not_exist_here(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create()
        for side, token, name in (
            ("human", TOKENS["human"], "loop.yield_turn"),
            ("human", None, "chat.assistant.post"),
            ("assistant", TOKENS["agent"], "chat.human.post"),
            ("human", TOKENS["observer"], "chat.human.post"),
        ):
            async with inbox(served, side, conversation, token) as visitor:
                with pytest.raises(MCPError) as refused:
                    await visitor.client.call_tool(name, {"mime": "text/plain", "content": "x"})
                assert refused.value.code == -32602
        assert (await served.state(conversation))["messages"] == []


async def test_gate_stands_before_mcp_too(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        conversation = await served.create()
        assert (await knock(served, "human", conversation, Authorization="Bearer wrong")).status_code == 401
        assert (await knock(served, "human", conversation, Host="evil.example")).status_code == 403
        assert (await knock(served, "human", conversation, Origin="http://evil.example")).status_code == 403
        assert (await knock(served, "human", conversation, **{"Sec-Fetch-Site": "cross-site"})).status_code == 403
        async with served.browser() as stranger:
            assert (await stranger.get(f"/mcp/human/{conversation}")).status_code == 401


async def test_unknown_and_deleted_conversations_are_said(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        assert (await knock(served, "human", "nobody")).status_code == 404
        assert (await knock(served, "elsewhere", "nobody")).status_code == 404
        conversation = await served.create()
        await served.command(conversation, type="delete_conversation")
        assert (await knock(served, "assistant", conversation)).status_code == 410


async def test_session_is_served_to_the_token_alone_that_began_it(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create()
        begun = await knock(served, "human", conversation, Authorization="Bearer human-token")
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"], "Mcp-Protocol-Version": "2025-11-25"}
        assert (await knock(served, "human", conversation, **session)).status_code == 404


async def test_open_stream_ends_with_its_token(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        conversation = await served.create()
        begun = await knock(served, "human", conversation)
        headers = {"Mcp-Session-Id": begun.headers["mcp-session-id"], "Accept": "text/event-stream"}
        async with served.http.stream("GET", f"/mcp/human/{conversation}", headers=headers) as stream:
            assert stream.status_code == 200
            rotate_token(tmp_path)
            async with asyncio.timeout(WAIT_S):
                async for _ in stream.aiter_raw():
                    pass
        assert (await knock(served, "human", conversation)).status_code == 401


async def test_without_the_package_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "palaver.faces.inbox.servers", None)
    async with serving(tmp_path) as served:
        conversation = await served.create()
        answer = await knock(served, "human", conversation)
        assert answer.status_code == 501
        assert answer.json()["code"] == "not_installed"
        assert "palaver[mcp]" in answer.json()["message"]

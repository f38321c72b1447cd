"""Attacks of an agent's token on what people said, are about to say and decided, through every face.

The rule is `core/decide/authority.py`: such a token changes its own messages and the answers to them, and lowers limits. Each
attack is checked by what the conversation says afterwards, not by the status alone.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from websockets.asyncio.client import connect

from palaver.backends.script.script import Say, Step, Wait
from palaver.people.authentication import KeyRecord, Kind, token_hash
from tests.flows.served import Served, http_client, serving

pytestmark = pytest.mark.anyio

WELL = (Say("Well."),)
KINDS: tuple[Kind, ...] = ("human", "agent", "observer")


def with_tokens(data: Path) -> Path:
    data.mkdir(exist_ok=True)
    records = [KeyRecord(name=kind, kind=kind, hash=token_hash(f"{kind}-token")) for kind in KINDS]
    records.append(KeyRecord(name="other agent", kind="agent", hash=token_hash("other-token")))
    (data / "tokens.json").write_bytes(msgspec.json.encode(records))
    return data


@asynccontextmanager
async def attacked(
    folder: Path, script: Any = WELL, agents: Path | None = None
) -> AsyncIterator[tuple[Served, httpx.AsyncClient]]:
    headers = {"Authorization": "Bearer agent-token"}
    data = with_tokens(folder / "data")
    async with serving(data, script, agents_folder=agents) as server, http_client(server.url, headers) as agent:
        yield server, agent


async def spoken(server: Served, *texts: str, **fields: Any) -> str:
    """A conversation in which the owner has said something."""
    conversation = await server.create(**fields)
    for text in texts:
        await server.send(conversation, text)
        await server.settled(conversation, after=0)
    return conversation


async def order(http: httpx.AsyncClient, conversation: str, **fields: Any) -> int:
    answer = await http.post(f"/api/conversations/{conversation}/commands", json=fields)
    return answer.status_code


async def chat(http: httpx.AsyncClient, conversation: str, **fields: Any) -> int:
    return (await http.post(f"/v1/chats/{conversation}/commands", json=fields)).status_code


def said(state: dict[str, Any]) -> list[str]:
    return ["".join(block.get("text", "") for block in message["blocks"]) for message in state["messages"]]


# -- what was said


async def test_words_of_a_person_cannot_be_rewritten_or_removed_on_any_face(tmp_path: Path) -> None:
    async with attacked(tmp_path) as (server, agent):
        conversation = await spoken(server, "Keep the garden.", "And the shed.")
        before = await server.state(conversation)
        asked, answer = before["messages"][0]["id"], before["messages"][1]["id"]
        document = {"id": conversation, "messages": [{"role": "user", "content": "Burn it."}]}
        operations = "/api/plugins/sessions/operations"
        statuses = [
            await order(agent, conversation, type="edit_message", message=asked, content="Burn it."),
            await order(agent, conversation, type="edit_message", message=asked, content="Burn it.", regenerate=True),
            await order(agent, conversation, type="edit_message", message=answer, content="As you wish."),
            await order(agent, conversation, type="remove_message", message=asked),
            await order(agent, conversation, type="remove_message", message=answer, regenerate=True),
            await order(agent, conversation, type="truncate_messages", from_index=0),
            await order(agent, conversation, type="truncate_messages", from_index=2),
            await order(agent, conversation, type="truncate_messages", from_index=3),
            await order(agent, conversation, type="truncate_messages", from_index=1, flat=True),
            await order(agent, conversation, type="retry_from", index=0, content="Burn it."),
            await order(agent, conversation, type="retry_from", index=3, content="Burn it."),
            await order(agent, conversation, type="regenerate"),
            await order(agent, conversation, type="delete_conversation"),
            await chat(agent, conversation, type="update_message", message_id=asked, content="Burn it."),
            await chat(agent, conversation, type="remove_message", message_id=asked),
            await chat(agent, conversation, type="truncate_messages", from_index=0),
            await chat(agent, conversation, type="retry_from_index", index=0, content="Burn it."),
            await chat(agent, conversation, type="regenerate"),
            (await agent.put(f"/v1/trajectories/{conversation}", json=document)).status_code,
            (await agent.delete(f"/v1/trajectories/{conversation}")).status_code,
            (await agent.post("/api/chat/clear", json={"session_id": conversation})).status_code,
            (await agent.post("/api/chat/sessions/delete", json={"id": conversation})).status_code,
            (await agent.post(f"{operations}/clear", json={"sessionId": conversation})).status_code,
            (await agent.post(f"{operations}/delete", json={"sessionId": conversation})).status_code,
            (await agent.delete(f"/api/conversations/{conversation}")).status_code,
        ]
        after = await server.state(conversation)
    assert [status for status in statuses if status not in (400, 403, 409)] == []
    assert said(after) == said(before)
    assert (after["turn"], after["deleted"]) == (None, False)


async def test_command_that_waits_is_looked_at_again_when_it_is_carried_out(tmp_path: Path) -> None:
    """Queued while the agent works: an index may mean a person's message by then."""
    script: dict[str, list[Step]] = {"Wait.": [Wait("gate"), Say("Done.")]}
    async with attacked(tmp_path, lambda prompt: script.get(prompt.text, [Say("Well.")])) as (server, agent):
        conversation = await server.create()
        await server.send(conversation, "Wait.")
        waiting = [
            await order(agent, conversation, type="truncate_messages", from_index=0, when_busy="queue"),
            await order(agent, conversation, type="regenerate", when_busy="queue"),
        ]
        server.agent.open_gate("gate")
        await server.settled(conversation)
        async with server.events(conversation, after=0) as stream:
            notices = 0
            async for event in stream.until(lambda event: False):
                notices += event.get("event_kind") == "notice"
                if notices == 2:
                    break
        state = await server.state(conversation)
    assert waiting == [202, 202]
    assert said(state)[:2] == ["Wait.", "Done."]


async def test_own_messages_and_answers_to_them_can_be_changed(tmp_path: Path) -> None:
    async with attacked(tmp_path) as (server, agent):
        made = (await agent.post("/api/conversations", json={})).json()["conversation"]
        assert await order(agent, made, type="send_message", content="Mine.") == 202
        await server.settled(made)
        message = (await server.state(made))["messages"][0]["id"]
        allowed = [
            await order(agent, made, type="edit_message", message=message, content="Still mine."),
            await order(agent, made, type="truncate_messages", from_index=1),
            await order(agent, made, type="remove_message", message=message),
            await order(agent, made, type="delete_conversation"),
        ]
    assert allowed == [202] * 4


async def test_another_agents_messages_are_not_its_own(tmp_path: Path) -> None:
    async with attacked(tmp_path) as (server, agent):
        other = http_client(server.url, {"Authorization": "Bearer other-token"})
        async with other:
            made = (await other.post("/api/conversations", json={})).json()["conversation"]
            await order(other, made, type="send_message", content="Theirs.")
            await server.settled(made)
        message = (await server.state(made))["messages"][0]["id"]
        refused = [
            await order(agent, made, type="edit_message", message=message, content="Ours."),
            await order(agent, made, type="truncate_messages", from_index=0),
            await order(agent, made, type="delete_conversation"),
        ]
    assert refused == [403] * 3


# -- what waits


async def test_queue_of_a_person_is_left_alone(tmp_path: Path) -> None:
    steps = [Wait("gate"), Say("Done.")]
    async with attacked(tmp_path, steps) as (server, agent):
        conversation = await server.create()
        await server.send(conversation, "Begin.")
        for text in ("First.", "Second."):
            await server.send(conversation, text, client_request_id=text[:-1])
        before = (await server.state(conversation))["queue"]
        first, second = (item["id"] for item in before)
        mine = await agent.post(
            f"/api/conversations/{conversation}/commands", json={"type": "send_message", "content": "Third."}
        )
        own = mine.json()["id"]
        statuses = [
            await order(agent, conversation, type="edit_queued", item=first, content="Other words."),
            await order(agent, conversation, type="edit_queued", item=first, held=True),
            await order(agent, conversation, type="edit_queued", item=first, priority=True),
            await order(agent, conversation, type="edit_queued", item=second, before=first),
            await order(agent, conversation, type="edit_queued", item=first, before=""),
            await order(agent, conversation, type="edit_queued", held=True),
            await order(agent, conversation, type="edit_queued", item=own, before=first),
            await order(agent, conversation, type="edit_queued", item=own, priority=True),
            await order(agent, conversation, type="send_message", content="Me first.", priority=True),
            await order(agent, conversation, type="remove_queued", item=first),
            await order(agent, conversation, type="interrupt", hold_queue=True),
            await order(agent, conversation, type="delete_conversation"),
            await chat(agent, conversation, type="user_message", content="Me first.", priority=True),
            (await agent.delete(f"/api/chat/queue/{first}")).status_code,
            (await agent.delete(f"/v1/chats/{conversation}/queue/First")).status_code,
            await over_the_socket(server, {"type": "cancel_queued_message", "messageId": first}),
        ]
        after = (await server.state(conversation))["queue"]
        allowed = [
            await order(agent, conversation, type="edit_queued", item=own, content="Mine."),
            await order(agent, conversation, type="remove_queued", item=own),
        ]
        server.agent.open_gate("gate")
    assert [status for status in statuses if status not in (400, 403, 409)] == []
    assert after[:2] == before
    assert allowed == [202, 202]


async def over_the_socket(server: Served, frame: dict[str, Any]) -> int:
    """403 where the frame is answered by an error that says so."""
    url = server.url.replace("http://", "ws://") + "/ws"
    async with connect(url, additional_headers={"Authorization": "Bearer agent-token"}) as socket:
        await socket.send(msgspec.json.encode({"type": "hello", "protocolVersion": 2}).decode())
        await socket.send(msgspec.json.encode(frame).decode())
        while True:
            told = msgspec.json.decode(await socket.recv())
            if told.get("type") == "error":
                return 403 if "forbidden" in str(told) or "somebody else's" in str(told) else 200


async def test_draft_of_a_person_is_left_alone(tmp_path: Path) -> None:
    async with attacked(tmp_path) as (server, agent):
        conversation = await server.create()
        await server.command(conversation, type="set_draft", text="Dear")
        statuses = [
            await order(agent, conversation, type="set_draft", text="Send me money."),
            await order(agent, conversation, type="clear_draft"),
            await chat(agent, conversation, type="set_draft", text="Send me money."),
        ]
        state = await server.state(conversation)
    assert statuses == [403] * 3
    assert state["draft"] == "Dear"


# -- what was decided

LIMITS: dict[str, Any] = {
    "mode": "plan",
    "spend_limit_usd": 1.0,
    "tool_calls_per_minute": 5,
    "request_timeout_s": 60,
    "max_tokens": 1000,
    "thinking_budget": 100,
    "context_tokens_cap": 2000,
    "policy": [{"tool": "shell", "decision": "deny_continue"}],
}
LIFTED: list[tuple[str, Any]] = [
    *((name, None) for name in LIMITS),
    ("mode", "ask"),
    ("mode", "agent"),
    ("mode", "full"),
    ("spend_limit_usd", 1.01),
    ("spend_limit_usd", 1_000_000),
    ("tool_calls_per_minute", 6),
    ("tool_calls_per_minute", 0),
    ("request_timeout_s", 61),
    ("request_timeout_s", 0),
    ("max_tokens", 1001),
    ("thinking_budget", 101),
    ("context_tokens_cap", 2001),
    ("policy", []),
    ("policy", [{"tool": "*", "decision": "allow"}]),
    ("policy", [*LIMITS["policy"], {"tool": "*", "decision": "allow"}]),
]
LOWERED = [("mode", "plan"), ("spend_limit_usd", 0.5), ("tool_calls_per_minute", 4), ("request_timeout_s", 30)]


async def test_limit_of_a_person_can_be_lowered_and_not_lifted(tmp_path: Path) -> None:
    async with attacked(tmp_path) as (server, agent):
        conversation = await server.create(params=LIMITS)
        let_through: list[str] = []
        for name, value in LIFTED:
            statuses = [
                await order(agent, conversation, type="set_params", patch={name: value}),
                await chat(agent, conversation, type="set_params", patch={name: value}),
                (
                    await agent.post(
                        "/api/conversations", json={"branch": {"conversation": conversation}, "params": {name: value}}
                    )
                ).status_code,
            ]
            let_through += [f"{name}={value}"] if set(statuses) - {400, 403} else []
        in_passing = await order(agent, conversation, type="send_message", content="x", mode="ask")
        kept = (await server.state(conversation))["params"]
        lowered = [await order(agent, conversation, type="set_params", patch={name: value}) for name, value in LOWERED]
    assert let_through == []
    assert in_passing == 403
    assert kept == LIMITS
    assert lowered == [202] * len(LOWERED)


async def test_limits_of_the_server_hold_for_conversations_that_an_agents_token_begins(tmp_path: Path) -> None:
    async with attacked(tmp_path) as (server, agent):
        settings = {"tool_calls_per_minute": 5, "request_timeout_s": 60, "default_mode": "plan"}
        assert (await server.http.post("/api/settings", json=settings)).status_code == 200
        refused = [
            (await agent.post("/api/conversations", json={"params": params})).status_code
            for params in (
                {"tool_calls_per_minute": 0},
                {"tool_calls_per_minute": 50},
                {"request_timeout_s": 0},
                {"mode": "ask"},
                {"policy": [{"tool": "shell", "decision": "allow"}]},
            )
        ]
        lower = await agent.post("/api/conversations", json={"params": {"tool_calls_per_minute": 2}})
    assert refused == [403] * 5
    assert lower.status_code == 201


async def test_branch_to_another_agent_keeps_the_rules_that_forbid(tmp_path: Path) -> None:
    rules = [{"tool": "shell", "decision": "deny_continue"}, {"tool": "edit", "decision": "allow"}]
    async with attacked(tmp_path) as (server, agent):
        conversation = await server.create(params={"policy": rules})
        made = await agent.post("/api/conversations", json={"branch": {"conversation": conversation}, "agent": "other"})
        state = await server.state(made.json()["conversation"])
    assert state["params"]["policy"] == rules[:1]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/api/projects/mission?project={home}", {"text": "x", "budget_usd": 100}),
        ("DELETE", "/api/projects/mission?project={home}", None),
        ("POST", "/api/mission", {"text": "x"}),
        ("PUT", "/api/projects/override?project={home}&agent=default", {"idle_interval_s": 1}),
        ("POST", "/api/settings", {"tool_calls_per_minute": 0}),
        ("POST", "/api/config", {"request_timeout_s": 0}),
        ("PATCH", "/api/agents/default", {"spend_limit_usd": 100}),
        ("PUT", "/api/agents/update", {"id": "default", "allowedTools": ["shell"]}),
        ("DELETE", "/api/grants/any", None),
    ],
)
async def test_limits_beyond_a_conversation_are_not_an_agents(
    tmp_path: Path, method: str, path: str, body: dict[str, Any] | None
) -> None:
    async with attacked(tmp_path) as (server, agent):
        await server.create()
        home = str(server.app.directory.home)
        answer = await agent.request(method, path.format(home=home), json=body)
    assert answer.status_code == 403


# -- which agent answers

RULE = '\npolicy:\n  - {tool: shell, decision: deny_continue, match: "touch denied*"}'
CAPS = "\nmode: ask\nspend_limit_usd: 1\nparams: {tool_calls_per_minute: 5}"
AGENTS = {
    "capped": CAPS + RULE,
    "same": CAPS + RULE,
    "stricter": "\nmode: plan\nspend_limit_usd: 0.5\ntools: [read]\nparams: {tool_calls_per_minute: 2}" + RULE,
    "bolder": CAPS.replace("ask", "auto") + RULE,
    "richer": CAPS.replace("usd: 1", "usd: 2") + RULE,
    "boundless": CAPS.replace("\nspend_limit_usd: 1", "") + RULE,
    "quicker": CAPS.replace("5", "0") + RULE,
    "unruled": CAPS,
    "trusting": CAPS + RULE + "\n  - {tool: shell, decision: allow, match: make}",
    "allowed": CAPS + RULE + "\nallowed_tools: [shell]",
    "readers": CAPS + RULE + "\ntools: [read]",
}
FREER = ("bolder", "richer", "boundless", "quicker", "unruled", "trusting", "allowed", "default")


@asynccontextmanager
async def among_agents(folder: Path) -> AsyncIterator[tuple[Served, httpx.AsyncClient]]:
    agents = folder / "agents"
    agents.mkdir()
    for name, settings in AGENTS.items():
        (agents / f"{name}.md").write_text(f"---\nname: {name.title()}\nbackend: scripted{settings}\n---\nHi.\n")
    async with attacked(folder, agents=agents) as known:
        yield known


async def choices_of(agent: httpx.AsyncClient, server: Served, conversation: str, chosen: str) -> dict[str, int]:
    """Every way in which a client chooses the agent of a conversation; each on a branch or copy of its own."""
    path = f"/api/conversations/{conversation}"
    restored = await server.create(agent="capped")
    branch = {"type": "branch_from_chat", "source_chat_id": conversation}
    return {
        "patch": (await agent.patch(path, json={"agent": chosen})).status_code,
        "update": await order(agent, conversation, type="update_conversation", agent=chosen),
        "send": await order(agent, conversation, type="send_message", content="x", agent=chosen),
        "send in plan mode": await order(
            agent, conversation, type="send_message", content="x", agent=chosen, mode="plan", client_request_id="p"
        ),
        "branch": (
            await agent.post("/api/conversations", json={"branch": {"conversation": conversation}, "agent": chosen})
        ).status_code,
        "stream": (
            await agent.post("/api/chat", json={"message": "x", "sessionId": conversation, "agentId": chosen})
        ).status_code,
        "branch into another": await chat(agent, restored, **branch),
    }


@pytest.mark.parametrize("chosen", FREER)
async def test_agent_that_is_held_to_less_cannot_be_chosen_for_a_conversation_of_a_person(
    tmp_path: Path, chosen: str
) -> None:
    async with among_agents(tmp_path) as (server, agent):
        conversation = await spoken(server, "Keep the garden.", agent="capped")
        tried = await choices_of(agent, server, conversation, chosen)
        # In plan mode it would still be held to fewer rules and limits, but for the mode alone.
        in_plan_mode, of_the_same = tried.pop("send in plan mode"), tried.pop("branch into another")
        await server.settled(conversation)
        after = await server.state(conversation)
    assert tried == dict.fromkeys(tried, 403)
    assert in_plan_mode == (202 if chosen == "bolder" else 403)
    assert of_the_same != 403
    assert after["agent"] == "capped"
    assert {message["agent"] for message in after["messages"] if message["agent"]} <= {"capped", "bolder"}


@pytest.mark.parametrize("chosen", ["capped", "same", "stricter", "readers"])
async def test_agent_that_is_held_to_as_much_can_be_chosen(tmp_path: Path, chosen: str) -> None:
    async with among_agents(tmp_path) as (server, agent):
        conversation = await spoken(server, "Keep the garden.", agent="capped")
        tried = await choices_of(agent, server, conversation, chosen)
    assert [way for way, status in tried.items() if status >= 400] == []


async def test_conversations_own_limits_count_when_another_agent_is_chosen(tmp_path: Path) -> None:
    """What the conversation itself says holds for whichever agent: only the rest is compared."""
    async with among_agents(tmp_path) as (server, agent):
        limits = {"mode": "ask", "spend_limit_usd": 0.1, "tool_calls_per_minute": 1}
        conversation = await server.create(agent="capped", params=limits)
        statuses = {
            name: (await agent.patch(f"/api/conversations/{conversation}", json={"agent": name})).status_code
            for name in ("unruled", "trusting", "allowed", "bolder", "richer", "boundless", "quicker")
        }
    assert statuses == {name: 403 if name in ("unruled", "trusting", "allowed") else 200 for name in statuses}


async def test_person_chooses_any_agent(tmp_path: Path) -> None:
    headers = {"Authorization": "Bearer human-token"}
    async with among_agents(tmp_path) as (server, _), http_client(server.url, headers) as ada:
        conversation = await server.create(agent="capped")
        statuses = [
            (await ada.patch(f"/api/conversations/{conversation}", json={"agent": name})).status_code for name in FREER
        ]
    assert statuses == [200] * len(FREER)


@pytest.mark.parametrize("chosen", FREER)
async def test_branch_into_an_empty_conversation_of_a_person_brings_no_agent_that_is_held_to_less(
    tmp_path: Path, chosen: str
) -> None:
    async with among_agents(tmp_path) as (server, agent):
        source = await spoken(server, "Burn the garden.", agent=chosen)
        empty = await server.create(agent="capped")
        status = await chat(agent, empty, type="branch_from_chat", source_chat_id=source)
        after = await server.state(empty)
    assert status == 403
    assert (after["agent"], after["messages"]) == ("capped", [])

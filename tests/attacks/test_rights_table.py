"""Every operation of a real server, asked by every kind of token: what comes through is what `faces/rights.py` says.

A refused request must leave everything as it was: the log, the files of the data directory, agents, settings, tokens.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

import httpx
import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from palaver.core.params import MODES
from palaver.faces.chats import commands as chats
from palaver.faces.native import socket as native_socket
from palaver.faces.rights import CHAT_COMMANDS, COMMANDS, FOLLOWING, FRAMES, ROUTES
from palaver.people.authentication import ROLES, KeyRecord, Kind, Role, token_hash
from palaver.people.token_files import rotate_token, write_key_records
from palaver.schema.commands import Command
from tests.flows.served import WAIT_S, Served, http_client, serving

pytestmark = pytest.mark.anyio

KINDS: tuple[Kind, ...] = ("human", "agent", "observer")
Nobody = Literal["nobody", "revoked", "rotated", "malformed", "no bearer"]
Asking = Kind | Nobody
NOBODIES: tuple[Nobody, ...] = get_args(Nobody)
ASKING: tuple[Asking, ...] = (*NOBODIES, "observer", "agent", "human", "owner")
OWNERS_BEFORE = "o" * 43
WRONG: dict[Nobody, dict[str, str]] = {
    "nobody": {},
    "revoked": {"Authorization": "Bearer revoked-token"},
    "rotated": {"Authorization": f"Bearer {OWNERS_BEFORE}"},
    "malformed": {"Authorization": "Bearer human-token agent-token"},
    "no bearer": {"Authorization": "Basic aHVtYW4tdG9rZW4="},
}
REFUSED_UNKNOWN = (401, 429)
"""The second after the tenth wrong token of a minute."""
VOLATILE = re.compile(r"palaver\.db|\.db-|lock|server\.json|signed_out|sign")
"""Files that change with every read or by themselves: the log is compared by what it says."""
REAL_PARTS = {"pid": "1", "conversation": "known", "trajectory": "known", "session_id": "known", "chat_id": "known"}


@asynccontextmanager
async def shared_server(folder: Path, *, agents_folder: Path | None = None) -> AsyncIterator["Table"]:
    data = folder / "data"
    data.mkdir()
    records = [KeyRecord(name=kind, kind=kind, hash=token_hash(f"{kind}-token")) for kind in KINDS]
    revoked = KeyRecord(name="revoked", kind="human", hash=token_hash("revoked-token"))
    write_key_records(data, [*records, revoked])
    (data / "token").write_text(OWNERS_BEFORE)
    (data / "token").chmod(0o600)
    async with serving(data, agents_folder=agents_folder) as server:
        write_key_records(data, records)
        rotate_token(data)
        server.token = (data / "token").read_text().strip()
        server.http.headers["Authorization"] = f"Bearer {server.token}"
        # A token that nobody knows yet makes the server look at the files again.
        assert (await server.http.get("/api/about")).status_code == 200
        await server.create(id="known", message="hello")
        await server.settled("known")
        table = Table(server, data)
        # The other faces are built at their first use, and write nothing after that.
        await server.http.get("/api/agents/list")
        yield table


@dataclass
class Table:
    server: Served
    data: Path

    def headers(self, kind: Asking) -> dict[str, str]:
        if kind in WRONG:
            return WRONG[kind]
        token = self.server.token if kind == "owner" else f"{kind}-token"
        return {"Authorization": f"Bearer {token}"}

    def client(self, kind: Asking) -> httpx.AsyncClient:
        return http_client(self.server.url, self.headers(kind))

    async def fingerprint(self) -> tuple[Any, ...]:
        app = self.server.app
        page = await app.log.list(limit=500, archived=None, children=True)
        files = {
            str(path.relative_to(self.data)): sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.data.rglob("*"))
            if path.is_file() and not VOLATILE.search(path.name)
        }
        agents = [msgspec.json.encode(entry) for entry in app.roster.entries(None)]
        return await app.log.position(), [(row.id, row.seq) for row in page.items], files, agents

    async def ask(self, kind: Asking, operation: str) -> int:
        method, _, path = operation.partition(" ")
        path = re.sub(r"\{(\w+)\}", lambda part: REAL_PARTS.get(part[1], "known"), path)
        if method == "WEBSOCKET":
            return await self._handshake(kind, path)
        # Only the head of the answer: many of them never end.
        method = "GET" if method == "ASGI" else method
        body: dict[str, Any] = {"json": {}} if method in ("POST", "PUT", "PATCH") else {}
        async with self.client(kind) as http, asyncio.timeout(WAIT_S), http.stream(method, path, **body) as answer:
            return answer.status_code

    async def _handshake(self, kind: Asking, path: str) -> int:
        url = self.server.url.replace("http", "ws") + path
        try:
            async with connect(url, additional_headers=self.headers(kind)):
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code


def roles_of(kind: Asking) -> frozenset[Role]:
    return frozenset[Role]().union(*(roles for known, roles in ROLES.items() if known == kind))


def expected(operation: str, kind: Asking) -> str:
    need = ROUTES[operation]
    if need == "open":
        return "let in"
    if kind in WRONG:
        return "unknown"
    return "let in" if need == "signed_in" or need in roles_of(kind) else "refused"


NOT_BY_EVERYBODY = {("ASGI /mcp/human", "agent"), ("ASGI /mcp/assistant", "human")}
"""An inbox is for the members of its side, as the table's `INBOX_MEMBERS` says."""


async def test_every_operation_is_refused_to_whom_the_table_refuses_it_and_changes_nothing(tmp_path: Path) -> None:
    async with shared_server(tmp_path) as table:
        before = await table.fingerprint()
        wrong: list[str] = []
        for operation in sorted(ROUTES):
            for kind in ASKING:
                wanted = expected(operation, kind)
                if wanted == "let in":
                    continue
                status = await table.ask(kind, operation)
                if status not in (REFUSED_UNKNOWN if wanted == "unknown" else (403,)):
                    wrong.append(f"{operation} by {kind}: {status}")
        after = await table.fingerprint()
    assert wrong == []
    assert after == before


async def test_every_operation_is_open_to_whom_the_table_opens_it(tmp_path: Path) -> None:
    """Asked with an empty body and for what is not there, or another's: whatever is wrong with it, it is not the role."""
    async with shared_server(tmp_path) as table:
        wrong: list[str] = []
        for operation in sorted(ROUTES):
            for kind in ("observer", "agent", "human", "owner"):
                if expected(operation, kind) != "let in" or (operation, kind) in NOT_BY_EVERYBODY:
                    continue
                method, _, path = operation.partition(" ")
                if method == "WEBSOCKET":
                    status = await table.ask(kind, operation)
                else:
                    status, role = await ask_for_nothing(table, kind, method, path)
                    status = 403 if role else 200
                if status in (401, 403):
                    wrong.append(f"{operation} by {kind}: {status}")
    assert wrong == []


async def ask_for_nothing(table: Table, kind: Kind, method: str, path: str) -> tuple[int, str | None]:
    """The status, and the role that a refusal says is lacking."""
    method = "GET" if method == "ASGI" else method
    path = re.sub(r"\{(\w+)\}", "0", path)
    body: dict[str, Any] = {"content": b"?"} if method in ("POST", "PUT", "PATCH") else {}
    async with (
        table.client(kind) as http,
        asyncio.timeout(WAIT_S),
        http.stream(method, path, **body) as answer,
    ):
        if answer.status_code != 403:
            return answer.status_code, None
        details = msgspec.json.decode(await answer.aread()).get("details", {})
        return 403, details.get("role")


# -- commands

BODIES: dict[str, dict[str, Any]] = {
    "send_message": {"content": "hello"},
    "edit_queued": {"item": "none", "held": True},
    "remove_queued": {"item": "none"},
    "resolve_request": {"request": "none", "verdict": "allow"},
    "decide_tools": {"accepted": True},
    "stop_process": {"process": "none"},
    "remove_grant": {"tool": "shell"},
    "update_conversation": {"title": "Other"},
    "set_params": {"patch": {"model": "other"}},
    "edit_message": {"message": "none", "content": "x"},
    "remove_message": {"message": "none"},
    "truncate_messages": {"from_index": 999},
    "retry_from": {"index": 999, "content": "x"},
    "return_tool_result": {"call": "none", "content": "x"},
    "restore_messages": {"messages": []},
    "set_draft": {"text": "x"},
}
FRAME_BODIES: dict[str, dict[str, Any]] = {
    "text_input": {"sessionId": "known", "text": "hello"},
    "control": {"sessionId": "known", "action": "cancel"},
    "cancel_queued_message": {"sessionId": "known", "messageId": "none"},
    "set_session_model": {"sessionId": "known", "model": "other"},
    "tool_interaction_response": {"sessionId": "known", "interactionId": "none", "action": "approve"},
}


async def test_every_command_needs_the_role_of_its_row(tmp_path: Path) -> None:
    async with shared_server(tmp_path) as table:
        wrong: list[str] = []
        for command in get_args(Command):
            tag = str(command.__struct_config__.tag)
            for kind in ("observer", "agent", "human"):
                before = await table.fingerprint()
                async with table.client(kind) as http:
                    answer = await http.post(
                        "/api/conversations/known/commands", json={"type": tag, **BODIES.get(tag, {})}
                    )
                lacks = answer.status_code == 403 and "role" in answer.json()["details"]
                if lacks != (COMMANDS[command] not in ROLES[kind]):
                    wrong.append(f"{tag} by {kind}: {answer.status_code} {answer.text}")
                if lacks and await table.fingerprint() != before:
                    wrong.append(f"{tag} by {kind} changed something")
                if tag == "delete_conversation" and answer.status_code == 202:
                    await table.server.create(id=f"known-{kind}")
                    break
                await table.server.command("known", type="interrupt")
    assert wrong == []


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in ("plan", "ask")])
async def test_bolder_mode_is_not_an_agents_on_any_face(tmp_path: Path, mode: str) -> None:
    async with shared_server(tmp_path) as table, table.client("agent") as agent:
        before = await table.fingerprint()
        answers = [
            await agent.post("/api/conversations", json={"params": {"mode": mode}}),
            await agent.post("/api/conversations/known/commands", json={"type": "set_params", "patch": {"mode": mode}}),
            await agent.post(
                "/api/conversations/known/commands", json={"type": "send_message", "content": "x", "mode": mode}
            ),
            await agent.post("/v1/chats/known/commands", json={"type": "set_params", "patch": {"mode": mode}}),
            await agent.post("/api/chat", json={"session_id": "known", "message": "x", "mode": mode}),
        ]
        after = await table.fingerprint()
    assert [answer.status_code for answer in answers] == [403] * 5
    assert after == before


async def test_every_frame_of_the_socket_needs_the_role_of_its_row(tmp_path: Path) -> None:
    async with shared_server(tmp_path) as table:
        wrong: list[str] = []
        for tag, body in FRAME_BODIES.items():
            for kind in ("observer", "agent", "human"):
                told = await _frame(table, kind, {"type": tag, **body})
                lacks = "lacks the role" in told
                if lacks != (FRAMES[tag] not in ROLES[kind]):
                    wrong.append(f"{tag} by {kind}: {told}")
    assert wrong == []
    assert set(FRAME_BODIES) | {"hello", "subscribe", "unsubscribe", "ping"} == set(FRAMES)


async def _frame(table: Table, kind: Kind, frame: dict[str, Any]) -> str:
    """What is told until a ping sent after the frame is answered."""
    url = table.server.url.replace("http", "ws") + "/ws"
    told = ""
    async with connect(url, additional_headers={"Authorization": f"Bearer {kind}-token"}) as socket:
        for sent in ({"type": "hello", "protocolVersion": 2}, frame, {"type": "ping", "nonce": "last"}):
            await socket.send(msgspec.json.encode(sent).decode())
        async with asyncio.timeout(WAIT_S):
            while '"pong"' not in (line := str(await socket.recv())):
                told += line
    return told


# -- commands of chats, and frames of the native socket

CHAT_BODIES: dict[str, dict[str, Any]] = {
    "user_message": {"content": "hello"},
    "retry_from_index": {"content": "x", "index": 999},
    "regenerate": {},
    "update_message": {"message_id": "none", "content": "x"},
    "remove_message": {"message_id": "none"},
    "truncate_messages": {"from_index": 999},
    "set_params": {"patch": {"model": "other"}},
    "abort": {},
    "approve_tools": {"tool_call_ids": ["none"]},
    "reject_tools": {"tool_call_ids": ["none"]},
    "tool_decision": {"tool_call_id": "none", "accepted": True},
    "tool_decisions": {"decisions": [{"tool_call_id": "none", "accepted": True}]},
    "ide_tool_result": {"tool_call_id": "none", "content": "x"},
    "branch_from_chat": {"source_chat_id": "known"},
    "restore_from_trajectory": {"messages": []},
    "restore_messages": {"messages": []},
    "set_draft": {"text": "x"},
    "clear_draft": {},
}


def tags_of(union: Any) -> set[str]:
    return {str(kind.__struct_config__.tag) for kind in get_args(union)}


def test_tables_have_exactly_what_the_readers_of_chats_and_of_the_native_socket_read() -> None:
    assert set(CHAT_COMMANDS) == tags_of(chats.Asked) == set(CHAT_BODIES)
    assert set(FOLLOWING) == tags_of(native_socket.Asked) == set(FOLLOWING_BODIES)


@pytest.mark.parametrize("words", ["snake", "Camel"])
async def test_every_command_of_chats_needs_the_role_of_its_row(tmp_path: Path, words: str) -> None:
    async with shared_server(tmp_path) as table:
        wrong: list[str] = []
        for tag, body in CHAT_BODIES.items():
            spelt = tag if words == "snake" else "".join(part.capitalize() for part in tag.split("_"))
            for kind in ASKING:
                before = await table.fingerprint()
                async with table.client(kind) as http:
                    answer = await http.post("/v1/chats/known/commands", json={"type": spelt, **body})
                if kind in WRONG:
                    refused, wanted = answer.status_code in REFUSED_UNKNOWN, True
                else:
                    refused = answer.status_code == 403 and "lacks the role" in answer.text
                    wanted = CHAT_COMMANDS[tag] not in roles_of(kind)
                if refused != wanted:
                    wrong.append(f"{tag} by {kind}: {answer.status_code} {answer.text}")
                if refused and await table.fingerprint() != before:
                    wrong.append(f"{tag} by {kind} changed something")
                await table.server.command("known", type="interrupt")
    assert wrong == []


FOLLOWING_BODIES: dict[str, dict[str, Any]] = {
    "subscribe": {"conversation": "known"},
    "unsubscribe": {"conversation": "known"},
    "follow_list": {},
    "ping": {"nonce": 1},
}


async def test_every_frame_of_the_native_socket_reads_and_changes_nothing(tmp_path: Path) -> None:
    async with shared_server(tmp_path) as table:
        before = await table.fingerprint()
        wrong: list[str] = []
        for kind in ("observer", "agent", "human", "owner"):
            async with table.server.socket(**table.headers(kind)) as socket:
                for tag, body in FOLLOWING_BODIES.items():
                    await socket.say(type=tag, **body)
                    await socket.say(type="ping", nonce=f"after {tag}")
                    told = await socket.until(type="pong", nonce=f"after {tag}")
                    lacks = any(line["type"] == "error" for line in told)
                    if lacks != (FOLLOWING[tag] not in ROLES[kind]):
                        wrong.append(f"{tag} by {kind}: {told}")
        after = await table.fingerprint()
    assert wrong == []
    assert after == before


# -- what an observer sees


async def test_observer_sees_the_same_of_agents_on_every_face(tmp_path: Path) -> None:
    async with shared_server(tmp_path) as table:
        records = {kind: table.client(kind) for kind in ("observer", "agent", "human")}
        seen: dict[str, str] = {}
        for kind, client in records.items():
            async with client as http:
                seen[kind] = "".join(
                    [
                        (await http.get("/api/agents")).text,
                        (await http.get("/api/agents/default")).text,
                        (await http.get("/api/agents/list")).text,
                        (await http.get("/api/agents/get", params={"id": "default"})).text,
                    ]
                )
    prompt = '"systemPrompt":""'
    assert seen["observer"].count(prompt) == seen["agent"].count(prompt) >= 2


async def test_observer_sees_no_files(tmp_path: Path) -> None:
    async with shared_server(tmp_path) as table:
        home = table.server.app.directory.home
        place = home / ".palaver" / "trajectories"
        place.mkdir(parents=True, exist_ok=True)
        (place / "file-only.json").write_text('{"id": "file-only", "messages": [{"role": "user", "content": "kept"}]}')
        (home / "plans.txt").write_text("kept")
        seen: dict[str, list[str]] = {}
        for kind in ("observer", "agent"):
            async with table.client(kind) as http:
                answers = [
                    await http.get("/v1/trajectories/file-only"),
                    await http.get("/api/projects/tree", params={"project": str(home)}),
                    await http.get("/api/workspace/tree"),
                ]
            seen[kind] = [name for name in ("kept", "plans.txt") for answer in answers if name in answer.text]
    assert seen["observer"] == []
    assert set(seen["agent"]) == {"kept", "plans.txt"}

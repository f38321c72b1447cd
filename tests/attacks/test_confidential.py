"""Confidential fields: whatever route, socket or inbox is asked, by whomever, they are in the answers that the table opens alone.

Each field has a word that stands nowhere else. Every operation that reads is asked with names that exist, so that it answers;
then its answer is searched.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from websockets.asyncio.client import connect

from palaver.faces.rights import CONFIDENTIAL, ROUTES, Field
from palaver.people.authentication import ROLES, Kind, token_hash
from tests.attacks.test_rights_table import KINDS, Table, shared_server
from tests.flows.faces.inbox.client import inbox
from tests.flows.served import WAIT_S

pytestmark = pytest.mark.anyio

ALL: tuple[Kind, ...] = get_args(Kind)
WORDS: dict[Field, tuple[str, ...]] = {
    "agents": ("canary-prompt", "canary-command", "canary-idle", "canary-allowed", "canary-server-program"),
    "files": ("canary-file-name", "canary-file-content", "canary-document"),
    "secrets": ("canary-variable", "canary-server-variable", "canary-header"),
}
RECORD = """---
name: Kept
backend: scripted
idle_prompt: canary-idle
allowed_tools: [canary-allowed]
environment: {KEPT_TOKEN: canary-variable}
mcp_servers:
  near: {command: canary-server-program, args: [x], env: {KEPT_TOKEN: canary-server-variable}}
  far: {url: "https://far.example/mcp", headers: {Authorization: canary-header}}
---
canary-prompt
"""
PROGRAM = """---
name: Program
backend: acp
command: [canary-command, --serve]
environment: {KEPT_TOKEN: canary-variable}
---
"""
STREAMS = {
    "GET /api/chat/stream",
    "GET /api/conversations/{conversation}/events",
    "GET /api/events",
    "GET /v1/chats/subscribe",
    "GET /v1/trajectories/subscribe",
}
SEARCHED = {"POST /api/chat/sessions/search", "POST /api/plugins/sessions/operations/list"}
"""Reads by POST. Those of conversations' commands and of events answer nothing else."""


@dataclass
class Kept:
    table: Table
    home: Path

    def path(self, template: str) -> str:
        names = {"agent": "kept", "run": "known", "name": "0.png", "blob": "0", "pid": "1", "path": "openapi.json"}
        if "trajectories" in template:
            names["trajectory"] = "file-only"
        return re.sub(r"\{(\w+)\}", lambda part: names.get(part[1], "known"), template)

    @property
    def query(self) -> dict[str, str]:
        """Whatever any of them takes; nobody minds what he does not know."""
        home = str(self.home)
        named = dict.fromkeys(("agent", "agent_id", "agent_name", "agentId", "id"), "kept")
        chats = dict.fromkeys(("conversation", "session", "session_id", "sessionId", "chat_id", "run"), "known")
        return {**named, **chats, "q": "canary", "project": home, "project_root": home, "source": home}


@asynccontextmanager
async def kept(folder: Path) -> AsyncIterator[Kept]:
    agents = folder / "agents"
    agents.mkdir()
    (agents / "kept.md").write_text(RECORD)
    (agents / "program.md").write_text(PROGRAM)
    async with shared_server(folder, agents_folder=agents) as table:
        home = table.server.app.directory.home
        place = home / ".palaver" / "trajectories"
        place.mkdir(parents=True, exist_ok=True)
        document = {"id": "file-only", "messages": [{"role": "user", "content": "canary-document"}]}
        (place / "file-only.json").write_bytes(msgspec.json.encode(document))
        (home / "canary-file-name.txt").write_text("canary-file-content")
        (home / "AGENTS.md").write_text("canary-file-content")
        await table.server.create(id="of-kept", agent="kept", message="hello")
        await table.server.settled("of-kept")
        yield Kept(table, home)


def found_in(text: str, kind: Kind, tokens: tuple[str, ...]) -> list[str]:
    """The words in an answer that this token may not read."""
    closed = [
        word
        for field, words in WORDS.items()
        if (need := CONFIDENTIAL[field]) is None or need not in ROLES[kind]
        for word in words
    ]
    return [word for word in (*closed, *tokens) if word in text]


def tokens_of(table: Table) -> tuple[str, ...]:
    plain = (table.server.token, *(f"{kind}-token" for kind in KINDS))
    return (*plain, *(token_hash(token) for token in plain))


def test_every_confidential_field_has_words_that_are_searched_for() -> None:
    assert set(WORDS) == set(CONFIDENTIAL) == set(get_args(Field))


@pytest.mark.parametrize("kind", ALL)
async def test_no_route_answers_with_what_the_token_may_not_read(tmp_path: Path, kind: Kind) -> None:
    async with kept(tmp_path) as here:
        told: dict[str, str] = {}
        async with here.table.client(kind) as http:
            for operation in sorted({*ROUTES, *SEARCHED}):
                method, _, template = operation.partition(" ")
                if operation in STREAMS or not (method == "GET" or operation in SEARCHED):
                    continue
                for agent in ("kept", "program"):
                    query = {name: agent if value == "kept" else value for name, value in here.query.items()}
                    path = here.path(template).replace("/kept", f"/{agent}")
                    content = b'{"query": "canary"}' if method == "POST" else None
                    answer = await http.request(method, path, params=query, content=content)
                    told[f"{operation} {agent}"] = answer.text
        tokens = tokens_of(here.table)
    leaks = {operation: found for operation, text in told.items() if (found := found_in(text, kind, tokens))}
    assert leaks == {}
    # And the search would have found them: whoever may read, does.
    everything = "".join(told.values())
    for field, words in WORDS.items():
        need = CONFIDENTIAL[field]
        if need is not None and need in ROLES[kind]:
            assert any(word in everything for word in words), field


@pytest.mark.parametrize("kind", ALL)
async def test_no_stream_socket_or_inbox_tells_what_the_token_may_not_read(tmp_path: Path, kind: Kind) -> None:
    async with kept(tmp_path) as here:
        table = here.table
        told: dict[str, str] = {}
        for operation in sorted(STREAMS):
            told[operation] = await _begin_of_stream(here, kind, operation)
        told["/ws"] = await _said_over_ws(here, kind)
        async with table.server.socket(**table.headers(kind)) as socket:
            for conversation in ("known", "of-kept"):
                await socket.say(type="subscribe", conversation=conversation)
            await socket.say(type="follow_list")
            await socket.say(type="ping", nonce="last")
            await socket.until(type="pong", nonce="last")
            told["/api/socket"] = "".join(socket.frames)
        side = "human" if kind in ("owner", "human", "observer") else "assistant"
        token = table.headers(kind)["Authorization"].removeprefix("Bearer ")
        async with inbox(table.server, side, "of-kept", token) as visitor:
            told["inbox"] = str(await visitor.read()) + str(await visitor.tools())
        tokens = tokens_of(table)
    leaks = {operation: found for operation, text in told.items() if (found := found_in(text, kind, tokens))}
    assert leaks == {}
    assert all(told.values())


async def _begin_of_stream(here: Kept, kind: Kind, operation: str) -> str:
    """Up to the first event after something happened in the conversation that all of them follow."""
    path = here.path(operation.partition(" ")[2])
    text = ""
    async with (
        here.table.client(kind) as http,
        asyncio.timeout(WAIT_S),
        http.stream("GET", path, params=here.query) as answer,
    ):
        assert answer.status_code == 200, operation
        await here.table.server.command("known", type="update_conversation", title=f"Of {operation}")
        async for piece in answer.aiter_text():
            text += piece
            if "data:" in text:
                break
    return text


async def _said_over_ws(here: Kept, kind: Kind) -> str:
    url = here.table.server.url.replace("http", "ws") + "/ws"
    told = ""
    async with connect(url, additional_headers=here.table.headers(kind)) as socket:
        frames = (
            {"type": "hello", "protocolVersion": 2},
            {"type": "subscribe", "sessionId": "known"},
            {"type": "subscribe", "sessionId": "of-kept"},
            {"type": "ping", "nonce": "last"},
        )
        for frame in frames:
            await socket.send(msgspec.json.encode(frame).decode())
        async with asyncio.timeout(WAIT_S):
            while '"pong"' not in (line := str(await socket.recv())):
                told += line
    return told

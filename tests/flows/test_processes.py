"""The process table: programs that serve conversations and commands in the background, seen and ended by a person."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from palaver.client import Client
from palaver.errors import Conflict
from tests.flows.at_work import at_work
from tests.flows.engine import gone
from tests.flows.served import LOOK_EVERY_S, Served, serving
from tests.flows.test_background import begun, start, tagged
from tests.provider import Answer
from tests.unit.backends.acp.test_backend import AGENT

pytestmark = pytest.mark.anyio

LIMIT_S = 60.0


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    """With an agent that is a program."""
    (tmp_path / "sessions").mkdir()
    (tmp_path / "data" / "agents").mkdir(parents=True)
    command = f"command: [{sys.executable}, {AGENT}, {tmp_path / 'sessions'}]"
    (tmp_path / "data" / "agents" / "tester.md").write_text(f"---\nname: Tester\nbackend: acp\n{command}\n---\n")
    async with serving(tmp_path / "data", environment={"PATH": "/usr/bin:/bin"}) as served:
        yield served


async def table(server: Served) -> list[dict[str, Any]]:
    answer = await server.http.get("/api/processes")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_idle_program_is_listed_and_let_go_and_the_next_message_starts_it_again(server: Served) -> None:
    conversation = await server.create(agent="tester", title="Tides")
    first = int((await server.send(conversation, "hello"))["seq"])
    await server.settled(conversation, after=first)
    (row,) = await table(server)
    ended = await server.http.delete(f"/api/processes/{row['pid']}")
    rest = await table(server)
    counted = (await server.http.get("/api/backends")).json()["items"]
    again = int((await server.send(conversation, "and again"))["seq"])
    await server.settled(conversation, after=again)
    (other,) = await table(server)

    assert (row["kind"], row["backend"], row["agent"]) == ("program", "acp", "tester")
    assert (row["conversation"], row["title"], row["busy"]) == (conversation, "Tides", False)
    assert row["command"].startswith("python")
    assert "sessions" not in row["command"]
    assert row["started_at"] > 0
    assert row["idle_s"] >= 0
    assert (ended.status_code, rest) == (204, [])
    assert not is_alive(row["pid"])
    assert all(entry["processes"] == 0 for entry in counted)
    assert other["pid"] != row["pid"]


async def test_busy_program_is_not_ended(server: Served) -> None:
    conversation = await server.create(agent="tester")
    await server.send(conversation, "forever")
    async with server.events(conversation, after=0) as stream, asyncio.timeout(LIMIT_S):
        async for _ in stream.until(lambda event: event["type"] == "text.delta"):
            pass
    (row,) = await table(server)
    counted = {entry["name"]: entry["processes"] for entry in (await server.http.get("/api/backends")).json()["items"]}
    refused = await server.http.delete(f"/api/processes/{row['pid']}")
    async with Client.connect(server.url, server.token) as client:
        (same,) = await client.processes()
        with pytest.raises(Conflict, match="stop its turn first"):
            await client.end_process(row["pid"])
    await server.command(conversation, type="interrupt")

    assert (row["busy"], row["idle_s"]) == (True, 0.0)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "stop its turn first" in refused.json()["message"]
    assert same.pid == row["pid"]
    assert counted["acp:tester"] == 1


async def test_process_that_is_not_ours_is_left_alone(server: Served) -> None:
    answer = await server.http.delete("/api/processes/1")

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_background_process_is_listed_and_ended_through_its_conversation(tmp_path: Path) -> None:
    tag = tagged()
    script = (Answer.of(start(f"sleep {tag}")), Answer.of("It runs."), Answer.of("Stopped."))
    async with at_work(tmp_path, *script) as work, asyncio.timeout(LIMIT_S):
        conversation, started = await begun(work)
        (row,) = await table(work.server)
        async with Client.connect(work.server.url, work.server.token) as client:
            await client.end_process(row["pid"])
        await gone(tag)
        state = await work.server.state(conversation)
        while await table(work.server):  # noqa: ASYNC110 - as a person looks again
            await asyncio.sleep(LOOK_EVERY_S)

    assert (row["kind"], row["conversation"], row["pid"]) == ("background", conversation, started["pid"])
    assert (row["command"], row["agent"], row["backend"]) == (f"sleep {tag}", "default", "api")
    assert (row["busy"], row["started_at"]) == (True, started["ts"])
    (known,) = state["processes"]
    assert (known["running"], known["end"]) == (False, "stopped")

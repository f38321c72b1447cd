"""What runs agents, as a client is told of it, and the test turn: a real one that leaves nothing behind."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.agents import backends, test_turn
from palaver.backends.script.script import Fail, Say, Tool, Wait
from palaver.client import Client
from palaver.clock import SystemClock
from palaver.errors import NotFound, ProviderUnavailable
from palaver.people.authentication import KeyRecord, token_hash
from tests.flows.served import WAIT_S, Served, serving
from tests.unit.backends.acp.test_backend import AGENT

pytestmark = pytest.mark.anyio

PATH = {"PATH": "/usr/bin:/bin"}
FIELDS = {
    *("name", "title", "ready", "installed", "version", "summary", "fix", "login", "capabilities", "agents"),
    *("processes", "last_error"),
}


class Jumping(SystemClock):
    """Real time, with leaps. Whoever sleeps for the limit of a test turn sleeps until he is told to go on."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        self.limit_over = asyncio.Event()

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.ahead_s

    async def sleep(self, seconds: float) -> None:
        if seconds == test_turn.LIMIT_S:
            await self.limit_over.wait()
        else:
            await super().sleep(seconds)


def agent_file(data: Path, name: str, *lines: str) -> None:
    (data / "agents").mkdir(parents=True, exist_ok=True)
    (data / "agents" / f"{name}.md").write_text("\n".join(("---", *lines, "---", "")))


def program(folder: Path, text: str) -> Path:
    path = folder / "acme"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


async def listed(server: Served) -> dict[str, dict[str, Any]]:
    answer = await server.http.get("/api/backends")
    assert answer.status_code == 200, answer.text
    return {entry["name"]: entry for entry in answer.json()["items"]}


async def tried(server: Served, agent: str = "default") -> dict[str, Any]:
    answer = await server.http.post(f"/api/agents/{agent}/test")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def left_behind(server: Served) -> list[Any]:
    found = await server.http.get("/api/conversations", params={"archived": "all"})
    waiting = await server.http.get("/api/requests")
    return [*found.json()["items"], *waiting.json()["items"]]


# -- what there is


async def test_every_backend_is_listed_with_what_is_missing_and_what_it_can(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", environment={**PATH, "HOME": str(tmp_path)}) as server:
        found = await listed(server)

    assert list(found) == ["api", "local", "demo", "claude", "codex", "pi", "acp"]
    assert all(set(entry) == FIELDS for entry in found.values())
    assert (found["pi"]["installed"], found["pi"]["ready"], found["pi"]["login"]) == (False, False, None)
    assert "npm install" in found["pi"]["fix"]
    assert (found["api"]["login"], found["api"]["capabilities"]) == ("missing", None)
    assert found["demo"]["capabilities"]["approvals"] is True
    assert (found["demo"]["ready"], found["demo"]["login"]) == (True, None)
    assert "claude" in found["claude"]["agents"]
    assert found["acp"]["agents"] == []


async def test_each_acp_agent_is_an_entry_and_its_version_is_asked_once_a_minute(tmp_path: Path) -> None:
    acme = program(tmp_path, f'echo asked >> {tmp_path}/asked; echo "acme version 3.2.1 (stable)"')
    agent_file(tmp_path / "data", "acme", "name: Acme", "backend: acp", f"command: [{acme}, acp]")
    agent_file(tmp_path / "data", "lost", "backend: acp", "command: [not-there-at-all]")
    clock = Jumping()
    async with serving(tmp_path / "data", environment=PATH, clock=clock) as server:
        found = await listed(server)
        await asyncio.gather(listed(server), listed(server))
        at_first = (tmp_path / "asked").read_text()
        clock.ahead_s += backends.VERSION_KEPT_S
        await listed(server)

    assert "acp" not in found
    entry = found["acp:acme"]
    assert (entry["title"], entry["ready"], entry["version"], entry["login"]) == ("Acme", True, "3.2.1", "unknown")
    assert entry["agents"] == ["acme"]
    assert (found["acp:lost"]["installed"], found["acp:lost"]["version"]) == (False, None)
    assert "not-there-at-all" in found["acp:lost"]["summary"]
    assert (at_first, (tmp_path / "asked").read_text()) == ("asked\n", "asked\nasked\n")


async def test_program_that_does_not_say_its_version_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "VERSION_S", 0.2)
    acme = program(tmp_path, "exec sleep 300")
    agent_file(tmp_path / "data", "acme", "backend: acp", f"command: [{acme}]")
    async with serving(tmp_path / "data", environment=PATH) as server, asyncio.timeout(WAIT_S):
        found = await listed(server)

    assert (found["acp:acme"]["version"], found["acp:acme"]["ready"]) == (None, True)


async def test_last_failed_turn_is_told_and_a_good_one_is_not(tmp_path: Path) -> None:
    scripts: Iterator[Any] = iter([(Say("Good."),), (Fail(ProviderUnavailable("The tide is out.")),), (Say("Good."),)])
    seen: list[Any] = []
    async with serving(tmp_path, lambda _: next(scripts)) as server:
        conversation = await server.create()
        after = 0
        for text in ("one", "two", "three"):
            after = int((await server.send(conversation, text))["seq"])
            await server.settled(conversation, after=after)
            seen.append((await listed(server))["scripted"]["last_error"])

    assert seen[0] is None
    assert seen[1]["message"] == seen[2]["message"] == "The tide is out."
    assert seen[1]["ts"] > 0


async def test_turn_that_failed_for_lack_of_a_key_is_its_backends_last_error(tmp_path: Path) -> None:
    agent_file(tmp_path / "data", "own", "backend: api")
    async with serving(tmp_path / "data", environment=PATH) as server:
        conversation = await server.create(agent="own")
        await server.send(conversation, "are you there?")
        await server.settled(conversation)
        found = await listed(server)

    assert "No model service is set up" in found["api"]["last_error"]["message"]
    assert found["demo"]["last_error"] is None


# -- the test turn


async def test_who_may_only_look_sees_all_of_it_and_starts_and_ends_nothing(tmp_path: Path) -> None:
    key = KeyRecord(name="guest", kind="observer", hash=token_hash("guest-token"))
    (tmp_path / "tokens.json").write_bytes(msgspec.json.encode([key]))
    guest = {"Authorization": "Bearer guest-token"}
    async with serving(tmp_path) as server:
        looked = [await server.http.get(path, headers=guest) for path in ("/api/backends", "/api/processes")]
        refused = [
            await server.http.post("/api/agents/default/test", headers=guest),
            await server.http.delete("/api/processes/1", headers=guest),
        ]
        assert await left_behind(server) == []

    assert [answer.status_code for answer in looked] == [200, 200]
    assert [answer.status_code for answer in refused] == [403, 403]


async def test_agent_that_answers_is_tried_and_leaves_nothing(server: Served) -> None:
    answer = await tried(server)

    assert (answer["ok"], answer["text"], answer["error"]) == (True, "Hello there, how are you?", None)
    assert answer["duration_ms"] >= 0
    assert await left_behind(server) == []


async def test_agent_is_asked_for_one_word(tmp_path: Path) -> None:
    asked: list[str] = []

    def script(prompt: Any) -> Any:
        asked.append(prompt.text)
        return (Say("ready"),)

    async with serving(tmp_path, script) as server, Client.connect(server.url, server.token) as client:
        answer = await client.test("other")
        with pytest.raises(NotFound):
            await client.test("nobody")

    assert (answer.ok, answer.text) == (True, "ready")
    assert asked == ["Reply with the one word: ready"]


async def test_failed_test_says_why(tmp_path: Path) -> None:
    async with serving(tmp_path, (Fail(ProviderUnavailable("The tide is out.")),)) as server:
        answer = await tried(server)
        assert await left_behind(server) == []

    assert (answer["ok"], answer["text"]) == (False, "")
    assert answer["error"] == {"code": "provider_unavailable", "message": "The tide is out."}


async def test_request_ends_the_test_and_nothing_waits_for_a_person(tmp_path: Path) -> None:
    script = (Tool("shell", {"command": "rm -r /"}, asks=True, title="Run rm"), Say("done"))
    async with serving(tmp_path, script) as server:
        answer = await tried(server)
        assert await left_behind(server) == []

    assert (answer["ok"], answer["error"]["code"]) == (False, "asked")
    assert "Run rm" in answer["error"]["message"]


async def test_agent_that_says_nothing_has_a_minute(tmp_path: Path) -> None:
    clock = Jumping()
    async with serving(tmp_path, (Say("well"), Wait("never")), clock=clock) as server, asyncio.timeout(WAIT_S):
        trying = asyncio.create_task(tried(server))
        await server.agent.reached("never")
        assert not trying.done()
        clock.limit_over.set()
        answer = await trying
        assert await left_behind(server) == []

    assert (answer["ok"], answer["error"]["code"]) == (False, "timed_out")


async def test_program_of_a_test_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    command = f"command: [{sys.executable}, {AGENT}, {tmp_path / 'sessions'}]"
    agent_file(tmp_path / "data", "tester", "name: Tester", "backend: acp", command)
    async with serving(tmp_path / "data", environment=PATH) as server:
        answer = await tried(server, "tester")
        running = (await server.http.get("/api/processes")).json()["items"]

    assert (answer["ok"], answer["error"]) == (True, None), answer
    assert answer["text"].endswith("Reply with the one word: ready")
    assert running == []

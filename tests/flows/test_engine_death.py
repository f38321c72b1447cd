"""The real server killed in the middle of its work: its tools die with it, and the conversation goes on."""

import secrets
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.crash.rig import Rig, rigged
from tests.flows.engine import FREE, gone, said
from tests.flows.served import WAIT_S, Sse
from tests.provider import Answer, Call, Hang, ScriptedProvider
from tests.provider.server import serving as service
from tests.unit.tools.workshop import processes_with

pytestmark = [pytest.mark.anyio, pytest.mark.crash]


class Person:
    """A client of a server that dies and comes back."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.http = httpx.AsyncClient(
            base_url=rig.url, headers={"Authorization": f"Bearer {rig.token}"}, timeout=WAIT_S
        )

    async def create(self, project: Path, **params: Any) -> str:
        made = await self.http.post("/api/conversations", json={"project": str(project), "params": params})
        return str(made.json()["conversation"])

    async def send(self, conversation: str, text: str) -> int:
        sent = await self.http.post(
            f"/api/conversations/{conversation}/commands", json={"type": "send_message", "content": text}
        )
        assert sent.status_code == 202, sent.text
        return int(sent.json()["seq"])

    async def until(self, conversation: str, last: Any, after: int = 0) -> list[dict[str, Any]]:
        path = f"/api/conversations/{conversation}/events"
        async with self.http.stream("GET", path, params={"after": after}) as response:
            return [event async for event in Sse(response).until(last)]


def over(event: dict[str, Any]) -> bool:
    return event["type"] in ("turn.finished", "turn.interrupted")


STUBBORN = (
    "trap '' INT TERM HUP; (setsid sh -c 'trap \"\" INT TERM HUP; sleep {tag}; sleep {tag}' &); nohup sleep {tag} & "
    "echo begun >> effects; echo here; wait"
)


async def test_tools_die_with_a_server_that_is_killed_and_their_calls_are_never_run_again(tmp_path: Path) -> None:
    tag = f"89{secrets.randbelow(10**9)}"
    project = tmp_path / "project"
    project.mkdir()
    script = [Answer.of(Call(name="shell", input={"command": STUBBORN.format(tag=tag)}))]
    async with service(ScriptedProvider(script)) as provider, rigged(tmp_path / "data", provider.url) as rig:
        await rig.start()
        await rig.up()
        person = Person(rig)
        async with person.http:
            conversation = await person.create(project, policy=FREE)
            await person.send(conversation, "go")
            await person.until(conversation, said("here", "tool.output.delta"))
            running = processes_with(tag)
            await rig.kill()
            await gone(tag)
        await rig.start()
        await rig.up()
        person = Person(rig)
        async with person.http:
            settled = await person.until(conversation, over)
            seq = await person.send(conversation, "And now?")
            events = await person.until(conversation, over, after=seq)
        refused = [request.refused for request in provider.requests]
        told = str(provider.bodies[-1]["messages"])
    assert running
    assert (settled[-1]["type"], settled[-1]["reason"]) == ("turn.interrupted", "restart")
    assert events[-1]["outcome"] == "completed"
    assert refused == [None, None]
    assert "effect unknown" in told
    assert (project / "effects").read_text() == "begun\n"


async def test_stream_cut_by_the_death_of_the_server_is_kept_marked_and_gone_on_from(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    script = [
        Answer(
            blocks=Answer.of("Half a sentence and the other half.").blocks, chunk_chars=5, fault=Hang(after_bytes=900)
        )
    ]
    async with service(ScriptedProvider(script)) as provider, rigged(tmp_path / "data", provider.url) as rig:
        await rig.start()
        await rig.up()
        person = Person(rig)
        async with person.http:
            conversation = await person.create(tmp_path / "project")
            await person.send(conversation, "go")
            seen = await person.until(conversation, said("Half "))
            await rig.kill()
        await rig.start()
        await rig.up()
        person = Person(rig)
        async with person.http:
            settled = await person.until(conversation, over)
            seq = await person.send(conversation, "And now?")
            events = await person.until(conversation, over, after=seq)
        refused = [request.refused for request in provider.requests]
        told = str(provider.bodies[-1]["messages"])
    assert settled[: len(seen)] == seen
    assert events[-1]["outcome"] == "completed"
    assert refused == [None, None]
    assert told.count("Half ") == 1
    assert "interrupted" in told

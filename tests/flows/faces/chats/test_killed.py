"""The real server killed in the middle of an answer: what a client had seen is there when it comes back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.crash.rig import Rig, rigged
from tests.flows.faces.chats.chat import following
from tests.flows.served import WAIT_S
from tests.provider import Answer, Gate, Say, ScriptedProvider
from tests.provider.server import serving as service

pytestmark = [pytest.mark.anyio, pytest.mark.crash]


@dataclass
class Person:
    """A client of a server that dies and comes back."""

    http: httpx.AsyncClient


@asynccontextmanager
async def started(rig: Rig) -> AsyncIterator[Person]:
    await rig.start()
    await rig.up()
    headers = {"Authorization": f"Bearer {rig.token}"}
    async with httpx.AsyncClient(base_url=rig.url, headers=headers, timeout=WAIT_S) as http:
        yield Person(http)


async def test_answer_cut_by_the_death_of_the_server_is_in_the_next_snapshot(tmp_path: Path) -> None:
    half = Answer(blocks=(Say(text="Half a sentence"), Gate(name="killed")), when="^go$")
    async with service(ScriptedProvider([half])) as provider, rigged(tmp_path / "data", provider.url) as rig:
        async with started(rig) as person:
            (tmp_path / "project").mkdir(exist_ok=True)
            made = await person.http.post("/api/conversations", json={"project": str(tmp_path / "project")})
            async with following(person, made.json()["conversation"]) as seen:
                await seen.did("user_message", content="go")
                await seen.until(lambda frame: seen.texts[-1:] == [("assistant", "Half a sentence")])
                await rig.kill()
        async with started(rig) as person, following(person, seen.id) as chat:
            # Who comes right after the start may still see the end of the turn that was open.
            await chat.until_state("idle")
            assert chat.texts == seen.texts
            assert chat.client.messages[-1].items() >= {"role": "assistant", "finish_reason": "abort"}.items()
            assert chat.client.messages[-1]["message_id"] == seen.client.messages[-1]["message_id"]
            assert chat.client.runtime.items() >= {"state": "idle", "error": None}.items()
            assert chat.client.seq >= seen.client.seq
            await chat.say("And now?")
            assert [role for role, _ in chat.texts] == ["user", "assistant", "user", "assistant"]

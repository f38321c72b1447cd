"""Answers read aloud: sentences as they finish, by a service or a program, and silence at a stop."""

import asyncio
import os
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.flows.at_work import at_work
from tests.flows.faces.socket.client import of, operation, subscribed
from tests.flows.served import WAIT_S

pytestmark = pytest.mark.anyio


@dataclass
class Service:
    """An OpenAI-compatible speech service that says what it was told."""

    url: str = ""
    heard: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    keys: list[str] = field(default_factory=list[str])
    hold: asyncio.Event = field(default_factory=asyncio.Event)

    async def speak(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.heard.append(body)
        self.keys.append(request.headers.get("Authorization", ""))
        if "wait" in body["input"]:
            await self.hold.wait()
        return web.Response(body=f"sound of {body['input']}".encode(), content_type="audio/mpeg")


@asynccontextmanager
async def speech_service() -> AsyncIterator[Service]:
    service, app = Service(), web.Application()
    app.router.add_post("/v1/audio/speech", service.speak)
    async with TestServer(app) as server:
        service.url = str(server.make_url("/v1"))
        yield service


async def test_sentences_are_spoken_as_they_finish(tmp_path: Path) -> None:
    async with speech_service() as service:
        environment = {"PALAVER_SPEECH_URL": service.url, "PALAVER_SPEECH_API_KEY": "k"}
        async with at_work(tmp_path, environment=environment) as work:
            session = (await operation(work.server, "create", 201, outputMode="speech"))["sessionId"]
            async with subscribed(work.server, session) as one:
                await one.say(
                    "text_input", sessionId=session, text="!say First of all. Then\n!gate go\n!say  the rest."
                )
                first = (await one.until("speech_audio"))[-1]
                work.provider.gates.open("go")
                heard = await one.until(lambda frame: frame["type"] == "speech_audio")
    assert b64decode(first["audio"]) == b"sound of First of all."
    assert (first["mimeType"], first["text"], first["index"]) == ("audio/mpeg", "First of all.", 1)
    assert (heard[-1]["text"], heard[-1]["index"]) == ("Then the rest.", 2)
    assert heard[-1]["responseId"] == of(heard, "text_delta")[0]["responseId"]
    assert heard[-1]["timestamp"] == of(heard, "text_block_done")[0]["timestamp"]
    assert [body["input"] for body in service.heard] == ["First of all.", "Then the rest."]
    assert set(service.keys) == {"Bearer k"}


async def test_stop_ends_the_speech_and_records_where_the_listener_was(tmp_path: Path) -> None:
    async with speech_service() as service, at_work(tmp_path, environment={"PALAVER_SPEECH_URL": service.url}) as work:
        session = (await operation(work.server, "create", 201, outputMode="both"))["sessionId"]
        async with subscribed(work.server, session) as one:
            await one.say("text_input", sessionId=session, text="!say One. Two wait. Three. Four\n!gate never\n!say .")
            await one.until("speech_audio")
            await one.say("control", action="cancel", target="output", sessionId=session, audioEndMs=700)
            cancelled = (await one.until("output_cancelled"))[-1]
            service.hold.set()
            await one.say("text_input", sessionId=session, text="!say Five.")
            later = await one.until("speech_audio")
        log = await work.server.settled(session)
    assert cancelled["audioEndMs"] == 700
    assert [event["audio_end_ms"] for event in log if event["type"] == "turn.interrupted"] == [700]
    assert [frame["text"] for frame in of(later, "speech_audio")] == ["Five."]


async def test_session_speaks_from_when_it_is_told_to_and_every_listener_shares_it(tmp_path: Path) -> None:
    async with speech_service() as service, at_work(tmp_path, environment={"PALAVER_SPEECH_URL": service.url}) as work:
        session = (await operation(work.server, "create", 201))["sessionId"]
        async with subscribed(work.server, session) as one, subscribed(work.server, session) as other:
            await one.say("text_input", sessionId=session, text="!say Silent.")
            await one.until("text_done")
            await operation(work.server, "update", sessionId=session, outputMode="speech")
            await one.say("text_input", sessionId=session, text="!say Aloud.")
            assert (await one.until("speech_audio"))[-1]["text"] == "Aloud."
            assert (await other.until("speech_audio"))[-1]["text"] == "Aloud."
    assert [body["input"] for body in service.heard] == ["Aloud."]


async def test_program_on_this_machine_speaks_where_no_service_is_named(tmp_path: Path) -> None:
    # Stands where espeak-ng would: a real program that takes the text on its standard input.
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "espeak-ng"
    program.write_text('#!/bin/sh\n[ "$*" = "--stdin --stdout" ] || exit 3\nprintf "RIFF "\ncat\n')
    program.chmod(0o755)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}"}
    async with at_work(tmp_path, environment=environment) as work:
        session = (await operation(work.server, "create", 201, outputMode="speech"))["sessionId"]
        async with subscribed(work.server, session) as one:
            await one.say("text_input", sessionId=session, text="!say -v is no option.")
            spoken = (await one.until("speech_audio"))[-1]
    assert (spoken["mimeType"], b64decode(spoken["audio"])) == ("audio/wav", b"RIFF -v is no option.")


async def test_without_an_engine_it_is_said_once_and_the_text_comes(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    async with at_work(tmp_path, environment={"PATH": str(tmp_path / "empty")}) as work:
        session = (await operation(work.server, "create", 201, outputMode="speech"))["sessionId"]
        async with subscribed(work.server, session) as one:
            await one.say("text_input", sessionId=session, text="!say One. Two. Three.")
            heard = await one.until("text_done")
            async with asyncio.timeout(WAIT_S):
                while not of(heard, "error"):
                    heard.append(await one.next())
            await one.say("text_input", sessionId=session, text="!say Four.")
            heard += await one.until("text_done")
            heard += await one.flush()
    (error,) = of(heard, "error")
    assert (error["code"], "espeak-ng" in error["message"], error["sessionId"]) == ("speech_unavailable", True, session)
    assert [frame["text"] for frame in of(heard, "text_done")] == ["One. Two. Three.", "Four."]

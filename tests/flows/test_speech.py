"""Sentences read aloud: by the service that the server names, refused in words where nothing can speak."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.flows.served import Served, serving

pytestmark = pytest.mark.anyio

SOUND = b"ID3 not really music"


@pytest.fixture
async def voice() -> AsyncIterator[tuple[str, list[Any]]]:
    """A speech service, and what it was asked to say."""
    asked: list[Any] = []

    async def speak(request: web.Request) -> web.Response:
        asked.append(await request.json())
        if asked[-1]["input"] == "Fail.":
            return web.Response(status=500)
        return web.Response(body=SOUND, content_type="audio/mpeg")

    app = web.Application()
    app.router.add_post("/v1/audio/speech", speak)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", asked
    finally:
        await runner.cleanup()


async def test_sentence_is_spoken_by_the_service_the_server_names(tmp_path: Path, voice: tuple[str, list[Any]]) -> None:
    url, asked = voice
    async with serving(tmp_path / "data", environment={"PATH": "", "PALAVER_SPEECH_URL": url}) as server:
        answer = await server.http.post("/api/speech", json={"text": " Hello there. "})
        failed = await server.http.post("/api/speech", json={"text": "Fail."})
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "audio/mpeg", SOUND)
    assert asked[0]["input"] == "Hello there."
    assert (failed.status_code, failed.json()["code"]) == (429, "busy")
    assert "speech service" in failed.json()["message"]


async def test_server_without_a_voice_says_so(shared: Served) -> None:
    answer = await shared.http.post("/api/speech", json={"text": "Hello."})
    assert answer.status_code == 404
    assert "espeak-ng" in answer.json()["message"]


@pytest.mark.parametrize("text", ["", "  ", "x" * 2_001])
async def test_nothing_and_too_much_are_refused(shared: Served, text: str) -> None:
    answer = await shared.http.post("/api/speech", json={"text": text})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")

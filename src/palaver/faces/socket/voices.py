"""Engines that turn a sentence into sound: an OpenAI-compatible speech service, or `espeak-ng` on this machine.

Made by the composition root from the environment, used by `speech`. Must never put a text on a command line, keep one, or
log it.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from palaver.errors import NotInstalled

ESPEAK = "espeak-ng"
SPEAK_S = 30.0
"""For one sentence; an engine that takes longer would be spoken over by the next answer."""
AUDIO_BYTES = 8 << 20
"""Of one sentence: minutes of sound, whatever the format."""


class SpeechFailed(Exception):
    """In words for a person."""


@dataclass(frozen=True, slots=True)
class Audio:
    data: bytes = field(repr=False)
    mime: str


class Speaker(Protocol):
    async def speak(self, text: str) -> Audio:
        """Raises SpeechFailed."""
        ...


Prepare = Callable[[str], tuple[tuple[str, ...], dict[str, str]]]
"""Command and environment of a program by its name, outside the project folders. Blocking; raises NotInstalled."""


def speaker_of(environment: Mapping[str, str], prepare: Prepare) -> Speaker | None:
    """What the environment names, else what is installed outside the project folders, else nothing."""
    if url := environment.get("PALAVER_SPEECH_URL"):
        return SpeechService(
            url=url.rstrip("/"),
            api_key=environment.get("PALAVER_SPEECH_API_KEY") or None,
            model=environment.get("PALAVER_SPEECH_MODEL") or "tts-1",
            voice=environment.get("PALAVER_SPEECH_VOICE") or "alloy",
        )
    try:
        prepare(ESPEAK)
    except NotInstalled:
        return None
    return Espeak(prepare, environment.get("PALAVER_SPEECH_VOICE") or None)


@dataclass(frozen=True, slots=True)
class SpeechService:
    """`POST {url}/audio/speech`, as OpenAI and the many that follow it have it."""

    url: str
    api_key: str | None = field(default=None, repr=False)
    model: str = "tts-1"
    voice: str = "alloy"

    async def speak(self, text: str) -> Audio:
        # Here: few servers speak, and importing it takes a tenth of a start.
        import aiohttp

        body = {"model": self.model, "voice": self.voice, "input": text, "response_format": "mp3"}
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        limit = aiohttp.ClientTimeout(total=SPEAK_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=limit) as session,
                # Whoever answers there must not send the text, or us, to another address.
                session.post(f"{self.url}/audio/speech", json=body, headers=headers, allow_redirects=False) as answer,
            ):
                if answer.status != 200:
                    raise SpeechFailed(
                        f"The speech service answered {answer.status}. Check PALAVER_SPEECH_URL and its key."
                    )
                data = await answer.content.read(AUDIO_BYTES)
                return Audio(data, answer.content_type)
        except (aiohttp.ClientError, TimeoutError) as failure:
            raise SpeechFailed(f"The speech service could not be reached: {type(failure).__name__}.") from failure


@dataclass(frozen=True, slots=True)
class Espeak:
    prepare: Prepare
    """Asked before each sentence: more folders become projects while the server runs."""
    voice: str | None = None

    def _prepare(self) -> tuple[tuple[str, ...], dict[str, str]]:
        try:
            return self.prepare(ESPEAK)
        except NotInstalled as missing:
            raise SpeechFailed(missing.message) from missing

    async def speak(self, text: str) -> Audio:
        voice = ("-v", self.voice) if self.voice else ()
        command, environment = await asyncio.to_thread(self._prepare)
        try:
            child = await asyncio.create_subprocess_exec(
                *(*command, *voice, "--stdin", "--stdout"),
                stdin=-1,
                stdout=-1,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment,
            )
        except OSError as failure:
            raise SpeechFailed(f"espeak-ng could not be started: {failure.strerror}.") from failure
        try:
            async with asyncio.timeout(SPEAK_S):
                sound, _ = await child.communicate(text.encode())
        except TimeoutError as failure:
            raise SpeechFailed("espeak-ng took too long over a sentence.") from failure
        finally:
            if child.returncode is None:
                with suppress(ProcessLookupError):
                    child.kill()
                await asyncio.shield(child.wait())
        if child.returncode or not sound:
            raise SpeechFailed(f"espeak-ng ended with {child.returncode}.")
        return Audio(sound[:AUDIO_BYTES], "audio/wav")

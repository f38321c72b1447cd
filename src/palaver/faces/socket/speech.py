"""Answers read aloud: the sentences of a session with `outputMode` `speech`, spoken as they finish.

Each session is spoken once, whoever listens; the sockets share the frames. Sound is not in the log: it is made from the
text that is, and a listener that is too slow misses some. A stop ends it at once. Called by the connections.
"""

import asyncio
import re
from base64 import b64encode
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from palaver.errors import PalaverError
from palaver.faces.http.rings import Beat, Behind
from palaver.faces.http.websocket_frames import payloads
from palaver.faces.projection import Projected
from palaver.faces.socket.projection import encode_frame
from palaver.faces.socket.sessions import OUTPUT_MODE
from palaver.faces.socket.voices import Speaker, SpeechFailed
from palaver.journal import Journal

logger = Journal(__name__)

SPOKEN = ("speech", "both")
AHEAD = 200
"""Sentences that may wait to be spoken: a very long answer. What comes beyond them is not spoken."""
WAITING = 32
"""Frames a listener may be behind before it misses some."""
LONGEST_CHARS = 400
"""A sentence without an end is cut at a space: an engine should begin while the answer goes on."""
NO_ENGINE = (
    "Nothing here can speak: set PALAVER_SPEECH_URL to an OpenAI-compatible speech service, or install espeak-ng, "
    "and start the server again."
)

_END = re.compile(r"(?<![.!?\u2026])[.!?\u2026]++[\"'\u201d\u2019)\]]*+(?=\s)|\n")
_MARKUP = re.compile(r"[*_`#>|]+")


class Sentences:
    """Cuts a text that comes in pieces into what can be said aloud. Code is left out."""

    def __init__(self) -> None:
        self._rest = ""
        self._in_code = False

    def add(self, text: str) -> list[str]:
        self._rest += text
        found: list[str] = []
        while (cut := self._cut()) is not None:
            found += self._sayable(self._rest[:cut])
            self._rest = self._rest[cut:]
        return found

    def end(self) -> list[str]:
        rest, self._rest = self._rest, ""
        return self._sayable(rest)

    def _cut(self) -> int | None:
        if end := _END.search(self._rest):
            return end.end()
        return (
            (self._rest.rfind(" ", 0, LONGEST_CHARS) + 1 or LONGEST_CHARS) if len(self._rest) > LONGEST_CHARS else None
        )

    def _sayable(self, piece: str) -> list[str]:
        if piece.lstrip().startswith("```"):
            self._in_code = not self._in_code
            return []
        words = _MARKUP.sub("", piece).strip()
        return [words] if words and not self._in_code and any(map(str.isalnum, words)) else []


@dataclass(slots=True)
class _Said:
    """A sentence, and the frame whose text it ends in."""

    text: str
    frame: Mapping[str, Any]


@dataclass(slots=True)
class _Session:
    listeners: set["asyncio.Queue[bytes]"] = field(default_factory=set["asyncio.Queue[bytes]"])
    pending: deque[_Said] = field(default_factory=deque[_Said])
    more: asyncio.Event = field(default_factory=asyncio.Event)
    saying: "asyncio.Task[None] | None" = None
    spoken: int = 0
    told_why_not: bool = False

    def tell(self, frame: dict[str, Any]) -> None:
        line = encode_frame(frame)
        for listener in self.listeners:
            if listener.full():
                listener.get_nowait()
            listener.put_nowait(line)

    def hush(self) -> None:
        self.pending.clear()
        if self.saying is not None:
            self.saying.cancel()


class Speech:
    def __init__(self, speaker: Speaker | None, live: Projected) -> None:
        self._speaker = speaker
        self._live = live
        self._sessions: dict[str, tuple[_Session, asyncio.Task[None]]] = {}

    @asynccontextmanager
    async def listening(self, session: str) -> AsyncIterator["asyncio.Queue[bytes]"]:
        """The frames of what is spoken in a session, from now on."""
        listener: asyncio.Queue[bytes] = asyncio.Queue(WAITING)
        if session not in self._sessions:
            known = _Session()
            self._sessions[session] = known, asyncio.create_task(self._run(session, known), name=f"speak in {session}")
        known, running = self._sessions[session]
        known.listeners.add(listener)
        try:
            yield listener
        finally:
            known.listeners.discard(listener)
            if not known.listeners and self._sessions.get(session, (None,))[0] is known:
                del self._sessions[session]
                running.cancel()

    async def _run(self, session: str, known: _Session) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                voice = tasks.create_task(self._voice(session, known))
                await self._hear(session, known)
                voice.cancel()
        except* PalaverError as ended:
            # Whoever subscribed is told why by the subscription itself.
            logger.debug("speech ended", session=session, reason=str(ended.exceptions[0]))

    async def _hear(self, session: str, known: _Session) -> None:
        texts: dict[tuple[str, int], Sentences] = {}
        async with self._live.following(session) as following:
            speaking = following.state.params.get(OUTPUT_MODE) in SPOKEN
            while True:
                item = await following.next()
                match item:
                    case Beat():
                        pass
                    case Behind():
                        texts.clear()
                        following.begin_anew()
                    case _:
                        for text in (text for told in item.frames for text in payloads(told.body)):
                            if not text.startswith(_HEARD if speaking else _HEARD_IN_SILENCE):
                                continue
                            frame = msgspec.json.decode(text)
                            if "outputMode" in frame:
                                speaking = frame["outputMode"] in SPOKEN
                            elif frame["type"] == "output_cancelled":
                                texts.clear()
                                known.hush()
                            elif "block" in frame:
                                self._say(frame, texts, known)

    def _say(self, frame: Mapping[str, Any], texts: dict[tuple[str, int], Sentences], known: _Session) -> None:
        place = (frame["responseId"], frame["block"])
        if frame["type"] == "text_delta":
            sentences = texts.setdefault(place, Sentences()).add(frame["delta"])
        elif frame.get("interrupted"):
            texts.pop(place, None)
            return
        else:
            sentences = texts.pop(place, Sentences()).end()
        room = AHEAD - len(known.pending)
        known.pending.extend(_Said(text, frame) for text in sentences[:room])
        known.more.set()

    async def _voice(self, session: str, known: _Session) -> None:
        while True:
            await known.more.wait()
            known.more.clear()
            while known.pending:
                known.saying = asyncio.create_task(self._speak(session, known, known.pending.popleft()))
                try:
                    # A stop cancels the sentence and nothing else.
                    await asyncio.wait({known.saying})
                finally:
                    known.saying.cancel()

    async def _speak(self, session: str, known: _Session, said: _Said) -> None:
        try:
            if self._speaker is None:
                raise SpeechFailed(NO_ENGINE)
            audio = await self._speaker.speak(said.text)
        except SpeechFailed as failure:
            if not known.told_why_not:
                known.told_why_not = True
                known.tell(
                    {"type": "error", "code": "speech_unavailable", "message": str(failure), "sessionId": session}
                )
            return
        known.told_why_not = False
        known.spoken += 1
        known.tell(
            {
                "type": "speech_audio",
                "sessionId": session,
                "timestamp": said.frame["timestamp"],
                "responseId": said.frame["responseId"],
                "block": said.frame["block"],
                "index": known.spoken,
                "text": said.text,
                "mimeType": audio.mime,
                "audio": b64encode(audio.data).decode(),
            }
        )


_HEARD_IN_SILENCE = tuple(b'{"type":"%s"' % kind for kind in (b"output_cancelled", b"session_updated"))
_HEARD = (*_HEARD_IN_SILENCE, b'{"type":"text_delta"', b'{"type":"text_block_done"')

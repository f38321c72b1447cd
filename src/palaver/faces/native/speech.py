"""A sentence read aloud, for clients that speak what they show.

The page asks for each sentence as it finishes. The sound is made from the text and kept nowhere; which engine makes it is the
server's choice (`faces/socket/voices.py`). Must never take more than a paragraph at once: an engine is slow, and others
wait for it.
"""

from litestar import Response, post
from litestar.params import JSONBody
from msgspec import Struct

from palaver.errors import Busy, Invalid, NotFound
from palaver.faces.http.body import JsonBody
from palaver.faces.http.openapi import BYTES, operation
from palaver.faces.server import Server
from palaver.faces.socket.voices import SpeechFailed

SENTENCE_CHARS = 2_000
"""A long paragraph: some two minutes of sound."""
SOUNDS = ("audio/mpeg", "audio/wav", "audio/x-wav", "audio/ogg", "audio/flac", "audio/aac", "audio/opus")
"""What an answer may be called. Anything else is handed over as bytes."""
UNNAMED = "application/octet-stream"
SPOKEN = dict.fromkeys((*SOUNDS, UNNAMED), BYTES)


class Sentence(Struct, frozen=True, kw_only=True):
    text: str


@post(
    "/api/speech",
    status_code=200,
    dto=JsonBody,
    media_type=UNNAMED,
    operation_class=operation(answer=SPOKEN),
    operation_id="speak",
    tags=["speech"],
)
async def speak(data: JSONBody[Sentence], server: Server) -> Response[bytes]:
    """A sentence as sound, in whatever format the engine makes. 404 where nothing can speak."""
    words = data.text.strip()
    if not words or len(words) > SENTENCE_CHARS:
        raise Invalid(f"`text`: say what to read aloud, in at most {SENTENCE_CHARS:,} characters.")
    if server.speaker is None:
        raise NotFound(
            "Nothing on this server can speak: set PALAVER_SPEECH_URL, or install espeak-ng, and restart it."
        )
    try:
        audio = await server.speaker.speak(words)
    except SpeechFailed as failure:
        raise Busy(str(failure)) from failure
    kind = audio.mime.partition(";")[0].strip().lower()
    return Response(audio.data, media_type=kind if kind in SOUNDS else UNNAMED)


ROUTES = [speak]

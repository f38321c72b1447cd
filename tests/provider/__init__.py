"""A scripted model server for tests: what a provider would say, when it misbehaves, and what it refuses.

It speaks Anthropic Messages (`POST /v1/messages`), OpenAI Chat Completions (`POST /v1/chat/completions`) and Responses
(`POST /v1/responses`), lists its models (`GET /v1/models`), keeps every request, and answers 400 to whatever the real
service would not take. Loopback only.

In a test:

    async with scripted_provider(Answer.of("Hello"), Answer.of(Call(name="read", input={"path": "x"}))) as provider:
        ...  # provider.url is the base URL, provider.requests what came in, provider.gates what holds answers back

As a program, for tests that start a real server or a browser:

    python -m tests.provider --port 9000 --script answers.json      (prints "listening on http://127.0.0.1:9000")

The script is a JSON list of answers in the form of `script.Answer`. Answers are used in order; one with `when` waits for a
user message that its regular expression finds. Once they are used up the server is an obedient model: it does what
the user's text says (see `obedient`), so a browser test needs no script at all.

Over HTTP a test steers it with `POST /control/gates/NAME/open`, `GET /control/gates/NAME/reached` (answers once somebody
waits there), `POST /control/script` (more answers), `GET /control/requests` and `POST /control/reset`.
"""

from tests.provider.script import (
    Answer,
    Block,
    Call,
    ContentType,
    Cut,
    Empty,
    ErrorFrame,
    Fault,
    Gate,
    Hang,
    Malformed,
    Pause,
    Redacted,
    Say,
    Status,
    Think,
)
from tests.provider.server import Received, ScriptedProvider, scripted_provider

__all__ = [
    "Answer",
    "Block",
    "Call",
    "ContentType",
    "Cut",
    "Empty",
    "ErrorFrame",
    "Fault",
    "Gate",
    "Hang",
    "Malformed",
    "Pause",
    "Received",
    "Redacted",
    "Say",
    "ScriptedProvider",
    "Status",
    "Think",
    "scripted_provider",
]

"""opencode, through ACP."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from palaver.backends.acp.backend import AcpBackend
from palaver.backends.base import Backend
from palaver.clock import SystemClock
from palaver.schema.records import AgentRecord
from tests.cli.from_npm import MODULES, missing
from tests.cli.rig import ASKING, OWN_QUESTION, Place, Subject

PROGRAM = MODULES / "opencode-ai" / "bin" / "opencode.exe"
MODEL = {
    "name": "scripted",
    "reasoning": True,
    "attachment": True,
    "modalities": {"input": ["text", "image"], "output": ["text"]},
    "limit": {"context": 100_000, "output": 8_000},
}


def environment_of(place: Place) -> dict[str, str]:
    """Set up in the place's home, with the scripted model as its service."""
    folder = place.home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{place.service.url}/v1", "apiKey": "x"},
        "models": {"scripted-1": MODEL, "small-1": MODEL},
    }
    settings = {
        "provider": {"scripted": provider},
        "model": "scripted/scripted-1",
        "small_model": "scripted/small-1",
        "permission": {"bash": "ask", "edit": "ask"},
        "autoupdate": False,
        "share": "disabled",
    }
    (folder / "opencode.json").write_bytes(msgspec.json.encode(settings))
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(place.home),
        # Beside the home of a test, so that nothing of the machine's is seen and nothing is left there.
        "TMPDIR": str(place.home),
    }


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[Backend]:
    backend = AcpBackend(SystemClock(), environment_of(place), others=ASKING)
    try:
        yield backend
    finally:
        await backend.close()


def shell(command: str) -> str:
    return f"!tool bash {msgspec.json.encode({'command': command, 'description': 'a command'}).decode()}"


SUBJECT = Subject(
    name="opencode",
    missing=lambda: missing("opencode", "opencode-ai", "bin", "opencode.exe"),
    open=opened,
    shell=shell,
    question=f"!tool palaver_ask_user {msgspec.json.encode(OWN_QUESTION).decode()}",
    agent=AgentRecord(
        id="opencode",
        name="opencode",
        backend="acp",
        command=(str(PROGRAM), "acp"),
        environment={
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            # Without it 1.18.33 looks for a newer package of its own at every start.
            "npm_config_offline": "true",
        },
    ),
    lacks={
        "cut": "tries a cut answer again for minutes, and ACP has no word for that",
        "steer": "ACP takes no message into a running turn",
    },
)

"""Pi, through its RPC mode."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from palaver.backends.base import Backend
from palaver.backends.pi.backend import PiBackend
from palaver.clock import SystemClock
from palaver.schema.records import AgentRecord
from tests.cli.from_npm import MODULES, missing, node_folder
from tests.cli.rig import ASKING, OWN_QUESTION, Place, Subject

PROGRAM = MODULES / "@earendil-works" / "pi-coding-agent" / "dist" / "bundle" / "cli.js"


def environment_of(place: Place) -> dict[str, str]:
    """Set up in the place's home, with the scripted model as its service."""
    folder = place.home / ".pi" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    model = {
        "id": "scripted-1",
        "reasoning": True,
        "input": ["text", "image"],
        "contextWindow": 100_000,
        "maxTokens": 8_000,
    }
    provider = {"baseUrl": place.service.url, "api": "anthropic-messages", "apiKey": "x", "models": [model]}
    (folder / "models.json").write_bytes(msgspec.json.encode({"providers": {"scripted": provider}}))
    return {"PATH": f"{node_folder()}:{os.environ['PATH']}", "HOME": str(place.home), "TMPDIR": str(place.home)}


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[Backend]:
    backend = PiBackend(SystemClock(), environment_of(place), others=ASKING)
    try:
        yield backend
    finally:
        await backend.close()


def shell(command: str) -> str:
    return f"!tool bash {msgspec.json.encode({'command': command}).decode()}"


SUBJECT = Subject(
    name="pi",
    missing=lambda: missing("Pi", "@earendil-works", "pi-coding-agent", "dist", "bundle", "cli.js"),
    open=opened,
    shell=shell,
    question=f"!tool ask_user {msgspec.json.encode(OWN_QUESTION).decode()}",
    agent=AgentRecord(
        id="pi",
        name="Pi",
        backend="pi",
        command=("node", str(PROGRAM)),
        environment={"PI_OFFLINE": "1"},
        model="scripted/scripted-1",
        params={"reasoning_effort": "medium"},
    ),
)

"""Gemini CLI, through ACP."""

import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from palaver.backends.acp.backend import AcpBackend
from palaver.backends.base import Backend
from palaver.clock import SystemClock
from palaver.schema.records import AgentRecord
from tests.cli.from_npm import MODULES, missing, node_folder
from tests.cli.rig import ASKING, Place, Subject

PROGRAM = MODULES / "@google" / "gemini-cli" / "bundle" / "gemini.js"
MODEL = "gemini-2.5-flash"
"""Named, or else a model is asked which model to ask."""
START = Path(__file__).with_name("bin") / "gemini"
"""By its name it is known for Gemini CLI."""


def environment_of(place: Place) -> dict[str, str]:
    """Set up in the place's home, with the scripted model as its service."""
    folder = place.home / ".gemini"
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "tools": {"shell": {"enableInteractiveShell": False}},
        "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
    }
    (folder / "settings.json").write_bytes(msgspec.json.encode(settings))
    told = {
        "GEMINI_API_KEY": "x",
        "GOOGLE_GEMINI_BASE_URL": place.service.url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    (place.home / "environment").write_text("".join(f"{name}={value}\n" for name, value in told.items()))
    return {"PATH": f"{node_folder()}:{os.environ['PATH']}", "HOME": str(place.home), "TMPDIR": str(place.home)}


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[Backend]:
    backend = AcpBackend(SystemClock(), environment_of(place), others=ASKING)
    try:
        yield backend
    finally:
        await backend.close()


def shell(command: str) -> str:
    # It runs simple commands without asking, and refuses any "$(", within quotes too.
    hidden = base64.b64encode(command.encode()).decode()
    wrapped = f"echo {hidden} | base64 -d | sh"
    return f"!tool run_shell_command {msgspec.json.encode({'command': wrapped}).decode()}"


def minutes_later(place: Place) -> None:
    # 0.61.0 names a session's file by the minute and part of the id. To load one it first begins a file for the same id:
    # in the minute in which the session began that is the same file, and what it held is lost.
    for kept in (place.home / ".gemini" / "tmp").rglob("chats/session-*.jsonl"):
        *_, part = kept.stem.split("-")
        kept.rename(kept.with_name(f"session-2026-01-01T00-00-{part}.jsonl"))


SUBJECT = Subject(
    name="gemini",
    missing=lambda: missing("Gemini CLI", "@google", "gemini-cli", "bundle", "gemini.js"),
    open=opened,
    shell=shell,
    minutes_later=minutes_later,
    agent=AgentRecord(
        id="gemini",
        name="Gemini CLI",
        backend="acp",
        command=(str(START), str(PROGRAM), "--acp", "-m", MODEL),
    ),
    lacks={
        "steer": "ACP takes no message into a running turn",
        "question": "Gemini CLI 0.61 hides every tool named ask_user from its model outside a terminal, ours too",
    },
)

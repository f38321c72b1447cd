"""Claude Code, from the wheel of its SDK, against the scripted Anthropic service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from palaver.backends.base import Backend
from palaver.backends.claude.backend import ClaudeBackend
from palaver.backends.claude.installation import executable
from palaver.clock import SystemClock
from palaver.errors import NotInstalled
from palaver.schema.records import AgentRecord
from tests.cli.rig import Place, Subject

MODEL = "claude-sonnet-4-5"
"""For a newer one the program puts its notes after the person's words, where the scripted model looks for orders."""


def _missing() -> str | None:
    try:
        executable({})
    except NotInstalled as missing:
        return missing.message
    return None


@asynccontextmanager
async def _open(place: Place) -> AsyncIterator[Backend]:
    temporary = place.home / "tmp"
    temporary.mkdir(exist_ok=True)
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(place.home),
        "TMPDIR": str(temporary),
        "ANTHROPIC_BASE_URL": place.service.url,
        "ANTHROPIC_API_KEY": "sk-ant-test",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
    }
    backend = ClaudeBackend(environment, SystemClock())
    try:
        yield backend
    finally:
        await backend.close()


def _shell(command: str) -> str:
    # It refuses a command that begins with a long sleep.
    command = f"export LC_ALL=C; {command}"
    return f"!tool Bash {msgspec.json.encode({'command': command}).decode()}"


QUESTION = {
    "questions": [
        {
            "question": "Which tide?",
            "header": "Tide",
            "options": [{"label": "Ebb", "description": "out"}, {"label": "Flow", "description": "in"}],
            "multiSelect": False,
        }
    ]
}

SUBJECT = Subject(
    name="claude",
    missing=_missing,
    open=_open,
    shell=_shell,
    question=f"!tool AskUserQuestion {msgspec.json.encode(QUESTION).decode()}",
    agent=AgentRecord(id="claude", name="Claude Code", backend="claude", model=MODEL),
)

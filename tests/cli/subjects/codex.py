"""Codex, with a home of its own and the scripted model as its service."""

import importlib.util
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from palaver.approval.policy import Policy
from palaver.backends.base import Backend
from palaver.clock import SystemClock
from palaver.schema.records import AgentRecord
from tests.cli.rig import Place, Subject

CONFIG = """
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 1
stream_max_retries = 2
[analytics]
enabled = false
[features]
plugins = false
apps = false
remote_plugin = false
multi_agent = false
goals = false
"""


def environment_of(place: Place) -> dict[str, str]:
    """Codex refuses to make its sandbox in a home that lies in the temporary folder: that is another one here."""
    codex_home, temporary = place.home / ".codex", place.home / "tmp"
    for folder in (codex_home, temporary):
        folder.mkdir(exist_ok=True)
    (codex_home / "config.toml").write_text(CONFIG.format(url=place.service.url))
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(place.home),
        "TMPDIR": str(temporary),
        "SCRIPTED_KEY": "scripted",
    }


@asynccontextmanager
async def open_codex(place: Place) -> AsyncIterator[Backend]:
    from palaver.backends.codex.backend import CodexBackend

    backend = CodexBackend(SystemClock(), environment_of(place), policy=Policy(full_enabled=True))
    try:
        yield backend
    finally:
        await backend.close()


def missing() -> str | None:
    if importlib.util.find_spec("codex_cli_bin") is None:
        return "Codex is not installed: pip install 'palaver[codex]'"
    return None


def shell(command: str) -> str:
    return f"!tool exec_command {json.dumps({'cmd': command, 'yield_time_ms': 30_000})}"


def patch(text: str) -> str:
    return f"!tool apply_patch {json.dumps(text)}"


QUESTION = {
    "questions": [
        {
            "id": "q1",
            "header": "Tide",
            "question": "Which tide?",
            "options": [{"label": "Ebb", "description": "out"}, {"label": "Flow", "description": "in"}],
        }
    ]
}

SUBJECT = Subject(
    name="codex",
    missing=missing,
    open=open_codex,
    shell=shell,
    question=f"!tool request_user_input {json.dumps(QUESTION)}",
    # It asks only while it plans.
    question_params={"mode": "plan"},
    agent=AgentRecord(id="codex", name="Codex", backend="codex"),
)

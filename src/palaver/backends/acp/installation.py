"""Whether an agent that speaks ACP can be started: for doctor and the list of backends. Looks at the PATH only."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palaver.backends.base import Readiness
from palaver.backends.process import allowed_environment
from palaver.backends.program_lookup import find_program
from palaver.schema.records import AgentRecord

LAUNCHERS = frozenset(
    {"node", "npx", "bun", "bunx", "deno", "python", "python3", "uv", "uvx", "env", "sh", "bash", "docker"}
)
"""They start the agent and have versions of their own."""


def readiness(environment: Mapping[str, str], agent: AgentRecord | None = None) -> Readiness:
    """Of the protocol itself, or of one agent's record. Whether somebody is logged in only the agent knows."""
    absent = {"installed": False}
    if importlib.util.find_spec("acp") is None:
        return Readiness(False, "The library for ACP agents is missing.", "Install palaver[acp].", absent)
    if agent is None:
        return Readiness(True, "Agents that speak ACP can be used: give an agent's record a `command`.")
    if not agent.command:
        fix = "Give its record a `command`, for instance `opencode acp`."
        return Readiness(False, f"{agent.name} has no command.", fix, absent)
    found = find_program(agent.command[0], allowed_environment(environment, agent.environment), ())
    if found is None:
        fix = "Install it, or put its folder on the PATH."
        return Readiness(False, f"{agent.command[0]} was not found.", fix, absent)
    details: dict[str, Any] = {"installed": True, "login": "unknown"}
    if Path(found).name not in LAUNCHERS:
        details["ask_version"] = found
    return Readiness(True, f"{agent.name} is installed.", details=details)

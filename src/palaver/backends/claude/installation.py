"""Where the program is, which version, and whether somebody is logged in: for starting it, and for doctor.

Looks at files and variables only; nothing is run and nothing is imported that takes time.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

from palaver.backends.base import Readiness
from palaver.backends.program_lookup import resolve_command
from palaver.errors import NotInstalled

SDK = "claude_agent_sdk"
HOW_TO_INSTALL = "Install it with `pip install 'palaver[claude]'`, which brings the program too."
HOW_TO_LOG_IN = "Run `claude` once in a terminal and log in with /login, or set ANTHROPIC_API_KEY."

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX")
"""Logged in elsewhere: the cloud's own credentials count."""


def executable(environment: Mapping[str, str], writable: Sequence[Path] = ()) -> Path:
    """The program that came with the SDK, whose protocol it knows; else the one on the PATH, outside the writable folders."""
    package = _package()
    if package is None:
        raise NotInstalled(f"Claude Code needs the package claude-agent-sdk. {HOW_TO_INSTALL}")
    bundled = package / "_bundled" / "claude"
    if bundled.is_file():
        return bundled
    how_to_install = "Install it with `npm i -g @anthropic-ai/claude-code`."
    return Path(resolve_command(("claude",), environment, writable, how_to_install)[0])


def readiness(environment: Mapping[str, str]) -> Readiness:
    try:
        program = executable(environment)
    except NotInstalled as missing:
        return Readiness(False, "Claude Code is not installed.", missing.message, {"installed": False})
    version = _version(program)
    name = f"Claude Code {version}" if version else "Claude Code"
    login = "ok" if is_logged_in(environment) else "missing"
    details = {"installed": True, "version": version, "login": login, "ask_version": str(program)}
    if login == "missing":
        return Readiness(False, f"{name} is installed; nobody is logged in.", HOW_TO_LOG_IN, details)
    return Readiness(True, f"{name}, logged in", details=details)


def is_logged_in(environment: Mapping[str, str]) -> bool:
    """As far as files and variables tell; a login in macOS's keychain leaves a trace in the settings file."""
    if any(environment.get(name) for name in (*KEYS, *CLOUDS)):
        return True
    home = Path(environment.get("HOME") or "/nowhere")
    folder = Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    if (folder / ".credentials.json").is_file():
        return True
    for settings in (home / ".claude.json", folder / ".claude.json"):
        try:
            if b'"oauthAccount"' in settings.read_bytes():
                return True
        except OSError:
            continue
    return False


def _package() -> Path | None:
    found = importlib.util.find_spec(SDK)
    return Path(found.origin).parent if found is not None and found.origin else None


def _version(program: Path) -> str | None:
    """Written beside the program that comes with the SDK."""
    try:
        return program.with_name("claude.version").read_text().strip().split()[0]
    except (OSError, IndexError):
        return None

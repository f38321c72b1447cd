"""Where Pi is, which version, and whether it knows a model: for doctor and the list of backends. Looks at files only."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from palaver.backends.base import Readiness
from palaver.backends.process import allowed_environment
from palaver.backends.program_lookup import find_program

PACKAGE = "@earendil-works/pi-coding-agent"
FOLDER = "PI_CODING_AGENT_DIR"
"""Where a person has put Pi's own settings and logins, when not in the usual place."""


def readiness(environment: Mapping[str, str], command: tuple[str, ...] = ()) -> Readiness:
    """What doctor says. Pi keeps its logins in its own folder; a key may also come with an agent's record."""
    found = find_program(command[0] if command else "pi", allowed_environment(environment), ())
    if found is None:
        return Readiness(False, "Pi is not installed.", f"npm install -g {PACKAGE}", {"installed": False})
    version = None if command else _version(Path(found))
    folder = Path(environment.get(FOLDER) or Path(environment.get("HOME") or "/") / ".pi" / "agent")
    knows_models = any((folder / name).is_file() for name in ("auth.json", "models.json"))
    details = {"installed": True, "version": version, "login": "ok" if knows_models else "missing"}
    if not knows_models:
        return Readiness(
            False, "Pi is installed, but knows no model.", "Start pi in a terminal and use /login.", details
        )
    return Readiness(True, f"Pi {version} is ready." if version else "Pi is ready.", details=details)


def _version(program: Path) -> str | None:
    for folder in program.resolve().parents:
        try:
            package = msgspec.json.decode((folder / "package.json").read_bytes())
        except (OSError, msgspec.DecodeError):
            continue
        if isinstance(package, dict) and package.get("name") == PACKAGE:
            return str(package.get("version"))
    return None

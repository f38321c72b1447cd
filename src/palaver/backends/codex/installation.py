"""Where the Codex program is, what it may see of our environment, and what doctor says of it.

Used by the backend and by doctor. The program that comes with the extra is taken first: it is the one that was tested. It
keeps its own settings and login in `CODEX_HOME`, or `~/.codex`; those are the person's own and are only read here.
"""

import importlib.util
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from palaver.backends.base import Readiness
from palaver.backends.process import allowed_environment
from palaver.backends.program_lookup import resolve_command
from palaver.errors import NotInstalled

PACKAGE = "codex_cli_bin"
DISTRIBUTION = "openai-codex-cli-bin"
INSTALL = "pip install 'palaver[codex]'"

NO_REPOSITORY = {"GIT_DIR": os.devnull}
"""For its own calls of git: it asks for the state of a repository at each turn, outside its sandbox, and with that git runs
the filters that the repository's own configuration names (seen with 0.163)."""

_OWN = ("CODEX_HOME", "CODEX_API_KEY", "CODEX_CA_CERTIFICATE", "CODEX_SQLITE_HOME")
"""Variables by which a person steers Codex itself."""


def find_codex(environment: Mapping[str, str], writable: Sequence[Path] = ()) -> Path:
    """The program of the extra, else the one on the PATH, outside the writable folders. Raises NotInstalled."""
    if importlib.util.find_spec(PACKAGE) is not None:
        from codex_cli_bin import bundled_codex_path

        return Path(bundled_codex_path())
    how_to_install = f"Run `{INSTALL}`, or put the `codex` program on the PATH."
    return Path(resolve_command(("codex",), environment, writable, how_to_install)[0])


def home_of(environment: Mapping[str, str]) -> Path:
    """Where Codex keeps settings, login and its own conversations."""
    if own := environment.get("CODEX_HOME"):
        return Path(own)
    return Path(environment.get("HOME") or "~").expanduser() / ".codex"


def codex_environment(environment: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """The usual, Codex's own variables, and the keys that its settings name."""
    own = {name: environment[name] for name in (*_OWN, *_key_variables(_settings(environment))) if name in environment}
    return allowed_environment(environment, {**own, **more, **NO_REPOSITORY})


def codex_options(environment: Mapping[str, str]) -> list[str]:
    """Options of the program: the commands that it runs do see the repository."""
    policy = _settings(environment).get("shell_environment_policy")
    excluded = policy.get("exclude") if isinstance(policy, dict) else None
    names = [*(excluded if isinstance(excluded, list) else ()), *NO_REPOSITORY]
    return ["-c", f"shell_environment_policy.exclude={msgspec.json.encode(names).decode()}"]


def readiness(environment: Mapping[str, str]) -> Readiness:
    """Without starting anything: what is installed, and whether somebody is logged in."""
    try:
        program = find_codex(environment)
    except NotInstalled as missing:
        return Readiness(False, "Codex is not installed.", fix=missing.message, details={"installed": False})
    version = _version(program)
    name = f"Codex {version}" if version else "Codex"
    login = "ok" if _is_logged_in(environment) else "missing"
    details = {"installed": True, "version": version, "login": login, "ask_version": str(program)}
    if login == "missing":
        return Readiness(False, f"{name} is installed; nobody is logged in.", fix=f"{program} login", details=details)
    return Readiness(True, f"{name}, logged in", details=details)


def _version(program: Path) -> str | None:
    if PACKAGE not in program.parts:
        return None
    # Here: it is one more package that most starts have no use for.
    from importlib import metadata

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return None


def _is_logged_in(environment: Mapping[str, str]) -> bool:
    if environment.get("CODEX_API_KEY") or (home_of(environment) / "auth.json").is_file():
        return True
    # A service of the person's own needs no login, only its key where one is named.
    settings = _settings(environment)
    provider = settings.get("model_provider", "openai")
    own = settings.get("model_providers")
    chosen = own.get(provider) if isinstance(own, dict) else None
    if not isinstance(chosen, dict) or chosen.get("requires_openai_auth"):
        return False
    return all(name in environment for name in _key_variables({"model_providers": {provider: chosen}}))


def _settings(environment: Mapping[str, str]) -> dict[str, Any]:
    try:
        return tomllib.loads((home_of(environment) / "config.toml").read_text())
    except (OSError, ValueError):
        return {}


def _key_variables(settings: Mapping[str, Any]) -> Iterator[str]:
    """The variables from which its services take their keys."""
    providers = settings.get("model_providers")
    for provider in providers.values() if isinstance(providers, dict) else ():
        if not isinstance(provider, dict):
            continue
        if isinstance(key := provider.get("env_key"), str):
            yield key
        headers = provider.get("env_http_headers")
        for name in headers.values() if isinstance(headers, dict) else ():
            if isinstance(name, str):
                yield name

"""Where a server's configuration comes from: flags, then `PALAVER_*` variables, then `palaver.toml`, then defaults.

Called by `serve` and by whatever else needs to know what a server here would be. The only reader of these sources.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from palaver.approval.policy import Rule
from palaver.config import DEFAULT_HOST, DEFAULT_PORT, Config, ProviderSettings
from palaver.errors import ConfigurationError
from palaver.regular_file import read_regular
from palaver.tools.shell.sandbox_level import LEVELS, Level

_TRUE = ("1", "true", "yes", "on")
_PROVIDER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Without a slash: that is what separates it from the model."""


class PolicyRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A `[[policy]]` table."""

    tool: str
    decision: Literal["allow", "ask", "deny_continue", "deny_abort"]
    match: str | None = None
    project: str | None = None
    """The folder it counts in, and beneath; everywhere without one."""

    def rule(self) -> Rule:
        project = Path(self.project).expanduser() if self.project else None
        if project is not None and not project.is_absolute():
            raise ConfigurationError(
                f"palaver.toml: a [[policy]] names the project {self.project}; give the whole path of its folder."
            )
        return Rule(self.tool, self.decision, self.match, "project" if project else "server", project)


class ProviderTable(Struct, frozen=True, forbid_unknown_fields=True):
    """A `[providers.NAME]` table."""

    kind: Literal[
        "anthropic",
        "openai",
        "openai-responses",
        "google",
        "google-cloud",
        "bedrock",
        "groq",
        "mistral",
        "cohere",
        "xai",
    ]
    base_url: Annotated[str, Meta(pattern="^https?://")] | None = None
    api_key: str | None = None
    api_key_env: str | None = None
    models: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    window_tokens: Annotated[int, Meta(ge=1_000)] | None = None

    def settings(self, name: str) -> ProviderSettings:
        if not _PROVIDER_NAME.fullmatch(name):
            raise ConfigurationError(
                f"palaver.toml: a provider cannot be called {name!r}. Use letters, digits, “-”, “_” and “.”."
            )
        if self.api_key and self.api_key_env:
            raise ConfigurationError(
                f"palaver.toml: [providers.{name}] has both a key and a variable for it. Leave one."
            )
        return ProviderSettings(
            name=name,
            kind=self.kind,
            base_url=self.base_url,
            api_key=self.api_key,
            api_key_env=self.api_key_env,
            models=self.models,
            headers=self.headers,
            window_tokens=self.window_tokens,
        )


class SettingsFile(Struct, frozen=True, forbid_unknown_fields=True):
    """`palaver.toml`. An unknown name is said, because it is nearly always a typing error."""

    host: str | None = None
    port: Annotated[int, Meta(ge=1, le=65_535)] | None = None
    name: str | None = None
    public_hosts: tuple[str, ...] = ()
    behind_proxy: bool = False
    allow_remote: bool = False
    tls_certificate: str | None = None
    tls_key: str | None = None
    model: str | None = None
    providers: dict[str, ProviderTable] = {}
    full_enabled: bool = False
    trajectories: bool = True
    sessions_file: bool = False
    sandbox: Level | None = None
    policy: tuple[PolicyRule, ...] = ()


class Flags(Struct, frozen=True, kw_only=True):
    """What was said on the command line; None where nothing was."""

    host: str | None = None
    port: int | None = None
    data: Path | None = None
    public_hosts: tuple[str, ...] = ()
    allow_remote: bool = False
    behind_proxy: bool = False
    tls_certificate: Path | None = None
    tls_key: Path | None = None


def read_config(flags: Flags, environment: Mapping[str, str], home: Path) -> Config:
    """Raises a ConfigurationError that says what to change."""
    data = (flags.data or Path(environment.get("PALAVER_DATA") or "~/.palaver")).expanduser().resolve()
    file = read_file(data / "palaver.toml")
    named = (name.strip() for name in environment.get("PALAVER_PUBLIC_HOSTS", "").split(","))
    config = Config(
        data=data,
        home=home,
        host=flags.host or environment.get("PALAVER_HOST") or file.host or DEFAULT_HOST,
        port=_port(flags, environment, file),
        name=environment.get("PALAVER_NAME") or file.name or "Palaver",
        public_hosts=(*flags.public_hosts, *(name for name in named if name), *file.public_hosts),
        behind_proxy=flags.behind_proxy or is_set(environment, "PALAVER_BEHIND_PROXY") or file.behind_proxy,
        tls_certificate=flags.tls_certificate or _path(environment, "PALAVER_TLS_CERTIFICATE", file.tls_certificate),
        tls_key=flags.tls_key or _path(environment, "PALAVER_TLS_KEY", file.tls_key),
        environment=dict(environment),
        model=environment.get("PALAVER_MODEL") or file.model,
        providers=tuple(table.settings(name) for name, table in file.providers.items()),
        rules=tuple(rule.rule() for rule in file.policy),
        full_enabled=file.full_enabled or is_set(environment, "PALAVER_FULL_ENABLED"),
        trajectories=file.trajectories,
        sessions_file=file.sessions_file,
        sandbox=_sandbox(environment, file),
    )
    check_exposure(config, flags.allow_remote or is_set(environment, "PALAVER_ALLOW_REMOTE") or file.allow_remote)
    return config


def read_file(path: Path) -> SettingsFile:
    try:
        return msgspec.convert(tomllib.loads(read_regular(path).decode()), SettingsFile)
    except FileNotFoundError:
        return SettingsFile()
    except (OSError, ValueError, RecursionError, msgspec.ValidationError) as failure:
        raise ConfigurationError(f"{path} cannot be used: {failure}.") from failure


def check_exposure(config: Config, allowed: bool) -> None:
    """Whoever reaches the server can run programs through it, so leaving this machine takes two deliberate steps."""
    if (config.tls_certificate is None) != (config.tls_key is None):
        raise ConfigurationError("TLS needs both a certificate and a key: give --tls-certificate and --tls-key.")
    if config.is_loopback:
        return
    if not allowed:
        raise ConfigurationError(
            f"{config.host} can be reached from other machines, and whoever holds the token can run programs here. "
            "If you want that, say --allow-remote; else leave --host out."
        )
    if config.tls_certificate is None and not config.behind_proxy:
        raise ConfigurationError(
            "Without encryption the token would cross the network for all to read. Give --tls-certificate and "
            "--tls-key, or say --behind-proxy when a proxy in front of it does TLS."
        )


def is_set(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() in _TRUE


def _port(flags: Flags, environment: Mapping[str, str], file: SettingsFile) -> int:
    if flags.port is not None:
        return flags.port
    text = environment.get("PALAVER_PORT")
    if not text:
        return file.port or DEFAULT_PORT
    if not text.isdecimal() or not 0 < int(text) < 65_536:
        raise ConfigurationError(f"PALAVER_PORT is {text!r}, which is not a port. Ports are numbers from 1 to 65535.")
    return int(text)


def _sandbox(environment: Mapping[str, str], file: SettingsFile) -> Level:
    text = environment.get("PALAVER_SANDBOX")
    if not text:
        return file.sandbox or LEVELS[0]
    for level in LEVELS:
        if text.strip().lower() == level:
            return level
    raise ConfigurationError(f"PALAVER_SANDBOX is {text!r}. The levels are {', '.join(LEVELS)}, the strongest first.")


def _path(environment: Mapping[str, str], name: str, otherwise: str | None) -> Path | None:
    text: Any = environment.get(name) or otherwise
    return Path(text).expanduser() if text else None


def process_environment() -> dict[str, str]:
    return dict(os.environ)

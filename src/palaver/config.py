"""What a server is told at its start. Plain values; `cli/support/settings.py` reads them from flags, environment and file.

Made by the command line and by tests, read by `app.py` and the roster. Must never read anything itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from palaver.approval.policy import Rule
from palaver.tools.shell.sandbox_level import Level

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8420
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """A `[providers.NAME]` of `palaver.toml`: a model service. Keys and headers are never shown, logged or stored."""

    name: str
    kind: str
    """The wire format, or the service when only the extra `[providers]` speaks with it."""
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_key_env: str | None = None
    """The variable that holds the key, so that the file need not."""
    models: tuple[str, ...] = ()
    """Models that are asked of it by their bare names; the first when nobody chose one."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    window_tokens: int | None = None
    """What its models can read at once, where nobody else could know."""


@dataclass(frozen=True, slots=True)
class Config:
    data: Path
    """Everything the server keeps: its token, its log, its blobs."""
    home: Path
    """The folder of a conversation made without a project: where the server was started."""
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    name: str = "Palaver"
    """What the server calls itself to clients."""
    public_hosts: tuple[str, ...] = ()
    """Names beside loopback that a browser may reach it under, with or without a port."""
    behind_proxy: bool = False
    """A proxy on this machine ends TLS and says who the client is."""
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The process's own, read once. Holds keys: it is never shown, logged or stored."""
    model: str | None = None
    """Overrides the model of the `default` agent."""
    providers: tuple[ProviderSettings, ...] = ()
    rules: tuple[Rule, ...] = ()
    full_enabled: bool = False
    """Mode `full` may be chosen: agents then run anything without asking."""
    trajectories: bool = True
    """Each conversation is also written down beside its project, for other programs."""
    sandbox: Level = "bubblewrap"
    """The strongest sandbox that may hold commands; what works of it and of the weaker ones is found out at the start."""
    sessions_file: bool = False
    """Each project gets a list of its conversations, `chat-sessions.jsonl`, for other programs."""

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK or self.host.startswith("127.")


def held_addresses(bound: str) -> tuple[str, ...]:
    """The literal addresses under which nobody else can listen on this port, the one to show first."""
    match bound:
        case "localhost" | "0.0.0.0":  # noqa: S104 - compared, not bound
            return (DEFAULT_HOST,)
        case "::":
            # `palaver serve` takes both families with it.
            return (DEFAULT_HOST, "[::1]")
        case _ if not _is_address(bound):
            return ()
        case _:
            return (f"[{bound}]" if ":" in bound else bound,)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True

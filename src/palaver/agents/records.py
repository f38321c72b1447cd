"""Agents in files: Markdown with front matter, the form that users of coding agents know.

Read by the composition root from the data directory's `agents/`. The file's name is the agent's id, the front matter its
settings, the text below its system prompt. A file that cannot be used is said, by name and field, and keeps nobody else
from working.
"""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from palaver.core.params import MODES
from palaver.errors import ConfigurationError
from palaver.schema.base import Id
from palaver.schema.records import AgentRecord, McpServer, PolicyRule

FENCE = "---"
BEST = "best"
"""The backend of an agent that names none: the best that is set up here."""
RECORD_BYTES = 256 << 10
"""More is not a system prompt but a book."""


class McpTable(Struct, frozen=True, forbid_unknown_fields=True):
    """A server under `mcp_servers`, as other programs' files have it: a program, or an address."""

    command: str | list[str] | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}
    trusted: bool = False


class FrontMatter(Struct, frozen=True, forbid_unknown_fields=True):
    """What may stand between the two lines of dashes."""

    name: str | None = None
    description: str = ""
    backend: str = BEST
    command: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    model: str | None = None
    fallbacks: tuple[str, ...] = ()
    tools: tuple[str, ...] | str = ()
    mcp_servers: dict[Id, McpTable] = {}
    policy: tuple[PolicyRule, ...] = ()
    mode: str | None = None
    spend_limit_usd: float | None = None
    knowledge: bool = True
    params: dict[str, Any] = {}


def read_agents(folder: Path) -> tuple[list[AgentRecord], list[ConfigurationError]]:
    """Every agent in a folder, and what is wrong with the files that are none."""
    records: list[AgentRecord] = []
    problems: list[ConfigurationError] = []
    for path in sorted(folder.glob("*.md")) if folder.is_dir() else ():
        try:
            records.append(read_agent(path))
        except ConfigurationError as problem:
            problems.append(problem)
    return records, problems


def read_agent(path: Path) -> AgentRecord:
    """Raises a ConfigurationError that names the file and the field."""
    try:
        if path.stat().st_size > RECORD_BYTES:
            raise ConfigurationError(f"{path} is larger than {RECORD_BYTES >> 10} KiB.")
        return parse_agent(path.stem, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as failure:
        raise ConfigurationError(f"{path} cannot be read: {failure}.") from failure
    except (msgspec.MsgspecError, ValueError) as wrong:
        raise ConfigurationError(f"{path} cannot be used: {wrong}.") from wrong


def parse_agent(name: str, text: str) -> AgentRecord:
    """Raises a ValueError, or a msgspec error that names the field."""
    header, prompt = _parts(text)
    front = msgspec.yaml.decode(header, type=FrontMatter) if header.strip() else FrontMatter()
    if front.mode is not None and front.mode not in MODES:
        raise ValueError(f"`mode` must be one of {', '.join(MODES)}")
    tools = front.tools.replace(",", " ").split() if isinstance(front.tools, str) else front.tools
    return msgspec.convert(
        {
            "id": name,
            "name": front.name or name,
            "description": front.description,
            "backend": front.backend,
            "command": front.command,
            "environment": front.environment,
            "model": front.model,
            "fallbacks": front.fallbacks,
            "system_prompt": prompt.strip(),
            "tools": tuple(tools),
            "mcp_servers": tuple(_server(server, table) for server, table in front.mcp_servers.items()),
            "policy": front.policy,
            "mode": front.mode,
            "spend_limit_usd": front.spend_limit_usd,
            "knowledge": front.knowledge,
            "params": front.params,
        },
        AgentRecord,
    )


def _parts(text: str) -> tuple[str, str]:
    """The front matter and the prompt. A file without front matter is all prompt."""
    lines = text.lstrip("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].strip() != FENCE:
        return "", text
    for place, line in enumerate(lines[1:], 1):
        if line.strip() == FENCE:
            return "".join(lines[1:place]), "".join(lines[place + 1 :])
    raise ValueError("the front matter that its first line begins has no end: a line `---` is missing")


def _server(name: str, table: McpTable) -> McpServer:
    command = table.command.split() if isinstance(table.command, str) and not table.args else table.command
    words = [command] if isinstance(command, str) else list(command or ())
    if bool(words) == bool(table.url):
        raise ValueError(f"the MCP server “{name}” needs either a `command` or a `url`")
    return McpServer(
        name=name,
        command=(*words, *table.args),
        environment=table.env,
        url=table.url,
        headers=table.headers,
        trusted=table.trusted,
    )

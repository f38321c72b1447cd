"""What a person asks of an agent over HTTP, in the terms of its file: which fields to write, and how.

Called by the book on the agent as it is at that moment. A record goes out without the secrets in its environment and
headers: a client that gives `true` for one means “as it is”. Everything is checked as if it stood in a file.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import msgspec

from palaver.agents.records import MERGED, RIGHT, FrontMatter, Wrong, as_id, canonical, check_fields
from palaver.schema.records import AgentRecord, McpServer

ID_CHARS = 60
"""Of an id made from a name: it is typed on command lines."""
RESERVED = frozenset({"trust", "list", "get", "create", "update", "delete", "duplicate"})
"""Words that stand in addresses where an agent's id could."""
PROMPTS = ("system_prompt", "systemPrompt")

_UNFIT = re.compile("[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""What no YAML file may hold as it is, and nobody types."""


def changes_of(body: Mapping[str, Any], record: AgentRecord) -> tuple[dict[str, Any], str | None]:
    """Fields as the front matter holds them (null: take it out), and the prompt if it changes. Raises Wrong."""
    fields: dict[str, Any] = {}
    prompt: str | None = None
    for key, value in body.items():
        if key == "id":
            continue
        value = _fit(key, value)
        if key in PROMPTS:
            prompt = _prompt(value)
            continue
        field = canonical(key)
        if field is None:
            raise Wrong(key, f"`{key}` is kept in an agent's file but cannot be set here")
        fields[field] = _front(field, value, record)
    # As it would be read: what is taken out needs no check.
    check_fields({field: _without_nulls(field, value) for field, value in fields.items()})
    places = {field: place for place, field in enumerate(FrontMatter.__struct_fields__)}
    return dict(sorted(fields.items(), key=lambda pair: places[pair[0]])), prompt


def fields_of_copy(record: AgentRecord) -> dict[str, Any]:
    """What a copy of a built-in agent must say itself. The copy of `default` takes what is best here, as it does."""
    said = msgspec.to_builtins(record)
    best = ("backend", "model") if record.id == "default" else ()
    return {name: value for name, value in said.items() if name in FrontMatter.__struct_fields__ and name not in best}


def new_id(name: str, is_taken: Callable[[str], bool]) -> str:
    """Made from a name: what a person would type. Raises Wrong for one that has no letters."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    stem = re.sub(r"[^a-z0-9_]+", "-", plain).strip("-")[:ID_CHARS].strip("-")
    if not stem:
        raise Wrong(
            "name" if not name else "id", "`name` is missing" if not name else f"give “{name}” an `id` of its own"
        )
    return next(agent for at in count(1) if not is_taken(agent := stem if at == 1 else f"{stem}-{at}"))


def check_id(text: str) -> str:
    """Raises Wrong."""
    if text in RESERVED:
        raise Wrong("id", f"“{text}” cannot be an agent's id: it stands for something else in addresses")
    return as_id(text)


def _fit(field: str, value: Any) -> Any:
    """With line ends as they are here. Raises Wrong for control characters."""
    match value:
        case str():
            text = value.replace("\r\n", "\n")
            if found := _UNFIT.search(text):
                raise Wrong(
                    field, f"`{field}` holds the character U+{ord(found[0]):04X}, which no text needs; leave it out"
                )
            return text
        case Mapping():
            return {_fit(field, str(name)): _fit(field, part) for name, part in value.items()}
        case list() | tuple():
            return [_fit(field, part) for part in value]
        case _:
            return value


def _prompt(value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise Wrong("system_prompt", f"`system_prompt` {RIGHT['system_prompt']}")
    return value or ""


def _front(field: str, value: Any, record: AgentRecord) -> Any:
    match field, value:
        case "environment", Mapping():
            return _secrets(value)
        case "mcp_servers", list() | Mapping():
            return _servers(value, {server.name: server for server in record.mcp_servers})
        case _:
            return value


def _secrets(given: Mapping[str, Any], known: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Without those that stay as they are; with `known`, filled in from there."""
    kept = (
        {} if known is None else {name: known[name] for name, value in given.items() if value is True and name in known}
    )
    return {**kept, **{name: value for name, value in given.items() if not isinstance(value, bool)}}


def _servers(given: "list[Any] | Mapping[str, Any]", known: Mapping[str, McpServer]) -> dict[str, Any]:
    """A list stands for all of them, servers by name for those alone."""
    if isinstance(given, Mapping):
        return {name: _table(name, table, known.get(name)) for name, table in given.items()}
    tables: dict[str, Any] = dict.fromkeys(known)
    for server in given:
        if not isinstance(server, Mapping) or not isinstance(server.get("name"), str):
            raise Wrong("mcp_servers", f"`mcp_servers` {RIGHT['mcp_servers']}; in a list each has a `name`")
        name = server["name"]
        tables[name] = _table(name, {key: part for key, part in server.items() if key != "name"}, known.get(name))
    return tables


def _table(name: str, given: Any, known: McpServer | None) -> Any:
    if not isinstance(given, Mapping):
        if given is not None:
            raise Wrong(
                "mcp_servers",
                f"`mcp_servers`: “{name}” {RIGHT['mcp_servers'].removeprefix('holds servers by name, each ')}",
            )
        return None
    table = {key: value for key, value in given.items() if key != "environment"}
    environment = _by_name(name, "env", given.get("env") or given.get("environment"))
    table["env"] = _secrets(environment, known.environment if known else {})
    table["headers"] = _secrets(_by_name(name, "headers", given.get("headers")), known.headers if known else {})
    command = table.get("command")
    if isinstance(command, list | tuple) and command and not table.get("args"):
        table["command"], table["args"] = command[0], list(command[1:])
    return {key: value for key, value in table.items() if value not in (None, "", [], (), {}, False)}


def _by_name(server: str, key: str, given: Any) -> Mapping[str, Any]:
    if given and not isinstance(given, Mapping):
        raise Wrong("mcp_servers", f"`mcp_servers`: `{key}` of “{server}” {RIGHT['environment']}")
    return given or {}


def _without_nulls(field: str, value: Any) -> Any:
    if field in MERGED and isinstance(value, Mapping):
        return {name: part for name, part in value.items() if part is not None}
    return value

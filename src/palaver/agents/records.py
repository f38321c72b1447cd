"""Agents in files: Markdown with front matter, the form that users of coding agents know.

Read by the book. The file's name is the agent's id, the front matter its settings, the text below its system prompt. The
same words are checked when they come over HTTP. Whatever is wrong is said by its field, with what would be right. Must
never guess what a person meant where it decides what runs: a word nobody knows here is refused, and not left out.
"""

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from palaver.agents.front_matter import FrontMatterError, load_front_matter
from palaver.approval.policy import OUR_TOOLS
from palaver.core.decide.decision import Refusal
from palaver.core.params import MODE_WORDS, MODES
from palaver.core.params import check_patch as checked_params
from palaver.schema.base import Id
from palaver.schema.records import AgentRecord, McpServer, PolicyRule

FENCE = "---"
BEST = "best"
"""The backend of an agent that names none: the best that is set up here."""
OWN_LOOP = "api"
"""The backend whose loop is ours: it alone can hold a model to a tool for speaking."""
RECORD_BYTES = 256 << 10
"""More is not a system prompt but a book."""

RIGHT = {
    "name": "is a text of 1 to 200 characters",
    "description": "is a text",
    "backend": "is the name of a backend, such as api, claude, codex, pi or acp",
    "model": "is the name of a model",
    "fallbacks": "is a list of models",
    "tools": "is a list of tools, or their names with commas between; empty means all",
    "allowed_tools": "is a list of tools, or their names with commas between",
    "mcp_servers": "holds servers by name, each with a `command` (and `args`, `env`) or a `url` (and `headers`)",
    "policy": "is a list of rules: a `tool`, a `decision` (allow, ask, deny_continue, deny_abort), perhaps a `match`",
    "mode": f"is one of {', '.join(MODES)}",
    "spend_limit_usd": "is an amount of US dollars, such as 2.5",
    "idle_prompt": "is a text",
    "idle_interval_s": "is a whole number of seconds, at least 1",
    "strict_inbox": "is true or false",
    "knowledge": "is true or false",
    "params": "holds parameters by name, such as temperature: 0.2",
    "command": "is a program and its arguments, as a list or a line",
    "environment": "holds texts by name",
    "system_prompt": "is a text",
}
"""Every field of an agent, and what it may hold."""
MERGED = frozenset({"environment", "params", "mcp_servers"})
"""Fields that hold things by name: a change of one leaves the others."""
OTHER_NAMES = {
    "budget": "spend_limit_usd",
    "budget_usd": "spend_limit_usd",
    "mcpServers": "mcp_servers",
    "allowedTools": "allowed_tools",
    "allowed-tools": "allowed_tools",
    "permissionMode": "mode",
    "permission_mode": "mode",
    "env": "environment",
    "idlePrompt": "idle_prompt",
    "strictInbox": "strict_inbox",
}
"""Spellings that people bring from other programs, where they mean the same."""
LEFT_ALONE = frozenset({"color", "icon", "tags", "author", "version", "license", "metadata"})
"""What others write into such a file and what changes nothing here; so does whatever begins with `x-`."""
OTHER_MODES = {**MODE_WORDS, "default": "ask", "acceptEdits": "accept_edits"}
_TOOL = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class Wrong(ValueError):
    """What cannot be used, in a sentence that names the field."""

    def __init__(self, field: str | None, message: str) -> None:
        super().__init__(message)
        self.field = field


class McpTable(Struct, frozen=True, forbid_unknown_fields=True):
    """A server under `mcp_servers`, as other programs' files have it: a program, or an address."""

    command: str | list[str] | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}
    trusted: bool = False
    type: str | None = None
    """Others say here what the rest says already."""


class FrontMatter(Struct, frozen=True, forbid_unknown_fields=True):
    """What may stand between the two lines of dashes, under our own names."""

    name: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    description: str = ""
    backend: Id = BEST
    command: tuple[str, ...] | str = ()
    environment: dict[str, str] = {}
    model: str | None = None
    fallbacks: tuple[str, ...] | str = ()
    tools: tuple[str, ...] | str = ()
    allowed_tools: tuple[str, ...] | str = ()
    mcp_servers: dict[Id, McpTable] = {}
    policy: tuple[PolicyRule, ...] = ()
    mode: str | None = None
    spend_limit_usd: Annotated[float, Meta(ge=0)] | None = None
    idle_prompt: str | None = None
    idle_interval_s: Annotated[int, Meta(ge=1)] | None = None
    strict_inbox: bool = False
    knowledge: bool = True
    params: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class AgentText:
    """A file in its parts. `front` is None where there is no front matter: then all is prompt."""

    front: str | None
    prompt: str


def parse_agent(name: str, text: str) -> AgentRecord:
    """Raises Wrong."""
    return record_of(AgentRecord(id=as_id(name), name=name, backend=BEST), *fields_of(text))


def fields_of(text: str) -> tuple[dict[str, Any], str]:
    """The settings that a file gives, checked, under our names; and its prompt. Raises Wrong."""
    parts = split(text)
    try:
        found = load_front_matter(parts.front) if parts.front and parts.front.strip() else None
    except FrontMatterError as problem:
        raise Wrong(None, f"the front matter {problem}") from problem
    if found is not None and not isinstance(found, dict):
        raise Wrong(None, "the front matter must hold fields, one a line, such as `name: Reviewer`")
    return check_fields(found or {}), parts.prompt.strip()


def record_of(base: AgentRecord, fields: Mapping[str, Any], prompt: str) -> AgentRecord:
    """An agent with what was given for it, and the rest as it is without."""
    return replace(base, **fields, **({"system_prompt": prompt} if prompt else {}))


def impossible(record: AgentRecord) -> str | None:
    """What a record asks for that its backend cannot give. `backend` is one that runs agents, no longer the best."""
    if record.strict_inbox and record.backend != OWN_LOOP:
        return (
            f"`strict_inbox` is for agents whose every word passes through Palaver (backend {OWN_LOOP}); this one is run"
            f" by {record.backend}, which speaks in its own way. Leave it out, or set `backend: {OWN_LOOP}`"
        )
    return None


def as_id(name: str) -> str:
    try:
        return msgspec.convert(name, Id)
    except msgspec.ValidationError:
        raise Wrong(
            "id", f"“{name}” is no id for an agent: 1 to 128 letters without accents, digits, - and _, and no spaces"
        ) from None


def split(text: str) -> AgentText:
    """The front matter and the prompt. A file without front matter is all prompt."""
    lines = text.lstrip("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].strip() != FENCE:
        return AgentText(None, text)
    for place, line in enumerate(lines[1:], 1):
        if line.strip() == FENCE:
            return AgentText("".join(lines[1:place]), "".join(lines[place + 1 :]))
    raise Wrong(None, "the front matter that its first line begins has no end: a line `---` is missing")


# -- fields


def check_fields(given: Mapping[Any, Any]) -> dict[str, Any]:
    """Under our names, each as the record holds it; what is null was not given. Raises Wrong."""
    named = _under_our_names(given)
    try:
        front = msgspec.convert(named, FrontMatter)
    except msgspec.ValidationError as problem:
        raise _explain(str(problem)) from problem
    return {field: _value(front, field) for field in named}


def canonical(name: str) -> str | None:
    """The field that a key of a file stands for; None for one that is left alone. Raises Wrong."""
    field = OTHER_NAMES.get(name, name)
    if field in FrontMatter.__struct_fields__:
        return field
    if name in LEFT_ALONE or name.startswith("x-"):
        return None
    raise Wrong(name, _unknown(name))


def _under_our_names(given: Mapping[Any, Any]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    for key, value in given.items():
        field = canonical(str(key))
        if field is None or value is None:
            continue
        if field in named:
            raise Wrong(str(key), f"`{spelled[field]}` and `{key}` say the same twice; keep one of them")
        named[field], spelled[field] = value, str(key)
    return named


def _value(front: FrontMatter, field: str) -> Any:
    value = getattr(front, field)
    match field:
        case "tools":
            return tuple(tool_names(field, value))
        case "allowed_tools":
            return tuple(dict.fromkeys(OUR_TOOLS.get(tool, tool) for tool in tool_names(field, value)))
        case "fallbacks" if isinstance(value, str):
            return tuple(value.replace(",", " ").split())
        case "command" if isinstance(value, str):
            return _words(field, value)
        case "mcp_servers":
            return tuple(_server(name, table) for name, table in value.items())
        case "mode":
            return _mode(value)
        case "model":
            # A subagent's “as its parent” is what no word means here.
            return None if value.strip() in ("", "inherit") else value.strip()
        case "spend_limit_usd" if not math.isfinite(value):
            raise Wrong(field, f"`{field}` {RIGHT[field]}")
        case "name":
            return _name(value)
        case "params":
            return _params(value)
        case _:
            return value


def _name(value: str) -> str:
    if not value.strip():
        raise Wrong("name", f"`name` {RIGHT['name']}")
    return value.strip()


def _params(value: dict[str, Any]) -> dict[str, Any]:
    try:
        # The one field of any shape: YAML has keys that JSON, in which clients are told of it, has not.
        msgspec.json.encode(value)
    except (msgspec.MsgspecError, TypeError, ValueError, ArithmeticError) as problem:
        raise Wrong("params", f"`params` {RIGHT['params']}: {problem}") from problem
    fitted = checked_params(value)
    if isinstance(fitted, Refusal):
        raise Wrong("params", f"`params`: {fitted.message.rstrip('.')}")
    return fitted


def tool_names(field: str, value: str | tuple[str, ...]) -> list[str]:
    names = value.replace(",", " ").split() if isinstance(value, str) else [name.strip() for name in value]
    for name in names:
        if field == "allowed_tools" and name == "*":
            raise Wrong(field, f"`{field}` names tools one by one; to ask for none of them is `mode: full`")
        if not _TOOL.fullmatch(name):
            raise Wrong(
                field,
                f"`{field}`: “{name}” is no tool's name. To allow a part of what a tool does, write a rule: "
                "`policy: [{tool: shell, match: 'program:git status', decision: allow}]`",
            )
    return names


def _mode(word: str) -> str:
    mode = OTHER_MODES.get(word, word)
    if mode not in MODES:
        hint = "; what others call bypassPermissions is `full`" if word == "bypassPermissions" else ""
        raise Wrong("mode", f"`mode` {RIGHT['mode']}, not “{word}”{hint}")
    return mode


def _words(field: str, line: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(line))
    except ValueError as problem:
        raise Wrong(field, f"`{field}` {RIGHT[field]}: {problem}") from problem


def _server(name: str, table: McpTable) -> McpServer:
    command = table.command.split() if isinstance(table.command, str) and not table.args else table.command
    words = [command] if isinstance(command, str) else list(command or ())
    if bool(words) == bool(table.url):
        raise Wrong("mcp_servers", f"`mcp_servers`: the server “{name}” needs either a `command` or a `url`")
    return McpServer(
        name=name,
        command=(*words, *table.args),
        environment=table.env,
        url=table.url,
        headers=table.headers,
        trusted=table.trusted,
    )


# -- what is wrong, in words


def _explain(problem: str) -> Wrong:
    """msgspec says “Expected `float`, got `str` - at `$.spend_limit_usd`”; a person wants to know what to write."""
    what, _, where = problem.partition(" - at ")
    path = where.strip("`").removeprefix("$").removeprefix(".")
    field = re.split(r"[.\[]", path)[0]
    more = "" if path == field else f" (`{path}`)"
    return Wrong(field or None, f"`{field}` {RIGHT.get(field, 'cannot be used')}: {what}{more}")


def _unknown(name: str) -> str:
    known = [*FrontMatter.__struct_fields__, *OTHER_NAMES]
    alike = get_close_matches(name, known, n=1)
    hint = f"Did you mean `{OTHER_NAMES.get(alike[0], alike[0])}`?" if alike else f"There are: {', '.join(known)}."
    return f"`{name}` is no field of an agent. {hint} What is only for you can begin with `x-`"

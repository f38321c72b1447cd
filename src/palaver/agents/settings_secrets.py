"""Secrets in the files that a person wrote: `palaver.toml` and agents' records.

Used by `palaver backup`, whose copies travel. Pure: text in, text out. Only fields that are known to hold no secret are kept,
their texts redacted; of arguments and addresses what may be one is taken out; the value of every other field is. It is taken
out of the text itself, so that comments and order stay. What cannot surely be taken out is refused.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from palaver.agents.front_matter import FrontMatterError, check_front_matter, load_front_matter
from palaver.tools.redact import Redactor
from palaver.tools.secret_names import is_telling

PLACEHOLDER = "left-out-of-the-backup"
TELLING_CHARS = 8
"""A value this long is taken out of comments and prompts too; shorter ones are words like any other."""
HARMLESS_DIGITS = 4
"""Of a number in an unknown field: a port or a count."""


@dataclass(frozen=True, slots=True)
class Each:
    """Of every item of a list, or every value of a table, whatever its name."""

    inner: "Spec"


Spec = str | Each | Mapping[str, "Spec"]
"""What a value is: `text`, `arguments`, `address` or `secret`; or what its fields are. A field that is not named is a secret."""

_TEXTS = ("id", "name", "description", "backend", "model", "mode", "kind", "type", "trusted")
_RULE: Spec = Each(dict.fromkeys(("tool", "decision", "match", "project"), "text"))
_MCP: Spec = {**dict.fromkeys(_TEXTS, "text"), "command": "arguments", "args": "arguments", "url": "address"}
_PARAMS: Spec = {
    **dict.fromkeys(
        ("temperature", "top_p", "frequency_penalty", "presence_penalty", "max_tokens", "model", "mode"), "text"
    ),
    **dict.fromkeys(
        ("thinking_budget", "context_tokens_cap", "request_timeout_s", "spend_limit_usd", "knowledge"), "text"
    ),
    **dict.fromkeys(("tool_calls_per_minute", "reasoning_effort"), "text"),
    "fallbacks": Each("text"),
    "policy": _RULE,
}
_RECORD: Spec = {
    **dict.fromkeys(_TEXTS, "text"),
    **dict.fromkeys(("spend_limit_usd", "budget", "budget_usd", "knowledge", "idle_prompt", "idlePrompt"), "text"),
    **dict.fromkeys(("idle_interval_s", "strict_inbox", "strictInbox", "permissionMode", "permission_mode"), "text"),
    **dict.fromkeys(("color", "icon", "author", "version", "license"), "text"),
    **dict.fromkeys(("fallbacks", "tools", "allowed_tools", "allowedTools", "allowed-tools", "tags"), Each("text")),
    "command": "arguments",
    "mcp_servers": Each(_MCP),
    "mcpServers": Each(_MCP),
    "policy": _RULE,
    "params": _PARAMS,
}
_SETTINGS: Spec = {
    **dict.fromkeys(
        ("host", "port", "name", "behind_proxy", "allow_remote", "tls_certificate", "tls_key", "model"), "text"
    ),
    **dict.fromkeys(("full_enabled", "trajectories", "sessions_file", "sandbox"), "text"),
    "public_hosts": Each("text"),
    "providers": Each(
        {
            **dict.fromkeys(("name", "kind", "api_key_env", "window_tokens"), "text"),
            "models": Each("text"),
            "base_url": "address",
        }
    ),
    "policy": _RULE,
}

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_TOML_PART = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r"|(?P<string>\"\"\"(?:[^\\]|\\.)*?(?:\"{3,5}|\Z)|'''.*?(?:'{3,5}|\Z)|\"(?:[^\"\\\n]|\\.)*+\"?|'[^'\n]*+'?)",
    re.DOTALL,
)
_YAML_COMMENT = re.compile(r"(?m)(?:^|(?<=[ \t]))\#[^\n]*")
_ASSIGNED = re.compile(r"([A-Za-z][\w.-]{1,63})([\"']?[ \t]*[:=][ \t]*[\"']?)([^\s\"',}]{4,})")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,31}://)([^/\s?#]*@)?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*)(=?)(.*)", re.DOTALL)
_HEADER = re.compile(r"[A-Za-z][\w-]{1,63}:[ \t]*\S", re.DOTALL)
_NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LINE_WORDS = re.compile(r"\s+|\"[^\"]*\"|'[^']*'|[^\s\"']+|[\"']")


@dataclass(frozen=True, slots=True)
class Struck:
    text: str
    fields: tuple[str, ...]
    """Where something was taken out, such as `providers.mine.api_key`."""


def without_secrets(file_name: str, text: str, redactor: Redactor) -> Struck | None:
    """The text with a placeholder for each secret. None: they cannot all be found in it."""
    try:
        if file_name.endswith(".toml"):
            return _settings(text, redactor)
        return _record(text, redactor) if file_name.endswith(".md") else None
    except (FrontMatterError, tomllib.TOMLDecodeError, RecursionError, ValueError):
        return None


def _settings(text: str, redactor: Redactor) -> Struck | None:
    before = tomllib.loads(text)
    changes = list(_changes(before, _SETTINGS, redactor))
    struck = {change.before: change.after for change in changes}
    found = _secrets_of(changes)

    def replaced(part: re.Match[str]) -> str:
        if part["comment"]:
            return _comment(part[0], found, redactor)
        is_key = re.match(r"[ \t]*[=.]", text[part.end() :]) is not None or _is_in_header(text, part.start())
        value = None if is_key else tomllib.loads(f"a = {part[0]}")["a"]
        return _quoted(struck[value]) if value in struck else part[0]

    after = _TOML_PART.sub(replaced, text)
    return _checked(Struck(after, _fields(changes)), before, tomllib.loads(after), _SETTINGS, found, redactor)


def _is_in_header(text: str, place: int) -> bool:
    """`[providers."a"]`; an item of a list on a line of its own is none, for lists of lists are none of our settings."""
    line = text[text.rfind("\n", 0, place) + 1 : place].lstrip()
    return line.startswith("[") and "=" not in line and line.strip("[ \t") != ""


def _record(text: str, redactor: Redactor) -> Struck | None:
    found = _FRONT_MATTER.match(text)
    if found is None:
        body = redactor.redact(text)
        return Struck(body, ("prompt",) if body != text else ())
    front, prompt = found[1], text[found.end(1) :]
    before = load_front_matter(front)
    if before is not None and not isinstance(before, dict):
        return None
    changes = list(_changes(before or {}, _RECORD, redactor))
    secrets = _secrets_of(changes)
    after = _YAML_COMMENT.sub(lambda part: _comment(part[0], secrets, redactor), _yaml(front, redactor))
    said = _comment(prompt, secrets, redactor, assigned=False)
    fields = (*_fields(changes), *(("prompt",) if said != prompt else ()))
    struck = Struck(text[: found.start(1)] + after + said, fields)
    return _checked(struck, before or {}, load_front_matter(after) or {}, _RECORD, secrets, redactor)


def _yaml(front: str, redactor: Redactor) -> str:
    """Each value replaced where it stands."""
    import yaml  # type: ignore[import-untyped]

    check_front_matter(front)
    pieces: list[str] = []
    place = 0
    root = yaml.compose(front, Loader=yaml.SafeLoader)  # The one in C counts bytes.
    for node, kind, before in _scalars(root, _RECORD):
        begin, end = node.start_mark.index, node.end_mark.index
        value = node.value if node.tag.endswith(":str") else yaml.SafeLoader("").construct_object(node)
        after = _struck(value, kind, before, redactor)
        if after is not value:
            pieces += [front[place:begin], _quoted(after), "\n" if front[begin:end].endswith("\n") else ""]
            place = end
    return "".join([*pieces, front[place:]])


def _scalars(node: Any, spec: Spec, before: str = "") -> Iterator[tuple[Any, str, str]]:
    """In the order of the text: each value, its kind, and what stands before it in its list."""
    match type(node).__name__:
        case "MappingNode":
            for key, value in node.value:
                yield from _scalars(value, _inner(spec, str(key.value)))
        case "SequenceNode":
            last = ""
            for item in node.value:
                yield from _scalars(item, _item(spec), last)
                last = str(item.value) if type(item).__name__ == "ScalarNode" else ""
        case "ScalarNode":
            yield node, spec if isinstance(spec, str) else _of_a_scalar(spec), before
        case _:
            return


@dataclass(frozen=True, slots=True)
class _Change:
    path: str
    before: Any
    after: str


def _changes(value: Any, spec: Spec, redactor: Redactor, path: str = "", before: str = "") -> Iterator[_Change]:
    match value:
        case dict():
            for name, inner in value.items():
                yield from _changes(inner, _inner(spec, str(name)), redactor, f"{path}.{name}".lstrip("."))
        case list():
            last = ""
            for place, item in enumerate(value):
                yield from _changes(item, _item(spec), redactor, f"{path}[{place}]", last)
                last = item if isinstance(item, str) else ""
        case _:
            after = _struck(value, spec if isinstance(spec, str) else _of_a_scalar(spec), before, redactor)
            if after is not value:
                yield _Change(path, value, after)


def _inner(spec: Spec, name: str) -> Spec:
    match spec:
        case Each(inner=inner):
            return inner
        case str():
            # A table where a plain value is expected is of another program.
            return "secret"
        case _:
            return spec.get(name, "secret")


def _item(spec: Spec) -> Spec:
    match spec:
        case Each(inner=inner):
            return inner
        case "arguments":
            return "arguments"
        case str():
            return "secret" if spec in ("secret", "address") else "text"
        case _:
            # `[[providers]]`, or servers in a list: each is one of them.
            return spec


def _of_a_scalar(spec: Spec) -> str:
    """`tools: read, write` in place of a list."""
    return "text" if isinstance(spec, Each) and spec.inner == "text" else "secret"


def _is_harmless(value: Any) -> bool:
    """An on or off, a small number, nothing at all."""
    if value is None or isinstance(value, bool) or value == "":
        return True
    return isinstance(value, int | float) and len(re.sub(r"\D", "", str(value))) <= HARMLESS_DIGITS


def _struck(value: Any, kind: str, before: str, redactor: Redactor) -> Any:
    """The same object where nothing is taken out."""
    if _is_harmless(value) or value == PLACEHOLDER:
        return value
    if not isinstance(value, str):
        return PLACEHOLDER if kind == "secret" or (kind == "arguments" and _tells(before)) else value
    match kind:
        case "text":
            after = redactor.redact(value)
        case "address":
            after = _address(value, redactor)
        case "arguments" if before or not re.search(r"\s", value):
            after = _argument(value, before, redactor)
        case "arguments":
            after = _each_word(value, redactor)
        case _:
            after = PLACEHOLDER
    return value if after == value else after


def _each_word(line: str, redactor: Redactor) -> str:
    """A command written as one line."""
    said: list[str] = []
    before = ""
    for word in _LINE_WORDS.findall(line):
        plain = word.strip("\"'")
        after = word if word.isspace() else _argument(plain, before, redactor)
        said.append(word if after == plain else after)
        before = before if word.isspace() else plain
    return "".join(said)


def _argument(word: str, before: str, redactor: Redactor) -> str:
    option = _OPTION.fullmatch(word)
    if option and option[2]:
        harmless = not _tells(option[1]) and _argument(option[3], "", redactor) == option[3]
        return word if harmless else f"{option[1]}={PLACEHOLDER}"
    if option and word == option[1] and not _looks_random(word):
        return word
    if _ADDRESS.fullmatch(word):
        return PLACEHOLDER if _tells(before) else _address(word, redactor)
    if _follows_its_option(word, before) or _HEADER.match(word) or _looks_random(word):
        return PLACEHOLDER
    name, given, value = word.partition("=")
    if given and _NAMED.fullmatch(name):
        return word if not is_telling(name) and _argument(value, "", redactor) == value else f"{name}={PLACEHOLDER}"
    return word if redactor.redact(word) == word else PLACEHOLDER


def _follows_its_option(word: str, before: str) -> bool:
    match before:
        case "-u" | "-U" | "--user":
            return ":" in word
        case "-p":
            return not word.isdecimal()
        case _:
            return _tells(before)


def _tells(option: str) -> bool:
    """Whether a secret follows it."""
    if not option.startswith("-") or "=" in option:
        return False
    name = option.lstrip("-")
    return option == "-H" or is_telling(name) or name.lower() in ("header", "headers", "auth")


def _looks_random(word: str) -> bool:
    """No name of a program, a package or a folder: letters and digits in a long row."""
    parts = re.split(r"[/.@:,=\s]", word)
    return any(
        (
            len(part) >= 12
            and len(re.findall(r"\d", part)) >= 2
            and re.search(r"[A-Za-z]", part)
            and not _is_versioned(part)
        )
        or (len(part) >= 20 and re.fullmatch(r"[A-Za-z0-9+=_]+", part) and part != part.lower())
        for part in parts
    )


def _is_versioned(part: str) -> bool:
    """`claude-sonnet-4-5`, `python3-11`: words, and short numbers between them."""
    return all(re.fullmatch(r"[A-Za-z]+\d{0,2}|v?\d{1,4}|20\d{6}", piece) for piece in re.split(r"[-_]", part))


def _address(value: str, redactor: Redactor) -> str:
    found = _ADDRESS.fullmatch(value)
    if found is None:
        return PLACEHOLDER if _looks_random(value) or "@" in value or "?" in value else redactor.redact(value)
    scheme, user, rest, query, fragment = found.groups(default="")
    rest = "/".join(
        PLACEHOLDER if place and _looks_random(part) else part for place, part in enumerate(rest.split("/"))
    )
    fields = [
        field
        if field == "" or PLACEHOLDER in field or field.partition("=")[0] in ("api-version", "version")
        else _field(field)
        for field in query.removeprefix("?").split("&")
    ]
    user = f"{PLACEHOLDER}@" if user else ""
    return f"{scheme}{user}{rest}{'?' if query else ''}{'&'.join(fields)}{'#' + PLACEHOLDER if fragment else ''}"


def _field(field: str) -> str:
    name, given, _ = field.partition("=")
    return f"{name}={PLACEHOLDER}" if given and not _looks_random(name) else PLACEHOLDER


def _quoted(value: str) -> str:
    """In a form that both languages read."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _fields(changes: Sequence[_Change]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(change.path for change in changes))


def _secrets_of(changes: Sequence[_Change]) -> tuple[str, ...]:
    """The whole values that are taken out, the longest first."""
    values = {change.before for change in changes if isinstance(change.before, str) and change.after == PLACEHOLDER}
    return tuple(sorted((value for value in values if len(value) >= TELLING_CHARS), key=len, reverse=True))


def _comment(text: str, secrets: Sequence[str], redactor: Redactor, *, assigned: bool = True) -> str:
    """What nobody parses: a setting that was commented out, a remark, a prompt."""
    for secret in secrets:
        text = text.replace(secret, PLACEHOLDER)
    if assigned:
        keep: Callable[[re.Match[str]], str] = lambda found: (  # noqa: E731
            f"{found[1]}{found[2]}{PLACEHOLDER}" if is_telling(found[1]) and PLACEHOLDER not in found[3] else found[0]
        )
        text = _ASSIGNED.sub(keep, text)
    return redactor.redact(text)


def _checked(
    struck: Struck, before: Any, after: Any, spec: Spec, secrets: Sequence[str], redactor: Redactor
) -> Struck | None:
    """What was made, read again: nothing is left to take out, and all else is as it was."""
    left = any(secret in struck.text for secret in secrets)
    if left or list(_changes(after, spec, redactor)) or not _agrees(before, after, spec, redactor, ""):
        return None
    return struck


def _agrees(before: Any, after: Any, spec: Spec, redactor: Redactor, last: str) -> bool:
    match before, after:
        case dict(), dict():
            return list(before) == list(after) and all(
                _agrees(inner, after[name], _inner(spec, str(name)), redactor, "") for name, inner in before.items()
            )
        case list(), list():
            firsts = ["", *(item if isinstance(item, str) else "" for item in before)]
            return len(before) == len(after) and all(
                _agrees(inner, other, _item(spec), redactor, first)
                for inner, other, first in zip(before, after, firsts, strict=False)
            )
        case _:
            change = next(_changes(before, spec, redactor, "", last), None)
            expected = change.after if change else before
            return bool(after == expected)

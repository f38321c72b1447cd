"""Counts of what a folder's settings for an agent program would switch on: MCP servers, hooks, plugins, other files. Pure.

Called for the line that says in one sentence what is off in a folder. A rough look for the eye, by the keys and folders that
the programs share: what cannot be read counts as a file. Nothing is decided by it; a review shows the files themselves.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Literal

import msgspec

from palaver.backends.project_settings import SettingsFile
from palaver.core.json_bounds import decode_json

Kind = Literal["MCP server", "hook", "plugin", "other file"]
ORDER: tuple[Kind, ...] = ("MCP server", "hook", "plugin", "other file")

PARSED_BYTES = 64 * 1024
"""Of one file: settings that people write are a few KB."""
_KEYS: Mapping[str, Kind] = {
    **dict.fromkeys(("mcpServers", "mcp_servers", "mcp"), "MCP server"),
    **dict.fromkeys(("hooks", "notify"), "hook"),
    **dict.fromkeys(("plugin", "plugins", "enabledPlugins", "extensions", "packages"), "plugin"),
}
_FOLDERS: Mapping[str, Kind] = {
    "hooks": "hook",
    **dict.fromkeys(("plugin", "plugins", "extensions"), "plugin"),
}


def summary_of(files: Iterable[SettingsFile]) -> str:
    """In words: “2 MCP servers, 1 hook”. Empty where there is no file."""
    counts: Counter[Kind] = Counter()
    for kind, names in _items(files).items():
        counts[kind] = len(names)
    return ", ".join(f"{counts[kind]:,} {kind}{'' if counts[kind] == 1 else 's'}" for kind in ORDER if counts[kind])


def _items(files: Iterable[SettingsFile]) -> dict[Kind, set[str]]:
    found: dict[Kind, set[str]] = {kind: set() for kind in ORDER}
    for file in files:
        named = list(_in_folder(file.path)) or list(_in_settings(file))
        for kind, name in named or [("other file", file.path)]:
            found[kind].add(name)
    return found


def _in_folder(path: str) -> Iterable[tuple[Kind, str]]:
    """A file in a folder of hooks or plugins belongs to what lies right in that folder."""
    parts = PurePosixPath(path).parts
    for at, part in enumerate(parts[:-1]):
        if part in _FOLDERS:
            yield _FOLDERS[part], "/".join(parts[: at + 2])
            return


def _in_settings(file: SettingsFile) -> Iterable[tuple[Kind, str]]:
    for key, value in _parsed(file).items():
        kind = _KEYS.get(key)
        if kind == "hook":
            yield from (("hook", f"{file.path} {key} {at}") for at in range(_count_hooks(value)))
        elif kind is not None:
            for at, name in enumerate(value if isinstance(value, list | dict) else ()):
                yield kind, f"{file.path} {name if isinstance(value, dict) else at}"


def _parsed(file: SettingsFile) -> Mapping[str, Any]:
    if file.text is None or len(file.text) > PARSED_BYTES:
        return {}
    try:
        told = tomllib.loads(file.text) if file.path.endswith(".toml") else decode_json(file.text.encode())
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return {}
    return told if isinstance(told, dict) else {}


def _count_hooks(value: Any) -> int:
    """Commands in the groups of each event, or the entries themselves where a program has no groups."""
    if isinstance(value, str):
        return 1
    if isinstance(value, dict):
        return sum(_count_hooks(inner) for inner in value.values() if isinstance(inner, list))
    if not isinstance(value, list):
        return 0
    if value and all(isinstance(word, str) for word in value):
        return 1  # One command in words.
    groups = [one.get("hooks") if isinstance(one, dict) else None for one in value]
    return sum(len(inner) if isinstance(inner, list) else 1 for inner in groups)

"""Secrets in the files that a person wrote: keys, headers and environment variables of `palaver.toml` and of agents' records.

Used by `palaver backup`, whose copies travel. Pure: text in, text out. A value is found by where it stands, and taken out of
the text itself, so that comments and order stay. What cannot surely be taken out is refused.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from palaver.agents.front_matter import FrontMatterError, load_front_matter

PLACEHOLDER = "left-out-of-the-backup"
TABLES = frozenset({"headers", "environment"})
"""Every value in them is taken for a secret."""
KEYS = frozenset({"api_key"})
TELLING_CHARS = 8
"""A value this long must not stand anywhere else in the file either; shorter ones are words like any other."""

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)


def without_secrets(file_name: str, text: str) -> tuple[str, int] | None:
    """The text with a placeholder for each secret, and how many there were. None: they cannot all be found in it."""
    try:
        secrets = list(_secrets(_parsed(file_name, text)))
        for key, value in secrets:
            text = _replaced(text, key, value)
        left = [value for _, value in _secrets(_parsed(file_name, text)) if value != PLACEHOLDER]
    except (FrontMatterError, tomllib.TOMLDecodeError, RecursionError):
        return None
    telling = [value for _, value in secrets if len(value) >= TELLING_CHARS and value in text]
    return None if left or telling else (text, len(secrets))


def _parsed(file_name: str, text: str) -> Any:
    if file_name.endswith(".toml"):
        return tomllib.loads(text)
    found = _FRONT_MATTER.match(text)
    return load_front_matter(found[1]) if found else None


def _secrets(document: Any) -> Iterator[tuple[str, str]]:
    """Names and values."""
    if isinstance(document, list):
        for item in document:
            yield from _secrets(item)
    elif isinstance(document, dict):
        for key, value in document.items():
            if key in TABLES and isinstance(value, dict):
                yield from ((str(name), str(inner)) for name, inner in value.items() if inner not in (None, ""))
            elif key in KEYS and isinstance(value, str) and value:
                yield str(key), value
            else:
                yield from _secrets(value)


def _replaced(text: str, key: str, value: str) -> str:
    pattern = rf"({re.escape(key)}[\"']?[ \t]*[:=][ \t]*)(\"|'|)({re.escape(value)})(\2)(?=[\s,}}#]|$)"
    return re.sub(pattern, lambda found: f'{found[1]}"{PLACEHOLDER}"', text)

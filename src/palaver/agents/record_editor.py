"""An agent's file with something changed, and everything else as it was: comments, order, quotes, keys of others.

Pure: text in, text out. Called by the book before it writes. It knows where a value stands, not what values mean; the book
reads the result again before it counts. Texts hold no control characters: `changes.py` sees to that.
"""

import re
from collections.abc import Mapping
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString
from ruamel.yaml.util import load_yaml_guess_indent

from palaver.agents.front_matter import FrontMatterError, check_front_matter, load_front_matter
from palaver.agents.records import FENCE, MERGED, OTHER_NAMES, Wrong, split

_PLAIN = re.compile(r"[A-Za-z][\w ./,()+-]*(?<! )")
_LITERAL = re.compile(r"[^\s](?:[^\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]*[^\s])?\n?")


def edit_text(text: str, changes: Mapping[str, Any], prompt: str | None = None) -> str:
    """`changes` by field as the front matter holds them; null takes a field out. Raises Wrong when it cannot be read."""
    parts = split(text)
    front = parts.front or ""
    if changes:
        front = _edit_front(front, changes)
    body = parts.prompt if prompt is None else (f"{prompt.strip()}\n" if prompt.strip() else "")
    if parts.front is None and not front.strip():
        return body
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    end = "\r\n" if "\r\n" in text else "\n"
    front, body = (part.replace("\r\n", "\n").replace("\n", end) for part in (front, body))
    return f"{bom}{FENCE}{end}{front}{FENCE}{end}{body}"


def _edit_front(front: str, changes: Mapping[str, Any]) -> str:
    front = front.replace("\r\n", "\n")
    for field, value in changes.items():
        front = _with(front, field, value)
    return front


def _with(front: str, field: str, value: Any) -> str:
    """Only the lines of this one field change: a writer of whole documents would touch the look of the others."""
    data = _load(front)
    key = next((key for key in data if OTHER_NAMES.get(str(key), str(key)) == field), None)
    if key is None:
        start = end = len(lines := _lines(front))
        part = CommentedMap()
    elif data.fa.flow_style():
        # All in one pair of braces.
        return _dump(_set(data, key, value, merged=field in MERGED), front)
    else:
        lines = _lines(front)
        start, end = _place(data, key, lines)
        part = _load("".join(lines[start:end]))
    _set(part, key or field, value, merged=field in MERGED)
    return "".join((*lines[:start], _dump(part, "".join(lines[start:end])), *lines[end:]))


def _lines(front: str) -> list[str]:
    lines = front.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines


def _place(data: CommentedMap, key: Any, lines: list[str]) -> tuple[int, int]:
    """The lines of a field, without the comments above the next one."""
    start: int = data.lc.key(key)[0]
    end: int = min((line for other in data if (line := data.lc.key(other)[0]) > start), default=len(lines))
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return start, end


def _load(text: str) -> CommentedMap:
    try:
        check_front_matter(text)
        data = _yaml().load(text)
    except FrontMatterError as problem:
        raise Wrong(None, f"the front matter {problem}") from problem
    except (YAMLError, ValueError, ArithmeticError) as problem:
        raise Wrong(None, f"the front matter is no YAML: {problem}") from problem
    if data is not None and not isinstance(data, CommentedMap):
        raise Wrong(None, "the front matter must hold fields, one a line, such as `name: Reviewer`")
    return CommentedMap() if data is None else data


def _yaml() -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 20  # Lines are broken where a person broke them.
    return yaml


def _dump(data: CommentedMap, like: str) -> str:
    if not data:
        return ""
    yaml = _yaml()
    _, indent, offset = load_yaml_guess_indent(like, yaml=_yaml()) if like.strip() else (None, None, None)
    if indent is not None and offset is not None:
        yaml.indent(mapping=2 if offset else indent, sequence=indent, offset=offset)
    out = StringIO()
    yaml.dump(data, out)
    return out.getvalue()


def _set(data: CommentedMap, key: Any, value: Any, *, merged: bool) -> CommentedMap:
    known = data.get(key)
    if value is None:
        data.pop(key, None)
    elif isinstance(value, Mapping) and isinstance(known, CommentedMap):
        gone = () if merged else [name for name in known if str(name) not in value]
        for name, part in (*value.items(), *((name, None) for name in gone)):
            _set(known, name if name in known else _text(str(name)), part, merged=False)
        if not known:
            data.pop(key)
    elif isinstance(value, list | tuple) and isinstance(known, CommentedSeq):
        _set_items(known, value)
    elif isinstance(value, list | tuple) and isinstance(known, str) and value and all(map(_is_word, value)):
        # A line of names stays one.
        data[key] = (", " if "," in known or len(value) > 1 else " ").join(value)
    elif _plain(known) != value:
        data[key] = _styled_value(value)
    return data


def _set_items(known: CommentedSeq, value: "list[Any] | tuple[Any, ...]") -> None:
    """Only what came or went, where the order is the same: comments hang on their lines."""
    kept = [item for item in known if _plain(item) in value]
    if [_plain(item) for item in kept] == list(value)[: len(kept)]:
        for place in reversed(range(len(known))):
            if _plain(known[place]) not in value:
                del known[place]
        known.extend(_styled_value(item) for item in list(value)[len(kept) :])
        return
    known[:] = [_styled_value(item) for item in value]


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[\w.:-]+", value) is not None


def _plain(value: Any) -> Any:
    """As it would come over the wire: what the parser remembers of its look is left out."""
    match value:
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case bool() | None:
            return value
        case str():
            return str(value)
        case int():
            return int(value)
        case float():
            return float(value)
        case _:
            return value


def _styled_value(value: Any) -> Any:
    """A value in the look a person would give it: short lists on one line, long texts as they read."""
    match value:
        case str():
            return _text(value)
        case Mapping():
            return CommentedMap(
                (_text(str(key)), _styled_value(item)) for key, item in value.items() if item is not None
            )
        case list() | tuple():
            items = CommentedSeq(_styled_value(item) for item in value)
            if all(isinstance(item, str) and "\n" not in item for item in value):
                items.fa.set_flow_style()
            return items
        case _:
            return value


def _text(value: str) -> Any:
    if "\n" in value and _LITERAL.fullmatch(value) and not re.search(r"[ \t]\n", value):
        return LiteralScalarString(value)
    if _PLAIN.fullmatch(value) and load_front_matter(value) == value:
        return value
    return DoubleQuotedScalarString(value)

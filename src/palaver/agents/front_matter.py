"""Bounded reader for YAML front matter: the only place that hands a record's YAML to a parser.

Called by `records.py` for every record and by `record_editor.py` before ruamel sees one. A record may come from a repository, so
the text is scanned event by event first, which builds nothing and recurses nowhere, and is refused when it is too long, too
deep, too rich in values, or uses what lets a short text stand for a long one (anchors and aliases) or choose its own
constructor (tags). Only then is it loaded. The bounds keep one record to a few milliseconds of the event loop.
"""

import re
from typing import Any

FRONT_MATTER_BYTES = 64 << 10
"""Settings, not prose: the prompt stands below the front matter and has its own bound."""
DEPTH_LIMIT = 32
"""A record needs five levels. libyaml's composer recurses, and crashes the process at some ten thousand."""
VALUE_LIMIT = 2_000
"""A record with three hundred rules. Loading as many takes about ten milliseconds."""
NUMBER_CHARS = 100
"""YAML has numbers in base 60, whose value takes quadratic time to work out."""

_NUMBER = re.compile(r"[-+.0-9][-+.:_0-9A-Fa-fxXoO]*")
_PLAIN_TAGS = frozenset({None, "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"})


class FrontMatterError(ValueError):
    """Why a front matter is refused, in words that follow “the front matter”."""


def load_front_matter(text: str) -> Any:
    """The value of one YAML document within the bounds; None when it is empty. Raises FrontMatterError."""
    # Here: a server starts without having read a record.
    import yaml  # type: ignore[import-untyped]

    check_front_matter(text)
    try:
        return yaml.load(text, Loader=_loader())  # noqa: S506 - a safe loader, of a text that was checked
    except (yaml.YAMLError, ValueError, ArithmeticError) as problem:
        raise FrontMatterError(f"is no YAML: {problem}") from problem


def check_front_matter(text: str) -> None:
    """Raises FrontMatterError for a text outside the bounds, or one that is no YAML."""
    import yaml

    if len(text.encode(errors="replace")) > FRONT_MATTER_BYTES:
        raise FrontMatterError(f"holds more than {FRONT_MATTER_BYTES >> 10} KiB")
    if text.startswith("%") or "\n%" in text:
        raise FrontMatterError("holds a YAML directive (a line that begins with %); leave it out")
    depth = values = 0
    try:
        for event in yaml.parse(text, Loader=_loader()):
            if isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.NodeEvent):
                values += 1
                depth += isinstance(event, yaml.CollectionStartEvent)
                _check_value(event, depth, values)
    except yaml.YAMLError as problem:
        raise FrontMatterError(f"is no YAML: {problem}") from problem


def _check_value(event: Any, depth: int, values: int) -> None:
    if depth > DEPTH_LIMIT:
        raise FrontMatterError(f"is nested more than {DEPTH_LIMIT} levels deep")
    if values > VALUE_LIMIT:
        raise FrontMatterError(f"holds more than {VALUE_LIMIT:,} values")
    if getattr(event, "anchor", None) is not None:
        raise FrontMatterError("uses an anchor or an alias (& or *): write the value out, or quote the text")
    if (tag := getattr(event, "tag", None)) not in _PLAIN_TAGS:
        raise FrontMatterError(f"uses the tag {str(tag)[:80]}: leave it out, or quote the text")
    text = getattr(event, "value", "")
    if not getattr(event, "style", None) and len(text) > NUMBER_CHARS and _NUMBER.fullmatch(text):
        raise FrontMatterError(f"holds a number of more than {NUMBER_CHARS} digits; quote it if it is a text")


def _loader() -> Any:
    """The loader in C where PyYAML was built with it; both refuse to construct anything but plain values."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)

"""Matcher for `.gitignore` patterns whose running time no pattern can blow up.

Used by `tree.py` in the server and by the searching program `search.py`. The patterns are a repository's, so they are never
handed to a backtracking matcher: a name is matched star by star, each taking the first place where the text up to the next
star fits, which is never taken back (an atomic group); folders are matched in the same way, `**` by `**`. One file of
patterns is bounded in bytes and rules, and all matching for one listing draws on a `Budget`.

It imports nothing of Palaver: every search waits for what it imports.
"""

import re
from dataclasses import dataclass
from typing import Literal

IGNORE_BYTES = 64 << 10
"""Of one file of patterns; a larger one is no such file."""
RULE_LIMIT = 2_000
"""Rules of one file; the longest that are in use hold some five hundred. What follows does not count."""
NAME_CHARS = 1_000
"""Of a pattern for one name, which itself has at most 255 bytes. A longer pattern matches nothing."""
FOLDERS = 100
"""Folders in one pattern, more than a path here may have. A longer pattern matches nothing."""
MATCH_STEPS = 2_000_000_000.0
"""For one listing: about two seconds, for a step is about a nanosecond. An ordinary listing takes a hundredth of it."""
RULE_STEPS = 300
"""To try one rule on one name at all, beside a step for each character of the one and of the other."""
COMPILE_STEPS = 350
"""To compile a character of a pattern."""

_SPECIAL = frozenset("*?[\\")
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t-\\r",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


class Budget:
    """Steps that matching may still take. Once they are spent no rule counts: a listing shows too much, and ends."""

    def __init__(self, steps: float = MATCH_STEPS) -> None:
        self._steps = steps

    def spend(self, steps: int) -> bool:
        self._steps -= steps
        return self._steps >= 0


@dataclass(frozen=True, slots=True)
class _NamePattern:
    """What one name of a path is matched with: a plain text, or an expression."""

    text: str
    expression: re.Pattern[str] | None = None

    def matches(self, name: str) -> bool:
        return name == self.text if self.expression is None else self.expression.fullmatch(name) is not None

    def steps(self, name: str) -> int:
        return RULE_STEPS if self.expression is None else RULE_STEPS + len(name) * len(self.text)


@dataclass(frozen=True, slots=True)
class _Rule:
    ignores: bool
    folders_only: bool
    anywhere: bool
    """It names no folder, so it is about a name wherever it stands."""
    parts: tuple[_NamePattern | Literal["**"], ...]


class IgnoreRules:
    """The rules of one `.gitignore` file. Paths are relative to its folder; the last rule that matches decides."""

    def __init__(self, text: str, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()
        self._rules: list[_Rule] = []
        if len(text) > IGNORE_BYTES or not self._budget.spend(COMPILE_STEPS * len(text)):
            return
        for line in text.removeprefix("\ufeff").split("\n")[:RULE_LIMIT]:
            if (rule := _parse_rule(line.removesuffix("\r"))) is not None:
                self._rules.append(rule)

    def verdict(self, path: str) -> bool | None:
        """Whether it is ignored; None: no rule is about it. A folder's path ends in a slash. Folders above it, which
        may be ignored and it with them, are to be asked about first."""
        is_folder = path.endswith("/")
        names = path.rstrip("/").split("/")
        for rule in reversed(self._rules):
            if (is_folder or not rule.folders_only) and self._matches(rule, names):
                return rule.ignores
        return None

    def _matches(self, rule: _Rule, names: list[str]) -> bool:
        parts = rule.parts
        if rule.anywhere:
            return self._matches_name(names[-1], parts[0])
        # As with the stars of a name: only the latest `**` is ever made to stand for more.
        at = part = 0
        resume: tuple[int, int] | None = None
        while at < len(names):
            if part < len(parts) and parts[part] == "**":
                if part == len(parts) - 1:
                    return True  # Everything inside.
                resume, part = (at, part + 1), part + 1
            elif part < len(parts) and self._matches_name(names[at], parts[part]):
                at, part = at + 1, part + 1
            elif resume is not None:
                resume = (resume[0] + 1, resume[1])
                at, part = resume
            else:
                return False
        return part == len(parts)

    def _matches_name(self, name: str, pattern: _NamePattern | Literal["**"]) -> bool:
        return pattern == "**" or (self._budget.spend(pattern.steps(name)) and pattern.matches(name))


def _parse_rule(line: str) -> _Rule | None:
    line = _without_trailing_spaces(line)
    if not line or line.startswith("#"):
        return None
    ignores = not line.startswith("!")
    line = line if ignores else line[1:]
    folders_only = line.endswith("/") and len(line) > 1
    line = line.removesuffix("/")
    anywhere = "/" not in line
    names = _without_repeats(line.removeprefix("/").split("/"))
    if not all(names) or len(names) > FOLDERS or any(len(name) > NAME_CHARS for name in names):
        return None
    parts: list[_NamePattern | Literal["**"]] = []
    for name in names:
        part: _NamePattern | Literal["**"] | None = "**" if name == "**" else _name_pattern(name)
        if part is None:
            return None
        parts.append(part)
    return _Rule(ignores, folders_only, anywhere, tuple(parts))


def _without_trailing_spaces(line: str) -> str:
    stripped = line.rstrip(" ")
    escapes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if escapes % 2 and len(stripped) < len(line) else stripped


def _without_repeats(parts: list[str]) -> list[str]:
    """`**` behind `**` says nothing more."""
    return [part for at, part in enumerate(parts) if part != "**" or at == 0 or parts[at - 1] != "**"]


def _name_pattern(pattern: str) -> _NamePattern | None:
    """A pattern for one name, as an expression that never goes back; None for one that can match nothing."""
    if not _SPECIAL & set(pattern):
        return _NamePattern(pattern)
    chunks: list[str] = [""]
    at = 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "*":
            at += 1
            if at == len(pattern) or pattern[at] != "*":
                chunks.append("")
            continue
        if sign == "[":
            found = _bracket(pattern, at)
            if found is None:
                return None
            text, at = found
        elif sign == "\\":
            if at + 1 == len(pattern):
                return None
            text, at = re.escape(pattern[at + 1]), at + 2
        else:
            text, at = "." if sign == "?" else re.escape(sign), at + 1
        chunks[-1] += text
    first, *rest = chunks
    # The last chunk stands at the very end, so its star is not stopped by an earlier place where it fits.
    end = f".*{rest.pop()}" if rest else ""
    stars = "".join(f"(?>.*?{chunk})" for chunk in rest)
    return _NamePattern(pattern, re.compile(f"{first}{stars}{end}", re.DOTALL))


def _bracket(pattern: str, start: int) -> tuple[str, int] | None:
    """`[…]` as a class of an expression and where it ends; None when it has no end or holds what git does not know."""
    at = start + 1
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    items: list[str] = []
    first = True
    while at < len(pattern) and (pattern[at] != "]" or first):
        first = False
        end = pattern.find("]", at + 2) if pattern.startswith("[:", at) else -1
        if end > at + 2 and pattern[end - 1] == ":":
            if (known := _CLASSES.get(pattern[at + 2 : end - 1])) is None:
                return None
            items.append(known)
            at = end + 1
            continue
        low, at = _bracket_sign(pattern, at)
        if pattern.startswith("-", at) and at + 1 < len(pattern) and pattern[at + 1] != "]":
            high, at = _bracket_sign(pattern, at + 1)
            if low <= high:
                items.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            items.append(re.escape(low))
    if at >= len(pattern):
        return None
    inside = "".join(items)
    if not inside:
        return ("." if negated else "(?!)"), at + 1
    return f"[{'^' if negated else ''}{inside}]", at + 1


def _bracket_sign(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] == "\\" and at + 1 < len(pattern):
        return pattern[at + 1], at + 2
    return pattern[at], at + 1

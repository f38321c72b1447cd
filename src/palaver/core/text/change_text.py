"""A change as a unified diff shows it, and whether an argument of its call is to be read in it. Pure.

Called by `approval_text`, which hides such arguments and no others. The page's `web/src/model/changetext.ts` says the same, and
`tests/golden/texts/approvals.json` holds both to it.

What must never happen: an argument counts as shown of which a letter is not in the change. So the name of an argument only says
where to look for it: a path among the names of the files, a text in one piece on its side of a hunk, a patch line by line.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from palaver.core.text.visible import visible

LineKind = Literal["same", "add", "cut", "head"]
Line = tuple[LineKind, str]

_CHANGE = re.compile(r"(--- .*\n\+\+\+ |diff --git |rename from )|@@ |\*\*\* Begin Patch")
"""How a change begins; in the group, one that names its files."""
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NAME = re.compile(
    r"(?:--- (?:a/)?|\+\+\+ (?:b/)?|rename (?:from|to) |\*\*\* (?:(?:Add|Update|Delete) File|Move to): )(.+)"
)
_FRAME = re.compile(r"@@(?: -\d+(?:,\d+)? \+\d+(?:,\d+)? @@)?|\*\*\* (?:Begin Patch|End Patch|End of File)|")
"""Lines of a patch that say nothing of their own."""
_KINDS: dict[str, LineKind] = {"+": "add", "-": "cut", " ": "same"}

PATCHES = frozenset({"patch", "diff", "input"})
_PATHS = frozenset({"path", "file_path"})
_BEFORE = frozenset({"old", "old_string", "old_str"})
_AFTER = frozenset({"new", "new_string", "new_str"})
_WHOLE = frozenset({"content", "file_text"})


def is_like_change(text: str) -> bool:
    return _CHANGE.match(text) is not None


def names_files(text: str) -> bool:
    begins = _CHANGE.match(text)
    return begins is not None and begins[1] is not None


def change_lines(text: str) -> Iterator[Line]:
    """Every line of a unified diff; inside a hunk each is content, whatever it looks like."""
    before = after = 0
    for line in text.removesuffix("\n").split("\n"):
        if (before > 0 or after > 0) and line[:1] in ("+", "-", " ", ""):
            before -= line[:1] != "+"
            after -= line[:1] != "-"
            yield _KINDS.get(line[:1], "same"), line[1:]
        elif found := _HUNK.match(line):
            before, after = int(found[1] or 1), int(found[2] or 1)
            yield "head", line
        elif line.startswith(("--- ", "+++ ")) or line[:1] not in _KINDS:
            yield "head", line
        else:
            yield _KINDS[line[:1]], line[1:]


def shows(change: Sequence[Line], name: str, value: Any) -> bool:
    """Whether an argument of this name is in the change to its last letter."""
    match value:
        case str() if not value.removesuffix("\n"):
            # Nothing is in everything.
            return False
        case str() if name in _PATHS:
            return ("name", visible(value)) in _steps(change)
        case str() if name in _BEFORE:
            return any(visible(value).removesuffix("\n") in side for side in _sides(change, "cut"))
        case str() if name in _AFTER:
            return any(visible(value).removesuffix("\n") in side for side in _sides(change, "add"))
        case str() if name in _WHOLE:
            return _sides(change, "add") == [visible(value).removesuffix("\n")]
        case str() if name in PATCHES:
            return _is_in_order(list(_steps(change_lines(visible(value)))), _steps(change))
        case list() if name == "edits" and value:
            return all(_shows_edit(change, edit) for edit in value)
        case _:
            return False


def _shows_edit(change: Sequence[Line], edit: Any) -> bool:
    return (
        isinstance(edit, Mapping)
        and len(edit) > 0
        and all(name in _BEFORE | _AFTER and shows(change, name, value) for name, value in edit.items())
    )


def _sides(change: Iterable[Line], side: Literal["cut", "add"]) -> list[str]:
    """What stood there before (`cut`) or stands there after (`add`), hunk by hunk."""
    hunks: list[list[str]] = []
    is_open = False
    for kind, text in change:
        if kind == "head":
            # “\ No newline at end of file” stands within a hunk.
            is_open = is_open and text.startswith("\\ ")
            continue
        if not is_open:
            hunks.append([])
            is_open = True
        if kind in ("same", side):
            hunks[-1].append(text)
    return ["\n".join(lines) for lines in hunks]


def _steps(change: Iterable[Line]) -> Iterator[tuple[str, str]]:
    """What a change says, without its frame: names of files, and lines that stay, come or go."""
    for kind, text in change:
        if kind != "head":
            yield kind, text
        elif named := _NAME.fullmatch(text):
            yield "name", named[1]
        elif not _FRAME.fullmatch(text):
            yield kind, text


def _is_in_order(wanted: Sequence[tuple[str, str]], steps: Iterator[tuple[str, str]]) -> bool:
    return len(wanted) > 0 and all(any(step == one for step in steps) for one in wanted)

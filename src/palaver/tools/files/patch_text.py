"""A patch's text, read: the "*** Begin Patch" form that models know, and unified diffs as git writes them.

Used by `patch.py`. Pure: text in, files with hunks out. It is lenient about what does not change the meaning (a code fence
around it, counts in `@@` lines that do not add up, blank lines without their space) and strict about the rest: a patch
that ends in the middle, or says something unknown, is refused as a whole.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from palaver.errors import Invalid
from palaver.tools.files.hunks import Hunk, Op

BEGIN, END = "*** Begin Patch", "*** End Patch"
_UPDATE, _ADD, _DELETE, _MOVE = "*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "
_END_OF_FILE = "*** End of File"
_SECTION = re.compile(r"\*\*\* (?:Update|Add|Delete) File: ")

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_NO_NEWLINE = "\\ No newline"
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
# What git says of a file before its hunks, and what changes nothing that we change.
_GIT_NOTES = ("index ", "similarity index ", "dissimilarity index ", "old mode ", "new mode ", "Index: ", "====")


@dataclass(frozen=True, slots=True)
class FilePatch:
    kind: Literal["update", "add", "delete"]
    path: str
    hunks: tuple[Hunk, ...] = ()
    move_to: str | None = None


def files_of(patch: str) -> list[FilePatch]:
    """What a patch says of which files, in its order. Raises Invalid for what is no patch."""
    lines = _unwrap(patch)
    found = _begin_patch(lines) if lines and lines[0].strip() == BEGIN else _parse_unified(lines)
    if not found:
        raise Invalid(
            f"The patch changes no file. It begins with {BEGIN!r}, or is a unified diff (--- a/…, +++ b/…, @@)."
        )
    return found


def _unwrap(patch: str) -> list[str]:
    lines = patch.replace("\r\n", "\n").strip("\n").split("\n")
    if lines[0].startswith("```") and lines[-1].strip() == "```":
        lines = lines[1:-1]
    return lines


# -- *** Begin Patch


def _begin_patch(lines: list[str]) -> list[FilePatch]:
    if lines[-1].strip() != END:
        raise Invalid(f"The patch does not end with {END!r}; it may have been cut. Nothing was changed.")
    body = lines[1:-1]
    starts = [place for place, line in enumerate(body) if _SECTION.match(line)]
    before = body[: starts[0]] if starts else body
    wrong = next((line for line in before if line.strip()), None)
    if wrong is not None:
        raise Invalid(f"Behind {BEGIN!r} comes '{_UPDATE}PATH', '{_ADD}PATH' or '{_DELETE}PATH', not {wrong!r}.")
    return [_section(body[start:end]) for start, end in zip(starts, [*starts[1:], None], strict=False)]


def _section(lines: list[str]) -> FilePatch:
    head, body = lines[0], lines[1:]
    path = head.partition(": ")[2].strip()
    if head.startswith(_ADD):
        while body and not body[-1].strip():
            body.pop()
        wrong = next((line for line in body if not line.startswith("+")), None)
        if wrong is not None:
            raise Invalid(f"In '{head}' every line must begin with +, and {wrong!r} does not.")
        added = Hunk(tuple(("+", line[1:]) for line in body), "The content")
        return FilePatch("add", path, (added,))
    if head.startswith(_DELETE):
        if any(line.strip() for line in body):
            raise Invalid(f"Behind '{head}' comes the next file, not {body[0]!r}.")
        return FilePatch("delete", path)
    move_to = None
    if body and body[0].startswith(_MOVE):
        move_to = body[0].removeprefix(_MOVE).strip()
        body = body[1:]
    return FilePatch("update", path, tuple(_sections_hunks(body)), move_to)


def _sections_hunks(body: list[str]) -> list[Hunk]:
    hunks: list[Hunk] = []
    anchors: list[str] = []
    lines: list[tuple[Op, str]] = []
    at_end = False

    def close() -> None:
        nonlocal at_end
        if lines:
            name = f"Hunk {len(hunks) + 1}" + (f" (@@ {anchors[-1].strip()})" if anchors else "")
            hunks.append(Hunk(_trim(lines), name, tuple(anchors), at_end=at_end))
            anchors.clear()
            lines.clear()
        at_end = False

    for line in body:
        if line.startswith("@@"):
            close()
            # Line numbers mean nothing in this form.
            anchor = (
                _HUNK.sub("", line).strip() if _HUNK.match(line) else line[2:].removeprefix(" ").removesuffix(" @@")
            )
            if anchor.strip():
                anchors.append(anchor)
        elif line.strip() == _END_OF_FILE:
            at_end = True
            close()
        else:
            lines.append(_line(line))
    close()
    return hunks


def _trim(lines: Sequence[tuple[Op, str]]) -> tuple[tuple[Op, str], ...]:
    """Without blank lines behind the last change that only separate it from what follows."""
    end = len(lines)
    while end > 1 and lines[end - 1] == (" ", ""):
        end -= 1
    return tuple(lines[:end])


def _line(line: str) -> tuple[Op, str]:
    match line[:1]:
        case " " | "-" | "+" as op:
            return op, line[1:]
        case "":
            return " ", ""
        case _:
            raise Invalid(f"A line of a hunk begins with a space, + or -, and {line!r} does not.")


# -- unified diffs


def _parse_unified(lines: list[str]) -> list[FilePatch]:
    return _Unified(lines).files()


class _Unified:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def files(self) -> list[FilePatch]:
        found: list[FilePatch] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("diff --git ") or self._at_names():
                found.append(self._file())
            elif line.startswith("@@"):
                raise Invalid(f"{line!r} does not follow the names of a file (--- a/PATH and +++ b/PATH).")
            else:
                # A commit's message, or the empty line between two files.
                self._at += 1
        return found

    def _at_names(self) -> bool:
        here = self._lines[self._at : self._at + 2]
        return len(here) == 2 and here[0].startswith("--- ") and here[1].startswith("+++ ")

    def _file(self) -> FilePatch:
        said = _GitHead()
        if self._lines[self._at].startswith("diff --git "):
            said.names(self._lines[self._at].removeprefix("diff --git "))
            self._at += 1
            while self._at < len(self._lines) and not self._at_names() and said.note(self._lines[self._at]):
                self._at += 1
        if self._at < len(self._lines) and self._at_names():
            said.old = _name(self._lines[self._at][4:], "a/")
            said.new = _name(self._lines[self._at + 1][4:], "b/")
            self._at += 2
        hunks: list[Hunk] = []
        while self._at < len(self._lines) and self._lines[self._at].startswith("@@"):
            hunks.append(self._hunk(len(hunks) + 1))
        return said.patch(tuple(hunks))

    def _hunk(self, number: int) -> Hunk:
        head = self._lines[self._at]
        numbers = _HUNK.match(head)
        self._at += 1
        end = self._end_of_hunk(numbers) if numbers else None
        body = self._lines[self._at : end if end is not None else self._until_something_else()]
        self._at += len(body)
        while end is None and body and not body[-1]:
            body.pop()
        lines = tuple(_line(line) for line in body if not line.startswith("\\"))
        name = f"Hunk {number} ({head[:80]})"
        at_line = int(numbers[1]) if numbers else None
        anchors = () if numbers or not head.strip("@ ") else (head.strip("@").strip(),)
        return Hunk(lines, name, anchors, at_line, newline_at_end=_newline_at_end(body))

    def _end_of_hunk(self, numbers: "re.Match[str]") -> int | None:
        """Where a hunk ends by its own counts; nothing if they do not add up."""
        old, new = (int(count) if count is not None else 1 for count in (numbers[2], numbers[3]))
        place = self._at
        while (old > 0 or new > 0) and place < len(self._lines):
            match self._lines[place][:1]:
                case " " | "":
                    old, new = old - 1, new - 1
                case "-":
                    old -= 1
                case "+":
                    new -= 1
                case "\\":
                    pass
                case _:
                    return None
            place += 1
        if old or new:
            return None
        if place < len(self._lines) and self._lines[place].startswith("\\"):
            place += 1
        following = self._lines[place] if place < len(self._lines) else ""
        ended = not following.strip() or following.startswith(("@@", "diff --git ", "--- ", "-- "))
        return place if ended else None

    def _until_something_else(self) -> int:
        start = self._at
        try:
            while self._at < len(self._lines):
                line = self._lines[self._at]
                if line.startswith(("@@", "diff --git ")) or self._at_names():
                    break
                self._at += 1
            return self._at
        finally:
            self._at = start


@dataclass(slots=True)
class _GitHead:
    """What is said of a file before its hunks."""

    old: str | None = None
    new: str | None = None
    added: bool = False
    deleted: bool = False
    moved_from: str | None = None
    moved_to: str | None = None

    def names(self, text: str) -> None:
        # Both names are the same unless "rename" lines say otherwise; then those count.
        half = len(text) // 2
        if text[:half].strip().removeprefix("a/") == text[half:].strip().removeprefix("b/"):
            self.old = self.new = text[:half].strip().removeprefix("a/")

    def note(self, line: str) -> bool:
        """Take a line in; False when it is none of git's."""
        if line.startswith(("new file mode ", "deleted file mode ", "new mode ")) and line.endswith(
            (" 120000", " 160000")
        ):
            raise Invalid(
                "The patch changes a symbolic link or a submodule; only plain files are patched. Use the shell."
            )
        if line.startswith("new file mode "):
            self.added = True
        elif line.startswith("deleted file mode "):
            self.deleted = True
        elif line.startswith(("rename from ", "copy from ")):
            if line.startswith("copy"):
                raise Invalid("The patch copies a file; write the copy as a new file instead.")
            self.moved_from = _name(line.removeprefix("rename from "), "")
        elif line.startswith("rename to "):
            self.moved_to = _name(line.removeprefix("rename to "), "")
        elif line.startswith(("GIT binary patch", "Binary files ")):
            raise Invalid("The patch changes a binary file; only text is patched. Use the shell.")
        else:
            return line.startswith(_GIT_NOTES)
        return True

    def patch(self, hunks: tuple[Hunk, ...]) -> FilePatch:
        old, new = self.moved_from or self.old, self.moved_to or self.new
        if new is None and old is None:
            raise Invalid("A file of the patch has no name (--- a/PATH and +++ b/PATH).")
        if old is None or self.added:
            return FilePatch("add", new or old or "", hunks)
        if new is None or self.deleted:
            return FilePatch("delete", old, hunks)
        return FilePatch("update", old, hunks, new if new != old else None)


def _newline_at_end(body: list[str]) -> bool | None:
    """Whether the file ends in a newline afterwards, if the hunk speaks of its last line at all."""
    marks = [place for place, line in enumerate(body) if line.startswith(_NO_NEWLINE)]
    if not marks:
        return None
    return not any(body[place - 1][:1] in ("+", " ") for place in marks if place)


def _name(text: str, prefix: str) -> str | None:
    """A name as a diff writes it: perhaps quoted, with a time behind a tab; /dev/null is none."""
    name = text.split("\t", 1)[0].rstrip()
    if name.startswith('"') and name.endswith('"') and len(name) > 1:
        name = _unquote(name[1:-1])
    return None if name == "/dev/null" else name.removeprefix(prefix)


def _unquote(text: str) -> str:
    plain = _ESCAPE.sub(
        lambda found: chr(int(found[1], 8)) if len(found[1]) == 3 else _ESCAPES.get(found[1], found[1]), text
    )
    # git writes each byte of what is not ASCII by itself.
    return plain.encode("latin-1", errors="replace").decode(errors="replace") if plain.isascii() is False else plain

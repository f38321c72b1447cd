"""Everything that an approval approves, as lines to be shown: the preview, and every argument that the preview leaves out. Pure.

Called by the terminal UI, the command line, and the faces that hand a request on as text. The page's
`web/src/model/approvaltext.ts` says the same, and `tests/golden/texts/approvals.json` holds both to it. Hidden characters are
signs, and padding (blank lines, spaces, anything repeated) is folded and counted, so that what follows it comes into view.

What must never happen: an argument or a line of the preview is in no line here. Whether a person has come to the end of the
lines is decided here too (`Reading`): no client allows before.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import eq
from typing import Any, Literal

from palaver.core.text.change_text import PATCHES, Line, change_lines, is_like_change, names_files, shows
from palaver.core.text.visible import visible
from palaver.schema.view import Plan

Kind = Literal["plain", "same", "add", "cut", "head", "label", "note", "fold"]
"""`same`, `add` and `cut` are lines of a change, `head` what stands between them; `label` names an argument; `note` is ours."""

BLANK_LINES = 3
SAME_LINES = 5
"""Shorter runs of lines save no room when they are folded."""

SPACES = re.compile(r"[ \t]{32,}")
"""Deeper than code is indented."""
REPEATS = 80
"""Longer than the rulers in comments."""
UNIT_CHARACTERS = 8
"""A sign for a hidden character has up to eight."""
_MATCHES = re.compile(b"\x01+")

_CUT = re.compile(r"\[… [\d,]+ more bytes …\]|\(too many to compare\)")
"""What `tools/proposal.py` puts in the place of what it leaves out."""
_MAIN = ("command", "cmd", "url")

_HOST = re.compile(r"\b[a-z][a-z0-9+.-]{0,31}+://(?:[^\s/?#@]*+@)?([^\s/?#@:\"'<>⟨⟩]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Shown:
    """One line to be shown. Of `pieces` every second one stands for what was folded and is no content."""

    kind: Kind
    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Reading:
    """How far a person has come: of so many rows on the screen, the last that was in sight."""

    rows: int | None
    """None: not laid out yet."""
    reached: int

    @property
    def left(self) -> int:
        return 0 if self.rows is None else max(0, self.rows - self.reached)

    @property
    def may_allow(self) -> bool:
        return self.rows is not None and self.left == 0


def approval_lines(preview: str | None, given: Any) -> list[Shown]:
    """All of it, in order: the preview, the arguments it does not show, the hosts whose names could be taken for others."""
    main = preview if preview is not None else _main(given)
    shown = "" if main is None else visible(main)
    change = tuple(change_lines(shown)) if _is_change(shown, given) else None
    lines = (
        [] if not shown else list(_plain(shown)) if change is None else [Shown(kind, (text,)) for kind, text in change]
    )
    for name, value in _left_out(given, shown, change or ()).items():
        lines += _argument(name, value)
    return [*_fold(lines), *_hosts(lines)]


def approval_text(preview: str | None, given: Any) -> str:
    """The same as one text: a change stays a change, and what it leaves out stands beneath it."""
    return "\n".join(f"{_SIGNS.get(line.kind, '')}{line.text}" for line in approval_lines(preview, given))


def is_cut(preview: str) -> bool:
    """Whether a preview leaves something out; then the arguments of its request must have it."""
    return _CUT.search(preview) is not None


def folded_lines(text: str) -> list[Shown]:
    """A text of its own, such as a plan."""
    return list(_fold(list(_plain(visible(text)))))


def folded_text(text: str) -> str:
    """The same in one piece, for a part of a form."""
    return "\n".join(line.text for line in folded_lines(text))


def plan_lines(plan: Plan) -> list[Shown]:
    """A plan that is to be approved, to its last letter: its summary, its steps, its text as it was written."""
    lines = list(_plain(visible(plan.summary)))
    for number, item in enumerate(plan.items, 1):
        first, *rest = _plain(visible(item.title))
        lines += [Shown("label", (f"{number}. {first.text}",)), *rest]
        lines += _plain(visible(item.description)) if item.description else ()
    if plan.text and plan.text != plan.summary:
        lines += [Shown("plain", ("",)), *_plain(visible(plan.text))]
    return [*_fold(lines), *_hosts(lines)]


def offer_text(label: str, match: str | None) -> str:
    """What a lasting yes covers, in one line: the label of an offer, and its rule where the label does not name it."""
    words = _one_line(label)
    rule = _one_line(match or "").removeprefix("program:")
    return words if not rule or rule in words or words.startswith("exactly this") else f"{words} ({rule})"


def _one_line(text: str) -> str:
    return "".join(_fold_line(visible(text).strip().replace("\n", "␊")))


# -- what is shown


def _main(given: Any) -> str | None:
    if isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        return None
    return next((given[name] for name in _MAIN if isinstance(given.get(name), str) and given[name]), None)


def _left_out(given: Any, shown: str, change: Sequence[Line]) -> dict[str, Any]:
    """The arguments that are not to be seen in the preview."""
    if given is None or _is_json_of(shown, given):
        return {}
    if not isinstance(given, Mapping):
        return {} if _is_text_of(shown, given) else {"": given}
    # A change that is itself an argument was compared with no file: it vouches for no other.
    vouches = names_files(shown) and not is_cut(shown) and not any(_is_text_of(shown, one) for one in given.values())
    return {
        str(name): value
        for name, value in given.items()
        if not _is_text_of(shown, value) and not (vouches and shows(change, str(name), value))
    }


def _is_change(shown: str, given: Any) -> bool:
    """A command, or the content of a file, that begins like a change is none."""
    arguments = given.items() if isinstance(given, Mapping) else ()
    return is_like_change(shown) and not any(
        name not in PATCHES and _is_text_of(shown, value) for name, value in arguments
    )


def _is_text_of(shown: str, value: Any) -> bool:
    return isinstance(value, str) and shown.strip() != "" and visible(value).strip() == shown.strip()


def _is_json_of(shown: str, given: Any) -> bool:
    if not shown.startswith(("{", "[")):
        return False
    try:
        # Compared as text: to Python 1, 1.0 and true are the same.
        return _canonical(json.loads(shown)) == _canonical(given)
    except (TypeError, ValueError, RecursionError):
        return False


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _argument(name: str, value: Any) -> Iterator[Shown]:
    text = visible(value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str))
    label = visible(name).replace("\n", "␊")
    if "\n" not in text:
        yield Shown("label", (f"{label}: {text}" if label else text,))
        return
    if label:
        yield Shown("label", (f"{label}:",))
    yield from _plain(text)


def _plain(text: str) -> Iterator[Shown]:
    return (Shown("plain", (line,)) for line in text.removesuffix("\n").split("\n"))


_SIGNS: dict[Kind, str] = {"add": "+", "cut": "-", "same": " "}


def _hosts(lines: Sequence[Shown]) -> Iterator[Shown]:
    """Hosts with letters that look like others, by the name that is asked for."""
    found = (host for line in lines for host in _HOST.findall(line.text) if not host.isascii())
    for host in dict.fromkeys(found):
        yield Shown("note", (f"{host} is {_ascii(host)}",))


def _ascii(host: str) -> str:
    try:
        return host.lower().encode("idna").decode()
    except UnicodeError:
        return "".join(letter if letter.isascii() else f"⟨{ord(letter):04X}⟩" for letter in host)


# -- padding


def _fold(lines: Sequence[Shown]) -> Iterator[Shown]:
    # A space at the end of a line that is not blank means something to a shell: such lines are not the same.
    for (kind, text), run in groupby(lines, lambda line: (line.kind, line.text if line.text.strip() else "")):
        many = list(run)
        if not text and len(many) >= BLANK_LINES:
            yield Shown("fold", ("", f"⋯ {len(many):,} blank lines ⋯", ""))
        elif text and len(many) >= SAME_LINES:
            yield Shown(kind, _fold_line(many[0].text))
            yield Shown("fold", ("", f"⋯ the same line {len(many) - 1:,} more times ⋯", ""))
        else:
            yield from (Shown(kind, _fold_line(line.text)) for line in many)


def _fold_line(line: str) -> tuple[str, ...]:
    pieces: list[str] = []
    at = 0
    for start, end, period in _padding(line):
        # What began within the fold before it goes on after it.
        start = max(start, at)
        times = (end - start) // period if period else 0
        if (period and times < REPEATS) or (not period and end <= at):
            continue
        unit = line[start : start + period]
        end = start + times * period if period else end
        pieces += [line[at:start] + unit, _folded(unit, times) if unit else _blanks(line[start:end])]
        at = end
    return (*pieces, line[at:])


def _padding(line: str) -> list[tuple[int, int, int]]:
    """Runs of spaces (period 0) and of anything repeated, as start, end and period. In linear time: the text may be hostile."""
    found = [(run.start(), run.end(), 0) for run in SPACES.finditer(line)]
    for period in range(1, UNIT_CHARACTERS + 1) if len(line) >= REPEATS else ():
        if not _may_repeat(line, period):
            continue
        matches = bytes(map(eq, line, line[period:]))
        found += [
            (run.start(), run.end() + period, period)
            for run in _MATCHES.finditer(matches)
            if run.end() - run.start() >= (REPEATS - 1) * period
        ]
    return sorted(found, key=lambda one: (one[0], one[2]))


def _may_repeat(line: str, period: int) -> bool:
    """Whether a look at every so many places finds a repetition: a run that is long enough covers one of them."""
    probe = 10 * period
    return any(
        line[at : at + probe] == line[at + period : at + period + probe]
        for at in range(0, len(line) - probe, REPEATS * period // 2)
    )


def _folded(unit: str, times: int) -> str:
    return f"⋯ “{unit}” {times - 1:,} more times ⋯"


def _blanks(spaces: str) -> str:
    kind = "tabs" if not spaces.strip("\t") else "spaces" if not spaces.strip(" ") else "spaces and tabs"
    return f"⋯ {len(spaces):,} {kind} ⋯"

"""Which shell commands only read: the one question whose wrong answer runs code unasked.

Called by the shell tool's `propose`; `simple_words` also by the policy, which allows programs by their first words.
Pure: text in, an answer out. It says yes to ONE simple command of a short list, with
options of a short list, made of plain words and quotes, and to nothing else: no expansion, substitution, redirect, glob,
pipe, list, comment, variable, escape, newline or odd character. A yes it cannot be sure of is a no, and a person is asked.

Paths must be relative and must not climb; whether they lead out through links is for the caller to see (`Reading.paths`).
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

COMMAND_LIMIT_CHARS = 2000
"""A longer command is not simple."""

# Plain characters, and quotes without anything that stays special within them. `~` and `^` only behind a letter or a digit
# (HEAD~1): in front they mean a home folder. Printable ASCII throughout: no letter that only looks like another.
_WORD = re.compile(r"""(?:[A-Za-z0-9_@%+=:,./-]|(?<=[A-Za-z0-9])[~^]|'[ -&(-~]*'|"[ #%-\[\]^_a-~]*")+""")
_BLANKS = re.compile(r" +")
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Reading:
    """A command that only reads: the program, and the words it may take for paths."""

    program: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Options:
    """What a program may be told. Anything else might write, run, follow links or read lists of names."""

    flags: str = ""
    """Letters that take nothing, alone or together: -la."""
    numbers: str = ""
    """Letters that take a number, in the same word or the next: -n5, -n 5."""
    values: str = ""
    """Letters that take any word as the next one: -e pattern."""
    long: frozenset[str] = frozenset()
    """Long options, without a value."""
    long_values: frozenset[str] = frozenset()
    """Long options with a value behind an equals sign."""
    bare_number: bool = False
    """-5 for -n 5."""
    pattern_first: bool = False
    """The first word that is no option is a pattern, not a path."""


def _long(words: str) -> frozenset[str]:
    return frozenset(f"--{word}" for word in words.split())


_DIFF_LONG = "stat numstat shortstat name-only name-status summary no-color cached staged no-ext-diff no-textconv"
_LOG_LONG = "oneline graph decorate no-decorate all reverse first-parent merges no-merges abbrev-commit no-patch"

_PROGRAMS: Mapping[str, _Options] = {
    "ls": _Options(flags="1AaCdFghiklnopRrSstu", long=_long("all almost-all human-readable recursive reverse size")),
    "cat": _Options(flags="AbeEnstTv", long=_long("number number-nonblank show-all")),
    "head": _Options(flags="qv", numbers="nc", bare_number=True),
    "tail": _Options(flags="qv", numbers="nc", bare_number=True),
    "wc": _Options(flags="clmwL", long=_long("bytes chars lines words")),
    "pwd": _Options(flags="LP"),
    "grep": _Options(
        flags="EFGacHhiLlnoqrsvwxy",
        numbers="ABCm",
        values="e",
        long=_long(
            "recursive ignore-case line-number count files-with-matches word-regexp fixed-strings extended-regexp"
        ),
        long_values=_long("include exclude exclude-dir color max-count"),
        pattern_first=True,
    ),
    "rg": _Options(
        flags="ciFHhIlNnoSsvwx",
        numbers="ABCm",
        values="egtT",
        long=_long("files hidden ignore-case line-number count files-with-matches fixed-strings no-heading"),
        long_values=_long("glob type max-count color"),
        pattern_first=True,
    ),
    "git status": _Options(
        flags="sb", long=_long("short branch long porcelain show-stash"), long_values=_long("porcelain")
    ),
    "git log": _Options(
        flags="p",
        numbers="nU",
        bare_number=True,
        long=_long(f"{_LOG_LONG} {_DIFF_LONG}"),
        long_values=_long("max-count author committer grep since until after before skip decorate date"),
    ),
    "git diff": _Options(flags="pwb", numbers="U", long=_long(_DIFF_LONG), long_values=_long("unified diff-filter")),
    "git show": _Options(
        flags="pwb", numbers="U", long=_long(f"{_LOG_LONG} {_DIFF_LONG}"), long_values=_long("unified date")
    ),
}


def reading(command: str) -> Reading | None:
    """What a command reads, if reading is all that it can do."""
    words = simple_words(command)
    if not words:
        return None
    program, rest = words[0], words[1:]
    if program == "echo":
        return Reading("echo", ())
    if program == "git" and rest:
        program, rest = f"git {rest[0]}", rest[1:]
    options = _PROGRAMS.get(program)
    paths = None if options is None else _plain_words(rest, options)
    if paths is None or not all(_stays_below(path) for path in paths):
        return None
    return Reading(program, tuple(paths))


def simple_words(command: str) -> list[str] | None:
    """The words of one simple command, or nothing if it is anything else to any shell."""
    if len(command) > COMMAND_LIMIT_CHARS:
        return None
    text = command.strip(" ")
    words: list[str] = []
    place = 0
    while place < len(text):
        word = _WORD.match(text, place)
        if word is None:
            return None
        words += shlex.split(word[0])
        place = word.end()
        if place < len(text):
            blanks = _BLANKS.match(text, place)
            if blanks is None:
                return None
            place = blanks.end()
    # Two readers that disagree mean that we do not understand it.
    return words if words == shlex.split(text) else None


def _plain_words(words: list[str], options: _Options) -> list[str] | None:
    """The words that are no options, or nothing if one of the options is not known to be harmless."""
    plain: list[str] = []
    pattern_due = options.pattern_first
    waiting = list(reversed(words))
    while waiting:
        word = waiting.pop()
        if word == "--":
            plain += reversed(waiting)
            break
        if not word.startswith("-") or word == "-":
            plain.append(word)
        elif word.startswith("--"):
            name, equals, _ = word.partition("=")
            if name not in (options.long_values if equals else options.long):
                return None
        else:
            takes = _short(word, options)
            if takes is None or (takes and not waiting):
                return None
            if takes:
                value = waiting.pop()
                if takes == "number" and not _NUMBER.fullmatch(value):
                    return None
                pattern_due = pattern_due and word != "-e"
    if pattern_due and "--files" not in words:
        plain = plain[1:]
    return plain


def _short(word: str, options: _Options) -> str | None:
    """What a word of short options takes as its next word: "", "number" or "value"; nothing if it is not harmless."""
    if options.bare_number and _NUMBER.fullmatch(word[1:]):
        return ""
    letter, rest = word[1], word[2:]
    if letter in options.numbers:
        return "number" if not rest else "" if _NUMBER.fullmatch(rest) else None
    if letter in options.values:
        return None if rest else "value"
    return "" if all(letter in options.flags for letter in word[1:]) else None


def _stays_below(path: str) -> bool:
    # Behind a colon git takes a path too: HEAD:../secret, HEAD:/etc/passwd.
    climbs = ".." in re.split("[/:]", path)
    return not climbs and not any(part.startswith(("/", "~")) for part in path.split(":"))

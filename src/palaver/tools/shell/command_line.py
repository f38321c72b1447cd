"""Shell command line parser: the simple commands that a line runs, however they are spelt, and whether it may run others.

Called by the policy, which compares rules with what runs and not with its spelling. Pure: text in, a `CommandLine` out, in
linear time. It takes off paths, quotes, assignments, launchers (`env`, `sudo`, `xargs` …) and git's global options, and
reads nested scripts (`sh -c`, `eval`, substitutions). It never decides that something may run.

It must never call a line `complete` that can run a command it does not list: whatever it does not understand, and every
program that is not known to run nothing but itself, makes the line incomplete.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from shlex import join
from typing import Any

ANALYSED_CHARS = 8_000
"""Of one command line. A longer one is read so far, and is incomplete."""
NESTED_CHARS = 16_000
"""Of all scripts within a line together: nested launchers would otherwise multiply them."""
NESTED_DEPTH = 8
LAUNCHER_WORDS = 32
"""Words of a launcher at which the command that it starts may begin, and of such a command that are compared."""
COMMAND_LINES = 16
"""Command lines of one call that are looked at."""

ARGUMENT_DEPTH = 16
"""Of lists and objects within the arguments of a call. A deeper one may hold anything."""

_UNREAD_LINES = "sh"
"""Stands for what was not looked at: a line that may run anything."""
_SEPARATORS = re.compile(r"[_\s-]")
_NAME_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _launchers(table: str) -> dict[str, tuple[str, int]]:
    rows = (f"{row}::".split(":") for row in table.split())
    return {row[0]: (row[1], int(row[2] or 0)) for row in rows}


_ARGUMENTS = _names(
    "args argv bash chars cmd cmdline code command commandline commands exec execute executable keys keystrokes powershell"
    " process program python run script sh shell shellcommand sourcecode stdin terminal"
)
"""Arguments, in lower case and without separators, by which tools of MCP servers, editors and programs take what is to be
run, or what is typed into a terminal."""
_ARGUMENT_WORDS = _names(
    "bash cmd cmdline command commandline commands exec execute executable powershell script scripts sh shell stdin terminal"
)
"""Words of the name of such an argument: `bash_command`, `commandString`, `scriptToRun`."""
_WITH_SCRIPT = _names(
    "sh bash dash ash zsh ksh mksh fish csh tcsh rbash pwsh powershell cmd eval trap alias bind complete mapfile readarray"
    " iex invoke-expression su runuser script watch"
)
"""Programs and builtins that take a script as an argument."""
_LAUNCHERS = _launchers(
    "arch builtin busybox bwrap caffeinate catchsegv chroot::1 chrt::1 command dbus-run-session doas:uC entr env:uCS exec:a"
    " fakeroot faketime::1 find firejail flock:wE:1 gosu::1 ionice:cn linux32 linux64 ltrace:oe nice:n nocorrect noglob"
    " nohup nsenter:tSG numactl parallel:jI pkexec prlimit proot:rbw rlwrap runcon::1 runuser:u script setarch::1 setpriv"
    " setsid sg::1 ssh:bcDeFIiJLlmOopQRSWw:1 stdbuf:ioe strace:oepPuE su sudo:ughpCrtUDRT systemd-run taskset::1 time:fo"
    " timeout:ks:1 torsocks toybox tsocks unbuffer unshare watch:n wine winpty xargs:InPLdasE xvfb-run"
)
"""Programs that start the one which their words name: with the short options that take the next word, and the number of
words before the program."""
_LOADER = re.compile(r"ld(-linux.*|-musl.*)?\.so.*")

_LEAVES = _names(
    ": b2sum base64 basename cal cat cd chgrp chmod chown cksum cmp column comm cp cut date df diff dirname du echo egrep"
    " expand expr false fgrep file fmt fold free grep head hexdump hostname id join jq kill ln ls md5sum mkdir mktemp mv nl"
    " od paste pgrep printenv ps pwd readlink realpath rev rm rmdir seq sha1sum sha224sum sha256sum sha384sum sha512sum"
    " shasum sleep stat strings tac tail tee touch tr tree true truncate uname unexpand uniq unlink uptime wc which whoami"
    " xxd"
)
"""Programs and builtins that run no other program, whatever their arguments are."""
_GUARDED: Mapping[str, tuple[str, ...]] = {
    "find": ("-exec", "-ok"),
    "rg": ("--pre", "--hostname-bin"),
    "sort": ("--co",),
    # They set a variable, such as PATH.
    "printf": ("-v",),
    "wait": ("-p",),
    # Some of them evaluate a word as an expression, whose subscripts may hold a substitution.
    **dict.fromkeys(_names("[ [[ test break continue exit dirs popd pushd type umask"), ()),
}
"""Programs and builtins that run another one only by options that begin so, or by a word that is not known or holds an
expansion."""
_LOOP_VARIABLES = re.compile(r"[a-z]|file|files|dir|name|item|line|word|num|src|dst|entry|test")
"""Names that mean nothing to any shell. A loop over `PATH`, or zsh's `path`, chooses the programs that run."""
_SYSTEM_FOLDERS = frozenset({"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"})
_BUILTINS = _names(": [ [[ break cd continue dirs echo exit false kill popd printf pushd pwd test true type umask wait")
"""Leaves that a shell runs itself, whatever the PATH holds."""

_BEFORE_COMMAND = frozenset({"!", "if", "then", "elif", "else", "do", "while", "until", "{", "fi", "done", "esac", "}"})
_UNREAD = frozenset({"case", "function", "coproc", "select"})
"""Reserved words whose grammar is not followed: what is within is looked at, and the line is incomplete."""
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[[^]]*\])?\+?=")
_REDIRECTION = re.compile(r"(?:[0-9]{1,9}|\{[A-Za-z_][A-Za-z0-9_]*\})?(<<<|<<-?|<>|<&|>>|>\||>&|<(?!\()|>(?!\())|&>>?")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./^-]+")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!_-]|\{[A-Za-z_][A-Za-z0-9_]*\})")
_EXPANDED = frozenset("*?[{}~=!^")
"""Unquoted, they may stand for something else, in one shell or another."""
_EXPANSION = re.compile(r"[$`]")
_BRACKETS = frozenset({"[", "]", "[[", "]]"})
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_CODE = re.compile(r"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})")

_GIT_VALUES = _names("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source")
"""Global options of git whose value is the next word."""
_GIT_ALIAS = re.compile(r"alias\.[^=]*=(!?)(.*)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Invocation:
    """A simple command: the program by its bare name in lower case, and its arguments."""

    words: tuple[str, ...]
    exact: bool = True
    """Every word is known. False: a variable or a pattern stands for some of them."""
    certain: bool = True
    """It is run. False: a launcher may begin it at this word."""

    @property
    def text(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class CommandLine:
    invocations: tuple[Invocation, ...]
    paths: tuple[str, ...]
    """Arguments and targets of redirections, as normalized paths."""
    complete: bool
    """It runs nothing beside the invocations. False: it may run anything."""
    programs: tuple[str, ...] = ()
    """Names without a folder for which that is so only if the PATH leads to the programs that are known by them."""


def parse(command: str) -> CommandLine:
    """What a command line runs. Never raises: what cannot be read makes it incomplete."""
    return _parse(command)


def command_lines(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The command lines in the arguments of a call, whichever tool it is of; an argv as a shell would be given it."""
    found = list(islice(_lines_in(arguments, 0), COMMAND_LINES + 1))
    if len(found) > COMMAND_LINES:
        found[-1] = _UNREAD_LINES
    if len(found) > 1:
        # The program in one argument and its own arguments in another.
        found.append(" ".join(found))
    return tuple(found)


def _lines_in(given: object, depth: int) -> Iterator[str]:
    if depth > ARGUMENT_DEPTH:
        yield _UNREAD_LINES
    elif isinstance(given, Mapping):
        for name, value in given.items():
            line = _command_line(value) if _is_for_commands(str(name)) else None
            if line is not None:
                yield line
            elif not isinstance(value, str):
                yield from _lines_in(value, depth + 1)
    elif isinstance(given, list | tuple):
        for one in given:
            if not isinstance(one, str):
                yield from _lines_in(one, depth + 1)


def texts_in(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Every text in the arguments of a call, at any depth: each may be handed to a shell."""
    found: list[str] = []
    waiting: list[object] = [arguments]
    while waiting:
        match waiting.pop():
            case str() as text:
                found.append(text)
            case Mapping() as named:
                waiting.extend(named.values())
            case list() | tuple() as several:
                waiting.extend(several)
            case _:
                pass
    return tuple(found)


def _is_for_commands(argument: str) -> bool:
    words = {word.lower() for word in _NAME_WORDS.findall(argument)}
    return _SEPARATORS.sub("", argument.lower()) in _ARGUMENTS or not words.isdisjoint(_ARGUMENT_WORDS)


def _command_line(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(word, str) for word in value):
        return join(value)
    return None


@lru_cache(maxsize=64)
def _parse(command: str) -> CommandLine:
    found = _Found()
    if len(command) > ANALYSED_CHARS or "$(" in command or "`" in command:
        # A substitution counts also within quotes: bash evaluates the subscripts that some builtins are given.
        found.complete = False
    _Reader(command[:ANALYSED_CHARS], found, 0).read_commands()
    return CommandLine(
        tuple(dict.fromkeys(found.invocations)),
        tuple(dict.fromkeys(found.paths)),
        found.complete,
        tuple(dict.fromkeys(found.programs)),
    )


def bare_name(program: str) -> str:
    """A program's name without its folder, its suffix or the letters that only look like others."""
    name = unicodedata.normalize("NFKC", program).replace("\\", "/").rstrip("/").rpartition("/")[2]
    return name.casefold().removesuffix(".exe")


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    exact: bool = True
    quoted: bool = False


@dataclass(slots=True)
class _Found:
    """What the reader of a line and those of its nested scripts gather."""

    invocations: list[Invocation] = field(default_factory=list[Invocation])
    paths: list[str] = field(default_factory=list[str])
    programs: list[str] = field(default_factory=list[str])
    complete: bool = True
    left_chars: int = NESTED_CHARS

    def read_script(self, script: str, depth: int) -> None:
        self.left_chars -= len(script)
        if depth > NESTED_DEPTH or self.left_chars < 0:
            self.complete = False
            return
        _Reader(script, self, depth).read_commands()

    def add_command(self, words: Sequence[_Word], scripts: Sequence[str], depth: int) -> None:
        """One simple command, with the here-documents that it reads."""
        self.paths += [posixpath.normpath(word.text) for word in words if word.text]
        name = self._add(words, depth)
        if not _is_leaf(words):
            self.complete = False
        elif "/" not in words[0].text and words[0].text not in _BUILTINS:
            self.programs.append(words[0].text)
        if name in _WITH_SCRIPT:
            for script in scripts:
                self.read_script(script, depth + 1)
        if _launcher(name) is not None or not words[0].exact:
            self._add_launched(name, words, depth)

    def _add(self, words: Sequence[_Word], depth: int, certain: bool = True) -> str:
        name = bare_name(words[0].text)
        words = words if certain else words[:LAUNCHER_WORDS]
        texts = [name, *(word.text for word in words[1:])]
        if name == "git":
            texts = self._without_git_options(texts, depth)
        self.invocations.append(Invocation(tuple(texts), all(word.exact for word in words), certain))
        if name in _WITH_SCRIPT:
            self._read_arguments(name, texts[1:], depth)
        return name

    def _read_arguments(self, name: str, arguments: Sequence[str], depth: int) -> None:
        if name in ("eval", "iex", "invoke-expression"):
            self.read_script(" ".join(arguments), depth + 1)
            return
        for argument in arguments[:LAUNCHER_WORDS]:
            _, equals, value = argument.partition("=") if name == "alias" or argument.startswith("--") else ("", "", "")
            script = value if equals else argument
            if script and not script.startswith("-"):
                self.read_script(script, depth + 1)

    def _add_launched(self, name: str, words: Sequence[_Word], depth: int) -> None:
        certain: set[int] = set()
        start = 0
        while (launcher := _launcher(name)) is not None and len(certain) < LAUNCHER_WORDS:
            begin = _program_place(name, [word.text for word in words[start:]], launcher)
            if begin is None:
                break
            start += begin
            certain.add(start)
            name = bare_name(words[start].text)
        # Which options take a value differs by version, so every later word may be the program too.
        first = min(certain, default=len(words)) if bare_name(words[0].text) == "find" else 1
        for place, word in enumerate(words[first : LAUNCHER_WORDS + first], first):
            option = re.match(r"--[a-z-]+=|-[A-Za-z](?=\S*\s)", word.text)
            text = word.text[option.end() :] if option else word.text
            if re.search(r"\s", text):
                self.read_script(text, depth + 1)
            elif text and not text.startswith("-") and not _ASSIGNMENT.match(text):
                self._add([_Word(text, word.exact), *words[place + 1 :]], depth, certain=place in certain)

    def _without_git_options(self, texts: list[str], depth: int) -> list[str]:
        place = 1
        while place < len(texts) and texts[place].startswith("-"):
            takes_value = texts[place] in _GIT_VALUES
            if texts[place] == "-c" and place + 1 < len(texts):
                self._add_alias(texts[place + 1], depth)
            place += 2 if takes_value else 1
        return ["git", *texts[place:]]

    def _add_alias(self, setting: str, depth: int) -> None:
        alias = _GIT_ALIAS.fullmatch(setting)
        if alias is not None:
            self.read_script(alias[2] if alias[1] else f"git {alias[2]}", depth + 1)


def _launcher(name: str) -> tuple[str, int] | None:
    return ("", 0) if _LOADER.fullmatch(name) else _LAUNCHERS.get(name)


def _program_place(name: str, words: Sequence[str], launcher: tuple[str, int]) -> int | None:
    """At which of its words a launcher's program stands."""
    if name == "find":
        return next((place + 1 for place, word in enumerate(words[:-1]) if word.startswith(("-exec", "-ok"))), None)
    with_value, before = launcher
    place = 1
    while place < len(words):
        word = words[place]
        if len(word) == 2 and word[0] == "-" and word[1] in with_value:
            place += 2
        elif word.startswith("-") or _ASSIGNMENT.match(word):
            place += 1
        elif before:
            before -= 1
            place += 1
        else:
            return place
    return None


def _is_leaf(words: Sequence[_Word]) -> bool:
    program = words[0]
    folder, slash, name = program.text.rpartition("/")
    if not program.exact or (slash and folder not in _SYSTEM_FOLDERS):
        return False
    if name in _LEAVES:
        return True
    forbidden = _GUARDED.get(name)
    return forbidden is not None and all(
        word.exact and not word.text.startswith(forbidden) and not _EXPANSION.search(word.text) for word in words
    )


def _is_plain_loop(words: Sequence[_Word]) -> bool:
    """Whether the words of a `for` give values to a harmless variable. A block among them is zsh's."""
    return (
        len(words) > 2
        and _LOOP_VARIABLES.fullmatch(words[1].text) is not None
        and words[2].text == "in"
        and all(word.text != "{" for word in words)
    )


class _Reader:
    """Recursive-descent reader of one script. It goes forward only."""

    def __init__(self, text: str, found: _Found, depth: int) -> None:
        self._text = text
        self._found = found
        self._depth = depth
        self._at = 0
        self._words: list[_Word] = []
        self._delimiters: list[str] = []
        self._scripts: list[str] = []

    def read_commands(self, closing: str = "") -> None:
        """Commands up to the closing bracket, or to the end of the text."""
        text = self._text
        while self._at < len(text):
            char = text[self._at]
            if char in " \t":
                self._at += 1
            elif text.startswith("\\\n", self._at):
                self._at += 2
            elif char == "#":
                end = text.find("\n", self._at)
                self._at = len(text) if end < 0 else end
            elif redirection := _REDIRECTION.match(text, self._at):
                self._read_redirection(redirection)
            elif char == "\n":
                self._at += 1
                self._read_here_documents()
                self._end_command()
            elif char in ";&|":
                self._at += 1
                self._end_command()
            elif char == "(":
                self._open_bracket()
            elif char == ")":
                self._at += 1
                self._end_command()
                if closing == ")":
                    return
                self._found.complete = False
            else:
                self._words.append(self._read_word())
        self._end_command()
        if closing:
            self._found.complete = False

    def _open_bracket(self) -> None:
        if self._words:
            # A function, an array, a pattern: not followed.
            self._found.complete = False
            self._end_command()
        self._at += 1
        self._nest(")")

    def _nest(self, closing: str) -> None:
        if self._depth >= NESTED_DEPTH:
            self._found.complete = False
            self._at = len(self._text)
            return
        outer, self._words, self._depth = self._words, [], self._depth + 1
        self.read_commands(closing)
        self._words, self._depth = outer, self._depth - 1

    def _end_command(self) -> None:
        words, self._words = self._words, []
        scripts, self._scripts = self._scripts, []
        for place, word in enumerate(words):
            if word.text in _BEFORE_COMMAND:
                self._found.complete = self._found.complete and not word.quoted
            elif (
                word.text in _UNREAD or _ASSIGNMENT.match(word.text) or (place and words[place - 1].text == "function")
            ):
                self._found.complete = False
            elif word.text == "for" and not word.quoted:
                self._found.complete = self._found.complete and _is_plain_loop(words[place:])
                return
            else:
                self._found.add_command(words[place:], scripts, self._depth)
                return

    # -- redirections

    def _read_redirection(self, operator: re.Match[str]) -> None:
        self._at = operator.end()
        if operator[1] is None or operator[0].startswith("{"):
            # What bash takes for a redirection is to other shells the end of a command, or its name.
            self._found.complete = False
            self._end_command()
        self._skip_blanks()
        target = self._read_word()
        if operator[1] in ("<<", "<<-"):
            self._found.complete = False
            self._delimiters.append(target.text)
        elif operator[1] == "<<<":
            self._scripts.append(target.text)
        elif target.text:
            self._found.paths.append(posixpath.normpath(target.text))

    def _read_here_documents(self) -> None:
        delimiters, self._delimiters = self._delimiters, []
        for delimiter in delimiters:
            lines: list[str] = []
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line, self._at = self._text[self._at : end], end + 1
                if line.lstrip("\t") == delimiter:
                    break
                lines.append(line)
            self._scripts.append("\n".join(lines))

    def _skip_blanks(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in " \t":
            self._at += 1

    # -- words

    def _read_word(self) -> _Word:
        parts: list[str] = []
        exact, quoted = True, False
        text = self._text
        while self._at < len(text):
            char = text[self._at]
            if plain := _PLAIN.match(text, self._at):
                # In front, zsh takes an equals sign for the path of a program.
                exact = exact and not (char == "=" and not parts)
                parts.append(plain[0])
                self._at = plain.end()
            elif char in " \t\n;&|()":
                break
            elif char in "<>":
                if not text.startswith("(", self._at + 1):
                    break
                self._at += 2
                self._substitute()
                exact = False
            elif char == "'":
                quoted = True
                parts.append(self._read_single_quotes())
            elif char == '"':
                quoted = True
                self._at += 1
                said, whole = self._read_double_quotes('"')
                parts.append(said)
                exact = exact and whole
            elif char == "\\":
                quoted = True
                if not text.startswith("\\\n", self._at):
                    parts.append(text[self._at + 1 : self._at + 2])
                self._at += 2
            elif char in "$`":
                said, whole = self._read_expansion()
                parts.append(said)
                exact = exact and whole
            else:
                exact = exact and char not in _EXPANDED
                parts.append(char)
                self._at += 1
        said = "".join(parts)
        return _Word(said, exact or said in _BRACKETS, quoted)

    def _read_single_quotes(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            self._found.complete = False
            end = len(self._text)
        said, self._at = self._text[self._at + 1 : end], end + 1
        # There fish reads on.
        self._found.complete = self._found.complete and not said.endswith("\\")
        return said

    def _read_double_quotes(self, closing: str) -> tuple[str, bool]:
        """What stands before the closing mark, behind which it leaves off, and whether all of it is known."""
        parts: list[str] = []
        exact = True
        text = self._text
        while self._at < len(text):
            char = text[self._at]
            if char == closing:
                self._at += 1
                return "".join(parts), exact
            if char == "\\":
                following = text[self._at + 1 : self._at + 2]
                parts.append("" if following == "\n" else following if following in '$`"\\' else f"\\{following}")
                self._at += 2
            elif char in "$`":
                said, whole = self._read_expansion(within_quotes=True)
                parts.append(said)
                exact = exact and whole
            else:
                parts.append(char)
                self._at += 1
        self._found.complete = False
        return "".join(parts), exact

    def _read_expansion(self, within_quotes: bool = False) -> tuple[str, bool]:
        text, at = self._text, self._at
        if text[at] == "`":
            self._read_backquotes()
            return "", False
        if text.startswith("$(", at):
            self._at += 2
            self._substitute()
            return "", False
        if not within_quotes and text.startswith("$'", at):
            self._at += 2
            self._found.complete = False
            return self._read_ansi_quotes(), True
        if not within_quotes and text.startswith('$"', at):
            self._at += 2
            self._found.complete = False
            return self._read_double_quotes('"')
        if variable := _VARIABLE.match(text, at):
            self._at = variable.end()
            return variable[0], False
        self._found.complete = self._found.complete and not text.startswith("${", at)
        if text.startswith("${", at) and self._depth < NESTED_DEPTH:
            self._at += 2
            self._depth += 1
            self._read_double_quotes("}")
            self._depth -= 1
            return "", False
        self._at += 1
        return "$", False

    def _substitute(self) -> None:
        self._found.complete = False
        self._nest(")")

    def _read_backquotes(self) -> None:
        self._found.complete = False
        script: list[str] = []
        self._at += 1
        while self._at < len(self._text) and self._text[self._at] != "`":
            if self._text[self._at] == "\\":
                self._at += 1
            script.append(self._text[self._at : self._at + 1])
            self._at += 1
        self._at += 1
        self._found.read_script("".join(script), self._depth + 1)

    def _read_ansi_quotes(self) -> str:
        parts: list[str] = []
        text = self._text
        while self._at < len(text) and text[self._at] != "'":
            if text[self._at] != "\\":
                parts.append(text[self._at])
                self._at += 1
            elif code := _CODE.match(text, self._at + 1):
                number = int(code[4], 8) if code[4] else int(code[1] or code[2] or code[3], 16)
                parts.append(chr(number) if number <= 0x10FFFF else "")
                self._at = code.end()
            else:
                following = text[self._at + 1 : self._at + 2]
                parts.append(_ESCAPES.get(following, following))
                self._at += 2
        self._at += 1
        return "".join(parts)

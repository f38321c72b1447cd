"""Whether a call runs, asks a person, or is refused: one pure function over rules, grants and the mode.

Called by the toolbox for every call, built-in, of an MCP server or of an editor. It sees a proposal and words, never files,
clocks or processes. In this order, the first that has a word: a denial by anybody; plan mode; a person's standing grant
(or the agent's `allowed_tools`), the narrowest source named; a rule that asks; a rule that allows; the mode. Whatever
cannot be judged is denied. An allowing rule covers exact text, or a program by the parsed words of one simple command: a
pattern over shell text covers more than its author means.

A rule that denies or asks is compared with the commands that a line runs (`command_line.py`) and with every name of a file,
not with their spelling. Where a call may be what such a rule names and that cannot be told, only a person's yes to exactly
this call counts: a whole tool, a mode or a build tool that was allowed is asked for.
"""

import posixpath
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, assert_never, get_args

import msgspec

from palaver.schema.base import Decision
from palaver.schema.records import PolicyRule
from palaver.schema.view import Offer
from palaver.tools.base import Proposal, ToolSpec
from palaver.tools.shell.command_line import Invocation, bare_name, parse
from palaver.tools.shell.read_only_commands import simple_words

Mode = Literal["plan", "ask", "accept_edits", "auto", "full"]

Source = Literal["conversation", "agent", "project", "server"]
"""Who gave a rule or what a grant covers, the narrowest first."""

PROGRAM = "program:"
"""Begins a `match` that names a program by its first words ("program:git status") and not a text."""
OUR_TOOLS = {
    "Bash": "shell",
    "bash": "shell",
    "PowerShell": "shell",
    "powershell": "shell",
    "Read": "read",
    "LS": "list",
    "ls": "list",
    "Glob": "glob",
    "Grep": "grep",
    "Edit": "edit",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "Write": "write",
    "WebFetch": "fetch",
}
"""Other programs' tools under the names of ours that do the same, so that a rule means the same everywhere."""
COMMAND_TOOL = "shell"
"""The tool whose `match` is a command line."""

_SAME_TOOL = {**OUR_TOOLS, "apply_patch": "patch"}
"""Names under which a rule that denies or asks means the same tool. One that allows means the name it gives."""

_EFFECTS = frozenset({"*", COMMAND_TOOL, "edit", "write", "patch"})

_WRITES_OR_RUNS = ("--ou", "--ext", "--textc")
"""How options of git begin that write a file anywhere or run a configured program, abbreviations included."""
_WITH_ANY_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            *(
                "basename",
                "cat",
                "cmp",
                "comm",
                "cut",
                "df",
                "diff",
                "dirname",
                "du",
                "echo",
                "false",
                "grep",
                "head",
                "id",
            ),
            *("jq", "ls", "md5sum", "nl", "pwd", "readlink", "realpath", "seq", "sha1sum", "sha256sum", "sha512sum"),
            *("stat", "tail", "tr", "true", "type", "uname", "wc", "which", "whoami"),
            *("git add", "git blame", "git ls-files", "git rev-parse", "git status"),
        ),
        (),
    ),
    **dict.fromkeys(("git diff", "git log", "git show"), _WRITES_OR_RUNS),
    "rg": ("--pre", "--hostname-bin"),
}
"""Programs that may be allowed with any arguments, but for those that begin so: no argument makes them run another program
or write outside the project. Interpreters, launchers and build tools run whatever they are given, and `git commit` runs the
project's hooks: a yes to one of them would be a yes to everything."""

_IGNORES_CASE = sys.platform in ("darwin", "win32")


@dataclass(frozen=True, slots=True)
class Rule:
    """A standing word on a tool, from the configuration, an agent's record, a conversation's parameters or a person."""

    tool: str
    """A tool's name, or `*` for every tool."""
    decision: Decision
    match: str | None = None
    """Absent: every call. `program:…`: commands that begin with these words. Else an `allow` matches this text exactly;
    the others read it as a glob, over the command or each path that would be written."""
    source: Source = "server"
    project: Path | None = None
    """Counts only in conversations of this folder and those beneath it."""
    agent: str | None = None
    """Of an allowance: the agent whose record gives it."""


Grant = Rule
"""A rule that a person gave while answering a request. Its `source` is the scope they chose."""


@dataclass(frozen=True, slots=True)
class Verdict:
    decision: Decision
    grant: str
    """What an allowed call runs under, for `tool.started`; empty unless allowed."""
    why: str
    """One sentence, for the person who is asked or the model that is refused."""
    failed: bool = False
    """It could not be judged, and is denied for that alone."""
    by_rule: bool = False
    """A rule denies it or says to ask, whatever a mode or another program allows."""


@dataclass(frozen=True, slots=True)
class Policy:
    rules: tuple[Rule, ...] = ()
    sandboxed: bool = False
    """A sandbox was probed and works. Without one, mode `auto` is no more than `accept_edits`."""
    full_enabled: bool = False
    """The server's flag. Without it, mode `full` is no more than `ask`."""
    can_be_planted: Callable[[str], bool] = lambda _: False
    """Whether a name on the PATH of commands may mean a program that an agent put there, and not the one it is known for."""

    def at(self, project: Path, more: Iterable[Rule] = ()) -> "Policy":
        """The policy of one folder: without the rules of other projects, with `more` (an agent's)."""
        # Free of links when the turn began: a link that stands there now must not choose which rules count.
        kept = (rule for rule in self.rules if rule.project is None or project.is_relative_to(rule.project.resolve()))
        return replace(self, rules=(*kept, *more))

    def verdict(
        self,
        spec: ToolSpec,
        proposal: Proposal,
        mode: Mode,
        grants: Iterable[Grant] = (),
        rules: Iterable[Rule] = (),
    ) -> Verdict:
        """`rules` are those of the conversation, which may change while a turn runs."""
        try:
            return _judge(self, spec, proposal, mode, tuple(grants), tuple(rules))
        except Exception as failure:  # noqa: BLE001 - whatever cannot be judged must not run
            return Verdict(
                "deny_continue", "", f"The policy could not judge this call ({failure}); it was not run.", True
            )

    def restricts(self, more: Iterable[Rule] = (), tools: Collection[str] = _EFFECTS) -> bool:
        """Whether rules deny or ask for some calls of these tools: by default commands and changes of files, before each of
        which a program must then ask."""
        return any(
            rule.decision != "allow" and _SAME_TOOL.get(rule.tool, rule.tool) in tools for rule in (*self.rules, *more)
        )

    def restricts_tool(self, tool: str, more: Iterable[Rule] = ()) -> bool:
        """Whether a call of this tool may be one that rules deny or ask for. Any tool may be given a command."""
        return self.restricts(more, ("*", COMMAND_TOOL, _SAME_TOOL.get(tool, tool)))


def as_mode(word: str | None) -> Mode:
    """The mode a conversation or an agent names. No word, or one this release does not know, means `ask`."""
    for mode in get_args(Mode):
        if word == mode:
            return mode  # type: ignore[no-any-return]
    return "ask"


def rules_of(written: Any, source: Source) -> tuple[Rule, ...]:
    """Rules as a record or a conversation's parameters hold them. One that cannot be read asks before everything."""
    if written is None:
        return ()
    try:
        read = msgspec.convert(written, tuple[PolicyRule, ...], from_attributes=True)
    except msgspec.ValidationError:
        return (Rule("*", "ask", source=source),)
    return tuple(Rule(rule.tool, rule.decision, rule.match, source) for rule in read)


def grants_of_record(agent: str, tools: Iterable[str]) -> tuple[Grant, ...]:
    """An agent's `allowed_tools`: as good as a person's yes, for whoever writes the record is one."""
    return tuple(Rule(tool, "allow", source="agent", agent=agent) for tool in tools if tool != "*")


# -- what a person may allow for longer


def offers(spec: ToolSpec, proposal: Proposal) -> tuple[Offer, ...]:
    """What a lasting yes to this call may cover, the narrowest first. Empty: it can only be allowed once."""
    match = proposal.match
    if spec.edits_only:
        return (Offer(label=f"every change that {spec.name} makes in the project"),)
    found: list[Offer] = []
    if match is not None and not match.startswith(PROGRAM):
        exactly = "exactly this command" if spec.name == COMMAND_TOOL else "exactly this"
        found.append(Offer(label=proposal.covers or exactly, match=match))
    if spec.name == COMMAND_TOOL:
        program = _program_of(match or "")
        if program:
            found.append(Offer(label=f"{program} with any arguments", match=f"{PROGRAM}{program}"))
    else:
        # Never all commands at once: that is mode `full`, which the server must have switched on.
        found.append(Offer(label=f"every call of {spec.name}"))
    return tuple(found)


def standing_grant(spec: ToolSpec, offer: Offer, scope: Source) -> Grant:
    return Rule(tool=spec.name, decision="allow", match=offer.match, source=scope)


def is_lasting(match: str | None) -> bool:
    """Whether a yes to this may outlive its call: `program:…` only for the programs that are offered with any arguments."""
    return match is None or not match.startswith(PROGRAM) or match.removeprefix(PROGRAM) in _WITH_ANY_ARGUMENTS


def why_not_lasting(match: str | None) -> str | None:
    """Of a grant that counts no more: why, and what to do. Releases before allowed most programs with any arguments."""
    if match is None or is_lasting(match):
        return None
    program = match.removeprefix(PROGRAM)
    return (
        f"This counts no more: {program} can run or write whatever its arguments say, so it is asked for again. "
        "Take this back, and allow the exact commands when you are asked."
    )


def _program_of(command: str) -> str | None:
    """The first words that name what runs, if the command may be allowed with any other arguments."""
    words = simple_words(command) or []
    programs = (" ".join(words[:count]) for count in (1, 2))
    return next((program for program in programs if _is_harmless(program, words)), None)


def _is_harmless(program: str, words: Sequence[str]) -> bool:
    forbidden = _WITH_ANY_ARGUMENTS.get(program)
    return forbidden is not None and not any(word.startswith(forbidden) for word in words if forbidden)


# -- judging

_RULES: dict[Source, str] = {
    "conversation": "The rules of this conversation",
    "agent": "The agent's own rules",
    "project": "The rules of this project",
    "server": "The rules of this server",
}
"""Whose rules they are, for the person who is asked."""


def _judge(
    policy: Policy,
    spec: ToolSpec,
    proposal: Proposal,
    mode: Mode,
    grants: tuple[Grant, ...],
    more: tuple[Rule, ...],
) -> Verdict:
    reads_only = spec.reads_only or proposal.reads_only
    found = [(rule, _relation(rule, spec, proposal, policy)) for rule in (*policy.rules, *more)]
    held = [(grant, _relation(grant, spec, proposal, policy)) for grant in grants if is_lasting(grant.match)]
    rules = [rule for rule, relation in found if relation == "covers"]
    given = [grant for grant, relation in held if relation == "covers"]
    for denial in ("deny_abort", "deny_continue"):
        for rule in (*rules, *given):
            if rule.decision == denial:
                why = f"{_RULES[rule.source]} forbid this call of {spec.name}."
                return Verdict(denial, "", why, by_rule=True)
    if mode == "plan" and not reads_only:
        return Verdict("deny_continue", "", "Plan mode only reads; propose this as a step of the plan.")
    # A command that provably only reads runs nothing else; what it reads may still be what a rule is about.
    doubts = ("resembles",) if reads_only else ("resembles", "unknown")
    doubtful = [rule for rule, relation in (*found, *held) if relation in doubts]
    # As a rule that asks gives way to a person's yes, so does the doubt whether it is meant.
    may_be_denied = any(rule.decision != "ask" for rule in doubtful)
    if allowed := _narrowest([grant for grant in given if not may_be_denied or _is_explicit(grant)], "allow"):
        if allowed.agent is not None:
            return Verdict("allow", f"agent:{allowed.agent}", f"The agent “{allowed.agent}” uses it without asking.")
        return Verdict("allow", allowed.source, f"A person allowed this for the {allowed.source}.")
    if asking := _narrowest([*rules, *given], "ask"):
        return Verdict("ask", "", f"{_RULES[asking.source]} say to ask you first.", by_rule=True)
    if allowing := _narrowest([rule for rule in rules if not doubtful or _is_explicit(rule)], "allow"):
        return Verdict("allow", "rule", f"{_RULES[allowing.source]} allow it.")
    by_mode = _by_mode(policy, spec, mode, reads_only)
    if not doubtful:
        return by_mode
    if by_mode.decision == "allow":
        why = f"{_RULES[doubtful[0].source]} restrict some calls, and this one may do what they name."
        return Verdict("ask", "", why, by_rule=True)
    return replace(by_mode, by_rule=True)


def _is_explicit(allowance: Rule) -> bool:
    """Whether exactly this call was allowed, or a program that can run no other."""
    return allowance.match is not None and is_lasting(allowance.match)


def _narrowest(rules: Sequence[Rule], decision: Decision) -> Rule | None:
    order = get_args(Source)
    return min(
        (rule for rule in rules if rule.decision == decision), key=lambda it: order.index(it.source), default=None
    )


def _by_mode(policy: Policy, spec: ToolSpec, mode: Mode, reads_only: bool) -> Verdict:
    if reads_only:
        return Verdict("allow", "reads_only", "It only reads.")
    but = ""
    match mode:
        case "plan" | "ask":
            allowed = False
        case "accept_edits":
            allowed = spec.edits_only
        case "auto":
            allowed = (policy.sandboxed and not spec.outside) or spec.edits_only
            held = "it acts outside the sandbox" if policy.sandboxed else "no sandbox works here"
            but = f" Mode auto would run it, but {held}."
        case "full":
            allowed = policy.full_enabled
            but = " Mode full would run it, but this server does not allow that mode."
        case _:
            assert_never(mode)
    if allowed:
        return Verdict("allow", f"mode:{mode}", f"Mode {mode} allows it.")
    freely = "change files" if mode in ("accept_edits", "auto") else "read"
    why = "changes files" if spec.edits_only else f"does more than {freely}"
    return Verdict("ask", "", f"This agent asks before it {why}.{but}")


# -- comparing a rule with a call

Relation = Literal["covers", "resembles", "unknown", "none"]
"""`resembles`: it may be what the rule names, spelt or ordered in another way. `unknown`: it may run anything."""
_STRENGTH: tuple[Relation, ...] = ("covers", "resembles", "unknown", "none")


def _relation(rule: Rule, spec: ToolSpec, proposal: Proposal, policy: Policy) -> Relation:
    if rule.decision == "allow":
        return "covers" if _allows(rule, spec, proposal) else "none"
    names = _SAME_TOOL.get(rule.tool, rule.tool)
    named = names in ("*", _SAME_TOOL.get(spec.name, spec.name))
    if rule.match is None:
        # Whoever restricts every command means also those that another tool is given.
        runs_commands = names == COMMAND_TOOL and bool(proposal.commands)
        return "covers" if named else "resembles" if runs_commands else "none"
    texts = (proposal.match or "", *(proposal.writes or ()), *proposal.paths)
    if named and not rule.match.startswith(PROGRAM) and any(_fits(text, rule.match) for text in texts):
        return "covers"
    if names not in ("*", COMMAND_TOOL):
        return "none"
    commands = proposal.commands or ((proposal.match or "",) if spec.name == COMMAND_TOOL else ())
    relations = [_relation_to_command(rule.match, command, policy, paths_too=names == "*") for command in commands]
    return min((*relations, _relation_to_texts(rule.match, proposal.texts)), key=_STRENGTH.index)


def _allows(rule: Rule, spec: ToolSpec, proposal: Proposal) -> bool:
    if rule.tool not in (spec.name, "*"):
        return False
    if rule.match is None:
        return True
    if not rule.match.startswith(PROGRAM):
        # A call that writes more than it is known by is not the one that was allowed.
        return (proposal.match or "") == rule.match and all(path == rule.match for path in proposal.writes or ())
    program = rule.match.removeprefix(PROGRAM).split()
    words = simple_words(proposal.match or "") if spec.name == COMMAND_TOOL else None
    if not program or not words or words[: len(program)] != program:
        return False
    name = " ".join(program)
    return name not in _WITH_ANY_ARGUMENTS or _is_harmless(name, words)


def _fits(text: str, pattern: str) -> bool:
    if _IGNORES_CASE:
        text, pattern = text.casefold(), pattern.casefold()
    return fnmatchcase(text, pattern) or fnmatchcase(text, pattern.removeprefix("./"))


def _relation_to_command(match: str, command: str, policy: Policy, *, paths_too: bool) -> Relation:
    line = parse(command)
    relations = [_relation_to_invocation(match, invocation) for invocation in line.invocations]
    if "covers" in relations:
        return "covers"
    if paths_too and not match.startswith(PROGRAM) and any(_fits(path, match) for path in line.paths):
        return "covers"
    if "resembles" in relations:
        return "resembles"
    return "none" if line.complete and not any(map(policy.can_be_planted, line.programs)) else "unknown"


def _relation_to_texts(match: str, texts: Iterable[str]) -> Relation:
    """Of arguments of which nobody knows what they are for: one that names the program may be run as a command."""
    name = next(_head(match), "")
    literal = re.split(r"[*?\[]", name, maxsplit=1)[0].casefold()
    end = r"(?![a-z0-9])" if literal == name.casefold() else ""
    named = re.compile(rf"(?<![a-z0-9]){re.escape(literal)}{end}")
    plain = (unicodedata.normalize("NFKC", text).casefold() for text in texts)
    return "unknown" if any(named.search(text) for text in plain) else "none"


def _relation_to_invocation(match: str, invocation: Invocation) -> Relation:
    if match.startswith(PROGRAM):
        program = _bare_words(match.removeprefix(PROGRAM))
        covered = bool(program) and list(invocation.words[: len(program)]) == program
    else:
        pattern = match.casefold()
        text = invocation.text.casefold()
        covered = fnmatchcase(text, pattern) or fnmatchcase(text, " ".join(_bare_words(pattern)))
    if covered:
        return "covers" if invocation.certain else "resembles"
    return "resembles" if _resembles(match, invocation) else "none"


def _bare_words(match: str) -> list[str]:
    words = match.split()
    return [bare_name(words[0]), *words[1:]] if words else []


def _resembles(match: str, invocation: Invocation) -> bool:
    """The same program, and the words before the rule's first option in this order: options have many spellings."""
    head = list(_head(match))
    if not head or not fnmatchcase(invocation.words[0], head[0]):
        return False
    if not invocation.exact:
        return True
    arguments = ((word, posixpath.normpath(word)) for word in invocation.words[1:])
    return all(any(fnmatchcase(name, wanted) for names in arguments for name in names) for wanted in head[1:])


def _head(match: str) -> Iterator[str]:
    words = match.removeprefix(PROGRAM).lstrip("*").split()
    for place, word in enumerate(words):
        if word.startswith("-"):
            return
        yield bare_name(word) if place == 0 else word

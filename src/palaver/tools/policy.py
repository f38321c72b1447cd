"""Whether a call runs, asks a person, or is refused: one pure function over rules, grants and the mode.

Called by the toolbox for every call, built-in, of an MCP server or of an editor. It sees a proposal and words, never files,
clocks or processes. In this order, the first that has a word: a denial by anybody; plan mode; a person's standing grant
(or the agent's `allowed_tools`), the narrowest source named; a rule that asks; a rule that allows; the mode. Whatever
cannot be judged is denied. An allowing rule covers exact text, or a program by the parsed words of one simple command: a
pattern over shell text covers more than its author means.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, assert_never, get_args

import msgspec

from palaver.schema.base import Decision
from palaver.schema.records import PolicyRule
from palaver.schema.view import Offer
from palaver.tools.base import Proposal, ToolSpec
from palaver.tools.commands import simple_words

Mode = Literal["plan", "ask", "accept_edits", "auto", "full"]

Source = Literal["conversation", "agent", "project", "server"]
"""Who gave a rule or what a grant covers, the narrowest first."""

PROGRAM = "program:"
"""Begins a `match` that names a program by its first words ("program:git status") and not a text."""
OUR_TOOLS = {
    "Bash": "shell",
    "bash": "shell",
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

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9-]*")
_HAVE_SUBCOMMANDS = (
    "apt brew bun cargo conda docker dotnet gh git go helm kubectl npm pip pip3 pnpm podman poetry systemctl terraform uv"
    " yarn"
)
_WITH_SUBCOMMANDS = frozenset(_HAVE_SUBCOMMANDS.split())
"""Programs whose first word alone says little of what they do."""
_RUN_ARGUMENTS = (
    "alias ash awk bash builtin busybox chroot command coproc csh dash doas env eval exec expect export fish find gawk"
    " ionice ksh lua nice node nohup nsenter parallel perl php powershell pwsh python python3 ruby script setsid sh source"
    " ssh stdbuf strace su sudo tcsh time timeout trap unshare watch xargs zsh"
)
_RUNS_ANYTHING = frozenset(_RUN_ARGUMENTS.split())
"""Programs that run what they are given: a yes to one of them would be a yes to everything."""


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


@dataclass(frozen=True, slots=True)
class Policy:
    rules: tuple[Rule, ...] = ()
    sandboxed: bool = False
    """A sandbox was probed and works. Without one, mode `auto` is no more than `accept_edits`."""
    full_enabled: bool = False
    """The server's flag. Without it, mode `full` is no more than `ask`."""

    def at(self, project: Path, more: Iterable[Rule] = ()) -> "Policy":
        """The policy of one folder: without the rules of other projects, with `more` (an agent's)."""
        here = project.resolve()
        kept = (rule for rule in self.rules if rule.project is None or here.is_relative_to(rule.project.resolve()))
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


def allowed_by(agent: str, tools: Iterable[str]) -> tuple[Grant, ...]:
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


def _program_of(command: str) -> str | None:
    """The first words that name what runs, if the command is so simple that they surely do."""
    words = simple_words(command)
    if not words or not _PLAIN.fullmatch(words[0]) or words[0] in _RUNS_ANYTHING:
        return None
    if words[0] not in _WITH_SUBCOMMANDS:
        return words[0]
    if len(words) < 2 or not _SUBCOMMAND.fullmatch(words[1]):
        # Options before the subcommand may change everything (git -c …).
        return None
    return f"{words[0]} {words[1]}"


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
    rules = [rule for rule in (*policy.rules, *more) if _covers(rule, spec, proposal)]
    given = [grant for grant in grants if _covers(grant, spec, proposal)]
    for denial in ("deny_abort", "deny_continue"):
        for rule in (*rules, *given):
            if rule.decision == denial:
                return Verdict(denial, "", f"{_RULES[rule.source]} forbid this call of {spec.name}.")
    if mode == "plan" and not reads_only:
        return Verdict("deny_continue", "", "Plan mode only reads; propose this as a step of the plan.")
    if allowed := _narrowest(given, "allow"):
        if allowed.agent is not None:
            return Verdict("allow", f"agent:{allowed.agent}", f"The agent “{allowed.agent}” uses it without asking.")
        return Verdict("allow", allowed.source, f"A person allowed this for the {allowed.source}.")
    if asking := _narrowest([*rules, *given], "ask"):
        return Verdict("ask", "", f"{_RULES[asking.source]} say to ask you first.")
    if allowing := _narrowest(rules, "allow"):
        return Verdict("allow", "rule", f"{_RULES[allowing.source]} allow it.")
    return _by_mode(policy, spec, mode, reads_only)


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


def _covers(rule: Rule, spec: ToolSpec, proposal: Proposal) -> bool:
    if rule.tool not in (spec.name, "*"):
        return False
    if rule.match is None:
        return True
    text = proposal.match or ""
    written = proposal.writes or ()
    if rule.match.startswith(PROGRAM):
        return spec.name == COMMAND_TOOL and _runs(rule, text)
    if rule.decision == "allow":
        # A call that writes more than it is known by is not the one that was allowed.
        return text == rule.match and all(path == rule.match for path in written)
    return any(fnmatchcase(known, rule.match) for known in (text, *written))


def _runs(rule: Rule, command: str) -> bool:
    program = (rule.match or "").removeprefix(PROGRAM).split()
    if not program:
        return False
    words = simple_words(command)
    if words is not None:
        return words[: len(program)] == program
    # Not one simple command: an allowance never covers it, a warning does if the program is named anywhere in it.
    return rule.decision != "allow" and program[0] in re.split(r"[^A-Za-z0-9_.+-]+", command)

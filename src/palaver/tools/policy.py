"""Whether a call runs, asks a person, or is refused: one pure function over rules, grants and the mode.

Called by the toolbox for every call, built-in or from an MCP server. It sees a proposal and words, never files, clocks or
processes. Deny beats everything; whatever cannot be judged is denied; an allowing rule covers exact text only, because a
pattern over shell text covers more than its author means.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, assert_never, get_args

from palaver.schema.base import Decision
from palaver.tools.base import Proposal, ToolSpec

Mode = Literal["plan", "ask", "accept_edits", "auto", "full"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A standing word on a tool, from the configuration or from a person (`grant.added`)."""

    tool: str
    """A tool's name, or `*` for every tool."""
    decision: Decision
    match: str | None = None
    """Absent: every call. An `allow` matches this text exactly; the others read it as a glob."""


Grant = Rule
"""A rule that a person gave while answering a request."""


@dataclass(frozen=True, slots=True)
class Verdict:
    decision: Decision
    grant: str
    """What an allowed call runs under, for `tool.started`; empty unless allowed."""
    why: str
    """One sentence, for the person who is asked or the model that is refused."""


@dataclass(frozen=True, slots=True)
class Policy:
    rules: tuple[Rule, ...] = ()
    sandboxed: bool = False
    """A sandbox was probed and works. Without one, mode `auto` is no more than `accept_edits`."""
    full_enabled: bool = False
    """The server's flag. Without it, mode `full` is no more than `ask`."""

    def verdict(self, spec: ToolSpec, proposal: Proposal, mode: Mode, grants: Iterable[Grant] = ()) -> Verdict:
        try:
            return _judge(self, spec, proposal, mode, tuple(grants))
        except Exception as failure:  # noqa: BLE001 - whatever cannot be judged must not run
            return Verdict("deny_continue", "", f"The policy could not judge this call ({failure}); it was not run.")


def as_mode(word: str | None) -> Mode:
    """The mode a conversation or an agent names. No word, or one this release does not know, means `ask`."""
    for mode in get_args(Mode):
        if word == mode:
            return mode  # type: ignore[no-any-return]
    return "ask"


def standing_grant(spec: ToolSpec, proposal: Proposal) -> Grant:
    """What a person allows by answering "for this conversation": all edits of that tool, or exactly this command."""
    return Rule(tool=spec.name, decision="allow", match=None if spec.edits_only else proposal.match)


def _judge(policy: Policy, spec: ToolSpec, proposal: Proposal, mode: Mode, grants: tuple[Grant, ...]) -> Verdict:
    reads_only = spec.reads_only or proposal.reads_only
    rules = [rule for rule in policy.rules if _covers(rule, spec, proposal)]
    given = [grant for grant in grants if _covers(grant, spec, proposal)]
    decisions = {rule.decision for rule in (*rules, *given)}
    for denial in ("deny_abort", "deny_continue"):
        if denial in decisions:
            return Verdict(denial, "", f"A rule forbids this call of {spec.name}.")
    if mode == "plan" and not reads_only:
        return Verdict("deny_continue", "", "Plan mode only reads; propose this as a step of the plan.")
    if any(grant.decision == "allow" for grant in given):
        return Verdict("allow", "conversation", "A person allowed this for the conversation.")
    if "ask" in decisions:
        return Verdict("ask", "", f"A rule says to ask before this call of {spec.name}.")
    if any(rule.decision == "allow" for rule in rules):
        return Verdict("allow", "rule", "A rule of the server allows it.")
    return _by_mode(policy, spec, mode, reads_only)


def _by_mode(policy: Policy, spec: ToolSpec, mode: Mode, reads_only: bool) -> Verdict:
    if reads_only:
        return Verdict("allow", "reads_only", "It only reads.")
    match mode:
        case "plan" | "ask":
            allowed = False
        case "accept_edits":
            allowed = spec.edits_only
        case "auto":
            allowed = policy.sandboxed or spec.edits_only
        case "full":
            allowed = policy.full_enabled
        case _:
            assert_never(mode)
    if allowed:
        return Verdict("allow", f"mode:{mode}", f"Mode {mode} allows it.")
    freely = "change files" if mode in ("accept_edits", "auto") else "read"
    why = "changes files" if spec.edits_only else f"does more than {freely}"
    return Verdict("ask", "", f"This agent asks before it {why}.")


def _covers(rule: Rule, spec: ToolSpec, proposal: Proposal) -> bool:
    if rule.tool not in (spec.name, "*"):
        return False
    if rule.match is None:
        return True
    text = proposal.match or ""
    return text == rule.match if rule.decision == "allow" else fnmatchcase(text, rule.match)

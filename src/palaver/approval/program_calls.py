"""What becomes of a tool call that another program wants to make: the policy that holds for our own tools decides.

Used by the backends whose programs ask us. They describe the call under the name of our tool that does the same, so that a
rule or a standing grant means the same everywhere. What lies outside the project is never taken for harmless.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from palaver.approval.policy import OUR_TOOLS, Mode, Policy, Verdict, as_mode, rules_of
from palaver.approval.turn_grants import Grants
from palaver.backends.base import Turn
from palaver.errors import Forbidden
from palaver.installation import is_installed, places_in
from palaver.tools.base import Proposal, ToolSpec
from palaver.tools.files.file_names import file_names
from palaver.tools.files.held_folder import check_folder
from palaver.tools.proposal import fingerprint, first_line, shorten, visible
from palaver.tools.shell.command_line import command_lines, texts_in

TITLE_CHARS = 200
POWERSHELLS = frozenset({"powershell", "pwsh"})


@dataclass(frozen=True, slots=True)
class Judged:
    spec: ToolSpec
    proposal: Proposal
    verdict: Verdict


def mode_of(turn: Turn) -> Mode:
    """The message's own mode first, then the conversation's, then the agent's."""
    active = turn.state.turn
    given = turn.params.get("mode")
    return as_mode((active.mode if active else None) or (given if isinstance(given, str) else None) or turn.agent.mode)


class Judging:
    def __init__(self, policy: Policy | None, grants: Grants) -> None:
        self.policy = policy or Policy()
        self.grants = grants

    def judge(self, turn: Turn, spec: ToolSpec, proposal: Proposal) -> Judged:
        policy = self._policy_of(turn)
        rules = rules_of(turn.params.get("policy"), "conversation")
        try:
            check_folder(turn.project)
        except Forbidden as refusal:
            return Judged(spec, proposal, Verdict("deny_continue", "", refusal.message, failed=True))
        return Judged(spec, proposal, policy.verdict(spec, proposal, mode_of(turn), self.grants.of(turn), rules))

    def restricts(self, turn: Turn) -> bool:
        """Whether some calls of this turn are denied or asked about: its program must then ask before each, in every mode."""
        more = (*rules_of(turn.params.get("policy"), "conversation"), *self.grants.of(turn))
        # What this server runs lies in the project: the program's own sandbox does not know that it must stay as it is.
        return self._policy_of(turn).restricts(more) or bool(places_in(turn.project))

    def _policy_of(self, turn: Turn) -> Policy:
        return self.policy.at(turn.project, rules_of(turn.agent.policy, "agent"))


def proposal_of(
    by: str, name: str, given: Mapping[str, Any], project: Path, *, path: str | None, edits: bool, reads: bool
) -> Proposal:
    """What a call would do, as far as its arguments say."""
    commands = command_lines(given)
    command = next(iter(command_lines({"command": given.get("command")})), None)
    if command is not None and name.casefold() in POWERSHELLS:
        # Its syntax is another: it is read as a script that may do more.
        commands = (shlex.join(("powershell", "-Command", command)),)
    text = command if command is not None else path
    whole = msgspec.json.format(msgspec.json.encode(given), indent=2).decode()
    return Proposal(
        title=first_line(f"{name} {text}" if text else name, TITLE_CHARS),
        hash=fingerprint(f"{by} {name}", given, project, {}),
        preview=shorten(visible(command if command is not None else whole)),
        reads_only=reads,
        writes=(path,) if edits and path is not None else None,
        match=text if text is not None else whole,
        commands=commands,
        texts=() if reads or edits or name in OUR_TOOLS else texts_in(given),
        paths=file_names(project, (path,)) if path is not None else (),
    )


def inside(project: Path, path: str) -> bool:
    return _resolved(project, path).is_relative_to(project)


def may_edit(project: Path, path: str) -> bool:
    """Whether a file is the project's, and none that this server runs."""
    return inside(project, path) and not is_installed(_resolved(project, path))


def _resolved(project: Path, path: str) -> Path:
    # The project is free of links when a turn begins. If it is resolved again, a link in its place would be the project.
    return (project / Path(path).expanduser()).resolve()

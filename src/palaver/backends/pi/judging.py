"""What becomes of a tool call of Pi: the same policy as for the built-in tools, over what Pi would do.

Pi asks nobody itself, so every call comes here. Its tools are judged under the names of ours that do the same, so that a
rule or a standing grant means the same everywhere. What lies outside the project is never taken for harmless.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from palaver.backends.api.grants import Grants
from palaver.backends.base import Turn
from palaver.backends.pi.translate import Call
from palaver.schema.events import RequestOpened
from palaver.tools.base import Proposal, ToolSpec
from palaver.tools.policy import Mode, Policy, Verdict, as_mode, offers, rules_of
from palaver.tools.proposal import fingerprint, shortened, visible

READS = frozenset({"read", "ls", "grep", "find"})
EDITS = frozenset({"write", "edit"})
OURS = {"bash": "shell", "powershell": "shell", "ls": "list", "find": "glob"}
TITLE_CHARS = 200


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
    def __init__(self, policy: Policy, grants: Grants) -> None:
        self._policy = policy
        self._grants = grants

    def judge(self, turn: Turn, name: str, given: Mapping[str, Any]) -> Judged:
        spec, proposal = describe(name, given, turn.project)
        policy = self._policy.at(turn.project, rules_of(turn.agent.policy, "agent"))
        rules = rules_of(turn.params.get("policy"), "conversation")
        return Judged(spec, proposal, policy.verdict(spec, proposal, mode_of(turn), self._grants.of(turn), rules))

    def request(self, turn: Turn, call: Call, judged: Judged) -> RequestOpened:
        proposal = judged.proposal
        offered = offers(judged.spec, proposal)
        return RequestOpened(
            request=turn.new_id(),
            kind="approval",
            call=call.id,
            agent=turn.agent.id,
            tool=call.name,
            input=call.input,
            hash=proposal.hash,
            title=proposal.title,
            preview=proposal.preview,
            risk=judged.verdict.why,
            scopes=self._grants.scopes(turn) if offered else ("once",),
            offers=offered,
        )


def describe(name: str, given: Mapping[str, Any], project: Path) -> tuple[ToolSpec, Proposal]:
    path = given.get("path")
    inside = _inside(project, path) if isinstance(path, str) else name in READS and path is None
    spec = ToolSpec(
        name=OURS.get(name, name),
        description="",
        parameters={},
        reads_only=name in READS and inside,
        edits_only=name in EDITS and inside,
    )
    command = given.get("command")
    text = command if isinstance(command, str) else path if isinstance(path, str) else None
    whole = msgspec.json.format(msgspec.json.encode(given), indent=2).decode()
    return spec, Proposal(
        title=f"{name} {text}"[:TITLE_CHARS] if text else name,
        hash=fingerprint(f"pi {name}", given, project, {}),
        preview=shortened(visible(command if isinstance(command, str) else whole)),
        reads_only=spec.reads_only,
        writes=(path,) if name in EDITS and isinstance(path, str) else None,
        match=text if text is not None else whole,
    )


def _inside(project: Path, path: str) -> bool:
    root = project.resolve()
    return (root / Path(path).expanduser()).resolve().is_relative_to(root)

"""Pi's tools are judged as ours are; what lies outside the project is never taken for harmless."""

from pathlib import Path
from typing import Any

import pytest

from palaver.approval.policy import Policy
from palaver.approval.program_calls import Judging
from palaver.approval.turn_grants import Grants
from palaver.backends.pi.proposals import describe
from palaver.schema.records import AgentRecord, PolicyRule
from tests.provider.turn import MemoryTurn


def judged(name: str, given: dict[str, Any], project: Path, mode: str | None = None, *rules: PolicyRule) -> str:
    agent = AgentRecord(id="pi", name="Pi", backend="pi", mode=mode, policy=rules)
    turn = MemoryTurn("said", project=project, agent=agent)
    return Judging(Policy(), Grants()).judge(turn, *describe(name, given, project)).verdict.decision


@pytest.mark.parametrize(
    ("name", "given", "mode", "decision"),
    [
        ("read", {"path": "a.txt"}, None, "allow"),
        ("ls", {}, None, "allow"),
        ("read", {"path": "/etc/passwd"}, None, "ask"),
        ("read", {"path": "../beside"}, None, "ask"),
        ("grep", {"pattern": "x", "path": "~/.ssh"}, None, "ask"),
        ("write", {"path": "a.txt", "content": "x"}, None, "ask"),
        ("write", {"path": "a.txt", "content": "x"}, "accept_edits", "allow"),
        ("write", {"path": "/etc/passwd", "content": "x"}, "accept_edits", "ask"),
        ("bash", {"command": "ls"}, "accept_edits", "ask"),
        ("bash", {"command": "ls"}, "full", "ask"),
        ("bash", {"command": "ls"}, "plan", "deny_continue"),
        ("somebody_elses", {"x": 1}, None, "ask"),
    ],
)
def test_call_is_judged_by_what_it_does(
    name: str, given: dict[str, Any], mode: str | None, decision: str, tmp_path: Path
) -> None:
    assert judged(name, given, tmp_path, mode) == decision


def test_rules_for_our_shell_hold_for_pis(tmp_path: Path) -> None:
    rule = PolicyRule(tool="shell", decision="allow", match="program:git status")
    assert judged("bash", {"command": "git status -s"}, tmp_path, None, rule) == "allow"
    assert judged("bash", {"command": "git push"}, tmp_path, None, rule) == "ask"
    forbidden = PolicyRule(tool="shell", decision="deny_continue", match="program:rm")
    assert judged("bash", {"command": "rm -rf x"}, tmp_path, None, forbidden) == "deny_continue"

"""What an agent's record allows holds for the programs too, under the names of our tools that do the same."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from palaver.approval.program_calls import Judging
from palaver.approval.turn_grants import Grants
from palaver.backends.claude.proposals import describe as of_claude
from palaver.backends.pi.proposals import describe as of_pi
from palaver.schema.records import AgentRecord, PolicyRule
from palaver.tools.base import Proposal, ToolSpec
from tests.provider.turn import MemoryTurn

COMMAND = {"command": "make"}
RULE = PolicyRule(tool="shell", match="make*", decision="deny_continue")


def described(program: str, given: Mapping[str, Any], project: Path) -> tuple[ToolSpec, Proposal]:
    return of_claude("Bash", given, project) if program == "claude" else of_pi("bash", given, project)


@pytest.mark.parametrize("program", ["claude", "pi"])
@pytest.mark.parametrize(
    ("record", "decision", "grant"),
    [
        (AgentRecord(id="ada", name="Ada"), "ask", ""),
        (AgentRecord(id="ada", name="Ada", allowed_tools=("shell",)), "allow", "agent:ada"),
        (AgentRecord(id="ada", name="Ada", allowed_tools=("shell",), policy=(RULE,)), "deny_continue", ""),
        (AgentRecord(id="ada", name="Ada", allowed_tools=("shell",), mode="plan"), "deny_continue", ""),
    ],
)
def test_program_uses_what_its_agent_may_use(
    program: str, record: AgentRecord, decision: str, grant: str, tmp_path: Path
) -> None:
    turn = MemoryTurn("hi", project=tmp_path, agent=record)
    verdict = Judging(None, Grants()).judge(turn, *described(program, COMMAND, tmp_path)).verdict
    assert (verdict.decision, verdict.grant) == (decision, grant)

"""A corpus of hostile commands: none of them is ever taken for one that only reads, and so none runs unasked.

The commands are in `hostile.json`, by what they try.
"""

import json
from pathlib import Path

import pytest

from palaver.approval.policy import Mode, Policy
from palaver.tools.base import Proposal
from palaver.tools.shell.read_only_commands import reading
from palaver.tools.shell.sandbox import Sandbox
from palaver.tools.shell.shell import Shell, only_reads

HOSTILE: dict[str, list[str]] = json.loads(Path(__file__).with_name("hostile.json").read_text())
COMMANDS = [(group, command) for group, commands in HOSTILE.items() for command in commands]


@pytest.fixture
def repository(root: Path) -> Path:
    """A folder in which every reading command would be harmless: only the command itself decides."""
    (root / ".git").mkdir()
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git/config").write_text("[core]\n\tbare = false\n")
    for name in ("a", "b"):
        (root / name).write_text("text\n")
    return root


@pytest.mark.parametrize(("group", "command"), COMMANDS)
def test_hostile_command_is_never_taken_for_reading(group: str, command: str, repository: Path) -> None:
    assert reading(command) is None, group
    assert not only_reads(command, repository, Sandbox("landlock"))


@pytest.mark.parametrize("mode", ["plan", "ask", "accept_edits", "auto", "full"])
def test_hostile_command_runs_unasked_in_no_mode(mode: Mode, repository: Path) -> None:
    shell, policy = Shell(), Policy()
    for _, command in COMMANDS:
        proposal = shell.propose({"command": command}, repository)
        if isinstance(proposal, Proposal):
            assert policy.verdict(shell.spec, proposal, mode).decision != "allow", command


def test_harmless_commands_beside_them_are_let_through(repository: Path) -> None:
    for command in ("ls -la", "cat a b", "git status", "git diff HEAD -- a", "grep -rn text .", "rg --files"):
        assert only_reads(command, repository, Sandbox("landlock")), command

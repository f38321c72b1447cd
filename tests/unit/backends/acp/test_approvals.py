"""What an agent asks for, in the terms of our policy: its own word that something is harmless is not enough."""

from pathlib import Path
from typing import Any

import pytest

from palaver.approval.policy import Mode
from palaver.backends.acp.approvals import by_mode, describe
from palaver.backends.acp.events import Call


def call(kind: str, paths: tuple[str, ...] = (), **given: Any) -> Call:
    return Call("c", "theirs", "m", 0, name="tool", title="a title", kind=kind, input=given, paths=paths)


@pytest.mark.parametrize(
    ("asked", "reads", "edits", "name"),
    [
        (call("read", path="a.txt"), True, False, "read"),
        (call("read", path="/etc/passwd"), False, False, "read"),
        (call("read"), False, False, "read"),
        (call("search", ("src",)), True, False, "grep"),
        (call("edit", file_path="a.txt"), False, True, "edit"),
        (call("edit", ("a.txt", "/etc/passwd")), False, False, "edit"),
        (call("execute", command="ls"), False, False, "shell"),
        (call("other", path="a.txt"), False, False, "tool"),
    ],
)
def test_call_is_harmless_only_within_the_project(
    asked: Call, reads: bool, edits: bool, name: str, tmp_path: Path
) -> None:
    spec, proposal = describe(asked, tmp_path)
    assert (spec.reads_only, spec.edits_only, spec.name) == (reads, edits, name)
    assert proposal.title == "a title"


def test_command_is_what_rules_look_at(tmp_path: Path) -> None:
    assert describe(call("execute", command="git status"), tmp_path)[1].match == "git status"
    assert describe(call("execute"), tmp_path)[1].match == "a title", "gemini tells the command only as the title"


@pytest.mark.parametrize(
    ("mode", "known", "wanted"),
    [
        ("plan", ("default", "autoEdit", "yolo", "plan"), "plan"),
        ("ask", ("default", "autoEdit", "yolo", "plan"), "default"),
        ("accept_edits", ("default", "autoEdit", "yolo", "plan"), "autoEdit"),
        ("full", ("default", "autoEdit", "yolo", "plan"), "yolo"),
        ("ask", ("default", "acceptEdits", "plan", "auto"), "default"),
        ("auto", ("default", "acceptEdits", "plan", "auto"), "acceptEdits"),
        ("ask", ("read-only", "workspace-write", "agent", "agent-full-access"), "workspace-write"),
        ("plan", (), None),
    ],
)
def test_mode_is_known_by_the_agents_own_word(mode: Mode, known: tuple[str, ...], wanted: str | None) -> None:
    assert by_mode(mode, known) == wanted

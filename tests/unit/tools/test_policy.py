"""The policy: deny beats everything, modes give the default, and what cannot be judged does not run."""

from dataclasses import replace
from typing import Any

import pytest

from palaver.tools.base import Proposal, ToolSpec
from palaver.tools.policy import Decision, Mode, Policy, Rule, as_mode, standing_grant

READ = ToolSpec("read", "", {}, reads_only=True)
EDIT = ToolSpec("edit", "", {}, edits_only=True)
SHELL = ToolSpec("shell", "", {})


def proposal(match: str = "make", **more: Any) -> Proposal:
    return Proposal(title="", hash="", match=match, **more)


@pytest.mark.parametrize(
    ("mode", "read", "edit", "shell", "reading_shell"),
    [
        ("plan", "allow", "deny_continue", "deny_continue", "allow"),
        ("ask", "allow", "ask", "ask", "allow"),
        ("accept_edits", "allow", "allow", "ask", "allow"),
        ("auto", "allow", "allow", "ask", "allow"),
        ("full", "allow", "ask", "ask", "allow"),
    ],
)
def test_mode_gives_the_default(mode: Mode, read: str, edit: str, shell: str, reading_shell: str) -> None:
    policy = Policy()
    assert policy.verdict(READ, proposal(), mode).decision == read
    assert policy.verdict(EDIT, proposal(), mode).decision == edit
    assert policy.verdict(SHELL, proposal(), mode).decision == shell
    assert policy.verdict(SHELL, proposal(reads_only=True), mode).decision == reading_shell


def test_auto_allows_commands_only_in_a_sandbox() -> None:
    assert Policy(sandboxed=True).verdict(SHELL, proposal(), "auto").decision == "allow"
    assert Policy(sandboxed=True).verdict(SHELL, proposal(), "ask").decision == "ask"


def test_full_allows_everything_only_with_the_servers_flag() -> None:
    assert Policy(full_enabled=True).verdict(SHELL, proposal(), "full").decision == "allow"
    assert Policy(full_enabled=True).verdict(SHELL, proposal(), "ask").decision == "ask"


@pytest.mark.parametrize("mode", ["plan", "ask", "accept_edits", "auto", "full"])
@pytest.mark.parametrize("denial", ["deny_continue", "deny_abort"])
def test_deny_beats_everything(denial: Decision, mode: Mode) -> None:
    policy = Policy((Rule("shell", denial), Rule("shell", "allow")), sandboxed=True, full_enabled=True)
    allowed = [Rule("shell", "allow"), Rule("*", "allow")]
    for shown in (proposal(), proposal(reads_only=True)):
        verdict = policy.verdict(SHELL, shown, mode, allowed)
        assert (verdict.decision, verdict.grant) == (denial, "")


def test_denial_given_by_a_person_beats_a_rule_that_allows() -> None:
    policy = Policy((Rule("shell", "allow"),))
    assert policy.verdict(SHELL, proposal(), "ask", [Rule("shell", "deny_continue")]).decision == "deny_continue"


def test_abort_beats_continue() -> None:
    policy = Policy((Rule("shell", "deny_continue"), Rule("*", "deny_abort")))
    assert policy.verdict(SHELL, proposal(), "ask").decision == "deny_abort"


@pytest.mark.parametrize(
    ("match", "command", "covered"),
    [("make", "make", True), ("make *", "make test", False), ("make", "make ", False), ("make", "make; rm a", False)],
)
def test_allowing_rule_covers_exactly_its_text(match: str, command: str, covered: bool) -> None:
    verdict = Policy((Rule("shell", "allow", match),)).verdict(SHELL, proposal(command), "ask")
    assert verdict.decision == ("allow" if covered else "ask")


def test_denying_rule_covers_a_pattern() -> None:
    policy = Policy((Rule("edit", "deny_continue", "*.env"), Rule("*", "ask", "secrets/*")))
    assert policy.verdict(EDIT, proposal("prod.env"), "accept_edits").decision == "deny_continue"
    assert policy.verdict(EDIT, proposal("secrets/a"), "accept_edits").decision == "ask"
    assert policy.verdict(READ, proposal("secrets/a"), "ask").decision == "ask"
    assert policy.verdict(EDIT, proposal("a.py"), "accept_edits").decision == "allow"


def test_rule_that_asks_beats_mode_and_allowing_rule_but_not_a_persons_grant() -> None:
    policy = Policy((Rule("shell", "ask"), Rule("shell", "allow")), full_enabled=True)
    assert policy.verdict(SHELL, proposal(), "full").decision == "ask"
    assert policy.verdict(SHELL, proposal(), "full", [Rule("shell", "allow", "make")]).decision == "allow"


def test_grant_for_the_conversation_covers_the_same_command_and_no_other() -> None:
    grant = standing_grant(SHELL, proposal("make test"))
    again = Policy().verdict(SHELL, proposal("make test"), "ask", [grant])
    assert (again.decision, again.grant) == ("allow", "conversation")
    assert Policy().verdict(SHELL, proposal("make clean"), "ask", [grant]).decision == "ask"
    assert Policy().verdict(EDIT, proposal("make test"), "ask", [grant]).decision == "ask"


def test_grant_for_an_edit_covers_every_edit_of_that_tool() -> None:
    grant = standing_grant(EDIT, proposal("a.py"))
    assert Policy().verdict(EDIT, proposal("b.py"), "ask", [grant]).decision == "allow"
    assert Policy().verdict(replace(EDIT, name="write"), proposal("b.py"), "ask", [grant]).decision == "ask"


def test_plan_mode_is_not_undone_by_a_grant() -> None:
    assert Policy().verdict(SHELL, proposal(), "plan", [Rule("shell", "allow")]).decision == "deny_continue"


def test_every_allowed_call_names_its_grant_and_every_verdict_its_reason() -> None:
    policy = Policy((Rule("read", "allow"),), sandboxed=True, full_enabled=True)
    grants = [
        policy.verdict(READ, proposal(), "ask").grant,
        policy.verdict(SHELL, proposal(reads_only=True), "ask").grant,
        policy.verdict(EDIT, proposal(), "accept_edits").grant,
        policy.verdict(SHELL, proposal(), "full").grant,
        policy.verdict(SHELL, proposal(), "ask", [Rule("shell", "allow")]).grant,
    ]
    assert grants == ["rule", "reads_only", "mode:accept_edits", "mode:full", "conversation"]


def test_person_who_is_asked_is_told_what_the_agent_does_on_its_own() -> None:
    asked = [(EDIT, "ask"), (SHELL, "ask"), (SHELL, "accept_edits"), (SHELL, "auto"), (SHELL, "full")]
    assert [Policy().verdict(spec, proposal(), as_mode(mode)).why for spec, mode in asked] == [
        "This agent asks before it changes files.",
        "This agent asks before it does more than read.",
        "This agent asks before it does more than change files.",
        "This agent asks before it does more than change files.",
        "This agent asks before it does more than read.",
    ]


def test_call_that_cannot_be_judged_is_denied() -> None:
    broken: Any = [None]
    verdict = Policy().verdict(READ, proposal(), "full", broken)
    assert verdict.decision == "deny_continue"
    assert "could not judge" in verdict.why
    unknown: Any = "yolo"
    assert Policy(full_enabled=True).verdict(SHELL, proposal(), unknown).decision == "deny_continue"


def test_unknown_mode_is_ask() -> None:
    assert [as_mode(word) for word in ("plan", "auto", None, "", "yolo")] == ["plan", "auto", "ask", "ask", "ask"]

"""The policy: deny beats everything, modes give the default, and what cannot be judged does not run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palaver.approval.policy import (
    Grant,
    Mode,
    Policy,
    Rule,
    Source,
    Verdict,
    as_mode,
    grants_of_record,
    offers,
    rules_of,
    standing_grant,
)
from palaver.schema.base import Decision
from palaver.tools.base import Proposal, ToolSpec

READ = ToolSpec("read", "", {}, reads_only=True)
EDIT = ToolSpec("edit", "", {}, edits_only=True)
SHELL = ToolSpec("shell", "", {})


def proposal(match: str | None = "make", **more: Any) -> Proposal:
    return Proposal(title="", hash="", match=match, **more)


def given(spec: ToolSpec, shown: Proposal, offer: int = 0, scope: Source = "conversation") -> Grant:
    """What a person allows by taking one of the offers."""
    return standing_grant(spec, offers(spec, shown)[offer], scope)


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


def test_auto_asks_about_what_no_sandbox_holds() -> None:
    outside = ToolSpec("fetch", "", {}, outside=True)
    verdict = Policy(sandboxed=True).verdict(outside, proposal(), "auto")
    assert (verdict.decision, "outside the sandbox" in verdict.why) == ("ask", True)
    assert Policy(full_enabled=True).verdict(outside, proposal(), "full").decision == "allow"


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
    grant = given(SHELL, proposal("make test"))
    again = Policy().verdict(SHELL, proposal("make test"), "ask", [grant])
    assert (again.decision, again.grant) == ("allow", "conversation")
    assert Policy().verdict(SHELL, proposal("make clean"), "ask", [grant]).decision == "ask"
    assert Policy().verdict(EDIT, proposal("make test"), "ask", [grant]).decision == "ask"


def test_grant_for_an_edit_covers_every_edit_of_that_tool() -> None:
    grant = given(EDIT, proposal("a.py"))
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
        policy.verdict(SHELL, proposal(), "ask", [Rule("shell", "allow", source="conversation")]).grant,
    ]
    assert grants == ["rule", "reads_only", "mode:accept_edits", "mode:full", "conversation"]


def test_person_who_is_asked_is_told_what_the_agent_does_on_its_own() -> None:
    asked = [(EDIT, "ask"), (SHELL, "ask"), (SHELL, "accept_edits"), (SHELL, "auto"), (SHELL, "full")]
    assert [Policy().verdict(spec, proposal(), as_mode(mode)).why for spec, mode in asked] == [
        "This agent asks before it changes files.",
        "This agent asks before it does more than read.",
        "This agent asks before it does more than change files.",
        "This agent asks before it does more than change files. Mode auto would run it, but no sandbox works here.",
        "This agent asks before it does more than read. Mode full would run it, but this server does not allow that mode.",
    ]


def test_person_who_is_asked_because_of_a_rule_is_told_whose_it_is() -> None:
    sources: tuple[Source, ...] = ("conversation", "agent", "project", "server")
    told = [Policy((Rule("shell", "ask", source=source),)).verdict(SHELL, proposal(), "auto").why for source in sources]
    assert told == [
        "The rules of this conversation say to ask you first.",
        "The agent's own rules say to ask you first.",
        "The rules of this project say to ask you first.",
        "The rules of this server say to ask you first.",
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


# -- who has a word, in which order


@pytest.mark.parametrize("source", ["server", "agent", "conversation"])
@pytest.mark.parametrize("denial", ["deny_continue", "deny_abort"])
def test_denial_by_anybody_beats_a_grant_of_any_scope(source: Source, denial: Decision) -> None:
    rule = Rule("shell", denial, source=source)
    policy = Policy((rule,) if source != "conversation" else (), sandboxed=True, full_enabled=True)
    more = [rule] if source == "conversation" else []
    for scope in ("conversation", "agent", "project"):
        verdict = policy.verdict(SHELL, proposal(), "full", [given(SHELL, proposal(), scope=scope)], more)
        assert verdict.decision == denial
        assert source in verdict.why


def test_grant_of_the_narrowest_scope_is_the_one_that_is_named() -> None:
    scopes: list[Source] = ["project", "agent", "conversation"]
    grants = [given(SHELL, proposal(), scope=scope) for scope in scopes]
    for left in (grants, grants[:2], grants[:1]):
        assert Policy().verdict(SHELL, proposal(), "ask", left).grant == left[-1].source


def test_rule_of_a_wider_source_that_asks_beats_a_narrower_one_that_allows() -> None:
    policy = Policy((Rule("shell", "ask", source="server"),))
    verdict = policy.verdict(SHELL, proposal(), "ask", (), [Rule("shell", "allow", source="conversation")])
    assert verdict.decision == "ask"


def test_rule_of_a_project_counts_in_its_folder_and_beneath_alone(tmp_path: Path) -> None:
    for name in ("a", "a/b", "ab"):
        (tmp_path / name).mkdir()
    policy = Policy((Rule("shell", "deny_abort", project=tmp_path / "a"),))
    found = {name: policy.at(tmp_path / name).verdict(SHELL, proposal(), "ask").decision for name in ("a", "a/b", "ab")}
    assert found == {"a": "deny_abort", "a/b": "deny_abort", "ab": "ask"}


def test_rules_of_an_agent_are_added_to_the_servers() -> None:
    policy = Policy((Rule("edit", "deny_continue"),)).at(
        Path("/"), rules_of([{"tool": "shell", "decision": "allow"}], "agent")
    )
    assert policy.verdict(SHELL, proposal(), "ask").decision == "allow"
    assert policy.verdict(EDIT, proposal(), "full").decision == "deny_continue"


def test_rules_that_cannot_be_read_ask_before_everything() -> None:
    for broken in ("allow", [{"tool": "shell"}], [{"tool": "shell", "decision": "yes"}], 7):
        assert Policy().verdict(READ, proposal(), "full", (), rules_of(broken, "conversation")).decision == "ask"


# -- what a lasting yes covers


def test_offers_go_from_this_command_to_its_program() -> None:
    assert [offer.match for offer in offers(SHELL, proposal("git status -s"))] == [
        "git status -s",
        "program:git status",
    ]
    assert [offer.match for offer in offers(SHELL, proposal("ls -la"))] == ["ls -la", "program:ls"]
    assert [offer.match for offer in offers(SHELL, proposal("pytest -q"))] == ["pytest -q"]
    assert [offer.match for offer in offers(replace(SHELL, name="mcp"), proposal("{}"))] == ["{}", None]
    assert [offer.match for offer in offers(EDIT, proposal("a.py"))] == [None]


@pytest.mark.parametrize(
    "command",
    [
        "git -c core.pager=evil log",
        "git",
        "make; rm -rf .",
        "make && rm a",
        "make | sh",
        "make $(evil)",
        "make `evil`",
        "make > /etc/passwd",
        "make & evil",
        "make \n evil",
        "make ~root",
        "make *",
        "make {a,b}",
        "make <(evil)",
        "make \\",
        "X=1 make",
        "./make",
        "../make",
        "/tmp/make",
        "bash -c make",
        "env make",
        "sudo make",
        "xargs make",
        "python x.py",
        "find . -delete",
        "command make",
    ],
)
def test_program_is_offered_for_no_command_that_might_run_another(command: str) -> None:
    assert not [offer for offer in offers(SHELL, proposal(command)) if (offer.match or "").startswith("program:")]


@pytest.mark.parametrize(
    ("command", "covered"),
    [
        ("git status", True),
        ("git status -s src", True),
        ("git  status", True),
        ("'git' status", True),
        ("git push", False),
        ("git", False),
        ("git statusx", False),
        ("gits tatus", False),
        ("git status; rm a", False),
        ("git status && rm a", False),
        ("git status $(rm a)", False),
        ("git status > a", False),
        ("git status | sh", False),
        ("git status\nrm a", False),
        ("git -c alias.status=!rm status", False),
        ("./git status", False),
        ("GIT_PAGER=evil git status", False),
    ],
)
def test_grant_of_a_program_covers_its_words_and_no_text_that_begins_alike(command: str, covered: bool) -> None:
    grant = given(SHELL, proposal("git status"), 1)
    assert grant.match == "program:git status"
    verdict = Policy().verdict(SHELL, proposal(command), "ask", [grant])
    assert verdict.decision == ("allow" if covered else "ask")


def test_command_that_is_spelled_like_a_program_grant_cannot_become_one() -> None:
    assert offers(SHELL, proposal("program:rm")) == ()


def test_program_grant_covers_no_file_of_that_name() -> None:
    grant = Rule("*", "allow", "program:git status", source="conversation")
    assert Policy().verdict(replace(EDIT, edits_only=False), proposal("git status"), "ask", [grant]).decision == "ask"


@pytest.mark.parametrize("command", ["rm a", "make; rm a", "$(rm a)", "cd x && rm a"])
def test_program_that_is_denied_is_found_in_commands_that_are_not_simple(command: str) -> None:
    policy = Policy((Rule("shell", "deny_continue", "program:rm"),))
    assert policy.verdict(SHELL, proposal(command), "full").decision == "deny_continue"
    assert policy.verdict(SHELL, proposal("echo alarm"), "ask").decision == "ask"


def test_pattern_sees_every_file_that_a_call_writes() -> None:
    policy = Policy((Rule("*", "deny_continue", "*.env"), Rule("patch", "allow", "a.py")))
    patch = ToolSpec("patch", "", {})
    assert policy.verdict(patch, proposal("a.py", writes=("a.py", "b.env")), "full").decision == "deny_continue"
    assert policy.verdict(patch, proposal("a.py", writes=("a.py", "b.py")), "ask").decision == "ask"
    assert policy.verdict(patch, proposal("a.py", writes=("a.py",)), "ask").decision == "allow"


def test_tool_an_agent_may_use_runs_in_its_name_also_where_a_rule_asks() -> None:
    grants = grants_of_record("ada", ["shell"])
    policy = Policy(rules=(Rule("shell", "ask"),))
    assert policy.verdict(SHELL, proposal(), "ask", grants) == Verdict(
        "allow", "agent:ada", "The agent “ada” uses it without asking."
    )
    assert policy.verdict(EDIT, proposal(), "ask", grants).decision == "ask"


@pytest.mark.parametrize("denial", ["deny_continue", "deny_abort"])
def test_denial_and_plan_mode_beat_the_tools_an_agent_may_use(denial: Decision) -> None:
    grants = grants_of_record("ada", ["shell", "*"])
    assert Policy(rules=(Rule("shell", denial),)).verdict(SHELL, proposal(), "ask", grants).decision == denial
    assert Policy().verdict(SHELL, proposal(), "plan", grants).decision == "deny_continue"
    assert Policy().verdict(EDIT, proposal(), "ask", grants).decision == "ask"

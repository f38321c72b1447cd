"""Permission questions as requests, and answers in the program's words."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from palaver.backends.claude.approvals import (
    command_grant,
    find_covering,
    grants_of,
    offers,
    permission_result,
    request_of,
)
from palaver.backends.claude.process import Ask
from palaver.schema.commands import Answer
from palaver.schema.events import RequestOpened, RequestResolved

sdk = pytest.importorskip("claude_agent_sdk", reason="pip install 'palaver[claude]'")

QUESTIONS = {
    "questions": [
        {"question": "Which?", "header": "Tide", "options": [{"label": "Ebb"}, {"label": "Flood"}], "multiSelect": True}
    ]
}


async def asked(tool: str = "Bash", given: dict[str, Any] | None = None, *suggested: Any) -> Ask:
    suggestions = [sdk.PermissionUpdate.from_dict(one) for one in suggested]
    context = sdk.ToolPermissionContext(suggestions=suggestions, tool_use_id="toolu_1")
    return Ask(tool, given or {"command": "touch a"}, context, asyncio.get_running_loop().create_future())


def rule(content: str, behavior: str = "allow", tool: str = "WebFetch") -> dict[str, Any]:
    return {
        "type": "addRules",
        "rules": [{"toolName": tool, "ruleContent": content}],
        "behavior": behavior,
        "destination": "localSettings",
    }


def opened(ask: Ask, root: Path = Path("/p"), *, nested: bool = False) -> RequestOpened:
    return request_of(ask, request="r", call="c", agent="claude", root=root, nested=nested)


def yes(**more: Any) -> RequestResolved:
    return RequestResolved(request="r", status="answered", verdict="allow", **more)


def allowed(ask: Ask, resolved: RequestResolved) -> Any:
    told = permission_result(ask, resolved)
    assert told.behavior == "allow"
    return told


def refused(ask: Ask, resolved: RequestResolved) -> Any:
    told = permission_result(ask, resolved)
    assert told.behavior == "deny"
    return told


async def test_command_is_an_approval_that_shows_what_runs() -> None:
    request = opened(await asked(given={"command": "rm -rf x\u202e\necho"}))
    assert request.kind == "approval"
    assert request.title == "Run rm -rf x⟨202E⟩"
    assert request.preview is not None
    assert "\u202e" not in request.preview
    assert request.hash
    assert request.scopes == ("once", "conversation")


async def test_hash_differs_with_the_arguments() -> None:
    first, second = await asked(given={"command": "a"}), await asked(given={"command": "b"})
    assert opened(first).hash != opened(second).hash


async def test_write_shows_what_it_replaces(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("high\n")
    request = opened(await asked("Write", {"file_path": str(tmp_path / "a.txt"), "content": "low\n"}), tmp_path)
    assert request.title == "Write a.txt"
    assert request.preview is not None
    assert "-high" in request.preview
    assert "+low" in request.preview


async def test_subagents_wish_says_whose_it_is() -> None:
    assert (opened(await asked(), nested=True).title or "").startswith("Subagent: ")


HOST = {"url": "http://tide.example/"}


async def test_lasting_yes_holds_for_the_session_and_never_reaches_a_settings_file() -> None:
    ask = await asked("WebFetch", HOST, rule("domain:tide.example"))
    assert [offer.match for offer in offers(ask, Path("/p"))] == ["domain:tide.example"]
    assert opened(ask).scopes == ("once", "conversation")
    told = allowed(ask, yes(scope="conversation"))
    assert [update.destination for update in told.updated_permissions] == ["session"]
    (grant,) = grants_of(ask, yes(scope="conversation"), "claude")
    assert (grant.tool, grant.match, grant.scope) == ("WebFetch", "domain:tide.example", "conversation")


@pytest.mark.parametrize("tool", ["Bash", "PowerShell"])
async def test_lasting_yes_to_a_command_is_a_grant_of_ours_and_teaches_the_program_nothing(tool: str) -> None:
    ask = await asked(tool, {"command": "npm run build"}, rule("npm run *", tool=tool), rule("npm:*", tool=tool))
    request = opened(ask)
    assert [offer.match for offer in request.offers] == ["npm run build"]
    assert allowed(ask, yes(scope="conversation")).updated_permissions is None
    assert grants_of(ask, yes(scope="conversation"), "claude") == []
    grant = command_grant(yes(scope="conversation"), request)
    assert grant is not None
    assert (grant.tool, grant.match, grant.scope) == ("shell", "npm run build", "conversation")


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"scope": "conversation", "offer": 5},
        {"scope": "agent", "offer": -1},
        {"scope": "agent", "input": {"command": "b"}},
    ],
)
async def test_yes_to_a_command_for_once_or_in_other_words_grants_nothing(more: dict[str, Any]) -> None:
    assert command_grant(yes(**more), opened(await asked())) is None


async def test_suggestion_to_deny_is_no_offer() -> None:
    assert offers(await asked("WebFetch", HOST, rule("domain:tide.example", "deny")), Path("/p")) == ()


@pytest.mark.parametrize("more", [{}, {"scope": "conversation", "offer": 5}, {"scope": "conversation", "offer": -1}])
async def test_yes_for_once_or_to_no_offer_teaches_nothing(more: dict[str, Any]) -> None:
    ask = await asked("WebFetch", HOST, rule("domain:tide.example"))
    assert allowed(ask, yes(**more)).updated_permissions is None
    assert grants_of(ask, yes(**more), "claude") == []


async def test_edited_arguments_are_what_runs_and_teach_nothing() -> None:
    ask = await asked("WebFetch", HOST, rule("domain:tide.example"))
    told = allowed(ask, yes(scope="conversation", input={"url": "http://ebb.example/"}))
    assert told.updated_input == {"url": "http://ebb.example/"}
    assert told.updated_permissions is None


async def test_standing_yes_covers_the_same_rule_only() -> None:
    ask = await asked("WebFetch", HOST, rule("domain:tide.example"))
    assert find_covering(ask, {("WebFetch", "domain:tide.example")}) == 0
    assert find_covering(ask, {("WebFetch", "domain:ebb.example")}) is None
    assert find_covering(ask, {("Write", "domain:tide.example")}) is None
    assert find_covering(ask, set()) is None


@pytest.mark.parametrize("status", ["expired", "cancelled", "superseded"])
async def test_whatever_is_no_answer_is_a_no(status: Any) -> None:
    told = refused(await asked(), RequestResolved(request="r", status=status))
    assert not told.interrupt


async def test_no_that_stops_interrupts() -> None:
    told = refused(
        await asked(), RequestResolved(request="r", status="answered", verdict="deny", then="stop", text="not now")
    )
    assert told.interrupt
    assert "not now" in told.message


async def test_question_keeps_its_options_and_gives_the_answers_back() -> None:
    ask = await asked("AskUserQuestion", QUESTIONS)
    request = opened(ask)
    assert request.kind == "question"
    assert [option.label for option in request.questions[0].options] == ["Ebb", "Flood"]
    assert request.questions[0].multi_select
    told = allowed(ask, yes(answers=(Answer(question_index=0, selected=("Ebb",), custom_text="and wind"),)))
    assert told.updated_input["answers"] == {"Which?": "Ebb, and wind"}
    assert told.updated_input["questions"] == QUESTIONS["questions"]


async def test_question_of_the_program_with_a_single_option_is_shown_as_it_is() -> None:
    question = {"question": "Shall we sail?", "header": "Tide", "options": [{"label": "Aye"}], "multiSelect": False}
    request = opened(await asked("AskUserQuestion", {"questions": [question]}))
    assert [option.label for option in request.questions[0].options] == ["Aye"]

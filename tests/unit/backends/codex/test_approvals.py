"""What Codex asks, in a person's words, and what a person says, in Codex's."""

from pathlib import Path
from typing import Any

import pytest

from palaver.backends.codex.approvals import Asked, request_of
from palaver.backends.codex.events import ToolCall
from palaver.schema.commands import Answer
from palaver.schema.events import RequestResolved

PROJECT = Path("/project")


def put(method: str, params: dict[str, Any], call: ToolCall | None = None) -> Asked:
    found = request_of(method, params, call, request="r", agent="codex", project=PROJECT, sandbox="box")
    assert found is not None
    return found


def command(text: str = "make test", **more: Any) -> Asked:
    params = {"itemId": "x", "command": f"/bin/bash -lc '{text}'", "cwd": "/project", **more}
    return put("item/commandExecution/requestApproval", params)


def patch(*paths: str) -> Asked:
    changes = [{"path": path, "kind": {"type": "add"}, "diff": "a\n"} for path in paths]
    item = {"type": "fileChange", "id": "x", "changes": changes}
    return put("item/fileChange/requestApproval", {"itemId": "x"}, ToolCall("c", "apply_patch", {}, item))


def answer(**fields: Any) -> RequestResolved:
    return RequestResolved(request="r", **{"status": "answered", **fields})


@pytest.mark.parametrize(
    ("resolved", "decision"),
    [
        (answer(verdict="allow"), "accept"),
        (answer(verdict="allow", scope="conversation"), "accept"),
        (answer(verdict="deny"), "decline"),
        (answer(verdict="deny", then="stop"), "cancel"),
        (answer(status="expired", verdict="deny"), "decline"),
        (answer(status="cancelled"), "decline"),
        (answer(status="superseded"), "decline"),
    ],
)
def test_decision_is_said_in_codex_words(resolved: RequestResolved, decision: str) -> None:
    assert command().answer(resolved) == {"decision": decision}
    assert patch("/project/a").answer(resolved) == {"decision": decision}


def test_command_is_shown_plain_with_its_reason_and_bound_by_a_hash() -> None:
    opened = command("make test", reason="needs the network").opened
    assert (opened.tool, opened.input) == ("shell", {"command": "make test"})
    assert (opened.title, opened.preview, opened.risk) == ("Run make test", "make test", "needs the network")
    assert opened.hash != command("make tests").opened.hash


def test_change_that_is_cut_in_the_preview_is_whole_among_the_arguments() -> None:
    changes = [{"path": "/project/a", "kind": {"type": "add"}, "diff": "line\n" * 40_000 + "the end"}]
    item = {"type": "fileChange", "id": "x", "changes": changes}
    call = ToolCall("c", "apply_patch", {}, item)
    opened = put("item/fileChange/requestApproval", {"itemId": "x", "grantRoot": "/"}, call).opened
    assert opened.input == {"changes": changes, "grantRoot": "/"}


def test_characters_that_deceive_the_eye_are_written_out() -> None:
    assert "⟨202E⟩" in (command("echo \u202etxt.exe").opened.preview or "")


def test_patch_names_every_file_it_touches() -> None:
    assert patch("/project/a", "/etc/passwd").paths == ("/project/a", "/etc/passwd")
    move = {"path": "/project/a", "kind": {"type": "update", "move_path": "/etc/b"}, "diff": ""}
    call = ToolCall("c", "apply_patch", {}, {"type": "fileChange", "id": "x", "changes": [move]})
    assert put("item/fileChange/requestApproval", {"itemId": "x"}, call).paths == ("/project/a", "/etc/b")
    strange = ToolCall("c", "apply_patch", {}, {"type": "fileChange", "id": "x", "changes": [move, 7]})
    assert put("item/fileChange/requestApproval", {"itemId": "x"}, strange).paths == ()


def test_questions_are_put_and_answered_by_their_ids() -> None:
    question = {"id": "q", "header": "H", "question": "Which?", "options": [{"label": "A", "description": "a"}]}
    other = {"id": "p", "header": "", "question": "Why?", "options": None}
    found = put("item/tool/requestUserInput", {"itemId": "x", "questions": [question, other]})
    assert found.opened.kind == "question"
    assert [one.question for one in found.opened.questions] == ["Which?", "Why?"]
    answers = (Answer(question_index=0, selected=("A",)), Answer(question_index=1, custom_text="Because"))
    assert found.answer(answer(answers=answers)) == {
        "answers": {"q": {"answers": ["A"]}, "p": {"answers": ["Because"]}}
    }
    assert found.answer(answer(status="cancelled")) == {"answers": {}}
    assert found.answer(answer(answers=(Answer(question_index=9),))) == {"answers": {}}


def test_permissions_are_given_for_a_turn_or_the_session() -> None:
    wanted = {"network": {"enabled": True}}
    found = put("item/permissions/requestApproval", {"itemId": "x", "permissions": wanted, "reason": "to fetch"})
    assert found.answer(answer(verdict="allow")) == {"permissions": wanted, "scope": "turn"}
    assert found.answer(answer(verdict="allow", scope="conversation")) == {"permissions": wanted, "scope": "session"}
    assert found.answer(answer(verdict="deny")) == {"permissions": {}, "scope": "turn"}


def test_server_of_tools_gets_a_yes_but_no_form() -> None:
    simple = {"serverName": "tides", "message": "May I?", "mode": "form", "requestedSchema": {"properties": {}}}
    found = put("mcpServer/elicitation/request", simple)
    assert found.answer(answer(verdict="allow"))["action"] == "accept"
    assert found.answer(answer(verdict="deny")) == {"action": "decline"}
    form = {**simple, "requestedSchema": {"properties": {"name": {"type": "string"}}}}
    assert (
        request_of("mcpServer/elicitation/request", form, None, request="r", agent="a", project=PROJECT, sandbox="")
        is None
    )


def test_unknown_request_is_nothing_a_person_could_answer() -> None:
    assert request_of("planet/align", {}, None, request="r", agent="a", project=PROJECT, sandbox="") is None

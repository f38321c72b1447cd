"""Modes and records, in the words of Codex's settings."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palaver.backends.codex.modes import Conduct, conduct_of
from palaver.schema.records import AgentRecord, McpServer
from tests.provider.turn import MemoryTurn

PROJECT = Path("/project")


def turn(params: dict[str, Any] | None = None, **fields: Any) -> MemoryTurn:
    agent = AgentRecord(id="codex", name="Codex", **fields)
    return MemoryTurn("Hello", project=PROJECT, agent=agent, params=params)


def conduct(turn: MemoryTurn) -> Conduct:
    return conduct_of(turn, full_enabled=True)


@pytest.mark.parametrize(
    ("mode", "policy", "sandbox"),
    [
        ("plan", "never", "read-only"),
        ("ask", "untrusted", "workspace-write"),
        ("accept_edits", "untrusted", "workspace-write"),
        ("auto", "on-request", "workspace-write"),
        ("full", "never", "danger-full-access"),
        ("a mode of tomorrow", "untrusted", "workspace-write"),
    ],
)
def test_mode_says_what_codex_asks_and_where_it_works(mode: str, policy: str, sandbox: str) -> None:
    given = conduct(turn({"mode": mode})).of_thread()
    assert (given["approvalPolicy"], given["sandbox"], given["cwd"]) == (policy, sandbox, "/project")


def test_mode_that_the_server_does_not_allow_asks() -> None:
    assert conduct_of(turn({"mode": "full"}), full_enabled=False).mode == "ask"


def test_conversation_has_a_word_before_its_agent() -> None:
    found = conduct(turn({"model": "m2"}, model="m1", mode="full", system_prompt="Be brief."))
    assert (found.model, found.mode, found.instructions) == ("m2", "full", "Be brief.")


def test_what_did_not_change_is_not_said_again() -> None:
    before = conduct(turn())
    assert before.of_turn(before, "m") == {"summary": "auto"}
    changed = conduct(turn({"mode": "full", "reasoning_effort": "high"})).of_turn(before, "m")
    assert changed["sandboxPolicy"] == {"type": "dangerFullAccess"}
    assert changed["approvalPolicy"] == "never"
    assert changed["effort"] == "high"


def test_plan_mode_is_entered_and_left() -> None:
    asking, planning = conduct(turn()), conduct(turn({"mode": "plan"}))
    assert planning.of_turn(planning, "m")["collaborationMode"]["mode"] == "plan"
    assert asking.of_turn(planning, "m")["collaborationMode"]["mode"] == "default"
    assert "collaborationMode" not in planning.of_turn(asking, None), "Codex wants a model named with it"


def test_tool_servers_are_named_as_codex_names_them() -> None:
    servers = (
        McpServer(name="near", command=("tides", "--all"), environment={"A": "b"}),
        McpServer(name="far", url="https://tides.invalid/mcp", headers={"H": "v"}),
    )
    assert conduct(turn(mcp_servers=servers)).of_thread()["config"]["mcp_servers"] == {
        "near": {"command": "tides", "args": ["--all"], "env": {"A": "b"}},
        "far": {"url": "https://tides.invalid/mcp", "http_headers": {"H": "v"}},
    }


def test_folder_is_untrusted_for_codex_unless_a_person_trusted_it() -> None:
    asked = replace(conduct(turn()), cwd="/repository/part", untrusted=("/repository/part", "/repository", "/"))
    untrusted, trusted = {"trust_level": "untrusted"}, {"trust_level": "trusted"}
    said = asked.of_thread()["config"]["projects"]
    assert said == {"/repository/part": untrusted, "/repository": untrusted, "/": untrusted}
    said = replace(asked, trusted=("/repository/part", "/repository"), untrusted=("/",)).of_thread()["config"][
        "projects"
    ]
    assert said == {"/repository/part": trusted, "/repository": trusted, "/": untrusted}

"""Agents in files: what may be said, and what is told of a file that cannot be used."""

from pathlib import Path

import pytest

from palaver.agents.records import parse_agent, read_agents
from palaver.schema.records import McpServer, PolicyRule

GARDENER = """\
---
name: The Gardener
description: Digs and sows
model: small
fallbacks: [tiny]
tools: read, list, shell
mode: accept_edits
spend_limit_usd: 2.5
knowledge: false
mcp_servers:
  tools-shed:
    command: node
    args: [shed.js, --all]
    env: {DEPTH: "2"}
  weather:
    url: https://weather.example/mcp
    trusted: true
policy:
  - {tool: shell, match: "rm *", decision: deny_abort}
params: {temperature: 0.2}
---
You are a gardener.

Dig deep.
"""


def test_agent_is_read_whole() -> None:
    agent = parse_agent("gardener", GARDENER)
    assert (agent.id, agent.name, agent.description) == ("gardener", "The Gardener", "Digs and sows")
    assert (agent.model, agent.fallbacks, agent.mode) == ("small", ("tiny",), "accept_edits")
    assert agent.system_prompt == "You are a gardener.\n\nDig deep."
    assert agent.tools == ("read", "list", "shell")
    assert (agent.spend_limit_usd, agent.knowledge, agent.params) == (2.5, False, {"temperature": 0.2})
    assert agent.policy == (PolicyRule(tool="shell", match="rm *", decision="deny_abort"),)
    assert agent.mcp_servers == (
        McpServer(name="tools-shed", command=("node", "shed.js", "--all"), environment={"DEPTH": "2"}),
        McpServer(name="weather", url="https://weather.example/mcp", trusted=True),
    )


def test_file_without_front_matter_is_all_prompt() -> None:
    agent = parse_agent("plain", "Be brief.\n")
    assert (agent.name, agent.system_prompt, agent.backend) == ("plain", "Be brief.", "best")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\nname: x\n", "has no end"),
        ("---\ncolour: red\n---\n", "colour"),
        ("---\nspend_limit_usd: much\n---\n", "spend_limit_usd"),
        ("---\nmode: berserk\n---\n", "mode"),
        ("---\nmcp_servers: {a: {}}\n---\n", "needs either"),
        ("---\nmcp_servers: {a: {url: x, command: y}}\n---\n", "needs either"),
        ("---\npolicy: [{tool: shell, decision: maybe}]\n---\n", "decision"),
        ("---\n: : :\n---\n", "cannot be used"),
    ],
)
def test_file_that_cannot_be_used_is_told_by_name_and_field(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_text(text)
    (tmp_path / "good.md").write_text(GARDENER)
    records, (problem,) = read_agents(tmp_path)
    assert [record.id for record in records] == ["good"]
    assert "bad.md" in problem.message
    assert said in problem.message


def test_name_that_is_no_id_is_told(tmp_path: Path) -> None:
    (tmp_path / "two words.md").write_text("Hello")
    records, problems = read_agents(tmp_path)
    assert (records, len(problems)) == ([], 1)


def test_missing_folder_holds_no_agents(tmp_path: Path) -> None:
    assert read_agents(tmp_path / "nowhere") == ([], [])

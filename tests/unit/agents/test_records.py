"""Agents in files: what may be said, and what is told of a file that cannot be used."""

import pytest

from palaver.agents.records import Wrong, parse_agent
from palaver.schema.records import McpServer, PolicyRule

GARDENER = """\
---
name: The Gardener
description: Digs and sows
model: small
fallbacks: [tiny]
tools: read, list, shell
allowed_tools: [read, shell]
mode: accept_edits
spend_limit_usd: 2.5
idle_prompt: Look for weeds.
idle_interval_s: 90
strict_inbox: true
command: [garden, --now]
environment: {SOIL: loam}
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
    assert (agent.tools, agent.allowed_tools) == (("read", "list", "shell"), ("read", "shell"))
    assert (agent.idle_prompt, agent.idle_interval_s, agent.strict_inbox) == ("Look for weeds.", 90, True)
    assert (agent.command, agent.environment) == (("garden", "--now"), {"SOIL": "loam"})
    assert (agent.spend_limit_usd, agent.knowledge, agent.params) == (2.5, False, {"temperature": 0.2})
    assert agent.policy == (PolicyRule(tool="shell", match="rm *", decision="deny_abort"),)
    assert agent.mcp_servers == (
        McpServer(name="tools-shed", command=("node", "shed.js", "--all"), environment={"DEPTH": "2"}),
        McpServer(name="weather", url="https://weather.example/mcp", trusted=True),
    )


def test_file_without_front_matter_is_all_prompt() -> None:
    agent = parse_agent("plain", "Be brief.\n")
    assert (agent.name, agent.system_prompt, agent.backend) == ("plain", "Be brief.", "best")


def test_spellings_of_other_programs_mean_the_same() -> None:
    agent = parse_agent(
        "brought",
        "---\n"
        "mcpServers: {web: {type: http, url: https://web.example/mcp}}\n"
        "allowedTools: Bash, Read, mcp__web__search\n"
        "permissionMode: acceptEdits\n"
        "model: inherit\n"
        "budget: 3\n"
        "command: opencode 'acp now'\n"
        "env: {A: b}\n"
        "color: red\n"
        "x-mine: {anything: 1}\n"
        "---\n",
    )
    assert agent.mcp_servers == (McpServer(name="web", url="https://web.example/mcp"),)
    assert agent.allowed_tools == ("shell", "read", "mcp__web__search")
    assert (agent.mode, agent.model, agent.spend_limit_usd) == ("accept_edits", None, 3)
    assert (agent.command, agent.environment) == (("opencode", "acp now"), {"A": "b"})


def test_field_without_a_value_is_as_if_it_were_not_there() -> None:
    agent = parse_agent("empty", "---\nmodel:\ntools:\nidle_interval_s:\n---\n")
    assert (agent.model, agent.tools, agent.idle_interval_s) == (None, (), None)


@pytest.mark.parametrize(
    ("front", "field", "right"),
    [
        ("name: x", None, "a line `---` is missing"),
        ("colour: red\n---", "colour", "no field of an agent"),
        ("modell: x\n---", "modell", "Did you mean `model`?"),
        ("name: ''\n---", "name", "1 to 200 characters"),
        ("name: '  '\n---", "name", "1 to 200 characters"),
        ("spend_limit_usd: much\n---", "spend_limit_usd", "an amount of US dollars, such as 2.5"),
        ("budget: -1\n---", "spend_limit_usd", "an amount of US dollars"),
        ("budget: .inf\n---", "spend_limit_usd", "an amount of US dollars"),
        ("budget: 1\nspend_limit_usd: 2\n---", "spend_limit_usd", "say the same twice"),
        ("mode: berserk\n---", "mode", "one of plan, ask, accept_edits, auto, full"),
        ("permissionMode: bypassPermissions\n---", "mode", "is `full`"),
        ("idle_interval_s: 0\n---", "idle_interval_s", "at least 1"),
        ("idle_interval_s: soon\n---", "idle_interval_s", "a whole number of seconds"),
        ("strict_inbox: maybe\n---", "strict_inbox", "true or false"),
        ("allowed_tools: ['*']\n---", "allowed_tools", "one by one"),
        ("allowedTools: ['Bash(git:*)']\n---", "allowed_tools", "write a rule"),
        ("tools: {a: b}\n---", "tools", "a list of tools"),
        ("mcp_servers: {a: {}}\n---", "mcp_servers", "needs either"),
        ("mcp_servers: {a: {url: x, command: y}}\n---", "mcp_servers", "needs either"),
        ("mcp_servers: [slack]\n---", "mcp_servers", "holds servers by name"),
        ("policy: [{tool: shell, decision: maybe}]\n---", "policy", "allow, ask, deny_continue, deny_abort"),
        ("params: {temperature: hot}\n---", "params", "between 0 and 2"),
        ("environment: {A: 1}\n---", "environment", "holds texts by name"),
        ('command: "it\'s"\n---', "command", "a program and its arguments"),
        ("backend: two words\n---", "backend", "the name of a backend"),
        (": : :\n---", None, "no YAML"),
        ("- a\n- b\n---", None, "fields, one a line"),
    ],
)
def test_what_cannot_be_used_is_told_by_field_with_what_is_right(front: str, field: str | None, right: str) -> None:
    with pytest.raises(Wrong) as wrong:
        parse_agent("bad", f"---\n{front}\n")
    assert (wrong.value.field, right in str(wrong.value)) == (field, True), wrong.value
    assert field is None or f"`{field}" in str(wrong.value)


def test_name_that_is_no_id_is_told() -> None:
    with pytest.raises(Wrong, match="no spaces"):
        parse_agent("two words", "Hello")

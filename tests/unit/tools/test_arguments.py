"""What models are told of the tools' arguments."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from palaver.tools.agents.plan import PlanTool
from palaver.tools.base import ToolSpec
from palaver.tools.shell.background import Processes
from palaver.tools.shell.sandbox import unsandboxed
from palaver.tools.toolbox import built_in_tools

SPECS = [tool.spec for tool in built_in_tools(unsandboxed(), Processes(lambda: "p1"), lambda: "r1", lambda _: ())]
FIXED = {
    "read": {"path", "offset", "limit"},
    "list": {"path"},
    "glob": {"pattern"},
    "grep": {"pattern", "path"},
    "edit": {"path", "old", "new"},
    "write": {"path", "content"},
    "patch": {"patch"},
    "shell": {"command", "timeout_s", "background"},
    "shell_output": {"process", "offset"},
    "shell_stop": {"process"},
    "fetch": {"url"},
    "search_conversations": {"query", "limit"},
    "remember": {"title", "text"},
    "plan": {"summary", "items", "text"},
    "ask_user": {"questions"},
    "loop_yield_turn": set[str](),
    "finish_task": {"summary"},
    "task": {"agent", "prompt"},
    "agents_message": {"agentId", "content", "session", "mode", "timeout"},
}


def schemas_in(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for part in schema.values():
            yield from schemas_in(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from schemas_in(part)


def test_names_and_arguments_are_the_promised_ones() -> None:
    assert {spec.name: set(spec.parameters["properties"]) for spec in SPECS} == FIXED


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_schema_is_whole_and_plain(spec: ToolSpec) -> None:
    assert spec.description
    assert spec.parameters["type"] == "object"
    for part in schemas_in(spec.parameters):
        assert not {"$ref", "anyOf", "$defs"} & part.keys(), json.dumps(part)
        assert part.get("type") != "null"


def test_schema_of_nested_arguments_names_their_fields() -> None:
    plan = PlanTool(lambda: "r1").spec.parameters
    assert set(plan["properties"]["items"]["items"]["properties"]) == {"title", "description", "status"}

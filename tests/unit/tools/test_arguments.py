"""What models are told of the tools' arguments."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from palaver.tools.ask_user import AskUser
from palaver.tools.background import Processes
from palaver.tools.base import ToolSpec
from palaver.tools.edit import Edit
from palaver.tools.fetch import Fetch
from palaver.tools.glob import Glob
from palaver.tools.grep import Grep
from palaver.tools.list import List
from palaver.tools.patch import Patch
from palaver.tools.plan import PlanTool
from palaver.tools.processes import ShellOutput, ShellStop
from palaver.tools.read import Read
from palaver.tools.shell import Shell
from palaver.tools.turn_end import FinishTask, YieldTurn
from palaver.tools.write import Write

PROCESSES = Processes(lambda: "p1")
SPECS = [
    tool.spec
    for tool in (
        *(Read(), List(), Glob(), Grep(), Edit(), Write(), Patch(), Shell(), ShellOutput(PROCESSES)),
        *(ShellStop(PROCESSES), Fetch(), PlanTool(lambda: "r1"), AskUser(), YieldTurn(), FinishTask()),
    )
]
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
    "plan": {"summary", "items", "text"},
    "ask_user": {"questions"},
    "loop_yield_turn": set[str](),
    "finish_task": {"summary"},
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
    assert spec.parameters["type"] == "object"
    for part in schemas_in(spec.parameters):
        assert not {"$ref", "anyOf", "$defs"} & part.keys(), json.dumps(part)
        assert part.get("type") != "null"


def test_schema_of_nested_arguments_names_their_fields() -> None:
    plan = PlanTool(lambda: "r1").spec.parameters
    assert set(plan["properties"]["items"]["items"]["properties"]) == {"title", "description", "status"}

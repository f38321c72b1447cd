"""Parameters: numbers are brought into range, wrong types are refused by name, null clears, strangers are kept."""

from typing import Any

import pytest

from palaver.core.decide.decision import Refusal
from palaver.core.params import check_patch
from palaver.schema.commands import SetParams
from tests.unit.core.stage import after, asked, events, refusal


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("temperature", 3, 2),
        ("temperature", -0.5, 0),
        ("temperature", 0.7, 0.7),
        ("frequency_penalty", -9, -2),
        ("frequency_penalty", 9, 2),
        ("max_tokens", 0, 1),
        ("max_tokens", 5_000_000, 1_000_000),
        ("max_tokens", 12.0, 12),
        ("mode", "agent", "ask"),
        ("mode", "plan", "plan"),
        ("model", " small ", "small"),
        ("knowledge", False, False),
        ("fallbacks", ["a", "b"], ["a", "b"]),
        ("request_timeout_s", 0, 0),
        ("tool_calls_per_minute", -3, 0),
        ("tool_calls_per_minute", 30, 30),
        ("temperature", None, None),
        ("colour", {"any": "thing"}, {"any": "thing"}),
    ],
)
def test_parameter_is_kept_as(name: str, given: Any, kept: Any) -> None:
    assert check_patch({name: given}) == {name: kept}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("temperature", "hot"),
        ("temperature", True),
        ("temperature", float("nan")),
        ("max_tokens", 1.5),
        ("max_tokens", "many"),
        ("tool_calls_per_minute", 1.5),
        ("tool_calls_per_minute", "many"),
        ("mode", "berserk"),
        ("mode", 3),
        ("model", ""),
        ("model", 7),
        ("knowledge", "yes"),
        ("fallbacks", "one"),
        ("ide_tools", [{"description": "nameless"}]),
        ("ide_tools", [{"name": "open", "parameters": 3}]),
        ("policy", [{"tool": "shell", "decision": "maybe"}]),
    ],
)
def test_parameter_of_the_wrong_kind_is_refused_by_its_name(name: str, given: Any) -> None:
    wrong = check_patch({"title": "kept out too", name: given})
    assert isinstance(wrong, Refusal)
    assert wrong.message.startswith(f"`{name}` ")
    assert wrong.details == {"param": name}


def test_parameters_apply_at_once_while_the_agent_works() -> None:
    working = after(*asked())
    changed = after(*events(working, SetParams(patch={"temperature": 9, "seed": 4})), state=working)
    assert changed.params == {"temperature": 2, "seed": 4}
    cleared = after(*events(changed, SetParams(patch={"temperature": None})), state=changed)
    assert cleared.params == {"seed": 4}
    assert cleared.turn is not None


def test_wrong_parameter_changes_nothing() -> None:
    assert refusal(after(), SetParams(patch={"mode": "berserk", "seed": 4})).code == "invalid"

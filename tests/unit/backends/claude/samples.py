"""Recorded lines of the real program, by scenario."""

from pathlib import Path
from typing import Any

import msgspec

from palaver.backends.claude.events import Reading
from palaver.schema.events import KnownEvent

SAMPLES = Path(__file__).parents[3] / "cli" / "samples" / "claude.jsonl"


def lines(scenario: str) -> list[dict[str, Any]]:
    """What the program printed in it, without the control protocol."""
    recorded = [msgspec.json.decode(line) for line in SAMPLES.read_bytes().splitlines()]
    found = [one["msg"] for one in recorded if one["scenario"] == scenario and one["dir"] == "out"]
    assert found, f"no such scenario: {scenario}"
    return [line for line in found if not line["type"].startswith("control_")]


def reading(**more: Any) -> Reading:
    numbers = iter(range(1, 1000))
    return Reading(
        lambda: f"id-{next(numbers)}", lambda at, cost_usd: {"by": "claude", "at": at, "cost_usd": cost_usd}, **more
    )


def read(scenario: str, **more: Any) -> tuple[Reading, list[KnownEvent]]:
    one = reading(**more)
    return one, [event for line in lines(scenario) for event in one.read(line)]

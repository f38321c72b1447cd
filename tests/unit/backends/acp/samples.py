"""Recorded sessions of agents, played through the translation into a turn in memory."""

from pathlib import Path
from typing import Any

import msgspec

from palaver.backends.acp.events import Translation, usage_of
from palaver.schema.events import KnownEvent
from tests.provider.turn import MemoryTurn

SAMPLES = Path(__file__).parents[3] / "cli" / "samples"


def lines(agent: str, scenario: str) -> list[tuple[str, dict[str, Any]]]:
    told = (msgspec.json.decode(line) for line in (SAMPLES / f"acp-{agent}.jsonl").read_bytes().splitlines())
    return [(one["dir"], one["msg"]) for one in told if one["scenario"] == scenario]


async def played(agent: str, scenario: str, *, allowed: bool = True) -> MemoryTurn:
    """The scenario to its end. A permission is answered as the sample's person did."""
    turn = MemoryTurn("said")
    said = Translation(turn.new_id)
    for direction, message in lines(agent, scenario):
        if direction == "out":
            for event in _events(said, message, allowed):
                turn.accept(event)
            await turn.committed()
    return turn


def _events(said: Translation, message: dict[str, Any], allowed: bool) -> list[KnownEvent]:
    match message:
        case {"method": "session/update", "params": {"update": update}}:
            return said.update(update)
        case {"method": "session/request_permission", "params": {"toolCall": told}}:
            call, events = said.asking(told)
            answer = said.start(call, "request:r", "r") if allowed else said.refuse(call, "declined")
            return [*events, *answer]
        case {"result": {"stopReason": reason} as result}:
            return said.finish(reason, usage_of(result.get("usage")), None, {"by": "acp:x", "session": "s"})
        case _:
            return []

"""A reader of the bus that stops reading: the others hear everything, little is held for it, and it is told once."""

from pathlib import Path

import pytest

from tests.flows.faces.bus.listening import Event, chat, is_a, listening, of
from tests.flows.faces.stalled import (
    BUFFER_BYTES,
    FLOOD,
    ROUND_CHARS,
    ROUNDS,
    held,
    is_told_around_a_gap,
    small_rings,
    stalled,
    waits,
)
from tests.flows.served import serving

__all__ = ["small_rings"]


@pytest.mark.usefixtures("small_rings")
async def test_reader_that_stops_costs_little_and_ends_in_one_resync(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, FLOOD, send_buffer_bytes=BUFFER_BYTES) as server,
        stalled(server, "/api/events") as deaf,
        listening(server) as bus,
    ):
        heard: list[Event] = []
        for _ in range(ROUNDS):
            await chat(server, "Go on.")
            heard += await bus.until(is_a("run", "outcome"))
        await waits(server)
        held(server, "bus")
        # From here on it reads again, and is told what happens.
        told = await deaf.until(is_a("run", "resync"))
        last = await chat(server, "And again.")
        ended = is_a("run", "outcome", session_id=last["session_id"])
        heard += await bus.until(ended)
        told += await deaf.until(ended)
    resyncs = of(told, "run", "resync")
    assert len(resyncs) == 1
    assert resyncs[0]["data"]["reason"] == "lagged"
    assert resyncs[0]["data"]["lagged_count"] > 0
    is_told_around_a_gap(told, resyncs, heard)
    # The one who read was told all of it, in order.
    assert of(heard, "run", "resync") == []
    assert sum(len(event["text"]) for event in of(heard, "token")) == (ROUNDS + 1) * ROUND_CHARS
    assert [event["seq"] for event in heard] == sorted({event["seq"] for event in heard})

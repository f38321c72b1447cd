"""A subscriber of a chat that stops reading: the others hear everything, little is held for it, one snapshot ends it."""

from pathlib import Path

import pytest

from tests.flows.faces.chats.chat import following, types
from tests.flows.faces.stalled import BUFFER_BYTES, FLOOD, ROUND_CHARS, ROUNDS, held, small_rings, stalled, waits
from tests.flows.served import serving
from tests.unit.faces.chats.client import ChatsClient

__all__ = ["small_rings"]


@pytest.mark.usefixtures("small_rings")
async def test_subscriber_that_stops_costs_little_and_ends_in_one_snapshot(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, FLOOD, send_buffer_bytes=BUFFER_BYTES) as server,
        following(server, "c") as quick,
        stalled(server, "/v1/chats/subscribe?chat_id=c") as deaf,
    ):
        told = await deaf.until(lambda frame: frame["type"] == "snapshot")
        for _ in range(ROUNDS):
            await quick.say("Go on.")
        await waits(server)
        held(server, "chats")
        # From here on it reads again, and is told what happens.
        told += await deaf.until(lambda frame: frame["type"] == "snapshot")
        await quick.say("And again.")
        told += await deaf.until(lambda frame: frame["seq"] == quick.client.seq)
    assert types(told).count("snapshot") == 2
    # The client checks that between two snapshots no number is missing.
    slow = ChatsClient()
    for frame in told:
        slow.apply(frame)
    assert (slow.messages, slow.thread, slow.runtime) == (
        quick.client.messages,
        quick.client.thread,
        quick.client.runtime,
    )
    assert types(quick.frames).count("snapshot") == 1
    assert [text for role, text in quick.texts if role == "assistant"] == ["x" * ROUND_CHARS] * (ROUNDS + 1)
    assert len(told) < len(quick.frames)

"""A client of the socket that stops reading: the others hear everything, and it is told all of it once it reads again."""

from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from tests.flows.faces.socket.client import Client, Frame, of, rendered, subscribed
from tests.flows.faces.stalled import (
    BUFFER_BYTES,
    FLOOD,
    ROUND_CHARS,
    ROUNDS,
    held,
    small_rings,
    small_socket,
    waits,
)
from tests.flows.served import serving

__all__ = ["small_rings"]


@pytest.mark.usefixtures("small_rings")
async def test_client_that_stops_costs_little_and_goes_on_without_a_gap_after_one_resync(tmp_path: Path) -> None:
    async with serving(tmp_path, FLOOD, send_buffer_bytes=BUFFER_BYTES) as server:
        session = await server.create()
        headers = {"Authorization": f"Bearer {server.token}"}
        url = server.url.replace("http://", "ws://") + "/ws"
        async with (
            # One message is all that this client takes in before it stops reading.
            connect(
                url, sock=await small_socket(server), additional_headers=headers, max_queue=1, ping_interval=None
            ) as connection,
            subscribed(server, session) as quick,
        ):
            deaf = Client(connection)
            await deaf.hello(session)
            heard: list[Frame] = []
            for _ in range(ROUNDS):
                await server.send(session, "Go on.")
                heard += await quick.until("text_done")
            await waits(server)
            held(server, "socket")
            # From here on it reads again, and is told what happens.
            told = await deaf.until("resync")
            await server.send(session, "And again.")
            heard += await quick.until("text_done")
            told += await deaf.until(lambda frame: frame["sequence"] >= heard[-1]["sequence"])
    (resync,) = of(told, "resync")
    assert resync["sessionId"] == session
    assert resync["reason"] == "lagged"
    assert resync["laggedCount"] > 0
    # What came before it and what comes after it join without a gap, in the order of the log.
    assert [frame["sequence"] for frame in told] == sorted(frame["sequence"] for frame in told)
    rest = of(told, *{frame["type"] for frame in told} - {"resync", "session_updated"})
    assert rendered(rest) == rendered(heard)
    assert [frame["text"] for frame in of(heard, "text_done")] == ["x" * ROUND_CHARS] * (ROUNDS + 1)
    assert of(heard, "resync") == []

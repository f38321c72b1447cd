"""Whoever asked and stops reading: the others hear everything, and it is told all of it once it reads again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.backends.script.script import Say, Step, Tool, Wait
from tests.flows.faces.stalled import BUFFER_BYTES, ROUND_CHARS, ROUNDS, held, small_rings, stalled, waits
from tests.flows.faces.stream.client import rejoined, text_of, until
from tests.flows.served import serving

__all__ = ["small_rings"]

LINE = "x" * ROUND_CHARS


def steps() -> Iterator[Step]:
    """An answer of many messages, each of which waits until the one before it was read."""
    for number in range(ROUNDS):
        yield from (Say(LINE, chunk=10_000), Tool("read", {"path": "a"}, output=str(number)), Wait(f"gate {number}"))
    yield Say("The end.")


def whole_messages(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [data for data in told if data.get("type") != "stream_event"]


def rendered(told: list[dict[str, Any]]) -> dict[tuple[str, int], str]:
    """The texts of all blocks as a client puts them together: a block that begins again begins anew."""
    texts: dict[tuple[str, int], str] = {}
    message = ""
    for event in (data["event"] for data in told if data.get("type") == "stream_event"):
        if event["type"] == "message_start":
            message = event["message"]["id"]
        elif event["type"] == "content_block_start":
            texts[message, event["index"]] = ""
        elif event["type"] == "content_block_delta":
            texts[message, event["index"]] += event["delta"].get("text", "")
    return texts


@pytest.mark.usefixtures("small_rings")
async def test_asker_that_stops_costs_little_and_is_told_all_of_it_after_one_word(tmp_path: Path) -> None:
    async with serving(tmp_path, tuple(steps()), send_buffer_bytes=BUFFER_BYTES) as server:
        session = await server.create()
        body = msgspec.json.encode({"message": "Go on.", "sessionId": session})
        headers = {"Accept": "text/event-stream", "Content_Type": "application/json"}
        async with (
            stalled(server, "/api/chat", "POST", body, BUFFER_BYTES, **headers) as deaf,
            rejoined(server, session, partial=True) as quick,
        ):
            heard = []
            for number in range(ROUNDS):
                heard += await until(quick, "message", type="user")
                await server.agent.reached(f"gate {number}")
                if number < ROUNDS - 1:
                    server.agent.open_gate(f"gate {number}")
            await waits(server)
            held(server, "stream")
            server.agent.open_gate(f"gate {ROUNDS - 1}")
            heard += await until(quick, "done")
            blocks = [await deaf.next()]
            while blocks[-1].get("event") != "done":
                blocks.append(await deaf.next())
    comments = [block[""] for block in blocks if "" in block]
    assert [word for word in comments if word == "behind"] == ["behind"]
    told = [msgspec.json.decode(block["data"]) for block in blocks if "data" in block]
    assert whole_messages(told) == whole_messages([data for _, data, _ in heard])
    # The fragments may have been joined in the log meanwhile; they render the same.
    assert rendered(told) == rendered([data for _, data, _ in heard])
    assert text_of(heard) == "\n".join([LINE] * ROUNDS + ["The end."])

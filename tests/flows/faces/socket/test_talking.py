"""Talking over the socket: what each frame of the contract brings about, and what everybody else sees of it."""

from pathlib import Path

from tests.flows.engine import engine
from tests.flows.faces.socket.client import of, operation, subscribed


async def test_message_is_answered_in_deltas_and_one_done_a_block(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = (await operation(work.server, "create", 201, title="Talk"))["sessionId"]
        async with subscribed(work.server, session) as one:
            await one.say("text_input", sessionId=session, text="!say Hello there, how are you?", clientMessageId="c-1")
            heard = await one.until("text_done")
    assert "".join(frame["delta"] for frame in of(heard, "text_delta")) == "Hello there, how are you?"
    assert heard[-1]["text"] == "Hello there, how are you?"
    assert len({(frame["responseId"], frame["block"]) for frame in of(heard, "text_delta", "text_done")}) == 1
    assert {frame["sessionId"] for frame in heard} == {session}
    assert [frame["sequence"] for frame in heard] == sorted(frame["sequence"] for frame in heard)

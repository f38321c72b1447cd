"""Stream events of an answer, over every golden log: each message opens, grows and closes in the order that the SDK has."""

from pathlib import Path
from typing import Any

import pytest

from palaver.core.fold.evolve import evolve
from palaver.faces.stream.partial import stream_events
from palaver.schema.events import decode_event
from palaver.schema.view import State, TextBlock

GOLDEN = Path(__file__).parents[3] / "golden"
LOGS = sorted(GOLDEN.glob("*.jsonl"))


class Reader:
    """A client that puts messages together, and takes nothing that is out of order."""

    def __init__(self) -> None:
        self.message: str | None = None
        self.blocks: dict[int, dict[str, Any]] = {}
        self.open: set[int] = set()
        self.texts: dict[str, list[str]] = {}

    def take(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "message_start":
                assert self.message is None
                self.message, self.blocks = event["message"]["id"], {}
            case "content_block_start":
                assert event["index"] not in self.blocks
                self.blocks[event["index"]] = dict(event["content_block"])
                self.open.add(event["index"])
            case "content_block_delta":
                assert event["index"] in self.open
                if event["delta"]["type"] == "text_delta":
                    self.blocks[event["index"]]["text"] += event["delta"]["text"]
            case "content_block_stop":
                self.open.remove(event["index"])
            case "message_delta":
                assert not self.open
            case "message_stop":
                assert self.message is not None
                assert not self.open
                told = [block for _, block in sorted(self.blocks.items()) if block["type"] == "text"]
                self.texts[self.message] = [block["text"] for block in told]
                self.message = None
            case strange:
                raise AssertionError(strange)


@pytest.mark.parametrize("path", LOGS, ids=[path.stem for path in LOGS])
def test_every_golden_log_is_told_in_order_and_whole(path: Path) -> None:
    reader, state = Reader(), State()
    finished: dict[str, list[str]] = {}
    for line in path.read_bytes().splitlines():
        event = decode_event(line)
        for raw in stream_events(event, state):
            reader.take(raw)
        state = evolve(state, event)
        for message in state.messages[-4:]:
            if message.id in reader.texts and message.id not in finished:
                finished[message.id] = [block.text for block in message.blocks if isinstance(block, TextBlock)]
    assert set(finished) <= set(reader.texts)
    if path.stem != "misplaced":  # Texts where calls should be, and the like: only the order can be right there.
        assert {message: reader.texts[message] for message in finished} == finished

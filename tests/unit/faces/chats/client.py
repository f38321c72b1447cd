"""A client of the chats face as its contract describes one: holds what a snapshot said and applies frame after frame.

Must never know more than the contract says; a frame that it cannot place is a failure of the test.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec

Json = dict[str, Any]


def frames_of(written: bytes) -> list[Json]:
    """Frames as they were written, each checked against its envelope."""
    found: list[Json] = []
    for block in written.split(b"\n\n")[:-1]:
        if block.startswith(b":"):
            continue
        number, data = block.split(b"\n")
        frame = msgspec.json.decode(data.removeprefix(b"data: "))
        assert number == f"id: {frame['seq']}".encode()
        found.append(frame)
    return found


@dataclass
class ChatsClient:
    seq: int = -1
    thread: Json = field(default_factory=dict[str, Any])
    runtime: Json = field(default_factory=dict[str, Any])
    messages: list[Json] = field(default_factory=list[Json])
    acks: list[Json] = field(default_factory=list[Json])
    states: list[str] = field(default_factory=list[str])
    """The states it saw, in order."""

    def apply(self, frame: Json) -> None:
        number = frame["seq"]
        assert type(number) is int
        if frame["type"] == "snapshot":
            assert number >= self.seq
            self.thread, self.runtime = dict(frame["thread"]), dict(frame["runtime"])
            self.messages = [dict(message) for message in frame["messages"]]
            self.states.append(self.runtime["state"])
            self.seq = number
            return
        if frame["type"] == "ack":
            self.acks.append(frame)
        # The ack of a command that was refused or is a duplicate uses no number.
        uses_one = frame["type"] != "ack" or (frame["accepted"] and frame["result"]["status"] != "duplicate")
        assert number == self.seq + uses_one, f"a gap before {frame}"
        self.seq = number
        getattr(self, f"_{frame['type']}")({name: frame[name] for name in frame if name not in _ENVELOPE})

    def _at(self, message_id: str) -> int:
        (place,) = [place for place, one in enumerate(self.messages) if one["message_id"] == message_id]
        return place

    def _ack(self, frame: Json) -> None:
        pass

    def _stream_started(self, frame: Json) -> None:
        assert all(one["message_id"] != frame["message_id"] for one in self.messages)
        self.messages.append({"message_id": frame["message_id"], "role": "assistant", "content": ""})

    def _stream_delta(self, frame: Json) -> None:
        message = self.messages[self._at(frame["message_id"])]
        assert frame["ops"]
        for op in frame["ops"]:
            match op:
                case {"op": "append_content", "text": text}:
                    message["content"] += text
                case {"op": "append_reasoning", "text": text}:
                    message["reasoning_content"] = message.get("reasoning_content", "") + text
                case {"op": "set_tool_calls", "tool_calls": calls}:
                    message["tool_calls"] = calls
                case {"op": "set_thinking_blocks", "blocks": blocks}:
                    message["thinking_blocks"] = blocks
                case {"op": "add_citation", "citation": citation}:
                    message["citations"] = [*message.get("citations", []), citation]
                case {"op": "add_server_content_block", "block": block}:
                    message["server_content_blocks"] = [*message.get("server_content_blocks", []), block]
                case {"op": "set_usage", "usage": usage}:
                    message["usage"] = usage
                case {"op": "merge_extra", "extra": extra}:
                    message |= extra
                case _:
                    raise AssertionError(op)

    def _stream_finished(self, frame: Json) -> None:
        self.messages[self._at(frame["message_id"])]["finish_reason"] = frame["finish_reason"]

    def _message_added(self, frame: Json) -> None:
        message = frame["message"]
        known = [place for place, one in enumerate(self.messages) if one["message_id"] == message["message_id"]]
        if known:
            assert known == [frame["index"]]
            self.messages[known[0]] = message
        else:
            assert 0 <= frame["index"] <= len(self.messages)
            self.messages.insert(frame["index"], message)

    def _message_updated(self, frame: Json) -> None:
        self.messages[self._at(frame["message_id"])] = frame["message"]

    def _message_removed(self, frame: Json) -> None:
        del self.messages[self._at(frame["message_id"])]

    def _messages_truncated(self, frame: Json) -> None:
        assert frame["from_index"] < len(self.messages)
        del self.messages[frame["from_index"] :]

    def _thread_updated(self, frame: Json) -> None:
        assert frame
        self.thread = {name: value for name, value in {**self.thread, **frame}.items() if value is not None}

    def _queue_updated(self, frame: Json) -> None:
        assert frame["queue_size"] == len(frame["queued_items"])
        self.runtime |= frame

    def _runtime_updated(self, frame: Json) -> None:
        assert {"state", "is_compressing"} <= frame.keys()
        self.runtime = {name: value for name, value in self.runtime.items() if not name.startswith("compression_")}
        self.runtime |= {"error": None, **frame, "paused": frame["state"] == "paused"}
        self.states.append(frame["state"])

    def _pause_required(self, frame: Json) -> None:
        assert frame["reasons"]
        self.runtime["pause_reasons"] = frame["reasons"]

    def _pause_cleared(self, frame: Json) -> None:
        self.runtime["pause_reasons"] = []


_ENVELOPE = ("chat_id", "seq", "type")

"""Terminal chat over the chats contract: a sequenced subscription to one chat, and commands to it.

    python examples/chats_client.py CHAT_ID [--server URL]

Type a message. /approve and /reject answer a pause, /abort stops, /regenerate answers again, /show prints the chat.
The token is read from $PALAVER_TOKEN or ~/.palaver/token.
"""

import argparse
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class Gap(Exception):
    """A sequence number is missing: only a fresh snapshot tells what it said."""


class Api:
    def __init__(self, server: str, token: str, chat_id: str) -> None:
        self.chats, self.chat_id = f"{server.rstrip('/')}/v1/chats", chat_id
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def subscribe(self) -> Iterator[Json]:
        address = f"{self.chats}/subscribe?chat_id={self.chat_id}"
        with urllib.request.urlopen(urllib.request.Request(address, headers=self.headers)) as stream:
            for line in stream:
                if line.startswith(b"data:"):
                    yield json.loads(line[len(b"data:") :])

    def command(self, kind: str, **fields: Any) -> None:
        body = json.dumps({"type": kind, **fields}).encode()
        address = f"{self.chats}/{self.chat_id}/commands"
        urllib.request.urlopen(urllib.request.Request(address, body, self.headers)).close()


class Chat:
    """State of a chat: the snapshot, and every event after it in order."""

    def __init__(self) -> None:
        self.seq = 0
        self.messages: list[Json] = []
        self.streamed: set[str] = set()
        self.runtime: Json = {}
        self.thread: Json = {}

    def apply(self, event: Json) -> None:
        if event["type"] != "snapshot" and event["seq"] != self.seq + 1:
            raise Gap(f"event {event['seq']} came after {self.seq}")
        self.seq = event["seq"]
        match event:
            case {"type": "snapshot"}:
                self.messages, self.runtime, self.thread = event["messages"], event["runtime"], event["thread"]
            case {"type": "stream_started", "message_id": key}:
                self.streamed.add(key)
                self.put({"message_id": key, "role": "assistant", "content": ""})
            case {"type": "stream_delta", "message_id": key, "ops": ops}:
                for op in ops:
                    apply_op(self.messages[self.index(key)], op)
            case {"type": "message_added" | "message_updated", "message": message}:
                self.put(message)
            case {"type": "message_removed", "message_id": key}:
                del self.messages[self.index(key)]
            case {"type": "messages_truncated", "from_index": index}:
                del self.messages[index:]
            case {"type": "thread_updated"}:
                self.thread |= event
            case {"type": "runtime_updated" | "queue_updated"}:
                self.runtime |= event
            case {"type": "pause_required", "reasons": reasons}:
                self.runtime["pause_reasons"] = reasons

    def index(self, key: str) -> int:
        keys = [message["message_id"] for message in self.messages]
        return keys.index(key) if key in keys else len(keys)

    def put(self, message: Json) -> None:
        """Add a message, or replace the one of the same id: what was streamed comes again as a whole."""
        at = self.index(message["message_id"])
        self.messages[at : at + 1] = [message]


def apply_op(message: Json, op: Json) -> None:
    match op:
        case {"op": "append_content", "text": text}:
            message["content"] = message.get("content", "") + text
        case {"op": "append_reasoning", "text": text}:
            message["reasoning_content"] = message.get("reasoning_content", "") + text
        case {"op": "set_tool_calls", "tool_calls": calls}:
            message["tool_calls"] = calls
        case {"op": "set_thinking_blocks", "blocks": blocks}:
            message["thinking_blocks"] = merge_thinking_blocks(message.get("thinking_blocks", []), blocks)
        case {"op": "add_citation", "citation": citation}:
            message.setdefault("citations", []).append(citation)
        case {"op": "add_server_content_block", "block": block}:
            message.setdefault("server_content_blocks", []).append(block)
        case {"op": "set_usage", "usage": usage}:
            message["usage"] = usage
        case {"op": "merge_extra", "extra": extra}:
            message.setdefault("extra", {}).update(extra)


def merge_thinking_blocks(known: list[Json], new: list[Json]) -> list[Json]:
    """Match by (type, index), then (type, id), then (type, signature); the latest values win."""
    merged = [dict(block) for block in known]
    for block in new:
        same = (
            old
            for key in ("index", "id", "signature")
            for old in merged
            if key in block and (old["type"], old.get(key)) == (block["type"], block[key])
        )
        if old := next(same, None):
            old.update(block)
        else:
            merged.append(dict(block))
    return merged


def show_message(message: Json, streamed: bool = False) -> None:
    if not streamed:
        thought = f"({message['reasoning_content']}) " if message.get("reasoning_content") else ""
        print(f"{message['role']}: {thought}{message.get('content') or ''}")
    for call in message.get("tool_calls") or []:
        print(f"  [{call['function']['name']} {call['function']['arguments']}]")


def show_event(chat: Chat, event: Json) -> None:
    match event:
        case {"type": "snapshot"}:
            print(f"-- {chat.runtime['state']}, {len(chat.messages)} messages")
            for message in chat.messages:
                show_message(message)
        case {"type": "stream_delta", "ops": ops}:
            print("".join(op.get("text", "") for op in ops), end="", flush=True)
        case {"type": "stream_finished", "finish_reason": reason}:
            print(f" ({reason})")
        case {"type": "message_added", "message": message}:
            show_message(message, message["message_id"] in chat.streamed)
        case {"type": "runtime_updated" | "queue_updated"}:
            print(f"-- {chat.runtime['state']}, {chat.runtime['queue_size']} queued")
    if event["type"] in ("snapshot", "pause_required"):
        for reason in chat.runtime["pause_reasons"]:
            print(f"?? {reason['tool_name']} {reason['command']}: /approve or /reject")


def follow(api: Api, chat: Chat) -> None:
    """Apply events; a gap or a lost connection is mended by a new subscription, which begins with a snapshot."""
    while True:
        try:
            for event in api.subscribe():
                chat.apply(event)
                show_event(chat, event)
        except (Gap, OSError) as reason:
            print(f"-- subscribing again: {reason}")
        time.sleep(1)


def run_line(api: Api, chat: Chat, line: str) -> None:
    match line:
        case "/approve" | "/reject":
            calls = [reason["tool_call_id"] for reason in chat.runtime["pause_reasons"]]
            api.command(f"{line[1:]}_tools", tool_call_ids=calls)
        case "/abort" | "/regenerate":
            api.command(line[1:])
        case "/show":
            for message in chat.messages:
                show_message(message)
        case _:
            api.command("user_message", content=line)


def main() -> None:
    parser = argparse.ArgumentParser(description="Terminal chat over the chats contract")
    parser.add_argument("chat_id")
    parser.add_argument("--server", default="http://127.0.0.1:8420")
    options = parser.parse_args()
    token = os.environ.get("PALAVER_TOKEN") or (Path.home() / ".palaver/token").read_text()
    api, chat = Api(options.server, token.strip(), options.chat_id), Chat()
    threading.Thread(target=follow, args=(api, chat), daemon=True).start()
    for line in sys.stdin:
        try:
            run_line(api, chat, line.strip())
        except urllib.error.HTTPError as error:
            print(f"!! {error.read().decode()}")


if __name__ == "__main__":
    main()

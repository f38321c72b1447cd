"""Terminal chat over the stream contract: one POST a message, server-sent events for the answer.

    python examples/stream_client.py [--server URL]

Type a message; Ctrl-C stops the answer, Ctrl-D quits. /sessions lists all of them, /sessions WORDS those that hold the
words, /open ID shows one and goes on with it, /title TEXT renames it.
The token is read from $PALAVER_TOKEN or ~/.palaver/token.
"""

import argparse
import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

Json = dict[str, Any]
RESPONSES = {"y": "allow", "n": "deny", "a": "always_allow"}


class Api:
    """JSON calls and event streams, with the token in every request."""

    def __init__(self, server: str, token: str) -> None:
        self.server = server.rstrip("/")
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def open(self, method: str, path: str, body: Json | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.urlopen(urllib.request.Request(self.server + path, data, self.headers, method=method))

    def call(self, method: str, path: str, body: Json | None = None) -> Any:
        with self.open(method, path, body) as response:
            return json.loads(response.read() or b"null")

    def stream(self, path: str, body: Json) -> Iterator[tuple[str, Json]]:
        """The events of an answer: name and data."""
        name, data = "message", ""
        with self.open("POST", path, body) as response:
            for line in response:
                field, _, value = line.decode().rstrip("\r\n").partition(":")
                if field == "event":
                    name = value.strip()
                elif field == "data":
                    data += value
                elif not field and not value and data:
                    yield name, json.loads(data)
                    name, data = "message", ""


class Transcript:
    """ChatMessage[], reconstructed from the SDK messages of a stream."""

    def __init__(self, messages: list[Json]) -> None:
        self.messages = messages

    def add(self, role: str, block: Json) -> Json:
        if not self.messages or self.messages[-1]["role"] != role:
            self.messages.append({"id": str(uuid4()), "role": role, "blocks": []})
        block["id"] = str(uuid4())
        self.messages[-1]["blocks"].append(block)
        return block

    def apply(self, sdk: Json) -> list[Json]:
        """Add an SDK message; the blocks that are new or changed."""
        contents = sdk["content"] if sdk["type"] in ("assistant", "user") else []
        return [block for content in contents if (block := self._block(sdk["type"], content))]

    def _block(self, role: str, content: Json) -> Json | None:
        match content:
            case {"type": "text" | "thinking" as kind}:
                return self.add(role, {"type": kind, "content": content[kind]})
            case {"type": "tool_use", "id": call_id, "name": name, "input": arguments}:
                call = {"id": call_id, "name": name, "state": "input-available", "input": arguments}
                return self.add(role, {"type": "tool", "toolCall": call})
            case {"type": "tool_result", "tool_use_id": call_id, "content": output}:
                blocks = (block for message in self.messages for block in message["blocks"])
                block: Json = next(block for block in blocks if block.get("toolCall", {}).get("id") == call_id)
                if content.get("is_error"):
                    block["toolCall"] |= {"state": "output-error", "errorText": output}
                else:
                    block["toolCall"] |= {"state": "output-available", "output": output}
                return block
        return None


class Chat:
    """One session: sends messages, answers permission requests, cancels."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.session: str | None = None
        self.query: str | None = None
        self.transcript = Transcript([])

    def resume(self, session: str) -> None:
        history = self.api.call("GET", f"/api/chat/sessions/history/{quote(session)}")
        self.session, self.transcript = session, Transcript(history["messages"])
        for message in self.transcript.messages:
            for block in message["blocks"]:
                show(block, "> " if message["role"] == "user" else "")

    def send(self, text: str) -> None:
        first = self.session is None
        self.transcript.add("user", {"type": "text", "content": text})
        body = {"message": text} if first else {"message": text, "sessionId": self.session}
        for event, data in self.api.stream("/api/chat", body):
            match event:
                case "message":
                    self.receive(data)
                case "permission_request":
                    self.decide(data)
                case "error":
                    print(f"! {data['message']}")
                case "cancelled":
                    print("(cancelled)")
                case "done":
                    self.session = data["sessionId"]
        self.query = None
        self.save(text if first else None)

    def receive(self, sdk: Json) -> None:
        if sdk["type"] == "system":
            self.session, self.query = sdk["sessionId"], sdk.get("queryTrackingId")
        for block in self.transcript.apply(sdk):
            show(block)

    def decide(self, request: Json) -> None:
        answer = input(f"Allow {request['toolName']} {json.dumps(request['input'])}? [y]es [n]o [a]lways: ")
        response = RESPONSES.get(answer[:1].lower(), "deny")
        self.api.call("POST", "/api/chat/permission-response", {"permissionId": request["id"], "response": response})

    def cancel(self) -> None:
        query, self.query = self.query, None
        if query:
            self.api.call("POST", "/api/chat/cancel", {"queryTrackingId": query})

    def save(self, title: str | None) -> None:
        now = datetime.now(UTC).isoformat()
        metadata = {"id": self.session, "updatedAt": now, "messageCount": len(self.transcript.messages)}
        if title:
            self.api.call("POST", "/api/chat/sessions/save", {**metadata, "title": title[:60], "createdAt": now})
        else:
            self.api.call("PUT", "/api/chat/sessions/update", metadata)


def show(block: Json, mark: str = "") -> None:
    match block:
        case {"type": "text", "content": content}:
            print(f"{mark}{content}")
        case {"type": "thinking", "content": content}:
            print(f"  ({content})")
        case {"type": "tool", "toolCall": call}:
            outcome = call.get("output", call.get("errorText", ""))
            print(f"  [{call['name']} {json.dumps(call.get('input'))}] {call['state']} {outcome}")


def command(chat: Chat, line: str) -> None:
    name, _, rest = line.partition(" ")
    match name:
        case "/sessions":
            search = ("POST", "/api/chat/sessions/search", {"query": rest})
            found = chat.api.call(*(search if rest else ("GET", "/api/chat/sessions/list")))
            for session in found["sessions"]:
                print(f"{session['id']}  {session['messageCount']:3}  {session['title']}")
        case "/open":
            chat.resume(rest)
        case "/title":
            chat.api.call("PUT", "/api/chat/sessions/update", {"id": chat.session, "title": rest})
        case _:
            chat.send(line)


def main() -> None:
    parser = argparse.ArgumentParser(description="Terminal chat over the stream contract")
    parser.add_argument("--server", default="http://127.0.0.1:8420")
    options = parser.parse_args()
    token = os.environ.get("PALAVER_TOKEN") or (Path.home() / ".palaver/token").read_text()
    chat = Chat(Api(options.server, token.strip()))
    # The handler returns, so that the read of the stream goes on: its last event says that the query was cancelled.
    signal.signal(signal.SIGINT, lambda *_: chat.cancel())
    while True:
        try:
            command(chat, input("> "))
        except (OSError, HTTPException) as error:
            print(f"! {error}")  # refused, or the connection broke: /open shows what the session has
        except EOFError:
            return


if __name__ == "__main__":
    main()

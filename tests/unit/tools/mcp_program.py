"""An MCP server over standard streams that does as it is told, well or badly: a program, run by the tests.

Plain JSON lines and nothing else, so that it can also do what no library would.
"""

import json
import os
import sys
import time
from typing import Any

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "$schema": "x", "$id": "y"}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS: list[dict[str, Any]] = [
    {"name": "echo", "title": "Echo it", "description": "Say it\u202e again", "inputSchema": TEXT},
    {"name": "look", "inputSchema": NOTHING, "annotations": {"readOnlyHint": True}},
    {"name": "crash", "inputSchema": NOTHING},
    {"name": "hang", "inputSchema": NOTHING},
    {"name": "fail", "inputSchema": NOTHING},
    {"name": "refuse", "inputSchema": NOTHING},
    {"name": "media", "inputSchema": NOTHING},
    {"name": "structured", "inputSchema": NOTHING},
    {"name": "progress", "inputSchema": NOTHING},
    {"name": "more", "inputSchema": NOTHING},
    {"name": "environment", "inputSchema": NOTHING},
    {"name": "long", "inputSchema": NOTHING},
    {"name": "a name/with spaces é", "inputSchema": NOTHING},
    {"name": "n" * 100, "inputSchema": NOTHING},
    {"name": "huge", "inputSchema": {"type": "object", "properties": {"x": {"description": "d" * 100_000}}}},
]


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def call(name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "echo":
            return text(arguments["text"])
        case "crash":
            sys.stderr.write("about to crash with correct-horse-battery\n")
            sys.stderr.flush()
            os._exit(3)
        case "hang":
            time.sleep(600)
        case "fail":
            return text("it went wrong", isError=True)
        case "media":
            content = [
                {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
                {"type": "audio", "data": "not base64!", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt"},
                {"type": "resource", "resource": {"uri": "file:///b.txt", "text": "inside", "mimeType": "text/plain"}},
            ]
            return {"content": content}
        case "structured":
            return {"content": [], "structuredContent": {"b": 1, "a": [2]}}
        case "progress":
            for step in (1, 2):
                params = {
                    "progressToken": meta["progressToken"],
                    "progress": step,
                    "total": 2,
                    "message": f"step {step}",
                }
                say({"method": "notifications/progress", "params": params})
            return text("done")
        case "more":
            TOOLS.append({"name": f"added{len(TOOLS)}", "inputSchema": NOTHING})
            say({"method": "notifications/tools/list_changed"})
            return text("added")
        case "environment":
            return text(json.dumps(dict(os.environ)))
        case "long":
            return text("line\n" * 50_000)
        case _:
            pass
    return text("seen")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    params = request.get("params", {})
    match request["method"]:
        case "initialize":
            tools = {"listChanged": True}
            return {
                "result": {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": tools},
                    "serverInfo": {"name": "program", "version": "1"},
                }
            }
        case "tools/list":
            return {"result": {"tools": TOOLS}}
        case "tools/call" if params["name"] == "refuse":
            return {"error": {"code": -32602, "message": "no such argument"}}
        case "tools/call":
            return {"result": call(params["name"], params.get("arguments", {}), params.get("_meta", {}))}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def main(manner: str) -> None:
    if manner == "silent":
        time.sleep(600)
    if manner == "broken":
        sys.stderr.write("cannot find my configuration\n")
        sys.exit(1)
    if manner == "noisy":
        sys.stdout.write("Welcome to this server!\n")
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            say({"id": request["id"], **answer(request)})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "good")

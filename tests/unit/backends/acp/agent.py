"""An ACP agent for tests, run as a program: it does what its prompt says, and misbehaves as real ones were seen to.

Standard library only. `python agent.py FOLDER [fork] [noload] [late]`: sessions are kept in the folder, as a program's would be.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
FLAGS = set(sys.argv[2:])
answers: dict[int, Any] = {}
answered = threading.Condition()
cancelled = threading.Event()
servers: list[dict[str, Any]] = []


def write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(session: str, what: str, **more: Any) -> None:
    write({"method": "session/update", "params": {"sessionId": session, "update": {"sessionUpdate": what, **more}}})


def say(session: str, text: str) -> None:
    update(session, "agent_message_chunk", content={"type": "text", "text": text})


def ask(session: str, number: int) -> dict[str, Any]:
    options = [
        {"optionId": "a", "kind": "allow_always", "name": "Always"},
        {"optionId": "o", "kind": "allow_once", "name": "Once"},
        {"optionId": "n", "kind": "reject_always", "name": "Never"},
        {"optionId": "r", "kind": "reject_once", "name": "No"},
    ]
    call = {"toolCallId": f"call-{number}", "title": "do it", "kind": "execute", "rawInput": {"command": "do it"}}
    params = {"sessionId": session, "toolCall": call, "options": options}
    write({"id": number, "method": "session/request_permission", "params": params})
    with answered:
        answered.wait_for(lambda: number in answers, 20)
    return dict(answers.get(number, {}))


TASK = {"prompt": "Count the tides."}
QUESTION = {"questions": [{"question": "Which tide?", "options": [{"label": "Ebb"}, {"label": "Flow"}]}]}


def call(session: str, tool: str, given: dict[str, Any], told: bool = True, patient: bool = True) -> str:
    """Calls one of the tools that it was offered; tells of the call, or does not. Impatient, it gives the call up once
    another question of its own is answered."""
    (server,) = servers
    environment = {**os.environ, **{one["name"]: one["value"] for one in server["env"]}}
    argv = [server["command"], *server["args"]]
    if told:
        update(session, "tool_call", toolCallId="own", title=f"palaver_{tool}", kind="other", status="pending")
        update(session, "tool_call_update", toolCallId="own", rawInput=given, status="in_progress")
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True) as relay:
        assert relay.stdin is not None
        assert relay.stdout is not None
        for message in (
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": given}},
        ):
            relay.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            relay.stdin.flush()
        relay.stdout.readline()
        result: dict[str, Any] = {}
        if not patient:
            ask(session, 9000)
        else:
            result = json.loads(relay.stdout.readline())["result"]
        relay.stdin.close()
    if not patient:
        cancelled.wait(20)
        return "gave up"
    if told:
        status = "failed" if result.get("isError") else "completed"
        content = [{"type": "content", "content": result["content"][0]}]
        update(session, "tool_call_update", toolCallId="own", status=status, content=content)
    return str(result["content"][0]["text"])


def prompt(number: int, params: dict[str, Any]) -> None:
    session = params["sessionId"]
    text = "".join(part.get("text", f"<{part['type']}>") for part in params["prompt"])
    with (FOLDER / session).open("a") as file:
        file.write(json.dumps(text) + "\n")
    order = text.rsplit("\n", 1)[-1]
    reason = "end_turn"
    match order.split(" ", 1):
        case ["permission", *_]:
            outcome = ask(session, 1000 + number)
            say(session, json.dumps(outcome.get("outcome")))
        case ["task", *how]:
            say(session, call(session, "task", TASK, told=how == ["told"]))
        case ["question", *how]:
            patient = how != ["given up"]
            say(session, call(session, "ask_user", QUESTION, told=how != ["untold"], patient=patient))
        case ["noise", *_]:
            sys.stderr.write("noise " * 200_000)
            sys.stderr.flush()
            sys.stdout.write("this is no JSON\n\n[1, 2]\n")
            update(session, "from_the_future", x=1)
            write({"method": "_private/thing", "params": {}})
            write({"id": 5000, "method": "fs/read_text_file", "params": {"path": "x"}})
            say(session, "x" * 300_000)
        case ["forever", *_]:
            say(session, "begun ")
            cancelled.wait(20)
            say(session, "late words")
            reason = "cancelled"
        case ["deaf", *_]:
            say(session, "begun")
            threading.Event().wait(20)
        case ["abandon", *_]:
            update(session, "tool_call", toolCallId="left", title="bash", kind="execute", status="in_progress")
            content = [{"type": "content", "content": {"type": "text", "text": "at work"}}]
            update(session, "tool_call_update", toolCallId="left", content=content)
            cancelled.wait(20)
            reason = "cancelled"
        case ["fail", *_]:
            write({"id": number, "error": {"code": 400, "message": '{"error": {"message": "bad request"}}'}})
            return
        case ["die", *_]:
            sys.stderr.write("out of luck\n")
            sys.stderr.flush()
            os._exit(3)
        case _:
            say(session, f"heard: {text}")
    cost = len((FOLDER / session).read_text().splitlines())
    update(session, "usage_update", used=10, size=1000, cost={"amount": cost, "currency": "USD"})
    write({"id": number, "result": {"stopReason": reason}})


def handle(message: dict[str, Any]) -> None:
    number, params = message.get("id"), message.get("params", {})
    match message.get("method"):
        case None:
            with answered:
                answers[message["id"]] = message.get("result") or message.get("error")
                answered.notify_all()
        case "initialize":
            able: dict[str, Any] = {"loadSession": "noload" not in FLAGS, "promptCapabilities": {"image": True}}
            able["sessionCapabilities"] = {"fork": {}} if "fork" in FLAGS else {}
            info = {"name": "tester", "version": "1"}
            write({"id": number, "result": {"protocolVersion": 1, "agentCapabilities": able, "agentInfo": info}})
        case "session/new":
            servers[:] = params["mcpServers"]
            session = f"session-{len(list(FOLDER.iterdir()))}"
            (FOLDER / session).write_text("")
            modes = {"currentModeId": "default", "availableModes": [{"id": "default"}, {"id": "plan"}, {"id": "yolo"}]}
            write({"id": number, "result": {"sessionId": session, "modes": modes}})
        case "session/load":
            known = FOLDER / params["sessionId"]
            if not known.exists():
                write({"id": number, "error": {"code": -32602, "message": "no such session"}})
                return
            if "late" in FLAGS:
                # As Gemini CLI does it: the answer first, a message that nobody wrote, no names.
                write({"id": number, "result": {}})
                preface = {"type": "text", "text": "<session_context>Today is Monday.</session_context>"}
                update(known.name, "user_message_chunk", content=preface)
            for at, line in enumerate(known.read_text().splitlines()):
                content = {"type": "text", "text": json.loads(line)}
                named = {} if "late" in FLAGS else {"messageId": f"m{at}"}
                update(known.name, "user_message_chunk", content=content, **named)
                update(known.name, "agent_message_chunk", content={"type": "text", "text": "replayed"})
            if "late" not in FLAGS:
                write({"id": number, "result": {}})
        case "session/fork":
            copied = FOLDER / f"{params['sessionId']}-copy"
            copied.write_text((FOLDER / params["sessionId"]).read_text())
            write({"id": number, "result": {"sessionId": copied.name}})
        case "session/set_mode":
            (FOLDER / "modes").open("a").write(params["modeId"] + "\n")
            write({"id": number, "result": {}})
        case "session/cancel":
            cancelled.set()
        case "session/prompt":
            assert isinstance(number, int)
            cancelled.clear()
            threading.Thread(target=prompt, args=(number, params), daemon=True).start()
        case _:
            write({"id": number, "error": {"code": -32601, "message": "unknown"}})


for line in sys.stdin:
    handle(json.loads(line))

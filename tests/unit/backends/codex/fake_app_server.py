"""An app-server that misbehaves in the way `FAKE` names. Speaks just enough of the protocol; run as a program."""

import json
import os
import sys
from typing import Any

WAY = os.environ.get("FAKE", "")
TURNS = iter(f"turn-{number}" for number in range(1, 100))


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def tell(method: str, turn: str, **params: Any) -> None:
    say(method=method, params={"threadId": "thread-1", "turnId": turn, **params})


def words(turn: str, text: str) -> None:
    tell("item/completed", turn, item={"type": "agentMessage", "id": f"m-{turn}-{text}", "text": text})


def over(turn: str, status: str = "completed", **more: Any) -> None:
    say(method="turn/completed", params={"threadId": "thread-1", "turn": {"id": turn, "status": status, **more}})


def ask(turn: str, method: str = "item/commandExecution/requestApproval") -> None:
    command = {"type": "commandExecution", "id": "x", "command": "ls", "cwd": "/", "processId": None}
    tell("item/started", turn, item=command)
    say(
        method=method,
        id="ask",
        params={"threadId": "thread-1", "turnId": turn, "itemId": "x", "command": "ls", "cwd": "/"},
    )


def start(turn: str) -> None:
    match WAY:
        case "stubborn" | "late":
            tell("item/agentMessage/delta", turn, itemId="m", delta="I go on ")
        case "garbage":
            sys.stdout.write("\n{not json\n[1, 2]\n" + json.dumps({"id": 999, "result": 3}) + "\n")
            say(method="planet/aligned", params=None)
            say(method="item/started", params={"threadId": "another", "item": 7})
            ask(turn, "planet/align")
        case "withdraw":
            ask(turn)
            say(method="serverRequest/resolved", params={"threadId": "thread-1", "requestId": "ask"})
            words(turn, "Never mind.")
            over(turn)
        case "refusing":
            error = {
                "message": json.dumps({"error": {"message": "too many tides"}}),
                "codexErrorInfo": "usageLimitExceeded",
            }
            over(turn, "failed", error=error)
        case "dying":
            sys.stderr.write("\x1b[31mERROR\x1b[0m out of tides\n")
            sys.stderr.flush()
            os._exit(7)
        case _:
            words(turn, "Said.")
            over(turn)


def handle(message: dict[str, Any]) -> None:
    number = message.get("id")
    match message.get("method"):
        case "initialize" if WAY == "broken":
            sys.stderr.write("Error loading config.toml: no such tide\n")
            sys.exit(3)
        case "thread/start" | "thread/resume" | "thread/fork":
            say(id=number, result={"thread": {"id": "thread-1"}, "model": "m"})
        case "turn/start":
            turn = next(TURNS)
            say(id=number, result={"turn": {"id": turn}})
            if WAY == "late" and turn != "turn-1":
                tell("item/agentMessage/delta", "turn-1", itemId="m", delta="late words")
                words("turn-1", "late words")
                words(turn, "Fresh.")
                over(turn)
            else:
                start(turn)
        case "turn/interrupt" if WAY == "late":
            say(id=number, result={})
            over(message["params"]["turnId"], "interrupted")
        case "turn/interrupt":
            pass
        case None if "error" in message:
            words("turn-1", f"Refused: {message['error']['message']} \u2028 So be it.")
            over("turn-1")
        case None:
            words("turn-1", f"Answered {message.get('result')}.")
            over("turn-1")
        case _ if number is not None:
            say(id=number, result={})
        case _:
            pass


if __name__ == "__main__":
    for line in sys.stdin:
        handle(json.loads(line))

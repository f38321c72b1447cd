"""A client of the socket contract over a real WebSocket: says frames, hears frames, with a bound on every wait."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect

from tests.flows.served import WAIT_S, Served

Frame = dict[str, Any]

OPERATIONS = "/api/plugins/sessions/operations"


class Client:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.raw: list[str] = []

    async def say(self, type: str, **fields: Any) -> None:
        await self.connection.send(msgspec.json.encode({"type": type, **fields}).decode())

    async def next(self) -> Frame:
        async with asyncio.timeout(WAIT_S):
            frame = await self.connection.recv()
        assert isinstance(frame, str)
        self.raw.append(frame)
        return dict(msgspec.json.decode(frame))

    async def until(self, last: Callable[[Frame], bool] | str) -> list[Frame]:
        """Frames up to and including the first that is meant."""
        heard: list[Frame] = []
        while True:
            heard.append(await self.next())
            if heard[-1]["type"] == last if isinstance(last, str) else last(heard[-1]):
                return heard

    async def hello(self, *subscriptions: Any, **fields: Any) -> None:
        """Greets, and waits until every subscription is confirmed."""
        await self.say("hello", protocolVersion=2, subscriptions=list(subscriptions), **fields)
        assert (await self.until("session_ready"))[-1]["protocolVersion"] == 2
        for _ in subscriptions:
            await self.until("subscribed")

    async def flush(self) -> list[Frame]:
        """What was on its way: everything before the answer to a ping that is said now."""
        await self.say("ping", nonce="flush")
        return (await self.until(lambda frame: frame["type"] == "pong" and frame.get("nonce") == "flush"))[:-1]


@asynccontextmanager
async def client(server: Served, **headers: str) -> AsyncIterator[Client]:
    sent = {"Authorization": f"Bearer {server.token}", **headers}
    url = server.url.replace("http://", "ws://") + "/ws"
    async with connect(url, additional_headers=sent, max_size=None, open_timeout=WAIT_S) as connection:
        yield Client(connection)


@asynccontextmanager
async def subscribed(server: Served, *subscriptions: Any) -> AsyncIterator[Client]:
    async with client(server) as one:
        await one.hello(*subscriptions)
        yield one


async def operation(server: Served, name: str, status: int = 200, **body: Any) -> Any:
    answer = await server.http.post(f"{OPERATIONS}/{name}", json=body)
    assert answer.status_code == status, answer.text
    said = answer.json()
    if status < 300:
        assert said["ok"] is True
        return said["result"]
    return said


async def events(server: Served, session: str, after: Any = None) -> list[Frame]:
    body = {"sessionId": session} | ({} if after is None else {"after": after})
    return list((await operation(server, "events", **body))["events"])


def of(frames: list[Frame], *types: str) -> list[Frame]:
    return [frame for frame in frames if frame["type"] in types]


def types(frames: list[Frame]) -> list[str]:
    return [frame["type"] for frame in frames]


def rendered(frames: list[Frame]) -> list[Any]:
    """What a simple client shows: each thing once, in the order in which it began. A reset begins anew."""
    shown: dict[Any, Any] = {}
    for frame in frames:
        match frame["type"]:
            case "subscribed" if frame["reset"]:
                shown.clear()
            case "user_message":
                shown[frame["messageId"]] = ["user", frame["text"]]
            case "text_delta" | "thinking_delta":
                place = (frame["responseId"], frame["block"])
                kind = frame["type"].removesuffix("_delta")
                shown[place] = [kind, shown.get(place, [kind, ""])[1] + frame["delta"]]
            case "text_block_done" | "thinking_done":
                place = (frame["responseId"], frame["block"])
                kind = frame["type"].split("_")[0]
                shown[place] = [kind, frame["text"], "done", frame.get("interrupted", False)]
            case "text_done":
                shown[frame["responseId"]] = ["run", frame["text"], frame.get("interrupted", False)]
            case "tool_call_start":
                shown[frame["callId"]] = ["tool", frame["toolName"], frame["arguments"]]
            case "tool_result":
                said = frame.get("result", frame.get("partialResult"))
                shown[frame["callId"]] += [frame["ok"], said, frame.get("error")]
            case "output_cancelled" | "session_cleared":
                shown[frame["id"]] = [frame["type"]]
            case _:
                pass
    return list(shown.values())

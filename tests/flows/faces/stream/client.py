"""A client of the `stream` contract: posts, and reads frames."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec

from tests.flows.served import Served

Frame = tuple[str, dict[str, Any], int]
"""The event's name, its data, its cursor."""


async def frames(answer: httpx.Response) -> AsyncIterator[Frame]:
    name, cursor = "", 0
    async for line in answer.aiter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "id":
            cursor = int(value)
        elif field == "data":
            yield name, msgspec.json.decode(value), cursor


@asynccontextmanager
async def asked(server: Served, **body: Any) -> AsyncIterator[AsyncIterator[Frame]]:
    """Without the frames of what is still being written, unless a test asks for them: `partial=True`."""
    body = {"partial": False, **body}
    headers = {"Accept": "text/event-stream"}
    async with server.http.stream("POST", "/api/chat", json=body, headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield frames(answer)


@asynccontextmanager
async def rejoined(
    server: Served, session: str, after: int | None = None, *, partial: bool = False
) -> AsyncIterator[AsyncIterator[Frame]]:
    query = {"sessionId": session, "partial": str(partial).lower()}
    if after is not None:
        query["after"] = str(after)
    async with server.http.stream("GET", "/api/chat/stream", params=query) as answer:
        assert answer.status_code == 200, await answer.aread()
        yield frames(answer)


async def until(said: AsyncIterator[Frame], name: str, **fields: Any) -> list[Frame]:
    """Everything through the first frame of that name with these fields."""
    seen: list[Frame] = []
    async for one in said:
        seen.append(one)
        if one[0] == name and all(one[1].get(key) == value for key, value in fields.items()):
            return seen
    raise AssertionError(f"no {name} with {fields} among {[(name, data) for name, data, _ in seen]}")


async def whole(server: Served, **body: Any) -> list[Frame]:
    async with asked(server, **body) as said:
        return [one async for one in said]


def names(told: list[Frame]) -> list[str]:
    return [name for name, _, _ in told]


def session_of(told: list[Frame]) -> str:
    return str(told[0][1]["sessionId"])


def text_of(told: list[Frame]) -> str:
    """All that the assistant said."""
    parts = [part for _, data, _ in told if data.get("type") == "assistant" for part in data["message"]["content"]]
    return "\n".join(part["text"] for part in parts if part["type"] == "text")


async def history(server: Served, session: str) -> list[dict[str, Any]]:
    answer = await server.http.get(f"/api/chat/sessions/history/{session}")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["messages"])

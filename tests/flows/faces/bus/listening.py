"""A client of the bus: it follows `GET /api/events` and calls what goes with it, over the real wire."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.flows.engine import FREE
from tests.flows.served import Served, Sse

Event = dict[str, Any]
Told = Callable[[Event], bool]


class Listener:
    """Keeps what it was told."""

    def __init__(self, stream: Sse) -> None:
        self.stream = stream
        self.heard: list[Event] = []

    async def next(self) -> Event:
        while "data" not in (fields := await self.stream.next()):
            pass
        event: Event = httpx.Response(200, text=fields["data"]).json()
        # No `event:` line: a browser's `EventSource.onmessage` hears unnamed events only.
        assert sorted(fields) == ["data", "id"]
        assert int(fields["id"]) == event["seq"]
        self.heard.append(event)
        return event

    async def until(self, last: Told) -> list[Event]:
        """What is told up to and including that."""
        told: list[Event] = []
        while not told or not last(told[-1]):
            told.append(await self.next())
        return told


@asynccontextmanager
async def listening(server: Served, headers: dict[str, str] | None = None, **query: Any) -> AsyncIterator[Listener]:
    async with server.http.stream("GET", "/api/events", params=query, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        stream = Sse(response)
        # The headers and a first comment come at once: from here on nothing is missed.
        assert list(await stream.next()) == [""]
        yield Listener(stream)


def is_a(kind: str, phase: str | None = None, **fields: Any) -> Told:
    """Fields of the event or of its data."""

    def told(event: Event) -> bool:
        data = event.get("data") or {}
        return (event["kind"], event.get("phase")) == (kind, phase) and all(
            event.get(name, data.get(name)) == value for name, value in fields.items()
        )

    return told


def of(events: list[Event], kind: str, phase: str | None = None, **fields: Any) -> list[Event]:
    return [event for event in events if is_a(kind, phase, **fields)(event)]


def statuses(told: list[Event]) -> list[str]:
    """Each status as it opens. One is open at a time, and only what is open is closed."""
    words: list[str] = []
    open_ids: dict[object, str] = {}
    for event in told:
        if event["kind"] != "activity":
            continue
        session = event["session_id"]
        if event["phase"] == "doing":
            assert open_ids.setdefault(session, event["id"]) == event["id"], event
            words += [event["data"]["status"]] if words[-1:] != [event["data"]["status"]] else []
        else:
            assert open_ids.pop(session, None) == event["id"], event
    assert not open_ids
    return words


async def chat(server: Served, message: str, **fields: Any) -> Event:
    """A key of the bus is there in any case: without one it would be a message to the stream face."""
    answer = await server.http.post("/api/chat", json={"message": message, "session_id": None, **fields})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def post(server: Served, path: str, **body: Any) -> Event:
    answer = await server.http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def get(server: Served, path: str, **query: Any) -> Any:
    answer = await server.http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def free_session(server: Served, project: Any, agent: str = "default") -> str:
    """One in which every tool may run unasked."""
    return await server.create(project=str(project), agent=agent, params={"policy": FREE})

"""One POST, one stream: what a client of the `stream` contract sees of a query."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from tests.flows.engine import engine
from tests.flows.served import Served

Frame = tuple[str, dict[str, Any], int]


async def frames(answer: httpx.Response) -> AsyncIterator[Frame]:
    name, cursor = "", 0
    async for line in answer.aiter_lines():
        field, _, value = line.partition(": ")
        match field:
            case "event":
                name = value
            case "id":
                cursor = int(value)
            case "data":
                yield name, msgspec.json.decode(value), cursor
            case _:
                pass


@asynccontextmanager
async def asked(server: Served, **body: Any) -> AsyncIterator[AsyncIterator[Frame]]:
    headers = {"Accept": "text/event-stream"}
    async with server.http.stream("POST", "/api/chat", json=body, headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        yield frames(answer)


async def test_query_is_answered_through_done(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, asked(work.server, message="!say Hello there.") as said:
        told = [one async for one in said]
    assert [name for name, _, _ in told] == ["message", "message", "message", "done"]
    init, answer, result = (data for _, data, _ in told[:3])
    assert (init["type"], init["subtype"]) == ("system", "init")
    assert answer["message"]["content"] == [{"type": "text", "text": "Hello there."}]
    assert (result["type"], result["result"]) == ("result", "Hello there.")
    assert told[-1][1] == {"sessionId": init["sessionId"]}
    assert len({data["queryTrackingId"] for _, data, _ in told[:3]}) == 1

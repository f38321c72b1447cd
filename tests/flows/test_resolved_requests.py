"""Requests that are over stay to be seen: what was answered elsewhere, what expired, what was withdrawn, newest first."""

from pathlib import Path
from typing import Any

import pytest

from palaver.client.client import Client
from palaver.clock import ManualClock
from tests.flows.at_work import Work
from tests.flows.engine import engine

pytestmark = pytest.mark.anyio

DAY_S = 86_400.0


async def recent(work: Work, count: int = 10, **query: Any) -> list[dict[str, Any]]:
    answer = await work.server.http.get("/api/requests", params={"recent": count, **query})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["recent"])


def told(items: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(item["conversation"], item["request"]["status"]) for item in items]


async def test_what_was_answered_expired_or_withdrawn_is_listed_newest_first_over_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()
    async with engine(tmp_path, clock=clock) as work:
        answered = await work.begin("!shell touch a")
        expired = await work.begin("!shell touch b", request_timeout_s=60)
        stopped = await work.begin("!shell touch c")
        still_open = await work.begin("!shell touch d")
        (first,) = await work.opened(answered)
        for conversation in (expired, stopped, still_open):
            await work.opened(conversation)
        assert await recent(work) == []
        await clock.advance(1)
        await work.decide(answered, first, "deny", text="Not now")
        await work.events(answered)
        await clock.advance(60)
        await work.events(expired)
        await clock.advance(1)
        await work.server.command(stopped, type="interrupt")
        await work.events(stopped)
        body = (await work.server.http.get("/api/requests", params={"recent": 10})).json()
        assert [item["conversation"] for item in body["items"]] == [still_open]
        assert [one for one, _ in told(body["recent"])] == [stopped, expired, answered]
        assert told(body["recent"])[1:] == [(expired, "expired"), (answered, "answered")]
        # The shape of those that wait, and how each ended.
        assert set(body["recent"][2]) == set(body["items"][0])
        resolution = body["recent"][2]["request"]["resolution"]
        assert (resolution["verdict"], resolution["text"], resolution["by"]["user"]) == ("deny", "Not now", "owner")
        assert body["items"][0]["request"]["resolution"] is None
        assert (await work.server.http.get("/api/requests")).json() == {"items": body["items"], "recent": []}
    async with engine(tmp_path, clock=clock) as work:
        assert await recent(work) == body["recent"]
        assert await recent(work, 2) == body["recent"][:2]
        assert await recent(work, root=expired) == body["recent"][1:2]
        async with Client.connect(work.server.url, work.server.token) as client:
            assert [item.conversation for item in await client.recent_requests()] == [stopped, expired, answered]
            assert [item.request.status for item in await client.recent_requests(1, root=expired)] == ["expired"]
        for wrong in (-1, 101):
            assert (await work.server.http.get("/api/requests", params={"recent": wrong})).status_code == 400
        await work.server.command(stopped, type="delete_conversation")
        assert [one for one, _ in told(await recent(work))] == [expired, answered]


async def test_what_is_over_for_more_than_a_week_is_listed_no_more(tmp_path: Path) -> None:
    clock = ManualClock()
    async with engine(tmp_path, clock=clock) as work:
        older = await work.begin("!shell touch a")
        await work.decide(older, (await work.opened(older))[0], "deny")
        await work.events(older)
        await clock.advance(6 * DAY_S)
        newer = await work.begin("!shell touch b")
        await work.decide(newer, (await work.opened(newer))[0], "deny")
        await work.events(newer)
        # A conversation that goes on later does not push what ended in it before the others.
        await work.server.command(older, type="update_conversation", title="Still in use")
        assert [one for one, _ in told(await recent(work))] == [newer, older]
        assert [one for one, _ in told(await recent(work, 1))] == [newer]
        await clock.advance(2 * DAY_S)
        assert [one for one, _ in told(await recent(work))] == [newer]

"""The operations beside the socket: sessions listed, made, changed, written to, cleared and deleted."""

import asyncio
from pathlib import Path

import pytest

from palaver.backends.script.script import Fail, Say, Tool, Wait, turns
from palaver.errors import ProviderRefused
from tests.flows.faces.socket.client import OPERATIONS, events, operation, rendered, subscribed
from tests.flows.served import Served, serving

pytestmark = pytest.mark.anyio


async def test_session_is_made_with_201_and_its_id(shared: Served, tmp_path: Path) -> None:
    body = {"agentId": "other", "title": "Mine", "projectRoot": str(tmp_path)}
    answer = await shared.http.post(f"{OPERATIONS}/create", json=body)
    session = answer.json()["sessionId"]
    assert (answer.status_code, answer.json()["result"]) == (201, {"sessionId": session})
    state = await shared.state(session)
    assert (state["agent"], state["title"], state["project"]) == ("other", "Mine", str(tmp_path))
    assert (await operation(shared, "create", 404, agentId="nobody"))["code"] == "not_found"
    assert (await operation(shared, "create", 400, projectRoot="/no/such/folder"))["code"] == "invalid"


async def test_sessions_are_listed_a_page_at_a_time_the_latest_first(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        made = [(await operation(server, "create", 201, title=f"Number {n}"))["sessionId"] for n in range(3)]
        first = await operation(server, "list", limit=2)
        second = await operation(server, "list", limit=2, cursor=first["nextCursor"])
        assert (await operation(server, "list", 400, limit=0))["code"] == "invalid"
    assert [row["sessionId"] for row in first["sessions"]] == [made[2], made[1]]
    assert [row["sessionId"] for row in second["sessions"]] == [made[0]]
    assert (second["nextCursor"], second["sessions"][0]["title"]) == (None, "Number 0")


async def test_update_changes_what_is_given_and_leaves_the_rest(shared: Served) -> None:
    session = (await operation(shared, "create", 201, title="Before"))["sessionId"]
    await operation(shared, "update", sessionId=session, agentId="other")
    state = await shared.state(session)
    assert (state["title"], state["agent"]) == ("Before", "other")
    await operation(shared, "update", sessionId=session, title="After", outputMode="speech")
    state = await shared.state(session)
    assert (state["title"], state["agent"], state["params"]["output_mode"]) == ("After", "other", "speech")
    assert (await operation(shared, "update", 400, sessionId=session))["code"] == "invalid"


async def test_message_waits_for_its_answer(tmp_path: Path) -> None:
    async with serving(tmp_path, (Tool("shell"), Say("All done."))) as server:
        session = await server.create()
        answer = await operation(server, "message", sessionId=session, content="go", mode="sync")
    assert (answer["status"], answer["response"], answer["toolCallCount"]) == ("complete", "All done.", 1)
    assert (answer["sessionId"], answer["durationMs"] >= 0) == (session, True)


async def test_operations_take_null_for_what_may_be_left_out(tmp_path: Path) -> None:
    async with serving(tmp_path, (Say("All done."),)) as server:
        nothing = {"agentId": None, "title": None, "projectRoot": None}
        session = (await operation(server, "create", 201, **nothing))["sessionId"]
        answer = await operation(server, "message", sessionId=session, content="go", mode=None, timeout=None)
        listed = await operation(server, "list", limit=None, cursor=None)
        replayed = await operation(server, "events", sessionId=session, after=None)
    assert (answer["status"], answer["response"]) == ("complete", "All done.")
    assert [row["sessionId"] for row in listed["sessions"]] == [session]
    assert (replayed["reset"], replayed["events"][0]["type"]) == (False, "user_message")


async def test_message_that_is_not_waited_for_has_started_or_waits(tmp_path: Path) -> None:
    async with serving(tmp_path, (Wait("go"), Say("Done."))) as server:
        session = await server.create()
        assert (await operation(server, "message", sessionId=session, content="one", mode="async"))[
            "status"
        ] == "started"
        for mode in ("sync", "async"):
            assert (await operation(server, "message", sessionId=session, content=mode, mode=mode))[
                "status"
            ] == "queued"


async def test_answer_that_takes_too_long_is_said_and_the_turn_goes_on(tmp_path: Path) -> None:
    async with serving(tmp_path, (Wait("go"), Say("Late."))) as server:
        session = await server.create()
        async with subscribed(server, session) as one:
            late = await operation(server, "message", sessionId=session, content="one", timeout=0.05)
            server.agent.open_gate("go")
            assert (await one.until("text_done"))[-1]["text"] == "Late."
    assert (late["status"], "goes on" in late["response"]) == ("timeout", True)


async def test_failed_and_cancelled_answers_are_said(tmp_path: Path) -> None:
    script = turns([Fail(ProviderRefused("Check the key."))], [Wait("never")])
    async with serving(tmp_path, script) as server:
        session = await server.create()
        failed = await operation(server, "message", sessionId=session, content="one")
        async with subscribed(server, session) as one:
            waiting = asyncio.create_task(operation(server, "message", sessionId=session, content="two"))
            await one.until("user_message")
            await one.say("control", action="cancel", target="output", sessionId=session)
            cancelled = await waiting
    assert (failed["status"], failed["response"]) == ("failed", "Check the key.")
    assert cancelled["status"] == "cancelled"


async def test_clear_stops_and_empties_the_session(tmp_path: Path) -> None:
    async with serving(tmp_path, turns([Say("One.")], [Say("Two"), Wait("never")], [Say("Three.")])) as server:
        session = await server.create()
        await operation(server, "message", sessionId=session, content="one")
        async with subscribed(server, session) as one:
            await operation(server, "message", sessionId=session, content="two", mode="async")
            await one.until(lambda frame: frame["type"] == "text_delta")
            await operation(server, "message", sessionId=session, content="waits", mode="async")
            before = (await operation(server, "events", sessionId=session))["nextCursor"]
            await operation(server, "clear", sessionId=session)
            await one.until("session_cleared")
        state = await server.state(session)
        empty = await operation(server, "events", sessionId=session)
        behind = await operation(server, "events", sessionId=session, after=before)
        again = await operation(server, "message", sessionId=session, content="three")
        replayed = await events(server, session)
    assert (state["messages"], state["queue"], state["turn"]) == ([], [], None)
    assert again["status"] == "complete"
    assert (empty["events"], empty["reset"]) == ([], False)
    # Who had seen what was cleared is told to begin anew.
    assert (behind["events"], behind["reset"]) == ([], True)
    assert [shown[0] for shown in rendered(replayed)] == ["user", "text", "run"]


async def test_deleted_session_is_gone(shared: Served) -> None:
    session = (await operation(shared, "create", 201))["sessionId"]
    await operation(shared, "delete", sessionId=session)
    for name in ("events", "clear"):
        assert (await operation(shared, name, 410, sessionId=session))["code"] == "gone"
    assert (await operation(shared, "message", 410, sessionId=session, content="hi"))["code"] == "gone"
    rows = (await operation(shared, "list"))["sessions"]
    assert session not in [row["sessionId"] for row in rows]


@pytest.mark.parametrize("name", ["events", "message", "update", "clear", "delete"])
async def test_session_that_nobody_knows_is_not_found(shared: Served, name: str) -> None:
    more = {"content": "hi"} if name == "message" else {"title": "x"} if name == "update" else {}
    assert (await operation(shared, name, 404, sessionId="nobody", **more))["code"] == "not_found"


async def test_operations_need_a_token(shared: Served) -> None:
    async with shared.browser() as stranger:
        for name in ("events", "list", "create", "update", "message", "clear", "delete"):
            assert (await stranger.post(f"{OPERATIONS}/{name}", json={})).status_code == 401


async def test_session_in_which_nothing_was_said_has_no_events(shared: Served) -> None:
    session = (await operation(shared, "create", 201))["sessionId"]
    await operation(shared, "update", sessionId=session, title="Renamed")
    answer = await operation(shared, "events", sessionId=session)
    assert (answer["events"], answer["reset"]) == ([], False)


async def test_events_are_fetched_by_get_as_by_post(shared: Served) -> None:
    session = (await operation(shared, "create", 201))["sessionId"]
    await operation(shared, "message", sessionId=session, content="hello")
    whole = await operation(shared, "events", sessionId=session)
    for after in (None, whole["events"][0]["sequence"], whole["nextCursor"], "garbage"):
        query = {"sessionId": session} if after is None else {"sessionId": session, "after": after}
        fetched = await shared.http.get(f"{OPERATIONS}/events", params=query)
        posted = await operation(shared, "events", **query)
        assert (fetched.status_code, fetched.json()) == (200, {"ok": True, "result": posted})
    assert (await shared.http.get(f"{OPERATIONS}/events")).status_code == 400
    assert (await shared.http.get(f"{OPERATIONS}/events", params={"sessionId": "nobody"})).status_code == 404
    async with shared.browser() as stranger:
        assert (await stranger.get(f"{OPERATIONS}/events", params={"sessionId": session})).status_code == 401

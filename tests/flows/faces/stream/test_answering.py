"""One POST, one stream: a query through its last frame, whatever happens to it or to its client."""

import asyncio
from pathlib import Path

import httpx
import pytest

from palaver.clock import ManualClock
from tests.flows.engine import engine
from tests.flows.faces.inbox.client import with_tokens
from tests.flows.faces.stream.client import (
    asked,
    frames,
    history,
    names,
    rejoined,
    session_of,
    text_of,
    until,
    whole,
)
from tests.flows.served import WAIT_S, http_client

pytestmark = pytest.mark.anyio

EDIT = '!tool write {"path": "a.txt", "content": "one"}'


async def test_query_is_answered_through_done(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        told = await whole(work.server, message="!say Hello there.")
    assert names(told) == ["message", "message", "message", "done"]
    init, answer, result = (data for _, data, _ in told[:3])
    assert (init["type"], init["subtype"], init["mcpServers"]) == ("system", "init", [])
    assert answer["content"] == answer["message"]["content"] == [{"type": "text", "text": "Hello there."}]
    assert (result["type"], result["subtype"], result["result"]) == ("result", "success", "Hello there.")
    assert told[-1][1] == {"sessionId": init["sessionId"]}
    assert len({data["queryTrackingId"] for _, data, _ in told[:3]}) == 1
    assert [cursor for _, _, cursor in told] == sorted(cursor for _, _, cursor in told)


async def test_next_query_goes_on_in_the_same_session(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = session_of(await whole(work.server, message="!say One."))
        told = await whole(work.server, message="!say Two.", sessionId=session)
        assert session_of(told) == session
        said = [block["content"] for message in await history(work.server, session) for block in message["blocks"]]
    assert said == ["!say One.", "One.", "!say Two.", "Two."]


@pytest.mark.parametrize("body", [{}, {"message": "  "}, {"message": "", "images": []}])
async def test_query_without_text_or_image_is_refused(tmp_path: Path, body: dict[str, object]) -> None:
    async with engine(tmp_path) as work:
        answer = await work.server.http.post("/api/chat", json=body, headers={"Accept": "text/event-stream"})
        assert answer.status_code == 400
        assert (await work.server.http.get("/api/conversations")).json()["items"] == []


async def test_optional_field_that_is_null_is_as_good_as_absent(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        told = await whole(work.server, message="!say Hello.", images=None, sessionId=None, agentId=None)
        assert text_of(told) == "Hello."
        refused = await work.server.http.post("/api/chat", json={"message": None, "images": None, "sessionId": None})
        assert refused.status_code == 400


async def test_unknown_session_begins_under_its_id_and_an_unknown_agent_is_refused(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        refused = await work.server.http.post("/api/chat", json={"message": "Hello", "agentId": "nobody"})
        assert refused.status_code == 404
        strange = await work.server.http.post("/api/chat", json={"message": "Hello", "sessionId": "../elsewhere"})
        assert strange.status_code == 400
        assert (await work.server.http.get("/api/conversations")).json()["items"] == []
        told = await whole(work.server, message="!say One.", sessionId="nobody-knew")
        assert session_of(told) == "nobody-knew"
        await whole(work.server, message="!say Two.", sessionId="nobody-knew")
        said = [
            block["content"] for message in await history(work.server, "nobody-knew") for block in message["blocks"]
        ]
    assert said == ["!say One.", "One.", "!say Two.", "Two."]


async def test_two_queries_that_begin_one_session_at_once_are_both_answered(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        scout = (await work.server.http.post("/api/agents/create", json={"name": "Scout"})).json()["agent"]["id"]
        both = await asyncio.gather(
            whole(work.server, message="!say One.", sessionId="shared"),
            whole(work.server, message="!say Two.", sessionId="shared", agentId=scout),
        )
    assert {session_of(told) for told in both} == {"shared"}
    assert [text_of(told) for told in both] == ["One.", "Two."]


async def test_tracking_id_is_known_from_the_header_of_the_answer(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        body = {"message": "!gate never\n!say Hello.", "agentId": "default"}
        async with work.server.http.stream("POST", "/api/chat", json=body) as answer:
            query = {"queryTrackingId": answer.headers["x-query-tracking-id"]}
            assert (await work.server.http.post("/api/chat/cancel", json=query)).status_code == 200
            told = [one async for one in frames(answer)]
    assert names(told)[-2:] == ["cancelled", "done"]
    assert told[0][1]["queryTrackingId"] == query["queryTrackingId"]


async def test_camel_case_body_without_a_project_gets_the_stream_too(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        answer = await work.server.http.post("/api/chat", json={"message": "!say Hello.", "agentId": "default"})
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "event: done" in answer.text


# -- leaving and coming back


async def test_client_that_leaves_does_not_stop_the_run_and_can_come_back(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        async with asked(work.server, message=f"{EDIT}\n---\n!gate later\n!say Second.") as said:
            seen = await until(said, "permission_request")
        session, left_at = session_of(seen), seen[-1][2]
        permission = {"permissionId": seen[-1][1]["permissionId"], "response": "allow"}
        assert (await work.server.http.post("/api/chat/permission-response", json=permission)).status_code == 200
        async with rejoined(work.server, session, left_at) as again:
            result = await until(again, "message", type="user")
            work.provider.gates.open("later")
            rest = [one async for one in again]
    assert result[-1][1]["content"][0]["is_error"] is False
    assert names(rest) == ["message", "message", "done"]
    assert text_of(rest) == "Second."


async def test_reattaching_at_rest_gives_what_was_missed_and_done(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        told = await whole(work.server, message="!say One.")
        session = session_of(told)
        async with rejoined(work.server, session, told[0][2]) as again:
            assert [one async for one in again] == told[1:]
        async with rejoined(work.server, session, told[-1][2]) as nothing_new:
            assert [(name, data) async for name, data, _ in nothing_new] == [("done", {"sessionId": session})]


async def test_cursor_that_nobody_knows_is_answered_with_all_of_the_turn_and_says_so(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        told = await whole(work.server, message="!say One.")
        async with rejoined(work.server, session_of(told), 999_999) as again:
            (name, init, cursor), *rest = [one async for one in again]
    assert (name, init, cursor) == ("message", {**told[0][1], "reset": True}, told[0][2])
    assert rest == told[1:]


async def test_messages_are_those_of_the_sdk_live_and_reattached(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        servers = [{"name": "files", "command": ["no-such-program"]}]
        made = await work.server.http.post("/api/agents/create", json={"name": "Scout", "mcpServers": servers})
        told = await whole(work.server, message="!list .\n---\n!say Done.", agentId=made.json()["agent"]["id"])
        async with rejoined(work.server, session_of(told), 0) as again:
            assert [one async for one in again] == told
    assert [one["name"] for one in told[0][1]["mcpServers"]] == ["files"]
    reasons = [data["message"]["stop_reason"] for _, data, _ in told if data.get("type") == "assistant"]
    assert reasons == ["tool_use", "end_turn"]


# -- cancelling


async def test_cancel_before_the_first_frame(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        async with asked(work.server, message="!gate never\n!say Hello.") as said:
            init = await until(said, "message", type="system")
            answer = await work.server.http.post(
                "/api/chat/cancel", json={"queryTrackingId": init[0][1]["queryTrackingId"]}
            )
            assert (answer.status_code, answer.json()) == (200, {"success": True})
            assert names([one async for one in said]) == ["cancelled", "done"]
        again = await work.server.http.post("/api/chat/cancel", json={"queryTrackingId": session_of(init)})
        assert again.status_code == 404


async def test_cancel_of_a_query_that_waits_in_the_queue(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, asked(work.server, message="!gate first\n!say One.") as first:
        session = session_of(await until(first, "message", type="system"))

        async def second() -> list[str]:
            return names(await whole(work.server, message="!say Two.", sessionId=session))

        waiting = asyncio.create_task(second())
        item = await _queued(work.server.http, session)
        answer = await work.server.http.post("/api/chat/cancel", json={"queryTrackingId": item})
        assert answer.status_code == 200
        assert await asyncio.wait_for(waiting, WAIT_S) == ["cancelled", "done"]
        work.provider.gates.open("first")
        assert names([one async for one in first])[-1] == "done"


async def _queued(http: httpx.AsyncClient, session: str) -> str:
    async with asyncio.timeout(WAIT_S):
        while True:
            queue = (await http.get(f"/api/conversations/{session}/snapshot")).json()["queue"]
            if queue:
                return str(queue[0]["id"])


async def test_cancel_while_a_permission_is_pending_denies_it(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        async with asked(work.server, message=EDIT) as said:
            seen = await until(said, "permission_request")
            pending = seen[-1][1]
            await work.server.http.post("/api/chat/cancel", json={"queryTrackingId": seen[0][1]["queryTrackingId"]})
            rest = [one async for one in said]
        assert names(rest)[-2:] == ["cancelled", "done"]
        late = {"permissionId": pending["permissionId"], "response": "allow"}
        assert (await work.server.http.post("/api/chat/permission-response", json=late)).status_code == 404
        assert not (work.project / "a.txt").exists()


async def test_failure_is_told_once_and_done_is_last(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        told = await whole(work.server, message="!status 400")
    assert names(told)[-2:] == ["error", "done"]
    assert names(told).count("error") == 1
    assert told[-2][1]["message"]


# -- permissions


async def test_permission_is_asked_with_both_ids_and_answered(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        async with asked(work.server, message=EDIT) as said:
            asked_for = (await until(said, "permission_request"))[-1][1]
            assert asked_for["id"] == asked_for["permissionId"]
            assert (asked_for["toolName"], asked_for["input"]) == ("write", {"path": "a.txt", "content": "one"})
            body = {"permissionId": asked_for["id"], "decision": "allow"}
            answer = await work.server.http.post("/api/chat/permission-response", json=body)
            assert (answer.status_code, answer.json()) == (200, {"success": True})
            assert names([one async for one in said])[-1] == "done"
        again = await work.server.http.post("/api/chat/permission-response", json=body)
        assert again.status_code == 404


async def test_denied_call_is_an_error_and_the_agent_goes_on(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, asked(work.server, message=EDIT) as said:
        permission = (await until(said, "permission_request"))[-1][1]["id"]
        body = {"permissionId": permission, "response": "deny"}
        await work.server.http.post("/api/chat/permission-response", json=body)
        rest = [one async for one in said]
    (result,) = [data for _, data, _ in rest if data.get("type") == "user"]
    assert result["message"]["content"][0]["is_error"] is True
    assert rest[-2][1]["subtype"] == "success"


async def test_always_allow_counts_for_the_next_call_and_for_other_turns_and_is_kept(tmp_path: Path) -> None:
    two = f'{EDIT}\n---\n!tool write {{"path": "b.txt", "content": "two"}}'
    async with engine(tmp_path) as work:
        async with (
            asked(work.server, message='!gate other\n!tool write {"path": "c.txt", "content": "three"}') as other,
            asked(work.server, message=two) as said,
        ):
            await until(other, "message", type="system")
            permission = (await until(said, "permission_request"))[-1][1]["id"]
            body = {"permissionId": permission, "response": "always_allow"}
            assert (await work.server.http.post("/api/chat/permission-response", json=body)).status_code == 200
            rest = [one async for one in said]
            work.provider.gates.open("other")
            others = [one async for one in other]
        assert "permission_request" not in names(rest) + names(others)
        agent = (await work.server.http.get("/api/agents/get", params={"id": "default"})).json()["agent"]
        assert agent["allowedTools"] == ["write"]
        changed = {"id": "default", "description": "Mine"}
        agent = (await work.server.http.put("/api/agents/update", json=changed)).json()["agent"]
        assert (agent["description"], agent["allowedTools"]) == ("Mine", ["write"])


async def test_always_allow_is_the_answer_to_every_call_of_that_tool_that_waits_in_the_session(tmp_path: Path) -> None:
    both = f'{EDIT}\n!tool write {{"path": "b.txt", "content": "two"}}'
    async with (
        engine(tmp_path) as work,
        asked(work.server, message='!tool write {"path": "c.txt", "content": "three"}') as other,
        asked(work.server, message=both) as said,
    ):
        elsewhere = (await until(other, "permission_request"))[-1][1]["id"]
        permission = (await until(said, "permission_request"))[-1][1]["id"]
        await until(said, "permission_request")
        body = {"permissionId": permission, "response": "always_allow"}
        answer = await work.server.http.post("/api/chat/permission-response", json=body)
        assert (answer.status_code, answer.json()) == (200, {"success": True})
        async with asyncio.timeout(WAIT_S):
            rest = [one async for one in said]
        results = [part for _, data, _ in rest if data.get("type") == "user" for part in data["content"]]
        assert [result["is_error"] for result in results] == [False, False]
        # Another session's question is for whoever sees it.
        waiting = (await work.server.http.get("/api/requests")).json()["items"]
        assert [item["request"]["id"] for item in waiting] == [elsewhere]


async def test_always_allow_of_a_lesser_token_counts_for_the_session_and_says_so(tmp_path: Path) -> None:
    two = f'{EDIT}\n---\n!tool write {{"path": "b.txt", "content": "two"}}'
    (tmp_path / "data").mkdir()
    with_tokens(tmp_path / "data")
    async with engine(tmp_path) as work, http_client(work.server.url, {"Authorization": "Bearer human-token"}) as human:
        async with asked(work.server, message=two) as said:
            permission = (await until(said, "permission_request"))[-1][1]["id"]
            body = {"permissionId": permission, "response": "always_allow"}
            answer = await human.post("/api/chat/permission-response", json=body)
            assert (answer.status_code, answer.json()["success"], answer.json()["scope"]) == (200, True, "session")
            rest = [one async for one in said]
        assert "permission_request" not in names(rest)
        agent = (await work.server.http.get("/api/agents/get", params={"id": "default"})).json()["agent"]
        assert agent["allowedTools"] == []
        async with asked(work.server, message=EDIT) as again:
            assert (await until(again, "permission_request"))[-1][1]["toolName"] == "write"


async def test_permission_that_nobody_answers_is_denied_after_five_minutes(tmp_path: Path) -> None:
    clock = ManualClock()
    async with engine(tmp_path, clock=clock) as work, asked(work.server, message=EDIT) as said:
        permission = (await until(said, "permission_request"))[-1][1]["id"]
        await clock.advance(299)
        waiting = (await work.server.http.get("/api/requests")).json()["items"]
        assert [item["request"]["id"] for item in waiting] == [permission]
        await clock.advance(2)
        rest = [one async for one in said]
        late = {"permissionId": permission, "response": "allow"}
        assert (await work.server.http.post("/api/chat/permission-response", json=late)).status_code == 404
    (result,) = [data for _, data, _ in rest if data.get("type") == "user"]
    assert result["message"]["content"][0]["is_error"] is True


async def test_permission_of_a_turn_begun_elsewhere_waits_until_it_is_answered(tmp_path: Path) -> None:
    clock = ManualClock()
    async with engine(tmp_path, clock=clock) as work:
        session = await work.begin(EDIT)
        (request,) = await work.opened(session)
        assert request["expires_at"] is None
        await clock.advance(30 * 86_400)
        late = {"permissionId": request["id"], "response": "allow"}
        assert (await work.server.http.post("/api/chat/permission-response", json=late)).status_code == 200
        await work.events(session)
    assert (work.project / "a.txt").exists()


# -- agents


async def test_agent_of_the_query_is_saved_on_the_session_and_used_last(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        made = {"name": "Scout", "systemPrompt": "You scout."}
        scout = (await work.server.http.post("/api/agents/create", json=made)).json()["agent"]["id"]
        session = session_of(await whole(work.server, message="!say One."))
        init = (await whole(work.server, message="!say Two.", sessionId=session, agentId=scout))[0][1]
        assert init["agentId"] == scout
        assert (await whole(work.server, message="!say Three.", sessionId=session))[0][1]["agentId"] == scout
        fresh = await whole(work.server, message="!say Four.")
        assert fresh[0][1]["agentId"] == scout

"""Lasting yeses: who may give them, what they answer, where they are listed and how they are taken back, on every face."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from websockets.asyncio.client import connect

from palaver.approval.standing_grants import StandingGrant
from tests.flows.at_work import Work, at_work, of
from tests.flows.engine import engine
from tests.flows.faces.inbox.client import with_tokens
from tests.flows.faces.stream.client import asked, names, until
from tests.flows.served import Served, http_client
from tests.provider import Answer, Call

pytestmark = pytest.mark.anyio

EDIT = '!tool write {"path": "a.txt", "content": "one"}'


def run(command: str) -> Call:
    return Call(name="shell", input={"command": command})


async def answer(http: httpx.AsyncClient, permission: str, response: str = "always_allow") -> httpx.Response:
    body = {"permissionId": permission, "response": response}
    return await http.post("/api/chat/permission-response", json=body)


async def allowed_tools(work: Work, agent: str = "default") -> list[str]:
    told = (await work.server.http.get("/api/agents/get", params={"id": agent})).json()
    return list(told["agent"]["allowedTools"])


async def listed(work: Work) -> list[dict[str, Any]]:
    return list((await work.server.http.get("/api/grants")).json()["items"])


async def always_allowed(work: Work) -> str:
    """A tool is put into the agent's record; the id of the request that was answered so."""
    async with asked(work.server, message=EDIT) as said:
        permission = str((await until(said, "permission_request"))[-1][1]["id"])
        assert (await answer(work.server.http, permission)).json() == {"success": True}
        assert names([one async for one in said])[-1] == "done"
    return permission


async def is_asked(work: Work) -> bool:
    async with asked(work.server, message=EDIT) as said:
        async for name, _, _ in said:
            if name == "permission_request":
                return True
    return False


async def test_always_allow_is_listed_with_who_gave_it_and_taken_back_from_the_record(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        permission = await always_allowed(work)
        assert await allowed_tools(work) == ["write"]
        (grant,) = await listed(work)
        assert (grant["tool"], grant["match"], grant["scope"], grant["agent"]) == ("write", None, "agent", "default")
        assert (grant["by"], grant["request"], grant["ts"] > 0) == ("owner", permission, True)
        assert not await is_asked(work)
        assert (await work.server.http.delete(f"/api/grants/{grant['id']}")).status_code == 204
        assert (await allowed_tools(work), await listed(work)) == ([], [])
        assert await is_asked(work)


async def test_tool_that_was_taken_out_of_the_record_is_allowed_by_nothing_that_is_left(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        await always_allowed(work)
        changed = {"id": "default", "allowedTools": []}
        assert (await work.server.http.put("/api/agents/update", json=changed)).status_code == 200
        assert await listed(work) == []
        assert await is_asked(work)


@pytest.mark.parametrize("token", ["human", "agent", "observer"])
async def test_lesser_token_changes_no_agent(tmp_path: Path, token: str) -> None:
    with_tokens(tmp_path / "data")
    async with (
        engine(tmp_path) as work,
        http_client(work.server.url, {"Authorization": f"Bearer {token}-token"}) as lesser,
        asked(work.server, message=EDIT) as said,
    ):
        permission = str((await until(said, "permission_request"))[-1][1]["id"])
        told = await answer(lesser, permission)
        assert (await allowed_tools(work), await listed(work)) == ([], [])
        if token == "human":
            assert (told.status_code, told.json()["success"], told.json()["scope"]) == (200, True, "session")
            assert "may not change agents" in told.json()["note"]
        else:
            assert told.status_code == 403
            assert (await work.server.http.get("/api/requests")).json()["items"] != []


async def test_always_allow_that_comes_after_a_denial_allows_nothing(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        for _ in range(5):
            async with asked(work.server, message=EDIT) as said:
                permission = str((await until(said, "permission_request"))[-1][1]["id"])
                lasting, denial = await asyncio.gather(
                    answer(work.server.http, permission), answer(work.server.http, permission, "deny")
                )
                rest = [one async for one in said]
            assert sorted((lasting.status_code, denial.status_code)) == [200, 404]
            assert names(rest)[-1] == "done"
            kept = ["write"] if lasting.status_code == 200 else []
            assert (await allowed_tools(work), [grant["tool"] for grant in await listed(work)]) == (kept, kept)
            for grant in await listed(work):
                await work.server.http.delete(f"/api/grants/{grant['id']}")


async def test_always_allow_answers_no_call_that_waits_and_that_rules_have_a_word_on(tmp_path: Path) -> None:
    """A deny rule on `git push`: `make` may run it, so a person is asked each time, whatever is always allowed."""
    rules = [{"tool": "shell", "decision": "deny_continue", "match": "git push*"}]
    script = Answer.of(run("touch a"), run("make release")), Answer.of("Done.")
    async with at_work(tmp_path, *script) as work:
        conversation = await work.begin("go", policy=rules)
        requests = {request["input"]["command"]: request["id"] for request in await work.opened(conversation, 2)}
        assert (await answer(work.server.http, requests["touch a"])).status_code == 200
        assert [request["input"]["command"] for request in await work.waiting(conversation)] == ["make release"]
        await work.server.command(conversation, type="interrupt")


@pytest.mark.parametrize("scope", ["agent", "project"])
async def test_lasting_yes_answers_no_call_that_waits_in_another_conversation(tmp_path: Path, scope: str) -> None:
    """Neither at once nor with the next answer that is given there: it counts from the next call on."""
    here = Answer.of(run("touch x"), run("touch y"), run("touch y"))
    there = Answer.of(run("touch x")), Answer.of("Done.")
    async with at_work(tmp_path, here, *there) as work:
        first = await work.begin("one")
        waiting = await work.opened(first, 3)
        second = await work.begin("two")
        (request,) = await work.opened(second)
        await work.decide(second, request, scope=scope)
        await work.events(second)
        assert [request["id"] for request in await work.waiting(first)] == [request["id"] for request in waiting]
        await work.decide(first, waiting[1], scope="conversation")
        resolved = {waiting[1]["id"], waiting[2]["id"]}

        def both(event: dict[str, Any]) -> bool:
            if event["type"] == "request.resolved":
                resolved.discard(event["request"])
            return not resolved

        await work.until(first, both)
        # What was answered covers the same command beside it, and not the one that was allowed elsewhere.
        assert [request["input"]["command"] for request in await work.waiting(first)] == ["touch x"]
        await work.server.command(first, type="interrupt")


@pytest.mark.parametrize("match", ["program:python3", "program:make", "program:bash", "program:env", "program:npm run"])
async def test_older_grant_of_a_program_that_runs_anything_asks_and_is_shown_so(tmp_path: Path, match: str) -> None:
    older = StandingGrant(id="g1", tool="shell", scope="agent", match=match, agent="default", ts=1)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/grants.json").write_bytes(msgspec.json.encode({"version": 1, "grants": [older]}))
    program = match.removeprefix("program:")
    async with at_work(tmp_path, Answer.of(run(f"{program} --version"))) as work:
        conversation = await work.begin("go")
        (request,) = await work.opened(conversation)
        (grant,) = await listed(work)
        await work.server.command(conversation, type="interrupt")
        assert (await work.server.http.delete("/api/grants/g1")).status_code == 204
    assert [offer["match"] for offer in request["offers"]] == [f"{program} --version"]
    assert grant["problem"].startswith(f"This counts no more: {program} can run")


# -- how far a yes reaches, by face, token and scope

WRITE = Call(name="write", input={"path": "a", "content": "1"})
AGAIN = Call(name="write", input={"path": "b", "content": "1"})
LASTING = {
    "native": {"agent": "agent", "project": "project", "conversation": "conversation"},
    "bus": {"agent": "Always allow", "conversation": "Allow for this session"},
    "socket": {"agent": "always", "conversation": "session"},
}


async def allow(face: str, server: Served, token: str, conversation: str, request: dict[str, Any], scope: str) -> Any:
    """The lasting yes in the words of a face; what native clients are answered, else None."""
    headers = {"Authorization": f"Bearer {token}"}
    word = LASTING[face][scope]
    async with http_client(server.url, headers) as http:
        match face:
            case "native":
                body = {"type": "resolve_request", "request": request["id"], "verdict": "allow", "scope": word}
                body["offer"] = len(request["offers"]) - 1
                return await http.post(f"/api/conversations/{conversation}/commands", json=body)
            case "bus":
                answers = [{"question_index": 0, "selected": [word]}]
                body = {"question_id": request["id"], "answers": answers}
                return await http.post("/api/ask-user-response", json=body)
            case _:
                frame = {
                    "type": "tool_interaction_response",
                    "sessionId": conversation,
                    "callId": request["call"],
                    "interactionId": request["id"],
                    "action": "approve",
                    "approvalScope": word,
                }
                url = server.url.replace("http://", "ws://") + "/ws"
                async with connect(url, additional_headers=headers) as socket:
                    await socket.send(msgspec.json.encode({"type": "hello", "protocolVersion": 2}).decode())
                    await socket.send(msgspec.json.encode(frame).decode())
                    await socket.send(msgspec.json.encode({"type": "ping"}).decode())
                    async with asyncio.timeout(10):
                        while True:
                            told = msgspec.json.decode(await socket.recv())
                            if told.get("type") in ("error", "pong", "interaction_resolved"):
                                return told


@pytest.mark.parametrize(("face", "scope"), [(face, scope) for face, scopes in LASTING.items() for scope in scopes])
async def test_yes_beyond_the_conversation_takes_a_token_that_may_change_agents(
    tmp_path: Path, face: str, scope: str
) -> None:
    """By role: an agent's and an observer's are refused, a person's reaches the conversation, the owner's all of it."""
    data = with_tokens(tmp_path / "data")
    script = [Answer.of(WRITE), Answer.of("ok")] * 2
    async with at_work(tmp_path, *script, Answer.of(AGAIN), Answer.of("ok")) as work:
        tokens = {"agent": "agent-token", "observer": "observer-token", "human": "human-token"}
        first = await work.begin("one")
        (request,) = await work.opened(first)
        for kind in ("agent", "observer"):
            await allow(face, work.server, tokens[kind], first, request, scope)
            assert [one["id"] for one in await work.waiting(first)] == [request["id"]]
        told = await allow(face, work.server, tokens["human"], first, request, scope)
        resolved = of(await work.events(first), "request.resolved")
        assert [event["scope"] for event in resolved] == ["conversation"]
        assert resolved[0].get("asked_scope") == (None if scope == "conversation" else scope)
        if face == "native":
            assert ("may not change agents" in told.json().get("note", "")) is (scope != "conversation")
        assert [grant for grant in await listed(work) if grant["scope"] != "conversation"] == []
        # Elsewhere it is asked for as before. There the owner says the same, and it reaches as far as was said.
        second = await work.begin("two")
        (request,) = await work.opened(second)
        await allow(face, work.server, work.server.token, second, request, scope)
        assert [event["scope"] for event in of(await work.events(second), "request.resolved")] == [scope]
        third = await work.begin("three")
        if scope == "conversation":
            assert len(await work.opened(third)) == 1
            await work.server.command(third, type="interrupt")
        else:
            assert of(await work.events(third), "request.opened") == []
            assert (work.project / "b").exists()
    assert data.exists()


async def test_repeated_yes_of_a_person_is_told_the_same(tmp_path: Path) -> None:
    with_tokens(tmp_path / "data")
    headers = {"Authorization": "Bearer human-token"}
    async with (
        at_work(tmp_path, Answer.of(WRITE), Answer.of("ok")) as work,
        http_client(work.server.url, headers) as human,
    ):
        conversation = await work.begin("one")
        (request,) = await work.opened(conversation)
        body = {"type": "resolve_request", "request": request["id"], "verdict": "allow", "scope": "agent"}
        path = f"/api/conversations/{conversation}/commands"
        answers = [await human.post(path, json={**body, "client_request_id": "q"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    assert "may not change agents" in answers[0].json()["note"]


# -- denials


@pytest.mark.parametrize("scope", ["conversation", "agent", "project"])
@pytest.mark.parametrize("token", ["owner", "human"])
async def test_denial_that_should_last_is_refused_and_says_what_lasts(tmp_path: Path, token: str, scope: str) -> None:
    """Nothing is answered by it: a client that means more than this call must not believe that it was heard."""
    with_tokens(tmp_path / "data")
    async with at_work(tmp_path, Answer.of(WRITE), Answer.of("ok")) as work:
        given = work.server.token if token == "owner" else f"{token}-token"
        conversation = await work.begin("one")
        (request,) = await work.opened(conversation)
        body = {"type": "resolve_request", "request": request["id"], "verdict": "deny", "scope": scope}
        async with http_client(work.server.url, {"Authorization": f"Bearer {given}"}) as http:
            refused = await http.post(f"/api/conversations/{conversation}/commands", json=body)
            assert [one["id"] for one in await work.waiting(conversation)] == [request["id"]]
            denied = await http.post(f"/api/conversations/{conversation}/commands", json={**body, "scope": "once"})
        await work.events(conversation)
    assert (refused.status_code, "deny_continue" in refused.json()["message"]) == (400, True)
    assert denied.status_code == 202
    assert not (tmp_path / "project" / "a").exists()


# -- what was allowed for one conversation


@pytest.mark.parametrize("token", ["owner", "human"])
async def test_grant_for_a_conversation_is_listed_with_who_gave_it_and_taken_back(tmp_path: Path, token: str) -> None:
    with_tokens(tmp_path / "data")
    async with at_work(tmp_path, Answer.of(WRITE), Answer.of("ok"), Answer.of(AGAIN), Answer.of("ok")) as work:
        given = work.server.token if token == "owner" else f"{token}-token"
        conversation = await work.begin("one")
        (request,) = await work.opened(conversation)
        await allow("native", work.server, given, conversation, request, "conversation")
        await work.events(conversation)
        (grant,) = await listed(work)
        assert (grant["tool"], grant["scope"], grant["conversation"]) == ("write", "conversation", conversation)
        assert (grant["request"], grant["problem"], grant["ts"] > 0) == (request["id"], None, True)
        assert grant["by"] == ("owner" if token == "owner" else "the human")
        path = f"/api/grants/{grant['id']}"
        for lesser in ("agent", "observer"):
            async with http_client(work.server.url, {"Authorization": f"Bearer {lesser}-token"}) as http:
                assert (await http.delete(path)).status_code == 403
                assert [one["id"] for one in (await http.get("/api/grants")).json()["items"]] == [grant["id"]]
        assert [(await work.server.http.delete(path)).status_code for _ in range(2)] == [204, 404]
        assert (await listed(work), (await work.server.state(conversation))["grants"]) == ([], [])
        await work.server.send(conversation, "again")
        assert len(await work.opened(conversation, 2)) == 1
        await work.server.command(conversation, type="interrupt")


async def test_giver_of_an_older_grant_is_found_in_the_log(tmp_path: Path) -> None:
    """Forty answers later the view has forgotten the one that gave it."""
    calls = [Answer.of(run(f"touch {place}")) for place in range(40)]
    async with at_work(tmp_path, Answer.of(WRITE), *calls, Answer.of("ok")) as work:
        conversation = await work.begin("one")
        (request,) = await work.opened(conversation)
        await allow("native", work.server, work.server.token, conversation, request, "conversation")
        for place in range(40):
            (request,) = await work.opened(conversation, place + 2)
            await work.decide(conversation, request)
        await work.events(conversation)
        (grant,) = await listed(work)
    assert grant["by"] == "owner"


async def test_grants_of_deleted_conversations_are_not_listed(tmp_path: Path) -> None:
    async with at_work(tmp_path, Answer.of(WRITE), Answer.of("ok")) as work:
        conversation = await work.begin("one")
        (request,) = await work.opened(conversation)
        await allow("native", work.server, work.server.token, conversation, request, "conversation")
        await work.events(conversation)
        (grant,) = await listed(work)
        await work.server.command(conversation, type="delete_conversation")
        assert await listed(work) == []
        assert (await work.server.http.delete(f"/api/grants/{grant['id']}")).status_code in (404, 410)
        assert (await work.server.http.delete("/api/grants/nowhere.0")).status_code == 404

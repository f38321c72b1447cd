"""Approvals over the real server: first answer wins, through restarts, for as long and as much as was said."""

import asyncio
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.people.authentication import KeyRecord, token_hash
from tests.flows.at_work import Work, at_work, of
from tests.flows.engine import gone
from tests.flows.served import LOOK_EVERY_S, WAIT_S
from tests.provider import Answer, Call, Say, scripted_provider

pytestmark = pytest.mark.anyio


def run(command: str) -> Call:
    return Call(name="shell", input={"command": command})


async def test_approval_outlives_a_restart_and_eight_racers_decide_it_once(tmp_path: Path) -> None:
    script = (Answer.of(run("echo ran >> log.txt")), Answer.of("Done."))
    async with scripted_provider(*script) as provider:
        async with at_work(tmp_path, provider=provider) as work:
            conversation = await work.begin("go")
            (before,) = await work.opened(conversation)
        async with at_work(tmp_path, provider=provider) as work:
            (request,) = await work.waiting(conversation)
            assert (request["id"], request["preview"]) == (before["id"], "echo ran >> log.txt")
            answers = await asyncio.gather(*(work.decide(conversation, request) for _ in range(8)))
            events = await work.until(conversation, lambda event: event["type"] == "turn.finished")
            assert await work.waiting(conversation) == []
    assert [answer.get("applied", True) for answer in answers].count(True) == 1
    assert len(of(events, "request.opened")) == len(of(events, "request.resolved")) == 1
    assert (tmp_path / "project/log.txt").read_text() == "ran\n"


async def test_every_request_says_what_holds_the_command(tmp_path: Path) -> None:
    async with at_work(
        tmp_path, Answer.of(run("touch a"), Call(name="write", input={"path": "b", "content": "x"}))
    ) as work:
        conversation = await work.begin("go")
        requests = await work.opened(conversation, 2)
        await work.server.command(conversation, type="interrupt")
    assert all(request["sandbox"].startswith(("bubblewrap: ", "Landlock: ", "none: ")) for request in requests)
    assert [request["scopes"] for request in requests] == [["once", "conversation", "agent", "project"]] * 2


async def test_partial_decisions_run_the_accepted_and_a_stop_with_one_of_them_ends_the_turn(tmp_path: Path) -> None:
    async with at_work(tmp_path, Answer.of(run("touch a"), run("touch b"), run("touch c"))) as work:
        conversation = await work.begin("go")
        requests = {request["input"]["command"]: request for request in await work.opened(conversation, 3)}

        async def decide(**decisions: bool) -> Any:
            listed = [
                {"call": requests[f"touch {name}"]["call"], "accepted": accepted}
                for name, accepted in decisions.items()
            ]
            return await work.server.command(conversation, type="decide_tools", decisions=listed, then="stop")

        assert (await decide(b=False)).status_code == 202
        state = await work.server.state(conversation)
        assert (state["status"], len(await work.waiting(conversation))) == ("paused", 2)
        assert (await decide(b=True)).status_code == 404
        assert (await decide(a=True, c=True)).status_code == 202
        events = await work.events(conversation)
        state = await work.server.state(conversation)
    assert state["status"] == "idle"
    assert sorted(path.name for path in (tmp_path / "project").glob("?")) == ["a", "c"]
    results = of(events, "tool.finished")
    assert [result["error"]["code"] for result in results if not result["ok"]] == ["tool_denied"]
    assert len(work.provider.bodies) == 1


async def test_expired_request_is_a_denial_and_the_turn_goes_on(tmp_path: Path) -> None:
    async with at_work(tmp_path, Answer.of(run("touch a")), Answer.of("Then not.")) as work:
        conversation = await work.begin("go", request_timeout_s=0.05)
        events = await work.events(conversation)
    assert [event["status"] for event in of(events, "request.resolved")] == ["expired"]
    assert of(events, "tool.finished")[0]["error"]["code"] == "interaction_timeout"
    assert not (tmp_path / "project/a").exists()


# -- always


async def ask_again(work: Work, text: str = "go") -> bool:
    """Whether a new conversation is asked before the command runs."""
    conversation = await work.begin(text)
    events = await work.until(conversation, lambda event: event["type"] in ("request.opened", "turn.finished"))
    await work.server.command(conversation, type="interrupt")
    return bool(events[-1]["type"] == "request.opened")


async def test_always_for_the_project_is_kept_listed_and_taken_back(tmp_path: Path) -> None:
    records = [KeyRecord(name="an agent", kind="agent", hash=token_hash("agent-token"))]
    (tmp_path / "data").mkdir()
    (tmp_path / "data/tokens.json").write_bytes(msgspec.json.encode(records))
    async with scripted_provider(obedient=True) as provider:
        async with at_work(tmp_path, provider=provider) as work:
            conversation = await work.begin("!shell seq 1")
            (request,) = await work.opened(conversation)
            assert [offer["match"] for offer in request["offers"]] == ["seq 1", "program:seq"]
            await work.decide(conversation, request, scope="project", offer=1)
            await work.events(conversation)
            assert not await ask_again(work, "!shell seq 2")
            assert await ask_again(work, "!shell seq 3; seq 4")

        async with at_work(tmp_path, provider=provider) as work:
            assert not await ask_again(work, "!shell seq 5")
            listed = (await work.server.http.get("/api/grants")).json()
            (grant,) = listed["items"]
            agent = {"Authorization": "Bearer agent-token"}
            refused = await work.server.http.delete(f"/api/grants/{grant['id']}", headers=agent)
            removed = await work.server.http.delete(f"/api/grants/{grant['id']}")
            again = await work.server.http.delete(f"/api/grants/{grant['id']}")
            assert await ask_again(work, "!shell seq 6")
    kept = {name: grant[name] for name in ("tool", "match", "scope", "project", "conversation", "by", "problem")}
    assert kept == {
        "tool": "shell",
        "match": "program:seq",
        "scope": "project",
        "project": str(tmp_path / "project"),
        "conversation": conversation,
        "by": "owner",
        "problem": None,
    }
    assert (refused.status_code, removed.status_code, again.status_code) == (403, 204, 404)
    assert stat.S_IMODE((tmp_path / "data/grants.json").stat().st_mode) == 0o600


async def test_broken_file_of_grants_stops_nothing_and_is_said(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/grants.json").write_text("{")
    async with at_work(tmp_path) as work:
        assert await ask_again(work, "!shell touch a")
        listed = (await work.server.http.get("/api/grants")).json()
    assert listed["items"] == []
    assert "grants.json cannot be read" in listed["problem"]


async def test_always_for_the_conversation_can_be_taken_back_there(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        conversation = await work.begin("!shell touch a")
        (request,) = await work.opened(conversation)
        await work.decide(conversation, request, scope="conversation")
        await work.events(conversation)
        (grant,) = (await work.server.state(conversation))["grants"]
        seq = (await work.server.send(conversation, "!shell touch a"))["seq"]
        unasked = await work.server.settled(conversation, after=seq)
        removed = await work.server.command(conversation, type="remove_grant", tool="shell", match="touch a")
        await work.server.send(conversation, "!shell touch a")
        asked = await work.opened(conversation, 2)
        await work.server.command(conversation, type="interrupt")
    assert (grant["tool"], grant["match"], grant["scope"]) == ("shell", "touch a", "conversation")
    assert of(unasked, "request.opened") == []
    assert of(unasked, "tool.started")[0]["grant"] == "conversation"
    assert removed.status_code == 202
    assert len(asked) == 1


@pytest.mark.parametrize("scope", ["agent", "project"])
async def test_always_for_more_can_be_taken_back_where_it_was_given(tmp_path: Path, scope: str) -> None:
    async with at_work(tmp_path) as work:
        conversation = await work.begin("!shell touch a")
        (request,) = await work.opened(conversation)
        await work.decide(conversation, request, scope=scope)
        await work.events(conversation)
        assert not await ask_again(work, "!shell touch a")
        removed = await work.server.command(conversation, type="remove_grant", tool="shell", match="touch a")
        assert removed.status_code == 202
        assert (await work.server.http.get("/api/grants")).json()["items"] == []
        assert await ask_again(work, "!shell touch a")


@pytest.mark.parametrize(
    "command",
    [
        {"type": "decide_tools"},
        {"type": "remove_grant", "tool": "shell"},
        {"type": "set_params", "patch": {"policy": [{"tool": "*", "decision": "allow"}]}},
        {"type": "set_params", "patch": {"policy": None}},
    ],
)
async def test_agents_token_can_neither_approve_nor_change_the_rules(tmp_path: Path, command: Any) -> None:
    records = [KeyRecord(name="an agent", kind="agent", hash=token_hash("agent-token"))]
    (tmp_path / "data").mkdir()
    (tmp_path / "data/tokens.json").write_bytes(msgspec.json.encode(records))
    agent = {"Authorization": "Bearer agent-token"}
    async with at_work(tmp_path) as work:
        conversation = await work.begin("!shell touch a")
        await work.opened(conversation)
        path = f"/api/conversations/{conversation}/commands"
        refused = await work.server.http.post(path, json=command, headers=agent)
        made = await work.server.http.post("/api/conversations", json={"params": {"policy": []}}, headers=agent)
        await work.server.command(conversation, type="interrupt")
    assert (refused.status_code, made.status_code) == (403, 403)
    assert not (tmp_path / "project/a").exists()


# -- editors, and stops


async def test_editors_results_come_in_over_the_wire_in_any_order(tmp_path: Path) -> None:
    calls = [Call(name="rename", input={"n": n}) for n in (1, 2)]
    tool = {"name": "rename", "description": "Renames.", "parameters": {"type": "object"}}
    async with at_work(tmp_path, Answer.of(*calls), Answer.of("Renamed.")) as work:
        conversation = await work.begin("go", ide_tools=[tool])
        seen = 0

        def both(event: dict[str, Any]) -> bool:
            nonlocal seen
            seen += event["type"] == "tool.started"
            return bool(seen == 2)

        started = of(await work.until(conversation, both), "tool.started")
        assert (await work.server.state(conversation))["status"] == "waiting_ide"
        for event in reversed(started):
            answer = await work.server.command(
                conversation, type="return_tool_result", call=event["call"], content=f"done {event['call']}"
            )
            assert answer.status_code == 202
        again = await work.server.command(
            conversation, type="return_tool_result", call=started[0]["call"], content="twice"
        )
        events = await work.events(conversation)
    assert again.status_code in (202, 409)
    assert [event["outcome"] for event in of(events, "turn.finished")] == ["completed"]
    told = [message["content"] for message in work.provider.bodies[1]["messages"] if message["role"] == "tool"]
    assert told == [f"done {event['call']}" for event in of(events, "tool.called")]


async def test_stop_in_the_middle_of_a_batch_kills_what_ignores_signals_and_says_nothing_more(tmp_path: Path) -> None:
    stubborn = (
        "trap '' INT TERM; setsid sh -c 'trap \"\" INT TERM; echo $$ > inner; sleep 876543' & echo $$ > outer; wait"
    )
    calls = (run("touch before"), run(stubborn), run("touch after"))
    policy = [{"tool": "shell", "decision": "allow", "match": call.input["command"]} for call in calls]
    async with at_work(tmp_path, Answer.of(*calls), Answer.of("ok")) as work:
        conversation = await work.begin("go", policy=policy)
        async with asyncio.timeout(WAIT_S):
            while not (tmp_path / "project/inner").exists():  # noqa: ASYNC110 - a file tells nobody
                await asyncio.sleep(LOOK_EVERY_S)
        stopped = await work.server.command(conversation, type="interrupt")
        events = await work.events(conversation)
        await work.server.send(conversation, "and now?")
        after = await work.server.settled(conversation, after=events[-1]["seq"])
        refused = [request.refused for request in work.provider.requests]
    assert stopped.status_code == 202
    assert events[-1]["type"] == "turn.interrupted"
    assert [event["effect"] for event in of(events, "tool.finished") if "effect" in event] == ["unknown", "none"]
    assert not [event for event in after if event.get("turn") == events[-1]["turn"]]
    assert refused == [None, None]
    assert not (tmp_path / "project/after").exists()
    await gone("876543")


# -- questions and plans wait in the same place

STORES = [{"label": "SQLite"}, {"label": "PostgreSQL"}]
QUESTION = Call(name="ask_user", input={"questions": [{"question": "Which store?", "options": STORES}]})
PLAN = Call(name="plan", input={"summary": "Two steps", "items": [{"title": "Look"}, {"title": "Leap"}]})


async def test_approval_question_and_plan_wait_in_one_list_and_are_answered_after_a_restart(tmp_path: Path) -> None:
    script = (
        Answer(blocks=(run("touch a"),), when="approval"),
        Answer(blocks=(QUESTION,), when="question"),
        Answer(blocks=(PLAN,), when="plan"),
        Answer(blocks=(Say(text="Done."),), repeat=True),
    )
    async with scripted_provider(*script) as provider:
        async with at_work(tmp_path, provider=provider) as work:
            begun = {kind: await work.begin(kind) for kind in ("approval", "question")}
            begun["plan"] = await work.begin("plan", mode="plan")
            for conversation in begun.values():
                await work.opened(conversation)

        async with at_work(tmp_path, provider=provider) as work:
            listed = (await work.server.http.get("/api/requests")).json()["items"]
            waiting = {item["request"]["kind"]: item["request"] for item in listed}
            assert {item["request"]["kind"]: item["conversation"] for item in listed} == begun
            answers: dict[str, dict[str, Any]] = {
                "approval": {"verdict": "allow"},
                "question": {"answers": [{"selected": ["SQLite"]}]},
                "plan": {"verdict": "allow"},
            }
            for kind, answer in answers.items():
                seq = (await work.server.state(begun[kind]))["seq"]
                decided = await work.server.command(
                    begun[kind], type="resolve_request", request=waiting[kind]["id"], **answer
                )
                assert decided.status_code == 202, decided.text
                events = await work.server.settled(begun[kind], after=seq)
                assert events[-1]["outcome"] == "completed"
            assert (await work.server.http.get("/api/requests")).json()["items"] == []
            told = [str(body["messages"]) for body in provider.bodies]
    assert waiting["question"]["questions"][0]["question"] == "Which store?"
    assert [item["title"] for item in waiting["plan"]["plan"]["items"]] == ["Look", "Leap"]
    assert (tmp_path / "project/a").exists()
    assert any('"chosen": ["SQLite"]' in messages for messages in told)
    assert any("plan was approved" in messages for messages in told)


@pytest.mark.parametrize("command", [{"type": "interrupt"}, {"type": "send_message", "content": "never mind"}])
async def test_question_that_is_called_off_after_a_restart_is_closed_with_a_reason(
    tmp_path: Path, command: Any
) -> None:
    script = (Answer.of(QUESTION), Answer(blocks=(Say(text="Fine."),), repeat=True))
    async with scripted_provider(*script) as provider:
        async with at_work(tmp_path, provider=provider) as work:
            conversation = await work.begin("go")
            (request,) = await work.opened(conversation)
        async with at_work(tmp_path, provider=provider) as work:
            assert (await work.server.command(conversation, **command)).status_code == 202
            late = await work.decide(conversation, request, "deny")
            assert await work.waiting(conversation) == []
            (known,) = (await work.server.state(conversation))["requests"]
            await work.server.command(conversation, type="interrupt")
            await work.server.send(conversation, "go on")
            await work.until(conversation, lambda event: event["type"] == "turn.finished")
            refused = [received.refused for received in provider.requests]
    assert known["status"] == ("cancelled" if command["type"] == "interrupt" else "superseded")
    assert late["applied"] is False
    assert set(refused) == {None}

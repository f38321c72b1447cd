"""Plan mode over the bus: proposed, answered, carried out."""

from pathlib import Path

import msgspec
import pytest

from tests.flows.at_work import Work, at_work
from tests.flows.engine import bodies, engine
from tests.flows.faces.bus.listening import Event, Listener, chat, get, is_a, listening, of, post
from tests.provider import ScriptedProvider
from tests.provider.server import serving as service

OUTCOME = is_a("run", "outcome")
ITEMS = [{"title": "Dig"}, {"title": "Sow", "description": "Only where it was dug."}]
PROPOSE = f"!tool plan {msgspec.json.encode({'summary': 'A garden', 'items': ITEMS}).decode()}"


async def proposed(work: Work, bus: Listener, words: str = PROPOSE) -> tuple[Event, list[Event]]:
    began = await chat(work.server, f"Plan it.\n{words}", project_root=str(work.project), mode="plan")
    return began, await bus.until(OUTCOME)


async def test_plan_mode_takes_the_writing_tools_away_and_ends_with_a_plan(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began, told = await proposed(work, bus)
        (item,) = (await get(work.server, "/api/pending", session_id=began["session_id"]))["items"]
        (body,) = bodies(work, "Plan it.")
    offered = {tool["function"]["name"] for tool in body["tools"]}
    assert offered & {"edit", "write", "patch", "fetch"} == set()
    assert "plan" in offered
    assert told[-1]["data"] == {"outcome": "plan"}
    plan = of(told, "run", "plan_update")[-1]["data"]["plan"]
    assert plan == {
        "summary": "A garden",
        "items": [{**item, "status": "pending"} for item in ITEMS],
        "status": "planned",
    }
    assert (item["kind"], item["plan"], item["run_id"]) == ("plan", plan, began["run_id"])


async def test_slash_plan_is_plan_mode(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began = await chat(work.server, f"/plan A bed.\n{PROPOSE}", project_root=str(work.project))
        told = await bus.until(OUTCOME)
        state = await work.server.state(began["session_id"])
    assert told[-1]["data"] == {"outcome": "plan"}
    assert of(told, "message")[0]["text"].startswith("A bed.")
    assert state["title"] == "A bed."


@pytest.mark.parametrize("named", [True, False])
async def test_approved_plan_is_carried_out_and_what_was_left_undone_is_skipped(tmp_path: Path, named: bool) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began, _ = await proposed(work, bus)
        which = {"session_id": began["session_id"]} if named else {}
        where = {"project_root": str(work.project), "agent_id": "default"}
        approved = await post(work.server, "/api/plan/approve", **where, **which)
        told = await bus.until(OUTCOME)
        again = await work.server.http.post("/api/plan/approve", json={**where, **which})
    assert approved == {"status": "approved"}
    plans = [event["data"]["plan"] for event in of(told, "run", "plan_update")]
    assert [plan["status"] for plan in plans] == ["approved", "executing", "completed"]
    assert {item["status"] for item in plans[-1]["items"]} == {"skipped"}
    assert len({event["id"] for event in of(bus.heard, "run", "plan_update")}) == 1
    assert told[-1]["data"] == {"outcome": "none"}
    assert again.status_code == 404


async def test_rejected_plan_is_dropped(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began, _ = await proposed(work, bus)
        where = {"project_root": str(work.project), "agent_id": "default"}
        other = await work.server.http.post("/api/plan/reject", json={**where, "session_id": "another"})
        rejected = await post(work.server, "/api/plan/reject", **where)
        pending = await get(work.server, "/api/pending")
        state = await work.server.state(began["session_id"])
    assert (rejected, pending) == ({"status": "rejected"}, {"items": []})
    assert (state["plan"], state["turn"]) == (None, None)
    assert other.status_code == 404


async def test_edited_plan_is_taken_up_by_the_agent_which_proposes_again(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began, _ = await proposed(work, bus)
        where = {"project_root": str(work.project), "agent_id": "default"}
        edited = await post(work.server, "/api/plan/edit", **where, text="1. Dig deeper\n2. Rest")
        told = await bus.until(OUTCOME)
        empty = await work.server.http.post("/api/plan/edit", json={**where, "text": " "})
    assert edited == {"status": "edited"}
    assert "Dig deeper" in str(bodies(work, "Plan it.")[-1]["messages"])
    assert told[-1]["session_id"] == began["session_id"]
    assert empty.status_code == 400


async def test_pending_plan_survives_a_restart(tmp_path: Path) -> None:
    async with service(ScriptedProvider()) as provider:
        async with at_work(tmp_path, provider=provider) as work, listening(work.server) as bus:
            began, _ = await proposed(work, bus)
        async with at_work(tmp_path, provider=provider) as work, listening(work.server) as bus:
            (item,) = (await get(work.server, "/api/pending"))["items"]
            await post(work.server, "/api/plan/approve", project_root=str(work.project), agent_id="default")
            told = await bus.until(OUTCOME)
    assert (item["kind"], item["session_id"]) == ("plan", began["session_id"])
    assert [event["data"]["plan"]["status"] for event in of(told, "run", "plan_update")] == [
        "approved",
        "executing",
        "completed",
    ]


async def test_plan_is_approved_with_null_for_what_may_be_left_out(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        await proposed(work, bus)
        where = {"project_root": str(work.project), "agent_id": "default"}
        approved = await post(work.server, "/api/plan/approve", **where, session_id=None, clear_context=None)
    assert approved == {"status": "approved"}


async def test_plan_is_carried_out_without_what_was_said_before_it(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        await proposed(work, bus, f"Remember the marigolds.\n{PROPOSE}")
        where = {"project_root": str(work.project), "agent_id": "default"}
        await post(work.server, "/api/plan/approve", **where, clear_context=True)
        told = await bus.until(OUTCOME)
        body = work.provider.requests[-1].body
    assert told[-1]["data"] == {"outcome": "none"}
    assert "marigolds" not in str(body["messages"])
    assert "A garden" in str(body["messages"])
    assert "Only where it was dug." in str(body["messages"])

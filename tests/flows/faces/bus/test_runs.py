"""Runs: listed, their children, what was said in them, and stopping the whole tree."""

import secrets
from datetime import datetime
from pathlib import Path

from tests.flows.engine import DEAD_S, engine, gone
from tests.flows.faces.bus.listening import chat, free_session, get, is_a, listening, of, post
from tests.flows.served import serving
from tests.flows.test_delegation import crew, running, task
from tests.unit.tools.workshop import processes_with

OUTCOME = is_a("run", "outcome")
FIELDS = {
    "run_id",
    "session_id",
    "agent_id",
    "agent_kind",
    "parent_run_id",
    "status",
    "detail",
    "started_at",
    "ended_at",
}


async def test_runs_are_listed_with_their_children_and_their_context(tmp_path: Path) -> None:
    async with crew(tmp_path) as work, listening(work.server) as bus:
        words = task("!say Built it.", "builder")
        began = await chat(work.server, words, project_root=str(work.project), agent_id="coordinator")
        told = await bus.until(is_a("run", "outcome", session_id=began["session_id"]))
        own = await get(work.server, "/api/agent-runs", project_root=str(work.project), session_id=began["session_id"])
        every = await get(work.server, "/api/agent-runs", project_root=str(work.project))
        elsewhere = await get(work.server, "/api/agent-runs", project_root=str(tmp_path))
        children = await get(work.server, "/api/agent-children", run_id=began["run_id"])
        summary = await get(work.server, "/api/agent-context", run_id=began["run_id"], view="summary")
        raw = await get(work.server, "/api/agent-context", run_id=began["run_id"], view="raw")
        unknown = await work.server.http.get("/api/agent-context", params={"run_id": "nothing"})
    (run,), (child,) = own, children
    assert set(run) == set(child) == FIELDS
    assert (run["run_id"], run["status"], run["parent_run_id"]) == (began["run_id"], "completed", None)
    assert (run["agent_id"], run["agent_kind"], run["detail"]) == ("coordinator", "main", None)
    assert run["ended_at"] >= run["started_at"] > 0
    assert (child["parent_run_id"], child["agent_id"], child["agent_kind"]) == (run["run_id"], "builder", "subagent")
    assert {one["run_id"] for one in every} == {run["run_id"], child["run_id"]}
    assert elsewhere == []
    assert (summary["run"], summary["messages"]) == (run, None)
    assert sorted(summary["summary"]) == [
        "agent_messages",
        "ended_at",
        "message_count",
        "started_at",
        "system_messages",
        "user_messages",
    ]
    assert (summary["summary"]["user_messages"], summary["summary"]["agent_messages"]) == (1, 2)
    assert [message["role"] for message in raw["messages"]] == ["user", "agent", "agent"]
    assert raw["messages"][0]["text"] == words
    assert [(message["from"], message["to"]) for message in raw["messages"]] == [
        ("user", "coordinator"),
        ("coordinator", "user"),
        ("coordinator", "user"),
    ]
    for message in raw["messages"]:
        assert message["timestampMs"] == message["timestamp_ms"] > 0
        assert datetime.fromisoformat(message["timestamp"]).timestamp() * 1000 == message["timestampMs"]
    assert [message["toolCount"] for message in raw["messages"]] == [0, 1, 0]
    assert [len(message["activityEntries"]) for message in raw["messages"]] == [0, 1, 0]
    assert unknown.status_code == 404
    # A subagent's words are its own session's; the parent is told that it began, first of all, and what came of it.
    of_the_child = [event for event in told if child["session_id"] in str(event) and event.get("phase") != "sync"]
    assert of(of_the_child[:1], "run", "subagent_spawned")
    (spawned,), (result,) = of(told, "run", "subagent_spawned"), of(told, "run", "subagent_result")
    assert (spawned["session_id"], spawned["agent_id"]) == (began["session_id"], "coordinator")
    assert spawned["data"] == {
        "parent_id": "coordinator",
        "subagent_id": child["session_id"],
        "agent_id": "builder",
        "run_id": child["run_id"],
        "task": "!say Built it.",
    }
    assert result["data"] == {
        "parent_id": "coordinator",
        "subagent_id": child["session_id"],
        "run_id": child["run_id"],
        "outcome": "task",
    }


async def test_subagent_traffic_never_lands_in_the_parents_transcript(tmp_path: Path) -> None:
    async with crew(tmp_path) as work, listening(work.server) as bus:
        words = task("!think Secretly.\n!say A long word.", "builder")
        began = await chat(work.server, words, project_root=str(work.project), agent_id="coordinator")
        told = await bus.until(is_a("run", "outcome", session_id=began["session_id"]))
    (child,) = {event["session_id"] for event in told} - {began["session_id"]}
    talk = ("token", "text_segment", "message", "activity")
    theirs = [event for event in told if event["session_id"] == child and event["kind"] in talk]
    mine = [event for event in told if event["session_id"] == began["session_id"] and event["kind"] in talk]
    assert {event["agent_id"] for event in theirs} == {"builder"}
    assert {event["agent_id"] for event in mine} == {"coordinator"}
    assert "".join(event["text"] for event in of(theirs, "text_segment")) == "A long word."
    assert "Secretly." not in str([event for event in mine if event["kind"] == "token"])
    assert {event["data"].get("parent_id") for event in theirs if event["kind"] == "activity"} == {began["session_id"]}


async def test_cancel_stops_the_whole_tree_and_its_processes_within_two_seconds(tmp_path: Path) -> None:
    tag = secrets.token_hex(8)
    async with crew(tmp_path) as work, listening(work.server) as bus:
        words = task(f"!shell sleep 600; echo {tag}", "builder")
        began = await chat(work.server, words, project_root=str(work.project), agent_id="coordinator")
        await running(tag, 1)
        (child,) = await get(work.server, "/api/agent-children", run_id=began["run_id"])
        cancelled = await post(work.server, "/api/agent-cancel", run_id=began["run_id"])
        await gone(tag)
        ended = [
            (await bus.until(is_a("run", "outcome", session_id=session)))[-1]["data"]["outcome"]
            for session in (began["session_id"],)
        ]
        runs = await get(work.server, "/api/agent-runs", project_root=str(work.project))
        again = await post(work.server, "/api/agent-cancel", run_id=began["run_id"])
        unknown = await post(work.server, "/api/agent-cancel", run_id="nothing")
    assert set(cancelled["cancelled_run_ids"]) == {began["run_id"], child["run_id"]}
    assert ended == ["cancelled"]
    assert {run["status"] for run in runs} == {"cancelled"}
    assert (again, unknown) == ({"cancelled_run_ids": []}, {"cancelled_run_ids": []})
    assert (processes_with(tag), DEAD_S) == ([], 2.0)


async def test_cancel_stops_a_stream_and_the_run_is_cancelled_never_completed(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began = await chat(work.server, "!say Half of it.\n!gate never")
        await work.provider.gates.reached("never")
        await bus.until(is_a("token"))
        await post(work.server, "/api/agent-cancel", run_id=began["run_id"])
        told = await bus.until(OUTCOME)
        (run,) = await get(work.server, "/api/agent-runs", session_id=began["session_id"])
    assert told[-1]["data"] == {"outcome": "cancelled"}
    assert run["status"] == "cancelled"
    # What had been said stays.
    assert of(told, "text_segment")[0]["text"].startswith("Half")


async def test_run_from_before_a_restart_is_healed_to_cancelled(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        began = await chat(work.server, "!say Half of it.\n!gate never")
        await work.provider.gates.reached("never")
    async with serving(tmp_path / "data") as again:
        (run,) = await get(again, "/api/agent-runs", session_id=began["session_id"])
    assert (run["run_id"], run["status"]) == (began["run_id"], "cancelled")
    assert run["detail"]


async def test_failed_run_ends_in_error_and_says_why(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began = await chat(work.server, "!status 400")
        told = await bus.until(OUTCOME)
        (run,) = await get(work.server, "/api/agent-runs", session_id=began["session_id"])
    assert told[-1]["data"] == {"outcome": "error"}
    assert run["status"] == "failed"
    assert run["detail"] == told[-1]["text"]


async def test_change_of_files_is_reported_with_its_diff_and_the_run_is_a_patch(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        session = await free_session(work.server, work.project)
        await chat(work.server, "!write notes.txt one\\ntwo", session_id=session)
        told = await bus.until(OUTCOME)
    (report,) = of(told, "run", "change_report")
    (file,) = report["data"]["files"]
    assert (file["path"], file["summary"]) == ("notes.txt", "created (+2 −0)")  # noqa: RUF001
    assert "+one" in file["diff"]
    assert report["data"]["truncated_count"] == 0
    assert told[-1]["data"] == {"outcome": "patch"}
    meters = of(told, "run", "context_usage")
    assert {meter["id"] for meter in meters} == {f"context-{session}"}
    assert meters[-1]["data"].keys() >= {
        "agent_id",
        "stage",
        "message_count",
        "char_count",
        "estimated_tokens",
        "actual_prompt_tokens",
        "actual_completion_tokens",
        "compressed",
        "summary_count",
    }

"""Missions, what a project says of an agent's resting, and its files."""

import asyncio
from pathlib import Path

from palaver.clock import ManualClock
from tests.flows.faces.bus.listening import get, is_a, listening, of, post
from tests.flows.served import WAIT_S, serving
from tests.flows.test_missions import script

AGENT = {"id": "default", "idle_prompt": "Go on.", "idle_interval_secs": 45}


async def test_new_mission_ends_the_former_one_and_keeps_it_in_the_history(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    project = str(tmp_path / "project")
    async with serving(tmp_path / "data") as server, listening(server, project_root=project) as bus:
        none = await get(server, "/api/mission", project_root=project)
        first = await post(server, "/api/mission", project_root=project, text="Tidy up", agents=[AGENT])
        await bus.until(is_a("run", "sync"))
        await post(server, "/api/mission", project_root=project, text="Paint", agents=[{"id": "other"}])
        active = await get(server, "/api/mission", project_root=project)
        missions = (await get(server, "/api/missions", project_root=project))["missions"]
        (tmp_path / "other").mkdir()
        elsewhere = (await get(server, "/api/missions", project_root=str(tmp_path / "other")))["missions"]
        cleared = await server.http.request("DELETE", "/api/mission", json={"project_root": project})
        after = await get(server, "/api/mission", project_root=project)
        again = await server.http.delete("/api/mission", params={"project_root": project})
        every = (await get(server, "/api/missions"))["missions"]
        unknown = await server.http.post(
            "/api/mission", json={"project_root": project, "text": "x", "agents": [{"id": "no"}]}
        )
        nowhere = await server.http.get("/api/mission", params={"project_root": str(tmp_path / "nowhere")})
    assert (none, first, after) == ({"active": False}, {"ok": True}, {"active": False})
    assert sorted(active) == ["active", "agents", "created_at", "text"]
    assert (active["text"], active["active"], active["agents"]) == ("Paint", True, [{"id": "other"}])
    assert [(one["text"], one["active"]) for one in missions] == [("Paint", True), ("Tidy up", False)]
    assert missions[1]["agents"] == [AGENT]
    assert elsewhere == []
    assert (cleared.status_code, cleared.json(), again.json()) == (200, {"ok": True}, {"ok": True})
    assert [one["active"] for one in every] == [False, False]
    assert (unknown.status_code, nowhere.status_code) == (404, 400)


async def test_override_has_its_fields_and_null_where_unset(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    project = {"project_root": str(tmp_path / "project"), "agent_id": "default"}
    async with serving(tmp_path / "data") as server:
        unset = await get(server, "/api/agent-override", **project)
        raised = await post(server, "/api/agent-override", **project, idle_prompt="Look.", idle_interval_secs=5)
        partly = await post(server, "/api/agent-override", **project, idle_prompt=None)
        read = await get(server, "/api/agent-override", **project)
        unknown = await server.http.get("/api/agent-override", params={**project, "agent_id": "no"})
    assert unset == {**project, "idle_prompt": None, "idle_interval_secs": None}
    assert raised == {**project, "idle_prompt": "Look.", "idle_interval_secs": 30}
    assert partly == read == {**project, "idle_prompt": None, "idle_interval_secs": 30}
    assert unknown.status_code == 404


async def test_idle_prompt_is_told_in_the_agents_own_session_of_the_mission(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    clock = ManualClock()
    async with serving(tmp_path / "data", script, clock=clock) as server, listening(server) as bus:
        await post(server, "/api/mission", project_root=str(project), text="Tidy up", agents=[AGENT])
        telling = asyncio.create_task(bus.until(is_a("run", "outcome")))
        async with asyncio.timeout(WAIT_S):
            while not telling.done():
                await clock.advance(5)
                await server.http.get("/api/health")
        told = await telling
        runs = await get(server, "/api/agent-runs", project_root=str(project))
        context = await get(server, "/api/agent-context", run_id=runs[0]["run_id"], view="raw")
    (woken,) = of(told, "activity", "doing", status="idle_prompt_triggered")
    assert (woken["agent_id"], woken["project_root"]) == ("default", str(project))
    assert woken["session_id"] == runs[0]["session_id"] == told[-1]["session_id"]
    assert woken["data"] == {"status": "idle_prompt_triggered"}
    # Closed under its id when its turn begins, before the turn has a status of its own.
    (begun,) = of(told, "activity", "done", status="idle_prompt_triggered")
    (loading,) = of(told, "activity", "doing", status="model_loading")
    assert (begun["id"], begun["session_id"], begun["agent_id"]) == (woken["id"], woken["session_id"], "default")
    assert woken["seq"] < begun["seq"] < loading["seq"]
    # Nobody wrote it: it says from whom it is.
    (message,) = of(told, "message")
    assert message["data"] == {"from": "mission", "to": "default", "role": "user"}
    assert context["messages"][0]["from"] == "mission"


async def test_tree_leaves_out_what_git_ignores_and_never_leads_outside(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (project / "src", project / "build", outside):
        folder.mkdir(parents=True)
    (outside / "secret.txt").write_text("secret")
    (project / ".gitignore").write_text("build/\n*.log\n")
    for name in ("src/main.py", "build/out.bin", "noise.log", "readme.md"):
        (project / name).write_text("words")
    (project / "leak").symlink_to(outside)
    (project / "leak.txt").symlink_to(outside / "secret.txt")
    async with serving(tmp_path / "data") as server:
        answer = await server.http.get("/api/workspace/tree", params={"project_root": str(project)})
        up = await server.http.get("/api/workspace/tree", params={"project_root": str(project), "path": "../outside"})
        through = await server.http.get("/api/workspace/tree", params={"project_root": str(project), "path": "leak"})
    tree = answer.json()
    assert (answer.status_code, tree["project_root"], tree["truncated"]) == (200, str(project), False)
    found = {entry["name"]: entry for entry in tree["entries"]}
    assert sorted(found) == [".gitignore", "leak", "leak.txt", "readme.md", "src"]
    assert (found["src"]["type"], [one["path"] for one in found["src"]["children"]]) == ("directory", ["src/main.py"])
    assert (found["leak"]["type"], found["readme.md"]["size"]) == ("link", 5)
    assert "secret" not in answer.text
    assert up.status_code in (400, 403, 404)
    assert through.status_code in (400, 403, 404)


async def test_health_needs_no_token_and_says_ok(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server, server.browser() as anybody:
        answer = await anybody.get("/api/health")
    assert (answer.status_code, answer.json()) == (200, {"ok": True})

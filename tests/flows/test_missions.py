"""Missions over a real server, on a clock that the test moves."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from palaver.backends.script.script import Say, Step, Wait
from palaver.client import Client
from palaver.client.projects import NamedAgent
from palaver.clock import ManualClock
from palaver.errors import Invalid, NotFound
from tests.flows.served import WAIT_S, Served, serving
from tests.flows.terminal import palaver

pytestmark = pytest.mark.anyio

MINUTE_S = 60


def script(prompt: Any) -> Sequence[Step]:
    return [Say("…"), Wait("work")] if "work hard" in prompt.text else [Say("Done.")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def server(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Served]:
    async with serving(tmp_path / "data", script, clock=clock) as served:
        yield served


async def put(server: Served, folder: Path, text: str = "Tidy up", **fields: Any) -> httpx.Response:
    body = {"text": text, "agents": [{"agent": "default", "idle_prompt": "Go on."}], **fields}
    return await server.http.put("/api/projects/mission", params={"project": str(folder)}, json=body)


async def mission(server: Served, folder: Path) -> dict[str, Any]:
    answer = await server.http.get("/api/projects/mission", params={"project": str(folder)})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def history(server: Served, folder: Path) -> list[dict[str, Any]]:
    answer = await server.http.get("/api/projects/missions", params={"project": str(folder)})
    return list(answer.json()["items"])


async def until_triggered(server: Served, clock: ManualClock, folder: Path, count: int) -> dict[str, Any]:
    """Moves the clock, in steps that a server's own looks can follow, until agents were woken so often, were told, and rest.

    A waking is counted before its agent is told (so a crash between the two never wakes twice): both are waited for.
    """
    async with asyncio.timeout(WAIT_S):
        while True:
            now = await mission(server, folder)
            if now["triggered"] < count:
                await clock.advance(5)
            elif all([await told_and_at_rest(server, agent) for agent in now["agents"] if agent["triggered"]]):
                return now


async def told_and_at_rest(server: Served, agent: dict[str, Any]) -> bool:
    if agent["conversation"] is None or agent["status"] == "busy":
        return False
    # It is named before it is made.
    found = await server.http.get(f"/api/conversations/{agent['conversation']}/snapshot")
    if found.status_code == 404:
        return False
    state = found.json()
    return len(prompts(state)) == agent["triggered"] and state["turn"] is None


async def rested(server: Served, clock: ManualClock, seconds: int) -> None:
    """So much time passes, and the server has looked as often as it would have."""
    for _ in range(seconds // 5):
        await clock.advance(5)
        await server.http.get("/api/health")


def prompts(state: dict[str, Any]) -> list[str]:
    return [message["blocks"][0]["text"] for message in state["messages"] if message.get("event_kind") == "idle_prompt"]


async def test_mission_is_set_wakes_its_agent_and_shows_how_it_stands(
    server: Served, clock: ManualClock, folder: Path
) -> None:
    nothing = await mission(server, folder)
    answer = await put(server, folder, budget_usd=5)
    at_once = answer.json()
    listed = (await server.http.get("/api/conversations")).json()["items"]
    woken = await until_triggered(server, clock, folder, 1)
    conversation = woken["agents"][0]["conversation"]
    state = await server.state(conversation)
    rows = (await server.http.get("/api/conversations")).json()["items"]

    assert (nothing["active"], nothing["mission"]) == (False, None)
    assert answer.status_code == 200
    assert (at_once["active"], at_once["text"], at_once["triggered"], at_once["limit"]) == (True, "Tidy up", 0, 100)
    assert at_once["agents"] == [
        {
            "agent": "default",
            "idle_prompt": "Go on.",
            "idle_interval_s": 60,
            "conversation": None,
            "triggered": 0,
            "next_due_at": at_once["created_at"] + MINUTE_S * 1000,
            "status": "resting",
            "own": {"agent": "default", "idle_prompt": "Go on."},
        }
    ]
    assert listed == []
    assert (woken["triggered"], woken["agents"][0]["triggered"], woken["status"]) == (1, 1, "active")
    assert (woken["budget_usd"], woken["spent_usd"]) == (5, 0)
    assert prompts(state) == ["Tidy up\n\nGo on."]
    assert state["messages"][0]["role"] == "user"
    assert [row["id"] for row in rows] == [conversation]
    assert (rows[0]["parent_kind"], rows[0]["project"]) == ("mission", str(folder))


async def test_new_mission_ends_the_former_which_stays_in_the_history_and_clearing_ends_all(
    server: Served, clock: ManualClock, folder: Path
) -> None:
    first = (await put(server, folder)).json()
    await until_triggered(server, clock, folder, 1)
    second = (await put(server, folder, "Paint", agents=[])).json()
    kept = await history(server, folder)
    cleared = await server.http.delete("/api/projects/mission", params={"project": str(folder)})
    again = await server.http.delete("/api/projects/mission", params={"project": str(folder)})
    ended = await history(server, folder)

    assert [(one["mission"], one["active"], one["triggered"]) for one in kept] == [
        (second["mission"], True, 0),
        (first["mission"], False, 1),
    ]
    assert kept[1]["agents"] == [{"agent": "default", "idle_prompt": "Go on."}]
    assert list(kept[1]["conversations"]) == ["default"]
    assert (cleared.status_code, cleared.json()["active"]) == (200, False)
    assert (again.status_code, again.json()["active"]) == (200, False)
    assert [one["active"] for one in ended] == [False, False]
    assert all(one["ended_at"] is not None for one in ended)


async def test_mission_and_its_count_outlive_a_restart(tmp_path: Path, clock: ManualClock, folder: Path) -> None:
    async with serving(tmp_path / "data", script, clock=clock) as first:
        await put(first, folder, agents=[{"agent": name, "idle_prompt": "Go on."} for name in ("default", "other")])
        before = await until_triggered(first, clock, folder, 4)
    async with serving(tmp_path / "data", script, clock=clock) as again:
        after = await mission(again, folder)
        later = await until_triggered(again, clock, folder, 6)
        states = [await again.state(agent["conversation"]) for agent in later["agents"]]

    assert after["mission"] == before["mission"]
    assert (after["triggered"], [one["triggered"] for one in after["agents"]]) == (4, [2, 2])
    assert [one["conversation"] for one in after["agents"]] == [one["conversation"] for one in before["agents"]]
    assert len({one["conversation"] for one in after["agents"]}) == 2
    # Every waking was told exactly once, on both sides of the restart.
    assert [len(prompts(state)) for state in states] == [one["triggered"] for one in later["agents"]]
    assert [state["agent"] for state in states] == ["default", "other"]


async def test_busy_agent_is_passed_over_until_it_has_rested(server: Served, clock: ManualClock, folder: Path) -> None:
    other = await server.create(project=str(folder))
    sent = await server.send(other, "work hard")
    await server.agent.reached("work")
    await put(server, folder)
    await rested(server, clock, 3 * MINUTE_S)
    busy = await mission(server, folder)
    server.agent.open_gate("work")
    await server.settled(other, after=sent["seq"])
    rested_at = clock.now_ms()
    resting = await mission(server, folder)
    woken = await until_triggered(server, clock, folder, 1)

    assert (busy["agents"][0]["status"], busy["triggered"]) == ("busy", 0)
    assert (resting["agents"][0]["status"], resting["triggered"]) == ("resting", 0)
    assert resting["agents"][0]["next_due_at"] == rested_at + MINUTE_S * 1000
    assert woken["triggered"] >= 1


async def test_clearing_lets_what_runs_go_on_and_wakes_nobody_any_more(
    server: Served, clock: ManualClock, folder: Path
) -> None:
    await put(server, folder, "work hard")
    async with asyncio.timeout(WAIT_S):
        while (await mission(server, folder))["agents"][0]["status"] != "busy":
            await clock.advance(5)
    conversation = (await mission(server, folder))["agents"][0]["conversation"]
    await server.http.delete("/api/projects/mission", params={"project": str(folder)})
    running = await server.state(conversation)
    server.agent.open_gate("work")
    await server.settled(conversation, after=running["seq"])
    await rested(server, clock, 3 * MINUTE_S)
    state = await server.state(conversation)

    assert running["turn"] is not None
    assert running["turn"]["trigger"]["kind"] == "idle"
    assert state["last_turn"]["outcome"] == "completed"
    assert len(prompts(state)) == 1
    assert (await history(server, folder))[0]["triggered"] == 1


async def test_override_counts_between_the_mission_and_the_agent_field_by_field(server: Served, folder: Path) -> None:
    query = {"project": str(folder), "agent": "default"}
    unset = (await server.http.get("/api/projects/override", params=query)).json()
    await server.http.put("/api/projects/override", params=query, json={"idle_prompt": "Up!", "idle_interval_s": 90})
    shorter = (await server.http.put("/api/projects/override", params=query, json={"idle_interval_s": 5})).json()
    await put(server, folder, agents=[{"agent": "default", "idle_interval_s": 300}, {"agent": "other"}])
    over = (await mission(server, folder))["agents"]
    await put(server, folder, agents=[{"agent": "default", "idle_prompt": "Now!"}])
    under = (await mission(server, folder))["agents"]
    cleared = (await server.http.put("/api/projects/override", params=query, json={"idle_prompt": None})).json()

    assert (unset["idle_prompt"], unset["idle_interval_s"]) == (None, None)
    assert (shorter["idle_prompt"], shorter["idle_interval_s"]) == ("Up!", 30)
    assert [(one["idle_prompt"], one["idle_interval_s"]) for one in over] == [("Up!", 300), (None, 60)]
    assert over[1]["status"] == "no_prompt"
    assert [(one["idle_prompt"], one["idle_interval_s"]) for one in under] == [("Now!", 30)]
    assert (cleared["idle_prompt"], cleared["idle_interval_s"]) == (None, 30)


async def test_what_does_not_fit_is_refused_and_the_field_is_named(server: Served, folder: Path) -> None:
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({"text": " "}, 400, "`text`"),
        ({"text": 5}, 400, "`text`"),
        ({"agents": [{"agent": "nobody"}]}, 404, "nobody"),
        ({"agents": [{"agent": "default"}, {"agent": "default"}]}, 400, "twice"),
        ({"agents": [{"agent": "default", "idle_prompt": ""}]}, 400, "`agents[0].idle_prompt`"),
        ({"agents": [{"agent": "default", "idle_interval_s": 1.5}]}, 400, "idle_interval_s"),
        ({"agents": [{"agent": "default", "idle_interval_s": 10**7}]}, 400, "`agents[0].idle_interval_s`"),
        ({"budget_usd": -1}, 400, "`budget_usd`"),
        ({"text": "x" * 20_001}, 413, "`text`"),
    ]
    for fields, status, words in cases:
        answer = await put(server, folder, **fields)
        assert (answer.status_code, words in answer.json()["message"]) == (status, True), answer.text
    nowhere = await put(server, folder / "nowhere")
    relative = await server.http.get("/api/projects/mission", params={"project": "project"})
    missing = await server.http.get("/api/projects/mission")
    query = {"project": str(folder), "agent": "nobody"}
    stranger = await server.http.put("/api/projects/override", params=query, json={"idle_prompt": "Up!"})

    assert (nowhere.status_code, relative.status_code, missing.status_code) == (400, 400, 400)
    assert "no folder on the server" in nowhere.json()["message"]
    assert stranger.status_code == 404
    assert (await mission(server, folder))["active"] is False


async def test_mission_set_twice_under_one_id_is_set_once(server: Served, folder: Path) -> None:
    first = await put(server, folder, client_request_id="one")
    again = await put(server, folder, client_request_id="one")
    other = await put(server, folder, "Paint", client_request_id="one")

    assert again.json()["mission"] == first.json()["mission"]
    assert other.status_code == 409
    assert len(await history(server, folder)) == 1


async def test_every_change_reaches_whoever_follows_the_projects_stream(
    server: Served, clock: ManualClock, folder: Path
) -> None:
    now = (await put(server, folder)).json()
    async with server.events(now["stream"], after=0) as stream:
        await until_triggered(server, clock, folder, 1)
        await server.http.put(
            "/api/projects/override",
            params={"project": str(folder), "agent": "default"},
            json={"idle_prompt": "Up!"},
        )
        await server.http.delete("/api/projects/mission", params={"project": str(folder)})
        seen = [event async for event in stream.until(lambda event: event["type"] == "mission.cleared")]

    kinds = [event["type"] for event in seen]
    assert [kind for kind in kinds if kind != "mission.triggered"] == [
        "mission.set",
        "agent.overridden",
        "mission.cleared",
    ]
    triggered = next(event for event in seen if event["type"] == "mission.triggered")
    assert (triggered["agent"], triggered["count"], triggered["prompt"]) == ("default", 1, "Go on.")
    assert [event["seq"] for event in seen] == list(range(1, len(seen) + 1))
    assert {event["project"] for event in seen} == {str(folder)}
    assert (await server.http.get(f"/api/conversations/{now['stream']}/snapshot")).status_code == 404
    assert (await server.command(now["stream"], type="send_message", content="hello")).status_code == 404


async def test_client_sets_shows_and_clears(server: Served, folder: Path) -> None:
    async with Client.connect(server.url, server.token) as client:
        set_now = await client.set_mission(str(folder), "Tidy up", [NamedAgent("default", "Go on.", 5)], budget_usd=2)
        shown = await client.mission(str(folder))
        override = await client.set_override(str(folder), "other", {"idle_prompt": "Up!"})
        read_back = await client.override(str(folder), "other")
        cleared = await client.clear_mission(str(folder))
        past = await client.missions(str(folder))
        with pytest.raises(Invalid):
            await client.set_mission(str(folder), "")
        with pytest.raises(NotFound):
            await client.set_mission(str(folder), "Tidy up", [NamedAgent("nobody")])

    assert set_now.mission == shown.mission
    assert (shown.agents[0].idle_interval_s, shown.budget_usd) == (30, 2)
    assert override == read_back
    assert (override.idle_prompt, override.idle_interval_s) == ("Up!", None)
    assert not cleared.active
    assert [(one.text, one.active) for one in past] == [("Tidy up", False)]


async def test_command_line_sets_lists_and_clears(server: Served, tmp_path: Path, folder: Path) -> None:
    where = ("--project", str(folder), "--url", server.url)
    data = tmp_path / "data"
    empty = await palaver(data, "missions", "list", *where)
    made = await palaver(data, "missions", "set", "Tidy up", "--agent", "default", "--prompt", "Go on.", *where)
    listed = await palaver(data, "missions", "list", *where)
    wrong = await palaver(data, "missions", "set", "Tidy up", "--agent", "nobody", *where)
    cleared = await palaver(data, "missions", "clear", *where)
    again = await palaver(data, "missions", "clear", *where)
    (past,) = (await palaver(data, "missions", "list", "--json", *where))[1].splitlines()

    assert (empty[0], "No missions yet" in empty[2]) == (0, True)
    assert (made[0], made[1]) == (0, listed[1])
    assert made[1].startswith("Tidy up\n  0 of 100 times\n  default: rests, is woken at ")
    assert (wrong[0], "nobody" in wrong[2]) == (6, True)
    assert (cleared[0], again[0]) == (0, 7)
    assert msgspec.json.decode(past)["text"] == "Tidy up"

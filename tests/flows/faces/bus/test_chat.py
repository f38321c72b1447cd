"""Sending a message, and what becomes of one that meets a busy agent."""

import asyncio
from pathlib import Path

import pytest

from tests.flows.at_work import Work
from tests.flows.engine import bodies, engine, words_of
from tests.flows.faces.bus.listening import Event, Listener, chat, free_session, get, is_a, listening, of, post
from tests.flows.served import serving
from tests.flows.test_delegation import crew

OUTCOME = is_a("run", "outcome")
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


async def busy(work: Work, bus: Listener, name: str = "hold") -> Event:
    """A session whose agent waits at the gate of that name."""
    began = await chat(work.server, f"Begin {name}.\n!say Wait.\n!gate {name}", project_root=str(work.project))
    await work.provider.gates.reached(name)
    return began


def items(event: Event) -> list[str]:
    return [item["preview"] for item in event["data"]["items"]]


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, text/event-stream"])
async def test_body_with_a_key_of_the_bus_gets_json_and_every_other_one_a_stream(tmp_path: Path, accept: str) -> None:
    async with serving(tmp_path) as server:
        session = (await chat(server, "Hello there."))["session_id"]
        of_the_bus = {
            "project_root": str(server.app.directory.home),
            "agent_id": "default",
            "session_id": session,
            "mode": None,
        }
        kinds: dict[str, list[str]] = {}
        for body in (*({name: value} for name, value in of_the_bus.items()), {**of_the_bus, "sessionId": session}):
            answer = await server.http.post("/api/chat", json={"message": "Hello", **body}, headers={"Accept": accept})
            assert answer.status_code == 200, answer.text
            kinds.setdefault("bus", []).append(answer.headers["content-type"].partition(";")[0])
        for body in ({}, {"sessionId": session}, {"agentId": "default"}, {"images": []}, {"partial": False}):
            answer = await server.http.post("/api/chat", json={"message": "Hello", **body}, headers={"Accept": accept})
            assert answer.status_code == 200, answer.text
            kinds.setdefault("stream", []).append(answer.headers["content-type"].partition(";")[0])
            assert "event: done\n" in answer.text
    expected = "text/event-stream" if "event-stream" in accept else "application/json"
    assert set(kinds["bus"]) == {expected}
    assert set(kinds["stream"]) == {"text/event-stream"}


async def test_message_without_a_project_starts_a_run_of_the_default_agent_in_the_servers_own(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began = await chat(work.server, "What is this about?\nTell me.")
        told = await bus.until(OUTCOME)
        (run,) = await get(work.server, "/api/agent-runs", session_id=began["session_id"])
        state = await work.server.state(began["session_id"])
    assert (began["status"], began["run_id"]) == ("started", run["run_id"])
    assert sorted(began) == ["run_id", "session_id", "status"]
    assert (state["title"], state["agent"]) == ("What is this about?", "default")
    assert state["project"] == str(work.server.app.directory.home)
    assert of(told, "message")[0]["session_id"] == began["session_id"]


async def test_message_goes_to_the_named_agent_of_the_named_project(tmp_path: Path) -> None:
    async with crew(tmp_path) as work, listening(work.server) as bus:
        began = await chat(work.server, "Hello", project_root=str(work.project), agent_id="builder")
        told = await bus.until(OUTCOME)
        unknown = await work.server.http.post("/api/chat", json={"message": "Hello", "agent_id": "nobody"})
        nowhere = await work.server.http.post("/api/chat", json={"message": "Hello", "project_root": "/nowhere"})
        empty = await work.server.http.post("/api/chat", json={"message": " ", "agent_id": "builder"})
        state = await work.server.state(began["session_id"])
    assert (state["agent"], state["project"]) == ("builder", str(work.project))
    assert {event["agent_id"] for event in told} == {"builder"}
    assert (unknown.status_code, nowhere.status_code, empty.status_code) == (404, 400, 400)


async def test_message_without_a_session_goes_to_the_agents_latest_one_in_that_project(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with crew(tmp_path) as work, listening(work.server) as bus:

        async def told(message: str, **fields: str) -> str:
            began = await chat(work.server, message, **fields)
            await bus.until(is_a("run", "outcome", session_id=began["session_id"]))
            return str(began["session_id"])

        here = {"project_root": str(work.project), "agent_id": "builder"}
        first = await told("The first words.\nAnd more.", **here)
        again = await told("Again.", **here)
        own = await work.server.create(project=str(work.project), agent="builder")
        await told("This one.", session_id=own)
        latest = await told("And here?", **here)
        await told("Back.", session_id=first)
        back = await told("Still there?", **here)
        addressed = await told("@builder hello", project_root=str(work.project))
        others = [
            await told("Hello", project_root=str(work.project), agent_id="careful"),
            await told("Hello", project_root=str(elsewhere), agent_id="builder"),
        ]
        archived = await work.server.command(first, type="update_conversation", archived=True)
        after = await told("Who is there?", **here)
        titles = [(await work.server.state(session))["title"] for session in (first, own)]
    assert (again, latest, back, addressed) == (first, own, first, first)
    assert len({first, own, *others}) == 4
    assert (archived.status_code, after) == (202, own)
    assert titles == ["The first words.", "This one."]


async def test_message_without_a_session_waits_for_a_busy_agent(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began = await busy(work, bus)
        queued = await chat(work.server, "Never mind that.", project_root=str(work.project), agent_id="default")
        waits = await bus.until(is_a("queue"))
        work.provider.gates.open("hold")
        await bus.until(lambda event: event["kind"] == "queue" and not event["data"]["items"])
        await bus.until(OUTCOME)
        runs = await get(work.server, "/api/agent-runs", project_root=str(work.project))
    assert queued == {"status": "queued", "session_id": began["session_id"]}
    assert items(waits[-1]) == ["Never mind that."]
    assert {run["session_id"] for run in runs} == {began["session_id"]}


async def test_first_messages_at_once_share_one_session_and_none_is_lost(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        sent = [chat(work.server, f"Word {number}.", project_root=str(work.project)) for number in range(8)]
        answers = await asyncio.gather(*sent)
        (session,) = {answer["session_id"] for answer in answers}
        await work.server.settled(session)
        while (state := await work.server.state(session))["queue"] or state["turn"]:
            await work.server.settled(session, after=state["seq"])
    said = [message["blocks"][0]["text"] for message in state["messages"] if message["role"] == "user"]
    assert sorted(said) == [f"Word {number}." for number in range(8)]
    assert [answer["status"] for answer in answers].count("started") == 1


async def test_session_that_is_unknown_is_made_under_its_id(tmp_path: Path) -> None:
    async with crew(tmp_path) as work, listening(work.server) as bus:
        body = {"project_root": str(work.project), "agent_id": "builder", "session_id": "my-own_id"}
        began = await chat(work.server, "Begin here.", **body)
        await bus.until(is_a("run", "outcome", session_id="my-own_id"))
        again = await chat(work.server, "Go on.", session_id="my-own_id")
        await bus.until(is_a("run", "outcome", session_id="my-own_id"))
        state = await work.server.state("my-own_id")
        await work.server.command("my-own_id", type="delete_conversation")
        deleted = await work.server.http.post("/api/chat", json={"message": "Hello", "session_id": "my-own_id"})
        no_id = await work.server.http.post("/api/chat", json={"message": "Hello", "session_id": "no id"})
        cleared = await work.server.http.post("/api/chat/clear", json={"session_id": "never-made"})
    assert (began["status"], began["session_id"], again["session_id"]) == ("started", "my-own_id", "my-own_id")
    assert (state["title"], state["agent"], state["project"]) == ("Begin here.", "builder", str(work.project))
    assert [message["role"] for message in state["messages"]] == ["user", "assistant"] * 2
    assert (deleted.status_code, no_id.status_code, cleared.status_code) == (410, 400, 404)


async def test_repeated_request_goes_where_it_went_before_and_counts_once(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        body = {"project_root": str(work.project), "client_request_id": "once"}
        first = await chat(work.server, "Hello.", **body)
        await bus.until(OUTCOME)
        newer = await free_session(work.server, work.project)
        repeated = await chat(work.server, "Hello.", **body)
        states = [await work.server.state(session) for session in (first["session_id"], newer)]
    assert (repeated["session_id"], repeated["run_id"]) == (first["session_id"], first["run_id"])
    assert [len(state["messages"]) for state in states] == [2, 0]


async def test_address_at_the_start_of_a_message_chooses_the_agent_if_there_is_one(tmp_path: Path) -> None:
    async with crew(tmp_path) as work, listening(work.server) as bus:
        session = await work.server.create(project=str(work.project))
        await chat(work.server, "@builder !say Built.", session_id=session)
        built = await bus.until(OUTCOME)
        await chat(work.server, "@nobody is there", session_id=session)
        said = await bus.until(OUTCOME)
    assert (of(built, "message")[0]["text"], of(built, "message")[0]["data"]["to"]) == ("!say Built.", "builder")
    assert {event["agent_id"] for event in built if event["kind"] == "token"} == {"builder"}
    assert (of(said, "message")[0]["text"], said[-1]["agent_id"]) == ("@nobody is there", "default")


async def test_image_of_a_message_reaches_the_model(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        part = {"type": "image_url", "image_url": {"url": PIXEL}}
        await chat(work.server, "Two pixels.", images=[PIXEL, part])
        await bus.until(OUTCOME)
        remote = {"message": "Look", "agent_id": "default", "images": ["https://example.invalid/a.png"]}
        refused = await work.server.http.post("/api/chat", json=remote)
        (body,) = bodies(work, "Two pixels.")
        none = await chat(work.server, "No pixels.", images=None, mode=None, session_id=None)
    assert str(body["messages"]).count("image_url") >= 2
    assert refused.status_code == 400
    assert none["status"] == "started"


async def test_message_to_a_busy_agent_is_announced_queued_and_runs_once(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began = await busy(work, bus)
        queued = await chat(work.server, "Later, please.", session_id=began["session_id"])
        waits = await bus.until(is_a("queue"))
        work.provider.gates.open("hold")
        told = await bus.until(OUTCOME)
        if not any("Later" in str(event.get("text")) for event in told if event["kind"] == "text_segment"):
            told += await bus.until(OUTCOME)
        requests = bodies(work, "Later, please.")
    assert queued == {"status": "queued", "session_id": began["session_id"]}
    assert [event["text"] for event in of(waits, "message")][-1] == "Later, please."
    (item,) = waits[-1]["data"]["items"]
    assert (item["preview"], item["agent_id"], item["session_id"]) == ("Later, please.", "default", began["session_id"])
    assert sorted(item) == ["agent_id", "id", "preview", "session_id", "timestamp"]
    assert [items(event) for event in of(told, "queue")] == [[]]
    assert len({event["id"] for event in [*of(waits, "queue"), *of(told, "queue")]}) == 1
    assert sum(words_of(body).count("Later, please.") for body in requests[-1:]) == 1
    assert [event["text"] for event in of(bus.heard, "message")].count("Later, please.") == 1


async def test_queued_message_joins_the_running_turn_before_its_next_model_call(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        session = await free_session(work.server, work.project)
        await chat(work.server, "Begin.\n!gate hold\n!shell true\n---\n!say Done.", session_id=session)
        await work.provider.gates.reached("hold")
        await chat(work.server, "By the way.", session_id=session)
        work.provider.gates.open("hold")
        await bus.until(OUTCOME)
        runs = await get(work.server, "/api/agent-runs", session_id=session)
        requests = bodies(work, "Begin.")
    assert len(runs) == 1
    assert ["By the way." in str(body["messages"]) for body in requests] == [False, True]


async def test_ten_queued_messages_are_delivered_in_order_and_none_is_lost(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began = await busy(work, bus)
        session = began["session_id"]
        for number in range(10):
            answer = await chat(work.server, f"Queued {number}.", session_id=session)
            assert answer["status"] == "queued"
        full = await bus.until(lambda event: event["kind"] == "queue" and len(event["data"]["items"]) == 10)
        work.provider.gates.open("hold")
        await bus.until(lambda event: event["kind"] == "queue" and not event["data"]["items"])
        await bus.until(OUTCOME)
        state = await work.server.state(session)
    assert items(full[-1]) == [f"Queued {number}." for number in range(10)]
    said = [message["blocks"][0]["text"] for message in state["messages"] if message["role"] == "user"]
    assert said[1:] == [f"Queued {number}." for number in range(10)]


async def test_dismissed_message_never_runs(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began = await busy(work, bus)
        await chat(work.server, "Never mind.", session_id=began["session_id"])
        await chat(work.server, "But this.", session_id=began["session_id"])
        waits = await bus.until(lambda event: event["kind"] == "queue" and len(event["data"]["items"]) == 2)
        item = waits[-1]["data"]["items"][0]["id"]
        removed = await work.server.http.delete(f"/api/chat/queue/{item}")
        gone = await work.server.http.delete(f"/api/chat/queue/{item}")
        left = await bus.until(is_a("queue"))
        work.provider.gates.open("hold")
        await bus.until(lambda event: event["kind"] == "queue" and not event["data"]["items"])
        await bus.until(OUTCOME)
        delivered = await work.server.http.delete(f"/api/chat/queue/{left[-1]['data']['items'][0]['id']}")
    assert (removed.status_code, removed.json()) == (200, {"removed": True})
    assert (gone.status_code, delivered.status_code) == (404, 404)
    assert items(left[-1]) == ["But this."]
    assert bodies(work, "Never mind.") == []


async def test_cancelling_a_run_does_not_drop_the_queue(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began = await busy(work, bus)
        await chat(work.server, "And then?", session_id=began["session_id"])
        cancelled = await post(work.server, "/api/agent-cancel", run_id=began["run_id"])
        ended = await bus.until(OUTCOME)
        goes_on = await bus.until(OUTCOME)
    assert cancelled == {"cancelled_run_ids": [began["run_id"]]}
    assert ended[-1]["data"] == {"outcome": "cancelled"}
    assert goes_on[-1]["data"] == {"outcome": "none"}
    assert of(goes_on, "text_segment")[0]["text"] == "You said: And then?"


async def test_clearing_takes_every_message_out_of_a_session_or_a_project(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        project = str(work.project)
        sessions = []
        for word in ("one", "two"):
            sessions.append((await chat(work.server, "Hello.", project_root=project, session_id=word))["session_id"])
            await bus.until(OUTCOME)
        cleared = await post(work.server, "/api/chat/clear", project_root=project, session_id=sessions[0])
        told = await bus.until(is_a("run", "sync"))
        rest = await post(work.server, "/api/chat/clear", project_root=project)
        states = [await work.server.state(session) for session in sessions]
        held = await busy(work, bus)
        refused = await work.server.http.post("/api/chat/clear", json={"session_id": held["session_id"]})
        nothing_named = [
            await work.server.http.post("/api/chat/clear", json=body) for body in ({}, {"project_root": ""})
        ]
    assert (cleared, rest) == ({"removed": 2}, {"removed": 2})
    assert told[-1]["session_id"] == sessions[0]
    assert [state["messages"] for state in states] == [[], []]
    assert refused.status_code == 409
    assert [answer.status_code for answer in nothing_named] == [400, 400]


async def test_two_sessions_of_one_agent_never_mix(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        one = await free_session(work.server, work.project)
        other = await free_session(work.server, work.project)
        async with listening(work.server, session_id=one) as alone:
            await chat(work.server, "!say Alpha.\n!gate alpha", session_id=one)
            await chat(work.server, "!say Beta.", session_id=other)
            await bus.until(is_a("run", "outcome", session_id=other))
            work.provider.gates.open("alpha")
            heard = await alone.until(OUTCOME)
    assert {event["session_id"] for event in heard} == {one}
    assert "Beta" not in str(heard)
    assert [event["text"] for event in of(bus.heard, "text_segment", session_id=other)] == ["Beta."]

"""Sending a message, and what becomes of one that meets a busy agent."""

from pathlib import Path

from tests.flows.at_work import Work
from tests.flows.engine import bodies, engine, words_of
from tests.flows.faces.bus.listening import Event, Listener, chat, free_session, get, is_a, listening, of, post
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


async def test_bare_message_starts_a_run_of_the_default_agent_in_the_servers_project(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        began = await chat(work.server, "What is this about?\nTell me.")
        told = await bus.until(OUTCOME)
        (run,) = await get(work.server, "/api/agent-runs", session_id=began["session_id"])
        state = await work.server.state(began["session_id"])
    assert (began["status"], began["run_id"]) == ("started", run["run_id"])
    assert sorted(began) == ["run_id", "session_id", "status"]
    assert (state["title"], state["agent"]) == ("What is this about?", "default")
    assert state["project"] == str(work.server.app.config.home)
    assert of(told, "message")[0]["session_id"] == began["session_id"]


async def test_message_goes_to_the_named_agent_of_the_named_project(tmp_path: Path) -> None:
    async with crew(tmp_path) as work, listening(work.server) as bus:
        began = await chat(work.server, "Hello", project_root=str(work.project), agent_id="builder")
        told = await bus.until(OUTCOME)
        unknown = await work.server.http.post("/api/chat", json={"message": "Hello", "agent_id": "nobody"})
        nowhere = await work.server.http.post("/api/chat", json={"message": "Hello", "session_id": "nowhere"})
        empty = await work.server.http.post("/api/chat", json={"message": " "})
        state = await work.server.state(began["session_id"])
    assert (state["agent"], state["project"]) == ("builder", str(work.project))
    assert {event["agent_id"] for event in told} == {"builder"}
    assert (unknown.status_code, nowhere.status_code, empty.status_code) == (404, 404, 400)


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
        remote = {"message": "Look", "images": ["https://example.invalid/a.png"]}
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
        for word in ("One.", "Two."):
            sessions.append((await chat(work.server, word, project_root=project))["session_id"])
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

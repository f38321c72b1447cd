"""A turn as the bus tells it, and the ends it may have."""

from pathlib import Path

from tests.flows.engine import engine
from tests.flows.faces.bus.listening import Event, chat, free_session, is_a, listening, of

OUTCOME = is_a("run", "outcome")


def first(events: list[Event], kind: str, phase: str | None = None, **fields: object) -> int:
    return next(place for place, event in enumerate(events) if is_a(kind, phase, **fields)(event))


async def test_turn_is_told_in_the_order_of_the_contract(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        session = await free_session(work.server, work.project)
        words = "!think Let me see.\n!shell echo one; echo two\n---\n!say All of it is done."
        began = await chat(work.server, words, session_id=session)
        told = await bus.until(OUTCOME)
    assert (began["status"], began["session_id"]) == ("started", session)
    told = [event for event in told if event.get("session_id") == session]
    message = first(told, "message")
    thought = next(place for place, event in enumerate(told) if event["kind"] == "token")
    doing = first(told, "activity", "doing")
    text = next(
        place
        for place, event in enumerate(told)
        if event["kind"] == "token" and "data" not in event and "text" in event
    )
    segment = first(told, "text_segment")
    assert message < thought < doing < text < segment < len(told) - 1
    assert told[message]["text"] == words
    assert told[message]["data"] == {"from": "user", "to": "default", "role": "user"}
    assert told[thought]["data"] == {"thinking": True}
    assert told[segment]["text"] == "All of it is done."
    tokens = [event["text"] for event in told if event["kind"] == "token" and "text" in event and "data" not in event]
    assert "".join(tokens) == "All of it is done."
    assert [event["data"] for event in of(told, "tool_progress")] == [
        {"tool": "shell", "line": line, "stream": "stdout"} for line in ("one", "two")
    ]
    # Once an answer, without text.
    assert [sorted(event) for event in of(told, "token", "done")] == [sorted(of(told, "token", "done")[0])] * 2
    assert "text" not in of(told, "token", "done")[0]
    assert told[-1]["data"] == {"outcome": "none"}
    assert {event["agent_id"] for event in told[message:]} == {"default"}
    assert {event["project_root"] for event in told} == {str(work.project)}


async def test_status_is_closed_before_the_next_one_opens_and_ends_idle(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        session = await free_session(work.server, work.project)
        await chat(work.server, "!think Well.\n!read a.txt\n!shell true\n---\n!say So.", session_id=session)
        told = [event for event in await bus.until(OUTCOME) if event["kind"] == "activity"]
    open_id: str | None = None
    for event in told[:-1]:
        if event["phase"] == "doing":
            assert open_id is None or event["id"] == open_id
            open_id = event["id"]
        else:
            assert event["id"] == open_id
            open_id = None
    assert open_id is None
    assert (told[-1]["phase"], told[-1]["data"]) == ("done", {"status": "idle"})
    words = [event["data"]["status"] for event in told if event["phase"] == "doing"]
    assert words[0] == "thinking"
    assert words[-1] == "working"
    details = [event["text"] for event in told if event["data"]["status"] == "calling_tool"]
    assert "Reading a.txt" in details
    assert "Running true" in details


async def test_numbers_grow_and_are_the_same_for_two_clients(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as one, listening(work.server) as other:
        await chat(work.server, "!say Hello there, both of you.")
        mine, theirs = await one.until(OUTCOME), await other.until(OUTCOME)
    assert mine == theirs
    numbers = [event["seq"] for event in mine]
    assert numbers == sorted(set(numbers))
    assert [event["rev"] for event in mine] == numbers
    assert all(None not in event.values() for event in mine)

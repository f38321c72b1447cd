"""A turn as the bus tells it, and the ends it may have."""

from pathlib import Path

import pytest

from tests.flows.engine import WIRES, engine
from tests.flows.faces.bus.listening import Event, chat, free_session, is_a, listening, of, post, statuses

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
    doing = first(told, "activity", "doing", status="calling_tool")
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


@pytest.mark.parametrize("wire", WIRES)
async def test_status_is_closed_before_the_next_one_opens_and_ends_idle(tmp_path: Path, wire: str) -> None:
    async with engine(tmp_path, wire) as work, listening(work.server) as bus:
        session = await free_session(work.server, work.project)
        words = "!gate first\n!think Well.\n!read a.txt\n!shell true\n---\n!say So."
        for _ in range(2):
            await chat(work.server, words, session_id=session)
            await work.provider.gates.reached("first")
            # There is a status before the model has said anything.
            waiting = await bus.until(is_a("activity", "doing", status="model_loading"))
            work.provider.gates.open("first")
            told = [*waiting, *await bus.until(OUTCOME)]
            work.provider.gates.shut("first")
            assert not of(waiting, "token")
            assert statuses(told) == ["model_loading", "thinking", "calling_tool", "thinking", "working", "idle"]
            loaded = first(told, "activity", "done", status="model_loading")
            assert first(told, "token", thinking=True) in (loaded - 1, loaded + 2)
            details = [event["text"] for event in told if event.get("data", {}).get("status") == "calling_tool"]
            assert "Reading a.txt" in details
            assert "Running true" in details
            # Words that a client of the contract knows as passing, and shows no activity for.
            assert {event["text"] for event in of(told, "activity", "doing", status="thinking")} == {"Thinking..."}
            assert {event["text"] for event in of(told, "activity", "doing", status="working")} == {"Running"}
            assert {event["text"] for event in of(waiting, "activity", "doing")} == {"Model loading..."}


async def test_no_status_is_closed_that_was_not_open_after_a_cursor_a_restart_and_a_cancel(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        async with listening(work.server) as bus:
            session = await free_session(work.server, work.project)
            await chat(work.server, "!think Well.\n!read a.txt\n---\n!say So.", session_id=session)
            whole = await bus.until(OUTCOME)
            for gate in ("before", "within"):
                said = "!gate before" if gate == "before" else "!say Half.\n!gate within"
                run = await chat(work.server, said, session_id=session)
                await work.provider.gates.reached(gate)
                await post(work.server, "/api/agent-cancel", run_id=run["run_id"])
                whole += await bus.until(OUTCOME)
        for place in range(len(whole) - 1):
            # A client that comes back has heard what it gave the number of.
            async with listening(work.server, after=whole[place]["seq"]) as again:
                missed = await again.until(lambda event: event["seq"] == whole[-1]["seq"])
            assert missed == whole[place + 1 :]
        async with listening(work.server) as bus:
            await chat(work.server, "!shell sleep 600", session_id=session)
            whole += await bus.until(is_a("activity", "doing", text="Running sleep 600"))
    async with engine(tmp_path) as restarted, listening(restarted.server, after=whole[-1]["seq"]) as bus:
        whole += await bus.until(OUTCOME)
        await chat(restarted.server, "!say Again.", session_id=session)
        whole += await bus.until(OUTCOME)
    assert statuses(whole)[-3:] == ["model_loading", "working", "idle"]


async def test_numbers_grow_and_are_the_same_for_two_clients(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as one, listening(work.server) as other:
        await chat(work.server, "!say Hello there, both of you.")
        mine, theirs = await one.until(OUTCOME), await other.until(OUTCOME)
    assert mine == theirs
    numbers = [event["seq"] for event in mine]
    assert numbers == sorted(set(numbers))
    assert [event["rev"] for event in mine] == numbers
    assert all(None not in event.values() for event in mine)


FAILING = """!think Let me see.
!read nowhere.txt
!shell echo out; echo err >&2; exit 3
!tool nothing {"x": 1}
!tool read {"wrong": true}
!write a.txt words
---
!think And now?
!edit a.txt absent => other
!say Half of it failed.
---
!say That is all."""
"""Calls that fail in every way: no such file, an exit code, no such tool, arguments that are none, nothing to replace."""


def without_ids(told: list[Event], project: Path) -> list[Event]:
    """Frames without ids and times; pieces of one text joined, however they came."""
    alike: list[Event] = []
    for event in told:
        kept = {name: value for name, value in event.items() if name not in ("id", "seq", "rev", "ts_ms")}
        assert kept.pop("project_root") == str(project)
        del kept["session_id"]
        # Each service counts what it is sent in its own form.
        kept.get("data", {}).pop("estimated_tokens", None)
        last = alike[-1] if alike else {}
        if "text" in kept and kept["kind"] == "token" and last == {**kept, "text": last.get("text")}:
            last["text"] += kept["text"]
        else:
            alike.append(kept)
    return alike


async def test_same_turn_gives_the_same_frames_from_either_kind_of_model(tmp_path: Path) -> None:
    heard: dict[str, list[Event]] = {}
    for wire in WIRES:
        (tmp_path / wire).mkdir()
        async with engine(tmp_path / wire, wire) as work, listening(work.server) as bus:
            session = await free_session(work.server, work.project)
            await bus.until(is_a("run", "sync"))
            await chat(work.server, FAILING, session_id=session)
            heard[wire] = without_ids(await bus.until(OUTCOME), work.project)
    assert heard["anthropic"] == heard["openai"]
    told = heard["openai"]
    assert [event["text"] for event in of(told, "text_segment")] == ["Half of it failed.", "That is all."]
    assert {event["data"]["line"] for event in of(told, "tool_progress")} >= {"out", "err"}
    assert told[-1]["data"] == {"outcome": "patch"}

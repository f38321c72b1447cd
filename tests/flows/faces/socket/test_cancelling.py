"""Stopping an answer over the socket: what was said stays, every call has one result, in the promised order."""

from pathlib import Path

import pytest

from palaver.backends.script.script import Emit, Say, Step, Wait, turns
from palaver.schema.events import (
    AnswerStarted,
    RequestOpened,
    TextDelta,
    ThinkingDelta,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolStarted,
)
from tests.flows.engine import FREE, bodies, engine, gone
from tests.flows.faces.socket.client import Frame, events, of, operation, rendered, subscribed, types
from tests.flows.served import serving
from tests.unit.tools.workshop import processes_with

pytestmark = pytest.mark.anyio

BUSY: tuple[Step, ...] = (
    Emit(AnswerStarted(message="a")),
    Emit(TextDelta(message="a", block=0, text="I begin to")),
    *(Emit(ToolCalled(message="a", block=n, call=f"k{n}", name="shell", input={"n": n})) for n in (1, 2, 3)),
    Emit(ToolInputDelta(message="a", block=4, call="k4", name="write", text='{"path')),
    Emit(ToolStarted(call="k1", grant="rule")),
    Emit(RequestOpened(request="q2", kind="approval", call="k2", tool="shell", title="Run it")),
)
"""Text that goes on while one call runs, one asks, one waits its turn and one is still being written."""


def of_turn(frames: list[Frame]) -> list[Frame]:
    return [frame for frame in frames if not frame["type"].startswith("session_")]


async def test_cancel_ends_text_then_every_call_then_the_output(tmp_path: Path) -> None:
    script = turns([*BUSY, Wait("never")], [Say("On I go.")])
    async with serving(tmp_path, script) as server:
        session = await server.create()
        async with subscribed(server, session) as one:
            await one.say("text_input", sessionId=session, text="go")
            before = await one.until("interaction_request")
            await one.say("control", action="cancel", target="output", sessionId=session, audioEndMs=1200)
            ended = await one.until("output_cancelled")
            await one.say("text_input", sessionId=session, text="and on")
            after = await one.until("text_done")
        replayed = await events(server, session)
        log = await server.settled(session)
    assert types(of_turn(ended)) == [
        "text_block_done",
        "text_done",
        *["tool_result"] * 3,
        "tool_call_start",
        "tool_result",
        "interaction_resolved",
        "output_cancelled",
    ]
    assert [(frame["text"], frame["interrupted"]) for frame in ended[:2]] == [("I begin to", True)] * 2
    results = of(ended, "tool_result")
    assert [frame["callId"] for frame in results] == ["k1", "k2", "k3", "k4"]
    assert {frame["error"]["code"] for frame in results} == {"tool_interrupted"}
    said = of([*before, *ended], "text_delta", "text_block_done", "text_done", "tool_call_start", "output_cancelled")
    assert len({frame["responseId"] for frame in said}) == 1
    assert ended[-1]["reason"] == "user_cancel"
    assert [event["audio_end_ms"] for event in log if event["type"] == "turn.interrupted"] == [1200]
    heard = of_turn([*before, *ended, *after])
    assert [frame for frame in of_turn(replayed) if frame["type"] != "user_message"] == heard


async def test_cancel_takes_a_players_time_with_its_fractions(tmp_path: Path) -> None:
    async with serving(tmp_path, turns([*BUSY, Wait("never")])) as server:
        session = await server.create()
        async with subscribed(server, session) as one:
            await one.say("text_input", sessionId=session, text="go")
            await one.until("interaction_request")
            for strange in (-1, 1e300):
                await one.say("control", action="cancel", target="output", sessionId=session, audioEndMs=strange)
                assert (await one.next())["code"] == "invalid"
            await one.say("control", action="cancel", target="output", sessionId=session, audioEndMs=1234.56)
            ended = await one.until("output_cancelled")
    assert of(ended, "error") == []
    assert ended[-1]["audioEndMs"] == 1234


async def test_text_begun_before_a_tool_stays_before_it(tmp_path: Path) -> None:
    async with serving(tmp_path, turns([*BUSY, Wait("never")])) as server:
        session = await server.create()
        async with subscribed(server, session) as one:
            await one.say("text_input", sessionId=session, text="go")
            await one.until("interaction_request")
            await one.say("control", action="cancel", target="output", sessionId=session)
            await one.until("output_cancelled")
        frames = await events(server, session)
    assert [frame["sequence"] for frame in frames] == sorted(frame["sequence"] for frame in frames)
    assert types(frames).index("text_delta") < types(frames).index("tool_call_start")
    assert types(frames).index("text_done") < types(frames).index("tool_result")


async def test_text_begun_before_a_tool_stays_before_it_in_a_compacted_log(tmp_path: Path) -> None:
    thought = [Emit(ThinkingDelta(message="a", block=5, text=text)) for text in ("Let ", "me ", "see")]
    more = [Emit(TextDelta(message="a", block=0, text=text)) for text in (" look", " at it")]
    async with serving(tmp_path, turns([*BUSY[:2], *more, *thought, *BUSY[2:], Wait("never")])) as server:
        session = await server.create()
        async with subscribed(server, session) as one:
            await one.say("text_input", sessionId=session, text="go")
            await one.until("interaction_request")
            await one.say("control", action="cancel", target="output", sessionId=session)
            await one.until("output_cancelled")
        await server.settled(session)
        full = await events(server, session)
        await server.app.log.compact(session, (await server.state(session))["seq"])
        compacted = await events(server, session)
        resumed = {
            frame["sequence"]: await operation(server, "events", sessionId=session, after=frame["sequence"])
            for frame in full
        }
    async with serving(tmp_path) as server:
        after_restart = await events(server, session)
    assert len(of(compacted, "text_delta", "thinking_delta")) < len(of(full, "text_delta", "thinking_delta"))
    assert rendered(compacted) == rendered(full)
    assert rendered(after_restart) == rendered(full)
    assert [shown[0] for shown in rendered(compacted)[:4]] == ["user", "text", "thinking", "tool"]
    for place, frame in enumerate(full, 1):
        answer = resumed[frame["sequence"]]
        seen = [] if answer["reset"] else full[:place]
        assert rendered([*seen, *answer["events"]]) == rendered(full)
    deltas = of(full, "text_delta", "thinking_delta")
    assert [resumed[frame["sequence"]]["reset"] for frame in deltas] == [False, True, False, False, True, False]


async def test_cancel_in_the_middle_of_a_batch_and_the_provider_takes_the_next_request(tmp_path: Path) -> None:
    stuck = "echo here; until [ -e never ]; do sleep 0.01; done"
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project), params={"policy": FREE})
        async with subscribed(work.server, session) as one:
            orders = f"!say I run them, marmalade.\n!shell {stuck}\n!shell echo second\n!shell echo third"
            await one.say("text_input", sessionId=session, text=orders)
            begun = await one.until("tool_output_delta")
            await one.say("control", action="cancel", target="output", sessionId=session)
            ended = await one.until("output_cancelled")
            await one.say("text_input", sessionId=session, text="!say Still here.")
            after = await one.until("text_done")
        asked = bodies(work, "marmalade")
    assert types(of(begun, "tool_call_start")) == ["tool_call_start"] * 3
    results = of(ended, "tool_result")
    assert [frame["callId"] for frame in results] == [frame["callId"] for frame in of(begun, "tool_call_start")]
    assert {frame["error"]["code"] for frame in results} == {"tool_interrupted"}
    assert after[-1]["text"] == "Still here."
    # A strict service took it: every call paired with one result.
    assert len(asked) == 2


async def test_cancel_with_nothing_produced_leaves_no_message(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create()
        async with subscribed(work.server, session) as one:
            await one.say("text_input", sessionId=session, text="!gate quiet\n!say Too late.")
            await work.provider.received(1)
            await one.say("control", action="cancel", target="output", sessionId=session)
            ended = await one.until("output_cancelled")
        state = await work.server.state(session)
        frames = await events(work.server, session)
    assert ("responseId" in ended[-1], ended[-1]["reason"]) == (False, "user_cancel")
    assert [message["role"] for message in state["messages"]] == ["user"]
    assert types(of_turn(frames)) == ["user_message", "output_cancelled"]


async def test_tool_that_finishes_after_the_cancel_writes_nothing(tmp_path: Path) -> None:
    late: list[Step] = [Wait("late"), Emit(ToolFinished(call="k1", ok=True, output="late"))]
    async with serving(tmp_path, turns([*BUSY, *late], [Say("On I go.")])) as server:
        session = await server.create()
        async with subscribed(server, session) as one:
            await one.say("text_input", sessionId=session, text="go")
            await one.until("interaction_request")
            await one.say("control", action="cancel", target="output", sessionId=session)
            await one.until("output_cancelled")
            server.agent.open_gate("late")
            await one.say("text_input", sessionId=session, text="and on")
            await one.until("text_done")
        frames = await events(server, session)
    assert [frame["callId"] for frame in of(frames, "tool_result")] == ["k1", "k2", "k3", "k4"]


async def test_cancel_at_rest_is_quiet(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        session = await server.create()
        async with subscribed(server, session) as one:
            await one.say("control", action="cancel", target="output", sessionId=session)
            assert await one.flush() == []


async def test_coming_back_starts_nothing_twice_and_a_stop_leaves_no_process(tmp_path: Path) -> None:
    tag = "socket-face-comes-back"
    order = f"!shell echo x >> started; echo begun; until [ -e never-{tag} ]; do sleep 0.01; done"
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project), params={"policy": FREE})
        async with subscribed(work.server, session) as one:
            await one.say("text_input", sessionId=session, text=order, clientMessageId="c-1")
            begun = (await one.until("tool_output_delta"))[-1]
        assert processes_with(tag)
        async with subscribed(work.server, {"sessionId": session, "after": begun["sequence"]}) as again:
            # A client that does not know whether its message arrived sends it again.
            await again.say("text_input", sessionId=session, text=order, clientMessageId="c-1")
            await again.flush()
            await again.say("control", action="cancel", target="output", sessionId=session)
            ended = await again.until("output_cancelled")
        await gone(tag)
        asked = len(bodies(work, tag))
        started = (work.project / "started").read_text()
    assert (started, asked) == ("x\n", 1)
    assert [frame["error"]["code"] for frame in of(ended, "tool_result")] == ["tool_interrupted"]

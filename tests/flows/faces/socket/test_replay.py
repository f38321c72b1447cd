"""The log replayed: exactly what was sent live, from any cursor, after a restart, and honest about a cursor nobody knows."""

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from palaver.backends.script.script import Emit, Say, Step, Think, Tool, Tools, Wait, turns
from palaver.faces.socket.sequence import sequence_of
from palaver.schema.events import AnswerFinished, AnswerStarted, TextFinished
from tests.flows.engine import FREE, engine
from tests.flows.faces.socket.client import Client, Frame, events, of, operation, rendered, subscribed, types
from tests.flows.served import Served, serving

pytestmark = pytest.mark.anyio

STORY = turns(
    [
        Think("I think about it for a while."),
        Say("First some words."),
        Tools((Tool("shell", {"n": 1}, live=("one\n", "two\n"), output="one\ntwo\n"), Tool("read", {"n": 2}))),
        Say("Then the others."),
    ],
    [Say("Half a sentence and"), Tool("shell", {"n": 3}, live=("begun",), wait="never")],
    [Say("The end.")],
)


async def told_live(server: Served, session: str, talker: Client) -> None:
    """Three turns: an answer with tools, one that is stopped in the middle of a tool, and one after it."""
    await talker.say("text_input", sessionId=session, text="one")
    await talker.until("text_done")
    await talker.say("text_input", sessionId=session, text="two", clientMessageId="c-2")
    await talker.until(lambda frame: frame["type"] == "tool_output_delta" and frame["delta"] == "begun")
    await talker.say("control", action="cancel", target="output", sessionId=session)
    await talker.until("output_cancelled")
    await talker.say("text_input", sessionId=session, text="three")
    await talker.until(is_last)


def is_last(frame: Frame) -> bool:
    return bool(frame["type"] == "text_done" and frame["text"] == "The end.")


def of_runs(raw: list[str]) -> list[str]:
    """Without the greeting and the news of sessions, which are told live alone."""
    return [frame for frame in raw if not frame.startswith(('{"type":"session_', '{"type":"subscribed"'))]


async def test_replay_is_what_was_sent_live_byte_for_byte(tmp_path: Path) -> None:
    async with serving(tmp_path, STORY) as server:
        session = await server.create()
        async with subscribed(server, session) as watcher, subscribed(server, session) as talker:
            await told_live(server, session, talker)
            await watcher.until(is_last)
        live = of_runs(watcher.raw)
        answer = await server.http.post("/api/plugins/sessions/operations/events", json={"sessionId": session})
        replayed = await events(server, session)
        async with subscribed(server, {"sessionId": session, "after": 0}) as late:
            await late.until(is_last)
    async with serving(tmp_path, STORY) as server:
        after_restart = await events(server, session)
    assert "".join(f"{frame}," for frame in live)[:-1] in answer.text
    assert [msgspec.json.decode(frame) for frame in live] == replayed
    # Fragments may be left out of the log by then; all else is as it was.
    fragments = ("text_delta", "thinking_start", "thinking_delta", "tool_output_delta")
    whole, kept = ([one for one in frames if one["type"] not in fragments] for frames in (replayed, after_restart))
    assert kept == whole
    assert late.raw[2:] == live
    assert of(replayed, "output_cancelled")
    assert all(frame["timestamp"].endswith("Z") for frame in replayed)
    assert all(later["sequence"] > earlier["sequence"] for earlier, later in pairwise(replayed))


async def test_reload_renders_what_was_rendered_interrupted_text_and_tools_too(tmp_path: Path) -> None:
    async with serving(tmp_path, STORY) as server:
        session = await server.create()
        async with subscribed(server, session) as watcher, subscribed(server, session) as talker:
            await told_live(server, session, talker)
            await watcher.until(is_last)
        live = [msgspec.json.decode(frame) for frame in watcher.raw]
    async with serving(tmp_path, STORY) as server:
        after_restart = await events(server, session)
        await server.app.log.compact(session, (await server.state(session))["seq"])
        compacted = await events(server, session)
    assert rendered(after_restart) == rendered(live)
    assert rendered(compacted) == rendered(live)
    assert [shown for shown in rendered(live) if shown[0] == "tool"][-1][-1]["code"] == "tool_interrupted"


async def test_every_cursor_gives_the_rest_and_no_more(tmp_path: Path) -> None:
    async with serving(tmp_path, STORY) as server:
        session = await server.create()
        async with subscribed(server, session) as talker:
            await told_live(server, session, talker)
        whole = await events(server, session)
        # Of one event several frames may come: each of them is a place to go on from.
        assert any(later["sequence"] - earlier["sequence"] == 1 for earlier, later in pairwise(whole))
        for place, frame in enumerate(whole):
            assert await events(server, session, after=frame["sequence"]) == whole[place + 1 :]
        first = await operation(server, "events", sessionId=session, after=whole[4]["sequence"])
        assert (await operation(server, "events", sessionId=session, after=first["nextCursor"]))["events"] == []
        await operation(server, "message", sessionId=session, content="four")
        later = await operation(server, "events", sessionId=session, after=first["nextCursor"])
    assert types(of(later["events"], "user_message", "text_done")) == ["user_message", "text_done"]
    assert (first["reset"], later["reset"]) == (False, False)


async def test_cursor_of_an_earlier_release_still_works(tmp_path: Path) -> None:
    """Those counted the events of the log: as a bare number, and before the store's name."""
    async with serving(tmp_path, STORY) as server:
        session = await server.create()
        async with subscribed(server, session) as talker:
            await told_live(server, session, talker)
        whole = await events(server, session)
        for event in range(1, (await server.state(session))["seq"] + 1, 5):
            rest = [frame for frame in whole if frame["sequence"] > sequence_of(event)]
            for cursor in (event, str(event), f"{event}@{server.app.log.epoch}"):
                answer = await operation(server, "events", sessionId=session, after=cursor)
                assert (answer["reset"], answer["events"]) == (False, rest)


@pytest.mark.parametrize("cursor", [10_000, "10000", "garbage", "3@another-store", "what@where", "-1", "9" * 5_000])
async def test_unknown_cursor_is_said_and_answered_with_everything(shared: Served, cursor: object) -> None:
    session = (await operation(shared, "create", 201))["sessionId"]
    await operation(shared, "message", sessionId=session, content="hello")
    whole = await operation(shared, "events", sessionId=session)
    answer = await operation(shared, "events", sessionId=session, after=cursor)
    assert (answer["reset"], answer["events"]) == (True, whole["events"])
    async with subscribed(shared) as one:
        await one.say("subscribe", sessionId=session, after=cursor)
        confirmed = (await one.until("subscribed"))[-1]
        replayed = [await one.next() for _ in whole["events"]]
    assert confirmed["reset"] is True
    assert replayed == whole["events"]


async def test_client_that_begins_anew_is_told_its_own_messages_too(shared: Served) -> None:
    session = (await operation(shared, "create", 201))["sessionId"]
    async with subscribed(shared, session) as one:
        await one.say("text_input", sessionId=session, text="hello")
        live = await one.until("text_done")
        await one.say("subscribe", sessionId=session, after="another-store")
        anew = await one.until("text_done")
        await one.say("subscribe", sessionId=session, after=0)
        again = await one.until("text_done")
    confirmed = of(anew, "subscribed")[0]
    assert (confirmed["reset"], types(of(anew, "user_message"))) == (True, ["user_message"])
    # Where nothing is thrown away, what it said itself is not said again.
    assert (of(live, "user_message"), of(again, "user_message")) == ([], [])


async def test_cursor_inside_what_was_compacted_begins_anew(tmp_path: Path) -> None:
    words = "Many words in many fragments, one after the other."
    async with serving(tmp_path, (Think(words), Say(words, chunk=3))) as server:
        session = await server.create()
        await operation(server, "message", sessionId=session, content="hello")
        told = await events(server, session)
        fragments = of(told, "text_delta")
        (begun,) = of(told, "thinking_start")
        cursor = fragments[len(fragments) // 2]["sequence"]
        assert (await operation(server, "events", sessionId=session, after=cursor))["reset"] is False
        assert await server.app.log.compact(session, (await server.state(session))["seq"]) > 0
        answer = await operation(server, "events", sessionId=session, after=cursor)
        ended = await operation(server, "events", sessionId=session, after=fragments[-1]["sequence"])
        # It had the first frame of an event that is left out now, and not the second.
        halfway = await operation(server, "events", sessionId=session, after=begun["sequence"])
        async with subscribed(server) as one:
            await one.say("subscribe", sessionId=session, after=cursor)
            confirmed = (await one.until("subscribed"))[-1]
            first = await one.next()
    assert (answer["reset"], confirmed["reset"], halfway["reset"]) == (True, True, True)
    assert answer["events"][0] == first
    # Whoever had all fragments is not told them again.
    assert (ended["reset"], types(ended["events"])) == (False, ["text_block_done", "text_done"])
    assert types(of(answer["events"], "text_delta", "text_done")) == ["text_delta", "text_done"]


async def test_client_that_joins_in_the_middle_goes_on_with_the_same_frames(tmp_path: Path) -> None:
    story: list[Step] = [
        Think("A thought."),
        Say("Begun, and"),
        Tool("shell", live=("so ", "far"), wait="go"),
        Say("Ended."),
    ]
    async with serving(tmp_path, story) as server:
        session = await server.create()
        async with subscribed(server, session) as watcher:
            await server.send(session, "go")
            before = await watcher.until(lambda frame: frame.get("delta") == "far")
            async with subscribed(server, session) as late:
                server.agent.open_gate("go")
                after = await watcher.until("text_done")
                heard = await late.until("text_done")
    assert heard == after
    # All of the run, also what was said before the late one came.
    assert heard[-1]["text"] == "Begun, and\n\nEnded."
    assert [frame["offset"] for frame in of(before, "tool_output_delta")] == [0, 3]


async def test_offset_of_output_counts_all_that_was_streamed_whoever_joins_late(tmp_path: Path) -> None:
    flood = "for i in 1 2 3 4 5 6 7 8 9; do head -c 20000 /dev/zero | tr '\\\\0' x; echo; done"
    waits = "until [ -e go ]; do sleep 0.01; done; echo end"
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project), params={"policy": FREE})
        async with subscribed(work.server, session) as watcher:
            await work.server.send(session, f"!shell {flood.replace(chr(92) * 2, chr(92))}; {waits}")
            streamed = 0

            def enough(frame: Frame) -> bool:
                nonlocal streamed
                streamed += len(frame["delta"]) if frame["type"] == "tool_output_delta" else 0
                return streamed >= 180_009

            await watcher.until(enough)
        # Nobody listens for a moment: whoever comes now begins with a view that holds only the end of the output.
        async with subscribed(work.server, session) as late:
            (work.project / "go").touch()
            heard = of(await late.until("tool_result"), "tool_output_delta")
        replayed = of(await events(work.server, session, after=heard[0]["sequence"] - 1), "tool_output_delta")
    assert heard[0]["offset"] == 180_009
    assert replayed == heard


async def test_text_that_outgrew_its_event_is_told_whole_live_and_replayed(tmp_path: Path) -> None:
    asked, answered = "why? " * 20_000, "x" * 150_000
    async with serving(tmp_path, (Say(answered, chunk=20_000),)) as server:
        session = await server.create()
        async with subscribed(server, session) as watcher, subscribed(server, session) as talker:
            await talker.say("text_input", sessionId=session, text=asked)
            heard = await watcher.until("text_done")
            assert "user_message" not in types(await talker.until("text_done"))
        replayed = await events(server, session)
    (question,) = of(heard, "user_message")
    assert (question["text"], heard[-1]["text"]) == (asked, answered)
    assert "".join(frame["delta"] for frame in of(heard, "text_delta")) == answered
    assert [frame for frame in heard if not frame["type"].startswith("session_")] == replayed


async def test_text_of_a_run_is_whole_for_whoever_joins_after_a_text_that_outgrew_its_event(tmp_path: Path) -> None:
    long = "y" * 150_000

    def run(message: str, gate: str) -> list[Step]:
        return [
            Emit(AnswerStarted(message=message)),
            # As a backend that delivers whole items does.
            Emit(TextFinished(message=message, block=0, text=long)),
            Emit(AnswerFinished(message=message, finish_reason="stop")),
            Wait(gate),
            Say("Ended."),
        ]

    async with serving(tmp_path, turns(run("a", "first"), run("b", "second"))) as server:
        session = await server.create()
        async with subscribed(server, session) as early:
            await server.send(session, "go")
            begun = await early.until("text_block_done")
            server.agent.open_gate("first")
            live = await early.until("text_done")
            await server.send(session, "again")
            await early.until("text_block_done")
        # Nobody listens for a moment: whoever comes now begins with a view that holds only the beginning of the text.
        async with subscribed(server, session) as late:
            server.agent.open_gate("second")
            heard = await late.until("text_done")
        replayed = await events(server, session)
    assert begun[-1]["text"] == long
    assert live[-1]["text"] == heard[-1]["text"] == f"{long}\n\nEnded."
    assert replayed[-len(heard) :] == heard


async def test_text_of_a_long_run_is_whole_for_whoever_joins_late_or_comes_back(tmp_path: Path) -> None:
    story: list[Step] = [Say("First."), *[Tool("read")] * 110, Wait("go"), Say("Last.")]
    async with serving(tmp_path, story) as server:
        session = await server.create()
        async with subscribed(server, session) as early:
            await server.send(session, "go")
            done = [(await early.until("tool_result"))[-1] for _ in range(110)]
        # More answers than are kept at hand of a conversation.
        async with subscribed(server, session) as late:
            server.agent.open_gate("go")
            heard = await late.until("text_done")
        back = await events(server, session, after=done[-1]["sequence"])
    assert heard[-1]["text"] == "First.\n\nLast."
    # The log may have been compacted meanwhile: frames of a finished block then differ, and render the same.
    assert rendered(back) == rendered(heard)

"""The log replayed: exactly what was sent live, from any cursor, after a restart, and honest about a cursor nobody knows."""

from pathlib import Path

import msgspec
import pytest

from palaver.backends.script import Say, Step, Think, Tool, Tools, turns
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
    await talker.until(lambda frame: frame.get("text") == "Then the others.")
    await talker.say("text_input", sessionId=session, text="two", clientMessageId="c-2")
    await talker.until(lambda frame: frame["type"] == "tool_output_delta" and frame["delta"] == "begun")
    await talker.say("control", action="cancel", target="output", sessionId=session)
    await talker.until("output_cancelled")
    await talker.say("text_input", sessionId=session, text="three")
    await talker.until(lambda frame: frame.get("text") == "The end.")


async def test_replay_is_what_was_sent_live_byte_for_byte(tmp_path: Path) -> None:
    async with serving(tmp_path, STORY) as server:
        session = await server.create()
        async with subscribed(server, session) as watcher, subscribed(server, session) as talker:
            await told_live(server, session, talker)
            await watcher.until(lambda frame: frame.get("text") == "The end.")
        live = watcher.raw[2:]
        answer = await server.http.post(
            "/api/plugins/sessions/operations/events", json={"sessionId": session, "after": 1}
        )
        replayed = await events(server, session, after=1)
        async with subscribed(server, {"sessionId": session, "after": 1}) as late:
            await late.until(lambda frame: frame.get("text") == "The end.")
    assert "".join(f"{frame}," for frame in live)[:-1] in answer.text
    assert [msgspec.json.decode(frame) for frame in live] == replayed[: len(live)]
    assert late.raw[2:] == live
    assert of(replayed, "output_cancelled")


async def test_reload_renders_what_was_rendered_interrupted_text_and_tools_too(tmp_path: Path) -> None:
    async with serving(tmp_path, STORY) as server:
        session = await server.create()
        async with subscribed(server, session) as watcher, subscribed(server, session) as talker:
            await told_live(server, session, talker)
            await watcher.until(lambda frame: frame.get("text") == "The end.")
        live = [msgspec.json.decode(frame) for frame in watcher.raw]
    async with serving(tmp_path, STORY) as server:
        after_restart = await events(server, session)
        await server.app.log.compact(session, after_restart[-1]["sequence"])
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
        for place in range(0, whole[-1]["sequence"] + 1, 3):
            rest = [frame for frame in whole if frame["sequence"] > place]
            assert await events(server, session, after=place) == rest
        first = await operation(server, "events", sessionId=session, after=4)
        assert (await operation(server, "events", sessionId=session, after=first["nextCursor"]))["events"] == []
        await operation(server, "message", sessionId=session, content="four")
        later = await operation(server, "events", sessionId=session, after=first["nextCursor"])
    assert types(of(later["events"], "user_message", "text_done")) == ["user_message", "text_done"]
    assert (first["reset"], later["reset"]) == (False, False)


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
    async with serving(tmp_path, (Say("Many words in many fragments, one after the other.", chunk=3),)) as server:
        session = await server.create()
        await operation(server, "message", sessionId=session, content="hello")
        fragments = of(await events(server, session), "text_delta")
        cursor = fragments[len(fragments) // 2]["sequence"]
        assert (await operation(server, "events", sessionId=session, after=cursor))["reset"] is False
        assert await server.app.log.compact(session, fragments[-1]["sequence"] + 5) > 0
        answer = await operation(server, "events", sessionId=session, after=cursor)
        ended = await operation(server, "events", sessionId=session, after=fragments[-1]["sequence"])
        async with subscribed(server) as one:
            await one.say("subscribe", sessionId=session, after=cursor)
            confirmed = (await one.until("subscribed"))[-1]
            first = await one.next()
    assert (answer["reset"], confirmed["reset"]) == (True, True)
    assert answer["events"][0] == first
    # Whoever had all fragments is not told them again.
    assert (ended["reset"], types(of(ended["events"], "text_delta", "text_done"))) == (False, ["text_done"])
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
                after = await watcher.until(lambda frame: frame.get("text") == "Ended.")
                heard = await late.until(lambda frame: frame.get("text") == "Ended.")
    assert heard == after
    assert [frame["offset"] for frame in of(before, "tool_output_delta")] == [0, 3]


async def test_offset_of_output_counts_all_that_was_streamed_whoever_joins_late(tmp_path: Path) -> None:
    flood = "for i in 1 2 3 4 5 6 7 8 9; do head -c 20000 /dev/zero | tr '\\\\0' x; done"
    waits = "until [ -e go ]; do sleep 0.01; done; echo end"
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project), params={"policy": FREE})
        async with subscribed(work.server, session) as watcher:
            await work.server.send(session, f"!shell {flood.replace(chr(92) * 2, chr(92))}; {waits}")
            streamed = 0

            def enough(frame: Frame) -> bool:
                nonlocal streamed
                streamed += len(frame["delta"]) if frame["type"] == "tool_output_delta" else 0
                return streamed >= 180_000

            await watcher.until(enough)
        # Nobody listens for a moment: whoever comes now begins with a view that holds only the end of the output.
        async with subscribed(work.server, session) as late:
            (work.project / "go").touch()
            heard = of(await late.until("tool_result"), "tool_output_delta")
        replayed = of(await events(work.server, session, after=heard[0]["sequence"] - 1), "tool_output_delta")
    assert heard[0]["offset"] == 180_000
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
    assert replayed[1 : len(heard) + 1] == heard

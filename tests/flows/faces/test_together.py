"""One conversation, a client of each face: all of them say and hear the same, and each comes back from its own cursor."""

from pathlib import Path
from typing import Any

import pytest

from tests.flows.at_work import Work
from tests.flows.engine import FREE, engine
from tests.flows.faces.bus import listening as bus
from tests.flows.faces.chats import chat as chats
from tests.flows.faces.inbox import client as inbox
from tests.flows.faces.socket import client as socket
from tests.flows.faces.stream import client as stream

pytestmark = pytest.mark.anyio

Said = list[tuple[str, str]]


# -- the transcript, as each face tells it


def of_native(state: dict[str, Any]) -> Said:
    return [
        (message["role"], block["text"])
        for message in state["messages"]
        for block in message["blocks"]
        if block["type"] == "text" and message["role"] in ("user", "assistant")
    ]


def of_bus(events: list[dict[str, Any]]) -> Said:
    return [
        ("user" if event["kind"] == "message" else "assistant", event["text"])
        for event in events
        if event["kind"] in ("message", "text_segment")
    ]


def of_socket(frames: list[dict[str, Any]]) -> Said:
    words = {"user_message": "user", "text_done": "assistant"}
    return [(words[frame["type"]], frame["text"]) for frame in frames if frame["type"] in words]


def of_stream(messages: list[dict[str, Any]]) -> Said:
    return [
        (message["role"], block["content"])
        for message in messages
        for block in message["blocks"]
        if block["type"] == "text"
    ]


def of_inbox(messages: list[dict[str, Any]]) -> Said:
    return [(message["author"], message["content"]) for message in messages]


async def rests(work: Work, conversation: str) -> None:
    while (state := await work.server.state(conversation))["turn"] or state["queue"]:
        pass


async def test_a_client_of_each_face_says_and_hears_the_same_and_comes_back_from_its_cursor(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        server = work.server
        conversation = await server.create(project=str(work.project))
        async with (
            bus.listening(server, session_id=conversation) as on_bus,
            socket.subscribed(server, {"sessionId": conversation, "after": 0}) as on_socket,
            chats.following(server, conversation) as on_chats,
        ):
            # Each face sends one message.
            await bus.chat(server, "!say From the bus.", session_id=conversation)
            await rests(work, conversation)
            await on_socket.say("text_input", sessionId=conversation, text="!say From the socket.")
            await on_socket.until(lambda frame: frame.get("text") == "From the socket.")
            await rests(work, conversation)
            streamed = await stream.whole(server, message="!say From the stream.", sessionId=conversation)
            await on_chats.did("user_message", content="!say From chats.")
            await rests(work, conversation)
            async with inbox.inbox(server, "human", conversation) as on_inbox:
                await on_inbox.say("!say From the inbox.")
                await on_inbox.until("!say From the inbox.", "From the inbox.")
                read_to = (await on_inbox.since())["last_id"]
            await rests(work, conversation)

            middle = (await server.state(conversation))["seq"]
            await on_bus.until(bus.is_a("text_segment", text="From the inbox."))
            pos = (await on_bus.until(bus.is_a("run", "outcome")))[-1]["seq"]
            half = of_native(await server.state(conversation))

            # One of them stops the turn that another began.
            await on_socket.flush()
            await on_chats.did("user_message", content="!long 5000\n!gate never")
            await on_socket.until("text_delta")
            await on_socket.say("control", action="cancel", target="output", sessionId=conversation)
            await on_socket.until("output_cancelled")
            await rests(work, conversation)
            await bus.chat(server, "!say The last word.", session_id=conversation)
            await rests(work, conversation)
            await on_bus.until(bus.is_a("text_segment", text="The last word."))
            await on_chats.until(lambda frame: "The last word." in str(frame) and frame["type"] == "message_added")
            heard = of_bus(on_bus.heard)

        native = of_native(await server.state(conversation))
        # The partial answer stays, and every face shows it but the inbox, which posts what is whole.
        partial = native[11]
        assert partial[0] == "assistant"
        assert partial[1]
        finished = [one for one in native if one != partial]
        assert [text for role, text in native if role == "assistant" and text != partial[1]] == [
            "From the bus.",
            "From the socket.",
            "From the stream.",
            "From chats.",
            "From the inbox.",
            "The last word.",
        ]
        assert heard == native
        assert of_socket(await socket.events(server, conversation)) == native
        assert of_stream(await stream.history(server, conversation)) == native
        async with inbox.inbox(server, "human", conversation) as reading:
            assert of_inbox((await reading.since())["messages"]) == finished
            assert of_inbox((await reading.since(read_to))["messages"]) == finished[len(half) :]
        async with chats.following(server, conversation) as anew:
            assert [one for one in anew.texts if one[0] in ("user", "assistant")] == native

        # Each comes back from where it was, and gets exactly what it missed.
        missed = native[len(half) :]
        async with bus.listening(server, session_id=conversation, after=str(pos)) as again:
            later = await again.until(bus.is_a("text_segment", text="The last word."))
        assert of_bus(later) == missed
        assert of_socket(await socket.events(server, conversation, middle)) == missed
        async with stream.rejoined(server, conversation, streamed[-1][2]) as rejoined:
            last = [one async for one in rejoined]
        assert stream.text_of(last) == "The last word."


# -- what was removed


async def native_removed(work: Work, conversation: str, messages: list[str]) -> None:
    for message in messages:
        answer = await work.server.command(conversation, type="remove_message", message=message)
        assert answer.status_code == 202, answer.text


async def native_truncated(work: Work, conversation: str, messages: list[str]) -> None:
    answer = await work.server.command(conversation, type="truncate_messages", from_index=0)
    assert answer.status_code == 202, answer.text


async def chats_removed(work: Work, conversation: str, messages: list[str]) -> None:
    for message in messages:
        await chats.did(work.server, conversation, "remove_message", message_id=message)


async def bus_cleared(work: Work, conversation: str, messages: list[str]) -> None:
    await bus.post(work.server, "/api/chat/clear", session_id=conversation)


async def socket_cleared(work: Work, conversation: str, messages: list[str]) -> None:
    await socket.operation(work.server, "clear", sessionId=conversation)


async def replays(work: Work, conversation: str, runs: list[str], after: int) -> dict[str, str]:
    """What each face tells one who comes later, or comes back: all of it, as text."""
    server = work.server
    told: dict[str, str] = {"native": str(await server.state(conversation))}
    page = await server.http.get(f"/api/conversations/{conversation}/messages")
    told["native, a page"] = page.text
    mark = await server.create(title="The end of the replay")
    async with bus.listening(server, after=after) as on_bus:
        told["bus"] = str(await on_bus.until(lambda event: event.get("session_id") == mark))
    contexts = [await bus.get(server, "/api/agent-context", run_id=run, view="raw") for run in runs]
    told["bus, agent-context"] = str([context["messages"] for context in contexts])
    async with chats.following(server, conversation) as on_chats:
        told["chats"] = str(on_chats.frames)
    told["stream, history"] = str(await stream.history(server, conversation))
    async with stream.rejoined(server, conversation, 0) as rejoined:
        told["stream, rejoined"] = str([one async for one in rejoined])
    async with inbox.inbox(server, "human", conversation) as on_inbox:
        told["inbox"] = str([await on_inbox.read(), await on_inbox.since()])
    events = await socket.events(server, conversation)
    told["socket, events"] = str(events)
    async with socket.client(server) as on_socket:
        await on_socket.hello({"sessionId": conversation, "after": 0})
        if events:
            await on_socket.until(
                lambda frame: (frame["type"], frame.get("sequence")) == (events[-1]["type"], events[-1]["sequence"])
            )
        await on_socket.flush()
        told["socket, subscribed"] = str(on_socket.raw)
    return told


REMOVED = (native_removed, native_truncated, chats_removed, bus_cleared, socket_cleared)


@pytest.mark.parametrize("remove", REMOVED, ids=[way.__name__ for way in REMOVED])
async def test_what_is_removed_on_one_face_is_gone_from_what_every_face_replays(tmp_path: Path, remove: Any) -> None:
    async with engine(tmp_path) as work:
        server = work.server
        conversation = await server.create(project=str(work.project), title="A talk", params={"policy": FREE})
        async with bus.listening(server) as on_bus:
            words = "!think A secret thought.\n!shell echo secret\n---\n!say The secret word."
            sent = [await bus.chat(server, text, session_id=conversation) for text in (words,)]
            heard = await on_bus.until(bus.is_a("run", "outcome"))
            sent.append(await bus.chat(server, "!say In the open.", session_id=conversation))
            await on_bus.until(bus.is_a("run", "outcome"))
        await rests(work, conversation)
        runs = [began["run_id"] for began in sent]
        before = await replays(work, conversation, runs, heard[0]["seq"])
        messages = [message["id"] for message in (await server.state(conversation))["messages"]]
        await remove(work, conversation, messages[:3])
        after = await replays(work, conversation, runs, heard[0]["seq"])
        state = await server.state(conversation)
    partly = remove in (native_removed, chats_removed)
    assert len(state["messages"]) == (2 if partly else 0)
    # The last turn alone is rejoined.
    assert [face for face, told in before.items() if "secret" not in told] == ["stream, rejoined"]
    assert [face for face, told in after.items() if "secret" in told] == []
    assert [face for face, told in after.items() if ("In the open." in told) != partly] == []

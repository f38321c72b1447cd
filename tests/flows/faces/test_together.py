"""One conversation, a client of each face: all of them say and hear the same, and each comes back from its own cursor."""

from pathlib import Path
from typing import Any

import pytest

from tests.flows.at_work import Work
from tests.flows.engine import engine
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
        # The partial answer stays, and every face shows it but chats, which hides it, and the inbox, which posts what is whole.
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
            assert [one for one in anew.texts if one[0] in ("user", "assistant")] == finished

        # Each comes back from where it was, and gets exactly what it missed.
        missed = native[len(half) :]
        async with bus.listening(server, session_id=conversation, after=str(pos)) as again:
            later = await again.until(bus.is_a("text_segment", text="The last word."))
        assert of_bus(later) == missed
        assert of_socket(await socket.events(server, conversation, middle)) == missed
        async with stream.rejoined(server, conversation, streamed[-1][2]) as rejoined:
            last = [one async for one in rejoined]
        assert stream.text_of(last) == "The last word."

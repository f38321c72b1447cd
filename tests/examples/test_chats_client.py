"""The chats example in a terminal: pauses, the queue, abort, gaps in the sequence, a server that dies."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.browser.served import Palaver
from tests.examples.running import running
from tests.examples.scripts import WRITTEN, script_approval, script_held
from tests.provider import ScriptedProvider

CLIENT = "chats_client.py"


async def test_turn_pauses_for_an_approval_and_a_second_client_reads_the_same(
    palaver: Palaver, provider: ScriptedProvider
) -> None:
    name = script_approval(provider, "chatstide")
    async with running(palaver, CLIENT, "tide-chat") as chat:
        await chat.shows("-- idle, 0 messages")
        await chat.type("Note the chatstide")
        asked = await chat.shows("/approve or /reject")
        assert "user: Note the chatstide\n" in asked
        assert "The tide table is wanted.I will write it down. (" in asked
        assert "?? write {" in asked
        assert not (palaver.project / name).exists()
        await chat.type("/approve")
        done = await chat.shows("Done with that. (stop)")
        assert f"tool: Created {name}" in done
        await chat.shows("-- idle")
    assert (palaver.project / name).read_text() == WRITTEN
    async with running(palaver, CLIENT, "tide-chat") as other:
        again = await other.shows("assistant: Done with that.")
        assert again.splitlines()[:4] == [
            "-- idle, 4 messages",
            "user: Note the chatstide",
            "assistant: (The tide table is wanted.) I will write it down.",
            f'  [write {{"path":"{name}","content":"{WRITTEN}"}}]',
        ]


async def test_rejected_call_does_not_run_and_the_model_goes_on(palaver: Palaver, provider: ScriptedProvider) -> None:
    name = script_approval(provider, "chatsrejected")
    async with running(palaver, CLIENT, "rejected-chat") as chat:
        await chat.type("Note the chatsrejected")
        await chat.shows("/approve or /reject")
        await chat.type("/reject")
        await chat.shows("Done with that. (stop)")
        await chat.shows("-- idle")
    assert not (palaver.project / name).exists()


async def test_abort_keeps_what_was_said_and_the_queued_message_is_answered(
    palaver: Palaver, provider: ScriptedProvider
) -> None:
    script_held(provider, "chatsheld")
    async with running(palaver, CLIENT, "held-chat") as chat:
        await chat.type("Tell the chatsheld")
        await chat.shows("Half of the answer")
        await chat.type("And the next?")
        await chat.shows("-- generating, 1 queued")
        await chat.type("/abort")
        await chat.shows("(abort)")
        await chat.shows("You said: And the next? (stop)")
        await chat.shows("-- idle, 0 queued")
        await chat.type("/show")
        shown = await chat.shows("assistant: You said: And the next?")
        assert shown.strip().splitlines() == [
            "user: Tell the chatsheld",
            "assistant: Half of the answer",
            "user: And the next?",
            "assistant: You said: And the next?",
        ]


async def test_gap_in_the_sequence_is_mended_by_a_new_snapshot(palaver: Palaver, provider: ScriptedProvider) -> None:
    async with losing(palaver, b"lost on its way") as port:
        lossy = Palaver(palaver.folder, palaver.provider_url, port=port)
        async with running(lossy, CLIENT, "lossy-chat") as chat:
            await chat.shows("-- idle, 0 messages")
            await chat.type("This is lost on its way")
            await chat.shows("-- subscribing again: event ")
            await chat.shows(" messages\nuser: This is lost on its way")
            await chat.type("/show")
            await chat.shows("assistant: You said: This is lost on its way")
            await chat.type("And this?")
            await chat.shows("You said: And this? (stop)")


async def test_server_that_dies_in_an_answer_leaves_what_was_said(palaver: Palaver, provider: ScriptedProvider) -> None:
    script_held(provider, "chatsdies")
    async with running(palaver, CLIENT, "dying-chat") as chat:
        await chat.type("Tell the chatsdies")
        await chat.shows("Half of the answer")
        await palaver.kill()
        await palaver.start()
        await chat.shows("user: Tell the chatsdies\nassistant: Half of the answer")
        await chat.type("And now?")
        await chat.shows("You said: And now? (stop)")


@asynccontextmanager
async def losing(palaver: Palaver, word: bytes) -> AsyncIterator[int]:
    """A port of the server behind a wire that loses the first piece of a chunked answer which holds the word."""
    lost = False
    relays: set[asyncio.Task[None]] = set()

    async def copy_chunks(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        nonlocal lost
        while size := await source.readline():
            piece = await source.readexactly(int(size, 16) + 2)
            if word in piece and not lost:
                lost = True
                continue
            sink.write(size + piece)
            await sink.drain()

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while piece := await source.read(4096):
            sink.write(piece)
            await sink.drain()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        relays.add(task)
        answers, asks = await asyncio.open_connection("127.0.0.1", palaver.port)
        own = writer.get_extra_info("sockname")[1]
        # The server answers only requests to its own address.
        asks.write((await reader.readuntil(b"\r\n\r\n")).replace(b":%d" % own, b":%d" % palaver.port))
        asking = asyncio.create_task(copy(reader, asks))
        try:
            head = await answers.readuntil(b"\r\n\r\n")
            writer.write(head)
            await (copy_chunks if b"chunked" in head.lower() else copy)(answers, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            asking.cancel()
            asks.close()
            writer.close()

    async with await asyncio.start_server(relay, "127.0.0.1", 0) as listener:
        yield listener.sockets[0].getsockname()[1]
        for task in relays:
            task.cancel()
        await asyncio.gather(*relays, return_exceptions=True)

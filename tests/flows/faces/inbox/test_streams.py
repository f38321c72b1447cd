"""`palaver mcp`: the same two servers over standard streams, for clients that start programs."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from palaver.backends.script.script import Say
from tests.flows.faces.inbox.client import ERAS, INBOX, TOKENS, Era, Inbox, with_tokens
from tests.flows.served import WAIT_S, Served, serving

PROGRAM = ["-c", "from palaver.cli.main import main; main()", "mcp"]


@asynccontextmanager
async def bridged(
    served: Served, data: Path, side: str, conversation: str | None, era: Era, token: str | None = None
) -> AsyncIterator[Inbox]:
    holder: list[Inbox] = []

    async def heard(message: object) -> None:
        if era == "legacy" and isinstance(message, types.ResourceUpdatedNotification):
            await holder[0].told.put(message.params.uri)

    environment = {"PATH": os.environ["PATH"], "HOME": str(data), "PALAVER_DATA": str(data)}
    if token:
        environment["PALAVER_TOKEN"] = token
    program = StdioServerParameters(
        command=sys.executable,
        args=[*PROGRAM, "--as", side, *(("--session", conversation) if conversation else ()), "--url", served.url],
        env=environment,
    )
    mode = "auto" if era == "2026-07-28" else "legacy"
    client = Client(program, mode=mode, message_handler=heard, cache=None, read_timeout_seconds=3 * WAIT_S)
    holder.append(Inbox(client, era))
    async with client:
        yield holder[0]


@pytest.mark.parametrize("era", ERAS)
async def test_standard_streams_offer_the_same_inbox(tmp_path: Path, era: Era) -> None:
    async with serving(tmp_path, [Say("Hello.")]) as served:
        conversation = await served.create()
        async with bridged(served, tmp_path, "human", conversation, era) as human:
            assert "chat.human.post" in await human.tools()
            async with human.subscribed():
                sent = await human.say("Over a pipe")
                assert await human.update() == INBOX
                messages = await human.until("Over a pipe", "Hello.")
                assert messages[0]["id"] == sent["id"]
                assert (await human.since(sent["id"]))["messages"] == messages[1:]
            assert "limit" in await human.refused("chat_read_since", limit=0)


async def test_token_decides_over_standard_streams_too(tmp_path: Path) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        conversation = await served.create()
        async with bridged(served, tmp_path, "assistant", conversation, "legacy", TOKENS["agent"]) as agent:
            await agent.call("chat.assistant.post", mime="text/plain", content="From afar.")
        assert (await served.state(conversation))["messages"][-1]["agent"] == "the agent"


@pytest.mark.parametrize(
    ("session", "token", "code", "words"),
    [("nobody", None, 6, "No such conversation"), ("talk", "wrong", 5, "token"), ("talk", "agent-token", 5, "people")],
)
async def test_refusal_is_a_sentence_and_an_exit_code(
    tmp_path: Path, session: str, token: str | None, code: int, words: str
) -> None:
    async with serving(with_tokens(tmp_path)) as served:
        await served.create(id="talk")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *PROGRAM, "--as", "human", "--session", session, "--url", served.url),
            env={
                "PATH": os.environ["PATH"],
                "PALAVER_DATA": str(tmp_path),
                **({"PALAVER_TOKEN": token} if token else {}),
            },
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(3 * WAIT_S):
            out, err = await process.communicate()
        assert (process.returncode, out) == (code, b"")
        assert words in err.decode()

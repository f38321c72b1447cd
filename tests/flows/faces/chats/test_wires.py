"""The same turn from an OpenAI-compatible and an Anthropic-compatible model: the same frames, failing tools included."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.faces.chats.projection import join_operations
from tests.flows.at_work import Work
from tests.flows.engine import WIRES, bodies, engine, held
from tests.flows.faces.chats.chat import Chat, following
from tests.provider import Answer, Call, Say
from tests.unit.faces.chats.client import Json

pytestmark = pytest.mark.anyio

RULES = [{"tool": "fetch", "decision": "deny_continue"}]
FAILING = (
    Say(text="Let me try."),
    # First, so that nothing runs beside the wait for a person.
    Call(name="shell", input={"command": "touch declined"}),
    Call(name="read", input={"path": "missing.txt"}),
    Call(name="read", input={"path": "../outside.txt"}),
    Call(name="dance", input={"step": 1}),
    Call(name="read", input={}),
    Call(name="list", raw='{"path": '),
    Call(name="fetch", input={"url": "http://127.0.0.1/"}),
)
WORKING = (Say(text="Then this."), Call(name="read", input={"path": "there.txt"}))


def comparable(frames: list[Json], project: Path) -> list[Json]:
    """Frames without what differs between two servers: ids, numbers, paths, and which operations came together."""
    told: list[Json] = []
    for frame in frames:
        if frame["type"] in ("ack", "snapshot"):
            continue
        plain = {name: value for name, value in frame.items() if name not in ("chat_id", "seq")}
        if plain["type"] == "stream_delta" and told and told[-1]["type"] == "stream_delta":
            plain["ops"] = join_operations(told.pop()["ops"], plain["ops"])
        told.append(plain)
    names: dict[str, str] = {}
    for frame in told:
        message = frame.get("message", {})
        calls = [call["id"] for call in message.get("tool_calls", ())]
        for one in (frame.get("message_id"), message.get("message_id"), *calls):
            if one is not None:
                names.setdefault(one, f"id-{len(names)}")
    text = msgspec.json.encode(told).decode().replace(str(project), "PROJECT")
    for known, name in names.items():
        text = text.replace(known, name)
    return list(msgspec.json.decode(text))


async def turn(work: Work) -> Chat:
    """A turn with calls that fail, are ruled out and are declined, and one that runs."""
    (work.project / "there.txt").write_text("here")
    work.provider.script += [Answer(blocks=blocks, when="^failing$") for blocks in (FAILING, WORKING)]
    conversation = await work.server.create(project=str(work.project), params={"policy": RULES})
    async with following(work.server, conversation) as chat:
        await chat.did("user_message", content="failing")
        await chat.until_state("paused")
        await chat.did("reject_tools")
        await chat.until_state("idle")
        return chat


async def stopped(work: Work, wire: str) -> Chat:
    work.provider.script.append(held(wire, Answer.of("A long story that never ends", when="^story$"), "never"))
    conversation = await work.server.create(project=str(work.project))
    async with following(work.server, conversation) as chat:
        await chat.did("user_message", content="story")
        await chat.until(lambda frame: "never" in str(chat.texts))
        await chat.did("abort")
        await chat.until_state("idle")
        return chat


async def test_both_wires_tell_the_same_turn_in_the_same_frames(tmp_path: Path) -> None:
    told: dict[str, Any] = {}
    for wire in WIRES:
        (tmp_path / wire).mkdir()
        async with engine(tmp_path / wire, wire) as work:
            chat = await turn(work)
            results = [message for message in chat.client.messages if message["role"] == "tool"]
            assert [result["tool_failed"] for result in results] == [True] * 7 + [False]
            assert len(bodies(work, "failing")) == 3
            assert chat.client.messages[-1]["content"].startswith("Results:")
            cut = await stopped(work, wire)
            assert cut.client.messages[-1]["finish_reason"] == "abort"
            told[wire] = [comparable(one.frames, work.project) for one in (chat, cut)]
    assert told["anthropic"] == told["openai"]


async def test_fields_of_the_services_own_are_merged_into_the_answer_and_not_sent_back(tmp_path: Path) -> None:
    own = {"provider_specific_fields": {"grounded": True}}
    async with engine(tmp_path, "openai") as work:
        work.provider.script.append(Answer(blocks=(Say(text="Sure."),), extra=own, when="^extra$"))
        conversation = await work.server.create(project=str(work.project))
        async with following(work.server, conversation) as chat:
            heard = await chat.say("extra")
            ops = [op for frame in heard for op in frame.get("ops", ()) if op["op"] == "merge_extra"]
            assert ops == [{"op": "merge_extra", "extra": own}]
            assert chat.client.messages[-1].items() >= {"content": "Sure.", **own}.items()
            assert (await chat.snapshot())["messages"] == chat.client.messages
            await chat.say("next")
            (body,) = bodies(work, "next")
            assert [message["role"] for message in body["messages"][-3:]] == ["user", "assistant", "user"]
            assert "provider_specific_fields" not in str(body)


async def test_thoughts_with_signatures_alone_are_merged_by_them(tmp_path: Path) -> None:
    pieces = [("a", "s1"), ("b", "s2"), ("c", "s1")]
    details = [{"type": "reasoning.text", "text": text, "signature": signature} for text, signature in pieces]
    async with engine(tmp_path, "openai") as work:
        answer = Answer(blocks=(Say(text="Sure."),), extra={"reasoning_details": details}, when="^signed$")
        work.provider.script.append(answer)
        conversation = await work.server.create(project=str(work.project))
        async with following(work.server, conversation) as chat:
            await chat.say("signed")
            blocks = chat.client.messages[-1]["thinking_blocks"]
            assert [(block["thinking"], block["signature"]) for block in blocks] == [("ac", "s1"), ("b", "s2")]
            assert (await chat.snapshot())["messages"] == chat.client.messages

"""A turn as a chat sees it: tools, pauses, the editor, questions, stops, failures, and what happens beside it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.flows.at_work import Work
from tests.flows.engine import FREE, bodies, engine, held
from tests.flows.faces.chats.chat import Chat, following, types
from tests.provider import Answer, Call, Say, Think
from tests.unit.faces.chats.client import Json

pytestmark = pytest.mark.anyio

RENAME = {"name": "rename", "description": "Renames.", "parameters": {"type": "object"}}


@pytest.fixture(scope="module")
async def work(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Work]:
    async with engine(tmp_path_factory.mktemp("turns")) as started:
        yield started


@asynccontextmanager
async def chatting(work: Work, **params: Any) -> AsyncIterator[Chat]:
    conversation = await work.server.create(project=str(work.project), params=params)
    async with following(work.server, conversation) as chat:
        yield chat


@asynccontextmanager
async def paused(work: Work, word: str, *commands: str) -> AsyncIterator[Chat]:
    """A chat that is paused with a shell call for each command."""
    calls = tuple(Call(name="shell", input={"command": command}) for command in commands)
    work.provider.script.append(Answer(blocks=calls, when=f"^{word}$"))
    async with chatting(work) as chat:
        await chat.did("user_message", content=word)
        await chat.until(lambda frame: len(chat.client.runtime["pause_reasons"]) == len(commands))
        await chat.until_state("paused")
        yield chat


def results(chat: Chat) -> list[Json]:
    return [message for message in chat.client.messages if message["role"] == "tool"]


def updates(frames: list[Json]) -> list[Json]:
    return [frame for frame in frames if frame["type"] == "runtime_updated"]


def states(frames: list[Json]) -> list[str]:
    return [frame["state"] for frame in updates(frames)]


def nothing_is_left_open(chat: Chat) -> None:
    calls = [call["id"] for message in chat.client.messages for call in message.get("tool_calls", [])]
    assert sorted(calls) == sorted(result["tool_call_id"] for result in results(chat))


async def whole(chat: Chat) -> None:
    """What the frames led to is what a new subscriber sees."""
    now = await chat.snapshot()
    assert chat.client.messages == now["messages"]
    assert chat.client.runtime == now["runtime"]
    assert chat.client.thread == now["thread"]


# -- the stream


async def test_answer_with_thinking_and_a_call_is_told_as_operations_and_openai_shaped(work: Work) -> None:
    thought = Answer(blocks=(Think(text="Let me look."), Call(name="list", input={"path": "."})), when="^looking$")
    work.provider.script.append(thought)
    (work.project / "seen.txt").write_text("x")
    async with chatting(work) as chat:
        frames = await chat.say("looking")
        user, first, result, last = chat.client.messages
        (call,) = first["tool_calls"]
        ops = [op["op"] for frame in frames if frame["type"] == "stream_delta" for op in frame["ops"]]
        assert user.items() >= {"role": "user", "content": "looking"}.items()
        assert first["reasoning_content"] == "Let me look."
        assert first["thinking_blocks"][0].items() >= {"type": "thinking", "thinking": "Let me look."}.items()
        assert first["finish_reason"] == "tool_calls"
        assert (call["type"], call["function"]) == ("function", {"name": "list", "arguments": '{"path":"."}'})
        assert result.items() >= {"role": "tool", "tool_call_id": call["id"], "tool_failed": False}.items()
        assert "seen.txt" in result["content"]
        assert last["content"].startswith("Results:")
        assert {"append_reasoning", "append_content", "set_tool_calls", "set_thinking_blocks", "set_usage"} <= set(ops)
        assert chat.client.states == ["idle", "generating", "executing_tools", "generating", "idle"]
        await whole(chat)


async def test_failed_answer_is_an_error_that_keeps_what_was_said(work: Work) -> None:
    async with chatting(work) as chat:
        await chat.did("user_message", content="failing\n!status 400")
        await chat.until_state("error")
        assert chat.client.runtime["error"]
        await whole(chat)
        await chat.did("user_message", content="And now?")
        assert states(await chat.answered()) == ["idle", "generating", "idle"]
        assert chat.client.runtime["error"] is None


async def test_strength_of_a_compression_is_told_and_absent_until_one_was_needed(work: Work) -> None:
    async with chatting(work, knowledge=False) as chat:
        for _ in range(8):
            await chat.say("!long 1500")
        assert {one["compression_strength"] for one in updates(chat.frames)} == {"absent"}
        await chat.did("set_params", patch={"context_tokens_cap": 9_000})
        told = updates(await chat.say("And then?"))
        during = [one for one in told if one["is_compressing"]]
        assert during
        assert during[0].keys() >= {"compression_phase", "compression_reason", "compression_strength"}
        assert during[0]["compression_strength"] == "absent"
        assert told[-1]["compression_strength"] in ("low", "medium", "high")
        await whole(chat)
        # It goes with the history that needed it.
        await chat.did("truncate_messages", from_index=0)
        await chat.until(lambda frame: chat.client.runtime["compression_strength"] == "absent")
        await whole(chat)


# -- tools


async def test_pause_says_what_waits_and_approving_all_runs_it_and_goes_on(work: Work) -> None:
    async with paused(work, "approving", "touch approved-1", "touch approved-2") as chat:
        reason, _ = chat.client.runtime["pause_reasons"]
        assert reason.keys() == {"type", "tool_name", "command", "rule", "tool_call_id"}
        assert (reason["type"], reason["tool_name"], reason["command"]) == ("confirmation", "shell", "touch approved-1")
        assert chat.client.runtime["paused"] is True
        assert await chat.did("approve_tools") == "accepted"
        frames = await chat.until_state("idle")
        assert "pause_cleared" in types(frames)
        assert [result["tool_failed"] for result in results(chat)] == [False, False]
        assert chat.client.messages[-1]["role"] == "assistant"
        assert (work.project / "approved-2").exists()
        nothing_is_left_open(chat)
        await whole(chat)


async def test_calls_that_ask_together_are_one_pause_which_one_decision_ends(work: Work) -> None:
    async with paused(work, "together", "touch one-1", "touch one-2", "touch one-3") as chat:
        (pause,) = (frame for frame in chat.frames if frame["type"] == "pause_required")
        assert [reason["command"] for reason in pause["reasons"]] == ["touch one-1", "touch one-2", "touch one-3"]
        await chat.did("approve_tools")
        frames = await chat.until_state("idle")
        assert [type for type in types(frames) if type.startswith("pause")] == ["pause_cleared"]
        assert states(frames) == ["executing_tools", "generating", "idle"]


async def test_pause_that_outlived_the_server_ends_like_any_other(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, paused(work, "outliving", "touch outlived") as chat:
        known = chat.id
    async with engine(tmp_path) as work, following(work.server, known) as chat:
        assert chat.client.runtime["state"] == "paused"
        await chat.did("approve_tools")
        assert states(await chat.answered()) == ["executing_tools", "generating", "idle"]


async def test_partial_decision_keeps_it_paused_with_the_rest(work: Work) -> None:
    async with paused(work, "partly", "touch part-1", "touch part-2") as chat:
        first, second = (reason["tool_call_id"] for reason in chat.client.runtime["pause_reasons"])
        await chat.did("approve_tools", tool_call_ids=[first])
        told = await chat.until_type("pause_required")
        assert [reason["tool_call_id"] for reason in told["reasons"]] == [second]
        assert (await chat.snapshot())["runtime"]["state"] == "paused"
        await chat.did("tool_decision", tool_call_id=second, accepted=True)
        await chat.until_state("idle")
        assert [result["tool_failed"] for result in results(chat)] == [False, False]


async def test_any_rejection_denies_the_rejected_runs_the_accepted_and_goes_on(work: Work) -> None:
    async with paused(work, "rejecting", "touch yes-1", "touch no-1") as chat:
        first, second = (reason["tool_call_id"] for reason in chat.client.runtime["pause_reasons"])
        decisions = [{"tool_call_id": first, "accepted": True}, {"tool_call_id": second, "accepted": False}]
        await chat.did("tool_decisions", decisions=decisions)
        frames = await chat.until_state("idle")
        assert states(frames) == ["executing_tools", "generating", "idle"]
        accepted, denied = results(chat)
        assert (accepted["tool_failed"], denied["tool_failed"]) == (False, True)
        assert (work.project / "yes-1").exists()
        assert not (work.project / "no-1").exists()
        told = str(bodies(work, "rejecting")[-1]["messages"])
        assert (denied["content"] in told, "declined" in denied["content"]) == (True, True)
        assert chat.client.messages[-1].items() >= {"role": "assistant", "finish_reason": "stop"}.items()
        nothing_is_left_open(chat)
        await whole(chat)


async def test_rejecting_all_goes_on_generating_with_the_denials(work: Work) -> None:
    async with paused(work, "refusing", "touch never-1", "touch never-2") as chat:
        assert await chat.did("RejectTools") == "accepted"
        frames = await chat.until_state("idle")
        assert states(frames) == ["generating", "idle"]
        assert "pause_cleared" in types(frames)
        assert [result["tool_failed"] for result in results(chat)] == [True, True]
        assert len(bodies(work, "refusing")) == 2
        assert chat.client.messages[-1]["content"].startswith("Results:")
        assert not list(work.project.glob("never-*"))
        nothing_is_left_open(chat)
        await whole(chat)


async def test_rejection_of_a_pause_that_outlived_the_server_goes_on_too(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, paused(work, "surviving", "touch survived") as chat:
        known = chat.id
    async with engine(tmp_path) as work, following(work.server, known) as chat:
        assert chat.client.runtime["state"] == "paused"
        await chat.did("reject_tools")
        assert states(await chat.answered()) == ["generating", "idle"]
        assert [result["tool_failed"] for result in results(chat)] == [True]
        assert chat.client.messages[-1]["role"] == "assistant"
        assert not (work.project / "survived").exists()
        await whole(chat)


async def test_explicit_stop_with_a_denial_on_another_face_rests_here(work: Work) -> None:
    async with paused(work, "ending", "touch ended") as chat:
        (request,) = await work.waiting(chat.id)
        await work.decide(chat.id, request, "deny", then="stop")
        assert states(await chat.until_state("idle")) == ["idle"]
        assert [result["tool_failed"] for result in results(chat)] == [True]
        assert len(bodies(work, "ending")) == 1
        await whole(chat)


async def test_denial_by_a_rule_is_a_failed_result_and_the_answer_goes_on(work: Work) -> None:
    rule = {"tool": "shell", "decision": "deny_continue"}
    async with chatting(work, policy=[rule]) as chat:
        await chat.say("ruled out\n!shell touch ruled-out")
        assert [result["tool_failed"] for result in results(chat)] == [True]
        assert chat.client.messages[-1]["content"].startswith("Results:")
        assert "paused" not in chat.client.states


async def test_paused_chat_takes_decisions_and_a_stop_while_the_rest_waits_in_order(work: Work) -> None:
    async with paused(work, "waiting", "touch waited") as chat:
        for text in ("first", "second"):
            assert await chat.did("user_message", content=text) == "accepted"
        assert await chat.did("set_params", patch={"temperature": 0.5}) == "applied"
        refused = await chat.command("ide_tool_result", tool_call_id="nobody", content="x")
        assert refused.status_code == 400
        assert (await chat.snapshot())["runtime"]["state"] == "paused"
        await chat.did("approve_tools")
        await chat.until(lambda frame: chat.client.runtime["queue_size"] == 0 and len(chat.texts) > 4)
        await chat.answered()
        assert [text for role, text in chat.texts if role == "user"] == ["waiting", "first", "second"]
        nothing_is_left_open(chat)


async def test_stop_while_paused_answers_every_call_and_rests(work: Work) -> None:
    async with paused(work, "giving-up", "touch given-up") as chat:
        assert await chat.did("abort") == "aborted"
        frames = await chat.until_state("idle")
        assert "pause_cleared" in types(frames)
        assert [result["tool_failed"] for result in results(chat)] == [True]
        assert chat.client.states[-2:] == ["paused", "idle"]
        nothing_is_left_open(chat)
        await whole(chat)


# -- the editor, and questions


async def test_editor_executes_its_own_tools(work: Work) -> None:
    work.provider.script.append(Answer(blocks=(Call(name="rename", input={"to": "x"}),), when="^editing$"))
    async with chatting(work, policy=FREE) as chat:
        assert await chat.did("set_params", patch={"ide_tools": [RENAME]}) == "applied"
        await chat.did("user_message", content="editing")
        await chat.until_state("waiting_ide")
        (call,) = chat.client.messages[-1]["tool_calls"]
        assert await chat.did("user_message", content="later") == "accepted"
        result = {"tool_call_id": call["id"], "content": "Renamed.", "tool_failed": False}
        assert await chat.did("ide_tool_result", client_request_id="renamed", **result) == "accepted"
        late = await chat.command("ide_tool_result", **result)
        assert (late.status_code, late.json()["status"]) == (400, "invalid_content")
        assert await chat.did("ide_tool_result", client_request_id="renamed", **result) == "duplicate"
        await chat.until(lambda frame: "later" in str(frame.get("message", {}).get("content")))
        await chat.answered()
        assert results(chat)[0].items() >= {**result, "role": "tool"}.items()
        assert [text for role, text in chat.texts if role == "user"] == ["editing", "later"]
        await whole(chat)


async def test_question_is_answered_by_saying_it(work: Work) -> None:
    question = {"questions": [{"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]}]}
    work.provider.script.append(Answer(blocks=(Call(name="ask_user", input=question),), when="^asking$"))
    async with chatting(work) as chat:
        await chat.did("user_message", content="asking")
        await chat.until_state("waiting_user_input")
        assert await chat.did("user_message", content="green, please") == "accepted"
        await chat.until_state("idle")
        assert results(chat)[0]["content"].count("green, please") == 1
        nothing_is_left_open(chat)


# -- stops


async def test_stop_while_streaming_keeps_what_was_said(work: Work) -> None:
    answer = Answer.of("A long story that never ends", when="^story$")
    work.provider.script.append(held("openai", answer, "never"))
    async with chatting(work) as chat:
        await chat.did("user_message", content="story")
        await chat.until(lambda frame: "never" in str(chat.texts))
        draft = chat.client.messages[-1]
        assert await chat.did("abort") == "aborted"
        frames = [frame for frame in await chat.until_state("idle") if frame["type"] != "ack"]
        assert types(frames[-3:]) == ["stream_finished", "message_added", "runtime_updated"]
        assert frames[-3].items() >= {"message_id": draft["message_id"], "finish_reason": "abort"}.items()
        message = frames[-2]["message"]
        assert (message["message_id"], message["finish_reason"]) == (draft["message_id"], "abort")
        assert message["content"].startswith("A long story that never")
        assert "message_removed" not in types(frames)
        assert chat.texts == [("user", "story"), ("assistant", message["content"])]
        await whole(chat)
        await chat.say("And now?")
        assert [role for role, _ in chat.texts] == ["user", "assistant", "user", "assistant"]
        assert str(bodies(work, "story")[-1]["messages"]).count("A long story that never") == 1
        # It counts like any other message.
        await chat.did("truncate_messages", from_index=2)
        assert (await chat.until_type("messages_truncated"))["from_index"] == 2
        assert chat.texts == [("user", "story"), ("assistant", message["content"])]
        await whole(chat)


async def test_stop_while_a_call_is_written_keeps_the_text_and_shows_no_call_that_was_never_made(work: Work) -> None:
    blocks = (Say(text="Let me look."), Call(name="list", input={"path": "half-written"}))
    work.provider.script.append(held("openai", Answer(blocks=blocks, when="^calling$"), "half"))
    async with chatting(work) as chat:
        await chat.did("user_message", content="calling")
        await chat.until(lambda frame: "look." in str(chat.texts))
        await work.until(chat.id, lambda event: event["type"] == "tool.input.delta")
        await chat.did("abort")
        await chat.until_state("idle")
        assert chat.client.messages[-1].items() >= {"content": "Let me look.", "finish_reason": "abort"}.items()
        assert "tool_calls" not in chat.client.messages[-1]
        nothing_is_left_open(chat)
        await whole(chat)


async def test_stop_of_a_draft_in_which_nothing_was_said_leaves_no_message(work: Work) -> None:
    call = Call(name="list", input={"path": "half-written"})
    work.provider.script.append(held("openai", Answer(blocks=(call,), when="^silent$"), "half"))
    async with chatting(work) as chat:
        await chat.did("user_message", content="silent")
        await chat.until_state("generating")
        await work.until(chat.id, lambda event: event["type"] == "tool.input.delta")
        await chat.did("abort")
        frames = await chat.until_state("idle")
        assert "message_added" not in types(frames)
        assert chat.texts == [("user", "silent")]
        await whole(chat)


async def test_stop_right_after_the_message_is_honoured_and_the_next_is_not_swallowed(work: Work) -> None:
    async with chatting(work) as chat:
        await asyncio.gather(chat.did("user_message", content="stopped at once"), chat.did("abort"))
        assert await chat.did("abort") == "aborted"
        seq = chat.client.seq
        assert await chat.did("user_message", content="heard") == "accepted"
        await chat.until(lambda frame: "You said: heard" in str(chat.texts))
        await chat.until_state("idle")
        assert chat.client.seq > seq
        assert chat.texts[-1][0] == "assistant"
        await whole(chat)


async def test_stop_while_a_tool_runs_answers_its_call(work: Work) -> None:
    async with chatting(work, policy=FREE) as chat:
        await chat.did("user_message", content="sleeping\n!shell sleep 60")
        await chat.until_state("executing_tools")
        assert await chat.did("abort") == "aborted"
        await chat.until_state("idle")
        assert [result["tool_failed"] for result in results(chat)] == [True]
        assert chat.client.states[-2:] == ["executing_tools", "idle"]
        nothing_is_left_open(chat)
        await whole(chat)


async def test_stop_ends_the_turn_and_the_queue_goes_on(work: Work) -> None:
    async with chatting(work) as chat:
        await chat.did("user_message", content="held up\n!say Wait.\n!gate held-up")
        await work.provider.gates.reached("held-up")
        await chat.did("user_message", content="next")
        await chat.until(lambda frame: chat.client.runtime["queue_size"] == 1)
        await chat.did("abort")
        await chat.until(lambda frame: "You said: next" in str(chat.texts))
        await chat.until_state("idle")
        work.provider.gates.open("held-up")
        assert [text for role, text in chat.texts if role == "user"][1] == "next"


# -- beside the turn


async def test_background_process_that_ends_is_a_hidden_event_message(work: Work) -> None:
    async with chatting(work, policy=FREE) as chat:
        call = Call(name="shell", input={"command": "true", "background": True})
        work.provider.script.append(Answer(blocks=(call,), when="^beside$"))
        await chat.did("user_message", content="beside")
        told = await chat.until(lambda frame: frame.get("message", {}).get("role") == "event")
        assert told[-1]["type"] == "message_added"
        assert told[-1]["message"].items() >= {"role": "event", "event_kind": "process_completed"}.items()
        await chat.until_state("idle")
        await whole(chat)


async def test_decision_on_another_face_is_seen_here(work: Work) -> None:
    async with paused(work, "elsewhere", "touch elsewhere") as chat:
        (request,) = await work.waiting(chat.id)
        await work.decide(chat.id, request)
        await chat.until_state("idle")
        assert [result["tool_failed"] for result in results(chat)] == [False]
        await whole(chat)


async def test_texts_of_any_length_are_told_whole(work: Work) -> None:
    answer, message = "tide " * 30_000, "ebb " * 100_000
    work.provider.script.append(Answer.of(answer, when="ebb", chunk_chars=4_000))
    async with chatting(work) as chat:
        await chat.say(message)
        assert [(role, text) for role, text in chat.texts if role in ("user", "assistant")] == [
            ("user", message),
            ("assistant", answer),
        ]
        edited = "flow " * 100_000
        await chat.did("update_message", message_id=chat.client.messages[0]["message_id"], content=edited)
        await chat.until(lambda frame: frame["type"] == "message_updated")
        assert chat.texts[0] == ("user", edited)
        await whole(chat)

"""Messages to a busy agent: in order, once each, merged, urgent, paused, and never in the way of a stop."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.flows.at_work import Event, Work, at_work, of
from tests.flows.engine import FREE, bodies, engine, nth, stop, words_of
from tests.provider import Answer, Call, ScriptedProvider
from tests.provider.server import serving as service

pytestmark = pytest.mark.anyio

EDITORS = {"name": "rename", "description": "Renames.", "parameters": {"type": "object"}}
QUEUE_ITEMS = 50


@pytest.fixture(scope="module")
async def work(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Work]:
    async with engine(tmp_path_factory.mktemp("queue")) as started:
        yield started


async def busy(work: Work, word: str, rest: str = "", **params: Any) -> str:
    """A conversation whose answer waits at the gate of that name."""
    conversation = await work.begin(f"{word}\n!say Wait.\n!gate {word}{rest}", **params)
    await work.provider.gates.reached(word)
    return conversation


async def freed(work: Work, conversation: str, word: str, turns: int) -> list[Event]:
    work.provider.gates.open(word)
    return await work.until(conversation, nth(turns, "turn.finished"))


async def queued(work: Work, conversation: str) -> list[str]:
    return [item["content"][0]["text"] for item in (await work.server.state(conversation))["queue"]]


def turns(events: list[Event]) -> list[list[str]]:
    """For each turn, what people said that began or joined it."""
    texts = {event["message"]: event["content"][0]["text"] for event in of(events, "message.added")}
    joined: dict[str, list[str]] = {event["turn"]: [] for event in of(events, "turn.started")}
    for event in of(events, "message.added"):
        joined[event["turn"]].append(texts[event["message"]])
    return list(joined.values())


async def test_messages_that_wait_become_one_turn_as_separate_messages_in_order(work: Work) -> None:
    conversation = await busy(work, "merging")
    for text in ("one", "two", "three"):
        await work.server.send(conversation, text, merge=True)
    events = await freed(work, conversation, "merging", 2)
    first, second = of(events, "turn.started")
    state = await work.server.state(conversation)
    asked = bodies(work, "merging")
    assert turns(events)[1] == ["one", "two", "three"]
    assert second["trigger"]["messages"] == [event["message"] for event in of(events, "message.added")[1:]]
    assert [message["role"] for message in state["messages"]] == [
        "user",
        "assistant",
        "user",
        "user",
        "user",
        "assistant",
    ]
    assert len(asked) == 2
    assert "\n".join(words_of(asked[1])[1:]).split() == ["one", "two", "three"]
    assert of(events, "queue.removed")[-1]["reason"] == "delivered"
    assert first["turn"] != second["turn"]


async def test_message_that_wants_its_own_turn_gets_it_and_the_order_stays(work: Work) -> None:
    conversation = await busy(work, "sharing")
    for text, merge in (("one", True), ("two", True), ("alone", False), ("three", True)):
        await work.server.send(conversation, text, merge=merge)
    events = await freed(work, conversation, "sharing", 4)
    assert turns(events)[1:] == [["one", "two"], ["alone"], ["three"]]
    assert (await work.server.state(conversation))["queue"] == []


async def test_priority_message_goes_in_at_the_next_boundary_before_the_others(work: Work) -> None:
    conversation = await busy(work, "urgent", "\n!list .\n---\n!say Done.")
    await work.server.send(conversation, "ordinary", merge=True)
    await work.server.send(conversation, "also ordinary", merge=True)
    await work.server.send(conversation, "at once", priority=True)
    await work.server.send(conversation, "at once too", priority=True)
    assert await queued(work, conversation) == ["at once", "at once too", "ordinary", "also ordinary"]
    events = await freed(work, conversation, "urgent", 2)
    first, joined, _ = bodies(work, "urgent")
    assert turns(events)[0][1:] == ["at once", "at once too"]
    assert turns(events)[1] == ["ordinary", "also ordinary"]
    # After the result of the call that ran meanwhile, and before the model is asked again.
    assert [message["role"] for message in joined["messages"]][-2:] == ["tool", "user"]
    assert "ordinary" not in str(joined["messages"][-1])
    assert len(joined["messages"]) > len(first["messages"])


async def test_priority_message_during_the_last_answer_still_joins_that_turn(work: Work) -> None:
    conversation = await busy(work, "lastwords")
    await work.server.send(conversation, "ordinary")
    await work.server.send(conversation, "at once", priority=True)
    events = await freed(work, conversation, "lastwords", 2)
    assert [said[-1] for said in turns(events)] == ["at once", "ordinary"]


async def test_queue_is_edited_moved_and_taken_from_and_each_is_delivered_once(work: Work) -> None:
    conversation = await busy(work, "arranged")
    ids = {text: (await work.server.send(conversation, text, merge=True))["id"] for text in ("a", "b", "c", "d", "e")}

    async def edit(item: str, **change: Any) -> int:
        return (await work.server.command(conversation, type="edit_queued", item=ids[item], **change)).status_code

    assert await edit("c", before=ids["a"]) == 202
    assert await edit("a", content="a, better") == 202
    assert await edit("b", before="") == 202
    assert await edit("e", held=True) == 202
    removed = [await work.server.command(conversation, type="remove_queued", item=ids["d"]) for _ in range(2)]
    assert [answer.status_code for answer in removed] == [202, 404]
    events = await freed(work, conversation, "arranged", 2)
    assert turns(events)[1] == ["c", "a, better", "b"]
    assert await queued(work, conversation) == ["e"]
    assert await edit("a", content="too late") == 404
    seq = (await work.server.state(conversation))["seq"]
    assert await edit("e", held=False) == 202
    assert turns(await work.server.settled(conversation, after=seq)) == [["e"]]
    delivered = [
        event["item"] for event in of(await work.until(conversation, nth(3, "turn.finished")), "queue.removed")
    ]
    assert sorted(delivered) == sorted(ids.values())


async def test_messages_that_wait_over_a_restart_are_delivered_once_and_in_order(tmp_path: Path) -> None:
    async with service(ScriptedProvider()) as provider:
        async with at_work(tmp_path, provider=provider) as work:
            conversation = await busy(work, "restarted")
            for text in ("one", "two"):
                await work.server.send(conversation, text, merge=True)
            await work.server.send(conversation, "at once", priority=True)
        async with at_work(tmp_path, provider=provider) as work:
            events = await work.until(conversation, nth(2, "turn.finished"))
            state = await work.server.state(conversation)
        refused = [request.refused for request in provider.requests]
    assert turns(events)[1:] == [["at once"], ["one", "two"]]
    assert [event["reason"] for event in of(events, "turn.interrupted")] == ["shutdown"]
    assert (state["queue"], state["status"]) == ([], "idle")
    assert refused == [None] * 3


async def test_priority_message_to_a_paused_agent_joins_as_soon_as_it_goes_on(work: Work) -> None:
    conversation = await waiting(work, "paused-urgent", "paused")
    await work.server.send(conversation, "ordinary")
    await work.server.send(conversation, "at once", priority=True)
    assert (await work.server.state(conversation))["status"] == "paused"
    await let_go(work, conversation, "paused")
    events = await work.until(conversation, nth(2, "turn.finished"))
    assert turns(events) == [["paused-urgent", "at once"], ["ordinary"]]
    assert len(bodies(work, "paused-urgent")) == 3


# -- a full queue


async def test_full_queue_refuses_the_next_without_burning_its_id_and_takes_a_stop(work: Work) -> None:
    conversation = await busy(work, "crowded")
    for number in range(QUEUE_ITEMS):
        await work.server.send(conversation, f"message {number}", merge=True)
    command = {"type": "send_message", "content": "one more", "merge": True, "client_request_id": "crowded-more"}
    refused = await work.server.command(conversation, **command)
    params = await work.server.command(conversation, type="set_params", patch={"temperature": 1})
    stopped = await stop(work, conversation)
    events = await work.until(conversation, nth(1, "turn.finished"))
    taken = await work.server.command(conversation, **command)
    again = await work.server.command(conversation, **command)
    await work.until(conversation, nth(2, "turn.finished"))
    assert (refused.status_code, refused.json()["code"], refused.json()["retryable"]) == (429, "busy", True)
    assert params.status_code == 202
    assert stopped.applied
    assert turns(events)[1] == [f"message {number}" for number in range(QUEUE_ITEMS)]
    assert taken.status_code == 202
    assert taken.json() == again.json()


async def test_refused_command_leaves_its_id_to_be_used(work: Work) -> None:
    conversation = await work.server.create(project=str(work.project))
    refused = await work.server.command(conversation, type="decide_tools", client_request_id="not-burned")
    sent = await work.server.send(conversation, "unburned hello", client_request_id="not-burned")
    await work.events(conversation)
    other = await work.server.command(conversation, type="send_message", content="x", client_request_id="not-burned")
    assert (refused.status_code, other.status_code) == (409, 409)
    assert sent["turn"]


# -- paused, and waiting for the editor


async def waiting(work: Work, word: str, how: str) -> str:
    """A conversation that is paused, or waits for its editor."""
    call = Call(name="rename") if how == "waiting_ide" else Call(name="shell", input={"command": f"touch {word}"})
    work.provider.script.append(Answer(blocks=(call,), when=f"^{word}$"))
    conversation = await work.begin(word, ide_tools=[EDITORS], **({"policy": FREE} if how == "waiting_ide" else {}))
    at_last = nth(1, "tool.started") if how == "waiting_ide" else nth(1, "request.opened")
    await work.until(conversation, at_last)
    return conversation


async def let_go(work: Work, conversation: str, how: str) -> None:
    if how == "paused":
        answer = await work.server.command(conversation, type="decide_tools")
    else:
        (call,) = of(await work.until(conversation, nth(1, "tool.started")), "tool.started")
        answer = await work.server.command(
            conversation, type="return_tool_result", call=call["call"], content="Renamed."
        )
    assert answer.status_code == 202, answer.text


@pytest.mark.parametrize("end", ["let go", "stop"])
@pytest.mark.parametrize("how", ["paused", "waiting_ide"])
async def test_conversation_that_waits_takes_its_answer_or_a_stop_while_the_rest_waits_in_order(
    how: str, end: str, work: Work
) -> None:
    word = f"{how}-{end.replace(' ', '-')}"
    conversation = await waiting(work, word, how)
    for text in ("first", "second"):
        sent = await work.server.send(conversation, text)
        assert sent["queued"]
    state = await work.server.state(conversation)
    refused = [
        await work.server.command(conversation, **command)
        for command in (
            {"type": "regenerate"},
            {"type": "truncate_messages", "from_index": 0},
            {"type": "edit_message", "message": state["messages"][0]["id"], "content": "otherwise"},
            {"type": "return_tool_result", "call": "nobody", "content": "x"},
        )
    ]
    params = await work.server.command(conversation, type="set_params", patch={"temperature": 0.5})
    draft = await work.server.command(conversation, type="set_draft", text="half a thought")
    still = await work.server.state(conversation)
    if end == "stop":
        await stop(work, conversation)
    else:
        await let_go(work, conversation, how)
    events = await work.until(conversation, nth(3 if end == "let go" else 2, "turn.finished"))
    assert state["status"] == still["status"] == how
    assert await queued(work, conversation) == []
    assert [item["content"][0]["text"] for item in still["queue"]] == ["first", "second"]
    assert all(answer.status_code in (404, 409) for answer in refused)
    assert (params.status_code, draft.status_code, still["draft"]) == (202, 202, "half a thought")
    assert still["params"]["temperature"] == 0.5
    assert turns(events) == [[word], ["first"], ["second"]]
    # At once: already the next request has it.
    assert [body.get("temperature") for body in bodies(work, word)][1:] == [0.5] * (len(bodies(work, word)) - 1)
    assert (work.project / word).exists() == (how == "paused" and end == "let go")


async def test_decisions_are_refused_where_nothing_waits_for_one(work: Work) -> None:
    conversation = await busy(work, "undecided")
    answers = [
        await work.server.command(conversation, type="decide_tools"),
        await work.server.command(conversation, type="return_tool_result", call="x", content="y"),
        await work.server.command(conversation, type="resolve_request", request="x", verdict="allow"),
    ]
    await freed(work, conversation, "undecided", 1)
    answers.append(await work.server.command(conversation, type="decide_tools"))
    assert [answer.status_code for answer in answers] == [409, 404, 404, 409]
    assert all(answer.json()["message"] for answer in answers)


async def test_eight_senders_at_once_are_each_answered_once(work: Work) -> None:
    conversation = await busy(work, "together")
    texts = [f"sender {number}" for number in range(8)]
    sent = await asyncio.gather(*(work.server.send(conversation, text) for text in texts))
    events = await freed(work, conversation, "together", 9)
    assert len({answer["id"] for answer in sent}) == 8
    by_seq = [text for _, text in sorted(zip((answer["seq"] for answer in sent), texts, strict=True))]
    assert turns(events)[1:] == [[text] for text in by_seq]

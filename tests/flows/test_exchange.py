"""Agents that write to each other, over a real server: the contract's `agents_message`, through deaths of the server too.

The model does what its text says, so an agent is told in a message what to say, or what to write to whom.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.core.exchanges import HOPS
from tests.crash.rig import Rig, rigged
from tests.flows.at_work import Event, Work, at_work, of
from tests.flows.engine import nth, stop
from tests.flows.served import LOOK_EVERY_S, WAIT_S
from tests.flows.test_engine_death import Person
from tests.provider import ScriptedProvider
from tests.provider.server import serving as service

pytestmark = pytest.mark.anyio

AGENTS = {name: f"description: {name} answers\nknowledge: false" for name in ("ada", "bea")}


OPEN = ("sent", "queued", "started")


def with_agents(folder: Path, agents: Mapping[str, str] = AGENTS) -> None:
    (folder / "data" / "agents").mkdir(parents=True)
    (folder / "project").mkdir()
    for name, front in agents.items():
        (folder / "data" / "agents" / f"{name}.md").write_text(f"---\n{front}\n---\nYou are {name}.\n")


@asynccontextmanager
async def two_agents(folder: Path, agents: Mapping[str, str] = AGENTS) -> AsyncIterator[Work]:
    with_agents(folder, agents)
    async with at_work(folder) as work:
        yield work


def write(content: str, agent: str = "bea", **fields: Any) -> str:
    return f"!tool agents_message {msgspec.json.encode({'agentId': agent, 'content': content, **fields}).decode()}"


async def begin(work: Work, *orders: str, agent: str = "ada", **params: Any) -> str:
    conversation = await work.server.create(project=str(work.project), agent=agent, params=params)
    if orders:
        await work.server.send(conversation, "\n".join(orders))
    return conversation


def result(events: list[Event], place: int = 0) -> dict[str, Any]:
    return dict(msgspec.json.decode(of(events, "tool.finished")[place]["output"]))


def callbacks(events: list[Event]) -> list[Event]:
    return [event for event in of(events, "turn.started") if event["trigger"]["kind"] == "callback"]


def statuses(events: list[Event]) -> list[str]:
    return [event["status"] for event in of(events, "exchange.returned")]


def of_turn(events: list[Event], turn: str) -> list[Event]:
    return [event for event in events if event.get("turn") == turn]


async def whole(work: Work, conversation: str) -> list[Event]:
    head = (await work.server.state(conversation))["seq"]
    return await work.until(conversation, lambda event: event["seq"] >= head)


# -- now


async def test_answer_is_the_result_of_the_call_and_the_exchange_joins_both_sides(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as work:
        caller = await begin(work, write("!list .\n---\n!say It is blue."))
        events = await work.events(caller)
        said = result(events)
        theirs = await work.events(said["sessionId"])
        created = theirs[0]
        bodies = work.provider.bodies
    assert set(said) == {"status", "sessionId", "response", "durationMs", "toolCallCount"}
    assert (said["status"], said["response"], said["toolCallCount"]) == ("complete", "It is blue.", 1)
    (call,) = of(events, "tool.called")
    assert call["exchange"] == call["call"] == of(events, "tool.finished")[0]["exchange"]
    assert of(events, "request.opened") == []
    (turn,) = of(theirs, "turn.started")
    assert {event.get("exchange") for event in of_turn(theirs, turn["turn"])} == {call["call"]}
    assert (created["parent"]["kind"], created["parent"]["conversation"]) == ("exchange", caller)
    (message,) = of(theirs, "message.added")
    assert message["origin"] == {"face": "agents", "agent": "ada", "conversation": caller}
    assert any("from agent ada]\n!list" in str(body["messages"]).replace("\\n", "\n") for body in bodies)


async def test_tool_is_offered_with_the_agents_there_are_but_not_in_plan_mode(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as work:
        await work.events(await begin(work, "!say first"))
        await work.events(await begin(work, "!say second", mode="plan"))
        await work.events(await begin(work, write("!say no"), mode="plan"))
        first, second, *_ = work.provider.bodies
        listed = (await work.server.http.get("/api/conversations")).json()["items"]
    (offered,) = [tool["function"] for tool in first["tools"] if tool["function"]["name"] == "agents_message"]
    assert "- bea: bea answers" in offered["description"]
    assert offered["parameters"]["required"] == ["agentId", "content"]
    assert "agents_message" not in [tool["function"]["name"] for tool in second["tools"]]
    assert [row["agent"] for row in listed] == ["ada"] * 3


async def test_target_asks_for_itself_and_is_stopped_by_nobody_when_its_caller_is(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as work:
        caller = await begin(work, write("!write a.txt a\n---\n!say Written."))
        sent = of(await work.until(caller, nth(1, "exchange.sent")), "exchange.sent")[0]
        (request,) = await work.opened(sent["to"])
        await stop(work, caller)
        await work.decide(sent["to"], request)
        theirs = await work.events(sent["to"])
        events = await whole(work, caller)
    assert statuses(theirs) == ["complete"]
    assert (tmp_path / "project" / "a.txt").read_text() == "a"
    assert statuses(events) == ["cancelled"]
    (cut,) = of(events, "tool.finished")
    assert (cut["error"]["code"], cut["exchange"]) == ("tool_interrupted", sent["exchange"])
    assert callbacks(events) == []


async def test_two_conversations_of_one_agent_never_mix(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as work:
        marks = ["red", "green", "blue"]
        letters = [write(f"!gate g-{mark}\n!say {mark}", session="create") for mark in marks]
        callers = [await begin(work, letter) for letter in letters]
        for mark in marks:
            await work.provider.gates.reached(f"g-{mark}")
        for mark in reversed(marks):
            work.provider.gates.open(f"g-{mark}")
        said = [result(await work.events(caller)) for caller in callers]
        logs = [await work.events(one["sessionId"]) for one in said]
    assert [one["response"] for one in said] == marks
    for mark, log in zip(marks, logs, strict=True):
        assert [other for other in marks if f"!say {other}" in str(log)] == [mark]


async def test_session_is_the_latest_or_a_new_one_or_the_one_that_is_named(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as work:
        caller = await begin(work, write("!say one", session="latest"))
        none = of(await work.events(caller), "tool.finished")[0]

        async def where(**fields: Any) -> str:
            seq = (await work.server.send(caller, write("!say again", **fields)))["seq"]
            return str(result(await work.server.settled(caller, after=seq))["sessionId"])

        first = await where()
        second = await where(session="create")
        latest = [await where(session="latest"), await where(session="latest-or-create"), await where()]
        named = await where(session=first)
        await work.server.send(caller, write("!say me", "ada", session=caller))
        refused = of(await work.server.settled(caller, after=(await work.server.state(caller))["seq"] - 1), "x")
        events = await whole(work, caller)
    assert "no conversation in this project" in none["error"]["message"]
    assert latest == [second] * 3
    assert (named, first == second, refused) == (first, False, [])
    assert "this very conversation" in of(events, "tool.finished")[-1]["error"]["message"]


# -- later


async def busy_then_asked(work: Work, answer: str = "!say It is blue.") -> tuple[str, str]:
    """Bea is busy, Ada writes to her: who asked, and who was asked."""
    target = await begin(work, "!gate busy\n!say Ready.", agent="bea")
    await work.provider.gates.reached("busy")
    return await begin(work, write(answer)), target


async def test_busy_agent_is_queued_and_its_answer_begins_exactly_one_turn(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as work:
        caller, target = await busy_then_asked(work)
        events = await work.events(caller)
        queued = result(events)
        assert (queued["status"], queued["sessionId"]) == ("queued", target)
        (item,) = (await work.server.state(target))["queue"]
        assert (item["origin"]["agent"], item["exchange"]) == ("ada", of(events, "exchange.sent")[0]["exchange"])
        work.provider.gates.open("busy")
        events = await work.until(caller, nth(2, "turn.finished"))
        theirs = await work.until(target, nth(2, "turn.finished"))
        told = str(work.provider.bodies[-1]["messages"][-1])
    (begun,) = callbacks(events)
    exchange = of(events, "exchange.sent")[0]["exchange"]
    assert (begun["trigger"]["exchange"], begun.get("exchange")) == (exchange, None)
    assert statuses(events) == ["queued", "complete"]
    (word,) = [event for event in of(events, "message.added") if event.get("event_kind") == "agent_callback"]
    assert (word["exchange"], word["origin"]["conversation"]) == (exchange, target)
    assert "bea answered:" in told
    first, second = of(theirs, "turn.started")
    assert {event.get("exchange") for event in of_turn(theirs, first["turn"])} == {None}
    assert {event.get("exchange") for event in of_turn(theirs, second["turn"])} == {exchange}


async def test_async_message_comes_back_while_the_caller_is_busy_and_waits_for_its_turn(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as work:
        caller = await begin(work, write("!say It is blue.", mode="async"), "---", "!gate on\n!say Meanwhile.")
        await work.provider.gates.reached("on")
        waiting = await work.until(caller, nth(1, "queue.added", trigger="callback"))
        work.provider.gates.open("on")
        events = await work.until(caller, nth(2, "turn.finished"))
    assert result(events)["status"] == "started"
    assert statuses(waiting) == ["started", "complete"]
    assert len(callbacks(events)) == 1


async def test_timeout_is_final_and_the_target_goes_on(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as work:
        caller = await begin(work, write("!gate slow\n!say It is blue.", timeout=0.2))
        events = await work.events(caller)
        said = result(events)
        assert (await work.server.state(said["sessionId"]))["turn"] is not None
        work.provider.gates.open("slow")
        theirs = await work.events(said["sessionId"])
        events = await work.until(caller, nth(1, "exchange.returned", status="complete"))
        state = await work.server.state(caller)
    assert (said["status"], "response" in said) == ("timeout", False)
    assert said["sessionId"] in said["message"]
    assert theirs[-1]["outcome"] == "completed"
    assert statuses(events) == ["timeout", "complete"]
    assert (state["turn"], state["queue"], callbacks(events)) == (None, [], [])


async def test_answer_to_a_deleted_caller_is_dropped_quietly(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as work:
        caller, target = await busy_then_asked(work)
        await work.events(caller)
        assert (await work.server.http.delete(f"/api/conversations/{caller}")).status_code < 300
        work.provider.gates.open("busy")
        theirs = await work.until(target, nth(2, "turn.finished"))
        answered = await work.server.http.get(f"/api/conversations/{caller}")
        asked = len(work.provider.requests)
        await work.server.send(target, "!say Going on.")
        await work.until(target, nth(3, "turn.finished"))
        assert len(work.provider.requests) == asked + 1
    assert [event["outcome"] for event in of(theirs, "turn.finished")] == ["completed", "completed"]
    assert answered.status_code == 410


async def test_agents_that_go_on_and_on_are_stopped_in_words(tmp_path: Path) -> None:
    async with two_agents(tmp_path) as work:
        ada, bea = await begin(work), await begin(work, agent="bea")
        for name, other, session in (("ada", "bea", bea), ("bea", "ada", ada)):
            again = write(f"!read {other}.txt\n---\n!obey\n---\n!say Sent.", other, session=session, mode="async")
            (work.project / f"{name}.txt").write_text(again + "\n")
        await work.server.send(ada, "!read ada.txt\n---\n!obey\n---\n!say Sent.")
        await work.until(ada, nth(1, "turn.finished"))
        async with asyncio.timeout(WAIT_S * 3):
            while not await _rest(work, ada, bea):  # noqa: ASYNC110 - of two conversations at once nobody tells
                await asyncio.sleep(LOOK_EVERY_S)
        logs = [await whole(work, conversation) for conversation in (ada, bea)]
    sent = [event for log in logs for event in of(log, "exchange.sent")]
    refused = [event for log in logs for event in of(log, "tool.finished") if not event["ok"]]
    assert refused
    assert all("let the person speak" in event["error"]["message"] for event in refused)
    assert max(event["hops"] for event in sent) == HOPS
    assert len(sent) <= 2 * HOPS


async def _rest(work: Work, *conversations: str) -> bool:
    """Nobody is at work, and no answer is on its way."""
    states = [await work.server.state(conversation) for conversation in conversations]
    open_ones = [known for state in states for known in state["exchanges"] if known["status"] in OPEN]
    return not open_ones and not any(state["turn"] or state["queue"] for state in states)


# -- through deaths of the server


@asynccontextmanager
async def mortal(folder: Path) -> AsyncIterator[tuple[Rig, ScriptedProvider]]:
    with_agents(folder)
    async with service(ScriptedProvider()) as provider, rigged(folder / "data", provider.url) as rig:
        yield rig, provider


@asynccontextmanager
async def alive(rig: Rig, kill: str | None = None) -> AsyncIterator[Person]:
    await rig.start(kill)
    await rig.up()
    person = Person(rig)
    async with person.http:
        yield person


async def made(person: Person, folder: Path, agent: str) -> str:
    body = {"project": str(folder / "project"), "agent": agent}
    return str((await person.http.post("/api/conversations", json=body)).json()["conversation"])


async def rested(person: Person, conversation: str) -> list[Event]:
    """The whole log once nothing is left to do."""
    async with asyncio.timeout(WAIT_S * 2):
        while True:
            state = (await person.http.get(f"/api/conversations/{conversation}/snapshot")).json()
            if not state["turn"] and not state["queue"]:
                break
            await asyncio.sleep(LOOK_EVERY_S)
    return await person.until(conversation, lambda event: event["seq"] >= state["seq"])


Stage = Callable[[Person, ScriptedProvider, str, str], Any]


async def _before_the_targets_turn(person: Person, provider: ScriptedProvider, caller: str, target: str) -> None:
    await person.until(caller, nth(1, "turn.finished"))


async def _during_the_targets_turn(person: Person, provider: ScriptedProvider, caller: str, target: str) -> None:
    await person.until(caller, nth(1, "turn.finished"))
    provider.gates.open("busy")
    await provider.gates.reached("answer")


async def _during_the_callback(person: Person, provider: ScriptedProvider, caller: str, target: str) -> None:
    await person.until(caller, nth(1, "turn.finished"))
    provider.gates.open("busy")
    provider.gates.open("answer")
    await provider.gates.reached("callback")


@pytest.mark.crash
@pytest.mark.parametrize(
    ("stage", "answer"),
    [
        (_before_the_targets_turn, "complete"),
        (_during_the_targets_turn, "cancelled"),
        (_during_the_callback, "complete"),
    ],
)
async def test_queued_exchange_survives_the_death_of_the_server_with_exactly_one_callback(
    tmp_path: Path, stage: Stage, answer: str
) -> None:
    async with mortal(tmp_path) as (rig, provider):
        async with alive(rig) as person:
            target, caller = await made(person, tmp_path, "bea"), await made(person, tmp_path, "ada")
            await person.send(target, "!gate busy\n!say Ready.")
            await provider.gates.reached("busy")
            await person.send(caller, write("!gate answer\n!say !gate callback\\n!say Thanks."))
            await stage(person, provider, caller, target)
            await rig.kill()
        for gate in ("busy", "answer", "callback"):
            provider.gates.open(gate)
        async with alive(rig) as person:
            await person.until(caller, nth(2, "turn.started"))
            events = await rested(person, caller)
            theirs = await rested(person, target)
    assert statuses(events) == ["queued", answer]
    assert len(callbacks(events)) == 1
    assert len([event for event in of(theirs, "message.added") if event.get("exchange")]) == 1
    turn = next(event for event in of(theirs, "turn.started") if event["trigger"].get("exchange"))
    assert {event.get("exchange") for event in of_turn(theirs, turn["turn"])} == {turn["trigger"]["exchange"]}


@pytest.mark.crash
@pytest.mark.parametrize("point", ["deliver.before", "answered.before"])
async def test_async_exchange_survives_a_death_between_the_two_conversations(tmp_path: Path, point: str) -> None:
    async with mortal(tmp_path) as (rig, _):
        async with alive(rig, point) as person:
            caller = await made(person, tmp_path, "ada")
            await person.send(caller, write("!say It is blue.", mode="async"))
            await rig.died()
        async with alive(rig) as person:
            await person.until(caller, nth(2, "turn.started"))
            first = await rested(person, caller)
            await rested(person, of(first, "exchange.sent")[0]["to"])
            await rig.kill()
        async with alive(rig) as person:
            events = await rested(person, caller)
            theirs = await rested(person, of(events, "exchange.sent")[0]["to"])
    assert events == first
    assert len(callbacks(events)) == 1
    assert statuses(events)[-1] in ("complete", "cancelled")
    assert len([event for event in of(theirs, "message.added") if event.get("exchange")]) == 1


@pytest.mark.crash
async def test_approval_that_outlives_the_server_still_answers_the_exchange(tmp_path: Path) -> None:
    async with mortal(tmp_path) as (rig, _):
        async with alive(rig) as person:
            caller = await made(person, tmp_path, "ada")
            await person.send(caller, write("!write a.txt a\n---\n!say Written.", mode="async"))
            sent = of(await person.until(caller, nth(1, "turn.finished")), "exchange.sent")[0]
            await person.until(sent["to"], nth(1, "request.opened"))
            await rig.kill()
        async with alive(rig) as person:
            (waiting,) = (await person.http.get("/api/requests")).json()["items"]
            assert statuses(await rested(person, caller)) == ["started"]
            answer = {"type": "resolve_request", "request": waiting["request"]["id"], "verdict": "allow"}
            path = f"/api/conversations/{waiting['conversation']}/commands"
            assert (await person.http.post(path, json=answer)).status_code == 202
            await person.until(caller, nth(2, "turn.started"))
            events, theirs = await rested(person, caller), await rested(person, sent["to"])
    assert statuses(events) == ["started", "complete"]
    assert len(callbacks(events)) == 1
    went_on = of(theirs, "turn.started")[-1]
    assert went_on["trigger"]["kind"] == "request"
    assert {event.get("exchange") for event in of_turn(theirs, went_on["turn"])} == {sent["exchange"]}
    assert (tmp_path / "project" / "a.txt").read_text() == "a"

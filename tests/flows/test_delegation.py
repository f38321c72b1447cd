"""Agents that give each other tasks, over a real server: the model does what its text says, the processes are real."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.crash.rig import rigged
from tests.flows.at_work import Event, Work, at_work, of
from tests.flows.engine import FREE, gone, nth, stop
from tests.flows.served import LOOK_EVERY_S, WAIT_S
from tests.flows.test_engine_death import Person, over
from tests.provider import ScriptedProvider
from tests.provider.server import serving as service
from tests.unit.tools.workshop import processes_with

pytestmark = pytest.mark.anyio

AGENTS = {
    "coordinator": "description: gives the others their work",
    "builder": "description: builds\npolicy: [{tool: shell, decision: allow}]",
    "careful": "description: asks first",
}


def with_agents(folder: Path, agents: Mapping[str, str] = AGENTS) -> None:
    made = folder / "data" / "agents"
    made.mkdir(parents=True)
    for name, front in agents.items():
        (made / f"{name}.md").write_text(f"---\n{front}\n---\nYou are {name}.\n")


@asynccontextmanager
async def crew(folder: Path, agents: Mapping[str, str] = AGENTS) -> AsyncIterator[Work]:
    """A server with these agents, on a model that obeys."""
    with_agents(folder, agents)
    async with at_work(folder) as work:
        yield work


def task(prompt: str, agent: str | None = None) -> str:
    given = {"prompt": prompt} | ({"agent": agent} if agent else {})
    return f"!tool task {msgspec.json.encode(given).decode()}"


async def begin(work: Work, *orders: str, agent: str = "coordinator", **params: Any) -> str:
    conversation = await work.server.create(project=str(work.project), agent=agent, params=params)
    await work.server.send(conversation, "\n".join(orders))
    return conversation


async def children(work: Work, conversation: str, count: int = 1) -> list[str]:
    """The subagents of a conversation in the order of their calls, once so many are told of; they begin right after."""
    events = await work.until(conversation, nth(count, "subagent.started"))
    return [str(event["subagent"]) for event in in_order(events, "subagent.started")]


async def inbox(work: Work, count: int, **query: str) -> list[dict[str, Any]]:
    """What waits for a person, once it is so much."""
    async with asyncio.timeout(WAIT_S):
        while True:
            items = (await work.server.http.get("/api/requests", params=query)).json()["items"]
            if len(items) >= count:
                return list(items)
            await asyncio.sleep(LOOK_EVERY_S)


async def running(tag: str, count: int) -> None:
    async with asyncio.timeout(WAIT_S):
        while len(processes_with(tag)) < count:  # noqa: ASYNC110 - a process tells nobody that it begins
            await asyncio.sleep(LOOK_EVERY_S)


def in_order(events: list[Event], type: str) -> list[Event]:
    """What came of calls that ran at once, in the order of the calls."""
    calls = [event["call"] for event in of(events, "tool.called")]
    return sorted(of(events, type), key=lambda event: calls.index(event["call"]))


def results(events: list[Event]) -> list[str]:
    return [event.get("output") or event["error"]["message"] for event in in_order(events, "tool.finished")]


async def test_coordinator_delegates_to_two_at_once_one_asks_and_a_stop_takes_the_whole_tree_down(
    tmp_path: Path,
) -> None:
    tag = f"77{secrets.randbelow(10**9)}"
    sleep = f"!shell trap '' INT TERM HUP; (setsid sleep {tag} &); sleep {tag}; true"
    async with crew(tmp_path) as work:
        conversation = await begin(
            work, task(f"{sleep}", "builder"), task(f"!write notes.txt asked\n---\n{task(sleep, 'builder')}", "careful")
        )
        builder, careful = await children(work, conversation, 2)
        (asked,) = await inbox(work, 1, root=conversation)
        assert (asked["conversation"], asked["agent"], asked["root"]) == (careful, "careful", conversation)
        assert (asked["parent_kind"], asked["request"]["agent"]) == ("subagent", "careful")
        assert asked["parents"] == [conversation]
        assert await inbox(work, 0, root=careful) == []
        assert not (work.project / "notes.txt").exists()
        await work.decide(asked["conversation"], asked["request"])
        (below,) = await children(work, careful)
        await running(tag, 4)
        assert (work.project / "notes.txt").read_text() == "asked"
        await stop(work, conversation)
        await gone(tag)
        tree = [conversation, builder, careful, below]
        ends = [of(await work.server.settled(one), "turn.interrupted") for one in tree]
        states = [await work.server.state(one) for one in tree]
        seq = (await work.server.send(conversation, "!say Going on."))["seq"]
        after = await work.server.settled(conversation, after=seq)
    assert [[event["reason"] for event in end] for end in ends] == [["user"], ["parent"], ["parent"], ["parent"]]
    assert [state["turn"] for state in states] == [None] * 4
    assert [child["status"] for state in states for child in state["subagents"]] == ["cancelled"] * 3
    assert after[-1]["outcome"] == "completed"


async def test_reports_come_back_and_nothing_else_of_the_child_does(tmp_path: Path) -> None:
    async with crew(tmp_path) as work:
        prompt = "!shell echo hid$((40 + 2))den\n---\n!say The report."
        conversation = await begin(work, task(prompt, "builder"), task("!say Mine.", None))
        events = await work.events(conversation)
        first, second = (event["subagent"] for event in in_order(events, "subagent.started"))
        theirs = await work.events(first)
        listed = (await work.server.http.get("/api/conversations")).json()["items"]
    assert results(events) == [
        f"builder (conversation {first}) reports:\n\nThe report.",
        f"The subagent (conversation {second}) reports:\n\nMine.",
    ]
    assert "hid42den" not in str(events)
    assert "hid42den" in str(of(theirs, "tool.output.delta"))
    assert [event["agent"] for event in in_order(events, "subagent.started")] == ["builder", "coordinator"]
    assert [row["id"] for row in listed] == [conversation]


async def test_tool_tells_of_the_agents_there_are_but_not_in_plan_mode(tmp_path: Path) -> None:
    async with crew(tmp_path) as work:
        await work.events(await begin(work, "!say first"))
        await work.events(await begin(work, "!say second", mode="plan"))
        first, second = work.provider.bodies
    (offered,) = [tool["function"] for tool in first["tools"] if tool["function"]["name"] == "task"]
    assert "- careful: asks first" in offered["description"]
    assert "demo" not in offered["description"]
    assert offered["parameters"]["required"] == ["prompt"]
    assert "task" not in [tool["function"]["name"] for tool in second["tools"]]


async def test_unknown_agent_and_one_too_deep_are_said_to_the_model(tmp_path: Path) -> None:
    async with crew(tmp_path) as work:
        conversation = await begin(work, task("!say no", "mole"))
        (unknown,) = results(await work.events(conversation))
        # Each level passes the rest on; the fifth has nobody below it.
        prompt = "!say the bottom"
        for _ in range(5):
            prompt = task(prompt)
        top = await begin(work, prompt)
        events = await work.events(top)
        levels = []
        while started := of(events, "subagent.started"):
            levels.append(started[0]["subagent"])
            events = await work.events(levels[-1])
        offered = [tool["function"]["name"] for tool in work.provider.bodies[-1]["tools"]]
        deepest = [
            body for body in work.provider.bodies if "task" not in [t["function"]["name"] for t in body["tools"]]
        ]
    assert "“mole”" in unknown
    assert "builder, careful, coordinator" in unknown
    assert len(levels) == 4
    assert "There is no tool 'task'" in results(events)[0]
    assert "task" in offered
    assert deepest


async def test_failed_child_is_a_failed_result_and_the_parent_goes_on(tmp_path: Path) -> None:
    async with crew(tmp_path) as work:
        conversation = await begin(work, task("!status 400", "builder"))
        events = await work.events(conversation)
    assert "did not finish the task" in results(events)[0]
    assert of(events, "subagent.finished")[0]["outcome"] == "failed"
    assert events[-1]["outcome"] == "completed"


async def test_child_stopped_by_a_person_is_told_to_the_parent_which_goes_on(tmp_path: Path) -> None:
    tag = f"78{secrets.randbelow(10**9)}"
    async with crew(tmp_path) as work:
        conversation = await begin(work, task(f"!shell sleep {tag}", "builder"), task("!say Beside.", "builder"))
        first, _ = await children(work, conversation, 2)
        await running(tag, 1)
        await stop(work, first)
        await gone(tag)
        events = await work.events(conversation)
    assert "A person stopped it." in results(events)[0]
    assert "Beside." in results(events)[1]
    assert events[-1]["outcome"] == "completed"


async def test_stop_leaves_other_conversations_of_the_project_alone(tmp_path: Path) -> None:
    mine, theirs = f"79{secrets.randbelow(10**9)}", f"80{secrets.randbelow(10**9)}"
    async with crew(tmp_path) as work:
        beside = await begin(work, task(f"!shell sleep {theirs}", "builder"))
        conversation = await begin(work, task(f"!shell sleep {mine}", "builder"))
        await asyncio.gather(running(mine, 1), running(theirs, 1))
        await stop(work, conversation)
        await gone(mine)
        await stop(work, conversation)
        assert processes_with(theirs)
        assert (await work.server.state(beside))["turn"] is not None
        await stop(work, beside)
        await gone(theirs)


async def test_childs_mode_is_never_bolder_and_what_the_parent_may_do_is_asked_again(tmp_path: Path) -> None:
    agents = {**AGENTS, "bold": "mode: full", "planner": "mode: plan"}
    async with crew(tmp_path, agents) as work:
        orders = [task("!write a.txt a", "bold"), task("!write b.txt b", "planner")]
        conversation = await begin(work, *orders, mode="accept_edits", policy=FREE)
        events = await work.events(conversation)
        begun = in_order(events, "subagent.started")
        modes = [(await work.server.state(event["subagent"]))["params"] for event in begun]
        asking = await begin(work, task("!write c.txt c", "bold"), mode="ask", policy=FREE)
        (asked,) = await inbox(work, 1, root=asking)
        await work.decide(asked["conversation"], asked["request"], "deny")
        denied = await work.events(asking)
    assert modes == [{"mode": "accept_edits"}, {"mode": "plan"}]
    assert (tmp_path / "project" / "a.txt").exists()
    assert not (tmp_path / "project" / "b.txt").exists()
    assert not (tmp_path / "project" / "c.txt").exists()
    assert "declined" in str(of(denied, "tool.finished"))


async def test_deleted_conversation_takes_its_tree_along(tmp_path: Path) -> None:
    tag = f"81{secrets.randbelow(10**9)}"
    async with crew(tmp_path) as work:
        conversation = await begin(work, task(task(f"!shell sleep {tag}", "builder"), "builder"))
        (middle,) = await children(work, conversation)
        (deep,) = await children(work, middle)
        await running(tag, 1)
        answer = await work.server.http.delete(f"/api/conversations/{conversation}")
        assert answer.status_code < 300
        await gone(tag)
        gone_too = [
            (await work.server.http.get(f"/api/conversations/{one}")).status_code
            for one in (conversation, middle, deep)
        ]
    assert gone_too == [410] * 3


async def test_child_that_waits_for_its_process_is_waited_for(tmp_path: Path) -> None:
    async with crew(tmp_path) as work:
        wait = '!tool shell {"command": "until [ -e go ]; do sleep 0.05; done", "background": true}'
        prompt = f"{wait}\n---\n!tool loop_yield_turn {{}}\n---\n!say It is built."
        conversation = await begin(work, task(prompt, "builder"))
        (child,) = await children(work, conversation)
        await work.until(child, nth(1, "turn.finished", outcome="yielded"))
        assert (await work.server.state(conversation))["subagents"][0]["status"] == "running"
        (work.project / "go").touch()
        events = await work.events(conversation)
        state = await work.server.state(child)
        theirs = await work.until(child, nth(2, "turn.finished"))
    assert of(events, "subagent.finished")[0]["outcome"] == "completed"
    assert state["turn"] is None
    assert [event["exit_code"] for event in of(theirs, "process.finished")] == [0]


async def test_ten_agents_streaming_at_once_never_mix(tmp_path: Path) -> None:
    """Five conversations of people and five subagents, each saying its own mark, all in the middle of it at once."""
    # Without what is recalled of other conversations, which is meant to show what others said.
    async with crew(tmp_path, {name: f"{front}\nknowledge: false" for name, front in AGENTS.items()}) as work:
        marks = [f"mark{secrets.token_hex(3)}" for _ in range(10)]
        spoken = [
            f"!slow 0.01\n!say {' '.join([mark] * 20)}\n!gate g-{mark}\n!say {' '.join([mark] * 20)}" for mark in marks
        ]
        own = [await begin(work, words) for words in spoken[:5]]
        parent = await begin(work, *(task(words, "builder") for words in spoken[5:]))
        below = await children(work, parent, 5)
        await asyncio.gather(*(work.provider.gates.reached(f"g-{mark}") for mark in marks))
        for mark in marks:
            work.provider.gates.open(f"g-{mark}")
        logs = [await work.events(one) for one in (*own, *below)]
        await work.events(parent)
    for log in logs:
        said = "".join(event["text"] for event in of(log, "text.delta"))
        assert len({mark for mark in marks if mark in said}) == 1
        (mark,) = [mark for mark in marks if mark in str(log)]
        assert said.count(mark) == 40


@pytest.mark.crash
async def test_tree_of_a_killed_server_is_settled_by_the_next_and_nothing_of_it_runs(tmp_path: Path) -> None:
    tag = f"82{secrets.randbelow(10**9)}"
    (tmp_path / "project").mkdir()
    with_agents(tmp_path)
    async with service(ScriptedProvider()) as provider, rigged(tmp_path / "data", provider.url) as rig:
        await rig.start()
        await rig.up()
        person = Person(rig)
        async with person.http:
            conversation = await person.create(tmp_path / "project")
            sleep = f"!shell trap '' INT TERM HUP; (setsid sleep {tag} &); sleep {tag}; true"
            orders = [task(task(sleep, "builder"), "builder"), task("!write notes.txt asked", "careful")]
            await person.send(conversation, "\n".join(orders))
            below = in_order(await person.until(conversation, nth(2, "subagent.started")), "subagent.started")
            middle, careful = (str(event["subagent"]) for event in below)
            (begun,) = of(await person.until(middle, nth(1, "subagent.started")), "subagent.started")
            await person.until(careful, nth(1, "request.opened"))
            await running(tag, 2)
            await rig.kill()
            await gone(tag)
        await rig.start()
        await rig.up()
        person = Person(rig)
        async with person.http:
            tree = [conversation, middle, str(begun["subagent"]), careful]
            logs = [await person.until(one, over) for one in tree]
            states = [(await person.http.get(f"/api/conversations/{one}/snapshot")).json() for one in tree]
            waiting = (await person.http.get("/api/requests")).json()["items"]
            seq = await person.send(conversation, "!say Going on.")
            after = await person.until(conversation, over, after=seq)
    assert [log[-1]["reason"] for log in logs] == ["restart"] * 4
    assert [state["turn"] for state in states] == [None] * 4
    assert [child["status"] for state in states for child in state["subagents"]] == ["cancelled"] * 3
    assert waiting == []
    assert after[-1]["outcome"] == "completed"
    assert [request.refused for request in provider.requests if request.refused] == []

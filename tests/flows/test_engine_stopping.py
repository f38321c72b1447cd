"""A stop wherever a turn can be: everything is closed, nothing more comes of it, and the next request is well-formed."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from tests.flows.at_work import Event, Work, of
from tests.flows.engine import FREE, WIRES, bodies, engine, goes_on_after_the_stop, gone, held, nth, said, stop
from tests.flows.served import serving
from tests.provider import Answer, Call, Hang, Say, ScriptedProvider, Think
from tests.provider.server import serving as service
from tests.unit.tools.workshop import processes_with

pytestmark = pytest.mark.anyio

EDITORS = {"name": "rename", "description": "Renames.", "parameters": {"type": "object"}}
STORES = [{"label": "SQLite"}, {"label": "PostgreSQL"}]
QUESTION = Call(name="ask_user", input={"questions": [{"question": "Which store?", "options": STORES}]})


@pytest.fixture(scope="module", params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
async def work(wire: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Work]:
    async with engine(tmp_path_factory.mktemp(wire), wire) as started:
        yield started


@dataclass
class Place:
    """Where a turn is caught: what the model says up to there, and the event that shows that it is there."""

    answers: tuple[Answer, ...]
    reached: Callable[[], Callable[[Event], bool]]
    until: str = ""
    """The answer is held right after this word."""
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    results: tuple[str, ...] = ()
    """What became of the calls."""
    asked: int | None = None
    """How often the model was asked by then, when not as often as it would answer."""


def run(command: str) -> Call:
    return Call(name="shell", input={"command": command})


def batch(stuck: int) -> Answer:
    """Three commands, of which one never ends."""
    commands = ["echo done", "echo done", "echo done"]
    commands[stuck] = "echo here; until [ -e never ]; do sleep 0.01; done"
    return Answer.of(*map(run, commands))


BATCH = Answer.of(run("echo 1"), run("echo 2"), run("echo 3"))
ASKED = Answer.of(run("touch a"), run("touch b"), run("touch c"))
THINKS = Answer(blocks=(Think(text="Let me see what there is to see."), Say(text="I see.")), chunk_chars=6)
SAYS = Answer(blocks=(Say(text="Half a sentence and the other half."),), chunk_chars=5)
CALLS = Answer(blocks=(Say(text="I run it."), run("touch what-was-never-asked-for")), chunk_chars=9)
TWO_CALLS = Answer(blocks=(run("echo first"), run("echo the second is cut off")), chunk_chars=4)

PLACES: dict[str, Place] = {
    "before the first byte": Place((Answer(fault=Hang()),), lambda: nth(1, "turn.started")),
    "in thinking": Place((THINKS,), lambda: nth(1, "thinking.delta"), until="Let me"),
    "after thinking, before a word": Place((THINKS,), lambda: nth(1, "thinking.delta"), until=" see."),
    "in text": Place((SAYS,), lambda: said("Half "), until="Half "),
    "in text after thinking": Place((THINKS,), lambda: nth(1, "text.delta"), until="I see."),
    "in arguments": Place((CALLS,), lambda: nth(1, "tool.input.delta"), until="command"),
    "in the arguments of the second call": Place(
        (TWO_CALLS,), lambda: said("echo the", "tool.input.delta"), until=" the"
    ),
    "in the first call": Place(
        (batch(0),),
        lambda: said("here", "tool.output.delta"),
        params={"policy": FREE},
        results=("unknown", "none", "none"),
    ),
    "in the second call": Place(
        (batch(1),),
        lambda: said("here", "tool.output.delta"),
        params={"policy": FREE},
        results=("done", "unknown", "none"),
    ),
    "in the third call": Place(
        (batch(2),),
        lambda: said("here", "tool.output.delta"),
        params={"policy": FREE},
        results=("done", "done", "unknown"),
    ),
    # What comes next is on its way when the stop comes: it may be over, running, or not begun.
    "after the first call": Place(
        (BATCH, Answer(fault=Hang())), lambda: nth(1, "tool.finished"), params={"policy": FREE}, asked=1
    ),
    "after the second call": Place(
        (BATCH, Answer(fault=Hang())), lambda: nth(2, "tool.finished"), params={"policy": FREE}, asked=1
    ),
    "after all calls": Place(
        (BATCH, Answer(fault=Hang())),
        lambda: nth(3, "tool.finished"),
        params={"policy": FREE},
        results=("done", "done", "done"),
    ),
    "in the text after the calls": Place(
        (BATCH, SAYS),
        lambda: nth(1, "text.delta"),
        until="Half ",
        params={"policy": FREE},
        results=("done", "done", "done"),
    ),
    "while approvals are open": Place((ASKED,), lambda: nth(3, "request.opened"), results=("none", "none", "none")),
    "while a question is open": Place(
        (Answer.of("Say.", QUESTION),), lambda: nth(1, "request.opened"), results=("none",)
    ),
    "while a question and an approval are open": Place(
        (Answer.of(QUESTION, run("touch a")),), lambda: nth(2, "request.opened"), results=("none", "none")
    ),
    "while the editor works": Place(
        (Answer.of(Call(name="rename"), run("touch a")),),
        lambda: nth(1, "tool.started", grant="ide"),
        params={"ide_tools": [EDITORS], "policy": FREE},
        results=("unknown", "none"),
    ),
}


@pytest.mark.parametrize("name", PLACES)
async def test_stop_settles_the_turn_and_the_next_message_is_answered(name: str, wire: str, work: Work) -> None:
    place, word = PLACES[name], f"stop-{list(PLACES).index(name)}-"
    answers = [replace(answer, when=word) for answer in place.answers]
    if place.until:
        answers[-1] = held(wire, answers[-1], place.until)
    work.provider.script += answers
    asked = len(work.provider.requests) + (place.asked or len(answers))
    conversation = await work.begin(f"{word} go", **place.params)
    await work.until(conversation, place.reached())
    await work.provider.received(asked)
    assert (await stop(work, conversation)).applied
    work.provider.script[:] = [answer for answer in work.provider.script if answer.when != word]
    log = await goes_on_after_the_stop(work, conversation, word)
    if place.results:
        assert [event.get("effect", "done") for event in in_order_of_calls(log)] == list(place.results)
    assert not list(work.project.glob("what-was*"))


def in_order_of_calls(log: list[Event]) -> list[Event]:
    results = {event["call"]: event for event in of(log, "tool.finished")}
    return [results[event["call"]] for event in of(log, "tool.called")]


async def test_interrupted_words_stay_with_a_mark_and_are_told_to_the_model(wire: str, work: Work) -> None:
    work.provider.script.append(held(wire, replace(SAYS, when="marked-words"), "a sen"))
    conversation = await work.begin("marked-words go")
    await work.until(conversation, said("Half a sen"))
    await stop(work, conversation)
    await goes_on_after_the_stop(work, conversation, "marked-words")
    state = await work.server.state(conversation)
    (cut,) = [message for message in state["messages"] if message["status"] == "interrupted"]
    assert cut["blocks"][0]["text"] == "Half a sen"
    told = str(bodies(work, "marked-words")[-1]["messages"])
    assert "Half a sen" in told
    assert "interrupted" in told


# -- during preparation


class SlowToNameModels(ScriptedProvider):
    """An agent without a model asks for the list before anything else: a place to hold the preparation at."""

    async def models(self, request: web.Request) -> web.Response:
        await self.gates.pass_through("models")
        return await super().models(request)


@asynccontextmanager
async def without_a_model(folder: Path, provider: ScriptedProvider) -> AsyncIterator[Work]:
    environment = {"PATH": os.environ["PATH"], "OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k"}
    project = folder / "project"
    project.mkdir()
    async with serving(folder / "data", environment=environment) as server:
        yield Work(server, provider, project)


@pytest.mark.parametrize("queued", [False, True], ids=["nothing queued", "the next is queued"])
async def test_stop_during_preparation_is_honoured_and_the_next_message_is_not_swallowed(
    queued: bool, tmp_path: Path
) -> None:
    async with service(SlowToNameModels()) as provider, without_a_model(tmp_path, provider) as work:
        conversation = await work.begin("prepared go")
        await provider.gates.reached("models")
        if queued:
            await work.server.send(conversation, "And now?")
        assert (await stop(work, conversation)).applied
        assert provider.requests == []
        provider.gates.open("models")
        if queued:
            await work.until(conversation, nth(1, "turn.finished", outcome="completed"))
            state = await work.server.state(conversation)
            assert (state["status"], state["queue"]) == ("idle", [])
            assert len(bodies(work, "prepared")) == 1
        else:
            await goes_on_after_the_stop(work, conversation, "prepared")


async def test_stop_sent_together_with_the_message_stops_it_alone(work: Work) -> None:
    """Whatever the turn had begun by then: the stop ends it, once, and the message after it gets its answer."""
    for number in range(8):
        conversation = await work.server.create(project=str(work.project))
        await work.server.send(conversation, f"raced-{number} go")
        await asyncio.gather(stop(work, conversation), work.server.send(conversation, "And now?"))
        events = await work.until(conversation, nth(1, "turn.finished"))
        state = await work.server.state(conversation)
        assert of(events, "turn.finished")[0]["outcome"] == "completed"
        assert [message["blocks"][0]["text"] for message in state["messages"] if message["role"] == "user"][-1:] == [
            "And now?"
        ]
        assert len(of(events, "turn.interrupted")) <= 1
        assert bodies(work, f"raced-{number}")


# -- processes


STUBBORN = {
    "ignores signals": "trap '' INT TERM HUP; echo here; while :; do sleep {tag}; done",
    "in a session of its own": "setsid sh -c 'trap \"\" INT TERM; sleep {tag}; sleep {tag}' & echo here; wait",
    "forked twice": "sh -c '(trap \"\" INT TERM; sleep {tag}; sleep {tag}) & exit' & wait; echo here; cat /dev/zero > /dev/null",
    "with nohup": "nohup sh -c 'sleep {tag}; sleep {tag}' > /dev/null 2>&1 & echo here; wait",
}


@pytest.mark.parametrize("how", STUBBORN)
async def test_tool_that_will_not_die_is_gone_within_two_seconds_of_the_stop(how: str, work: Work) -> None:
    tag = f"87{list(STUBBORN).index(how)}6543{len(work.provider.requests)}"
    word = f"stubborn-{tag}"
    work.provider.script.append(Answer(blocks=(run(STUBBORN[how].format(tag=tag)),), when=word))
    conversation = await work.begin(f"{word} go", policy=FREE)
    await work.until(conversation, nth(1, "tool.output.delta"))
    assert processes_with(tag)
    await stop(work, conversation)
    await gone(tag)
    await goes_on_after_the_stop(work, conversation, word)


async def test_stop_ends_the_background_processes_of_its_turn_and_spares_those_of_earlier_ones(work: Work) -> None:
    earlier, own = (f"88{number}{len(work.provider.requests)}654" for number in (5, 6))

    def start(tag: str) -> Call:
        return Call(name="shell", input={"command": f"trap '' TERM; sleep {tag}; sleep {tag}", "background": True})

    work.provider.script.append(Answer(blocks=(start(earlier),), when="background-first"))
    conversation = await work.begin("background-first go", policy=FREE)
    seq = (await work.events(conversation))[-1]["seq"]
    second = [Answer(blocks=(start(own),)), Answer(fault=Hang())]
    work.provider.script += [replace(answer, when="background-second") for answer in second]
    asked = len(work.provider.requests) + 2
    await work.server.send(conversation, "background-second go")
    await work.provider.received(asked)
    assert processes_with(own)
    await stop(work, conversation)
    await gone(own)
    events = await work.server.settled(conversation, after=seq)
    state = await work.server.state(conversation)
    assert processes_with(earlier)
    assert [(event["end"], event.get("turn")) for event in of(events, "process.finished")] == [
        ("stopped", events[-1]["turn"])
    ]
    assert [process["running"] for process in state["processes"]] == [True, False]
    await work.server.command(conversation, type="delete_conversation")
    await gone(earlier)


async def test_stop_in_a_flood_of_output_lets_nothing_more_of_it_through(work: Work) -> None:
    work.provider.script.append(Answer(blocks=(run("yes flooded"),), when="in-a-flood"))
    conversation = await work.begin("in-a-flood go", policy=FREE)
    await work.until(conversation, said("flooded", "tool.output.delta"))
    await stop(work, conversation)
    log = await goes_on_after_the_stop(work, conversation, "in-a-flood")
    (result,) = of(log, "tool.finished")
    assert (result["effect"], "flooded" in result["output"]) == ("unknown", True)
    assert "flooded" in str(bodies(work, "in-a-flood")[-1]["messages"])


# -- once, and nobody else


async def test_stop_is_given_once_however_often_it_is_asked_for(wire: str, work: Work) -> None:
    work.provider.script.append(held(wire, replace(SAYS, when="once-stopped"), "Half "))
    conversation = await work.begin("once-stopped go")
    await work.until(conversation, nth(1, "text.delta"))
    answers = await asyncio.gather(*(stop(work, conversation) for _ in range(8)))
    assert [answer.applied for answer in answers].count(True) == 1
    assert not (await stop(work, conversation)).applied
    await goes_on_after_the_stop(work, conversation, "once-stopped")


async def test_stop_that_names_an_earlier_turn_leaves_the_one_that_runs(work: Work) -> None:
    conversation = await work.begin("named-turn hello")
    (earlier,) = of(await work.events(conversation), "turn.started")
    seq = (await work.server.send(conversation, "named-turn\n!say Still here.\n!gate named-turn"))["seq"]
    await work.provider.gates.reached("named-turn")
    late = await work.server.command(conversation, type="interrupt", turn=earlier["turn"])
    work.provider.gates.open("named-turn")
    events = await work.server.settled(conversation, after=seq)
    assert (late.status_code, late.json()["applied"]) == (202, False)
    assert events[-1]["outcome"] == "completed"


async def test_stop_leaves_other_conversations_and_their_processes_alone(wire: str, work: Work) -> None:
    tag = f"8812{len(work.provider.requests)}"
    work.provider.script += [
        held(wire, replace(SAYS, when="scoped-one"), "Half "),
        Answer(
            blocks=(run(f"sleep {tag} & echo here; until [ -e scoped-go ]; do sleep 0.01; done"),), when="scoped-two"
        ),
    ]
    one, two = await work.begin("scoped-one go"), await work.begin("scoped-two go", policy=FREE)
    three = await work.begin("scoped-three\n!say It\n!gate scoped-three")
    await work.until(one, nth(1, "text.delta"))
    await work.until(two, nth(1, "tool.output.delta"))
    await work.provider.gates.reached("scoped-three")
    await stop(work, one)
    await goes_on_after_the_stop(work, one, "scoped-one")
    assert processes_with(tag)
    assert (await work.server.state(two))["status"] == "executing_tools"
    (work.project / "scoped-go").touch()
    work.provider.gates.open("scoped-three")
    for conversation in (two, three):
        assert (await work.events(conversation))[-1]["outcome"] == "completed"
    (work.project / "scoped-go").unlink()

"""A model service that breaks off, is overloaded or silent, over the real server: in bounds, said, no word twice."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from palaver.config import ProviderSettings
from tests.flows.at_work import Event, Work, of
from tests.flows.engine import PATHS, WIRES, bodies, engine, goes_on_after_the_stop, held, nth, said, stop
from tests.flows.served import serving
from tests.provider import Answer, Call, Cut, ErrorFrame, Say, ScriptedProvider, Status, Think, scripted_provider
from tests.provider.server import WIRES as FORMATS

pytestmark = pytest.mark.anyio

WHOLE = Answer(
    blocks=(Think(text="Let me look."), Say(text="I look around."), Call(name="list", input={"path": "."})),
    chunk_chars=5,
)
SAMPLES = 12


@pytest.fixture(scope="module", params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
async def work(wire: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Work]:
    async with engine(tmp_path_factory.mktemp(wire), wire) as started:
        yield started


def size_bytes(wire: str, answer: Answer) -> int:
    """Up to where the service says that the answer is whole."""
    frames = list(FORMATS[PATHS[wire]].frames(answer, {"model": "scripted"}, 10))
    return sum(len(frame) for frame in frames[:-2] if isinstance(frame, bytes))


def shown(state: Event) -> list[str]:
    """The texts a person sees."""
    return [
        block["text"]
        for message in state["messages"]
        if message["status"] != "superseded"
        for block in message["blocks"]
        if block["type"] == "text"
    ]


async def test_stream_cut_at_any_byte_is_made_whole_and_no_text_comes_twice(wire: str, work: Work) -> None:
    """Cut all along the answer, broken off or ended too early, side by side: each attempt waits a moment."""
    size = size_bytes(wire, WHOLE)
    places = [size * number // SAMPLES for number in range(SAMPLES)]
    for at in places:
        cut = Cut(after_bytes=at, clean=at % 2 == 0)
        word = f"cut-at-{at}-"
        work.provider.script += [replace(WHOLE, fault=cut, when=word), replace(WHOLE, when=word)]

    async def talked(at: int) -> None:
        # They speak alike; none should be reminded of another.
        conversation = await work.begin(f"cut-at-{at}- go", knowledge=False)
        events = await work.events(conversation)
        state = await work.server.state(conversation)
        where = f"cut after {at} of {size} bytes"
        assert events[-1]["type"] == "turn.finished", where
        assert events[-1]["outcome"] == "completed", where
        assert shown(state)[:2] == [f"cut-at-{at}- go", "I look around."], where
        assert len(shown(state)) == 3, where
        assert len(of(events, "tool.finished")) == len(of(events, "tool.started")) == 1, where
        asked = bodies(work, f"cut-at-{at}-")
        # Once more because of the cut, and once with the result of the call.
        assert len(asked) == 3, where
        assert asked[0]["messages"] == asked[1]["messages"], where
        told = str(asked[2]["messages"])
        assert told.count("I look around.") == 1, where
        assert "I look a" not in told.replace("I look around.", ""), where
        retried = [event["retry"] for event in of(events, "turn.status") if event.get("retry")]
        assert [retry["attempt"] for retry in retried] == [2], where
        cuts = [event for event in of(events, "answer.finished") if event["finish_reason"] == "cut"]
        assert all(event["interrupted"] for event in cuts), where
        replaced = [event["replaces"] for event in of(events, "answer.started") if event.get("replaces")]
        assert replaced == [event["message"] for event in cuts], where

    async with asyncio.TaskGroup() as tasks:
        for at in places:
            tasks.create_task(talked(at))


async def test_words_before_the_cut_are_kept_and_marked_when_no_attempt_succeeds(tmp_path: Path) -> None:
    """Four attempts fail before a word, the last one in the middle of it."""
    whole = Answer(blocks=(Say(text="Half of an answer"),), chunk_chars=4)
    silent = [Answer(fault=Status(status=503, retry_after="0")) for _ in range(4)]
    broken = replace(whole, fault=ErrorFrame(after_frames=3))
    async with engine(tmp_path, provider=ScriptedProvider([*silent, broken], obedient=False)) as work:
        conversation = await work.begin("go")
        events = await work.events(conversation)
        state = await work.server.state(conversation)
        asked = len(work.provider.requests)
    assert asked == 5
    assert (events[-1]["outcome"], state["status"]) == ("failed", "error")
    assert events[-1]["error"]["message"]
    last = state["messages"][-1]
    assert (last["status"], last["blocks"][0]["status"]) == ("interrupted", "interrupted")
    assert shown(state) == ["go", "Half of "]


@pytest.mark.parametrize("status", [429, 529])
async def test_overloaded_service_is_asked_again_a_bounded_number_of_times_and_each_is_shown(
    status: int, work: Work
) -> None:
    word = f"overloaded-{status}"
    work.provider.script.append(Answer(fault=Status(status=status, retry_after="0.01"), when=word, repeat=True))
    conversation = await work.begin(f"{word} go")
    events = await work.events(conversation)
    work.provider.script.clear()
    retries = [event["retry"] for event in of(events, "turn.status") if event.get("retry")]
    assert [(retry["attempt"], retry["of"], retry["after_s"]) for retry in retries] == [
        (attempt, 5, 0.01) for attempt in (2, 3, 4, 5)
    ]
    assert len(bodies(work, word)) == 5
    assert (events[-1]["outcome"], events[-1]["error"]["retryable"]) == ("failed", True)
    assert of(events, "answer.started") == []
    seq = (await work.server.send(conversation, "And now?"))["seq"]
    assert (await work.server.settled(conversation, after=seq))[-1]["outcome"] == "completed"


async def test_stop_in_the_pause_that_a_service_asked_for_ends_all_trying(work: Work) -> None:
    """The pause lasts longer than any test: the stop does not wait for it, and nothing is asked when it is over."""
    work.provider.script.append(Answer(fault=Status(status=429, retry_after="90"), when="long-pause"))
    conversation = await work.begin("long-pause go")
    events = await work.until(conversation, lambda event: bool(event.get("retry")))
    other = await work.begin("beside-the-pause hello")
    assert (await work.events(other))[-1]["outcome"] == "completed"
    state = await work.server.state(conversation)
    await stop(work, conversation)
    log = await goes_on_after_the_stop(work, conversation, "long-pause")
    assert events[-1]["retry"]["after_s"] == 90
    assert (state["status"], state["turn"]["retry"]["after_s"]) == ("generating", 90)
    assert of(log, "answer.started") == []
    # The one that failed, and the next message's.
    assert len(bodies(work, "long-pause")) == 2


async def test_stop_closes_the_connection_and_asks_no_more(wire: str, work: Work) -> None:
    answer = Answer(blocks=(Say(text="Half a sentence and the other half."),), chunk_chars=5, when="closed-with-it")
    work.provider.script.append(held(wire, answer, "Half "))
    conversation = await work.begin("closed-with-it go")
    await work.until(conversation, said("Half "))
    (request,) = [known for known in work.provider.requests if "closed-with-it" in str(known.body)]
    await stop(work, conversation)
    await request.end()
    assert request.closed_by_client
    await goes_on_after_the_stop(work, conversation, "closed-with-it")


async def test_overload_of_one_provider_leaves_the_others_alone(tmp_path: Path) -> None:
    busy = Answer(fault=Status(status=529, retry_after="90"), repeat=True)
    (tmp_path / "data").mkdir()
    async with scripted_provider(busy) as one, scripted_provider(obedient=True) as two:
        providers = tuple(
            ProviderSettings(name=name, kind="openai", base_url=f"{service.url}/v1", api_key="k", models=(name,))
            for name, service in (("busy", one), ("free", two))
        )
        async with serving(tmp_path / "data", environment={}, providers=providers) as server:
            waits = await server.create(params={"model": "busy/busy"})
            await server.send(waits, "hello")
            async with server.events(waits, after=0) as stream:
                _ = [event async for event in stream.until(lambda event: bool(event.get("retry")))]
            goes = await server.create(params={"model": "free/free"})
            await server.send(goes, "hello")
            events = await server.settled(goes)
            await server.command(waits, type="interrupt")
            asked = (len(one.requests), len(two.requests))
    assert events[-1]["outcome"] == "completed"
    assert asked == (1, 1)


async def test_call_of_an_answer_that_breaks_off_behind_it_is_never_run_twice(wire: str, work: Work) -> None:
    """The call comes through whole in an answer that then breaks off: it was never made, so only the next one's runs."""
    call = Call(name="shell", input={"command": "echo x >> twice"})
    answer = Answer(blocks=(Say(text="I do it."), call, Say(text="And more.")), chunk_chars=5, stop="tool_calls")
    size = size_bytes(wire, answer)
    work.provider.script += [
        replace(answer, fault=Cut(after_bytes=size * 9 // 10), when="never-twice"),
        replace(answer, when="never-twice"),
    ]
    conversation = await work.begin("never-twice go", policy=[{"tool": "*", "decision": "allow"}])
    await work.until(conversation, nth(1, "turn.finished"))
    assert (work.project / "twice").read_text() == "x\n"
    (work.project / "twice").unlink()
    bodies(work, "never-twice")

"""Models that take over, attempts that are counted, budgets that end: the walk along a route."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from palaver.backends.api.loop import ApiBackend, Conduct
from palaver.backends.api.provider import Provider
from palaver.backends.api.retry import RetryPolicy
from palaver.backends.api.route import Candidate
from palaver.backends.api.wire import WireProvider
from palaver.schema.events import AnswerFinished, AnswerStarted, ModelSwitched, TextFinished, TurnStatus
from palaver.schema.records import AgentRecord
from palaver.schema.view import TextBlock
from palaver.tools.toolbox import Toolbox
from tests.contract.backend_api.rig import WIRES, body_size, serve, told
from tests.provider import (
    Answer,
    Call,
    Cut,
    Fault,
    Gate,
    Redacted,
    Say,
    ScriptedProvider,
    Status,
    Think,
)
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import DRIVE_S, MemoryTurn, drive

TWO_TRIES = Conduct(chance=lambda: 1.0, retry=RetryPolicy(attempts=2))
DOWN = Answer(fault=Status(status=503), repeat=True)


@asynccontextmanager
async def routed(
    services: dict[str, tuple[str, ScriptedProvider]], tools: Toolbox | None = None, conduct: Conduct = TWO_TRIES
) -> AsyncIterator[ApiBackend]:
    """Each model by its own provider: a wire format and a service."""
    made: dict[str, Provider] = {
        model: WireProvider(WIRES[wire], service.url, "key", read_timeout_s=20.0)
        for model, (wire, service) in services.items()
    }

    def choose(model: str | None) -> Candidate:
        assert model is not None
        return Candidate(made[model], model, model)

    backend = ApiBackend(choose, tools or toolbox(), conduct)
    try:
        yield backend
    finally:
        await backend.close()
        for provider in made.values():
            await provider.close()


def params(*fallbacks: str, **more: Any) -> dict[str, Any]:
    return {"model": "first", "fallbacks": list(fallbacks), **more}


def switches(turn: MemoryTurn) -> list[tuple[str | None, str]]:
    return [(event.from_model, event.to_model) for event in turn.of(ModelSwitched)]


@pytest.mark.parametrize(
    ("fault", "tries"),
    [
        (Status(status=503), 2),
        (Status(status=529), 2),
        (Status(status=429), 2),
        (Status(status=404), 1),
        (Status(status=401), 1),
        (Status(status=403), 1),
        (Status(status=429, kind="insufficient_quota"), 1),
        (Cut(after_bytes=0), 2),
    ],
)
async def test_model_that_cannot_be_had_is_followed_by_the_next(wire: str, fault: Fault, tries: int) -> None:
    broken = Answer(blocks=(Say(text="x"),), fault=fault, repeat=True)
    async with serve(broken) as one, serve(Answer.of("I stand in.")) as two:
        async with routed({"first": (wire, one), "second": ("openai", two)}) as backend:
            turn = await drive(backend, MemoryTurn("hi", params=params("second")))
        assert len(one.requests) == tries
    assert turn.error is None
    assert switches(turn) == [("first", "second")]
    assert turn.of(ModelSwitched)[0].reason
    assert [event.text for event in turn.of(TextFinished)][-1] == "I stand in."
    order = [type(event) for event in turn.events]
    assert order.index(ModelSwitched) < order.index(AnswerFinished)


@pytest.mark.parametrize(
    "fault",
    [
        Status(status=400, message="tools.0: not taken"),
        Status(status=400, message="prompt is too long: 3 tokens > 2 maximum"),
        Status(status=403, message="Your input was flagged by moderation"),
        Status(status=413),
    ],
)
async def test_refusal_of_what_was_asked_is_taken_nowhere_else(wire: str, fault: Status) -> None:
    async with serve(Answer.of(fault=fault)) as one, serve(Answer.of("never")) as two:
        async with routed({"first": (wire, one), "second": (wire, two)}) as backend:
            turn = await drive(backend, MemoryTurn("hi", params=params("second")))
        assert two.requests == []
    assert turn.error is not None
    assert switches(turn) == []


async def test_model_that_declines_is_taken_nowhere_else(wire: str) -> None:
    async with serve(Answer.of("I", stop="refusal")) as one, serve(Answer.of("never")) as two:
        async with routed({"first": (wire, one), "second": (wire, two)}) as backend:
            turn = await drive(backend, MemoryTurn("hi", params=params("second")))
        assert two.requests == []
    assert turn.finished.outcome == "failed"


async def test_conversations_fallbacks_come_before_the_agents() -> None:
    record = AgentRecord(id="a", name="A", fallbacks=("third", "second"))
    async with serve(DOWN) as down, serve(Answer.of("ok")) as up:
        services = {"first": ("openai", down), "second": ("openai", down), "third": ("openai", up)}
        async with routed(services) as backend:
            turn = await drive(backend, MemoryTurn("hi", agent=record, params=params("second")))
        assert [body["model"] for body in down.bodies] == ["first", "first", "second", "second"]
    assert switches(turn) == [("first", "second"), ("second", "third")]


async def test_last_of_the_route_tells_why_it_failed() -> None:
    async with (
        serve(DOWN) as one,
        serve(Answer.of(fault=Status(status=401))) as two,
        routed({"first": ("openai", one), "second": ("anthropic", two)}) as backend,
    ):
        turn = await drive(backend, MemoryTurn("hi", params=params("second")))
    assert turn.error is not None
    assert turn.error.code == "not_logged_in"


async def test_next_steps_stay_with_the_model_that_took_over() -> None:
    read = CountingTool("read", reads_only=True)
    async with serve(DOWN) as one, serve(Answer.of(Call(name="read")), Answer.of("done")) as two:
        async with routed({"first": ("openai", one), "second": ("openai", two)}, toolbox(read)) as backend:
            turn = await drive(backend, MemoryTurn("hi", params=params("second")))
        assert (len(one.requests), len(two.requests)) == (2, 2)
    assert len(switches(turn)) == 1
    assert turn.finished.outcome == "completed"


async def test_secrets_of_one_provider_never_reach_the_one_that_takes_over() -> None:
    """In the middle of a tool loop, the worst place: thoughts, signatures and call ids are all in the history."""
    read = CountingTool("read", reads_only=True)
    secret = (Think(text="my secret thought", signature="scripted-sig"), Redacted(data="scripted-hidden"))
    first = Answer.of(*secret, Call(name="read", id="toolu_theirs"))
    for wire in ("openai", "responses", "anthropic"):
        async with serve(first, DOWN) as one, serve(Answer.of("done")) as two:
            services = {"first": ("anthropic", one), "second": (wire, two)}
            async with routed(services, toolbox(read)) as backend:
                turn = await drive(backend, MemoryTurn("hi", params=params("second", thinking_budget=1024)))
            assert turn.error is None
            assert [request.refused for request in two.requests] == [None]
            shown = str(told(two.bodies[0]))
        for word in ("secret thought", "scripted-sig", "scripted-hidden", "toolu_theirs"):
            assert word not in shown


async def test_cut_words_are_replaced_by_the_model_that_takes_over(wire: str) -> None:
    whole = Answer(blocks=(Say(text="Half of an answer that breaks"),), chunk_chars=2, burst=True)
    half = Answer(blocks=whole.blocks, chunk_chars=2, fault=Cut(after_bytes=body_size(wire, whole) // 2), repeat=True)
    async with (
        serve(half) as one,
        serve(Answer.of("Whole.")) as two,
        routed({"first": (wire, one), "second": (wire, two)}) as backend,
    ):
        turn = await drive(backend, MemoryTurn("hi", params=params("second")))
    shown = [message for message in turn.history if message.status != "superseded"]
    texts = [block.text for message in shown for block in message.blocks if isinstance(block, TextBlock)]
    assert texts == ["hi", "Whole."]
    started = turn.of(AnswerStarted)
    assert [event.replaces for event in started] == [None, started[0].message, started[1].message]


async def test_other_conversations_are_untouched_by_one_that_waits() -> None:
    async with (
        serve(Answer.of("slow", Gate(name="g"))) as one,
        serve(Answer.of("quick")) as two,
        routed({"first": ("openai", one), "second": ("openai", two)}) as backend,
        asyncio.TaskGroup() as tasks,
    ):
        waiting = tasks.create_task(drive(backend, MemoryTurn("hi", params={"model": "first"})))
        await one.gates.reached("g")
        other = await drive(backend, MemoryTurn("hi", params={"model": "second"}))
        assert not waiting.done()
        one.gates.open("g")
    assert other.finished.outcome == "completed"


# -- the budget of a turn


async def test_turn_has_a_budget_of_retries_over_all_its_steps() -> None:
    read = CountingTool("read", reads_only=True)
    script = [
        answer for _ in range(4) for answer in (Answer.of(fault=Status(status=503)), Answer.of(Call(name="read")))
    ]
    conduct = Conduct(chance=lambda: 1.0, retry=RetryPolicy(attempts=3, turn_retries=2))
    async with serve(*script) as one, routed({"first": ("openai", one)}, toolbox(read), conduct) as backend:
        turn = await drive(backend, MemoryTurn("hi", params={"model": "first"}))
    assert len([event for event in turn.of(TurnStatus) if event.retry]) == 2
    assert len(read.runs) == 2
    assert turn.error is not None
    assert turn.error.code == "provider_unavailable"


async def test_turn_waits_no_longer_than_its_budget() -> None:
    busy = Answer(fault=Status(status=429, retry_after="50"), repeat=True)
    conduct = Conduct(chance=lambda: 1.0, retry=RetryPolicy(turn_wait_s=120.0))
    async with serve(busy) as one, routed({"first": ("openai", one)}, conduct=conduct) as backend:
        turn = await drive(backend, MemoryTurn("hi", params={"model": "first"}))
    assert turn.pauses_s == [50.0, 50.0]


class Waiting(MemoryTurn):
    """Pauses last for ever, and a test can wait until one began."""

    def __init__(self, *said: str, params: dict[str, Any]) -> None:
        super().__init__(*said, params=params)
        self.pausing = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.pauses_s.append(seconds)
        self.pausing.set()
        await asyncio.Event().wait()


async def test_stop_in_a_pause_ends_all_trying(wire: str) -> None:
    """Neither again nor elsewhere."""
    turn = Waiting("hi", params=params("second"))
    async with (
        serve(DOWN) as one,
        serve(Answer.of("never")) as two,
        routed({"first": (wire, one), "second": (wire, two)}) as backend,
    ):
        running = asyncio.create_task(drive(backend, turn))
        async with asyncio.timeout(DRIVE_S):
            await turn.pausing.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        turn.interrupt()
        assert (len(one.requests), len(two.requests)) == (1, 0)
    assert switches(turn) == []


# -- what it cost


async def test_every_counted_attempt_has_its_cost(wire: str) -> None:
    """Under a maker's name the scripted answers have a price; ten tokens in, five out."""
    model = "claude-sonnet-4-5" if wire == "anthropic" else "gpt-5"
    async with serve(Answer.of("Hello")) as one, routed({model: (wire, one)}) as backend:
        turn = await drive(backend, MemoryTurn("hi", params={"model": model}))
    (finished,) = turn.of(AnswerFinished)
    assert finished.cost_usd is not None
    assert 0 < finished.cost_usd < 0.001
    assert turn.state.cost_usd == finished.cost_usd


async def test_attempt_that_broke_off_counts_what_the_service_reported() -> None:
    """Anthropic counts the input at the very beginning, before a word is said."""
    broken = Answer(blocks=(Say(text="x"),), fault=Cut(after_bytes=400), input_tokens=1000)
    async with serve(broken, Answer.of("Hello")) as one, routed({"claude-sonnet-4-5": ("anthropic", one)}) as backend:
        turn = await drive(backend, MemoryTurn("hi", params={"model": "claude-sonnet-4-5"}))
    cut, whole = turn.of(AnswerFinished)
    assert (cut.finish_reason, whole.finish_reason) == ("cut", "stop")
    assert cut.usage is not None
    assert cut.usage.input_tokens == 1000
    assert cut.cost_usd is not None
    assert whole.cost_usd is not None
    assert cut.cost_usd > whole.cost_usd
    assert turn.state.usage.input_tokens == 1010


async def test_model_nobody_knows_has_no_cost(wire: str) -> None:
    async with serve(Answer.of("Hello")) as one, routed({"house-model": (wire, one)}) as backend:
        turn = await drive(backend, MemoryTurn("hi", params={"model": "house-model"}))
    assert [event.cost_usd for event in turn.of(AnswerFinished)] == [None]

"""Services that fail: tried again in bounds, said in plain words, no text twice."""

from typing import Any

import pytest
from msgspec.structs import replace

from palaver.backends.api.loop import Conduct
from palaver.backends.api.retry import RetryPolicy
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    TurnStatus,
)
from palaver.schema.view import TextBlock
from tests.contract.backend_api.rig import agent, body_size, serve
from tests.provider import (
    Answer,
    Call,
    ContentType,
    Cut,
    Empty,
    ErrorFrame,
    Hang,
    Malformed,
    Say,
    Status,
    Think,
)
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import MemoryTurn, drive

SMALL = Answer(blocks=(Think(text="hm"), Say(text="Hi."), Call(name="read", id="c1")), chunk_chars=2, burst=True)


async def test_answer_cut_at_any_byte_ends_whole_exactly_once(wire: str) -> None:
    """Every byte, ended properly or broken in turns. One step a turn: what follows the answer is tested elsewhere."""
    read = CountingTool("read", reads_only=True)
    conduct = Conduct(step_limit=1)
    async with serve() as service, agent(wire, service, tools=toolbox(read), conduct=conduct) as backend:
        # The longest of the formats says everything twice: every third byte, which still ends it in both ways.
        for after_bytes in range(0, body_size(wire, SMALL) + 1, 3 if wire == "responses" else 1):
            read.runs.clear()
            service.requests.clear()
            service.script[:] = [replace(SMALL, fault=Cut(after_bytes=after_bytes, clean=after_bytes % 2 == 0)), SMALL]
            turn = await drive(backend, MemoryTurn("hi", params={"model": "m"}))
            where = f"cut after {after_bytes} bytes"
            assert turn.error is None, where
            assert [request.refused for request in service.requests if request.refused] == [], where
            shown = [message for message in turn.history if message.status != "superseded"]
            texts = [block.text for message in shown for block in message.blocks if isinstance(block, TextBlock)]
            assert texts == ["hi", "Hi."], where
            assert len(read.runs) == 1, where
            assert {message.status for message in shown} == {"done"}, where
            cut = [event for event in turn.of(AnswerFinished) if event.finish_reason == "cut"]
            assert all(event.interrupted for event in cut), where
            replaced = [event.replaces for event in turn.of(AnswerStarted) if event.replaces]
            assert replaced == [event.message for event in cut], where


async def test_cut_answer_stays_marked_when_retries_are_used_up(wire: str) -> None:
    whole = Answer(blocks=(Say(text="Half of an answer"),), chunk_chars=4, repeat=True)
    cut = replace(whole, fault=Cut(after_bytes=body_size(wire, whole) // 2))
    conduct = Conduct(retry=RetryPolicy(attempts=3), chance=lambda: 1.0)
    async with serve(cut) as service, agent(wire, service, conduct=conduct) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        assert len(service.requests) == 3
    assert turn.error is not None
    assert turn.error.code == "stream_cut"
    last = turn.history[-1]
    assert last.status == "interrupted"
    assert isinstance(last.blocks[0], TextBlock)
    assert last.blocks[0].text
    assert last.blocks[0].status == "interrupted"
    assert [message.status for message in turn.history] == ["done", "superseded", "superseded", "interrupted"]
    assert [event.finish_reason for event in turn.of(AnswerFinished)] == ["cut"] * 3


async def test_words_that_arrived_together_with_the_failure_are_kept(wire: str) -> None:
    broken = Answer(blocks=(Say(text="Half an answer"),), chunk_chars=4, burst=True, fault=Malformed(after_frames=5))
    async with serve(broken, Answer.of("Whole")) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    first = turn.history[1]
    assert first.status == "superseded"
    assert isinstance(first.blocks[0], TextBlock)
    assert first.blocks[0].text.startswith("Half")


async def test_too_many_requests_waits_as_long_as_asked_and_shows_it(wire: str) -> None:
    script = (Answer.of(fault=Status(status=429, retry_after="7")), Answer.of("ok"))
    async with serve(*script) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert turn.pauses_s == [7.0]
    retries = [event.retry for event in turn.of(TurnStatus) if event.retry]
    assert [(retry.attempt, retry.of, retry.after_s) for retry in retries] == [(2, 5, 7.0)]
    assert "429" in retries[0].reason
    assert len(turn.of(AnswerStarted)) == 1
    assert turn.finished.outcome == "completed"


@pytest.mark.parametrize("status", [500, 503, 529])
async def test_broken_service_is_tried_a_bounded_number_of_times(wire: str, status: int) -> None:
    broken = Answer(fault=Status(status=status), repeat=True)
    async with serve(broken) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        assert len(service.requests) == 5
    assert turn.pauses_s == [1.0, 2.0, 4.0, 8.0]
    assert turn.error is not None
    assert (turn.error.code, turn.finished.outcome) == ("provider_unavailable", "failed")
    assert turn.of(AnswerStarted) == []


@pytest.mark.parametrize(
    "fault", [Hang(), Hang(after_bytes=600), Empty(), Malformed(after_frames=4), ErrorFrame(after_frames=4)]
)
async def test_misbehaving_stream_is_tried_again(wire: str, fault: Any) -> None:
    script = (Answer.of("Hello there", chunk_chars=2, fault=fault), Answer.of("Hello there"))
    # Long enough for a busy machine to give a good answer.
    read_timeout_s = 0.5 if isinstance(fault, Hang) else 20.0
    async with serve(*script) as service, agent(wire, service, read_timeout_s=read_timeout_s) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        assert len(service.requests) == 2
    assert turn.error is None
    visible = [message for message in turn.history if message.status == "done"]
    assert len(visible) == 2
    assert turn.finished.outcome == "completed"


async def test_service_that_is_no_model_service_is_said_at_once(wire: str) -> None:
    async with serve(Answer.of("x", fault=ContentType())) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        assert len(service.requests) == 1
    assert turn.error is not None
    assert turn.error.code == "protocol_broken"
    assert "text/html" in turn.error.message


async def test_wrong_key_is_said_at_once_and_never_shown(wire: str) -> None:
    async with serve(api_key="right") as service, agent(wire, service, key="wrong-secret") as backend:
        turn = await drive(backend, MemoryTurn("hi", params={"model": "m"}))
        assert len(service.requests) == 1
    assert turn.error is not None
    assert turn.error.code == "not_logged_in"
    assert "refused the key" in turn.error.message
    assert "wrong-secret" not in str(turn.error.wire())


async def test_unknown_model_is_named(wire: str) -> None:
    async with serve(any_model=False) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi", params={"model": "no-such"}))
    assert turn.error is not None
    assert turn.error.code == "provider_refused"
    assert "'no-such'" in turn.error.message


async def test_address_where_nobody_listens_is_named(wire: str) -> None:
    async with serve() as service:
        pass
    async with agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert turn.error is not None
    assert turn.error.code == "provider_unavailable"
    assert service.url in turn.error.message
    assert len(turn.pauses_s) == 2


async def test_context_too_long_is_said_in_plain_words(wire: str) -> None:
    too_long = Status(status=400, message="prompt is too long: 300000 tokens > 200000 maximum")
    async with serve(Answer.of(fault=too_long)) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert turn.error is not None
    assert "no longer fits" in turn.error.message
    assert turn.error.details["reason"] == "context_exceeded"

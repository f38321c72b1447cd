"""Before each model call: what is told, recalled, compressed and measured."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from palaver.backends.api.openai import CHAT_COMPLETIONS
from palaver.backends.api.provider import Provider
from palaver.backends.api.request import Preparation, Preparing, Wanted
from palaver.backends.api.wire import WireProvider
from palaver.context.prompt import Call, Outcome, PromptMessage, Text, UserMessage
from palaver.context.summary import REQUEST
from palaver.errors import ProviderRefused
from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ContextCompressed,
    KnownEvent,
    MessageAdded,
    TextFinished,
    TurnStatus,
)
from palaver.schema.records import AgentRecord
from palaver.schema.view import COMPRESSING, Message, State, Trigger
from palaver.tools.base import Passage, ToolSpec
from tests.provider import Answer, Gate, ScriptedProvider, Status, scripted_provider
from tests.provider.quotes import read_prompt
from tests.provider.turn import MemoryTurn
from tests.unit.context.histories import answer, used, user

pytestmark = pytest.mark.anyio

TOOL = ToolSpec(name="read", description="Read a file.", parameters={"type": "object"}, reads_only=True)
WAIT_S = 20.0


@asynccontextmanager
async def service(*answers: Answer) -> AsyncIterator[tuple[ScriptedProvider, Provider]]:
    async with scripted_provider(*answers) as scripted:
        provider = WireProvider(CHAT_COMPLETIONS, scripted.url, "key")
        try:
            yield scripted, provider
        finally:
            await provider.close()


def talk(turns: int, answer_words: int = 40, output_chars: int = 900) -> list[Message]:
    found: list[Message] = []
    for turn in range(turns):
        seq = turn * 10 + 1
        tool = used(f"c{turn}", f"{turn} " * (output_chars // 3), path=f"f{turn}.py")
        found += [
            user(seq, f"Question {turn}?", turn=f"t{turn}"),
            answer(seq + 2, "Let me look.", tool, turn=f"t{turn}"),
            answer(seq + 6, "A long story. " * answer_words, turn=f"t{turn}"),
        ]
    return found


def continue_queue(history: list[Message], *, params: dict[str, Any] | None = None, **fields: Any) -> MemoryTurn:
    """A turn that a message begins, after all that."""
    seq = history[-1].seq + 5 if history else 1
    state = State(conversation="conversation", seq=seq, messages=tuple(history))
    return MemoryTurn("And now?", state=state, params=params or {}, trigger=Trigger(), **fields)


async def shown(preparing: Preparing) -> tuple[PromptMessage, ...]:
    return await preparing.messages_for("openai@somewhere")


async def prepare(preparing: Preparing, turn: MemoryTurn, wanted: Wanted) -> list[KnownEvent]:
    found: list[KnownEvent] = []
    async with asyncio.timeout(WAIT_S), aclosing(preparing.events(wanted)) as events:
        async for event in events:
            turn.accept(event)
            found.append(event)
    return found


def said(messages: tuple[PromptMessage, ...]) -> list[str]:
    return [
        part.text for one in messages if isinstance(one, UserMessage) for part in one.parts if isinstance(part, Text)
    ]


def preparing_for(turn: MemoryTurn) -> Preparing:
    return Preparing(turn, Preparation(system="Linux"))


# -- what is told


async def test_a_short_conversation_is_prepared_without_an_event(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("Be kind.")
    turn = MemoryTurn("hi", project=tmp_path)
    preparing = preparing_for(turn)
    async with service() as (scripted, provider):
        events = await prepare(preparing, turn, Wanted(provider, "m", 200_000, (TOOL,)))
        assert scripted.requests == []
    assert events == []
    assert await shown(preparing) == (UserMessage((Text("hi"),)),)
    assert read_prompt(preparing.system).said_by("files of this project") == "## AGENTS.md\n\nBe kind."


async def test_instructions_stay_what_they_were_when_the_turn_began(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be kind.")
    turn = MemoryTurn("hi", project=tmp_path)
    preparing = preparing_for(turn)
    async with service() as (_, provider):
        await prepare(preparing, turn, Wanted(provider, "m", None))
        before = preparing.system
        (tmp_path / "AGENTS.md").write_text("Be something else entirely.")
        await prepare(preparing, turn, Wanted(provider, "m", None))
    assert preparing.system == before


# -- what is recalled

EARLIER = (Passage("c9", "Beds", "Tomatoes in the greenhouse need calcium.", 4, 1_760_000_000_000),)


async def test_what_was_recalled_is_shown_at_once_and_ever_after(tmp_path: Path) -> None:
    turn = MemoryTurn("What do greenhouse tomatoes need?", project=tmp_path)
    turn.passages = list(EARLIER)
    preparing = preparing_for(turn)
    event = await preparing.recall()
    assert event is not None
    assert event.message == turn.history[-1].id
    async with service() as (_, provider):
        await prepare(preparing, turn, Wanted(provider, "m", None))
        before = await shown(preparing)
        turn.accept(event)
        await turn.committed()
        await prepare(preparing, turn, Wanted(provider, "m", None))
    assert "calcium" in said(before)[0]
    assert said(before)[1] == "What do greenhouse tomatoes need?"
    assert await shown(preparing) == before
    assert await preparing_for(turn).recall() is None


@pytest.mark.parametrize(
    "how",
    [
        {"params": {"knowledge": False}},
        {"agent": AgentRecord(id="a", name="A", knowledge=False)},
        {"agent": AgentRecord(id="a", name="A", params={"knowledge": False})},
        {"trigger": Trigger(kind="process")},
        {"trigger": Trigger(kind="regenerate")},
    ],
)
async def test_nothing_is_recalled_when_it_is_switched_off_or_nobody_asked(how: dict[str, Any], tmp_path: Path) -> None:
    turn = MemoryTurn("What do greenhouse tomatoes need?", project=tmp_path, **how)
    turn.passages = list(EARLIER)
    assert await preparing_for(turn).recall() is None


async def test_little_is_recalled_into_a_small_window(tmp_path: Path) -> None:
    turn = MemoryTurn("What do greenhouse tomatoes need?", project=tmp_path, params={"context_tokens_cap": 1_000})
    turn.passages = list(EARLIER)
    assert await preparing_for(turn).recall(200_000) is None


# -- what is compressed


async def test_a_history_that_outgrows_its_window_is_compressed_on_record(tmp_path: Path) -> None:
    turn = continue_queue(talk(40, answer_words=2, output_chars=6_000), project=tmp_path)
    preparing = preparing_for(turn)
    async with service() as (scripted, provider):
        events = await prepare(preparing, turn, Wanted(provider, "m", 60_000, (TOOL,)))
        assert scripted.requests == []
        assert await prepare(preparing, turn, Wanted(provider, "m", 60_000, (TOOL,))) == []
    status, *compressed = events
    assert status == TurnStatus(status="working", detail=COMPRESSING)
    assert [(event.stage, event.strength) for event in compressed if isinstance(event, ContextCompressed)] == [
        ("shorten", "low")
    ]
    assert len(turn.state.compressions) == 1
    assert turn.state.compressions[0].after_tokens < turn.state.compressions[0].before_tokens
    assert [text for text in said(await shown(preparing)) if text.startswith("Question")] == [
        f"Question {number}?" for number in range(40)
    ]


async def test_a_summary_by_the_model_takes_the_place_of_older_steps(tmp_path: Path) -> None:
    turn = continue_queue(talk(60), params={"context_tokens_cap": 12_000}, project=tmp_path)
    preparing = preparing_for(turn)
    async with service(Answer.of("Sixty files were looked at.")) as (scripted, provider):
        events = await prepare(preparing, turn, Wanted(provider, "m", 200_000))
        (request,) = scripted.bodies
    stages = [event.stage for event in events if isinstance(event, ContextCompressed)]
    assert stages[-1] == "summarize"
    summaries = [read_prompt(text).said_by("a summary of what came before") for text in said(await shown(preparing))]
    assert "Sixty files were looked at." in summaries
    assert isinstance(events[-1], ContextCompressed)
    assert events[-1].usage == Usage(input_tokens=10, output_tokens=5)
    assert "tools" not in request
    assert "Write only what the quote says" in request["messages"][0]["content"]
    condensed = read_prompt(request["messages"][1]["content"])
    assert ("the person, earlier", "Question 0?") in condensed.quotes
    assert condensed.outside.strip() == REQUEST
    messages = await shown(preparing)
    calls = [part.id for one in messages for part in one.parts if isinstance(part, Call)]
    results = [part.call for one in messages for part in one.parts if isinstance(part, Outcome)]
    assert calls == results != []


@pytest.mark.parametrize(
    "broken", [Answer.of(fault=Status(status=500)), Answer.of(""), Answer.of("No.", stop="refusal")]
)
async def test_a_summary_that_fails_leaves_older_steps_out(broken: Answer, tmp_path: Path) -> None:
    turn = continue_queue(talk(60), params={"context_tokens_cap": 12_000}, project=tmp_path)
    preparing = preparing_for(turn)
    async with service(broken) as (scripted, provider):
        events = await prepare(preparing, turn, Wanted(provider, "m", 200_000))
        assert len(scripted.requests) == 1
    told = [event.detail or "" for event in events if isinstance(event, TurnStatus)]
    assert told[0] == COMPRESSING
    assert told[1].startswith("The summary failed, so older steps are left out instead")
    taken = [(event.stage, event.strength) for event in events if isinstance(event, ContextCompressed)]
    assert ("limit", "high") in taken
    assert "summarize" not in [stage for stage, _ in taken]
    assert any("are not shown before this point" in text for text in said(await shown(preparing)))


async def test_a_stop_during_the_summary_closes_the_connection(tmp_path: Path) -> None:
    turn = continue_queue(talk(60), params={"context_tokens_cap": 12_000}, project=tmp_path)
    preparing = preparing_for(turn)
    async with service(Answer.of("Sixty", Gate(name="held"), "files")) as (scripted, provider):
        task = asyncio.create_task(prepare(preparing, turn, Wanted(provider, "m", 200_000)))
        await scripted.gates.reached("held")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await scripted.requests[0].end()
        assert scripted.requests[0].closed_by_client
    assert turn.state.compressions == ()


async def test_what_a_person_said_alone_is_too_large_and_that_is_said(tmp_path: Path) -> None:
    state = State(conversation="conversation", seq=9, messages=(user(1, "word " * 9_000), answer(2, "Yes.")))
    turn = MemoryTurn("And?", state=state, params={"context_tokens_cap": 2_000}, project=tmp_path)
    async with service() as (scripted, provider):
        with pytest.raises(
            ProviderRefused, match="Branch from an earlier message, choose a model with a larger"
        ) as error:
            await prepare(preparing_for(turn), turn, Wanted(provider, "some-model", 200_000))
        assert scripted.requests == []
    assert error.value.details["reason"] == "context_exceeded"
    assert "some-model" in error.value.message
    assert turn.state.compressions == ()


async def test_a_window_nobody_knows_is_never_outgrown_until_the_service_says_so(tmp_path: Path) -> None:
    turn = continue_queue(talk(40, answer_words=2, output_chars=6_000), project=tmp_path)
    preparing = preparing_for(turn)
    async with service() as (_, provider):
        wanted = Wanted(provider, "m", None)
        assert await prepare(preparing, turn, wanted) == []
        whole = len(str(await shown(preparing)))
        assert preparing.tighten()
        assert any(isinstance(event, ContextCompressed) for event in await prepare(preparing, turn, wanted))
        smaller = len(str(await shown(preparing)))
        assert preparing.tighten()
        await prepare(preparing, turn, wanted)
        assert whole > smaller > len(str(await shown(preparing)))
        assert not preparing.tighten()


async def test_the_prompt_is_the_same_after_a_restart(tmp_path: Path) -> None:
    turn = continue_queue(talk(60), params={"context_tokens_cap": 12_000}, project=tmp_path)
    preparing = preparing_for(turn)
    async with service(Answer.of("Sixty files.")) as (scripted, provider):
        await prepare(preparing, turn, Wanted(provider, "m", 200_000))
        again = MemoryTurn(state=turn.restart(), params=turn.params, project=tmp_path)
        after = preparing_for(again)
        assert await prepare(after, again, Wanted(provider, "m", 200_000)) == []
        assert len(scripted.requests) == 1
    assert await shown(after) == await shown(preparing)
    assert after.system == preparing.system


async def test_secrets_are_struck_from_what_is_summarized_and_from_the_summary(tmp_path: Path) -> None:
    history = talk(60)
    history[1] = replace(history[1], blocks=(used("c0", "y" * 500 + "hunter2-hunter2" + "y" * 500, path="f0.py"),))
    turn = continue_queue(history, params={"context_tokens_cap": 12_000}, project=tmp_path)
    preparation = Preparation(system="Linux", redact=lambda text: text.replace("hunter2-hunter2", "[redacted]"))
    preparing = Preparing(turn, preparation)
    async with service(Answer.of("It was hunter2-hunter2.")) as (scripted, provider):
        await prepare(preparing, turn, Wanted(provider, "m", 200_000))
        assert "hunter2" not in str(scripted.bodies)
    assert "hunter2" not in str(turn.state.compressions)


# -- what is measured


async def test_the_meter_tells_what_fills_the_window(tmp_path: Path) -> None:
    turn = MemoryTurn("hi " * 500, project=tmp_path)
    preparing = preparing_for(turn)
    assert preparing.measured() is None
    async with service() as (_, provider):
        await prepare(preparing, turn, Wanted(provider, "m", 200_000, (TOOL,)))
    first = preparing.measured()
    assert first is not None
    assert (first.window_tokens, first.estimated) == (200_000, True)
    assert sum(first.breakdown.values()) == first.used_tokens
    counted = first.used_tokens + 100
    for event in (
        AnswerStarted(message="a", model="m"),
        TextFinished(message="a", block=0, text="Yes."),
        AnswerFinished(message="a", finish_reason="stop", usage=Usage(input_tokens=counted), model="m"),
    ):
        turn.accept(event)
    await turn.committed()
    second = preparing.measured()
    assert second is not None
    assert not second.estimated
    assert counted <= second.used_tokens <= counted + 20
    turn.accept(second)
    await turn.committed()
    assert preparing.measured() is None
    assert turn.state.context is not None
    assert turn.state.context.breakdown == second.breakdown


async def test_the_meter_and_the_limit_use_what_the_provider_counted(tmp_path: Path) -> None:
    turn = continue_queue(talk(10, answer_words=2, output_chars=6_000), project=tmp_path)
    preparing = preparing_for(turn)
    async with service() as (_, provider):
        wanted = Wanted(provider, "m", 30_000)
        assert await prepare(preparing, turn, wanted) == []
        measured = preparing.measured()
        assert measured is not None
        # This model's tokens are half as long: what seemed to fit does not.
        for event in (
            AnswerStarted(message="a", model="m"),
            TextFinished(message="a", block=0, text="Yes."),
            AnswerFinished(
                message="a", finish_reason="stop", usage=Usage(input_tokens=int(measured.used_tokens * 2.2)), model="m"
            ),
            MessageAdded(message="n", content=()),
        ):
            turn.accept(event)
        await turn.committed()
        events = await prepare(preparing, turn, wanted)
    assert [type(event) for event in events][:2] == [TurnStatus, ContextCompressed]

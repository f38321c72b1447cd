"""A conversation that outgrows its window goes on: what is told, recalled, compressed and measured in whole turns."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from palaver.context.summary import REQUEST
from palaver.schema.events import (
    AnswerFinished,
    ContextCompressed,
    ContextMeasured,
    KnowledgeRecalled,
    TextDelta,
)
from palaver.schema.view import State
from palaver.tools.base import Passage, ToolResult, Workplace
from tests.contract.backend_api.rig import agent, serve, text_of
from tests.provider import Answer, Call, Gate, Say, Status
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import MemoryTurn, drive
from tests.unit.context.histories import answer, user

FIRST = "Never touch the file called treasure.txt, whatever happens."


class Wordy(CountingTool):
    """A tool whose results fill a window."""

    async def run(self, arguments: Any, place: Workplace) -> ToolResult:
        await super().run(arguments, place)
        return ToolResult(ok=True, output=f"{arguments['path']}: " + "lorem ipsum dolor " * 150)


def sent(body: dict[str, Any]) -> str:
    """The conversation as the service got it, in any format."""
    return msgspec.json.encode(body.get("messages") or body["input"]).decode()


NOTES = Answer(blocks=(Say(text="Notes on what came before."),), when=REQUEST, repeat=True)
"""The answer to whoever asks for a summary."""


async def test_long_conversation_goes_on_with_its_first_instructions(wire: str, tmp_path: Path) -> None:
    """Twenty turns of tools through a window that holds three of them; the scripted service refuses unpaired calls."""
    state: State | None = None
    tool = Wordy("look", reads_only=True)
    sizes: list[int] = []
    async with serve() as service, agent(wire, service, tools=toolbox(tool)) as backend:
        for number in range(20):
            looks = [Answer.of(f"Looking at {number}.", Call(name="look", input={"path": f"f{number}.txt"}))]
            service.script = [NOTES, *looks, Answer.of(f"Looked at {number}. " * 20)]
            said = FIRST if number == 0 else f"Now look at {number}."
            turn = MemoryTurn(said, state=state, params={"context_tokens_cap": 4_000}, project=tmp_path)
            await drive(backend, turn)
            state = turn.state
            assert turn.error is None
            assert turn.finished.outcome == "completed"
            sizes.append(len(sent(service.bodies[-1])))
        assert all(request.refused is None for request in service.requests)
        assert FIRST in sent(service.bodies[-1])
        assert "Now look at 19." in sent(service.bodies[-1])
    assert len(tool.runs) == 20
    assert state is not None
    assert state.compressions
    # It stays within its window, some characters a token.
    assert max(sizes) < 4_000 * 6
    assert len(state.messages) == 60


async def test_service_that_finds_the_prompt_too_long_gets_a_shorter_one(wire: str, tmp_path: Path) -> None:
    too_long = Answer.of(fault=Status(status=400, message="prompt is too long: 9 > 8 maximum context length"))
    tool = Wordy("look", reads_only=True)
    calls = [Call(name="look", input={"path": f"f{number}"}) for number in range(8)]
    script = [Answer.of("So.", *calls), too_long, Answer.of("Done.")]
    async with serve(*script) as service, agent(wire, service, tools=toolbox(tool)) as backend:
        turn = await drive(backend, MemoryTurn(FIRST, project=tmp_path))
        _, refused, taken = service.bodies
    assert turn.finished.outcome == "completed"
    assert text_of(turn).endswith("Done.")
    assert len(sent(taken)) < len(sent(refused)) * 0.8
    assert turn.of(ContextCompressed)
    assert FIRST in sent(taken)


async def test_service_that_finds_everything_too_long_is_believed_in_the_end(wire: str, tmp_path: Path) -> None:
    too_long = Answer(fault=Status(status=400, message="prompt is too long: maximum context length"), repeat=True)
    async with serve(too_long) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi", project=tmp_path))
        assert len(service.requests) <= 3
    assert turn.error is not None
    assert turn.error.details["reason"] == "context_exceeded"


async def test_what_was_recalled_is_announced_and_shown(wire: str, tmp_path: Path) -> None:
    async with serve(Answer.of("Calcium."), Answer.of("Yes.")) as service, agent(wire, service) as backend:
        turn = MemoryTurn("What do greenhouse tomatoes need?", project=tmp_path)
        turn.passages = [Passage("c9", "Beds", "Tomatoes in the greenhouse need calcium.", 4, 1_760_000_000_000)]
        await drive(backend, turn)
        again = await drive(backend, MemoryTurn("ok", state=turn.state, project=tmp_path))
        first, second = service.bodies
    (recalled,) = turn.of(KnowledgeRecalled)
    assert [source.ref for source in recalled.sources] == ["c9"]
    assert "need calcium" in sent(first)
    assert "need calcium" in sent(second)
    assert not again.of(KnowledgeRecalled)


async def test_nothing_of_the_meter_comes_before_the_first_word(wire: str, tmp_path: Path) -> None:
    async with serve(Answer.of("Hello.")) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi", project=tmp_path))
    (measured,) = turn.of(ContextMeasured)
    assert measured.seq > turn.of(TextDelta)[0].seq
    assert measured.seq > turn.of(AnswerFinished)[0].seq
    assert sum(measured.breakdown.values()) == measured.used_tokens


async def test_stop_during_a_summary_leaves_a_history_to_go_on_with(wire: str, tmp_path: Path) -> None:
    history = [
        message
        for number in range(40)
        for message in (
            user(number * 10 + 1, FIRST if number == 0 else f"Question {number}?"),
            answer(number * 10 + 2, "A long story about it. " * 60, turn=f"t{number}"),
        )
    ]
    state = State(conversation="conversation", seq=500, messages=tuple(history))
    params = {"context_tokens_cap": 8_000}
    held = Answer.of("Notes", Gate(name="held"), when=REQUEST)
    async with serve(held) as service, agent(wire, service) as backend:
        turn = MemoryTurn("And?", state=state, params=params, project=tmp_path)
        task = asyncio.create_task(drive(backend, turn))
        await service.gates.reached("held")
        task.cancel()
        await asyncio.wait({task})
        turn.interrupt()
        await service.requests[-1].end()
        assert service.requests[-1].closed_by_client
        assert not turn.of(ContextCompressed)
        service.script = [NOTES, Answer.of("Going on.")]
        after = await drive(backend, MemoryTurn("Go on.", state=turn.state, params=params, project=tmp_path))
        assert all(request.refused is None for request in service.requests)
        assert FIRST in sent(service.bodies[-1])
        assert "Notes on what came before." in sent(service.bodies[-1])
    assert after.finished.outcome == "completed"
    assert after.of(ContextCompressed)[-1].stage == "summarize"

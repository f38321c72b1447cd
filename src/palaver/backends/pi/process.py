"""One Pi process in RPC mode: commands go in, each with its response; everything else it prints is an event.

Started by the backend through `Programs`, used by one turn at a time. It carries lines and knows no events of ours. What Pi
says while no turn listens is dropped: nothing of a turn that is over may reach the next one. One question it answers itself:
which tools of ours there are, which our extension asks before Pi has even taken a prompt.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from palaver.backends.json_lines import decode_line
from palaver.backends.process import Child, Ladder, spawn
from palaver.core.json_bounds import decode_json
from palaver.errors import AgentError, Exited, ProviderRefused, TimedOut
from palaver.journal import Journal
from palaver.tools.base import ToolSpec

WAITING = 1_000
"""Lines read ahead of a slow reader; then Pi's pipe fills and Pi waits."""
START_S = 60.0
"""Pi answers within a second of its start; a loaded machine takes longer."""
COMMAND_S = 20.0
LADDER = Ladder(interrupt_s=0.0, terminate_s=1.0)
"""No interrupt: Pi dies of it and leaves its tools behind (0.87); terminated, it ends them."""
TAIL_CHARS = 600

Line = Mapping[str, Any]
logger = Journal(__name__)


class Link:
    """Implements `programs.Program`. `identity` says what was started; another model or folder needs another link."""

    def __init__(self, child: Child, identity: object) -> None:
        self.identity = identity
        self.session = ""
        self.window_tokens: int | None = None
        self.resumed = False
        self.known: set[str] = set()
        """Messages of the conversation that the session has seen or said."""
        self.sent = 0
        """A person's messages in the session."""
        self.spoiled = False
        self.offered: Sequence[ToolSpec] = ()
        """The tools of ours that Pi's model is told of from its next prompt on."""
        self._child = child
        self._numbers = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[Line]] = {}
        self._inbox: asyncio.Queue[Line | None] | None = None
        self._gone = False
        self._reading = asyncio.create_task(self._read(), name="read pi")

    @property
    def pid(self) -> int | None:
        return self._child.pid

    @property
    def alive(self) -> bool:
        return not (self._gone or self.spoiled)

    @property
    def started_as(self) -> str:
        return self._child.name

    async def has_background_work(self) -> bool:
        return False

    # -- commands

    async def command(self, kind: str, limit_s: float = COMMAND_S, **more: Any) -> Mapping[str, Any]:
        """The response's data. Raises AgentError in words for a person."""
        if self._gone:
            raise await self.exited()
        number = f"palaver-{next(self._numbers)}"
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(limit_s):
                await self.send({"id": number, "type": kind, **more})
                response = await answer
        except TimeoutError as failure:
            raise TimedOut(f"Pi did not answer {kind} within {limit_s:.0f} s.") from failure
        finally:
            self._waiting.pop(number, None)
        if response.get("success") is not True:
            raise ProviderRefused(f"Pi refused: {response.get('error') or 'it gave no reason.'}", command=kind)
        data = response.get("data")
        return data if isinstance(data, Mapping) else {}

    async def send(self, line: Line) -> None:
        await self._child.write(msgspec.json.encode(line) + b"\n")

    async def learn(self) -> None:
        """Which session this is, and what its model holds."""
        state = await self.command("get_state", START_S)
        self.session = str(state.get("sessionId") or "")
        model = state.get("model")
        window = model.get("contextWindow") if isinstance(model, Mapping) else None
        self.window_tokens = window if isinstance(window, int) else None

    # -- events

    def listen(self) -> "asyncio.Queue[Line | None]":
        """What Pi says from now on, in order. None: it ended."""
        inbox: asyncio.Queue[Line | None] = asyncio.Queue(WAITING)
        self._inbox = inbox
        if self._gone:
            inbox.put_nowait(None)
        return inbox

    def hush(self) -> None:
        """The turn is over: nobody listens any more, and a line that waits for room need not wait."""
        inbox, self._inbox = self._inbox, None
        while inbox is not None and not inbox.empty():
            inbox.get_nowait()

    async def abort(self, limit_s: float) -> bool:
        """End what Pi does, in its own way. Its response comes last, when all is still. Whether it came in time."""
        try:
            async with asyncio.timeout(limit_s):
                # Queued messages would be answered after the abort.
                await self.command("clear_queue", limit_s)
                await self.command("abort", limit_s)
        except (AgentError, TimeoutError):
            return False
        return not self._gone

    async def exited(self) -> AgentError:
        code: int | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                code = (await self._child.ended()).code
        tail = self._child.stderr_tail.decode(errors="replace").strip()[-TAIL_CHARS:]
        how = f" with code {code}" if code is not None else ""
        return Exited(f"Pi ended{how}." + (f" It said: {tail}" if tail else ""), stderr=tail)

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.wait({self._reading})

    async def _read(self) -> None:
        try:
            async for line in self._child.lines():
                await self._hear(line)
        except AgentError as failure:
            logger.warning("what pi says cannot be read", reason=failure.message)
        finally:
            self._gone = True
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_result({"success": False, "error": "it ended."})
        if self._inbox is not None:
            await self._inbox.put(None)

    async def _hear(self, raw: bytes) -> None:
        try:
            line = decode_line(raw, "Pi")
        except msgspec.DecodeError:
            logger.debug("pi wrote what is no message", line=raw[:200])
            return
        if not isinstance(line, dict):
            return
        if line.get("type") == "response":
            answer = self._waiting.get(str(line.get("id")))
            if answer is not None and not answer.done():
                answer.set_result(line)
        elif (ours(line) or {}).get("palaver") == "tools":
            tools = [
                {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
                for tool in self.offered
            ]
            value = msgspec.json.encode(tools).decode()
            await self.send({"type": "extension_ui_response", "id": line.get("id"), "value": value})
        elif self._inbox is not None:
            await self._inbox.put(line)


def ours(line: Line) -> Mapping[str, Any] | None:
    """What our extension asks: JSON in a dialog's title. None: somebody else asks."""
    title = line.get("title") if line.get("type") == "extension_ui_request" else None
    if not isinstance(title, str) or not title.startswith("{"):
        return None
    try:
        told = decode_json(title)
    except msgspec.DecodeError:
        return None
    return told if isinstance(told, Mapping) and "palaver" in told else None


@asynccontextmanager
async def start_pi(
    argv: Sequence[str],
    resume: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    identity: object,
) -> AsyncIterator[Link]:
    """A Pi that runs and has said which session it is in; a new one when it does not know that of before any more."""
    async with AsyncExitStack() as stack:
        try:
            link = await stack.enter_async_context(_one((*argv, *resume), cwd, environment, identity))
            link.resumed = bool(resume)
        except (Exited, ProviderRefused) as failure:
            if not resume:
                raise
            logger.info("pi could not resume a session; a new one is told everything", reason=failure.message)
            link = await stack.enter_async_context(_one(argv, cwd, environment, identity))
        yield link


@asynccontextmanager
async def _one(argv: Sequence[str], cwd: Path, environment: Mapping[str, str], identity: object) -> AsyncIterator[Link]:
    async with spawn(argv, cwd=cwd, environment=environment, stdin=True, ladder=LADDER) as child:
        link = Link(child, identity)
        try:
            try:
                await link.learn()
            except ProviderRefused:
                raise (
                    await link.exited() if not link.alive else ProviderRefused("Pi did not tell its session.")
                ) from None
            yield link
        finally:
            await link.close()

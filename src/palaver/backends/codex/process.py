"""A running `codex app-server`: JSON-RPC lines over its standard streams, and which line is for which conversation.

Started by the backend through `Programs`; one process serves every conversation, each as a thread of Codex's own. One task
reads: answers go to whoever asked, everything else into the inbox of its thread while a turn listens there. A thread's
inbox is bounded; when its turn does not keep up, the reader waits, and with it the program.

It knows no conversations and no events. It must never leave a request of the program without an answer: it would wait for
ever.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from palaver.backends.json_lines import decode_line
from palaver.backends.process import Child, Ladder, spawn
from palaver.errors import AgentError, Exited, TimedOut
from palaver.journal import Journal

Json = dict[str, Any]

CALL_S = 30.0
"""For an answer: the slowest, resuming a thread of many megabytes, takes a few seconds on a busy machine."""
INBOX_LINES = 4096
"""A turn that is so far behind waits for the disk; the program may wait too."""
TERMINALS_S = 5.0
"""For the list of background terminals, which it has at hand."""
LOADED_THREADS = 32
"""Kept in the program's memory. One that is let go is resumed when its conversation goes on."""
END_S = 2.0
"""For the exit code of a program whose output has ended."""
REASON_CHARS = 600
"""The last words of a program that ended, for the person who reads why."""

_LADDER = Ladder(interrupt_s=0.0, terminate_s=1.0)
"""On SIGTERM it ends within 0.1 s and takes its commands with it (seen with 0.163); an interrupt says nothing more."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

logger = Journal(__name__)


class Refused(Exception):
    """The program answered with an error."""

    def __init__(self, method: str, code: int, message: str) -> None:
        super().__init__(f"{method}: {message}")
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Line:
    """What the program says of a thread. With an `id` it asks, and waits for an answer."""

    method: str
    params: Json
    id: int | str | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """The program has ended; nothing more comes."""

    reason: str


@dataclass(slots=True)
class Thread:
    """A conversation as Codex holds it in this process."""

    id: str
    last_turn: str | None = None
    """Codex's own id of its latest turn: whether it knows more, or less, than our log."""
    total: Json | None = None
    """Tokens of all its turns so far, as last told; None: not told yet."""
    model: str | None = None
    settings: object = None
    """What it was last started with, kept by who starts turns."""
    inbox: "asyncio.Queue[Any] | None" = None
    """Where lines go while a turn listens."""
    terminals: frozenset[str] = frozenset()
    """Items whose commands went on in the background when its last turn ended."""

    def listen(self) -> "asyncio.Queue[Any]":
        self.inbox = asyncio.Queue(INBOX_LINES)
        return self.inbox


@dataclass(slots=True)
class Call:
    """A request to the program. Until it is sent nothing will answer it."""

    method: str
    data: bytes
    answer: "asyncio.Future[Json]"
    sent: bool = False


@dataclass(slots=True)
class AppServer:
    """Implements `programs.Program`."""

    child: Child
    environment: Mapping[str, str]
    gone: Gone | None = None
    threads: dict[str, Thread] = field(default_factory=dict[str, Thread])
    _parents: dict[str, str] = field(default_factory=dict[str, str])
    _waiting: dict[int, Call] = field(default_factory=dict[int, Call])
    _number: int = 0
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def pid(self) -> int | None:
        return self.child.pid

    @property
    def alive(self) -> bool:
        return self.gone is None

    @property
    def started_as(self) -> str:
        return "codex app-server"

    async def has_background_work(self) -> bool:
        """Asked of the program: of a command that ends between turns nobody is told."""
        for thread in list(self.threads.values()):
            if thread.terminals:
                thread.terminals &= await self.terminals_of(thread.id)
        return any(thread.terminals for thread in self.threads.values())

    async def terminals_of(self, thread: str) -> frozenset[str]:
        """The items whose commands go on in the background. None when it does not say."""
        try:
            listed = await self.call("thread/backgroundTerminals/list", {"threadId": thread}, TERMINALS_S)
        except (Refused, AgentError):
            return frozenset()
        known = listed.get("data")
        return frozenset(str(one.get("itemId")) for one in known if isinstance(one, dict)) if known else frozenset()

    # -- asking

    def prepare(self, method: str, params: Json) -> Call:
        """Made apart from sending it: whoever is cancelled while it is sent still holds the answer."""
        self._number += 1
        data = msgspec.json.encode({"id": self._number, "method": method, "params": params}) + b"\n"
        call = Call(method, data, asyncio.get_running_loop().create_future())
        # Nobody may be there any more to look at the answer.
        call.answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        if self.gone:
            call.answer.set_exception(Exited(self.gone.reason))
        else:
            self._waiting[self._number] = call
        return call

    async def post(self, call: Call) -> None:
        async with self._writing:
            call.sent = True
            await self.child.write(call.data)

    async def call(self, method: str, params: Json, limit_s: float = CALL_S) -> Json:
        """Raises `Refused` when the program says no, Exited when it ends, TimedOut when it says nothing."""
        call = self.prepare(method, params)
        return await self.answer_of(call, limit_s, send=True)

    async def answer_of(self, call: Call, limit_s: float = CALL_S, send: bool = False) -> Json:
        try:
            async with asyncio.timeout(limit_s):
                if send:
                    await self.post(call)
                return await asyncio.shield(call.answer)
        except TimeoutError:
            raise TimedOut(f"Codex did not answer ({call.method}) within {limit_s:.0f} s. Try again.") from None

    async def let_go_of_idle(self) -> None:
        """The threads that waited longest, when there are too many."""
        idle = [name for name, thread in self.threads.items() if thread.inbox is None and not thread.terminals]
        for name in idle[: max(0, len(self.threads) - LOADED_THREADS)]:
            del self.threads[name]
            await self.post(self.prepare("thread/unsubscribe", {"threadId": name}))

    async def reply(self, request: int | str, result: Json) -> None:
        await self._write(msgspec.json.encode({"id": request, "result": result}) + b"\n")

    async def refuse(self, request: int | str, message: str) -> None:
        error = {"code": -32601, "message": message}
        await self._write(msgspec.json.encode({"id": request, "error": error}) + b"\n")

    async def notify(self, method: str) -> None:
        await self._write(msgspec.json.encode({"method": method}) + b"\n")

    async def _write(self, data: bytes) -> None:
        async with self._writing:
            await self.child.write(data)

    # -- reading

    async def read(self) -> None:
        """To the program's end."""
        reason = "Codex stopped answering."
        try:
            async for line in self.child.lines():
                await self._take(line)
            reason = await self._why_it_ended()
        except Exception as error:  # whatever breaks the reading ends the turns, in words
            logger.exception("the lines of codex could not be read")
            reason = f"What Codex said could not be read: {error}"
        finally:
            self._end(Gone(reason))

    async def _take(self, line: bytes) -> None:
        try:
            message = decode_line(line, "Codex")
        except msgspec.DecodeError:
            logger.warning("codex wrote a line that is not JSON", line=line[:200])
            return
        match message:
            case {"method": str(method), "id": int(number) | str(number)}:
                await self._route(Line(method, _params(message), number))
            case {"method": str(method)}:
                await self._route(Line(method, _params(message)))
            case {"id": int(number)}:
                self._resolve(number, message)
            case _:
                logger.debug("codex said something unknown", line=line[:200])

    def _resolve(self, number: int, message: Mapping[str, Any]) -> None:
        call = self._waiting.pop(number, None)
        if call is None or call.answer.done():
            return
        match message:
            case {"error": {"code": int(code), "message": str(text)}}:
                call.answer.set_exception(Refused(call.method, code, text))
            case {"result": dict(result)}:
                call.answer.set_result(result)
            case _:
                call.answer.set_result({})

    async def _route(self, line: Line) -> None:
        thread = self._thread_of(line)
        if thread is not None:
            _remember(thread, line)
            if thread.inbox is not None:
                await thread.inbox.put(line)
                return
        if line.id is not None:
            await self.refuse(line.id, "Nobody is there to answer this.")

    def _thread_of(self, line: Line) -> Thread | None:
        if line.method == "thread/started":
            match line.params:
                case {"thread": {"id": str(child), "parentThreadId": str(parent)}}:
                    self._parents[child] = parent
                case _:
                    pass
        name = line.params.get("threadId")
        if name in self.threads:
            return self.threads[name]
        # What a helper of Codex's own asks is asked in the conversation that it works for; what it says is not heard.
        while line.id is not None and (name := self._parents.get(str(name))) is not None:
            if name in self.threads:
                return self.threads[name]
        return None

    async def _why_it_ended(self) -> str:
        try:
            async with asyncio.timeout(END_S):
                ended = await self.child.ended()
        except TimeoutError:
            return "Codex closed its output. The next message starts it again."
        last = _COLOURS.sub("", self.child.stderr_tail.decode(errors="replace")).strip()[-REASON_CHARS:]
        said = f" Its last words: {last}" if last else ""
        return f"Codex ended unexpectedly (exit code {ended.code}). The next message starts it again.{said}"

    def _end(self, gone: Gone) -> None:
        self.gone = gone
        for call in self._waiting.values():
            if not call.answer.done():
                call.answer.set_exception(Exited(gone.reason))
        self._waiting.clear()
        for thread in self.threads.values():
            if (inbox := thread.inbox) is not None:
                # Never waits: the end takes the place of a line that came too late to matter.
                if inbox.full():
                    inbox.get_nowait()
                inbox.put_nowait(gone)


@asynccontextmanager
async def app_server(argv: Sequence[str], environment: Mapping[str, str], cwd: Path) -> AsyncIterator[AppServer]:
    """The program, ready to be asked, for the length of a block."""
    async with spawn([*argv, "app-server"], cwd=cwd, environment=environment, stdin=True, ladder=_LADDER) as child:
        server = AppServer(child, environment)
        reading = asyncio.create_task(server.read(), name="codex app-server")
        try:
            await server.call("initialize", INITIALIZE)
            await server.notify("initialized")
            yield server
        finally:
            reading.cancel()
            await asyncio.wait({reading})


INITIALIZE: Json = {
    "clientInfo": {"name": "palaver", "title": "Palaver", "version": "0"},
    # Cleaning up background terminals belongs to it.
    "capabilities": {"experimentalApi": True},
}


def _params(message: Mapping[str, Any]) -> Json:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _remember(thread: Thread, line: Line) -> None:
    match line:
        case Line("turn/started", {"turn": {"id": str(turn)}}):
            thread.last_turn = turn
        case Line("thread/tokenUsage/updated", {"tokenUsage": {"total": dict(total)}}):
            thread.total = total
        case _:
            pass

"""Processes that outlive the turn that started them: a server to try things against, a long build.

One `Processes` a server. The shell tool starts them here; `shell_output` and `shell_stop` (`processes.py`) read and stop
them; conversations stop them through `backends.base.Background`. Each is held by a task of its own, which ends it with
everything it started when it is cancelled; the warden does so should the server die.

What a process says is kept redacted and bounded: its beginning and its end. It must never be shown to another
conversation than its own.
"""

import asyncio
import codecs
import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal

from palaver.backends.process import Child, spawn, to_the_end
from palaver.errors import Busy, NotFound, PalaverError
from palaver.journal import Journal
from palaver.schema.events import ProcessFinished, ProcessStarted
from palaver.tools.base import Host, Stream, Workplace
from palaver.tools.proposal import shorten, visible
from palaver.tools.redact import RedactedStream, Redactor

RUNNING_LIMIT = 8
"""A conversation's processes at once: more are most likely forgotten ones."""
KEPT_LIMIT = 32
"""Processes that are over and can still be read, in the whole server."""
SIDE_BYTES = 512 * 1024
"""Of a process's output, its first and its last: together a megabyte."""
TAIL_CHARS = 4000
"""Of its output, in the message that tells the agent of its end."""
COMMAND_CHARS = 300
"""Of its command, in a sentence."""
CLOSE_LIMIT_S = 5.0
"""For all processes to end with the server: the stop ladder takes two seconds at most."""

logger = Journal(__name__)

Prepared = AbstractContextManager[tuple[Sequence[str], Mapping[str, str]]]
"""A command line and its environment, with what must be held while it runs."""

_STREAMS: tuple[Stream, ...] = ("stdout", "stderr")


class Kept:
    """What a process has said so far: the whole, or its beginning and its end. Offsets count the bytes of the whole."""

    def __init__(self, redactor: Redactor) -> None:
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")(errors="replace") for name in _STREAMS}
        self._redacted: dict[str, RedactedStream] = {name: redactor.stream() for name in _STREAMS}
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0

    def feed(self, data: bytes, stream: Stream) -> None:
        self._keep(self._redacted[stream].feed(self._decoders[stream].decode(data)))

    def finish(self) -> None:
        for stream in _STREAMS:
            rest = self._redacted[stream].feed(self._decoders[stream].decode(b"", final=True))
            self._keep(rest + self._redacted[stream].finish())

    def after(self, offset: int) -> str:
        """What was said from a place on; where it is no longer kept, a line says how much is missing."""
        tail_at = self.total_bytes - len(self._tail)
        if offset >= tail_at:
            return _text(self._tail[offset - tail_at :])
        missing = tail_at - max(offset, len(self._head))
        note = f"\n[… {missing:,} bytes are no longer kept …]\n" if missing > 0 else ""
        return _text(self._head[offset:]) + note + _text(self._tail)

    def _keep(self, text: str) -> None:
        data = text.encode(errors="replace")
        self.total_bytes += len(data)
        room = SIDE_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        del self._tail[:-SIDE_BYTES]


def _text(data: bytes | bytearray) -> str:
    # Only whole characters: an offset may lie within one.
    return data.decode(errors="ignore")


@dataclass(slots=True)
class Running:
    """A process, and what is known of it."""

    id: str
    conversation: str
    command: str
    kept: Kept
    host: Host | None
    pid: int = 0
    exit_code: int | None = None
    over: bool = False
    stopped: bool = False
    """Somebody stopped it, and whoever did tells of it."""
    task: "asyncio.Task[None] | None" = None
    started: "asyncio.Future[int]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    announced: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def status(self) -> str:
        if not self.over:
            return "running"
        if self.stopped:
            return "stopped"
        return f"ended with exit code {self.exit_code}"


class Processes:
    """All background processes of a server."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._known: dict[str, Running] = {}
        self._closed = False

    async def start(self, command: str, prepared: Prepared, place: Workplace, timeout_s: float | None) -> Running:
        """Start one and tell the conversation. Raises Busy at the limit, and what `spawn` raises."""
        conversation = place.host.conversation if place.host else ""
        running = [one for one in self._known.values() if one.conversation == conversation and not one.over]
        if self._closed or len(running) >= RUNNING_LIMIT:
            ids = ", ".join(one.id for one in running)
            raise Busy(f"{len(running)} processes run in the background ({ids}), which is the limit. Stop one first.")
        kept = Kept(Redactor(place.environment))
        one = Running(self._new_id(), conversation, command, kept, place.host)
        self._known[one.id] = one
        one.task = asyncio.create_task(self._hold(one, prepared, place, timeout_s), name=f"process {one.id}")
        try:
            # A task that ends before the process began has put its reason into `started`.
            one.pid = await asyncio.shield(one.started)
            if place.host is not None:
                await place.host.emit(
                    ProcessStarted(process=one.id, command=command, call=place.call or None, pid=one.pid)
                )
        except BaseException:
            one.stopped = True
            one.task.cancel()
            await to_the_end(_over(one.task))
            self._known.pop(one.id, None)
            if not one.started.cancelled():
                # Looked at: nobody waits for it any more.
                one.started.exception()
            raise
        # Only now may its end be told: nobody could place an end without a beginning.
        one.announced.set()
        return one

    def of(self, process: str, conversation: str) -> Running:
        """One of a conversation's own. Raises NotFound."""
        one = self._known.get(process)
        if one is None or one.conversation != conversation:
            own = ", ".join(known.id for known in self._known.values() if known.conversation == conversation)
            raise NotFound(f"There is no background process {process!r} here. There are: {own or 'none'}.")
        return one

    def running(self) -> list[Running]:
        """Of all conversations, for the server's own table: never to be told to an agent."""
        return [one for one in self._known.values() if one.pid and not one.over]

    def stop(self, process: str) -> None:
        one = self._known.get(process)
        if one is not None and one.task is not None and not one.over:
            one.stopped = True
            one.task.cancel()

    async def stop_and_tell(self, one: Running, host: Host | None) -> bool:
        """Stop it, wait until all of it is gone, and record its end in the turn that wants it. False: it was over before.

        The turn that started it may be over; what its host is told then is told to nobody.
        """
        if one.over or one.task is None:
            return False
        self.stop(one.id)
        await to_the_end(_over(one.task))
        if host is not None:
            await host.emit(ProcessFinished(process=one.id, exit_code=one.exit_code, end="stopped"))
        return True

    async def close(self) -> None:
        """With the server: nothing that was started here is alive afterwards."""
        self._closed = True
        tasks = [one.task for one in self._known.values() if one.task is not None and not one.task.done()]
        for one in list(self._known.values()):
            self.stop(one.id)
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_LIMIT_S)

    async def _hold(
        self,
        one: Running,
        prepared: Prepared,
        place: Workplace,
        timeout_s: float | None,
    ) -> None:
        end: Literal["itself", "time", "stop"] = "stop"
        try:
            with prepared as (argv, environment):
                async with spawn(argv, cwd=place.root, environment=environment, drain_stderr=False) as child:
                    one.started.set_result(child.pid)
                    end = await self._listen(one, child, timeout_s)
        except asyncio.CancelledError:
            # Ours: a stop. Whoever stopped it says so.
            pass
        except Exception as failure:  # the border of what a child may do: told to whoever waits
            if one.started.done():
                logger.exception("a background process was lost", process=one.id)
                end = "itself"
            else:
                one.started.set_exception(failure)
        finally:
            one.over = True
            one.kept.finish()
            if not one.started.done():
                one.started.cancel()
            self._forget_the_oldest()
        if end != "stop" and not one.stopped:
            await self._tell(one, timeout_s if end == "time" else None)

    async def _listen(self, one: Running, child: Child, timeout_s: float | None) -> Literal["itself", "time"]:
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit, contextlib.aclosing(child.chunks()) as chunks:
                async for stream, chunk in chunks:
                    one.kept.feed(chunk, stream)
                one.exit_code = (await child.ended()).code
        except TimeoutError:
            if not limit.expired():
                raise
            return "time"
        return "itself"

    async def _tell(self, one: Running, timeout_s: float | None) -> None:
        await one.announced.wait()
        if one.host is None:
            return
        how = f"was stopped after {timeout_s:g} s" if timeout_s else one.status
        said = one.kept.after(max(0, one.kept.total_bytes - TAIL_CHARS))
        end = f" The end of its output:\n{said}" if said.strip() else " It said nothing."
        text = f"Background process {one.id} ({shorten(visible(one.command), COMMAND_CHARS)}) {how}.{end}"
        try:
            await one.host.process_ended(one.id, one.exit_code, text)
        except PalaverError as error:
            # The conversation is gone or cannot be written to; there is nobody left to tell.
            logger.warning("the end of a process could not be recorded", process=one.id, error=error.message)

    def _forget_the_oldest(self) -> None:
        over = [one for one in self._known.values() if one.over]
        for one in over[: max(0, len(over) - KEPT_LIMIT)]:
            del self._known[one.id]


async def _over(task: "asyncio.Task[None]") -> None:
    await asyncio.wait([task])

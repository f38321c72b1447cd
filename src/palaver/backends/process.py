"""The one runner of child processes: every program Palaver starts, an agent's or a tool's, is started here.

Called by the backends that drive other programs and by the shell tool. Between this process and the program stands a
warden (`warden.py`), which ends the whole tree of a run, however its members hid (setsid, double fork, nohup, an ignored
SIGTERM): when told to, when the program itself ends, and when this process dies by any means. A command that no sandbox holds
can kill its warden or keep it from working. A warden that is late is killed, and what a killed one leaves is inherited and
ended by this process (`orphans.py`).

That holds on Linux. On macOS only the program's own process group is ended: a child that left the group outlives the run,
and so it is said by `whole_tree_is_stopped()`.

It imports nothing of Palaver but errors, installation, journal, warden, orphans, held folders and the lookup of programs, and
knows neither logs nor conversations nor what the programs mean. It must never hand a child this process's own environment:
`allowed_environment` picks what a child may see.
"""

import asyncio
import contextlib
import errno
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from palaver.backends import orphans
from palaver.backends.program_lookup import FALLBACK_PATH
from palaver.backends.warden import runs
from palaver.errors import CallerError, Exited, NotInstalled, ProtocolBroken
from palaver.installation import BARE_INTERPRETER
from palaver.journal import Journal
from palaver.tools.files.held_folder import name_of, open_folder

T = TypeVar("T")
Stream = Literal["stdout", "stderr"]

CHUNK_BYTES = 64 * 1024
"""A pipe's own capacity on Linux: one read takes what one pipe can hold."""
LINES_AT_ONCE = 64
"""Given before others get their turn: a pipe holds tens of thousands of short lines."""
LINE_LIMIT_BYTES = 32 * 1024 * 1024
"""Agents put whole files into one line of JSON; more than this is no protocol but a runaway."""
STDERR_TAIL_BYTES = 64 * 1024
"""What is kept of a drained stderr, for the message that says why a program ended."""
CHUNKS_WAITING = 8
"""Chunks read ahead of a slow reader; then the pipe fills and the program waits."""
START_LIMIT_S = 10.0
"""A warden starts in tens of milliseconds; on a machine so loaded that this is too short nothing works."""
LATE_S = 0.5
"""How long after its last rung a warden may take to end, and to be collected once it said its last word."""
GIVE_UP_S = 1.0
"""How long we wait after that. Then we go on; what is left is hunted until it is gone."""

_ALLOWED = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}
)
_WARDEN = Path(__file__).with_name("warden.py")
logger = Journal(__name__)


@dataclass(frozen=True, slots=True)
class Ladder:
    """How a stop goes: interrupt, wait, terminate, wait, kill. Together under the 2 s within which all must be gone."""

    interrupt_s: float = 0.3
    """After SIGINT to the program's group, as Ctrl-C would send it. Zero leaves the interrupt out."""
    terminate_s: float = 0.5
    """After SIGTERM to every process of the tree."""


DEFAULT_LADDER = Ladder()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended. `code` is negative for a signal; `stopped_count` processes it left were stopped."""

    code: int
    stopped_count: int = 0


def whole_tree_is_stopped() -> bool:
    """Whether a stop reaches every descendant here, or only the program's process group."""
    return sys.platform == "linux"


def allowed_environment(environment: Mapping[str, str], more: Mapping[str, str] | None = None) -> dict[str, str]:
    """What of our environment a child may see: no key, no token, nothing of ours. `more` is added as it is."""
    allowed = {name: value for name, value in environment.items() if name in _ALLOWED or name.startswith("LC_")}
    return {"PATH": FALLBACK_PATH, "LANG": "C.UTF-8", **allowed, "TERM": "dumb", **(more or {})}


class Streams(asyncio.subprocess.SubprocessStreamProtocol):
    """The warden's pipes, which are the program's, and the moment when the warden has been waited for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=CHUNK_BYTES, loop=loop)
        self.collected = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.collected.set()


class Child:
    """A running program. Made by `spawn`, which also ends it."""

    def __init__(
        self,
        name: str,
        ladder: Ladder,
        control: asyncio.StreamWriter,
        warden: asyncio.SubprocessTransport,
        streams: Streams,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.name = name
        self.pid = 0
        self.stderr_tail = b""
        """The end of a drained stderr; complete once the run has been left."""
        self._ladder = ladder
        self._control = control
        self._warden = warden
        self._streams = streams
        self._started: asyncio.Future[None] = loop.create_future()
        self._ended: asyncio.Future[Ended] = loop.create_future()
        self._tree_gone = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._draining: asyncio.Task[None] | None = None

    async def write(self, data: bytes) -> None:
        """Waits while the program does not read. A program that ended swallows what is written; its end says why."""
        stdin = self._stdin()
        with contextlib.suppress(ConnectionError):
            stdin.write(data)
            await stdin.drain()

    def close_stdin(self) -> None:
        self._stdin().close()

    async def lines(self, limit_bytes: int = LINE_LIMIT_BYTES) -> AsyncGenerator[bytes, None]:
        """Each line of stdout without its newline; an unfinished last line too. Split at newline bytes only."""
        stdout = self._reader("stdout")
        waiting = bytearray()
        lines = 0
        while chunk := await stdout.read(CHUNK_BYTES):
            searched = len(waiting)
            waiting += chunk
            begin = 0
            while (end := waiting.find(b"\n", max(begin, searched))) >= 0:
                yield bytes(waiting[begin:end])
                begin = end + 1
                lines += 1
                if lines % LINES_AT_ONCE == 0:
                    await asyncio.sleep(0)
            del waiting[:begin]
            if len(waiting) > limit_bytes:
                raise ProtocolBroken(f"{self.name} wrote a line of more than {limit_bytes:,} bytes.")
        if waiting:
            yield bytes(waiting)

    async def chunks(self) -> AsyncGenerator[tuple[Stream, bytes], None]:
        """Both streams as they come, to the end of both. Needs `drain_stderr=False`."""
        waiting: asyncio.Queue[tuple[Stream, bytes]] = asyncio.Queue(CHUNKS_WAITING)
        for stream in get_args(Stream):
            self._hold(self._pump(stream, waiting))
        open_count = len(get_args(Stream))
        while open_count:
            stream, chunk = await waiting.get()
            if chunk:
                yield stream, chunk
            else:
                open_count -= 1

    async def ended(self) -> Ended:
        """Waits for the program's own end. What it left behind is stopped then, without being asked for."""
        return await asyncio.shield(self._ended)

    async def stop(self, ladder: Ladder | None = None) -> None:
        """End the whole tree and wait until it is gone; in bounded time, and any number of times."""
        ladder = ladder or self._ladder
        if not self._tree_gone.is_set():
            self._say(f"stop {round(ladder.interrupt_s * 1000)} {round(ladder.terminate_s * 1000)}")
        if await self._gone_within(ladder.interrupt_s + ladder.terminate_s + LATE_S):
            return
        # Late: a loaded machine, a process stuck in the kernel, or a warden that its own run has stopped or traces. Whatever
        # it is, the death of the warden makes this process the parent of the whole run (`_follow`), and no run can pin that.
        self._kill_warden()
        if not await self._gone_within(GIVE_UP_S):
            logger.warning("a process could not be stopped so far", program=self.name)

    async def _gone_within(self, limit_s: float) -> bool:
        return await _set_within(self._tree_gone, limit_s)

    def _kill_warden(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._warden.kill()

    def _warden_is_gone(self) -> bool:
        """Or a zombie, which whoever traced it may keep for as long as that one lives."""
        pid = self._warden.get_pid()
        return self._streams.collected.is_set() or not runs(pid)

    async def _start(self, control: asyncio.StreamReader, drain_stderr: bool) -> None:
        self._hold(self._follow(control))
        if drain_stderr:
            self._hold(self._drain_stderr())
            self._draining = self._tasks[-1]
        # Only now may the program begin: from here on a cancellation goes through the ladder.
        self._say("go")
        try:
            async with asyncio.timeout(START_LIMIT_S):
                await asyncio.shield(self._started)
        except TimeoutError:
            raise Exited(
                f"{self.name} did not start within {START_LIMIT_S:.0f} s; is the machine overloaded?"
            ) from None

    async def _close(self) -> None:
        await self.stop()
        if self._draining is not None:
            # Nobody is left to write, so the end is near, and with it the reason why a program failed.
            await asyncio.wait([self._draining], timeout=GIVE_UP_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for future in (self._started, self._ended):
            # Cancelled, or else looked at: an outcome nobody waited for any more is not worth a warning.
            if not future.cancel() and not future.cancelled():
                future.exception()
        self._control.close()
        await _set_within(self._streams.collected, GIVE_UP_S)
        self._warden.close()

    def _say(self, line: str) -> None:
        if not self._control.is_closing():
            self._control.write(f"{line}\n".encode("ascii"))

    def _stdin(self) -> asyncio.StreamWriter:
        assert self._streams.stdin is not None, "spawned without stdin"
        return self._streams.stdin

    def _reader(self, stream: Stream) -> asyncio.StreamReader:
        reader = self._streams.stdout if stream == "stdout" else self._streams.stderr
        assert reader is not None
        return reader

    def _hold(self, work: Coroutine[None, None, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _pump(self, stream: Stream, into: "asyncio.Queue[tuple[Stream, bytes]]") -> None:
        reader = self._reader(stream)
        while chunk := await reader.read(CHUNK_BYTES):
            await into.put((stream, chunk))
        await into.put((stream, b""))

    async def _drain_stderr(self) -> None:
        stderr = self._reader("stderr")
        while chunk := await stderr.read(CHUNK_BYTES):
            self.stderr_tail = (self.stderr_tail + chunk)[-STDERR_TAIL_BYTES:]

    async def _follow(self, control: asyncio.StreamReader) -> None:
        """What the warden says, to its end; it ends only once nobody of the run is left."""
        with contextlib.suppress(ConnectionError):
            while line := await control.readline():
                self._hear(line.decode("ascii").split())
        if not self._started.done():
            self._started.set_exception(Exited(f"{self.name} could not be started: its warden ended at once."))
        if not await self._warden_ended_well():
            # Somebody killed it, whatever it had said before. The program died with it; what it had started may live on.
            self._kill_warden()
            if left := await orphans.hunt(self._warden_is_gone, GIVE_UP_S):
                logger.warning("processes of a killed warden could not be stopped so far", program=self.name, pids=left)
        if not self._ended.done():
            self._ended.set_result(Ended(-signal.SIGKILL))
        self._tree_gone.set()

    async def _warden_ended_well(self) -> bool:
        """It does so only once nobody is left."""
        return await _set_within(self._streams.collected, LATE_S) and self._warden.get_returncode() == 0

    def _hear(self, words: list[str]) -> None:
        match words:
            case ["started", pid]:
                self.pid = int(pid)
                self._started.set_result(None)
            case ["failed", number]:
                self._started.set_exception(_not_started(self.name, int(number)))
            case ["exited", code, others]:
                self._ended.set_result(Ended(int(code), int(others)))
            case _:
                logger.warning("a warden said something unknown", program=self.name, words=words)


@contextlib.asynccontextmanager
async def spawn(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    stdin: bool = False,
    drain_stderr: bool = True,
    ladder: Ladder = DEFAULT_LADDER,
) -> AsyncIterator[Child]:
    """Run a program for the length of a block; when it is left, by whatever way, nothing of the run is alive.

    `cwd` is free of links, and the child enters exactly the folder that was found there, whatever its name leads to a moment
    later. `environment` is all the child sees. Without `stdin` it reads end of file. With `drain_stderr`
    its stderr is read all along and only the tail kept. Raises NotInstalled or Exited when it cannot be started.
    """
    name = Path(argv[0]).name
    ours, theirs = socket.socketpair()
    with theirs:
        control_in, control_out = await asyncio.open_unix_connection(sock=ours)
        try:
            orphans.become_reaper()
            warden, streams = await _start_warden(argv, theirs, cwd, environment, stdin)
        except BaseException:
            control_out.close()
            raise
    child = Child(name, ladder, control_out, warden, streams)
    try:
        await child._start(control_in, drain_stderr)
        yield child
    finally:
        await to_the_end(child._close())


async def _start_warden(
    argv: Sequence[str], control: socket.socket, cwd: Path, environment: Mapping[str, str], stdin: bool
) -> tuple[asyncio.SubprocessTransport, Streams]:
    loop = asyncio.get_running_loop()
    try:
        with open_folder(cwd) as folder:
            return await loop.subprocess_exec(
                lambda: Streams(loop),
                # Isolated and without site packages: nothing the child's folder or environment holds is run by the warden.
                *(BARE_INTERPRETER, "-I", "-S", "-E", str(_WARDEN), str(control.fileno()), *argv),
                stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=name_of(folder, cwd),
                env=environment,
                pass_fds=(control.fileno(),),
            )
    except CallerError as refusal:
        raise Exited(f"{argv[0]} could not be started: {refusal.message}") from refusal
    except OSError as error:
        raise Exited(f"{argv[0]} could not be started in {cwd}: {error.strerror or error}.") from error


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Work that a cancellation does not cut short, only follows. The work bounds its own time."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as cancellation:
            cancelled = cancellation
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()


def _not_started(name: str, number: int) -> NotInstalled | Exited:
    if number == errno.ENOENT:
        return NotInstalled(f"{name} was not found. Install it, or put its folder on the PATH.")
    return Exited(f"{name} could not be started: {os.strerror(number)}.")


async def _set_within(event: asyncio.Event, limit_s: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await event.wait()
    return event.is_set()

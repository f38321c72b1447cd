"""The one runner of child processes: every program Palaver starts, an agent's or a tool's, is started here.

Called by the backends that drive other programs and by the shell tool. Between this process and the program stands a
warden (`warden.py`), which ends the whole tree of a run, however its members hid (setsid, double fork, nohup, an ignored
SIGTERM): when told to, when the program itself ends, and when this process dies by any means. A command that no sandbox holds
can kill its warden. Then this process inherits what the run left (it is a child subreaper too) and ends it: whatever cleared
its environment, where the mark of the run stands, is still a child of this process in a session that is not its own.

That holds on Linux. On macOS only the program's own process group is ended: a child that left the group outlives the run,
and so it is said by `whole_tree_is_stopped()`.

It imports nothing of Palaver but errors, journal, warden and the lookup of programs, and knows neither logs nor conversations
nor what the programs mean. It must never hand a child this process's own environment: `allowed_environment` picks what a child
may see.
"""

import asyncio
import contextlib
import ctypes
import errno
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

from palaver.backends.program_lookup import FALLBACK_PATH
from palaver.backends.warden import children_lookup, descendants
from palaver.errors import Exited, NotInstalled, ProtocolBroken
from palaver.journal import Journal

T = TypeVar("T")
Stream = Literal["stdout", "stderr"]

MARK = "PALAVER_RUN"
"""The variable that marks every process of a run, found again in /proc/*/environ."""

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
"""How long after its last rung a warden may take to end before we look for the run's processes ourselves."""
GIVE_UP_S = 1.0
"""How long we wait after that. Then we go on; the warden stays until the last process is gone."""
SWEEP_LIMIT = 50
"""Rounds of the last resort: more than any fork bomb needs to lose, few enough to end within a second or so."""
SWEEP_PAUSE_S = 0.005
"""Between rounds: what was killed takes about as long to die."""
PR_SET_CHILD_SUBREAPER = 36

_ALLOWED = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}
)
_WARDEN = Path(__file__).with_name("warden.py")
_libc = ctypes.CDLL(None)
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
        self._pid: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # Not asserted: uvloop's transport is one without being a subclass.
        self._pid = cast(asyncio.SubprocessTransport, transport).get_pid()

    def process_exited(self) -> None:
        super().process_exited()
        _wardens.discard(self._pid)
        self.collected.set()


class Child:
    """A running program. Made by `spawn`, which also ends it."""

    def __init__(
        self,
        name: str,
        mark: str,
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
        self._mark = mark
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
        # Late: a loaded machine, a process stuck in the kernel, or a warden that its own run has stopped.
        with contextlib.suppress(ProcessLookupError):
            self._warden.send_signal(signal.SIGCONT)
        left = await asyncio.to_thread(_sweep, self._mark, self._warden.get_pid())
        if not await self._gone_within(GIVE_UP_S):
            logger.warning("a process could not be stopped so far", program=self.name, pids=left)

    async def _gone_within(self, limit_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._tree_gone.wait()
        return self._tree_gone.is_set()

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
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GIVE_UP_S):
                await self._streams.collected.wait()
        if self._streams.collected.is_set():
            self._warden.close()
        else:
            # Closing the whole would kill the warden, and with it the one who still hunts the run's processes.
            for pipe in map(self._warden.get_pipe_transport, range(3)):
                if pipe is not None:
                    pipe.close()

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
        if not self._ended.done():
            # Somebody killed the warden. The program died with it, but what it had started may live on.
            await asyncio.to_thread(_sweep, self._mark, self._warden.get_pid())
            self._ended.set_result(Ended(-signal.SIGKILL))
        self._tree_gone.set()

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

    `environment` is all the child sees, but for the run's mark. Without `stdin` it reads end of file. With `drain_stderr`
    its stderr is read all along and only the tail kept. Raises NotInstalled or Exited when it cannot be started.
    """
    mark = secrets.token_hex(16)
    name = Path(argv[0]).name
    ours, theirs = socket.socketpair()
    with theirs:
        control_in, control_out = await asyncio.open_unix_connection(sock=ours)
        try:
            with _wardens.starting():
                warden, streams = await _start_warden(argv, theirs, cwd, {**environment, MARK: mark}, stdin)
                _wardens.register(warden.get_pid())
        except BaseException:
            control_out.close()
            raise
    child = Child(name, mark, ladder, control_out, warden, streams)
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
        return await loop.subprocess_exec(
            lambda: Streams(loop),
            # Isolated and without site packages: nothing the child's folder or environment holds is run by the warden.
            *(sys.executable, "-I", "-S", "-E", str(_WARDEN), str(control.fileno()), *argv),
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env=environment,
            pass_fds=(control.fileno(),),
            start_new_session=True,
        )
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


def _sweep(mark: str, warden: int | None) -> list[int]:
    """The last resort, when a warden was killed or is late: kill what the run left until nothing else is found. What is left."""
    left: set[int] = set()
    if not Path("/proc/self/environ").exists():
        return []
    for _ in range(SWEEP_LIMIT):
        orphans = _wardens.orphans()
        left = {*_marked(f"{MARK}={mark}".encode("ascii")), *(orphans or ())} - {warden}
        if not left and orphans is not None:
            break
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        # Nothing but this process collects an orphan, and one that is not collected is found again.
        time.sleep(SWEEP_PAUSE_S)
        for pid in left:
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)
    return sorted(left - {None})


def _marked(mark: bytes) -> Iterator[int]:
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    yield int(process.name)


class _Wardens:
    """Registry of the wardens that live, and the search for processes that killed ones left to this process.

    A run's program begins a session of its own, and no process ever gets back into another. So a child of ours in a foreign
    session that is no warden was left by one. Other children of this process must stay in its session.
    """

    def __init__(self) -> None:
        self._pids: set[int] = set()
        self._begun = self._registered = 0
        self._others: set[int] | None = None
        """Children that look like orphans and were there before the first run: daemons of a container whose first process
        this is."""

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """Around a warden's start: until it is registered, it looks like an orphan."""
        if sys.platform == "linux":
            # At every start: a fork of this process does not inherit it.
            _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            if self._others is None:
                self._others = set(self._strangers(children_lookup()))
        self._begun += 1
        try:
            yield
        finally:
            self._registered += 1

    def register(self, pid: int) -> None:
        self._pids.add(pid)

    def discard(self, pid: int | None) -> None:
        if pid is not None:
            self._pids.discard(pid)

    def orphans(self) -> set[int] | None:
        """With everything below them. None while a warden is being started: it cannot be told apart."""
        begun = self._begun
        children_of = children_lookup()
        found: set[int] = set()
        for pid in self._strangers(children_of):
            if pid not in (self._others or ()):
                found |= {pid, *descendants(pid, children_of)}
        return found if begun == self._begun == self._registered else None

    def _strangers(self, children_of: Callable[[int], list[int]]) -> Iterator[int]:
        for pid in children_of(os.getpid()):
            with contextlib.suppress(OSError):
                if pid not in self._pids and os.getsid(pid) != os.getsid(0):
                    yield pid


_wardens = _Wardens()

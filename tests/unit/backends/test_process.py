"""The child-process runner: whatever a program starts is gone when its run ends, however the run ends."""

import asyncio
import json
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from palaver.backends.process import Child, Ended, Ladder, allowed_environment, spawn, whole_tree_is_stopped
from palaver.backends.warden import listed_children, scanned_children
from palaver.errors import Exited, NotInstalled, ProtocolBroken
from tests.unit.tools.workshop import processes_with

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not whole_tree_is_stopped(), reason="only Linux finds every descendant"),
]

LIMIT_S = 20.0
"""A bound for waits that take milliseconds; generous because machines are shared."""
GONE_WITHIN_S = 2.0
"""The promise: so long after a cancel, or after the server's own death, nobody of a run is alive."""
QUICK = Ladder(interrupt_s=0.05, terminate_s=0.05)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def tag() -> Iterator[str]:
    """Names the processes of one test; each inherits it in its environment. A failed test leaves none behind either."""
    tag = secrets.token_hex(8)
    yield tag
    for pid in alive(tag):
        os.kill(pid, signal.SIGKILL)


def alive(tag: str) -> list[int]:
    found: list[int] = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            marked = f"TEST_TAG={tag}".encode() in (process / "environ").read_bytes().split(b"\0")
            zombie = b") Z " in (process / "stat").read_bytes()
        except OSError:
            continue
        if marked and not zombie:
            found.append(int(process.name))
    return found


def daemons(number: str) -> list[str]:
    return [line for line in processes_with(number) if line.startswith("sleep")]


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[1])


def descriptor_count() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(condition: Callable[[], bool], limit_s: float) -> bool:
    """Look again and again, at most so long; the last answer."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit_s
    while not condition():
        if loop.time() > deadline:
            return False
        await asyncio.sleep(0.005)
    return True


@asynccontextmanager
async def running(
    argv: list[str], tag: str, *, stdin: bool = False, drain_stderr: bool = True, ladder: Ladder = QUICK
) -> AsyncIterator[Child]:
    environment = allowed_environment(os.environ, {"TEST_TAG": tag})
    async with asyncio.timeout(LIMIT_S):
        async with spawn(
            argv, cwd=Path("/"), environment=environment, stdin=stdin, drain_stderr=drain_stderr, ladder=ladder
        ) as child:
            yield child


def shell(command: str) -> list[str]:
    return ["/bin/sh", "-c", command]


def python(program: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", program]


async def read_lines(child: Child, count: int) -> None:
    seen = 0
    async for _ in child.lines():
        seen += 1
        if seen == count:
            return
    raise AssertionError(f"the program ended after {seen} of {count} lines")


STUBBORN = "trap '' TERM INT HUP; echo ready; while :; do sleep 1000; done"
DOUBLE_FORK = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("ready", flush=True)
        time.sleep(1000)
    os._exit(0)
time.sleep(1000)
"""
BOMB = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for depth in range(5):
    if os.fork() == 0:
        os.setsid()
    else:
        os.fork()
print("ready", flush=True)
time.sleep(1000)
"""
HOPPING = """
import os
print("ready", flush=True)
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
    os.close(os.open({beat!r}, os.O_CREAT))
"""
RESPAWNING = """
import os, signal, time
def again(number, frame):
    if os.fork() == 0:
        os.setsid()
signal.signal(signal.SIGTERM, again)
signal.signal(signal.SIGINT, again)
print("ready", flush=True)
while True:
    time.sleep(1000)
"""
FIRST_THREAD_GONE = """
import ctypes, os, threading, time
def on():
    print("ready", flush=True)
    time.sleep(1000)
if os.fork() == 0:
    os.setsid()
    threading.Thread(target=on).start()
    ctypes.CDLL(None).pthread_exit(None)
time.sleep(1000)
"""

HOSTILE: dict[str, tuple[list[str], int]] = {
    "plain": (shell("echo ready; sleep 1000"), 1),
    "ignored-signals": (shell(STUBBORN), 1),
    "setsid": (shell(f"setsid sh -c '{STUBBORN.replace(chr(39), chr(34))}' & wait"), 1),
    "nohup": (shell("nohup sleep 1000 >/dev/null 2>&1 & echo ready; wait"), 1),
    "double-fork": (python(DOUBLE_FORK), 1),
    "fork-bomb-of-depth-5": (python(BOMB), 3**5),
    "respawning": (python(RESPAWNING), 1),
    "first-thread-gone": (python(FIRST_THREAD_GONE), 1),
    "stopped": (shell("echo ready; kill -STOP $$"), 1),
}


@pytest.fixture(params=HOSTILE)
def hostile(request: pytest.FixtureRequest) -> tuple[list[str], int]:
    return HOSTILE[request.param]


async def test_leaving_a_run_ends_every_process_of_it(hostile: tuple[list[str], int], tag: str) -> None:
    argv, ready_count = hostile
    async with running(argv, tag) as child:
        await read_lines(child, ready_count)
        assert alive(tag), "the program; nobody but root may look into its warden"
    assert alive(tag) == []


async def test_cancelling_a_run_ends_every_process_of_it(hostile: tuple[list[str], int], tag: str) -> None:
    argv, ready_count = hostile
    ready = asyncio.Event()

    async def run() -> None:
        async with running(argv, tag, ladder=Ladder()) as child:
            await read_lines(child, ready_count)
            ready.set()
            await child.ended()

    task = asyncio.create_task(run())
    async with asyncio.timeout(LIMIT_S):
        await ready.wait()
    task.cancel()
    assert await until(lambda: alive(tag) == [], GONE_WITHIN_S)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_chain_of_forks_that_never_stands_still_is_ended(tag: str, tmp_path: Path) -> None:
    beat = tmp_path / "beat"
    async with running(python(HOPPING.format(beat=str(beat))), tag) as child:
        await read_lines(child, 1)
    # A look at /proc may miss it between two hops; a file that it no longer touches does not lie.
    beat.unlink(missing_ok=True)
    assert not await until(beat.exists, 0.2)
    assert alive(tag) == []


SERVER = """
import asyncio, json, os, sys
from pathlib import Path
from palaver.backends.process import spawn

async def main():
    argv, ready_count = json.loads(sys.argv[1])
    async with spawn(argv, cwd=Path("/"), environment=dict(os.environ)) as child:
        async for _ in child.lines():
            ready_count -= 1
            if ready_count == 0:
                print("ready", flush=True)

asyncio.run(main())
"""


async def test_server_killed_by_sigkill_leaves_no_process(hostile: tuple[list[str], int], tag: str) -> None:
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVER, json.dumps(hostile)),
        env=allowed_environment(os.environ, {"TEST_TAG": tag}),
        stdout=asyncio.subprocess.PIPE,
    )
    assert server.stdout is not None
    async with asyncio.timeout(LIMIT_S):
        assert await server.stdout.readline() == b"ready\n"
        server.send_signal(signal.SIGKILL)
        await server.wait()
    assert await until(lambda: alive(tag) == [], GONE_WITHIN_S)


async def test_second_cancellation_does_not_cut_the_stop_short(tag: str) -> None:
    ready = asyncio.Event()

    async def run() -> None:
        async with running(shell(STUBBORN), tag) as child:
            await read_lines(child, 1)
            ready.set()
            await child.ended()

    task = asyncio.create_task(run())
    async with asyncio.timeout(LIMIT_S):
        await ready.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert alive(tag) == []


async def test_run_cancelled_while_it_starts_leaves_no_process(tag: str) -> None:
    async def run() -> None:
        async with running(shell("sleep 1000"), tag):
            raise AssertionError("cancelled before")

    for steps in range(1, 12):
        task = asyncio.create_task(run())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await until(lambda: alive(tag) == [], GONE_WITHIN_S)


async def test_killed_warden_takes_its_run_along(tag: str) -> None:
    async with running(shell("setsid sleep 1000 & sleep 1000 & echo ready; wait"), tag) as child:
        await read_lines(child, 1)
        os.kill(parent_of(child.pid), signal.SIGKILL)
        assert await child.ended() == Ended(-signal.SIGKILL)
        assert await until(lambda: alive(tag) == [], GONE_WITHIN_S)


async def test_daemon_without_its_mark_ends_with_a_killed_warden_and_a_sibling_does_not(tag: str) -> None:
    number = str(10**9 + secrets.randbelow(10**9))
    daemon = f"(setsid env -i sleep {number} &) ; echo ready; sleep 1000"
    async with running(["cat"], tag, stdin=True) as sibling:
        own = await asyncio.create_subprocess_exec("sleep", "1000")
        async with running(shell(daemon), tag) as child:
            await read_lines(child, 1)
            assert await until(lambda: len(daemons(number)) == 1, GONE_WITHIN_S)
            os.kill(parent_of(child.pid), signal.SIGKILL)
            assert await child.ended() == Ended(-signal.SIGKILL)
        assert daemons(number) == []
        assert own.returncode is None, "a child of this process that it did not inherit"
        own.kill()
        await own.wait()
        await sibling.write(b"hello\n")
        await read_lines(sibling, 1)


async def test_warden_stopped_by_its_own_run_still_ends_it(tag: str) -> None:
    command = "read go; kill -STOP $PPID; setsid sleep 1000 & echo ready; sleep 1000"
    async with running(shell(command), tag, stdin=True) as child:
        await child.write(b"go\n")
        await read_lines(child, 1)
    assert alive(tag) == []


async def test_stopping_a_run_leaves_its_sibling_alone(tag: str) -> None:
    async with running(["cat"], tag, stdin=True) as sibling:
        async with running(shell("echo ready; sleep 1000"), tag) as child:
            await read_lines(child, 1)
            await child.stop()
        assert sibling.pid in alive(tag)
        await sibling.write(b"still here\n")
        await read_lines(sibling, 1)
    assert alive(tag) == []


async def test_program_may_clean_up_when_interrupted(tag: str, tmp_path: Path) -> None:
    note = tmp_path / "note"
    command = f"trap 'echo interrupted > {note}; exit 7' INT; echo ready; while :; do sleep 0.01; done"
    async with running(shell(command), tag, ladder=Ladder(interrupt_s=LIMIT_S, terminate_s=0)) as child:
        await read_lines(child, 1)
        await child.stop()
        assert await child.ended() == Ended(7)
    assert note.read_text() == "interrupted\n"


async def test_stopped_run_may_be_stopped_again(tag: str) -> None:
    async with running(shell(STUBBORN), tag) as child:
        await read_lines(child, 1)
        await child.stop()
        await child.stop()
        assert await child.ended() == Ended(-signal.SIGKILL)


async def test_background_process_ends_with_its_program_and_is_counted(tag: str) -> None:
    async with running(shell("setsid sleep 1000 & nohup sleep 1000 & exit 3"), tag, drain_stderr=False) as child:
        assert [chunk async for chunk in child.chunks() if chunk[0] == "stdout"] == []
        assert await child.ended() == Ended(3, stopped_count=2)
    assert alive(tag) == []


@pytest.mark.parametrize(("command", "code"), [("exit 0", 0), ("exit 42", 42), ("kill -TERM $$", -15)])
async def test_end_carries_the_programs_exit_code(command: str, code: int, tag: str) -> None:
    async with running(shell(command), tag) as child:
        assert await child.ended() == Ended(code)


async def test_lines_may_be_long_and_hold_other_line_separators(tag: str) -> None:
    program = r"import sys; sys.stdout.buffer.write(b'x' * 5_000_000 + b'\n\n\xe2\x80\xa8a\rb\x0c\x85\nend')"
    async with running(python(program), tag) as child:
        lines = [line async for line in child.lines()]
    assert [len(lines[0]), *lines[1:]] == [5_000_000, b"", b"\xe2\x80\xa8a\rb\x0c\x85", b"end"]


async def test_line_without_end_is_refused(tag: str) -> None:
    async with running(["cat", "/dev/zero"], tag) as child:
        with pytest.raises(ProtocolBroken, match="100,000"):
            _ = [line async for line in child.lines(limit_bytes=100_000)]


async def test_noisy_stderr_blocks_nothing_and_its_tail_is_kept(tag: str) -> None:
    program = "import sys; sys.stderr.write('noise ' * 200_000 + 'the reason'); sys.stderr.flush(); print('done')"
    async with running(python(program), tag) as child:
        assert [line async for line in child.lines()] == [b"done"]
    assert child.stderr_tail.endswith(b"the reason")
    assert len(child.stderr_tail) == 64 * 1024


async def test_chunks_carry_both_streams_to_their_end(tag: str) -> None:
    program = "import sys; print('o' * 300_000, flush=True); print('e' * 300_000, file=sys.stderr)"
    got = {"stdout": b"", "stderr": b""}
    async with running(python(program), tag, drain_stderr=False) as child:
        async for stream, chunk in child.chunks():
            got[stream] += chunk
    assert got == {"stdout": b"o" * 300_000 + b"\n", "stderr": b"e" * 300_000 + b"\n"}


async def test_program_reads_what_is_written_to_it(tag: str) -> None:
    async with running(["cat"], tag, stdin=True) as child:
        await child.write(b"one\ntwo\n")
        child.close_stdin()
        assert [line async for line in child.lines()] == [b"one", b"two"]
        assert await child.ended() == Ended(0)


async def test_program_without_stdin_reads_end_of_file(tag: str) -> None:
    async with running(["cat"], tag) as child:
        assert [line async for line in child.lines()] == []


async def test_writing_to_a_program_that_ended_is_harmless(tag: str) -> None:
    async with running(["true"], tag, stdin=True) as child:
        await child.ended()
        for _ in range(3):
            await child.write(b"x" * 200_000)


async def test_missing_program_says_what_to_do(tag: str) -> None:
    with pytest.raises(NotInstalled, match=r"no-such-program was not found\. Install it"):
        async with running(["no-such-program"], tag):
            raise AssertionError("it cannot run")
    assert alive(tag) == []


async def test_program_that_may_not_be_run_says_why(tag: str, tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("no program")
    with pytest.raises(Exited, match=r"plain\.txt could not be started: Permission denied"):
        async with running([str(tmp_path / "plain.txt")], tag):
            raise AssertionError("it cannot run")


async def test_missing_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(Exited, match=r"could not be started: .*/gone cannot be opened: No such file"):
        async with spawn(["true"], cwd=tmp_path / "gone", environment={}):
            raise AssertionError("it cannot run")


async def test_child_leads_a_session_of_its_own_with_default_signals(tag: str) -> None:
    async with running(["grep", "-E", "^(NSsid|SigIgn|SigBlk)", "/proc/self/status"], tag) as child:
        status = dict([line.decode().split(":\t") async for line in child.lines()])
        assert status["NSsid"] == str(child.pid)
        # Only the signals a program can set: the C library keeps 32 and 33 for itself, however they were inherited.
        assert [int(status[kind], 16) & (1 << 31) - 1 for kind in ("SigIgn", "SigBlk")] == [0, 0]


async def test_child_holds_no_descriptor_of_ours(tag: str) -> None:
    async with running(shell("ls /proc/$$/fd; sleep 0"), tag) as child:
        assert [line async for line in child.lines()] == [b"0", b"1", b"2"]


async def test_runs_leave_no_descriptor_and_no_task_behind(tag: str) -> None:
    async def once() -> None:
        async with running(shell("echo out; echo err >&2; sleep 1000"), tag) as child:
            await read_lines(child, 1)

    await once()
    descriptors, tasks = descriptor_count(), len(asyncio.all_tasks())
    for _ in range(10):
        await once()
    assert await until(lambda: descriptor_count() == descriptors, LIMIT_S)
    assert len(asyncio.all_tasks()) == tasks


async def test_both_ways_to_find_children_find_the_same(tag: str) -> None:
    async with running(shell("sleep 1000 & setsid sleep 1000 & echo ready; wait"), tag) as child:
        await read_lines(child, 1)
        for pid in (child.pid, parent_of(child.pid), os.getpid()):
            assert sorted(listed_children(pid)) == sorted(scanned_children()(pid))
        assert len(listed_children(child.pid)) == 2


def test_allowed_environment_holds_no_secret_and_nothing_of_ours() -> None:
    environment = {
        "PATH": "/bin",
        "HOME": "/home/ada",
        "LC_ALL": "C",
        "TERM": "xterm",
        "OPENAI_API_KEY": "k",
        "GITHUB_TOKEN": "t",
        "PALAVER_DATA": "d",
        "PYTHONPATH": "p",
        "LD_PRELOAD": "l",
    }
    assert allowed_environment(environment, {"EXTRA": "1"}) == {
        "PATH": "/bin",
        "HOME": "/home/ada",
        "LANG": "C.UTF-8",
        "LC_ALL": "C",
        "TERM": "dumb",
        "EXTRA": "1",
    }

"""The warden: a tiny program that stands between the server and one child, so that no process of a run outlives it.

Started by `process.py` as `python -I -S -E warden.py FD PROGRAM ARGUMENT…` with the child's own folder, environment and
standard streams; FD is a socket to the server. It imports nothing of Palaver and as little else as it can: every run
waits for it (about 10 ms above a bare interpreter's start).

On Linux it is a *child subreaper*: whatever its descendants do (setsid, double fork, nohup), an orphan among them becomes
its child. Hence "no child left" (ECHILD) means that nobody of the run is alive, and a walk of /proc by parent links, again
and again until then, finds them all. Two things start the stop ladder (interrupt, terminate, kill): the server's word, and the
end of the program while others of its tree live on. The end of the server, seen as end of file on FD, starts its last rung:
nobody is left to see that the ladder is not climbed to its end.

A run may be able to signal its warden. Whom it kills or pins is replaced by the server, which is a subreaper too and becomes
the parent of all it left (`orphans.py`); the server's own end wakes a warden that was stopped. A program that kills both lives
on: nothing that runs as the same user can keep it from that.

On other systems there is neither: the warden ends the program's own process group, and what left that group stays.

It is told, one line each, `go` (before that nothing runs) and `stop INTERRUPT_MS TERMINATE_MS`; it says `started PID`,
`failed ERRNO`, `exited CODE OTHERS`. It must never end while a descendant lives, and never signal anything else.
"""

# pathlib and contextlib would double the time to start.
# ruff: noqa: PTH110, PTH123, PTH208, S606, SIM105

import ctypes
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# By number, not from `signal`: that import (enum and all it needs) would cost as much as all the others together.
SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGPIPE, SIGTERM = 1, 2, 3, 9, 13, 15
LINUX = sys.platform == "linux"
SIGCONT, SIGSTOP, SIGXFSZ = (18, 19, 25) if LINUX else (19, 17, 25)
SIG_DFL, SIG_IGN = 0, 1
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36

IDLE_S = 1.0
"""How long an orphan's zombie may wait to be reaped while nothing is being stopped."""
BLIND_S = 0.05
"""The same where the kernel cannot wake us for a program's end."""
STOPPING_S = 0.01
"""Between looks while the tree is being stopped: short against the 2 s within which nothing may be left."""
SETTLE_S = 0.25
"""Between a program's end and the count of those it left: what is ending by itself is not left behind."""
KILLING_S = 0.002
"""Between looks once SIGKILL is due; who is dying takes about as long."""
STUBBORN_AFTER_S = 5.0
STUBBORN_S = 0.2
"""Between looks at a process that survived SIGKILL for seconds: stuck in the kernel, or another user's."""
REAPED_AT_ONCE = 1000
FREEZE_ROUNDS = 20
"""Looks for somebody new before those found are killed; a chain of forks that outruns them all is looked at again."""
GRACE_S = 0.3
"""What processes get to end by themselves when nobody said how long: long enough to remove a lock file."""

_libc = ctypes.CDLL(None)


class Warden:
    def __init__(self, control: int, program: int) -> None:
        self._control = control
        self._program = program
        self._code: int | None = None
        self._code_said = False
        self._settled_at = float("inf")
        self._terminated = False
        self._terminate_at = self._kill_at = float("inf")
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._pidfd: int | None = None
        if LINUX:
            self._pidfd = os.pidfd_open(program)
            self._poll.register(self._pidfd, select.POLLIN)

    def watch(self) -> None:
        """Returns once the program and everything it started are gone."""
        while self._reap():
            ready = self._poll.poll(self._pause_s() * 1000)
            if any(fd == self._control for fd, _ in ready):
                self._listen()
            if time.monotonic() >= self._settled_at and not self._code_said:
                self._say_code(sum(runs(pid) for pid in _descendants()))
                # What a program leaves behind ends with it: nobody would ever stop it later.
                self._stop(0, GRACE_S)
            self._climb()
        if not self._code_said:
            self._say_code(0)

    def _reap(self) -> bool:
        """Collect the dead. Is anybody left?"""
        # Not without end: a chain of forks that exit at once dies as fast as we can count.
        for _ in range(REAPED_AT_ONCE):
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._program:
                self._program_ended(os.waitstatus_to_exitcode(status))
        return True

    def _program_ended(self, code: int) -> None:
        self._code = code
        self._settled_at = time.monotonic() + SETTLE_S
        if self._pidfd is not None:
            self._poll.unregister(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _say_code(self, others: int) -> None:
        self._code_said = True
        say(self._control, f"exited {self._code} {others}")

    def _listen(self) -> None:
        try:
            words = os.read(self._control, 4096)
        except OSError:
            # Reset: the server died before it had read all that was said to it.
            words = b""
        if not words:
            self._poll.unregister(self._control)
            self._stop(0, 0)
        for line in words.decode("ascii").splitlines():
            _, interrupt_ms, terminate_ms = line.split()
            self._stop(int(interrupt_ms) / 1000, int(terminate_ms) / 1000)

    def _stop(self, interrupt_s: float, terminate_s: float) -> None:
        """Begin the ladder, or hurry one that has begun: of two deadlines the earlier counts."""
        now = time.monotonic()
        if self._kill_at == float("inf") and interrupt_s > 0 and self._code is None:
            _signal_group(self._program, SIGINT)
        self._terminate_at = min(self._terminate_at, now + interrupt_s)
        self._kill_at = min(self._kill_at, now + interrupt_s + terminate_s)

    def _climb(self) -> None:
        now = time.monotonic()
        if now >= self._kill_at:
            if LINUX:
                end_all(_descendants)
            else:
                _signal_group(self._program, SIGKILL)
        elif now >= self._terminate_at and not self._terminated:
            self._terminated = True
            self._signal_all(SIGTERM)
            # A stopped process takes its SIGTERM only once it goes on.
            self._signal_all(SIGCONT)

    def _pause_s(self) -> float:
        now = time.monotonic()
        if self._kill_at == self._settled_at == float("inf"):
            return IDLE_S if LINUX else BLIND_S
        if now < self._kill_at:
            return STOPPING_S
        return KILLING_S if now < self._kill_at + STUBBORN_AFTER_S else STUBBORN_S

    def _signal_all(self, number: int) -> None:
        if LINUX:
            _signal_each(_descendants(), number)
        else:
            _signal_group(self._program, number)


def end_all(find: "Callable[[], Iterator[int]]") -> bool:
    """Stop all that are found until nobody new is, then kill them: who is stopped can neither fork nor answer the death of
    another. Was anybody found?"""
    stopped: set[int] = set()
    for _ in range(FREEZE_ROUNDS):
        found = _signal_each(find(), SIGSTOP)
        if found <= stopped:
            break
        stopped |= found
    _signal_each(find(), SIGKILL)
    return bool(stopped)


def _signal_each(processes: "Iterator[int]", number: int) -> set[int]:
    """Each as soon as it is found. Who was found."""
    own_group = os.getpgrp()
    found: set[int] = set()
    for pid in processes:
        found.add(pid)
        try:
            group = os.getpgid(pid)
            os.kill(pid, number)
        except OSError:
            continue
        # Its group too: the kernel signals a whole group at once, so nobody in it can fork out of the way. It holds
        # no stranger, because the program began a session of its own.
        if group not in (0, 1, own_group):
            _signal_group(group, number)
    return found


def _descendants() -> "Iterator[int]":
    """Everybody below this process, each as soon as it is found: who forks and exits is gone a moment later.

    Zombies are among them: a process whose first thread has ended looks like one and can still fork.
    """
    if LINUX:
        yield from descendants(os.getpid(), children_lookup())


def children_lookup() -> "Callable[[int], list[int]]":
    listed = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
    return listed_children if listed else scanned_children()


def descendants(process: int, children_of: "Callable[[int], list[int]]") -> "Iterator[int]":
    waiting = [process]
    while waiting:
        for child in children_of(waiting.pop()):
            yield child
            waiting.append(child)


def listed_children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, _contents(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:
        pass
    return found


def scanned_children() -> "Callable[[int], list[int]]":
    """The same for kernels built without lists of children: from everybody's word on their parent."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            children.setdefault(int(_stat(int(name))[1]), []).append(int(name))
        except OSError:
            continue
    return lambda pid: children.get(pid, [])


def runs(pid: int) -> bool:
    try:
        return _stat(pid)[0] != b"Z"
    except OSError:
        return False


def _stat(pid: int) -> list[bytes]:
    """State, parent and more. The command's name, in brackets, may hold anything; what follows its last one is plain."""
    stat = _contents(f"/proc/{pid}/stat")
    return stat[stat.rindex(b")") + 2 :].split()


def _contents(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def say(control: int, line: str) -> None:
    try:
        os.write(control, f"{line}\n".encode("ascii"))
    except OSError:
        pass


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except OSError:
        pass


def _become(argv: list[str], control: int, failed: int) -> None:
    """In the forked child: turn into the program, or tell why not."""
    try:
        os.close(control)
        os.setsid()
        if LINUX:
            _libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
        # A server that a shell put into the background ignores some of them; what it starts must not.
        for number in (SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ):
            _libc.signal(number, SIG_DFL)
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(failed, str(error.errno).encode("ascii"))
    finally:
        os._exit(127)


def main() -> None:
    control, argv = int(sys.argv[1]), sys.argv[2:]
    # In the server's session, which tells it from what a run left (`orphans.py`), but out of reach of its terminal's keys.
    os.setpgid(0, 0)
    if LINUX:
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # A run may have stopped its warden; the server's end makes it go on.
        _libc.prctl(PR_SET_PDEATHSIG, SIGCONT, 0, 0, 0)
        # Nobody but root may trace it, and so hold it still.
        _libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    for number in (SIGHUP, SIGINT, SIGTERM):
        _libc.signal(number, SIG_IGN)
    if os.read(control, 3) != b"go\n":
        return
    why, failed = os.pipe()
    program = os.fork()
    if program == 0:
        _become(argv, control, failed)
    os.close(failed)
    # The program alone holds its streams, so that their end is seen; its folder is free to be removed.
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.chdir("/")
    errno = os.read(why, 16).decode("ascii")
    say(control, f"failed {errno}" if errno else f"started {program}")
    Warden(control, program).watch()
    # Nothing to tidy up, and the server waits for this end.
    os._exit(0)


if __name__ == "__main__":
    main()

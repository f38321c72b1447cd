"""The warden: a tiny program that stands between the server and one child, so that no process of a run outlives it.

Started by `process.py` as `python -I -S -E warden.py FD PROGRAM ARGUMENT…` with the child's own folder, environment and
standard streams; FD is a socket to the server. It imports nothing of Palaver and as little else as it can: every run
waits for it (about 10 ms above a bare interpreter's start).

On Linux it is a *child subreaper*: whatever its descendants do (setsid, double fork, nohup), an orphan among them becomes
its child. Hence "no child left" (ECHILD) means that nobody of the run is alive, and a walk of /proc by parent links finds
them all. Three things start the stop ladder (interrupt, terminate, kill): the server's word, the end of the program while
others of its tree live on, and the end of the server, seen as end of file on FD.

On other systems there is neither: the warden ends the program's own process group, and what left that group stays.

It is told, one line each, `go` (before that nothing runs) and `stop INTERRUPT_MS TERMINATE_MS`; it says `started PID`,
`failed ERRNO`, `exited CODE OTHERS`. It must never end while a descendant lives, and never signal anything else.
"""

# pathlib and contextlib would double the time to start.
# ruff: noqa: PTH123, PTH208, S606, SIM105

import ctypes
import os
import select
import sys
import time

# By number, not from `signal`: that import (enum and all it needs) would cost as much as all the others together.
SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGTERM = 1, 2, 9, 13, 15
LINUX = sys.platform == "linux"
SIGCONT, SIGXFSZ = (18, 25) if LINUX else (19, 25)
SIG_DFL, SIG_IGN = 0, 1
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

IDLE_S = 1.0
"""How long an orphan's zombie may wait to be reaped while nothing is being stopped."""
BLIND_S = 0.05
"""The same where the kernel cannot wake us for a program's end."""
STOPPING_S = 0.01
"""Between looks while the tree is being stopped: short against the 2 s within which nothing may be left."""
SETTLE_S = 0.05
"""Between a program's end and the count of those it left: what is ending by itself is not left behind."""
STUBBORN_S = 0.2
"""Between looks at a process that survived SIGKILL for two seconds: stuck in the kernel, or another user's."""
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
                self._say_code(sum(state != b"Z" for _, _, state in _descendants()) if LINUX else 0)
                # What a program leaves behind ends with it: nobody would ever stop it later.
                self._stop(0, GRACE_S)
            self._climb()
        if not self._code_said:
            self._say_code(0)

    def _reap(self) -> bool:
        """Collect the dead. Is anybody left?"""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._program:
                self._program_ended(os.waitstatus_to_exitcode(status))

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
            self._stop(0, GRACE_S)
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
            self._signal_all(SIGKILL)
        elif now >= self._terminate_at and not self._terminated:
            self._terminated = True
            self._signal_all(SIGTERM)
            # A stopped process takes its SIGTERM only once it goes on.
            self._signal_all(SIGCONT)

    def _pause_s(self) -> float:
        if self._kill_at == self._settled_at == float("inf"):
            return IDLE_S if LINUX else BLIND_S
        return STUBBORN_S if time.monotonic() > self._kill_at + 2 else STOPPING_S

    def _signal_all(self, number: int) -> None:
        if not LINUX:
            _signal_group(self._program, number)
            return
        found = _descendants()
        # Groups first: the kernel signals a whole group at once, so nobody in it can fork out of the way. No group of a
        # descendant holds a stranger, because the program began a session of its own.
        for group in {group for _, group, _ in found if group > 1} - {os.getpgrp()}:
            _signal_group(group, number)
        for pid, _, _ in found:
            _signal_one(pid, number)


def _descendants() -> list[tuple[int, int, bytes]]:
    """Everybody below this process as (pid, process group, state), parents before children.

    Zombies are among them: a process whose first thread has ended looks like one and can still fork.
    """
    children: dict[int, list[tuple[int, int, bytes]]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                stat = file.read()
        except OSError:
            continue
        # The command's name, in brackets, may hold anything; what follows its last bracket is plain.
        state, parent, group = stat[stat.rindex(b")") + 2 :].split(b" ", 3)[:3]
        children.setdefault(int(parent), []).append((int(name), int(group), state))
    found = list(children.get(os.getpid(), ()))
    for pid, _, _ in found:
        found.extend(children.get(pid, ()))
    return found


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


def _signal_one(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def _become(argv: list[str], control: int, failed: int) -> None:
    """In the forked child: turn into the program, or tell why not."""
    try:
        os.close(control)
        os.setsid()
        if LINUX:
            _libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
        for number in (SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGXFSZ):
            _libc.signal(number, SIG_DFL)
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(failed, str(error.errno).encode("ascii"))
    finally:
        os._exit(127)


def main() -> None:
    control, argv = int(sys.argv[1]), sys.argv[2:]
    if LINUX:
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
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

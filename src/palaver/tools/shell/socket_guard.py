"""A tiny program that runs another and decides to which Unix sockets it may connect: those in the folders it may write.

Started by the sandbox, inside of it, as `python -I -S -E socket_guard.py [--reach FOLDER]… [--hide PATH]… -- PROGRAM ARGUMENT…`.
What listens at a Unix socket is a program outside (a terminal multiplexer, a session bus, a container service) that does what it
is told, without any sandbox. Neither a read-only mount nor Landlock keeps anybody from such a socket, and names in
/proc/net/unix do not tell where it lies.

The kernel (seccomp) hands each connect of the program and of everything it starts to this process, which reads the address, opens
the place it names, looks where that lies, and connects the program's own socket to exactly what it opened. No call goes on by
itself, so nothing can be exchanged between the look and the connection. Datagram sockets, which need no connection, and io_uring,
which asks nobody, are refused. Without any folder to reach, or where the kernel does not let this process decide, no Unix socket
can be made at all. socketpair works everywhere.

It imports nothing of Palaver and little else, because every command waits for it. It must never let a connect go on undecided,
and never run the program without the filter: any failure ends it with 125 and a sentence.
"""

# contextlib, pathlib, signal and socket would double the time to start.
# ruff: noqa: PTH115, PTH123, S606, SIM105

import _signal  # type: ignore[import-not-found]  # `signal` brings enum along, which takes longer than all the rest
import _thread
import ctypes
import errno
import fcntl
import os
import select
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    Condition = tuple[int, int, int]
    Rule = tuple[Sequence[Condition], int]

# Of each machine: the audit architecture; socket, connect, socketpair, seccomp; and of its 32-bit programs the architecture and
# the calls that are refused to them altogether (socketcall and socket, socketpair, connect), because nothing looks at theirs.
MACHINES = {
    "x86_64": (0xC000003E, (41, 42, 53, 317), 0x40000003, (102, 359, 360, 362)),
    "aarch64": (0xC00000B7, (198, 203, 199, 277), 0x40000028, (102, 281, 283, 288)),
    "riscv64": (0xC00000F3, (198, 203, 199, 277), 0, ()),
}
IO_URING_SETUP, PIDFD_GETFD = 425, 438
X32 = 0x40000000
"""Of x86_64: the same calls once more, under other numbers."""

NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
"""Where a filter finds them."""
LOAD, EQUAL, AT_LEAST, AND, RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
EQUAL_MASKED = -1
"""No instruction but two: the flags beside a socket's type are left out."""
ALLOW, REFUSE, DECIDE = 0x7FFF0000, 0x00050000, 0x7FC00000
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 36, 38
SET_FILTER, NEW_LISTENER, WAIT_KILLABLE = 1, 1 << 3, 1 << 5
RECEIVE, ANSWER, IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
REQUEST, RESPONSE = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")

AF_UNIX, SOCK_STREAM, SOCK_SEQPACKET, TYPE_MASK = 1, 1, 5, 0xF
SOL_SOCKET, SO_DOMAIN = 1, 39
ADDRESS_LIMIT = 128
"""Of every kind of address."""
SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGHUP, SIGXFSZ = 2, 3, 13, 15, 1, 25
SUPERVISED, CLOSED = b"s", b"c"
IDLE_MS = 1000
"""How long an orphan's zombie may wait to be collected."""
REFUSED = 125

_libc = ctypes.CDLL(None, use_errno=True)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def assemble(machine: str, supervised: bool) -> bytes:
    """The filter: rules in order, of which the first that fits decides."""
    own, (socket, connect, socketpair, _), foreign, foreign_calls = MACHINES[machine]
    refuse, missing = REFUSE | errno.EACCES, REFUSE | errno.ENOSYS
    is_unix = (EQUAL, ARGUMENTS, AF_UNIX)
    is_stream = (EQUAL_MASKED, ARGUMENTS + 8, SOCK_STREAM), (EQUAL_MASKED, ARGUMENTS + 8, SOCK_SEQPACKET)
    allowed = (socketpair, socket) if supervised else (socketpair,)
    native: list[Rule] = [
        ([(AT_LEAST, NUMBER, X32)], missing),
        # Programs do without it where it is missing.
        ([(EQUAL, NUMBER, IO_URING_SETUP)], missing),
        *(([(EQUAL, NUMBER, call), is_unix, kind], ALLOW) for call in allowed for kind in is_stream),
        *(([(EQUAL, NUMBER, call), is_unix], refuse) for call in (socket, socketpair)),
        *([([(EQUAL, NUMBER, connect)], DECIDE)] if supervised else []),
        ([], ALLOW),
    ]
    rules: list[Rule] = [([(EQUAL, ARCHITECTURE, own), *conditions], action) for conditions, action in native]
    if foreign:
        is_foreign = (EQUAL, ARCHITECTURE, foreign)
        rules += [([is_foreign, (EQUAL, NUMBER, call)], refuse) for call in (*foreign_calls, IO_URING_SETUP)]
        rules.append(([is_foreign], ALLOW))
    return b"".join(_assemble_rule(*rule) for rule in (*rules, ([], missing)))


def _assemble_rule(conditions: "Sequence[Condition]", action: int) -> bytes:
    said: list[tuple[int, int]] = []
    for operation, offset, value in conditions:
        masked = [(AND, TYPE_MASK)] if operation == EQUAL_MASKED else []
        said += [(LOAD, offset), *masked, (AT_LEAST if operation == AT_LEAST else EQUAL, value)]
    said.append((RETURN, action))
    # A condition that does not hold jumps behind the rule.
    return b"".join(
        struct.pack("=HBBI", code, 0, len(said) - at - 1 if code in (EQUAL, AT_LEAST) else 0, value)
        for at, (code, value) in enumerate(said)
    )


def install(supervised: bool) -> int:
    """The filter, for this process and all it will ever start. What listens to it, where calls are to be decided."""
    machine = os.uname().machine
    written = assemble(machine, supervised)
    program = Program(len(written) // 8, written)
    if _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "privileges could not be given up")
    # The second from Linux 5.19 on: whose connect is being made is not interrupted in the middle of it.
    for flags in (NEW_LISTENER | WAIT_KILLABLE, NEW_LISTENER) if supervised else (0,):
        listener: int = _libc.syscall(
            ctypes.c_long(MACHINES[machine][1][3]),
            ctypes.c_uint(SET_FILTER),
            ctypes.c_uint(flags),
            ctypes.byref(program),
        )
        if listener >= 0:
            return listener
    raise OSError(ctypes.get_errno(), f"no filter can be had: {os.strerror(ctypes.get_errno())}")


class Guard:
    """Decides and makes the connections of a program."""

    def __init__(self, listener: int, reached: "Sequence[str]", hidden: "Sequence[str]") -> None:
        self._listener = listener
        self._reached = reached
        self._hidden = hidden

    def receive(self) -> None:
        request = bytearray(REQUEST.size)
        try:
            fcntl.ioctl(self._listener, RECEIVE, request)
        except OSError:
            return  # Whoever called is gone.
        try:
            # A connection may take minutes.
            _thread.start_new_thread(self._settle, (request,))
        except RuntimeError:
            self._answer(request, errno.EAGAIN)

    def _settle(self, request: bytearray) -> None:
        try:
            error = self._connect(request)
        except OSError as failure:
            error = failure.errno or errno.EACCES
        except (ValueError, OverflowError):
            error = errno.EFAULT
        self._answer(request, error)

    def _answer(self, request: bytearray, error: int) -> None:
        try:
            fcntl.ioctl(self._listener, ANSWER, RESPONSE.pack(REQUEST.unpack(request)[0], 0, -error, 0))
        except OSError:
            pass

    def _connect(self, request: bytearray) -> int:
        call, thread, _, _, _, _, descriptor, at, length, *_ = REQUEST.unpack(request)
        if not 0 < length <= ADDRESS_LIMIT:
            return errno.EINVAL
        address = _memory(thread, at, length)
        with _Owned(os.pidfd_open(_process_of(thread))) as process:
            taken = _libc.syscall(ctypes.c_long(PIDFD_GETFD), process, ctypes.c_int(descriptor & 0xFFFFFFFF), 0)
            if taken < 0:
                return ctypes.get_errno()
        with _Owned(taken) as socket:
            # Until here its number may have become another process's.
            fcntl.ioctl(self._listener, IS_VALID, struct.pack("=Q", call))
            if _family(socket) != AF_UNIX or not _has_path(address):
                return _connected(socket, address)
            with _Owned(_open(thread, address[2:].split(b"\0", 1)[0])) as place:
                if not self._may_reach(os.readlink(f"/proc/self/fd/{place}")):
                    return errno.EACCES
                return _connected(socket, struct.pack("=H", AF_UNIX) + b"/proc/self/fd/%d\0" % place)

    def _may_reach(self, path: str) -> bool:
        around = [folder for folder in self._reached if _lies_in(path, folder)]
        return any(not any(_lies_in(path, one) and _lies_in(one, folder) for one in self._hidden) for folder in around)


class _Owned:
    """A descriptor for the length of a block."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _memory(thread: int, at: int, length: int) -> bytes:
    with _Owned(os.open(f"/proc/{thread}/mem", os.O_RDONLY | os.O_CLOEXEC)) as memory:
        read = os.pread(memory, length, at)
    if len(read) != length:
        raise OSError(errno.EFAULT, "")
    return read


def _process_of(thread: int) -> int:
    with open(f"/proc/{thread}/status", "rb") as status:
        for line in status:
            if line.startswith(b"Tgid:"):
                return int(line.split()[1])
    raise OSError(errno.ESRCH, "")


def _family(socket: int) -> int:
    family, size = ctypes.c_int(-1), ctypes.c_uint(4)
    if _libc.getsockopt(socket, SOL_SOCKET, SO_DOMAIN, ctypes.byref(family), ctypes.byref(size)):
        raise OSError(ctypes.get_errno(), "")
    return family.value


def _has_path(address: bytes) -> bool:
    """What has none is abstract, or refused by the kernel."""
    return address[:2] == struct.pack("=H", AF_UNIX) and address[2:3] not in (b"", b"\0")


def _open(thread: int, path: bytes) -> int:
    """What a path means to the one who calls."""
    if path.startswith(b"/proc/self/"):
        path = b"/proc/%d/" % thread + path.removeprefix(b"/proc/self/")
    with _Owned(os.open(f"/proc/{thread}/cwd", os.O_PATH | os.O_CLOEXEC)) as folder:
        return os.open(path, os.O_PATH | os.O_CLOEXEC, dir_fd=folder)


def _connected(socket: int, address: bytes) -> int:
    return ctypes.get_errno() if _libc.connect(socket, address, ctypes.c_uint(len(address))) else 0


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _put_on(told: int, tell: int) -> None:
    """The filter, in the child, and the word that somebody is there to decide."""
    listener = b""
    if os.read(told, 1) == SUPERVISED:
        try:
            listener = b"%d" % install(True)
        except OSError:
            pass  # Another listener is above this process, or the kernel is too old.
    if not listener:
        install(False)
    os.write(tell, listener or CLOSED)
    if not os.read(told, 1):
        raise OSError("nobody is there to decide on its sockets")


def _turn_into(argv: list[str], prepare: "Callable[[], object]") -> "NoReturn":
    try:
        prepare()
        # The interpreter ignores some of them, the guard others, and what this becomes would too.
        for number in (SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ):
            _signal.signal(number, _signal.SIG_DFL)
        os.execvp(argv[0], argv)
    except (OSError, KeyError) as failure:
        os.write(2, f"{argv[0]} was not run: {failure}\n".encode())
    finally:
        os._exit(REFUSED)


def _supervise(program: int, guard: "Guard | None", listener: int) -> int:
    """Until the program ends; how it did."""
    poll = select.poll()
    poll.register(os.pidfd_open(program), select.POLLIN)
    if guard is not None:
        poll.register(listener, select.POLLIN)
    while True:
        for descriptor, event in poll.poll(IDLE_MS):
            if guard is not None and descriptor == listener:
                if event & select.POLLIN:
                    guard.receive()
                else:
                    poll.unregister(listener)
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == program:
                    return ended[1]
        except ChildProcessError:
            return 0


def _take(program: int, descriptor: int) -> int:
    with _Owned(os.pidfd_open(program)) as process:
        return int(_libc.syscall(ctypes.c_long(PIDFD_GETFD), process, ctypes.c_int(descriptor), 0))


def main() -> None:
    words = sys.argv[1:]
    end = words.index("--")
    given: dict[str, list[str]] = {"--reach": [], "--hide": []}
    for flag, path in zip(words[:end:2], words[1:end:2], strict=True):
        given[flag].append(path)
    argv = words[end + 1 :]
    if not given["--reach"]:
        # Nothing will have to be decided.
        _turn_into(argv, lambda: install(False))
    told, instruct = os.pipe()
    hear, tell = os.pipe()
    # The parent of all it decides for: some kernels let nobody else take another's descriptor.
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    program = os.fork()
    if program == 0:
        os.close(instruct)
        os.close(hear)
        _turn_into(argv, lambda: _put_on(told, tell))
    os.close(told)
    os.close(tell)
    # What it decides for must not take it over, nor hold it; and the signals are for the program, which is in the same group.
    _libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    for number in (SIGHUP, SIGINT, SIGQUIT, SIGTERM):
        _signal.signal(number, _signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.chdir("/")
    if able := (taken := _take(program, 0)) >= 0:
        os.close(taken)
    os.write(instruct, SUPERVISED if able else CLOSED)
    said = os.read(hear, 16)
    guard, listener = None, -1
    if said.isdigit():
        listener = _take(program, int(said))
        if listener < 0:
            os._exit(REFUSED)
        guard = Guard(listener, given["--reach"], given["--hide"])
    if said:
        os.write(instruct, b"x")
    os.close(instruct)
    status = os.waitstatus_to_exitcode(_supervise(program, guard, listener))
    if status < 0:
        # As the program did: who started this looks at how it ended.
        if -status in (SIGHUP, SIGINT, SIGQUIT, SIGTERM):
            _signal.signal(-status, _signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status & 0xFF)


if __name__ == "__main__":
    main()

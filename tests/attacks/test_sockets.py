"""Unix sockets of programs outside a sandbox: whatever their name, and however a command goes about it, none can be reached.

What a command binds in its own folders works as everywhere.
"""

import json
import os
import platform
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from palaver.backends.process import spawn
from palaver.tools.shell.shell import Shell
from palaver.tools.shell.socket_guard import MACHINES
from tests.levels import Level, levels_of_run, sandbox_of
from tests.unit.tools.workshop import Workshop

pytestmark = pytest.mark.anyio

LEVELS: list[Level] = [level for level in levels_of_run() if level != "none"] or ["none"]

NAMES = ("absolute", "relative", "renamed", "linked", "of another network", "with\nnewline", "later")
WAYS = r"""
import ctypes, json, mmap, os, socket, struct, sys, threading, time
outside, names = sys.argv[1], json.loads(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
reached = []

def hears(one):
    one.settimeout(5)
    return one.recv(99) == b"served"

def stream(address):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(address)
        return hears(one)

def entered(name):
    before = os.open(".", os.O_RDONLY)
    os.chdir(outside)
    try:
        return stream(name)
    finally:
        os.fchdir(before)

def linked(name):
    os.symlink(f"{outside}/{name}", "link")
    try:
        return stream("link")
    finally:
        os.unlink("link")

def taken_along(name):
    os.link(f"{outside}/{name}", "taken")
    return stream("taken")

def renamed(name):
    os.rename(f"{outside}/{name}", "moved")
    return stream("moved")

def through_descriptor(name):
    folder = os.open(outside, os.O_PATH)
    return stream(f"/proc/self/fd/{folder}/{name}")

def packets(name):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.connect(f"{outside}/{name}")
        return hears(one)

ways = {
    "absolute": lambda name: stream(f"{outside}/{name}"),
    "relative": lambda name: stream(os.path.relpath(f"{outside}/{name}")),
    "entered": entered,
    "symbolic link": linked,
    "hard link": taken_along,
    "descriptor": through_descriptor,
    "own root": lambda name: stream(f"/proc/self/root{outside}/{name}"),
    "root of the parent": lambda name: stream(f"/proc/{os.getppid()}/root{outside}/{name}"),
    "project and back": lambda name: stream(f"{os.getcwd()}/../outside/{name}"),
    "packets": packets,
    "moved": renamed,
}
open("ready", "x").close()
while not os.path.exists(f"{outside}/later"):
    time.sleep(0.01)
for name in names:
    for way, attempt in ways.items():
        try:
            if attempt(name):
                reached.append([name, way])
        except Exception:
            pass

def datagram():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        return one.sendto(b"x", f"{outside}/datagram")

def raw():
    with socket.socket(socket.AF_UNIX, socket.SOCK_RAW) as one:
        return one.sendto(b"x", f"{outside}/datagram")

def turned():
    for one in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
        return one.sendto(b"x", f"{outside}/datagram")

def uring():
    return libc.syscall(425, 4, ctypes.create_string_buffer(120)) >= 0

def x32():
    return os.uname().machine == "x86_64" and libc.syscall(0x40000000 + 41, 1, 1, 0) >= 0

def int80():
    # mov eax, 359 (socket); mov ebx, 1; mov ecx, 1; xor edx, edx; int 0x80; ret
    if os.uname().machine != "x86_64":
        return False
    code = bytes.fromhex("53b867010000bb01000000b90100000031d2cd805bc3")
    page = mmap.mmap(-1, 4096, prot=7)
    page.write(code)
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return call() >= 0

for attempt in (datagram, raw, turned, uring, x32, int80):
    try:
        if attempt():
            reached.append(["any", attempt.__name__])
    except Exception:
        pass

# Who changes the address, or the descriptor, between the look and the connection.
own = socket.socket(socket.AF_UNIX)
own.bind("own")
own.listen(1000)
there, here = (struct.pack("=H", 1) + path.encode() for path in (f"{outside}/counted", f"{os.getcwd()}/own"))
size = max(len(there), len(here)) + 1
there, here = there.ljust(size, b"\0"), here.ljust(size, b"\0")
address = ctypes.create_string_buffer(here, size)
going = True

def flip():
    while going:
        ctypes.memmove(address, there, size)
        ctypes.memmove(address, here, size)

racer = threading.Thread(target=flip)
racer.start()
for _ in range(300):
    with socket.socket(socket.AF_UNIX) as one:
        libc.connect(one.fileno(), address, size)
going = False
racer.join()
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(1000)
inet = struct.pack("=H", socket.AF_INET) + struct.pack("!H", listener.getsockname()[1]) + socket.inet_aton("127.0.0.1") + bytes(8)
ctypes.memmove(address, there, size)
going = True

def swap(slot, streams):
    while going:
        for one in streams:
            os.dup2(one, slot)

unix, net = socket.socket(socket.AF_UNIX), socket.socket()
slot = os.dup(net.fileno())
racer = threading.Thread(target=swap, args=(slot, (unix.fileno(), net.fileno())))
racer.start()
for _ in range(300):
    libc.connect(slot, address, size)
    libc.connect(slot, inet, 16)
going = False
racer.join()
print(json.dumps(reached))
"""


class Outside:
    """A folder with sockets at which somebody serves, or counts who comes."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self.counted = 0
        folder.mkdir()

    def listen(self, address: str, kind: int = socket.SOCK_STREAM) -> None:
        listener = self._stack.enter_context(socket.socket(socket.AF_UNIX, kind))
        listener.bind(address)
        if kind == socket.SOCK_DGRAM:
            return
        listener.listen(64)
        self._stack.callback(listener.shutdown, socket.SHUT_RDWR)
        threading.Thread(target=self._serve, args=(listener, address.endswith("counted")), daemon=True).start()

    def _serve(self, listener: socket.socket, counts: bool) -> None:
        with suppress(OSError):
            while True:
                one, _ = listener.accept()
                self.counted += counts
                with one, suppress(ConnectionError):
                    one.sendall(b"served")


SERVED_ELSEWHERE = """
import socket, sys
one = socket.socket(socket.AF_UNIX)
one.bind(sys.argv[1])
one.listen(64)
print("ready", flush=True)
while True:
    came, _ = one.accept()
    came.sendall(b"served")
    came.close()
"""


@pytest.fixture
def outside(outside_tmp: Path) -> Iterator[Outside]:
    (outside_tmp / "project").mkdir()
    with ExitStack() as stack:
        one = Outside(outside_tmp / "outside", stack)
        one.listen(str(one.folder / "absolute"))
        one.listen(os.path.relpath(one.folder / "relative"))
        one.listen(str(one.folder / "before"))
        (one.folder / "before").rename(one.folder / "renamed")
        one.listen(str(one.folder / "first"))
        (one.folder / "linked").hardlink_to(one.folder / "first")
        (one.folder / "first").unlink()
        one.listen(str(one.folder / "with\nnewline"))
        one.listen(str(one.folder / "counted"))
        one.listen(str(one.folder / "datagram"), socket.SOCK_DGRAM)
        one.listen(str(one.folder / "packets"), socket.SOCK_SEQPACKET)
        serve = [sys.executable, "-I", "-c", SERVED_ELSEWHERE, str(one.folder / "of another network")]
        # Only its own network's sockets are listed for a process.
        bare = ["bwrap", "--unshare-user", "--unshare-net", "--die-with-parent", "--dev-bind", "/", "/", *serve]
        elsewhere = stack.enter_context(subprocess.Popen(bare, stdout=subprocess.PIPE))
        stack.callback(elsewhere.kill)
        assert elsewhere.stdout is not None
        assert elsewhere.stdout.readline() == b"ready\n"
        yield one


@pytest.mark.parametrize("level", LEVELS)
async def test_no_socket_outside_can_be_reached(level: Level, outside: Outside, outside_tmp: Path) -> None:
    sandbox = await sandbox_of(level)
    if level == "none":
        assert "sockets" in sandbox.words
        return
    project = outside_tmp / "project"
    (project / "ways.py").write_text(WAYS)

    def bind_later() -> None:
        deadline = threading.Event()
        while not (project / "ready").exists() and not deadline.wait(0.01):
            pass
        outside.listen(str(outside.folder / "later"))

    later = threading.Thread(target=bind_later, daemon=True)
    later.start()
    names = json.dumps([*NAMES, "packets"])
    command = f"{sys.executable} -I ways.py '{outside.folder}' '{names}'"
    result = await Workshop(project, environment={"PATH": os.environ["PATH"]}).run(
        Shell(sandbox), command=command, timeout_s=60
    )
    later.join(60)
    assert (result.ok, result.output) == (True, "[]\n")
    assert outside.counted == 0
    assert "sockets that have a path" not in sandbox.words.partition("Not held: ")[2]


def test_sockets_outside_are_there_to_be_reached(outside: Outside) -> None:
    """The ways themselves work."""
    for name in NAMES[:-1]:
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(10)
            one.connect(os.path.relpath(outside.folder / name))
            assert one.recv(99) == b"served", name


@pytest.mark.parametrize("level", LEVELS)
async def test_command_that_reads_makes_no_unix_socket(level: Level, outside_tmp: Path) -> None:
    if level == "none":
        return
    sandbox = await sandbox_of(level)
    (outside_tmp / "project").mkdir()
    program = (
        "import socket\n"
        "socket.socketpair()\n"
        "try:\n    socket.socket(socket.AF_UNIX)\n"
        "except PermissionError:\n    print('refused')\n"
    )
    argv = sandbox.wrap_reading([sys.executable, "-I", "-c", program], outside_tmp / "project")
    async with spawn(argv, cwd=outside_tmp / "project", environment={"PATH": os.environ["PATH"]}) as child:
        said = [line async for line in child.lines()]
        code = (await child.ended()).code
    assert (said, code) == ([b"refused"], 0)


OWN = r"""
import asyncio, concurrent.futures, grp, multiprocessing, os, pwd, socket, sys, tempfile

def square(number):
    return number * number

async def talk(folder):
    server = await asyncio.start_unix_server(lambda reader, writer: writer.close(), f"{folder}/server")
    async with server:
        for reader, writer in await asyncio.gather(*[asyncio.open_unix_connection(f"{folder}/server") for _ in range(20)]):
            assert await reader.read() == b""
            writer.close()
    os.unlink(f"{folder}/server")

async def over_tcp():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1")
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert await reader.read() == b""
        writer.close()
    blocking = socket.socket()
    blocking.settimeout(5)
    assert blocking.connect_ex(("127.0.0.1", 1)) != 0

def daemon_connects():
    read, write = os.pipe()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("of a daemon")
    listener.listen()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            socket.socket(socket.AF_UNIX).connect("of a daemon")
            os.write(write, b"connected")
        os._exit(0)
    os.close(write)
    assert os.read(read, 99) == b"connected"

if __name__ == "__main__":
    for folder in (".", tempfile.gettempdir(), "/dev/shm"):
        with tempfile.TemporaryDirectory(dir=folder) as within:
            asyncio.run(talk(within))
    asyncio.run(over_tcp())
    with multiprocessing.Manager() as manager:
        shared = manager.dict()
        shared[1] = 2
        assert dict(shared) == {1: 2}
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with concurrent.futures.ProcessPoolExecutor(2, context) as pool:
            assert list(pool.map(square, range(4))) == [0, 1, 4, 9], method
    daemon_connects()
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        first, second = socket.socketpair(socket.AF_UNIX, kind)
        first.send(b"x")
        assert second.recv(1) == b"x"
    missing = socket.socket(socket.AF_UNIX)
    try:
        missing.connect("missing")
    except FileNotFoundError:
        pass
    pwd.getpwuid(os.getuid())
    print("works")
"""


@pytest.mark.parametrize("level", LEVELS)
async def test_sockets_of_its_own_work_as_everywhere(level: Level, outside_tmp: Path) -> None:
    (outside_tmp / "project").mkdir()
    (outside_tmp / "project/own.py").write_text(OWN)
    workshop = Workshop(outside_tmp / "project", environment={"PATH": os.environ["PATH"]})
    result = await workshop.run(Shell(await sandbox_of(level)), command=f"{sys.executable} -I own.py", timeout_s=120)
    assert (result.ok, result.output) == (True, "works\n")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("command", "said", "code"), [
    ("exit 3", "exit code 3", 3),
    ("kill -TERM $$", "", None),
    ("kill -KILL $$", "", None),
    ("trap 'echo caught; exit 4' TERM; kill -TERM $$; sleep 5", "exit code 4", 4),
])  # fmt: skip
async def test_program_ends_as_it_would_without_a_guard(
    command: str, said: str, code: int | None, level: Level, outside_tmp: Path
) -> None:
    (outside_tmp / "project").mkdir()
    workshop = Workshop(outside_tmp / "project", environment={"PATH": os.environ["PATH"]})
    result = await workshop.run(Shell(await sandbox_of(level)), command=command, timeout_s=60)
    assert not result.ok
    assert said in (result.error or "")
    assert code is None or result.exit_code == code


@pytest.mark.parametrize("level", LEVELS)
async def test_hidden_socket_in_the_project_stays_hidden(level: Level, outside_tmp: Path) -> None:
    """The agent that holds a person's keys, say, where the home is the project."""
    if level == "none":
        return
    keys = outside_tmp / "home/.gnupg"
    keys.mkdir(parents=True)
    program = (
        "import socket\n"
        "for name in ('.gnupg/agent', 'beside'):\n"
        "    try:\n        socket.socket(socket.AF_UNIX).connect(name)\n        print(name)\n"
        "    except OSError:\n        pass\n"
    )
    (outside_tmp / "home/try.py").write_text(program)
    with ExitStack() as stack:
        for place in (keys / "agent", outside_tmp / "home/beside"):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(place))
            listener.listen(8)
        sandbox = await sandbox_of(level, (), {**os.environ, "HOME": str(outside_tmp / "home")})
        workshop = Workshop(outside_tmp / "home", environment={"PATH": os.environ["PATH"]})
        result = await workshop.run(Shell(sandbox), command=f"{sys.executable} -I try.py", timeout_s=60)
    assert result.output == "beside\n"


def test_this_machine_can_be_guarded() -> None:
    assert platform.machine() in MACHINES

"""What a running command tries to reach beyond its project: files, sockets, terminals, processes, privileges.

One table says what is expected at each level; the words that a person reads before approving must say the same.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from palaver.tools.shell.background import Processes
from palaver.tools.shell.sandbox import Sandbox
from palaver.tools.shell.shell import Shell
from tests.levels import Level, sandbox_of
from tests.unit.tools.workshop import Listener, Workshop

pytestmark = pytest.mark.anyio

ATTEMPTS = r"""
import contextlib, ctypes, fcntl, json, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
told = json.loads(sys.argv[1])

def append(path):
    with open(path, "a") as file:
        file.write("x")
    return True

def read(path):
    return bool(open(path).read())

def connect(address):
    socket.socket(socket.AF_UNIX).connect(address)
    return True

def is_read_only(path):
    return os.statvfs(path).f_flag & 1

def remount():
    if not is_read_only("/"):
        return False
    libc.mount(None, b"/", None, ctypes.c_ulong(32 | 4096), None)
    return not is_read_only("/")

def unmount():
    # Nothing but a cover is ever mounted there: a place of the machine's own must not be tried.
    return libc.umount2(told["data"].encode(), 2) == 0

def in_namespaces(attempt):
    child = os.fork()
    if child == 0:
        done = False
        with contextlib.suppress(Exception):
            done = libc.unshare(0x10000000 | 0x00020000) == 0 and attempt()
        os._exit(0 if done else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def through_proc(path):
    for process in filter(str.isdigit, os.listdir("/proc")):
        for way in (f"/proc/{process}/root{path}", f"/proc/{process}/cwd/../..{path}"):
            with contextlib.suppress(OSError):
                if open(way).read():
                    return True
    return False

def capabilities():
    status = open("/proc/self/status").read()
    sets = ("CapEff", "CapPrm", "CapInh", "CapAmb")
    return any(int(line.split()[1], 16) for line in status.splitlines() if line.startswith(sets))

def new_privileges():
    return "NoNewPrivs:\t1" not in open("/proc/self/status").read()

def type_into(terminal):
    with open(terminal, "rb+", buffering=0) as file:
        fcntl.ioctl(file, 0x5412, b"x")
    return True

def open_terminal():
    os.close(os.open(told["terminal"], os.O_RDWR | os.O_NOCTTY))
    return True

def controlling_terminal():
    os.close(os.open("/dev/tty", os.O_RDWR))
    return True

def sniff():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3)).close()
    return True

def device():
    os.mknod("disk", 0o60600, os.makedev(8, 0))
    return True

def join_server():
    with open(f"/proc/{told['server']}/ns/mnt") as file:
        return libc.setns(file.fileno(), 0) == 0

def of_server(name):
    return bool(open(f"/proc/{told['server']}/{name}", "rb").read())

def signal_server():
    os.kill(told["server"], 0)
    return True

def by_handle():
    # Root opens files by handle, past every mount and every rule about paths.
    buffer = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + b"\0" * 128)
    mount = ctypes.c_int()
    if libc.name_to_handle_at(-100, b"/", buffer, ctypes.byref(mount), 0):
        return False
    root = os.open("/", os.O_RDONLY)
    return libc.open_by_handle_at(root, buffer, os.O_RDONLY) >= 0

def chmod(path):
    os.chmod(path, 0o600)
    return True

attempts = {
    "write_project": lambda: append("draft"),
    "write_temporary": lambda: append(os.path.join(os.environ.get("TMPDIR", "/tmp"), "draft")),
    "write_beside": lambda: append(told["beside"]),
    "write_shared_tmp": lambda: append(told["tmp_file"]),
    "read_shared_tmp": lambda: read(told["tmp_file"]),
    "read_data": lambda: read(told["data"] + "/token"),
    "read_data_through_proc": lambda: through_proc(told["data"] + "/token"),
    "read_key": lambda: read(told["key"]),
    "remount": remount,
    "unmount": unmount,
    "remount_in_namespaces": lambda: in_namespaces(remount),
    "unmount_in_namespaces": lambda: in_namespaces(lambda: unmount() and read(told["data"] + "/token")),
    "socket_in_tmp": lambda: connect(told["tmp_socket"]),
    "socket_in_run": lambda: connect(told["run_socket"]),
    "socket_in_data": lambda: connect(told["data"] + "/socket"),
    "socket_beside": lambda: connect(told["beside_socket"]),
    "socket_in_project": lambda: connect("socket"),
    "abstract_socket": lambda: connect("\0" + told["abstract"]),
    "terminal": open_terminal,
    "type_into_terminal": lambda: type_into(told["terminal"]),
    "controlling_terminal": controlling_terminal,
    "capabilities": capabilities,
    "new_privileges": new_privileges,
    "sniff": sniff,
    "device": device,
    "by_handle": by_handle,
    "join_server": join_server,
    "environment_of_server": lambda: of_server("environ"),
    "memory_of_server": lambda: of_server("maps"),
    "command_of_server": lambda: of_server("cmdline"),
    "signal_server": signal_server,
    "mode_beside": lambda: chmod(told["beside"]),
}
able = []
for name, attempt in attempts.items():
    if told["only"] and name not in told["only"]:
        continue
    with contextlib.suppress(Exception):
        if attempt():
            able.append(name)
print(json.dumps(able))
"""

WORK = {"write_project", "write_temporary", "socket_in_project"}
EXPECTED: Mapping[Level, set[str]] = {
    "bubblewrap": WORK | {"abstract_socket"},
    "landlock": WORK | {"command_of_server", "mode_beside"},
}
"""All that a command may be able to do. Where there is no sandbox nothing is expected to be held."""
HARMLESS = ("write_project", "write_beside", "read_data", "socket_beside", "controlling_terminal")
"""What is tried where nothing holds a command. It may be root there, so nothing else is: the machine is a real one."""
SAID = {
    "abstract_socket": "abstract sockets",
    "command_of_server": "the list of your other processes",
    "mode_beside": "permissions and times of your files",
}


@contextmanager
def listening(stack: ExitStack, address: str) -> Iterator[None]:
    listener = stack.enter_context(socket.socket(socket.AF_UNIX))
    listener.bind(address)
    listener.listen(16)
    if not address.startswith("\0"):
        stack.callback(Path(address).unlink, missing_ok=True)
    yield


@pytest.fixture
def shared_tmp() -> Iterator[Path]:
    """A folder in the machine's own /tmp, wherever pytest has its."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="palaver-test-") as folder:
        yield Path(folder)


@pytest.fixture
def targets(outside_tmp: Path, shared_tmp: Path) -> Iterator[dict[str, object]]:
    """Everything that an attempt may reach, and the project."""
    for name in ("project", "data"):
        (outside_tmp / name).mkdir()
    (outside_tmp / "data/token").write_text("token")
    (outside_tmp / "key").write_text("key")
    (outside_tmp / "beside").write_text("as it was")
    (shared_tmp / "file").write_text("as it was")
    # An ordinary user has no place in /run that is sure to exist.
    run = Path("/run") if os.access("/run", os.W_OK) else shared_tmp
    told: dict[str, object] = {
        "data": str(outside_tmp / "data"),
        "key": str(outside_tmp / "key"),
        "beside": str(outside_tmp / "beside"),
        "tmp_file": str(shared_tmp / "file"),
        "tmp_socket": str(shared_tmp / "s"),
        "run_socket": str(run / f"palaver-test-{os.getpid()}"),
        "beside_socket": str(outside_tmp / "s"),
        "abstract": f"palaver-test-{outside_tmp.name}",
        "server": os.getpid(),
    }
    with ExitStack() as stack:
        for address in (
            *(str(told[name]) for name in ("tmp_socket", "run_socket", "beside_socket")),
            *(f"{told['data']}/socket", f"{outside_tmp}/project/socket", f"\0{told['abstract']}"),
        ):
            stack.enter_context(listening(stack, address))
        first, second = os.openpty()
        stack.callback(os.close, first)
        stack.callback(os.close, second)
        told["terminal"] = os.ttyname(second)
        yield told


async def opened(level: Level, outside_tmp: Path) -> Sandbox:
    environment = {**os.environ, "HOME": str(outside_tmp / "home")}
    return await sandbox_of(level, (outside_tmp / "data", outside_tmp / "key"), environment)


async def test_command_can_do_no_more_than_the_words_say(
    level: Level, outside_tmp: Path, targets: dict[str, object]
) -> None:
    sandbox = await opened(level, outside_tmp)
    (outside_tmp / "project/attempts.py").write_text(ATTEMPTS)
    workshop = Workshop(outside_tmp / "project", environment={"PATH": os.environ["PATH"], "HOME": str(outside_tmp)})
    told = json.dumps({**targets, "only": HARMLESS if level == "none" else ()})
    result = await workshop.run(Shell(sandbox), command=f"{sys.executable} -I attempts.py '{told}'", timeout_s=60)
    assert result.ok, result.output
    able = set(json.loads(result.output))
    if level == "none":
        assert able == set(HARMLESS) - {"controlling_terminal"}, "the attempts themselves work"
        for words in (
            "your files and keys",
            "Palaver's data",
            "the network",
            "sockets",
            "terminals",
            "other processes",
            "kills Palaver's own lives on",
        ):
            assert words in sandbox.words
        return
    assert able == EXPECTED[level] - ({"abstract_socket"} - able)
    for attempt, words in SAID.items():
        assert (attempt in able) == (words in sandbox.words.partition("Not held: ")[2]), attempt
    assert "the network" in sandbox.words.partition("Not held: ")[2]
    assert (outside_tmp / "beside").read_text() == "as it was"


async def test_temporary_folder_is_the_conversations_own(level: Level, outside_tmp: Path) -> None:
    if level == "none":
        assert "your files" in (await sandbox_of(level)).words
        return
    (outside_tmp / "data").mkdir()
    (outside_tmp / "project").mkdir()
    shell = Shell(await opened(level, outside_tmp))
    first, second = (
        Workshop(outside_tmp / "project", host=Listener(conversation=name), environment={"PATH": os.environ["PATH"]})
        for name in ("c1", "c2")
    )
    kept = await first.run(shell, command="echo mine > $TMPDIR/x; true")
    again = await first.run(shell, command="cat $TMPDIR/x; true")
    other = await second.run(shell, command="ls -A $TMPDIR; true")
    if level == "bubblewrap":
        assert (await first.run(shell, command="cat /var/tmp/x; true")).output == "mine\n"
    reached = await second.run(shell, command="cat $TMPDIR/../*/x $TMPDIR/../*/*/x 2>&1; ls -A $TMPDIR/.. 2>&1; true")
    assert (kept.ok, again.output) == (True, "mine\n")
    # A checkout beneath /tmp is seen there too, by its first folder.
    assert "x" not in other.output.split()
    assert "mine" not in reached.output


async def test_background_process_finds_the_same_temporary_folder(level: Level, outside_tmp: Path) -> None:
    (outside_tmp / "data").mkdir()
    (outside_tmp / "project").mkdir()
    processes = Processes(lambda: "p1")
    shell = Shell(await opened(level, outside_tmp), processes=processes)
    host = Listener()
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(outside_tmp)}
    workshop = Workshop(outside_tmp / "project", host=host, environment=environment)
    try:
        started = await workshop.run(
            shell,
            command="until test -e $TMPDIR/go; do sleep 0.01; done; cat $TMPDIR/go",
            background=True,
            timeout_s=60,
        )
        await workshop.run(shell, command="echo gone > $TMPDIR/draft && mv $TMPDIR/draft $TMPDIR/go")
        _, code, text = await host.ended.get()
    finally:
        await processes.close()
    assert (started.ok, code, "gone" in text) == (True, 0, True)


def test_temporary_folders_are_gone_with_the_process(outside_tmp: Path) -> None:
    program = (
        "from palaver.tools.shell.temporary_folders import TemporaryFolders\n"
        "folders = TemporaryFolders()\n"
        "with folders.use('c') as folder:\n    (folder / 'x').write_text('x')\n"
        "print(folder)\n"
    )
    environment = {**os.environ, "TMPDIR": str(outside_tmp)}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.startswith(str(outside_tmp))
    assert list(outside_tmp.iterdir()) == []


@pytest.mark.skipif(not Path("/run").is_dir(), reason="there is no /run")
async def test_names_are_still_found_behind_a_covered_run(level: Level, outside_tmp: Path) -> None:
    (outside_tmp / "data").mkdir()
    (outside_tmp / "project").mkdir()
    workshop = Workshop(outside_tmp / "project", environment={"PATH": os.environ["PATH"]})
    result = await workshop.run(
        Shell(await opened(level, outside_tmp)), command="cat /etc/resolv.conf /etc/hosts > /dev/null; true"
    )
    assert (result.ok, result.output) == (True, "")


@pytest.mark.parametrize("project", ["run", "tmp", "shared_memory"])
async def test_project_in_a_covered_place_can_be_worked_in(project: str, level: Level, shared_tmp: Path) -> None:
    root = {
        "run": Path(f"/run/palaver-test-{os.getpid()}"),
        "tmp": shared_tmp,
        "shared_memory": Path("/dev/shm/palaver-test"),
    }[project]
    try:
        root.mkdir(exist_ok=True)
    except PermissionError:
        root = shared_tmp  # An ordinary user has no project in /run.
    try:
        (root / "a").write_text("one\n")
        workshop = Workshop(root, environment={"PATH": os.environ["PATH"]})
        shell = Shell(await sandbox_of(level))
        wrote = await workshop.run(shell, command="echo two >> a && pwd -P")
        read = await workshop.run(shell, command="cat a")
        assert (wrote.output, read.output) == (f"{root.resolve()}\n", "one\ntwo\n")
    finally:
        (root / "a").unlink()
        if root != shared_tmp:
            root.rmdir()

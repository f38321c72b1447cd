"""Processes that try to outlive the command that started them, at every level: none is alive once the call has its result."""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from pathlib import Path

import pytest

from palaver.tools.shell.shell import Shell
from tests.levels import Level, require, sandbox_of
from tests.unit.tools.workshop import Workshop, processes_with

pytestmark = pytest.mark.anyio

DAEMON = """
import os, sys, time
for _ in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
"""
KILLER = """
import os, signal, sys, time
# The warden is the parent of whoever began the session; a daemon without a mark is started before it dies.
leader = os.getsid(0)
warden = int(open(f"/proc/{leader}/stat").read().rsplit(")", 1)[1].split()[1])
for number in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
        os._exit(0)
if warden <= 1:
    sys.exit("never the machine's own first process")
os.kill(warden, signal.SIGKILL if sys.argv[2] == "kill" else signal.SIGSTOP)
time.sleep(1000)
"""
SUBREAPER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
        os._exit(0)
os.setsid() if os.getpid() != os.getsid(0) else None
os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
"""
PINNER = """
import ctypes, os, signal, sys, time
# An unmarked daemon that keeps the warden still, again and again; bounded, whatever becomes of it.
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long] * 4
leader = os.getsid(0)
warden = int(open(f"/proc/{leader}/stat").read().rsplit(")", 1)[1].split()[1])
if warden <= 1:
    sys.exit("never the machine's own first process")
if os.fork():
    time.sleep(30)
os.setsid()
if os.fork():
    os._exit(0)
how, end = sys.argv[2], time.monotonic() + 30
if how == "trace":
    libc.ptrace(0x4206, warden, 0, 0)
    libc.ptrace(0x4207, warden, 0, 0)
while time.monotonic() < end:
    try:
        if how == "stop":
            os.kill(warden, signal.SIGSTOP)
    except OSError:
        pass
    time.sleep(0.0005)
"""
AVENGER = """
import os, signal, sys, time
# Answers the warden's SIGTERM by killing the warden.
leader = os.getsid(0)
warden = int(open(f"/proc/{leader}/stat").read().rsplit(")", 1)[1].split()[1])
if warden <= 1:
    sys.exit("never the machine's own first process")
ready, told = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(warden, signal.SIGKILL))
    os.write(told, b"x")
    time.sleep(30)
    os._exit(0)
os.read(ready, 1)
if sys.argv[2] == "stay":
    print("ready", flush=True)
    time.sleep(30)
"""
SWARM = """
import os, sys, time
# Chains of processes, each a fork and a new session away from the one before; bounded in number.
leader = os.getsid(0)
warden = int(open(f"/proc/{leader}/stat").read().rsplit(")", 1)[1].split()[1])
for chain in range(3):
    if os.fork() == 0:
        for hop in range(4000):
            if os.fork():
                os._exit(0)
            os.setsid()
            os.close(os.open("beat", os.O_CREAT))
        os._exit(0)
while not os.path.exists("beat"):
    time.sleep(0.001)
if sys.argv[1] == "kill" and warden > 1:
    os.kill(warden, 9)
"""
ESCAPES = {
    "setsid": "setsid sleep {n} & exit 0",
    "nohup": "nohup sleep {n} > /dev/null 2>&1 & exit 0",
    "cleared": "(setsid env -i sleep {n} &) ; exit 0",
    "double_fork": "{python} -I daemon.py {n}",
    "subreaper_of_its_own": "{python} -I subreaper.py {n} & sleep 0.1",
    "warden_killed": "{python} -I killer.py {n} kill",
    "warden_stopped": "{python} -I killer.py {n} stop",
    "warden_traced": "{python} -I pinner.py {n} trace",
    "warden_traced_without_a_trace": "env -i {python} -I pinner.py {n} trace < /dev/null > /dev/null 2>&1",
    "warden_stopped_again_and_again": "env -i {python} -I pinner.py {n} stop < /dev/null > /dev/null 2>&1; sleep {n}",
    "warden_killed_in_its_grace": "env -i {python} -I avenger.py {n} leave < /dev/null > /dev/null 2>&1",
    "warden_killed_at_the_time_limit": "{python} -I avenger.py {n} stay",
    "warden_killed_from_outside_its_session": "setsid {python} -I killer.py {n} kill; sleep {n}",
}


PROGRAMS = {"daemon": DAEMON, "killer": KILLER, "subreaper": SUBREAPER, "pinner": PINNER, "avenger": AVENGER}

SERVER = """
import asyncio, os, sys
from pathlib import Path
from palaver.backends.process import spawn

async def main():
    async with spawn(sys.argv[1:], cwd=Path.cwd(), environment={"PATH": os.environ["PATH"]}) as child:
        async for line in child.lines():
            print(line.decode(), flush=True)
        await child.ended()
    print("left", flush=True)

asyncio.run(main())
"""
WAIT = """
print(len([name for name in os.listdir("/proc") if name.isdigit() and name != "1"]) - 1, flush=True)
sys.stdin.read()
"""
"""Who is left beside the namespace's first process and the server, which then stays until its input ends."""
GONE_WITHIN_S = 2.0
"""The promise: so long after the server's own death nobody of a run is alive."""


def write_programs(folder: Path) -> None:
    for name, text in PROGRAMS.items():
        (folder / f"{name}.py").write_text(text)


def kill_all_with(number: str) -> None:
    """A failed test leaves nobody behind either."""
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and number in (process / "cmdline").read_text(errors="replace"):
                os.kill(int(process.name), signal.SIGKILL)


async def is_gone(number: str) -> bool:
    deadline = asyncio.get_running_loop().time() + GONE_WITHIN_S
    while processes_with(number):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True


@pytest.mark.parametrize("escape", ESCAPES)
async def test_process_does_not_outlive_its_call(escape: str, level: Level, outside_tmp: Path) -> None:
    number = str(10**9 + secrets.randbelow(10**9))
    write_programs(outside_tmp)
    workshop = Workshop(outside_tmp, environment={"PATH": os.environ["PATH"]})
    command = ESCAPES[escape].format(n=number, python=sys.executable)
    try:
        async with asyncio.timeout(60):
            await workshop.run(Shell(await sandbox_of(level)), command=command, timeout_s=3)
        assert processes_with(number) == []
    finally:
        kill_all_with(number)


async def test_sibling_of_a_run_whose_warden_was_killed_goes_on(outside_tmp: Path) -> None:
    number = str(10**9 + secrets.randbelow(10**9))
    (outside_tmp / "killer.py").write_text(KILLER)
    shell = Shell(await sandbox_of("none"))
    workshop = Workshop(outside_tmp, environment={"PATH": os.environ["PATH"]})
    async with asyncio.timeout(60):
        sibling = asyncio.create_task(
            workshop.run(shell, command="until test -e go; do sleep 0.01; done; echo went on")
        )
        await workshop.run(shell, command=f"{sys.executable} -I killer.py {number} kill", timeout_s=3)
        (outside_tmp / "go").touch()
        result = await sibling
    assert (result.output, processes_with(number)) == ("went on\n", [])


KILLS = {
    "avenger": ("avenger.py", "stay"),
    "warden_stopped": ("killer.py", "stop"),
}
"""What a run does about its warden, before the server dies or because it does."""


@pytest.mark.parametrize("escape", KILLS)
async def test_process_does_not_outlive_a_killed_server(escape: str, outside_tmp: Path) -> None:
    number = str(10**9 + secrets.randbelow(10**9))
    write_programs(outside_tmp)
    program, how = KILLS[escape]
    text = (outside_tmp / program).read_text().replace("time.sleep(1000)", 'print("ready", flush=True); time.sleep(30)')
    (outside_tmp / program).write_text(text)
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVER, sys.executable, "-I", program, number, how),
        cwd=outside_tmp,
        stdout=asyncio.subprocess.PIPE,
    )
    assert server.stdout is not None
    async with asyncio.timeout(60):
        assert await server.stdout.readline() == b"ready\n"
        assert processes_with(number), "the run is there"
        server.kill()
        await server.wait()
    try:
        assert await is_gone(number)
    finally:
        kill_all_with(number)


@pytest.mark.parametrize("warden", ["kill", "leave"])
async def test_chains_of_forks_end_with_their_run(warden: str, outside_tmp: Path) -> None:
    """In a PID namespace: nothing that goes wrong here may fill the machine's own table of processes."""
    require("bubblewrap")
    (outside_tmp / "swarm.py").write_text(SWARM)
    beat = outside_tmp / "beat"
    namespace = [
        "bwrap",
        "--unshare-user",
        "--unshare-pid",
        "--dev-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--die-with-parent",
    ]
    server = await asyncio.create_subprocess_exec(
        *(*namespace, sys.executable, "-c", SERVER + WAIT, sys.executable, "-I", "-S", "swarm.py", warden),
        cwd=outside_tmp,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert server.stdout is not None
    async with asyncio.timeout(60):
        assert await server.stdout.readline() == b"left\n"
        # They would touch it at each hop.
        beat.unlink(missing_ok=True)
        server_said, _ = await server.communicate(b"")
    assert (server_said, beat.exists()) == (b"0\n", False)

"""Processes that try to outlive the command that started them, at every level: none is alive once the call has its result."""

import asyncio
import os
import secrets
import sys
from pathlib import Path

import pytest

from palaver.tools.shell.shell import Shell
from tests.levels import Level, sandbox_of
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
ESCAPES = {
    "setsid": "setsid sleep {n} & exit 0",
    "nohup": "nohup sleep {n} > /dev/null 2>&1 & exit 0",
    "cleared": "(setsid env -i sleep {n} &) ; exit 0",
    "double_fork": "{python} -I daemon.py {n}",
    "subreaper_of_its_own": "{python} -I subreaper.py {n} & sleep 0.1",
    "warden_killed": "{python} -I killer.py {n} kill",
    "warden_stopped": "{python} -I killer.py {n} stop",
    "warden_killed_from_outside_its_session": "setsid {python} -I killer.py {n} kill; sleep {n}",
}


@pytest.mark.parametrize("escape", ESCAPES)
async def test_process_does_not_outlive_its_call(escape: str, level: Level, outside_tmp: Path) -> None:
    number = str(10**9 + secrets.randbelow(10**9))
    for name, text in (("daemon", DAEMON), ("killer", KILLER), ("subreaper", SUBREAPER)):
        (outside_tmp / f"{name}.py").write_text(text)
    workshop = Workshop(outside_tmp, environment={"PATH": os.environ["PATH"]})
    command = ESCAPES[escape].format(n=number, python=sys.executable)
    async with asyncio.timeout(60):
        await workshop.run(Shell(await sandbox_of(level)), command=command, timeout_s=3)
    assert processes_with(number) == []


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

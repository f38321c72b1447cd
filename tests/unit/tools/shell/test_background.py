"""Background processes, over real ones: they outlive their call, are read and stopped, and their end is told."""

import asyncio
import itertools
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from palaver.schema.events import ProcessFinished, ProcessStarted
from palaver.tools.base import ToolResult
from palaver.tools.redact import Redactor
from palaver.tools.shell.background import RUNNING_LIMIT, SIDE_BYTES, Kept, Processes
from palaver.tools.shell.processes import ShellOutput, ShellStop
from palaver.tools.shell.shell import Shell
from tests.unit.tools.workshop import Listener, Workshop, processes_with

pytestmark = pytest.mark.anyio

LIMIT_S = 20.0


@pytest.fixture
async def processes() -> AsyncIterator[Processes]:
    numbers = itertools.count(1)
    processes = Processes(lambda: f"p{next(numbers)}")
    yield processes
    async with asyncio.timeout(LIMIT_S):
        await processes.close()


@pytest.fixture
def workshop(root: Path) -> Workshop:
    return Workshop(root, host=Listener())


def heard_by(workshop: Workshop) -> Listener:
    assert workshop.host is not None
    return workshop.host


async def said(workshop: Workshop, processes: Processes, text: str) -> ToolResult:
    """The output of p1 once it holds a text."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            result = await workshop.run(ShellOutput(processes), process="p1")
            if text in result.output:
                return result
            # Nobody tells of output; the process is given a moment to say it.
            await asyncio.sleep(0.01)


async def eventually(holds: Callable[[], bool]) -> bool:
    """Whether something comes to hold: nobody tells when another program's processes come and go."""
    for _ in range(1000):
        if holds():
            return True
        await asyncio.sleep(0.01)
    return False


async def test_process_goes_on_after_its_call_and_its_end_is_told(workshop: Workshop, processes: Processes) -> None:
    shell = Shell(processes=processes)
    command = "echo begun; until [ -e go ]; do sleep 0.01; done; echo correct-horse-battery; exit 3"
    result = await workshop.run(shell, command=command, background=True)
    host = heard_by(workshop)
    assert (result.ok, result.output.startswith("Process p1 runs in the background")) == (True, True)
    started = host.events[0]
    assert isinstance(started, ProcessStarted)
    assert (started.process, started.command, started.call) == ("p1", command, "call-1")
    assert started.pid is not None
    os.kill(started.pid, 0)
    output = await said(workshop, processes, "begun")
    assert output.output == "begun\n\n[running, 6 bytes in all; read on with offset=6]\n"
    (workshop.root / "go").touch()
    async with asyncio.timeout(LIMIT_S):
        process, exit_code, text = await host.ended.get()
    assert (process, exit_code) == ("p1", 3)
    assert text.startswith("Background process p1 (echo begun; until [ -e go ]")
    assert text.endswith("ended with exit code 3. The end of its output:\nbegun\n[redacted SERVICE_TOKEN]\n")
    rest = await workshop.run(ShellOutput(processes), process="p1", offset=6)
    assert rest.output == "[redacted SERVICE_TOKEN]\n\n[ended with exit code 3, 31 bytes in all]\n"


async def test_stopped_process_is_gone_with_all_it_started_and_said_to_be(
    workshop: Workshop, processes: Processes
) -> None:
    tag = f"86{secrets.randbelow(10**9)}"
    command = f"trap '' TERM INT; (setsid sleep {tag} &); echo begun; sleep {tag}; sleep {tag}"
    await workshop.run(Shell(processes=processes), command=command, background=True)
    await said(workshop, processes, "begun")
    assert processes_with(tag)
    starting, host = heard_by(workshop), Listener()
    # Another call, most often of another turn: the one that started it hears nothing more.
    workshop.host = host
    async with asyncio.timeout(LIMIT_S):
        result = await workshop.run(ShellStop(processes), process="p1")
    assert result.output == "Process p1 was stopped, with everything it had started."
    assert processes_with(tag) == []
    assert host.events == [ProcessFinished(process="p1", end="stopped")]
    assert (len(starting.events), starting.ended.empty(), host.ended.empty()) == (1, True, True)
    again = await workshop.run(ShellStop(processes), process="p1")
    assert (again.ok, again.output) == (True, "Process p1 was over before: stopped.")


async def test_conversation_stops_a_process_by_its_id_and_is_told_nothing(
    workshop: Workshop, processes: Processes
) -> None:
    tag = f"86{secrets.randbelow(10**9)}"
    await workshop.run(Shell(processes=processes), command=f"echo begun; sleep {tag}", background=True)
    await said(workshop, processes, "begun")
    processes.stop("p1")
    processes.stop("p1")
    processes.stop("never-there")
    output = await said(workshop, processes, "[stopped")
    assert output.output == "begun\n\n[stopped, 6 bytes in all]\n"
    assert processes_with(tag) == []
    assert heard_by(workshop).ended.empty()


async def test_closing_ends_every_process_and_starts_no_more(workshop: Workshop, processes: Processes) -> None:
    tag = f"86{secrets.randbelow(10**9)}"
    shell = Shell(processes=processes)
    for _ in range(2):
        await workshop.run(shell, command=f"trap '' TERM; sleep {tag}; sleep {tag}", background=True)
    async with asyncio.timeout(LIMIT_S):
        await processes.close()
    assert processes_with(tag) == []
    assert (await workshop.run(shell, command="true", background=True)).error_code == "busy"


async def test_process_at_its_time_limit_is_stopped_and_told(workshop: Workshop, processes: Processes) -> None:
    await workshop.run(Shell(processes=processes), command="sleep 600", background=True, timeout_s=0.1)
    async with asyncio.timeout(LIMIT_S):
        process, exit_code, text = await heard_by(workshop).ended.get()
    assert (process, exit_code) == ("p1", None)
    assert text == "Background process p1 (sleep 600) was stopped after 0.1 s. It said nothing."


async def test_conversation_has_a_limit_of_its_own(workshop: Workshop, processes: Processes, root: Path) -> None:
    shell = Shell(processes=processes)
    for _ in range(RUNNING_LIMIT):
        assert (await workshop.run(shell, command="sleep 600", background=True)).ok
    refused = await workshop.run(shell, command="sleep 600", background=True)
    assert (refused.ok, refused.error_code) == (False, "busy")
    other = Workshop(root, host=Listener("c2"))
    assert (await other.run(shell, command="sleep 600", background=True)).ok


async def test_process_of_another_conversation_is_not_there(
    workshop: Workshop, processes: Processes, root: Path
) -> None:
    await workshop.run(Shell(processes=processes), command="echo secret; sleep 600", background=True)
    other = Workshop(root, host=Listener("c2"))
    for tool in (ShellOutput(processes), ShellStop(processes)):
        result = await other.run(tool, process="p1")
        assert (result.ok, result.error_code, result.output) == (False, "not_found", "")
        assert "There are: none." in (result.error or "")
    assert (await workshop.run(ShellStop(processes), process="p1")).ok


async def test_command_that_cannot_start_is_a_result(workshop: Workshop, processes: Processes) -> None:
    result = await workshop.run(Shell(program="/no/such/shell", processes=processes), command="ls", background=True)
    assert (result.ok, result.error_code) == (False, "not_installed")
    assert heard_by(workshop).events == []
    without = await workshop.run(Shell(), command="ls", background=True)
    assert (without.ok, without.error_code) == (False, "invalid")


async def test_process_whose_beginning_cannot_be_recorded_does_not_live(root: Path, processes: Processes) -> None:
    class Broken(Listener):
        async def emit(self, event: object) -> None:
            raise RuntimeError("no log")

    tag = f"86{secrets.randbelow(10**9)}"
    workshop = Workshop(root, host=Broken())
    with pytest.raises(RuntimeError, match="no log"):
        await workshop.run(Shell(processes=processes), command=f"sleep {tag}", background=True)
    assert processes_with(tag) == []


async def test_cancelled_start_leaves_nothing(root: Path, processes: Processes) -> None:
    reached = asyncio.Event()

    class Slow(Listener):
        async def emit(self, event: object) -> None:
            reached.set()
            await asyncio.Event().wait()

    tag = f"86{secrets.randbelow(10**9)}"
    workshop = Workshop(root, host=Slow())
    task = asyncio.create_task(workshop.run(Shell(processes=processes), command=f"sleep {tag}", background=True))
    async with asyncio.timeout(LIMIT_S):
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert processes_with(tag) == []


def test_long_output_keeps_its_beginning_and_its_end() -> None:
    kept = Kept(Redactor({}))
    for number in range(3):
        kept.feed(bytes([97 + number]) * SIDE_BYTES, "stdout")
    kept.finish()
    assert kept.total_bytes == 3 * SIDE_BYTES
    whole = kept.after(0)
    assert whole == "a" * SIDE_BYTES + f"\n[… {SIDE_BYTES:,} bytes are no longer kept …]\n" + "c" * SIDE_BYTES
    assert kept.after(3 * SIDE_BYTES - 2) == "cc"
    assert kept.after(4 * SIDE_BYTES) == ""
    in_the_gap = kept.after(2 * SIDE_BYTES - 10)
    assert in_the_gap == "\n[… 10 bytes are no longer kept …]\n" + "c" * SIDE_BYTES


async def test_long_output_is_cut_and_spilled_when_read(workshop: Workshop, processes: Processes) -> None:
    await workshop.run(Shell(processes=processes), command="seq 100000", background=True)
    async with asyncio.timeout(LIMIT_S):
        await heard_by(workshop).ended.get()
    result = await workshop.run(ShellOutput(processes), process="p1")
    assert (result.ok, result.truncated, len(workshop.blobs)) == (True, True, 1)
    assert workshop.blobs[0].startswith(b"1\n2\n")
    assert result.output.endswith("100000\n\n[ended with exit code 0, 588,895 bytes in all]\n")


def test_background_command_never_counts_as_reading(workshop: Workshop) -> None:
    assert workshop.propose(Shell(), command="ls").reads_only
    proposal = workshop.propose(Shell(), command="ls", background=True)
    assert (proposal.reads_only, proposal.title) == (False, "Run in the background ls")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the program's own group ends")
async def test_processes_die_with_the_server(root: Path) -> None:
    tag = f"86{secrets.randbelow(10**9)}"
    program = f"""
import asyncio, itertools, sys
from pathlib import Path
from palaver.tools.shell.background import Processes
from palaver.tools.shell.shell import Shell
from tests.unit.tools.workshop import Workshop

async def main():
    shell = Shell(processes=Processes(lambda: "p1"))
    command = "trap '' TERM INT; (setsid sleep {tag} &); sleep {tag}; sleep {tag}"
    await Workshop(Path({str(root)!r})).run(shell, command=command, background=True)
    print("started", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
    # From a file: the program's own command line must not hold the tag.
    (root / "server.py").write_text(program)
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        str(root / "server.py"),
        stdout=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": str(Path(__file__).parents[4])},
    )
    async with asyncio.timeout(LIMIT_S):
        assert server.stdout is not None
        assert await server.stdout.readline() == b"started\n"
        assert await eventually(lambda: bool(processes_with(tag)))
        os.kill(server.pid, signal.SIGKILL)
        await server.wait()
        assert await eventually(lambda: not processes_with(tag))

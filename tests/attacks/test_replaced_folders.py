"""Attacks on a project that is replaced while a turn works in it: by a link, by another folder, above it, and all the time.

The rule is `tools/files/held_folder.py`: a project is reached without following a link, and is the folder that the turn began in.
"""

import asyncio
import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from palaver.approval.policy import Grant
from palaver.approval.program_calls import Judging, inside, proposal_of
from palaver.approval.turn_grants import Grants
from palaver.backends.process import spawn
from palaver.errors import Exited, Forbidden, NotFound
from palaver.schema.records import AgentRecord
from palaver.tools.base import Tool, ToolResult, ToolSpec
from palaver.tools.files.held_folder import check_folder, hold_folder, identity_of, open_folder
from palaver.tools.shell.background import Processes
from palaver.tools.shell.sandbox_level import Level
from palaver.tools.shell.shell import Shell
from palaver.tools.toolbox import Toolbox, built_in_tools
from tests.flows.at_work import at_work, of
from tests.levels import sandbox_of
from tests.unit.backends.memory_turn import MemoryTurn
from tests.unit.tools.workshop import Listener, Workshop

pytestmark = pytest.mark.anyio

SECRET = "only-in-private"
LIMIT_S = 60.0
HERE, EXCHANGE = -100, 2
"""For renameat2: relative to the working folder; both names keep existing."""
ROUNDS = 10
"""Each starts a few programs."""


@pytest.fixture
def project(outside_tmp: Path) -> Path:
    """A project, and beside it a private folder that nobody chose."""
    for folder in ("work/sub", "private/sub"):
        (outside_tmp / folder).mkdir(parents=True)
    (outside_tmp / "work/sub/secret.txt").write_text("harmless\n")
    for folder in ("private", "private/sub"):
        (outside_tmp / folder / "secret.txt").write_text(f"{SECRET}\n")
    return outside_tmp / "work/sub"


def by_link(project: Path) -> None:
    project.rename(project.with_name("sub0"))
    project.symlink_to(private_of(project))


def by_relative_link(project: Path) -> None:
    project.rename(project.with_name("sub0"))
    project.symlink_to("../private")


def by_chain(project: Path) -> None:
    by_link(project)
    project.rename(project.with_name("second"))
    project.symlink_to("second")


def by_folder(project: Path) -> None:
    project.rename(project.with_name("sub0"))
    private_of(project).rename(project)


def above(project: Path) -> None:
    project.parent.rename(project.parent.with_name("work0"))
    project.parent.symlink_to(private_of(project))


SWAPS: Mapping[str, Callable[[Path], None]] = {
    "link": by_link,
    "relative link": by_relative_link,
    "chain": by_chain,
    "folder": by_folder,
    "link above": above,
}


def private_of(project: Path) -> Path:
    return project.parent.parent / "private"


def files_around(project: Path) -> dict[str, str]:
    """Everything but the project itself as it was, wherever it was moved to, by what it holds."""
    top = project.parent.parent
    found = (path for path in top.rglob("*") if path.is_file() and SECRET in path.read_text(errors="replace"))
    return {path.name: path.read_text() for path in found}


PATCH = "*** Begin Patch\n*** Add File: planted\n+x\n*** End Patch"
CALLS: Mapping[str, dict[str, Any]] = {
    "read": {"path": "secret.txt"},
    "list": {"path": "."},
    "glob": {"pattern": "*"},
    "grep": {"pattern": "only", "path": "."},
    "edit": {"path": "secret.txt", "old": "o", "new": "0"},
    "write": {"path": "planted", "content": "x"},
    "patch": {"patch": PATCH},
    "shell": {"command": "cat secret.txt; echo x > planted; ls -A"},
    "remember": {"title": "planted", "text": "x"},
}
READING = {"command": "cat secret.txt"}


def tells_nothing(result: ToolResult, workshop: Workshop) -> None:
    diffs = "".join(change.diff or "" for change in result.changes)
    said = [result.output, result.error or "", diffs, *(blob.decode() for blob in workshop.blobs)]
    assert SECRET not in "\n".join([*said, *(text for text, _ in workshop.said)])


async def box_of(level: Level, processes: Processes | None = None) -> dict[str, Tool]:
    tools = built_in_tools(await sandbox_of(level), processes)
    return {tool.spec.name: tool for tool in tools if not hasattr(tool, "ask")}


# -- every tool


@pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS.keys())
async def test_no_tool_follows_a_project_that_was_replaced(
    level: Level, swap: Callable[[Path], None], project: Path
) -> None:
    tools = await box_of(level)
    workshop = Workshop(project, host=Listener(), environment={"PATH": os.environ["PATH"]})
    before = files_around(project)
    with hold_folder(project):
        swap(project)
        for name, arguments in (*CALLS.items(), ("shell", READING)):
            # Each by itself, whatever the box around it does: also the moment after its look.
            result = await tools[name].run(arguments, workshop.place)
            assert not result.ok, name
            tells_nothing(result, workshop)
            boxed = await Toolbox(tools).run(name, arguments, workshop.place)
            assert (boxed.ok, boxed.error_code) == (False, "forbidden"), name
            assert "was replaced" in (boxed.error or "")
            proposed = await Toolbox(tools).propose(name, arguments, project)
            assert isinstance(proposed, ToolResult), name
            assert SECRET not in (proposed.error or "")
    assert files_around(project) == before
    assert not list(project.parent.parent.rglob("planted*"))


@pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS.keys())
async def test_no_background_command_starts_in_a_project_that_was_replaced(
    level: Level, swap: Callable[[Path], None], project: Path
) -> None:
    processes = Processes(lambda: "p1")
    shell = Shell(await sandbox_of(level), processes=processes)
    workshop = Workshop(project, host=Listener(), environment={"PATH": os.environ["PATH"]})
    with hold_folder(project):
        swap(project)
        try:
            result = await workshop.run(shell, command="echo x > planted; cat secret.txt", background=True)
        finally:
            await processes.close()
    assert not result.ok
    assert not list(project.parent.parent.rglob("planted"))


@pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS.keys())
@pytest.mark.parametrize("reading", [False, True])
async def test_project_replaced_while_its_sandbox_is_made_is_not_entered(
    level: Level, swap: Callable[[Path], None], reading: bool, project: Path
) -> None:
    """The worst moment: after every look, when only names are left in the command line."""
    if level == "none":
        return await _assert_entered_by_descriptor(project, swap)
    sandbox = await sandbox_of(level)
    wrap = sandbox.wrap_reading if reading else sandbox.wrap
    argv = wrap(["/bin/sh", "-c", "cat secret.txt; echo x > planted; ls -A"], project)
    before = files_around(project)
    with open_folder(project) as folder:
        swap(project)
        ended = await asyncio.create_subprocess_exec(
            *argv,
            cwd=f"/proc/self/fd/{folder}",
            env={"PATH": os.environ["PATH"]},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await asyncio.wait_for(ended.communicate(), LIMIT_S)
    assert SECRET not in said.decode()
    assert files_around(project) == before
    assert not list(private_of(project).rglob("planted"))
    if level == "bubblewrap":
        assert ended.returncode != 0
        assert b"was replaced" in said or b"bwrap:" in said
    return None


async def _assert_entered_by_descriptor(project: Path, swap: Callable[[Path], None]) -> None:
    """Without a sandbox the runner of child processes is all there is: it enters what it opened."""
    with hold_folder(project):
        swap(project)
        with pytest.raises(Exited, match="was replaced"):
            async with spawn(["cat", "secret.txt"], cwd=project, environment={"PATH": os.environ["PATH"]}):
                raise AssertionError("it ran")


class Swapper(threading.Thread):
    """Exchanges the project and a link to the private folder as fast as it can."""

    def __init__(self, project: Path) -> None:
        super().__init__(daemon=True)
        self._pair = [os.fsencode(project), os.fsencode(project.with_name("link"))]
        self._stopped = threading.Event()
        self.swaps = 0

    def run(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        while not self._stopped.is_set():
            self.swaps += libc.renameat2(HERE, self._pair[0], HERE, self._pair[1], EXCHANGE) == 0

    def stop(self) -> None:
        self._stopped.set()
        self.join(LIMIT_S)


@contextmanager
def swapped_all_the_time(project: Path) -> Iterator[Swapper]:
    project.with_name("link").symlink_to(private_of(project))
    swapper = Swapper(project)
    swapper.start()
    try:
        yield swapper
    finally:
        swapper.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two names at once")
@pytest.mark.parametrize("command", ["cat secret.txt; echo x > planted", "cat secret.txt"])
async def test_project_swapped_all_the_time_never_leads_a_command_outside(
    level: Level, command: str, project: Path
) -> None:
    shell = Shell(await sandbox_of(level))
    workshop = Workshop(project, environment={"PATH": os.environ["PATH"]})
    async with asyncio.timeout(LIMIT_S):
        with swapped_all_the_time(project) as swapper:
            rounds = 0
            # A busy machine lets the swapper come to its turn late.
            while rounds < ROUNDS or swapper.swaps <= ROUNDS:
                rounds += 1
                # A name may be a link when it is looked at and none when it is read: then nothing runs, which is as good.
                with suppress(OSError):
                    tells_nothing(await workshop.run(shell, command=command), workshop)
    assert not list(private_of(project).rglob("planted"))


# -- what is held


def open_descriptors() -> int:
    listed = Path("/dev/fd")
    return sum(1 for _ in listed.iterdir()) if listed.is_dir() else 0


def test_held_folder_is_open_for_as_long_as_it_is_held(project: Path) -> None:
    descriptors = open_descriptors()
    with hold_folder(project) as held, open_folder(held.path) as folder:
        assert identity_of(folder) == identity_of(project)
    with hold_folder(project):
        by_folder(project)
        with pytest.raises(Forbidden, match="another folder stands where it was"):
            check_folder(project)
    check_folder(project)  # Nobody holds it any more: another turn may begin here.
    assert open_descriptors() == descriptors


def test_folder_that_a_person_replaced_is_open_to_the_turn_that_begins_in_it(project: Path) -> None:
    with hold_folder(project) as first:
        by_folder(project)
        with hold_folder(project):
            check_folder(project)
        with pytest.raises(Forbidden):
            check_folder(project)
        first.close()
        check_folder(project)


@pytest.mark.parametrize("swap", [by_link, by_relative_link, by_chain, above])
def test_link_is_refused_also_where_nobody_holds_the_folder(swap: Callable[[Path], None], project: Path) -> None:
    swap(project)
    with pytest.raises(Forbidden, match="was replaced"):
        hold_folder(project)


@pytest.mark.parametrize("name", ["gone", "secret.txt", "sub/deeper", "a\0b"])
def test_what_is_no_folder_is_not_found(name: str, project: Path) -> None:
    with pytest.raises(NotFound), open_folder(project / name):
        raise AssertionError("it was opened")
    check_folder(project / name)


# -- programs


@pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS.keys())
async def test_programs_call_is_denied_in_a_project_that_was_replaced(
    swap: Callable[[Path], None], project: Path
) -> None:
    turn = MemoryTurn(agent=AgentRecord(id="a", name="A", backend="x"))
    turn.project = project
    spec = ToolSpec("write", "", {}, edits_only=True)
    proposal = proposal_of("program", "Write", {"path": "x"}, project, path="x", edits=True, reads=False)

    class AllAllowed(Grants):
        def of(self, turn: Any) -> tuple[Grant, ...]:
            return (Grant("*", "allow"),)

    judging = Judging(None, AllAllowed())
    with hold_folder(project):
        assert judging.judge(turn, spec, proposal).verdict.decision == "allow"
        swap(project)
        verdict = judging.judge(turn, spec, proposal).verdict
        with pytest.raises(Exited, match="was replaced"):
            async with spawn(["true"], cwd=project, environment={"PATH": os.environ["PATH"]}):
                raise AssertionError("it was started")
    assert (verdict.decision, "was replaced" in verdict.why) == ("deny_continue", True)


@pytest.mark.parametrize("swap", [by_link, by_relative_link, by_chain, above])
def test_what_lies_behind_the_link_is_not_inside(swap: Callable[[Path], None], project: Path) -> None:
    assert inside(project, "secret.txt")
    swap(project)
    assert not inside(project, "secret.txt")
    assert not inside(project, str(private_of(project) / "secret.txt"))


# -- a server


@pytest.mark.parametrize("order", ["!read secret.txt", "!list .", "!shell cat secret.txt", "!write planted x"])
async def test_turn_whose_project_another_conversation_replaces_does_nothing_more(
    level: Level, order: str, outside_tmp: Path
) -> None:
    """The attack as it was run. The turn waits for an answer while the other conversation swaps its folder."""
    sub, private = outside_tmp / "project/sub", outside_tmp / "private"
    sub.mkdir(parents=True)
    private.mkdir()
    (sub / "secret.txt").write_text("harmless")
    (private / "secret.txt").write_text(SECRET)
    async with at_work(outside_tmp, sandbox=level) as work:
        first = await work.server.create(project=str(sub))
        await work.server.send(first, f"!write other x\n---\n{order}")
        (request,) = await work.opened(first)
        if level == "none":
            sub.rename(sub.with_name("sub0"))  # As a command does that a person allowed.
            sub.symlink_to(private)
        else:
            other = await work.begin(f"!shell mv sub sub0 && ln -s {private} sub", mode="auto")
            await work.events(other)
        assert sub.is_symlink()
        await work.decide(first, request)
        events = await work.events(first)
    assert SECRET not in str(events)
    assert sorted(path.name for path in private.iterdir()) == ["secret.txt"]
    results = of(events, "tool.finished")
    assert results
    assert "was replaced" in str(results)

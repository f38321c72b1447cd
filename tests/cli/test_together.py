"""Several programs on one real server: handed a conversation in turn, stopped one by one, and gone when the server is killed."""

import asyncio
import secrets
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from palaver.client import Client
from palaver.schema.commands import Interrupt, UpdateConversation
from palaver.schema.view import State, ToolBlock
from tests.cli.desk import WAIT_S, at_rest, served, set_up
from tests.cli.rig import Subject, remembered, running, until
from tests.cli.subjects import CLAUDE, CODEX, GEMINI, OPENCODE, PI
from tests.crash.rig import Rig

pytestmark = [pytest.mark.cli, pytest.mark.timeout(180)]

GONE_S = 2.0
"""Within which nothing of a killed server's programs may be left: a promise to people, so this bound is the test's subject."""


def sleeps(mark: str) -> Callable[[State], bool]:
    return lambda _: bool(running(mark))


def gone(mark: str) -> bool:
    return not running(mark)


def tool_results(state: State) -> list[str]:
    return [block.output for message in state.messages for block in message.blocks if isinstance(block, ToolBlock)]


def sessions(state: State, backend: str) -> list[str]:
    marks = [message.data for message in state.messages if isinstance(message.data, dict)]
    return [mark["session"] for mark in marks if mark.get("by") == backend]


async def test_conversation_goes_from_program_to_program_and_each_knows_what_the_others_did(tmp_path: Path) -> None:
    async with set_up(tmp_path, CLAUDE, CODEX) as desk, served(desk):
        talk = await desk.create("claude")
        first, _ = await desk.whole(talk, CLAUDE.shell("echo claude-$((40+1)) > one.txt; cat one.txt"))
        assert any("claude-41" in result for result in tool_results(first))

        second, told_codex = await desk.whole(talk, CODEX.shell("echo codex-$((40+2)) > two.txt; cat two.txt"), "codex")
        assert "claude-41" in told_codex
        assert any("codex-42" in result for result in tool_results(second))

        await desk.at.command(talk, UpdateConversation(agent="default"))
        third, told_loop = await desk.whole(talk, "!shell echo loop-$((40+3)) > three.txt; cat three.txt")
        assert "claude-41" in told_loop
        assert "codex-42" in told_loop
        assert any("loop-43" in result for result in tool_results(third))

        last, told_claude = await desk.whole(talk, "!say I am back.", "claude")
    assert "codex-42" in told_claude
    assert "loop-43" in told_claude
    assert len(set(sessions(last, "claude"))) == 1, "it went on with what it remembered itself"
    assert sessions(last, "codex")
    # What each did was done once: the record that is handed over is told, not run.
    assert len(tool_results(last)) == 3
    backends = [message.agent for message in last.messages if message.role == "assistant"]
    assert list(dict.fromkeys(backends)) == ["claude", "codex", "default"]
    assert backends[-1] == "claude"


async def test_programs_at_work_together_are_stopped_one_by_one(tmp_path: Path) -> None:
    programs = (CLAUDE, CODEX, PI, OPENCODE)
    async with set_up(tmp_path, *programs) as desk, served(desk):
        marks: dict[str, str] = {}
        for subject in programs:
            talk = await desk.create(subject.name)
            marks[talk] = f"300.{secrets.randbelow(10**9):09}"
            await desk.send(talk, subject.shell(f"sleep {marks[talk]} & wait"))
        await asyncio.gather(*(desk.agreed(talk, sleeps(mark)) for talk, mark in marks.items()))

        left = dict(marks)
        for talk, mark in marks.items():
            del left[talk]
            await desk.at.command(talk, Interrupt())
            async with asyncio.timeout(WAIT_S):
                await until(partial(gone, mark))
            stopped = await desk.agreed(talk, at_rest)
            assert stopped.last_turn is not None
            assert stopped.last_turn.outcome == "interrupted"
            for other, still in left.items():
                assert running(still), f"{(await desk.at.snapshot(other)).agent} was stopped along with {stopped.agent}"
                assert (await desk.at.snapshot(other)).turn is not None


@dataclass
class ProgramRig(Rig):
    """The killable server with the programs' surroundings."""

    environment: dict[str, str] = field(default_factory=dict[str, str])

    async def start(self, kill: str | None = None) -> None:
        with (self.data.parent / "server.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.crash.killable", "serve", "--no-open"),
                *("--port", str(self.port), "--data", str(self.data)),
                cwd=Path(__file__).parents[2],
                env=self.environment,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=log,
            )


def at_home(home: Path) -> list[int]:
    """Every process whose home this is: a program, its warden, and all they started, whosever child it is by now."""
    found: list[int] = []
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            with suppress(OSError):
                if f"HOME={home}".encode() in (place / "environ").read_bytes().split(b"\0"):
                    found.append(int(place.name))
    return found


def parents() -> dict[tuple[int, str], int]:
    """Of every living process, by its id and the moment it began: an id is given away again."""
    found: dict[tuple[int, str], int] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            with suppress(OSError):
                # After the name, which may hold anything: the state is field 3, the parent 4, the beginning 22.
                state, parent, *more = (place / "stat").read_text().rpartition(")")[2].split()
                if state != "Z":
                    found[int(place.name), more[17]] = int(parent)
    return found


def family(pid: int) -> set[tuple[int, str]]:
    """All below a process, however they changed their environment."""
    known = parents()
    below: set[tuple[int, str]] = set()
    above = {pid}
    while above:
        born = {child for child, parent in known.items() if parent in above} - below
        below |= born
        above = {child for child, _ in born}
    return below


@pytest.mark.parametrize("subject", [CLAUDE, CODEX, PI, OPENCODE, GEMINI], ids=lambda subject: subject.name)
async def test_killed_server_leaves_no_program_behind_and_the_next_message_resumes(
    subject: Subject, tmp_path: Path
) -> None:
    async with set_up(tmp_path, subject) as desk:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        rig = ProgramRig(desk.data, desk.service.url, port, environment=desk.environment)
        try:
            await rig.start()
            await rig.up()
            mark = f"300.{secrets.randbelow(10**9):09}"
            async with Client.connect(rig.url, rig.token) as desk.client:
                talk = await desk.create(subject.name)
                await desk.whole(talk, "!say My favourite tide is the neap tide.")
                await desk.send(talk, subject.shell(f"sleep {mark} & wait"))
                await desk.agreed(talk, sleeps(mark))
            assert rig.process is not None
            below = family(rig.process.pid)
            # Every way to find what is left finds it now, or its silence later would say nothing.
            assert set(running(mark)) < {pid for pid, _ in below}
            assert len(set(at_home(desk.place.home)) & {pid for pid, _ in below}) > len(running(mark))

            await rig.kill()
            with suppress(TimeoutError):
                async with asyncio.timeout(GONE_S):
                    await until(lambda: not (below & parents().keys() or at_home(desk.place.home) or running(mark)))
            assert (below & parents().keys(), at_home(desk.place.home), running(mark)) == (set(), [], [])

            subject.minutes_later(desk.place)
            await rig.start()
            await rig.up()
            async with Client.connect(rig.url, rig.token) as desk.client:
                settled = await desk.seen(talk, at_rest)
                assert settled.last_turn is not None
                assert settled.last_turn.outcome == "interrupted"
                statuses = [b.status for m in settled.messages for b in m.blocks if isinstance(b, ToolBlock)]
                assert statuses == ["interrupted"]
                assert not [request for request in settled.requests if request.status == "open"]
                assert not running(mark), "what was cut is not run again"
                _, told = await desk.whole(talk, "!say I remember.")
        finally:
            await rig.stop()
    assert remembered("neap tide", told)

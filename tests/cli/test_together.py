"""Several programs on one real server: handed a conversation in turn, stopped one by one, and gone when the server is killed.

Each runs with a fresh home and the scripted model as its service. The roster is the server's own: what the environment
offers, and agent files where a program lies elsewhere than on the PATH.
"""

import asyncio
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec
import pytest

from palaver.client import Client
from palaver.schema.commands import CreateConversation, Interrupt, ResolveRequest, SendMessage, UpdateConversation
from palaver.schema.view import State, ToolBlock
from tests.cli.from_npm import node_folder
from tests.cli.rig import Place, Subject, needed, remembered, running, until
from tests.cli.subjects import SUBJECTS
from tests.cli.subjects.codex import environment_of
from tests.crash.rig import Rig
from tests.flows.served import serving
from tests.provider import ScriptedProvider, scripted_provider

pytestmark = [pytest.mark.cli, pytest.mark.timeout(180)]

WAIT_S = 60.0
"""The slowest program needs five seconds to start on a quiet machine; four start at once here."""
GONE_S = 2.0
"""Within which nothing of a killed server's programs may be left: a promise to people, so this bound is the test's subject."""

BY_NAME = {subject.name: subject for subject in SUBJECTS}
CLAUDE, CODEX, PI, OPENCODE, GEMINI = (BY_NAME[name] for name in ("claude", "codex", "pi", "opencode", "gemini"))


def an_agent_file(subject: Subject) -> str:
    agent = subject.agent
    front = {
        "name": agent.name,
        "backend": agent.backend,
        "command": agent.command,
        "environment": agent.environment,
        "model": agent.model,
        "params": agent.params,
    }
    # JSON is YAML too.
    return f"---\n{msgspec.json.encode(front).decode()}\n---\n"


@dataclass
class Desk:
    """Where the programs are set up, and a person who talks to them."""

    place: Place
    data: Path
    environment: dict[str, str]
    client: Client | None = None

    @property
    def service(self) -> ScriptedProvider:
        return self.place.service

    @property
    def at(self) -> Client:
        assert self.client is not None
        return self.client

    async def create(self, agent: str) -> str:
        accepted = await self.at.create(CreateConversation(agent=agent, project=str(self.place.project)))
        return accepted.conversation

    async def send(self, conversation: str, text: str, agent: str | None = None) -> None:
        await self.at.command(conversation, SendMessage(content=text, agent=agent))

    async def agreed(self, conversation: str, done: Callable[[State], bool]) -> State:
        """Says yes to whatever is asked, until the conversation is as wished."""
        async with asyncio.timeout(WAIT_S):
            while not done(state := await self.at.snapshot(conversation)):
                for request in state.requests:
                    if request.status == "open":
                        await self.at.command(conversation, ResolveRequest(request=request.id, verdict="allow"))
                await asyncio.sleep(0.05)
        return state

    async def seen(self, conversation: str, done: Callable[[State], bool]) -> State:
        """Until the conversation is as wished, with nobody there to answer."""
        async with asyncio.timeout(WAIT_S):
            while not done(state := await self.at.snapshot(conversation)):  # noqa: ASYNC110 - as a person looks again
                await asyncio.sleep(0.05)
        return state

    async def whole(self, conversation: str, text: str, agent: str | None = None) -> tuple[State, str]:
        """One turn to its end, and all that any model was told in it."""
        asked = len(self.service.requests)
        await self.send(conversation, text, agent)
        state = await self.agreed(conversation, at_rest)
        assert state.last_turn is not None
        assert state.last_turn.outcome == "completed", state.last_turn
        return state, msgspec.json.encode(self.service.bodies[asked:]).decode()


def at_rest(state: State) -> bool:
    return state.turn is None and not state.queue and state.last_turn is not None


def sleeps(mark: str) -> Callable[[State], bool]:
    return lambda _: bool(running(mark))


def gone(mark: str) -> bool:
    return not running(mark)


def tool_results(state: State) -> list[str]:
    return [block.output for message in state.messages for block in message.blocks if isinstance(block, ToolBlock)]


def sessions(state: State, backend: str) -> list[str]:
    marks = [message.data for message in state.messages if isinstance(message.data, dict)]
    return [mark["session"] for mark in marks if mark.get("by") == backend]


@asynccontextmanager
async def set_up(tmp_path: Path, *subjects: Subject) -> AsyncIterator[Desk]:
    """A home in which every one of them is logged in to the scripted model."""
    for subject in subjects:
        needed(subject)
    home, project, data = (tmp_path / name for name in ("home", "project", "data"))
    for folder in (home, project, data / "agents"):
        folder.mkdir(parents=True)
    async with scripted_provider(obedient=True, strict=False) as service:
        place = Place(service, home, project)
        for subject in subjects:
            # Opening writes its settings; the backend made by it never starts anything.
            async with subject.open(place):
                (data / "agents" / f"{subject.name}.md").write_text(an_agent_file(subject))
        environment = {
            **environment_of(place),
            "PATH": f"{node_folder()}:{os.environ['PATH']}",
            "ANTHROPIC_BASE_URL": service.url,
            "ANTHROPIC_API_KEY": "sk-ant-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
        }
        yield Desk(place, data, environment)


@asynccontextmanager
async def served(desk: Desk) -> AsyncIterator[None]:
    async with (
        serving(desk.data, environment=desk.environment) as server,
        Client.connect(server.url, server.token) as desk.client,
    ):
        yield


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

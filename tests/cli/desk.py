"""A real server with the programs set up for it, and a person who talks to them through it.

Each program runs with a fresh home and the scripted model as its service. The roster is the server's own: what the
environment offers, and agent files where a program lies elsewhere than on the PATH.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from palaver.client import Client
from palaver.schema.commands import CreateConversation, ResolveRequest, SendMessage
from palaver.schema.view import State
from tests.cli.from_npm import node_folder
from tests.cli.rig import Place, Subject, needed
from tests.cli.subjects.codex import environment_of
from tests.flows.served import Served, serving
from tests.provider import ScriptedProvider, scripted_provider

WAIT_S = 90.0
"""The slowest program needs five seconds to start on a quiet machine; four start at once here."""
LOOK_EVERY_S = 0.05
"""A person looks again: what is waited for may be a process or a file, of which no event tells."""


def front_of(subject: Subject) -> str:
    """The front matter of its agent file."""
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
    return msgspec.json.encode(front).decode()


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
                await asyncio.sleep(LOOK_EVERY_S)
        return state

    async def seen(self, conversation: str, done: Callable[[State], bool]) -> State:
        """Until the conversation is as wished, with nobody there to answer."""
        async with asyncio.timeout(WAIT_S):
            while not done(state := await self.at.snapshot(conversation)):  # noqa: ASYNC110 - as a person looks again
                await asyncio.sleep(LOOK_EVERY_S)
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
                (data / "agents" / f"{subject.name}.md").write_text(f"---\n{front_of(subject)}\n---\n")
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
async def served(desk: Desk) -> AsyncIterator[Served]:
    async with (
        serving(desk.data, environment=desk.environment) as server,
        Client.connect(server.url, server.token) as desk.client,
    ):
        yield server

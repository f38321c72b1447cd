"""The built-in agent at work over a real server: a scripted model service, a project folder, a client that decides."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaver.clock import Clock
from palaver.tools.shell.sandbox_level import Level
from tests.flows.served import Served, serving
from tests.provider import Answer, ScriptedProvider, scripted_provider

Event = dict[str, Any]


@dataclass
class Work:
    server: Served
    provider: ScriptedProvider
    project: Path

    async def begin(self, text: str, **params: Any) -> str:
        conversation = await self.server.create(project=str(self.project), params=params)
        await self.server.send(conversation, text)
        return conversation

    async def until(self, conversation: str, last: Callable[[Event], bool]) -> list[Event]:
        async with self.server.events(conversation, after=0) as stream:
            return [event async for event in stream.until(last)]

    async def opened(self, conversation: str, count: int = 1) -> list[Event]:
        """The open requests, once there are so many."""
        left = count

        def enough(event: Event) -> bool:
            nonlocal left
            left -= event["type"] == "request.opened"
            return bool(left == 0)

        await self.until(conversation, enough)
        return await self.waiting(conversation)

    async def waiting(self, conversation: str) -> list[Event]:
        items = (await self.server.http.get("/api/requests")).json()["items"]
        return [item["request"] for item in items if item["conversation"] == conversation]

    async def decide(self, conversation: str, request: Event, verdict: str = "allow", **more: Any) -> Event:
        answer = await self.server.command(
            conversation, type="resolve_request", request=request["id"], verdict=verdict, **more
        )
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    async def events(self, conversation: str) -> list[Event]:
        """All of them, once the agent rests."""
        return await self.server.settled(conversation)


def of(events: list[Event], type: str) -> list[Event]:
    return [event for event in events if event["type"] == type]


@asynccontextmanager
async def at_work(
    folder: Path,
    *script: Answer,
    environment: Mapping[str, str] | None = None,
    provider: ScriptedProvider | None = None,
    clock: Clock | None = None,
    sandbox: Level | None = None,
) -> AsyncIterator[Work]:
    """`folder` holds the data, the project and a home. Without a script the model obeys."""
    for name in ("project", "home"):
        (folder / name).mkdir(exist_ok=True)
    if provider is None:
        async with (
            scripted_provider(*script, obedient=not script) as started,
            _serving(folder, started, environment or {}, clock, sandbox) as work,
        ):
            yield work
    else:
        async with _serving(folder, provider, environment or {}, clock, sandbox) as work:
            yield work


@asynccontextmanager
async def _serving(
    folder: Path, provider: ScriptedProvider, more: Mapping[str, str], clock: Clock | None, sandbox: Level | None
) -> AsyncIterator[Work]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "OPENAI_BASE_URL": f"{provider.url}/v1",
        "OPENAI_API_KEY": "k",
        **more,
    }
    async with serving(
        folder / "data", environment=environment, model="scripted", clock=clock, sandbox=sandbox
    ) as server:
        yield Work(server, provider, folder / "project")

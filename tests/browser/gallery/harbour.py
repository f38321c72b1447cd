"""The place where the pictures of the documentation are taken: a harbour office with a few projects, agents and a week of talk.

A real server in this process, on a real log, with a scripted model. Its clock, and the page's, begin at one fixed minute, so
that the pictures of two runs say the same times.
"""

import asyncio
import re
import shutil
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from msgspec.structs import replace
from playwright.async_api import Route

from palaver.app import open_app
from palaver.clock import SystemClock
from palaver.config import Config, ProviderSettings
from palaver.faces.http.listener import Listener
from tests.browser.test_pictures import TEST, TIDE
from tests.browser.visitor import DESKTOP, LOOK_EVERY_S, Visitor, Visitors
from tests.provider.script import Answer, Block, Fault, Say
from tests.provider.server import ScriptedProvider

NOW = datetime(2026, 11, 16, 9, 41, tzinfo=UTC)
"""A Monday morning."""
PORT = 8124
"""Always the same: it is in the pictures."""
MODEL, SMALL = "keeper-1", "keeper-mini"
WINDOW_TOKENS = 200_000
WAIT_S = 30.0
AGENTS = {
    "pilot": "name: Pilot\ndescription: Plans the work and gives it to the others\nmodel: keeper-1",
    "builder": "name: Builder\ndescription: Changes code and runs the tests\nmodel: keeper-1\n"
    "policy: [{tool: shell, match: 'git push*', decision: deny_continue}]",
    "reviewer": "name: Reviewer\ndescription: Reads what others wrote, changes nothing\n"
    "tools: read, list, glob, grep\nidle_prompt: Look at what changed since you last looked.\nidle_interval_s: 1800",
}

FILES = {
    "tides/tide.py": TIDE,
    "tides/test_tide.py": TEST,
    "tides/AGENTS.md": "Run the tests with `python3 -m unittest`.\n",
    "tides/tables/2026.csv": "date,high water\n2026-11-16,04:12\n",
    "lights/lamp.py": "RANGE_NM = 19\n",
    "website/index.html": "<h1>North Head harbour</h1>\n",
    "website/.palaver/agents/gardener.md": "---\nname: Gardener\ndescription: Keeps the pages tidy\n"
    "allowed_tools: [edit]\n---\nYou keep the pages tidy.\n",
}

EARLIER: tuple[tuple[timedelta, str, str, str, str], ...] = (
    (timedelta(days=6), "default", "website", "Rename the harbour pages", "All eleven pages now say *North Head*."),
    (timedelta(days=4), "default", "lights", "Which buoys have no light?", "Three of them: **7**, **12** and **12a**."),
    (timedelta(days=3), "builder", "lights", "Make the lamp start in a second", "It starts in 0.8 s; it was 4.1 s."),
    (
        timedelta(days=1),
        "reviewer",
        "website",
        "Read the new landing page",
        "Two links lead nowhere, the rest reads well.",
    ),
    (
        timedelta(hours=20),
        "default",
        "tides",
        "Explain the moon's part in it",
        "High water comes 50 minutes later each day.",
    ),
    (
        timedelta(hours=2),
        "builder",
        "tides",
        "Add the tables for 2027",
        "Added, 365 rows, checked against the almanac.",
    ),
    (timedelta(minutes=35), "default", "lights", "Sum up last week's log", "Quiet week: two lamps changed, no fog."),
)
"""How long ago, with whom, about which folder, what was asked, what was answered. Oldest first."""


class FixedStart(SystemClock):
    """Runs like any clock, from a given moment on."""

    def __init__(self, start: datetime = NOW) -> None:
        self.shift_ms = 0
        self.set(start)

    def set(self, moment: datetime) -> None:
        self.shift_ms = int(moment.timestamp() * 1000) - time.time_ns() // 1_000_000

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.shift_ms


@dataclass
class Harbour:
    folder: Path
    """Holds the projects."""
    data: Path
    url: str
    token: str
    http: httpx.AsyncClient
    provider: ScriptedProvider
    clock: FixedStart
    visitors: Visitors
    pixels: int = 1
    """A picture has so many pixels for each of the page's."""

    def project(self, name: str) -> str:
        return str(self.folder / name)

    def says(self, *blocks: str | Block, fault: Fault | None = None, when: str | None = None) -> None:
        """What the model answers next; `when` only to a text that holds these words."""
        tokens = (18_400, 320)
        answer = Answer.of(*blocks, fault=fault, when=when, chunk_chars=400)
        self.provider.script.append(replace(answer, input_tokens=tokens[0], output_tokens=tokens[1]))

    async def begin(
        self, message: str | None = None, *, agent: str = "default", project: str = "tides", **more: Any
    ) -> str:
        body = {"agent": agent, "project": self.project(project), **more}
        answer = await self.http.post("/api/conversations", json=body | ({"message": message} if message else {}))
        assert answer.status_code == 201, answer.text
        return str(answer.json()["conversation"])

    async def command(self, conversation: str, **fields: Any) -> None:
        answer = await self.http.post(f"/api/conversations/{conversation}/commands", json=fields)
        assert answer.is_success, answer.text

    async def rests(self, conversation: str) -> None:
        async with asyncio.timeout(WAIT_S):
            while True:
                view = (await self.http.get(f"/api/conversations/{conversation}/snapshot")).json()
                if view.get("messages") and not view.get("turn") and not view.get("queue"):
                    return
                await asyncio.sleep(LOOK_EVERY_S)

    async def stranger(self) -> Visitor:
        visitor = await self.visitors.stranger(self.url, DESKTOP, device_scale_factor=self.pixels)
        return await self._at_our_time(visitor)

    async def ada(self, conversation: str | None = None) -> Visitor:
        """The owner, at a conversation."""
        visitor = await self.visitors.owner(self.url, self.token, DESKTOP, device_scale_factor=self.pixels)
        await self._at_our_time(visitor)
        if conversation is not None:
            await visitor.open(conversation)
        return visitor

    async def talks(self, message: str, **more: Any) -> Visitor:
        """The owner, at a conversation that begins so."""
        return await self.ada(await self.begin(message, **more))

    async def _at_our_time(self, visitor: Visitor) -> Visitor:
        await visitor.page.context.route(re.compile(r"/api/(agents|backends)"), _without_paths)
        await visitor.page.context.add_init_script(
            f"""(() => {{ const Real = Date; globalThis.Date = class extends Real {{
                constructor(...given) {{ if (given.length) super(...given); else super(Real.now() + {self.clock.shift_ms}); }}
                static now() {{ return Real.now() + {self.clock.shift_ms}; }}
            }}; }})()"""
        )
        return visitor


async def _without_paths(route: Route) -> None:
    """Where a program lies on the machine that takes the pictures is nobody's business."""
    if route.request.method != "GET":
        await route.fallback()
        return
    answer = await route.fetch()
    await route.fulfill(response=answer, body=re.sub(r"/[^\s\"`]*/(codex|claude)\b", r"\1", await answer.text()))


@asynccontextmanager
async def harbour_serving(
    folder: Path, data: Path, provider: ScriptedProvider, visitors: Visitors, **settings: Any
) -> AsyncIterator[Harbour]:
    clock = FixedStart()
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", PORT))
        service = ProviderSettings(
            "keeper", "openai", provider.url, api_key="-", models=(MODEL, SMALL), window_tokens=WINDOW_TOKENS
        )
        config = Config(
            data=data,
            home=folder,
            port=listener.getsockname()[1],
            name="North Head",
            environment={"HOME": str(data.parent), "PATH": "/usr/bin:/bin"},
            providers=(service,),
            **settings,
        )
        async with open_app(config, clock=clock) as app:
            ready = asyncio.Event()
            server = Listener(app.asgi, app.streams, config, grace_s=1, started=ready.set)
            running = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                async with asyncio.timeout(WAIT_S):
                    await ready.wait()
                url, token = f"http://127.0.0.1:{config.port}", (data / "token").read_text().strip()
                headers = {"Authorization": f"Bearer {token}"}
                async with httpx.AsyncClient(base_url=url, headers=headers, timeout=WAIT_S) as http:
                    yield Harbour(folder, data, url, token, http, provider, clock, visitors)
            finally:
                provider.gates.open_all()
                server.stop()
                async with asyncio.timeout(WAIT_S):
                    await running


def make_projects(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def make_agents(data: Path) -> None:
    (data / "agents").mkdir(parents=True, exist_ok=True)
    for name, front in AGENTS.items():
        (data / "agents" / f"{name}.md").write_text(f"---\n{front}\n---\nYou are the {name} of North Head harbour.\n")


async def make_past(harbour: Harbour) -> None:
    """A week of conversations, so that nothing looks empty."""
    for ago, agent, project, asked, answered in EARLIER:
        harbour.clock.set(NOW - ago)
        harbour.says(Say(text=answered))
        await harbour.rests(await harbour.begin(asked, agent=agent, project=project))
    harbour.clock.set(NOW)

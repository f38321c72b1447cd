"""A real server that is killed while people talk to it, and the promises that must hold afterwards.

The provider lives in the test's own process and survives; the server is a child that is killed and started again on the same
port and data directory. Clients send, read and answer approvals all along, through every death, as a page would.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from palaver.client import Client
from palaver.client.sse import server_sent
from palaver.errors import PalaverError
from palaver.schema.commands import Accepted, CreateConversation, ResolveRequest, SendMessage

WAIT_S = 60.0
"""The longest a test waits for the server to be up, or for a conversation to rest: kills and restarts take their time."""
AGAIN_S = 0.05
"""Between two tries of somebody who never gives up: of a server that was killed, nobody tells when it is back."""


class Violation(AssertionError):
    """A promise that did not hold."""


@dataclass
class Rig:
    data: Path
    provider_url: str
    port: int = 0
    fault: str | None = None
    process: asyncio.subprocess.Process | None = None
    accepted: dict[str, Accepted] = field(default_factory=dict[str, Accepted])
    """Every 2xx the clients were given, by client request id."""
    seen: dict[int, bytes] = field(default_factory=dict[int, bytes])
    """Every event the readers held, by seq."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    violation: Violation | None = None
    """What a reader saw that must not be."""
    deaths: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def project(self) -> Path:
        return self.data.with_name("project")

    @property
    def token(self) -> str:
        return (self.data / "token").read_text().strip()

    # -- the server

    async def start(self, kill: str | None = None) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.data),
            "OPENAI_BASE_URL": self.provider_url,
            "OPENAI_API_KEY": "x",
            "PALAVER_TEST_KILL": kill or "",
            "PALAVER_TEST_FAULT": self.fault or "",
        }
        with (self.data.parent / "server.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.crash.killable", "serve", "--no-open"),
                *("--port", str(self.port), "--data", str(self.data)),
                cwd=Path(__file__).parents[2],
                env=environment,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=log,
            )

    async def kill(self) -> None:
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        await self.died()

    async def died(self) -> None:
        assert self.process is not None
        await asyncio.wait_for(self.process.wait(), WAIT_S)
        self.deaths += 1

    async def up(self) -> None:
        async with asyncio.timeout(WAIT_S):
            while True:
                with suppress(PalaverError, OSError):
                    async with Client.connect(self.url, self.token) as client:
                        await client.health()
                        return
                await asyncio.sleep(AGAIN_S)

    async def stop(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), 10)
            if self.process.returncode is None:
                self.process.kill()
                await self.process.wait()

    # -- people, who never give up

    async def create(self, conversation: str) -> None:
        await self._insist(lambda client: client.create(CreateConversation(id=conversation, project=str(self.project))))

    async def send(self, conversation: str, request_id: str, text: str) -> None:
        command = SendMessage(content=text, client_request_id=request_id)
        self.accepted[request_id] = await self._insist(lambda client: client.command(conversation, command))

    async def _insist(self, ask: Any) -> Any:
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    async with Client.connect(self.url, self.token) as client:
                        return await ask(client)
                except PalaverError as error:
                    if error.code != "unavailable":
                        raise
                except OSError:
                    pass
                await asyncio.sleep(AGAIN_S)

    async def read_for_ever(self, conversation: str) -> None:
        """A reader that reconnects from what it holds, and remembers every byte it was ever given."""
        while True:
            try:
                await self._read(conversation)
            except Violation as violation:
                self.violation = violation
                self.news.set()
                return
            except (aiohttp.ClientError, TimeoutError, OSError):
                pass
            await asyncio.sleep(AGAIN_S)

    async def _read(self, conversation: str) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        after = max(self.seen, default=0)
        url = f"{self.url}/api/conversations/{conversation}/events?after={after}"
        async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as response:
            response.raise_for_status()
            async for sent in server_sent(response.content.iter_any()):
                if sent is None:
                    continue
                if sent.event == "snapshot":
                    raise Violation(f"a resync for a cursor that was held: {sent.data[:200]!r}")
                seq = int(sent.id or 0)
                if self.seen.setdefault(seq, sent.data) != sent.data:
                    raise Violation(f"event {seq} was given twice with different bytes")
                self.news.set()

    async def has_read(self, seq: int) -> None:
        async with asyncio.timeout(WAIT_S):
            while max(self.seen, default=0) < seq and self.violation is None:
                self.news.clear()
                await self.news.wait()

    async def approve_for_ever(self, conversation: str) -> None:
        """Somebody who says yes to everything, from a phone, whenever the server can be reached."""
        while True:
            with suppress(PalaverError, OSError):
                async with Client.connect(self.url, self.token) as client:
                    for waiting in await client.requests():
                        if waiting.conversation == conversation:
                            allow = ResolveRequest(request=waiting.request.id, verdict="allow")
                            await client.command(conversation, allow)
            await asyncio.sleep(AGAIN_S)

    async def rest(self, conversation: str) -> None:
        async with asyncio.timeout(WAIT_S):
            while True:
                with suppress(PalaverError, OSError):
                    async with Client.connect(self.url, self.token) as client:
                        state = await client.snapshot(conversation)
                        if state.turn is None and not state.queue and state.status != "waiting_user_input":
                            return
                await asyncio.sleep(AGAIN_S)

    async def log(self, conversation: str) -> dict[int, bytes]:
        """The whole log as the server replays it."""
        lines: dict[int, bytes] = {}
        async with Client.connect(self.url, self.token) as client:
            head = (await client.snapshot(conversation)).seq
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.url}/api/conversations/{conversation}/events?after=0"
        async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as response:
            async for sent in server_sent(response.content.iter_any()):
                if sent is not None and sent.id:
                    lines[int(sent.id)] = sent.data
                    if int(sent.id) >= head:
                        break
        return lines

    @asynccontextmanager
    async def people(self, conversation: str) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(self.read_for_ever(conversation)),
            asyncio.create_task(self.approve_for_ever(conversation)),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self.violation is not None:
            raise self.violation


@asynccontextmanager
async def rigged(data: Path, provider_url: str, fault: str | None = None) -> AsyncIterator[Rig]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    rig = Rig(data, provider_url, port, fault)
    rig.project.mkdir(exist_ok=True)
    try:
        yield rig
    finally:
        await rig.stop()


# -- the promises


def check(log: dict[int, bytes], rig: Rig) -> None:
    events = [msgspec.json.decode(log[seq]) for seq in sorted(log)]
    _numbered(events)
    _seen_is_stored(log, rig)
    _accepted_is_stored(events, rig)
    _consumed_once(events)
    _turns_alternate(events)
    _one_result_a_call(events)


def _numbered(events: list[dict[str, Any]]) -> None:
    """I1: 1..n, no gap, no repeat."""
    if [event["seq"] for event in events] != list(range(1, len(events) + 1)):
        raise Violation(f"I1: {[event['seq'] for event in events]}")


def _seen_is_stored(log: dict[int, bytes], rig: Rig) -> None:
    """I2: nobody ever held an event that is not in the log, byte for byte."""
    for seq, line in rig.seen.items():
        if log.get(seq) != line:
            raise Violation(f"I2: a client held event {seq}, the log has {log.get(seq)!r} instead of {line!r}")


def _accepted_is_stored(events: list[dict[str, Any]], rig: Rig) -> None:
    """I8, I9: every accepted message is there, once."""
    added = [event["message"] for event in events if event["type"] == "message.added" and event.get("role") != "event"]
    for request_id, accepted in rig.accepted.items():
        if added.count(accepted.id) != 1:
            raise Violation(
                f"I8: {request_id} was accepted as {accepted.id} and is in the log {added.count(accepted.id)} times"
            )
    users = [event for event in events if event["type"] == "message.added" and "role" not in event]
    if len(users) != len(rig.accepted):
        raise Violation(f"I9: {len(rig.accepted)} messages were sent, {len(users)} are in the log")


def _consumed_once(events: list[dict[str, Any]]) -> None:
    """I10: each message is consumed by exactly one turn."""
    added = [event["message"] for event in events if event["type"] == "message.added"]
    started = [event for event in events if event["type"] == "turn.started"]
    consumed = [message for event in started for message in event["trigger"]["messages"]]
    if sorted(added) != sorted(consumed):
        raise Violation(f"I10: added {added}, consumed {consumed}")


def _turns_alternate(events: list[dict[str, Any]]) -> None:
    """I12, I20: one turn at a time, each with an end, nothing of it after its end."""
    active: str | None = None
    ended: set[str] = set()
    for event in events:
        turn = event.get("turn")
        if event["type"] == "turn.started":
            if active is not None:
                raise Violation(f"I12: {turn} began while {active} was open")
            active = turn
        elif event["type"] in ("turn.finished", "turn.interrupted"):
            if turn != active:
                raise Violation(f"I12: {turn} ended, {active} was open")
            ended.add(active or "")
            active = None
        elif turn in ended and event["type"] not in ("request.resolved", "tool.finished"):
            raise Violation(f"I20: {event['type']} of {turn} after its end")
    if active is not None:
        raise Violation(f"I12: {active} has no end")


def _one_result_a_call(events: list[dict[str, Any]]) -> None:
    """I13: every call has exactly one result, also one that was cut while its arguments streamed in."""
    calls = {event["call"] for event in events if event["type"] in ("tool.called", "tool.input.delta")}
    results = [event["call"] for event in events if event["type"] == "tool.finished"]
    if sorted(calls) != sorted(results):
        raise Violation(f"I13: calls {calls}, results {results}")


def check_effects(effects: Path, wanted: list[str], log: dict[int, bytes]) -> None:
    """I14: each side effect happened at most once, and exactly once where the log says it was done."""
    lines = effects.read_text().split() if effects.exists() else []
    events = [msgspec.json.decode(line) for line in log.values()]
    ok = {event["call"] for event in events if event["type"] == "tool.finished" and event["ok"]}
    commands = {event["call"]: str(event["input"]) for event in events if event["type"] == "tool.called"}
    for name in wanted:
        if lines.count(name) > sum(name in command for command in commands.values()):
            raise Violation(f"I14: {name} was done {lines.count(name)} times")
    for call in ok:
        name = next(name for name in wanted if name in commands[call])
        if lines.count(name) < 1:
            raise Violation(f"I14: {name} is said to be done and was not")

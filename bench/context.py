"""The engine's own time a turn on long histories, and what compressing a very long one takes. Model and tools excluded."""

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.logs import CLOCK, IDS, Writer
from bench.table import Row, Spread
from palaver.backends.api.loop import ApiBackend
from palaver.backends.api.provider import Began, ModelEvent, ModelRequest, Stopped, TextPiece, UsageSeen
from palaver.backends.api.route import only
from palaver.backends.base import Backend
from palaver.context.compression import Budget, Compressing
from palaver.context.linearize import linearize
from palaver.context.quotes import KEY_BYTES, Quoting
from palaver.conversation.directory import Directory
from palaver.conversation.folders import ProjectFolders
from palaver.conversation.recovery.load import snapshot_of
from palaver.conversation.services import Surroundings
from palaver.core.decide.facts import Runner
from palaver.feed.feed import Feed
from palaver.feed.frames import Frame
from palaver.log.base import EventLog
from palaver.log.sqlite.store import open_sqlite_log
from palaver.schema.base import Usage
from palaver.schema.commands import SendMessage
from palaver.schema.content import TextPart
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ConversationCreated,
    KnownEvent,
    MessageAdded,
    TextFinished,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from palaver.schema.records import AgentRecord
from palaver.schema.view import Message, State, Trigger
from palaver.tools.toolbox import Toolbox

LENGTHS = (0, 500, 1_000, 2_000, 4_000)
PROMISED = 2_000
TURNS = 30
GOAL_MS = 10.0
COMPRESSED_TOKENS = 200_000
COMPRESS_GOAL_MS = 300.0


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    rows: list[Row] = []
    floor = 0.0
    for length in LENGTHS:
        took = await _turns(length)
        floor = floor or took.median
        own = took.median - floor
        if length:
            rows.append(
                Row(
                    what=f"engine's own time a turn at {length:,} messages, beyond that of an empty conversation",
                    measured=f"{own:.2f} ms p50 ({took.median:.2f} ms in all)",
                    floor=f"empty, {floor:.2f} ms",
                    goal=f"≤ {GOAL_MS:.0f} ms" if length == PROMISED else "",
                    met=own <= GOAL_MS if length == PROMISED else None,
                )
            )
        if length:
            rows.append(await _prompt(length))
    rows.append(_compression())
    return rows


# -- whole turns


async def _turns(length: int) -> Spread:
    with tempfile.TemporaryDirectory() as folder:
        async with open_sqlite_log(Path(folder) / "data") as log:
            writer = Writer.fresh("long")
            await writer.append(log, [ConversationCreated()])
            for _ in range(length // 2):
                await writer.append(log, _exchange())
            await log.save_snapshot("long", snapshot_of(writer.state, 0))
            async with _directory(log, Path(folder)) as (directory, feed):
                return Spread.of([await _turn(directory, feed) for _ in range(TURNS)][TURNS // 5 :])


async def _turn(directory: Directory, feed: Feed) -> float:
    """From the message to the end of the turn, in processor time of all threads: what a busy machine leaves alone.

    The conversation stays open, as it does while a person talks.
    """
    cursor = (await directory.state("long")).seq
    begun = time.process_time()
    await directory.command("long", SendMessage(content="And then?"), None)
    async with asyncio.timeout(60):
        # By the event and not by the view: a reader of the log may see a turn's end before its owner does.
        async for item in feed.subscribe("long", cursor):
            if isinstance(item, Frame) and b'"type":"turn.finished"' in item.body:
                break
    return (time.process_time() - begun) * 1000


def _exchange() -> list[KnownEvent]:
    """A question, and an answer that looked something up."""
    turn, asked, message, call = IDS.new(), IDS.new(), IDS.new(), IDS.new()
    return [
        MessageAdded(
            turn=turn, message=asked, content=(TextPart(text="What does this file do, and who calls it? " * 3),)
        ),
        TurnStarted(turn=turn, agent="default", backend="api", trigger=Trigger(messages=(asked,))),
        AnswerStarted(turn=turn, message=message, model="instant"),
        ToolCalled(turn=turn, message=message, block=0, call=call, name="read", input={"path": f"src/{call}.py"}),
        ToolStarted(turn=turn, call=call, grant="reads_only"),
        ToolFinished(turn=turn, call=call, ok=True, output="a line of some source file\n" * 40),
        TextFinished(turn=turn, message=message, block=1, text="It adds numbers; the others call it for that. " * 6),
        AnswerFinished(turn=turn, message=message, finish_reason="stop", model="instant"),
        TurnFinished(turn=turn, outcome="completed"),
    ]


class Instant:
    """A model that takes no time."""

    identity = "bench@nowhere"

    async def default_model(self) -> str:
        return "instant"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        yield Began("instant")
        yield TextPiece(0, "Then nothing.")
        yield UsageSeen(Usage(input_tokens=10, output_tokens=3))
        yield Stopped("stop", "stop")

    async def close(self) -> None:
        pass


@dataclass
class OneAgent:
    only_backend: Backend

    def agent(self, agent: str, project: str | None = None) -> AgentRecord | None:
        return AgentRecord(id=agent, name=agent, model="instant")

    def why_not(self, agent: str, project: str | None = None) -> str:
        return f"No agent is called “{agent}”."

    def backend(self, record: AgentRecord) -> Backend:
        return self.only_backend

    def runner(self, record: AgentRecord, params: Mapping[str, Any]) -> Runner:
        return Runner(agent=record.id, backend="api", resumable=True, steerable=True)


@asynccontextmanager
async def _directory(log: EventLog, folder: Path) -> AsyncIterator[tuple[Directory, Feed]]:
    directory: Directory

    async def snapshot(conversation: str) -> tuple[int, bytes]:
        return await directory.snapshot(conversation)

    feed = Feed(log, CLOCK, snapshot)
    roster = OneAgent(ApiBackend(only(Instant()), Toolbox(tools={})))
    directory = Directory(Surroundings(log, feed, CLOCK, IDS, roster, ProjectFolders(Path("/no/such/data"), folder)))
    async with directory.running():
        yield directory, feed


# -- the parts


def _history(messages: int) -> State:
    writer = Writer.fresh("long")
    writer.number([ConversationCreated()])
    for _ in range(messages // 2):
        writer.number(_exchange())
    return writer.state


async def _prompt(length: int) -> Row:
    history = _history(length).messages
    times: list[float] = []
    for _ in range(TURNS):
        begun = time.perf_counter()
        await linearize(history, provider="bench@nowhere", load=_no_blob, quoting=Quoting(bytes(KEY_BYTES)))
        times.append((time.perf_counter() - begun) * 1000)
    return Row(what=f"a prompt made anew at {length:,} messages", measured=str(Spread.of(times)))


async def _no_blob(_: str) -> bytes | None:
    return None


def _compression() -> Row:
    """The stages without a model, until nothing more can be done: the most that a pass can take."""
    state = _history(1_100)
    history: tuple[Message, ...] = state.messages
    times: list[float] = []
    tokens = 0
    for _ in range(10):
        begun = time.perf_counter()
        work = Compressing(history, (), Budget(COMPRESSED_TOKENS // 2, COMPRESSED_TOKENS), seq=state.seq)
        tokens = work.used_tokens
        work.without_model()
        work.by_force()
        times.append((time.perf_counter() - begun) * 1000)
    took = Spread.of(times)
    return Row(
        what=f"compression of a history of {tokens:,} tokens",
        measured=str(took),
        goal=f"≤ {COMPRESS_GOAL_MS:.0f} ms",
        met=took.median <= COMPRESS_GOAL_MS,
    )

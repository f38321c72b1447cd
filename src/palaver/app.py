"""The composition root: every part of a server made, joined and ended in order.

`palaver serve` and the tests enter `open_app`; nobody else puts parts together. On entry the log is open, cut turns are
settled and the queue goes on; on exit turns are settled, processes are gone and the log is closed.
"""

import asyncio
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog
from litestar.types import ASGIApp

from palaver import __version__
from palaver.agents.backends import Backends
from palaver.agents.missions import Missions
from palaver.agents.projects import Projects
from palaver.agents.roster import Roster
from palaver.agents.sources import open_roster
from palaver.agents.trial import Trials
from palaver.clock import Clock, Ids, SystemClock
from palaver.config import Config
from palaver.conversation.conversation import Surroundings
from palaver.conversation.directory import Directory
from palaver.conversation.trajectories import Trajectories
from palaver.errors import ConfigurationError
from palaver.faces.app import build_app
from palaver.faces.keys import Failures, KeyRecord, Keys, SignedOut
from palaver.faces.listings import Listings
from palaver.faces.server import ServerParts
from palaver.faces.streams import Streams
from palaver.feed.feed import Feed
from palaver.history.programs.places import places_of
from palaver.log.base import EventLog
from palaver.log.sqlite import open_sqlite_log
from palaver.tools.background import Processes
from palaver.tools.paths import DATA_MARK
from palaver.tools.standing import StandingGrants

logger = structlog.get_logger(__name__)

TOKEN_BYTES = 32
LOOK_AT_KEYS_S = 2.0
"""How long a rotated token may stay valid: short for a person, nothing for a disk."""


@dataclass(frozen=True, slots=True, eq=False)
class App:
    """A composed server. `asgi` is what a web server runs; the rest is for whoever runs it."""

    config: Config
    log: EventLog
    feed: Feed
    directory: Directory
    roster: Roster
    keys: Keys
    streams: Streams
    trials: Trials
    asgi: ASGIApp


@asynccontextmanager
async def open_app(
    config: Config, *, clock: Clock | None = None, log: EventLog | None = None, roster: Roster | None = None
) -> AsyncIterator[App]:
    """`log` and `roster` stand in for those the configuration describes; whoever gives one also ends it."""
    clock = clock or SystemClock()
    prepare_data(config.data)
    async with AsyncExitStack() as stack:
        if log is None:
            opened: AbstractAsyncContextManager[EventLog] = open_sqlite_log(config.data)
            log = await stack.enter_async_context(opened)
        standing = StandingGrants(config.data / "grants.json")
        ids = Ids(clock)
        processes = Processes(ids.new)
        stack.push_async_callback(processes.close)
        if roster is None:
            roster = await stack.enter_async_context(open_roster(config, clock, standing, processes, ids.new))
        # The feed shows snapshots of conversations, and conversations publish to the feed: one must come first.
        feed = Feed(log, clock, lambda conversation: directory.snapshot(conversation))  # noqa: PLW0108
        directory = Directory(Surroundings(log, feed, clock, ids, roster, config.home, processes))
        keys = Keys(read_token(config.data), clock, read_key_records(config.data), SignedOutFile(config.data))
        backends = Backends(roster, clock, config.environment)
        projects = Projects(log, feed, clock, ids)
        missions = Missions(projects, directory, log, roster, clock)
        server = ServerParts(
            name=config.name,
            version=__version__,
            port=config.port,
            directory=directory,
            feed=feed,
            log=log,
            agents=roster,
            backends=backends,
            trials=Trials(directory, feed, backends, clock),
            projects=projects,
            missions=missions,
            processes=processes,
            keys=keys,
            failures=Failures(clock),
            streams=Streams(keys),
            listings=Listings(log, feed, clock),
            clock=clock,
            ids=ids,
            standing=standing,
            places=places_of(config.environment),
        )
        asgi = build_app(server, config.public_hosts)
        app = App(config, log, feed, directory, roster, keys, server.streams, server.trials, asgi)
        if config.trajectories:
            never_in = (Path(config.environment.get("HOME") or "/"), config.data)
            written = Trajectories(directory, log, feed, clock, ids, never_in)
            await stack.enter_async_context(written.running())
        await stack.enter_async_context(directory.running())
        await stack.enter_async_context(missions.running())
        await stack.enter_async_context(_held(feed.beat(), "heartbeat"))
        await stack.enter_async_context(_held(_watch_keys(app, clock), "watch the tokens"))
        yield app
        server.streams.close()


@asynccontextmanager
async def _held(work: Coroutine[None, None, None], name: str) -> AsyncIterator[None]:
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


# -- the data directory


def prepare_data(data: Path) -> None:
    """The directory itself and the owner's token, made at the first start. Nobody else may read either."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        (data / DATA_MARK).touch(mode=0o600)
        if not (data / "token").exists():
            _make_token(data / "token")
        (data / "token").chmod(0o600)
    except OSError as failure:
        raise ConfigurationError(
            f"The data directory {data} cannot be used: {failure.strerror}. Choose another one with --data."
        ) from failure


def _make_token(path: Path) -> None:
    """Whole or not at all, whenever the power fails; and of two servers that start at once both get the same one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix="token.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(TOKEN_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(temporary)
    finally:
        Path(temporary).unlink()


def read_token(data: Path) -> str:
    try:
        token = (data / "token").read_text().strip()
    except OSError as failure:
        raise ConfigurationError(f"The token in {data} cannot be read: {failure.strerror}.") from failure
    if len(token) < TOKEN_BYTES:
        raise ConfigurationError(
            f"The token in {data / 'token'} is too short to be one. Remove the file and start again."
        )
    return token


def read_key_records(data: Path) -> list[KeyRecord]:
    """Tokens beside the owner's. Their file need not exist."""
    try:
        return msgspec.json.decode((data / "tokens.json").read_bytes(), type=list[KeyRecord])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as failure:
        raise ConfigurationError(f"{data / 'tokens.json'} cannot be read: {failure}.") from failure


class SignedOutFile(SignedOut):
    """A line a cookie, in a file that rotating the token makes void."""

    def __init__(self, data: Path) -> None:
        super().__init__()
        self._path = data / "signed_out"
        with suppress(FileNotFoundError):
            self._hashes.update(self._path.read_text().split())

    def add(self, cookie_hash: str) -> None:
        super().add(cookie_hash)
        with self._path.open("a") as file:
            file.write(f"{cookie_hash}\n")


async def _watch_keys(app: App, clock: Clock) -> None:
    """A token rotated by another process counts here within seconds, and its old streams end."""
    known = _stamps(app.config.data)
    while True:
        await clock.sleep(LOOK_AT_KEYS_S)
        seen = _stamps(app.config.data)
        if seen == known:
            continue
        known = seen
        try:
            app.keys.replace(read_token(app.config.data), read_key_records(app.config.data))
        except ConfigurationError as failure:
            logger.warning("the tokens changed but cannot be read; the old ones stay", reason=failure.message)
            continue
        app.streams.drop_strangers()
        logger.info("the tokens changed")


def _stamps(data: Path) -> tuple[int, ...]:
    stamps: list[int] = []
    for name in ("token", "tokens.json"):
        try:
            stamps.append((data / name).stat().st_mtime_ns)
        except OSError:
            stamps.append(0)
    return tuple(stamps)

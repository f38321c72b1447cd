"""The composition root: every part of a server made, joined and ended in order.

`palaver serve` and the tests enter `open_app`; nobody else puts parts together. On entry the log is open, cut turns are
settled and the queue goes on; on exit turns are settled, processes are gone and the log is closed.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from litestar.types import ASGIApp

from palaver import __version__
from palaver.agents.backends import Backends
from palaver.agents.colleagues import Colleagues
from palaver.agents.delegation import Delegation
from palaver.agents.exchange import Exchanges
from palaver.agents.missions import Missions
from palaver.agents.projects import Projects
from palaver.agents.roster import Roster
from palaver.agents.sources import open_roster
from palaver.agents.test_turn import Trials
from palaver.approval.standing_grants import StandingGrants
from palaver.backends.process import allowed_environment
from palaver.clock import Clock, Ids, SystemClock
from palaver.config import Config
from palaver.context.quotes import Quoting
from palaver.conversation.defaults import Defaults
from palaver.conversation.directory import Directory
from palaver.conversation.folders import ProjectFolders
from palaver.conversation.project_files.session_lists import SessionsFiles
from palaver.conversation.project_files.trajectories import Trajectories
from palaver.conversation.quote_key import quote_key
from palaver.conversation.recovery.reconstruction import reconstruct
from palaver.conversation.services import Surroundings
from palaver.errors import ConfigurationError
from palaver.faces.http.app import build_app
from palaver.faces.http.hosts import Hosts
from palaver.faces.http.open_streams import Streams
from palaver.faces.inbox.endpoints import InboxDoors
from palaver.faces.listings import Listings
from palaver.faces.server import ServerParts
from palaver.faces.socket.voices import speaker_of
from palaver.feed.feed import Feed
from palaver.history.programs.places import places_of
from palaver.log.base import EventLog
from palaver.log.sqlite.store import open_sqlite_log
from palaver.people.authentication import Failures, Keys
from palaver.people.token_files import SignedOutFile, TokenFiles, ensure_token, read_key_records, read_token
from palaver.tasks import TaskOwner
from palaver.tools.files.paths import DATA_MARK
from palaver.tools.shell.background import Processes


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
            opened: AbstractAsyncContextManager[EventLog] = open_sqlite_log(config.data, reconstruct)
            log = await stack.enter_async_context(opened)
        standing = StandingGrants(config.data / "grants.json")
        defaults = Defaults(config.data / "settings.json")
        ids = Ids(clock)
        processes = Processes(ids.new)
        stack.push_async_callback(processes.close)
        folders = ProjectFolders(config.data, config.home, path=config.data / "folders.json")
        if roster is None:
            opened_roster = open_roster(config, clock, folders.programs, standing, processes, ids.new)
            roster = await stack.enter_async_context(opened_roster)
        # The feed shows snapshots of conversations, and conversations publish to the feed: one must come first.
        feed = Feed(log, clock, lambda conversation: directory.snapshot(conversation))  # noqa: PLW0108
        # Likewise conversations ask for colleagues, who are conversations.
        colleagues = Colleagues(lambda: delegation, lambda: exchanges)
        quoting = Quoting(quote_key(config.data))
        projects = Projects(log, feed, clock, ids, folders)
        if folders.is_new:
            named = [known.project for known in await log.folders()]
            await folders.remember([*named, *(state.folder for state in await projects.all())])
        around = Surroundings(log, feed, clock, ids, roster, folders, processes, colleagues, defaults, quoting)
        directory = Directory(around)
        delegation = Delegation(directory, roster, ids)
        exchanges = Exchanges(directory, log, clock, ids, roster, config.rules)
        keys = Keys(read_token(config.data), clock, read_key_records(config.data), SignedOutFile(config.data))

        def prepare(program: str) -> tuple[tuple[str, ...], dict[str, str]]:
            return folders.programs.prepare((program,), allowed_environment(config.environment))

        backends = Backends(roster, clock, config.environment, folders.chosen)
        missions = Missions(projects, directory, log, roster, clock)
        never_in = (Path(config.environment.get("HOME") or "/"), config.data)
        written = Trajectories(directory, log, feed, clock, ids, never_in) if config.trajectories else None
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
            trajectories=written,
            speaker=speaker_of(config.environment, prepare),
            full_enabled=config.full_enabled,
            defaults=defaults,
            rules=config.rules,
        )
        inbox = InboxDoors(server)
        hosts = Hosts(config.host, config.port, config.public_hosts, behind_proxy=config.behind_proxy)
        asgi = build_app(server, hosts, inbox.routes, behind_proxy=config.behind_proxy)
        app = App(config, log, feed, directory, roster, keys, server.streams, server.trials, asgi)
        if written is not None:
            await stack.enter_async_context(written.running())
        if config.sessions_file:
            await stack.enter_async_context(SessionsFiles(directory.folders, log, feed, clock, ids, never_in).running())
        await stack.enter_async_context(directory.running())
        await stack.enter_async_context(exchanges.running())
        await stack.enter_async_context(missions.running())
        tasks = await stack.enter_async_context(TaskOwner())
        tasks.hold(feed.beat(), "heartbeat")
        tokens = TokenFiles(config.data, keys, server.streams.drop_strangers)
        keys.look_again = tokens.look
        tasks.hold(tokens.watch(clock), "watch the tokens")
        await stack.enter_async_context(inbox.running())
        yield app
        server.streams.close()


# -- the data directory


def prepare_data(data: Path) -> None:
    """The directory itself and the owner's token, made at the first start. Nobody else may read either."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        (data / DATA_MARK).touch(mode=0o600)
        ensure_token(data)
    except OSError as failure:
        raise ConfigurationError(
            f"The data directory {data} cannot be used: {failure.strerror}. Choose another one with --data."
        ) from failure

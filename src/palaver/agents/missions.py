"""Keeps missions going: wakes an agent that has rested long enough with its idle prompt, in a conversation of its own.

A task of the server, made by `app.py`; tells faces how a mission stands. Who is due is decided in `core/project.py`; here is
what that needs to know (who works, since when the others rest, what it cost) and the time. A waking is written to the
project's stream first and told after that, under an id made of its number: after a crash it is told again and taken once.

Must never: wake an agent that works, or wake more often or for more money than the mission allows.
"""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from palaver.agents.projects import Projects, stream_of
from palaver.clock import Clock
from palaver.conversation.directory import Directory
from palaver.conversation.roster import Roster
from palaver.core import project
from palaver.core.project import TRIGGER_LIMIT, Agent, Held, Idle, Mission, ProjectState, Standing
from palaver.errors import CallerError, LogError
from palaver.journal import Journal
from palaver.log.base import EventLog, Run
from palaver.schema.base import Origin, Shown
from palaver.schema.commands import Deliver
from palaver.schema.events import ConversationCreated, MissionAgent
from palaver.schema.view import Listing, Parent
from palaver.tasks import TaskOwner, running, wait_first

logger = Journal(__name__)

LOOK_AGAIN_S = 15.0
"""Half of the shortest rest: whoever comes to rest is seen before it is due, without listening to every conversation."""
RUNS_LOOKED_AT = 200
"""The newest of a project: the latest end of each agent's turns is among them, or was seen before."""
TREE_PAGE = 500
TITLE_CHARS = 60
MISSION_ORIGIN = Origin(face="mission")


class MissionAgentView(Shown):
    """An agent of a mission: what holds for it now, and under `own` what the mission itself says of it."""

    agent: str
    idle_prompt: str | None
    idle_interval_s: int
    conversation: str | None
    """None until it was woken for the first time."""
    triggered: int
    next_due_at: int | None
    status: Standing
    own: MissionAgent


class MissionView(Shown):
    """The mission that a project has. Without one only `active`, `project` and `stream` say something."""

    active: bool
    project: str
    stream: str
    """Whose events tell that any of this changed."""
    mission: str | None = None
    text: str = ""
    created_at: int | None = None
    agents: tuple[MissionAgentView, ...] = ()
    budget_usd: float | None = None
    spent_usd: float = 0.0
    triggered: int = 0
    limit: int = TRIGGER_LIMIT
    status: str | None = None
    """`active`, or why nobody is woken any more: `limit`, `budget`."""


def conversation_of(mission: str, agent: str) -> str:
    """Where an agent is told of a mission: made once, whoever makes it."""
    return "mission-" + blake2b(f"{mission} {agent}".encode(), digest_size=16).hexdigest()


class Missions:
    def __init__(self, projects: Projects, directory: Directory, log: EventLog, roster: Roster, clock: Clock) -> None:
        self._projects = projects
        self._directory = directory
        self._log = log
        self._roster = roster
        self._clock = clock
        self._time = _Time(clock)
        self._looking = asyncio.Lock()
        self._untold: set[tuple[str, str]] | None = None
        """Missions and agents whose last waking may not have been told. None: since the start nobody has looked."""
        self._rested: dict[tuple[str, str], int] = {}
        self._spent: dict[str, float] = {}
        self._complained: set[tuple[str, str]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Entered after the conversations are recovered, left before they end."""
        async with running(self._watch(), "missions"):
            yield

    async def _watch(self) -> None:
        while True:
            # Listening before looking: what changes in between wakes us again.
            async with TaskOwner() as tasks:
                moved = tasks.start(self._projects.wait_for_change(), "projects change")
                try:
                    wait_s = await self.look()
                except LogError as failure:
                    logger.warning("missions wait: the log cannot be used", reason=failure.message)
                    wait_s = LOOK_AGAIN_S
                except Exception:
                    # A fault of ours with one mission must not end all of them for good.
                    logger.exception("missions could not be looked at")
                    wait_s = LOOK_AGAIN_S
                if wait_s is None:
                    await moved
                else:
                    await wait_first(moved, tasks.start(self._clock.sleep(min(wait_s, LOOK_AGAIN_S)), "missions rest"))

    # -- one look

    async def look(self) -> float | None:
        """Wake who is due. Answers in how many seconds to look again; None: not before a project changes."""
        async with self._looking:
            waits: list[float] = []
            active = [state for state in await self._projects.all() if state.mission is not None]
            await self._tell_untold(active)
            for state in active:
                is_there = await asyncio.to_thread(Path(state.folder).is_dir)
                wait_s = await self._look_at(state) if is_there else LOOK_AGAIN_S
                if wait_s is not None:
                    waits.append(wait_s)
            self._time.forget_unseen()
            return min(waits, default=None)

    async def _look_at(self, state: ProjectState) -> float | None:
        mission = state.mission
        if mission is None:
            return None
        known = await self._entry_of(state)
        for one in project.due(known.state, self._time.now(), known.agents, known.spent_usd):
            try:
                state = await self._wake(Path(state.folder), mission.id, one, known.spent_usd)
            except CallerError as failure:
                logger.warning("an agent was not woken", mission=mission.id, agent=one.agent, reason=failure.message)
        known = await self._entry_of(state)
        if known.state.mission is None or project.stop_reason(known.state.mission, known.spent_usd):
            return None
        moment = project.next_due(known.state, known.agents, known.spent_usd)
        return LOOK_AGAIN_S if moment is None else max(0.0, (moment - self._time.now()) / 1000)

    async def _wake(self, folder: Path, mission: str, one: project.Due, spent_usd: float) -> ProjectState:
        target = conversation_of(mission, one.agent)
        state = await self._projects.trigger(folder, mission, one.agent, one.prompt, target, spent_usd)
        untold = (mission, one.agent)
        if self._untold is not None:
            self._untold.add(untold)
        await self._tell(state, one.agent)
        if self._untold is not None:
            self._untold.discard(untold)
        return state

    async def _tell_untold(self, active: Sequence[ProjectState]) -> None:
        """What was written down and perhaps not told: by a server that died in between, or to a log that failed."""
        for state in active:
            mission = state.mission
            for agent in mission.woken if mission else ():
                if mission and (self._untold is None or (mission.id, agent) in self._untold):
                    try:
                        await self._tell(state, agent)
                    except CallerError as failure:
                        # Its conversation was deleted, or the agent is gone: then there is nobody to tell.
                        logger.debug("an idle prompt found nobody", agent=agent, reason=failure.message)
        self._untold = set()

    async def _tell(self, state: ProjectState, agent: str) -> None:
        mission = state.mission
        assert mission is not None
        woken = mission.woken[agent]
        if await self._log.listing(woken.conversation) is None:
            created = ConversationCreated(
                agent=agent,
                project=state.folder,
                title=_title(mission.text),
                # The top of its own tree: what works for it counts as its work.
                parent=Parent(conversation=stream_of(Path(state.folder)), kind="mission", root=woken.conversation),
            )
            await self._directory.begin_as(woken.conversation, created, MISSION_ORIGIN)
        order = Deliver(
            content=project.words_for(mission, agent),
            trigger="idle",
            agent=agent,
            client_request_id=f"idle-{mission.id}-{agent}-{woken.number}",
        )
        await self._directory.command(woken.conversation, order, MISSION_ORIGIN)

    # -- what is known of a mission's agents

    async def _entry_of(self, state: ProjectState) -> "_Known":
        mission = state.mission
        assert mission is not None
        state = self._in_our_time(state)
        work = await self._work_in(Path(state.folder))
        agents: dict[str, Agent] = {}
        for one in mission.agents:
            record = self._roster.agent(one.agent, state.folder)
            if record is None:
                self._complain(mission, one.agent)
                continue
            own = Idle(record.idle_prompt, record.idle_interval_s)
            agents[one.agent] = await self._agent(mission, one.agent, own, work)
        return _Known(state, agents, await self._cost_of(mission))

    async def _agent(self, mission: Mission, agent: str, own: Idle, work: "_Work") -> Agent:
        row = await self._log.listing(conversation_of(mission.id, agent))
        key = (work.folder, agent)
        if agent in work.busy or (row is not None and row.queue_size > 0 and not row.deleted):
            self._rested[key] = self._time.now()
            return Agent(own, resting_since=None)
        if (ended := work.ended.get(agent)) is not None:
            moment = self._time.of(f"run {ended.run}", ended.ended_at or ended.started_at)
            self._rested[key] = max(self._rested.get(key, 0), moment)
        held: Held | None = None
        if row is not None and (row.deleted or row.open_requests):
            held = "deleted" if row.deleted else "waiting"
        return Agent(own, self._rested.get(key, 0), held)

    async def _work_in(self, folder: Path) -> "_Work":
        """Who works in a project, and how each agent's latest turn there ended."""
        names = await self._names_of(folder)
        busy: set[str] = set()
        for conversation in await self._log.unfinished():
            row = await self._log.listing(conversation)
            if row is not None and row.turn and row.project in names:
                busy.add(await self._agent_of(row))
        ended: dict[str, Run] = {}
        for name in names:
            for run in await self._log.runs(project=name, limit=RUNS_LOOKED_AT):
                latest = ended.get(run.agent)
                if run.ended_at is not None and (latest is None or run.ended_at > (latest.ended_at or 0)):
                    ended[run.agent] = run
        return _Work(str(folder), frozenset(busy), ended)

    async def _agent_of(self, row: Listing) -> str:
        run = await self._log.run(row.turn or "")
        return run.agent if run is not None else row.agent

    async def _names_of(self, folder: Path) -> frozenset[str]:
        """How conversations call this folder: by its real name, or by one that leads to it."""
        named = [known.project for known in await self._log.folders()]
        real = await asyncio.to_thread(lambda: [str(Path(name).resolve()) for name in named])
        return frozenset({str(folder), *(name for name, at in zip(named, real, strict=True) if at == str(folder))})

    async def _cost_of(self, mission: Mission) -> float:
        """Of its conversations and of all that worked for them. What was once spent stays spent, whatever is deleted."""
        total = 0.0
        for woken in mission.woken.values():
            row = await self._log.listing(woken.conversation)
            total += row.cost_usd if row is not None else 0.0
            total += await self._cost_below(woken.conversation)
        spent = max(total, mission.spent_usd, self._spent.get(mission.id, 0.0))
        self._spent[mission.id] = spent
        return spent

    async def _cost_below(self, root: str) -> float:
        total, cursor = 0.0, None
        while True:
            page = await self._log.list(root=root, children=True, archived=None, limit=TREE_PAGE, cursor=cursor)
            # A branch is somebody's own continuation, and works for nobody.
            working = [row for row in page.items if row.id != root and row.parent_kind != "branch"]
            total += sum(row.cost_usd for row in working)
            cursor = page.next_cursor
            if cursor is None:
                return total

    def _in_our_time(self, state: ProjectState) -> ProjectState:
        mission = state.mission
        assert mission is not None
        woken = {
            agent: dataclasses.replace(known, at=self._time.of(f"{mission.id} {known.number}", known.at))
            for agent, known in mission.woken.items()
        }
        created_at = self._time.of(mission.id, mission.created_at)
        return dataclasses.replace(state, mission=dataclasses.replace(mission, created_at=created_at, woken=woken))

    def _complain(self, mission: Mission, agent: str) -> None:
        if (mission.id, agent) not in self._complained:
            self._complained.add((mission.id, agent))
            logger.warning("a mission names an agent that is not here; it is passed over", agent=agent)

    # -- for faces

    async def view(self, folder: Path) -> MissionView:
        """The mission of a resolved folder, as it stands this moment."""
        state = await self._projects.state(folder)
        mission = state.mission
        if mission is None:
            return MissionView(active=False, project=str(folder), stream=stream_of(folder))
        known = await self._entry_of(state)
        return MissionView(
            active=True,
            project=str(folder),
            stream=stream_of(folder),
            mission=mission.id,
            text=mission.text,
            created_at=mission.created_at,
            agents=tuple(self._agent_view(known, one) for one in mission.agents),
            budget_usd=mission.budget_usd,
            spent_usd=known.spent_usd,
            triggered=mission.triggered,
            status=project.stop_reason(mission, known.spent_usd) or "active",
        )

    def _agent_view(self, known: "_Known", one: MissionAgent) -> MissionAgentView:
        mission = known.state.mission
        assert mission is not None
        found = project.outlook(known.state, one.agent, known.agents.get(one.agent), known.spent_usd)
        woken = mission.woken.get(one.agent)
        return MissionAgentView(
            agent=one.agent,
            idle_prompt=found.idle.prompt,
            idle_interval_s=found.idle.interval_s or project.INTERVAL_S,
            conversation=woken.conversation if woken else None,
            triggered=woken.count if woken else 0,
            next_due_at=None if found.due_at is None else found.due_at - self._time.now() + self._clock.now_ms(),
            status=found.status,
            own=one,
        )


@dataclass(frozen=True, slots=True)
class _Known:
    state: ProjectState
    """Its times are ours."""
    agents: Mapping[str, Agent]
    spent_usd: float


@dataclass(frozen=True, slots=True)
class _Work:
    folder: str
    busy: frozenset[str]
    ended: Mapping[str, Run]


class _Time:
    """Milliseconds that no jump of the wall clock moves. What the log says is brought into them when it is first seen."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_ms = clock.now_ms()
        self._began_s = clock.monotonic_s()
        self._looked_at: int | None = None
        self._seen: dict[str, int] = {}
        self._touched: dict[str, int] = {}

    def now(self) -> int:
        return self._began_ms + round((self._clock.monotonic_s() - self._began_s) * 1000)

    def of(self, what: str, ts: int) -> int:
        if (moment := self._seen.get(what, self._touched.get(what))) is None:
            age_ms = max(0, self._clock.now_ms() - ts)
            if self._looked_at is not None:
                # It was not there at the last look, so it is no older than that. Only after a start the wall clock counts.
                age_ms = min(age_ms, self.now() - self._looked_at)
            moment = self.now() - age_ms
        self._touched[what] = moment
        return moment

    def forget_unseen(self) -> None:
        """Everything was looked at: what was not asked for is forgotten."""
        self._seen, self._touched = self._touched, {}
        self._looked_at = self.now()


def _title(text: str) -> str:
    line = " ".join(text.split("\n", 1)[0].split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…"

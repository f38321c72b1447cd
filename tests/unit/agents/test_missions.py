"""Missions on a clock that the test moves: a real log, real conversations, a scripted agent."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from palaver.agents.missions import LOOK_AGAIN_S, Missions, MissionView, conversation_of
from palaver.agents.projects import Projects, stream_of
from palaver.agents.roster import Roster, Source
from palaver.backends.script.backend import ScriptedBackend
from palaver.backends.script.script import Ask, Emit, Finish, Say, Step, Wait
from palaver.clock import Ids, ManualClock
from palaver.conversation.directory import Directory
from palaver.conversation.folders import ProjectFolders
from palaver.conversation.services import Surroundings
from palaver.core.project import TRIGGER_LIMIT
from palaver.errors import Conflict, NotFound
from palaver.feed.feed import Feed
from palaver.log.base import EventLog
from palaver.log.sqlite.store import open_sqlite_log
from palaver.schema.base import Origin
from palaver.schema.commands import CreateConversation, DeleteConversation, SendMessage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ConversationCreated,
    MissionAgent,
    RequestOpened,
    decode_event,
)
from palaver.schema.records import AgentRecord
from palaver.schema.view import Parent, Plan, Question, QuestionOption, State, TextBlock

pytestmark = pytest.mark.anyio

WAIT_S = 10.0
LOOK_S = 0.05
MINUTE_S = 60
DAY_S = 24 * 3600

Choose = Callable[[str], Sequence[Step]]


def quiet(_: str) -> Sequence[Step]:
    return [Say("Done.")]


def costing(usd: float) -> Choose:
    def choose(_: str) -> Sequence[Step]:
        paid = AnswerFinished(message="paid", finish_reason="stop", cost_usd=usd)
        return [Emit(AnswerStarted(message="paid")), Emit(paid)]

    return choose


@dataclass
class World:
    """One server's worth, from one start to one end."""

    log: EventLog
    directory: Directory
    projects: Projects
    missions: Missions
    clock: ManualClock
    folder: Path
    feed: Feed
    agent: ScriptedBackend
    roster: Roster
    looks: int = 0
    standing: set[str] = field(default_factory=set[str])
    """Conversations that are at work for as long as the test wants."""

    async def pass_time(self, seconds: float) -> None:
        """As a server would: looking when it is time to, and letting turns end in between."""
        until_s = self.clock.monotonic_s() + seconds
        while True:
            self.looks += 1
            wait_s = await self.missions.look()
            await self.at_rest()
            left_s = until_s - self.clock.monotonic_s()
            step_s = left_s if wait_s is None else min(left_s, max(wait_s, 0.001))
            if left_s <= 0:
                return
            await self.clock.advance(step_s)

    async def at_rest(self) -> None:
        """Every turn has ended, or stands at a gate or before a person."""
        async with asyncio.timeout(WAIT_S):
            while [row for row in await self._working() if not row.open_requests]:
                # The last of it may have been told while the log was read: nothing would wake us then.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.feed.anything(), LOOK_S)

    async def _working(self) -> list[Any]:
        rows = [await self.log.listing(name) for name in await self.log.unfinished()]
        return [row for row in rows if row is not None and row.turn and row.id not in self.standing]

    async def view(self) -> MissionView:
        return await self.missions.view(self.folder)

    async def prompts(self, agent: str) -> list[str]:
        """What an agent was told for the active mission."""
        mission = (await self.view()).mission
        assert mission
        try:
            state = await self.directory.whole(conversation_of(mission, agent))
        except NotFound:
            return []
        return [text_of(message) for message in state.messages if message.event_kind == "idle_prompt"]

    async def triggers(self) -> list[Any]:
        found: list[Any] = []
        seq = 0
        while segments := await self.log.read(stream_of(self.folder), seq):
            found += [decode_event(line) for segment in segments for line in segment.body.splitlines()]
            seq = segments[-1].last
        return [event for event in found if event.__struct_config__.tag == "mission.triggered"]


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.blocks if isinstance(block, TextBlock))


def record(agent: str, prompt: str | None = "go on", interval_s: int | None = None) -> AgentRecord:
    return AgentRecord(id=agent, name=agent, backend="scripted", idle_prompt=prompt, idle_interval_s=interval_s)


RECORDS = (record("anna"), record("ben"))


@asynccontextmanager
async def world(
    path: Path, clock: ManualClock, choose: Choose = quiet, records: Sequence[AgentRecord] = RECORDS
) -> AsyncIterator[World]:
    folder = path / "project"
    folder.mkdir(exist_ok=True, parents=True)
    agent = ScriptedBackend(lambda prompt: choose(prompt.text))
    roster = Roster(records, {"scripted": Source(lambda: agent)})
    async with open_sqlite_log(path / "data") as log:
        directory: Directory
        feed = Feed(log, clock, lambda conversation: directory.snapshot(conversation))  # noqa: PLW0108
        ids = Ids(clock)
        folders = ProjectFolders(path / "data", folder)
        directory = Directory(Surroundings(log, feed, clock, ids, roster, folders))
        projects = Projects(log, feed, clock, ids, folders)
        missions = Missions(projects, directory, log, roster, clock)
        async with directory.running():
            yield World(log, directory, projects, missions, clock, folder.resolve(), feed, agent, roster)


def named(*agents: str, **fields: Any) -> list[MissionAgent]:
    return [MissionAgent(agent=agent, **fields) for agent in agents]


async def test_mission_through_a_day_with_a_restart_wakes_as_often_as_it_may_and_never_more(tmp_path: Path) -> None:
    clock = ManualClock()
    asked: list[tuple[float, str]] = []

    def choose(text: str) -> Sequence[Step]:
        asked.append((clock.monotonic_s(), text))
        return [Say("Done.")]

    async with world(tmp_path, clock, choose) as first:
        await first.projects.set_mission(first.folder, "Tidy up", named("anna", "ben", idle_interval_s=10 * MINUTE_S))
        await first.pass_time(6 * 3600)
        before = await first.view()
        assert first.looks < 1200
    await clock.advance(1800)  # Nobody is there for half an hour.
    async with world(tmp_path, clock, choose) as again:
        await again.pass_time(DAY_S - 6 * 3600 - 1800)
        after = await again.view()
        prompts = [await again.prompts(agent) for agent in ("anna", "ben")]
        triggers = await again.triggers()

    # Every ten minutes both, from the tenth on, for six hours; then the rest of the hundred.
    assert before.triggered == 2 * 36
    assert [one.triggered for one in before.agents] == [36, 36]
    assert (after.triggered, after.status) == (TRIGGER_LIMIT, "limit")
    assert [one.status for one in after.agents] == ["limit", "limit"]
    assert [event.count for event in triggers] == list(range(1, TRIGGER_LIMIT + 1))
    assert [len(told) for told in prompts] == [50, 50]
    assert len(asked) == TRIGGER_LIMIT
    assert prompts[0][:2] == ["Tidy up\n\ngo on", "go on"]
    moments = sorted({moment for moment, _ in asked})
    assert moments[:3] == [600.0, 1200.0, 1800.0]
    # What the agents had rested before the restart counts: they are due at once after it.
    assert moments[36] == 6 * 3600 + 1800
    assert all(later - earlier >= 600 for earlier, later in itertools.pairwise(moments))


async def test_agent_at_work_anywhere_in_the_project_is_not_woken_and_its_clock_starts_when_it_rests(
    tmp_path: Path,
) -> None:
    def choose(text: str) -> Sequence[Step]:
        return [Say("…"), Wait("long")] if text == "work" else [Say("Done.")]

    async with world(tmp_path, ManualClock(), choose) as here:
        body = CreateConversation(agent="anna", project=str(here.folder))
        other = (await here.directory.create(body, None)).conversation
        await here.directory.command(other, SendMessage(content="work"), None)
        here.standing.add(other)
        await here.agent.reached("long")
        await here.projects.set_mission(here.folder, "Tidy up", named("anna", "ben"))
        await here.pass_time(10 * MINUTE_S)
        busy = await here.view()
        here.agent.open_gate("long")
        here.standing.clear()
        await here.at_rest()
        await here.pass_time(MINUTE_S - 1)
        resting = await here.view()
        await here.pass_time(1)
        woken = await here.view()

    assert [(one.status, one.triggered) for one in busy.agents] == [("busy", 0), ("resting", 10)]
    assert (resting.agents[0].status, resting.agents[0].triggered) == ("resting", 0)
    assert resting.agents[0].next_due_at == here.clock.now_ms()
    assert woken.agents[0].triggered == 1


async def test_turn_that_nobody_saw_running_starts_the_idle_clock_anew_too(tmp_path: Path) -> None:
    async with world(tmp_path, ManualClock()) as here:
        await here.projects.set_mission(here.folder, "Tidy up", named("anna"))
        body = CreateConversation(agent="anna", project=str(here.folder))
        other = (await here.directory.create(body, None)).conversation
        await here.clock.advance(50)
        await here.directory.command(other, SendMessage(content="hello"), None)
        await here.at_rest()
        await here.pass_time(59)
        early = await here.view()
        await here.pass_time(1)
        woken = await here.view()

    assert [view.triggered for view in (early, woken)] == [0, 1]


async def test_agent_that_works_in_a_folder_that_leads_to_the_project_is_busy_too(tmp_path: Path) -> None:
    async with world(tmp_path, ManualClock(), lambda _: [Wait("long")]) as here:
        (tmp_path / "link").symlink_to(here.folder)
        body = CreateConversation(agent="anna", project=str(tmp_path / "link"))
        other = (await here.directory.create(body, None)).conversation
        await here.directory.command(other, SendMessage(content="work"), None)
        await here.projects.set_mission(here.folder, "Tidy up", named("anna"))
        view = await here.view()

    assert view.agents[0].status == "busy"


async def test_mission_stops_at_its_budget_with_all_that_worked_for_it_and_says_so(tmp_path: Path) -> None:
    async with world(tmp_path, ManualClock(), costing(0.3)) as here:
        await here.projects.set_mission(here.folder, "Tidy up", named("anna", "ben"), budget_usd=2.0)
        await here.pass_time(MINUTE_S)
        mission = (await here.view()).mission
        assert mission
        root = conversation_of(mission, "anna")
        below = (
            ("child", Parent(conversation=root, kind="subagent", root=root, depth=1)),
            ("branch", Parent(conversation=root, kind="branch", root=root)),
        )
        for name, parent in below:
            created = ConversationCreated(agent="ben", project=str(here.folder), parent=parent)
            await here.directory.begin_as(name, created, Origin())
            await here.directory.command(name, SendMessage(content="help"), None)
        await here.at_rest()
        await here.pass_time(DAY_S)
        view = await here.view()
    async with world(tmp_path, here.clock, costing(0.3)) as again:
        await again.pass_time(DAY_S)
        later = await again.view()
        # A conversation that is deleted gives nothing back.
        await again.directory.command("child", DeleteConversation(), None)
        await again.pass_time(DAY_S)
        last = await again.view()

    # Two, then a helper (a branch is none): 0.9. Two more: 1.5. The next two bring it beyond, and there it ends.
    assert view.triggered == 6
    assert view.spent_usd == pytest.approx(2.1)
    assert (view.status, [one.status for one in view.agents]) == ("budget", ["budget", "budget"])
    assert (later.triggered, later.status) == (6, "budget")
    assert (last.triggered, last.status) == (6, "budget")


async def test_waking_that_was_written_but_not_told_is_told_once_after_the_restart(tmp_path: Path) -> None:
    clock = ManualClock()
    async with world(tmp_path, clock) as first:
        state = await first.projects.set_mission(first.folder, "Tidy up", named("anna"))
        assert state.mission
        # The server dies between the two.
        target = conversation_of(state.mission.id, "anna")
        await first.projects.trigger(first.folder, state.mission.id, "anna", "go on", target, 0.0)
    async with world(tmp_path, clock) as again:
        assert await again.prompts("anna") == []
        await again.missions.look()
        await again.at_rest()
        told = await again.prompts("anna")
        parent = (await again.directory.state(target)).parent
    seen: list[tuple[list[str], int]] = []
    for _ in range(2):
        async with world(tmp_path, clock) as last:
            await last.missions.look()
            await last.at_rest()
            seen.append((await last.prompts("anna"), (await last.view()).triggered))

    assert told == ["Tidy up\n\ngo on"]
    assert seen == [(told, 1), (told, 1)]
    assert parent == Parent(conversation=stream_of(first.folder), kind="mission", root=target)


async def test_turn_that_a_restart_cut_is_settled_and_its_agent_woken_again_in_time(tmp_path: Path) -> None:
    clock = ManualClock()
    async with world(tmp_path, clock, lambda _: [Say("half"), Wait("never")]) as first:
        state = await first.projects.set_mission(first.folder, "Tidy up", named("anna"))
        assert state.mission
        conversation = conversation_of(state.mission.id, "anna")
        await clock.advance(MINUTE_S)
        await first.missions.look()
        await first.agent.reached("never")
    await clock.advance(20)
    async with world(tmp_path, clock) as again:
        await again.pass_time(39)
        early = await again.view()
        await again.pass_time(LOOK_AGAIN_S)
        prompts = await again.prompts("anna")
        state_after: State = await again.directory.state(conversation)

    assert early.triggered == 1
    assert len(prompts) == 2
    assert state_after.last_turn is not None
    assert state_after.last_turn.outcome == "completed"


async def test_agent_that_waits_for_a_person_is_not_woken(tmp_path: Path) -> None:
    question = Question(question="Which?", options=(QuestionOption(label="a"), QuestionOption(label="b")))
    async with world(tmp_path, ManualClock(), lambda _: [Ask((question,))]) as here:
        await here.projects.set_mission(here.folder, "Tidy up", named("anna"))
        await here.pass_time(4 * MINUTE_S)
        view = await here.view()

    assert (view.agents[0].status, view.triggered) == ("busy", 1)


async def test_agent_whose_turn_is_over_and_left_a_plan_to_approve_is_not_woken(tmp_path: Path) -> None:
    plan = RequestOpened(request="r", kind="plan", plan=Plan(summary="Tidy the shelves"))
    async with world(tmp_path, ManualClock(), lambda _: [Say("A plan."), Emit(plan), Finish("plan")]) as here:
        await here.projects.set_mission(here.folder, "Tidy up", named("anna"))
        await here.pass_time(30 * MINUTE_S)
        view = await here.view()

    assert (view.agents[0].status, view.triggered) == ("waiting", 1)


async def test_setting_a_mission_sends_nothing_and_clearing_it_stops_the_wakings(tmp_path: Path) -> None:
    async with world(tmp_path, ManualClock()) as here:
        await here.projects.set_mission(here.folder, "Tidy up", named("anna"))
        await here.pass_time(MINUTE_S - 1)
        silent = await here.log.list(archived=None)
        await here.pass_time(1)
        once = await here.prompts("anna")
        await here.projects.clear_mission(here.folder)
        await here.pass_time(DAY_S)
        rows = (await here.log.list(archived=None)).items
        said = await here.directory.whole(rows[0].id)
        state = await here.projects.state(here.folder)

    assert silent.items == []
    assert once == ["Tidy up\n\ngo on"]
    assert len(rows) == 1
    assert (rows[0].title, rows[0].parent_kind, rows[0].agent) == ("Tidy up", "mission", "anna")
    assert len([message for message in said.messages if message.role == "user"]) == 1
    assert [one.triggered for one in state.former] == [1]


async def test_each_mission_has_its_own_conversation_for_each_agent(tmp_path: Path) -> None:
    async with world(tmp_path, ManualClock()) as here:
        for text in ("Tidy up", "Paint"):
            await here.projects.set_mission(here.folder, text, named("anna", "ben"))
            await here.pass_time(2 * MINUTE_S)
        rows = (await here.log.list(archived=None)).items
        state = await here.projects.state(here.folder)
        view = await here.view()

    assert sorted((row.title, row.agent, row.message_count) for row in rows) == sorted(
        (title, agent, 4) for title in ("Tidy up", "Paint") for agent in ("anna", "ben")
    )
    assert [(one.text, one.triggered) for one in state.former] == [("Tidy up", 4)]
    assert view.triggered == 4


async def test_agent_that_is_no_longer_there_is_passed_over_and_said(tmp_path: Path) -> None:
    async with world(tmp_path, ManualClock()) as first:
        await first.projects.set_mission(first.folder, "Tidy up", named("anna", "ben"))
    async with world(tmp_path, first.clock, records=RECORDS[1:]) as again:
        await again.pass_time(MINUTE_S)
        view = await again.view()

    assert [(one.status, one.triggered) for one in view.agents] == [("unknown_agent", 0), ("resting", 1)]


async def test_deleted_conversation_of_a_mission_is_not_made_again(tmp_path: Path) -> None:
    async with world(tmp_path, ManualClock()) as here:
        await here.projects.set_mission(here.folder, "Tidy up", named("anna"))
        await here.pass_time(MINUTE_S)
        conversation = (await here.view()).agents[0].conversation
        assert conversation
        await here.directory.command(conversation, DeleteConversation(), None)
        await here.pass_time(DAY_S / 24)
        view = await here.view()

    assert (view.agents[0].status, view.triggered) == ("deleted", 1)


async def test_jump_of_the_wall_clock_wakes_nobody_early_and_nobody_late(tmp_path: Path) -> None:
    async with world(tmp_path, ManualClock()) as here:
        await here.projects.set_mission(here.folder, "Tidy up", named("anna"))
        await here.pass_time(30)
        for jump in (DAY_S, -2 * DAY_S):
            here.clock.jump_wall(jump * 1000)
            await here.pass_time(10)
        early = await here.view()
        await here.pass_time(10)
        first = await here.view()
        await here.pass_time(59)
        between = await here.view()
        await here.pass_time(1)
        second = await here.view()

    assert [view.triggered for view in (early, first, between, second)] == [0, 1, 1, 2]


async def test_jump_of_the_wall_clock_just_after_a_mission_is_set_makes_it_no_older(tmp_path: Path) -> None:
    async with world(tmp_path, ManualClock()) as here:
        await here.missions.look()
        await here.projects.set_mission(here.folder, "Tidy up", named("anna"))
        here.clock.jump_wall(DAY_S * 1000)
        await here.pass_time(59)
        early = await here.view()
        await here.pass_time(1)
        woken = await here.view()

    assert [view.triggered for view in (early, woken)] == [0, 1]


async def test_prompt_and_interval_come_from_whoever_has_a_say_in_them(tmp_path: Path) -> None:
    async with world(tmp_path, ManualClock(), records=(record("anna", None), record("ben", "mine", 5))) as here:
        await here.projects.set_mission(here.folder, "Tidy up", named("anna", "ben"))
        await here.projects.override(here.folder, "anna", {"idle_prompt": "from the project"})
        await here.pass_time(MINUTE_S)
        view = await here.view()
        told = [await here.prompts(agent) for agent in ("anna", "ben")]

    assert [(one.idle_prompt, one.idle_interval_s) for one in view.agents] == [("from the project", 60), ("mine", 30)]
    assert told == [["Tidy up\n\nfrom the project"], ["Tidy up\n\nmine", "mine"]]


async def test_task_of_the_server_wakes_by_itself_and_ends_with_it(tmp_path: Path) -> None:
    async with world(tmp_path, ManualClock()) as here, here.missions.running():
        await here.projects.set_mission(here.folder, "Tidy up", named("anna"))
        async with asyncio.timeout(WAIT_S):
            while not await here.prompts("anna"):
                await here.clock.advance(1)
        await here.at_rest()
        prompts = await here.prompts("anna")

    # Each look of the task takes real time, in which the test moves the clock on.
    assert prompts[0] == "Tidy up\n\ngo on"


async def test_stream_that_is_a_conversation_is_no_project_and_a_project_is_no_conversation(tmp_path: Path) -> None:
    async with world(tmp_path, ManualClock()) as here:
        other = tmp_path / "other"
        other.mkdir()
        taken = stream_of(other.resolve())
        await here.directory.create(CreateConversation(id=taken, agent="anna"), None)
        await here.projects.set_mission(here.folder, "Tidy up", named("anna"))
        with pytest.raises(Conflict):
            await here.projects.set_mission(other.resolve(), "Tidy up", [])
        with pytest.raises(NotFound):
            await here.directory.state(stream_of(here.folder))
        with pytest.raises(NotFound):
            await here.directory.command(stream_of(here.folder), SendMessage(content="hello"), None)
        with pytest.raises(Conflict):
            await here.directory.create(CreateConversation(id=stream_of(here.folder), agent="anna"), None)
        rows = (await here.log.list(archived=None)).items
        folders = [state.folder for state in await here.projects.all()]
        found = await here.log.search("Tidy")
        sound = await here.log.verify()

    assert [row.id for row in rows] == [taken]
    assert folders == [str(here.folder)]
    assert not found
    assert not sound.damages


async def test_eight_changes_at_once_of_one_project_are_one_after_the_other(tmp_path: Path) -> None:
    async with world(tmp_path, ManualClock()) as here:
        await asyncio.gather(*(here.projects.set_mission(here.folder, f"number {n}", []) for n in range(8)))
        state = await here.projects.state(here.folder)
        reread = Projects(here.log, here.feed, here.clock, Ids(here.clock), here.directory.folders)
        same = await reread.state(here.folder)

    assert len(state.former) == 7
    assert state.seq == 8
    assert same == state

"""Tasks that agents give each other: what is made of one, its bounds, its end, and that nothing outlives its parent."""

import asyncio
import copy
from collections.abc import AsyncIterator

import msgspec
import pytest

from palaver.agents.delegation import REPORT_CHARS, WIDTH
from palaver.backends.base import Turn
from palaver.conversation.creation import Wishes
from palaver.conversation.peers import Task
from palaver.conversation.turn import RunningTurn
from palaver.errors import Gone, ProviderRefused
from palaver.history.import_files import Recorded
from palaver.log.base import Claim
from palaver.log.memory import MemoryLog
from palaver.schema.commands import DeleteConversation, Interrupt, SendMessage
from palaver.schema.events import (
    KnownEvent,
    PlanUpdated,
    ProcessStarted,
    RequestOpened,
    SubagentFinished,
    SubagentStarted,
    TurnFinished,
    TurnStarted,
    decode_event,
    encode_event,
)
from palaver.schema.records import AgentRecord
from palaver.schema.view import Plan, PlanItem, State
from palaver.tools.agents.task import DEEPEST
from palaver.tools.base import Report
from tests.unit.agents.crew import delegates, never, open_crew
from tests.unit.conversation.house import WAIT_S, Script, answer, says

pytestmark = pytest.mark.anyio

DIGGER = AgentRecord(id="digger", name="Digger", description="digs")


def ends(outcome: TurnFinished, *before: str) -> Script:
    async def script(turn: Turn) -> AsyncIterator[KnownEvent]:
        for text in before:
            for event in answer(turn, text):
                yield event
        yield outcome

    return script


async def test_task_is_done_in_a_conversation_of_its_own_and_reported() -> None:
    reports: list[Report] = []
    scripts = {"go": delegates(("digger", "Dig a hole"), reports=reports), "Dig a hole": says("It is dug.")}
    log = MemoryLog()
    async with open_crew(DIGGER, log=log, scripts=scripts) as crew:
        conversation = await crew.begin_with("go")
        state = await crew.at_rest(conversation)
        child = await crew.directory.state(state.subagents[0].conversation)
        (began,) = [event for event in await crew.events(child.conversation) if isinstance(event, TurnStarted)]
        events = await crew.events(conversation)
        told = [
            event
            for _, segment in await log.read_all(0)
            for event in map(decode_event, segment.body.splitlines())
            if isinstance(event, SubagentStarted | TurnStarted)
        ]
    # In the order of the whole log: the parent's turn, that there is a child, the child's turn.
    assert told[1:] == [next(event for event in events if isinstance(event, SubagentStarted)), began]
    assert reports == [Report(ok=True, text="It is dug.", conversation=child.conversation)]
    assert child.parent is not None
    assert (child.parent.kind, child.parent.conversation, child.parent.root) == ("subagent", conversation, conversation)
    assert (child.parent.call, child.parent.depth) == ("call-0", 1)
    assert (child.agent, child.project, child.title) == ("digger", "/usr/share", "Dig a hole")
    (started,) = [event for event in events if isinstance(event, SubagentStarted)]
    (finished,) = [event for event in events if isinstance(event, SubagentFinished)]
    assert (started.subagent, started.agent, started.task) == (child.conversation, "digger", "Dig a hole")
    assert (started.run, finished.run) == (began.turn, began.turn)
    assert (began.trigger.kind, began.parent) == ("task", started.turn)
    assert began.origin is not None
    assert (began.origin.face, began.origin.agent, began.origin.conversation) == ("agents", "default", conversation)
    assert (finished.outcome, finished.result) == ("completed", "It is dug.")
    assert state.subagents[0].status == "completed"


async def test_task_without_an_agent_is_done_by_one_like_the_caller() -> None:
    async with open_crew(DIGGER, scripts={"go": delegates((None, "Sow"))}) as crew:
        conversation = await crew.begin_with("go", model="large")
        child = await crew.child_of(conversation, lambda state: state.turn is None)
        state = await crew.directory.state(child)
    assert (state.agent, state.params["model"]) == ("default", "large")


async def test_unknown_agent_is_said_with_those_there_are() -> None:
    reports: list[Report] = []
    async with open_crew(DIGGER, scripts={"go": delegates(("mole", "Dig"), reports=reports)}) as crew:
        state = await crew.at_rest(await crew.begin_with("go"))
    assert not reports[0].ok
    assert "“mole”" in reports[0].text
    assert "default, digger" in reports[0].text
    assert state.subagents == ()


@pytest.mark.parametrize(
    ("callers", "agents", "childs"),
    [
        ("full", None, "full"),
        ("full", "ask", "ask"),
        ("ask", "full", "ask"),
        ("accept_edits", "auto", "accept_edits"),
        ("auto", "plan", "plan"),
        (None, None, "ask"),
    ],
)
async def test_mode_is_never_bolder_than_the_callers(callers: str | None, agents: str | None, childs: str) -> None:
    digger = AgentRecord(id="digger", name="Digger", mode=agents)
    async with open_crew(digger, scripts={"go": delegates(("digger", "Dig"))}) as crew:
        conversation = await crew.begin_with("go", **({"mode": callers} if callers else {}))
        state = await crew.directory.state(await crew.child_of(conversation))
    assert state.params["mode"] == childs


async def test_rules_that_forbid_hold_for_the_child_and_those_that_allow_do_not() -> None:
    rules = [{"tool": "*", "decision": "allow"}, {"tool": "shell", "decision": "deny_continue"}]
    async with open_crew(DIGGER, scripts={"go": delegates(("digger", "Dig"))}) as crew:
        conversation = await crew.begin_with("go", policy=rules, request_timeout_s=5)
        state = await crew.directory.state(await crew.child_of(conversation))
    assert state.params == {"mode": "ask", "request_timeout_s": 5, "policy": rules[1:]}


async def test_depth_is_bounded_and_the_deepest_is_told_what_to_do() -> None:
    reports: list[Report] = []
    scripts = {"0": delegates((None, "1"))}
    for level in range(1, DEEPEST):
        scripts[str(level)] = delegates((None, str(level + 1)))
    scripts[str(DEEPEST)] = delegates((None, "too deep"), reports=reports)
    async with open_crew(scripts=scripts) as crew:
        top = conversation = await crew.begin_with("0")
        await crew.at_rest(conversation)
        parents = []
        for _ in range(DEEPEST):
            conversation = (await crew.directory.state(conversation)).subagents[0].conversation
            parents.append((await crew.directory.state(conversation)).parent)
        deepest = await crew.directory.state(conversation)
    assert [parent and (parent.depth, parent.root) for parent in parents] == [
        (level, top) for level in range(1, DEEPEST + 1)
    ]
    assert deepest.subagents == ()
    assert not reports[0].ok
    assert "Do this yourself" in reports[0].text


async def test_width_is_bounded_also_for_calls_that_start_together() -> None:
    reports: list[Report] = []
    scripts = {"go": delegates(*[("digger", f"Dig {n}") for n in range(WIDTH + 1)], reports=reports)}
    async with open_crew(DIGGER, scripts=scripts) as crew:
        conversation = await crew.begin_with("go")
        state = await crew.at_rest(conversation)
        again: list[Report] = []
        crew.player.scripts["again"] = delegates(("digger", "Dig more"), reports=again)
        await crew.do(conversation, SendMessage(content="again"))
        await crew.at_rest(conversation)
    assert [report.ok for report in reports] == [True] * WIDTH + [False]
    assert "give this task again" in reports[-1].text
    assert len(state.subagents) == WIDTH
    assert again[0].ok


async def test_childs_failure_is_the_callers_to_deal_with() -> None:
    async def fails(turn: Turn) -> AsyncIterator[KnownEvent]:
        for event in answer(turn, "I began."):
            yield event
        raise ProviderRefused("The key was refused.")

    reports: list[Report] = []
    scripts = {"go": delegates(("digger", "Dig"), reports=reports), "Dig": fails}
    async with open_crew(DIGGER, scripts=scripts) as crew:
        state = await crew.at_rest(await crew.begin_with("go"))
    assert not reports[0].ok
    assert "The key was refused." in reports[0].text
    assert "I began." in reports[0].text
    assert state.subagents[0].status == "failed"
    assert state.last_turn is not None
    assert state.last_turn.outcome == "completed"


async def test_summary_of_a_finished_task_is_the_report_and_a_limit_is_a_failure() -> None:
    reports: list[Report] = []
    scripts = {
        "go": delegates((None, "done"), (None, "long"), (None, "silent"), reports=reports),
        "done": ends(TurnFinished(outcome="task", summary="Three beds dug."), "Finishing."),
        "long": ends(TurnFinished(outcome="completed"), "x" * (REPORT_CHARS + 10)),
        "silent": ends(TurnFinished(outcome="limited")),
    }
    async with open_crew(scripts=scripts) as crew:
        await crew.at_rest(await crew.begin_with("go"))
    assert (reports[0].ok, reports[0].text) == (True, "Three beds dug.")
    assert reports[1].text.endswith("[… 10 more characters in its own conversation]")
    assert not reports[2].ok


async def test_child_stopped_by_a_person_is_reported_and_the_caller_goes_on() -> None:
    started, reports = asyncio.Event(), list[Report]()
    scripts = {"go": delegates(("digger", "Dig"), reports=reports), "Dig": never(started)}
    async with open_crew(DIGGER, scripts=scripts) as crew:
        conversation = await crew.begin_with("go")
        await asyncio.wait_for(started.wait(), WAIT_S)
        await crew.do(await crew.child_of(conversation), Interrupt())
        state = await crew.at_rest(conversation)
    assert not reports[0].ok
    assert "A person stopped it." in reports[0].text
    assert state.subagents[0].status == "cancelled"
    assert state.last_turn is not None
    assert state.last_turn.outcome == "completed"


async def test_stop_takes_the_whole_tree_down_and_nobody_else() -> None:
    scripts = {
        "go": delegates(("digger", "middle"), ("digger", "middle")),
        "middle": delegates(("digger", "deep")),
        "deep": never(asyncio.Event()),
        "other": never(asyncio.Event()),
    }
    async with open_crew(DIGGER, scripts=scripts) as crew:
        bystander = await crew.begin_with("other")
        conversation = await crew.begin_with("go")
        await crew.until(conversation, lambda state: len(state.subagents) == 2)
        middles = [one.conversation for one in (await crew.directory.state(conversation)).subagents]
        deeps = [await crew.child_of(middle) for middle in middles]
        # Both: one may be told of and not have begun.
        for one in deeps:
            await crew.until(one, lambda state: state.turn is not None)
        await crew.do(conversation, Interrupt())
        states = [await crew.at_rest(one) for one in (conversation, *middles, *deeps)]
        beside = await crew.directory.state(bystander)
        ended = [event for event in await crew.events(conversation) if isinstance(event, SubagentFinished)]
        async with asyncio.timeout(WAIT_S):
            while crew.player.running != {bystander}:  # noqa: ASYNC110 - the set has no event of its own
                await asyncio.sleep(0)
    assert [state.last_turn and state.last_turn.stopped for state in states] == ["user", *["parent"] * 4]
    assert [one.status for state in states for one in state.subagents] == ["cancelled"] * 4
    assert [event.outcome for event in ended] == ["cancelled"] * 2
    assert beside.turn is not None


async def test_child_that_was_told_of_when_the_stop_came_is_kept() -> None:
    told = asyncio.Event()

    class Overtaken:
        """Implements `Caller`: what it tells is on disk, and the stop comes before it hears so."""

        def __init__(self, turn: RunningTurn) -> None:
            self.id, self.agent, self.agent_id, self.mode = turn.id, turn.agent, turn.agent_id, turn.mode
            self._turn = turn

        @property
        def state(self) -> State:
            return self._turn.state

        async def tell(self, *events: KnownEvent) -> None:
            await self._turn.tell(*events)
            told.set()
            await asyncio.Event().wait()

    async def script(turn: Turn) -> AsyncIterator[KnownEvent]:
        assert isinstance(turn, RunningTurn)
        await turn.others.delegate(Overtaken(turn), Task("digger", "Dig", "call-0"))
        yield TurnFinished(outcome="completed")

    async with open_crew(DIGGER, scripts={"go": script}) as crew:
        conversation = await crew.begin_with("go")
        await asyncio.wait_for(told.wait(), WAIT_S)
        await crew.do(conversation, Interrupt())
        state = await crew.at_rest(conversation)
        await asyncio.wait_for(crew.player.at_rest.wait(), WAIT_S)
        child = await crew.directory.state(state.subagents[0].conversation)
    assert state.subagents[0].status == "cancelled"
    # Whoever follows the link finds it, though it never began.
    assert (child.deleted, child.last_turn) == (False, None)


async def test_stopping_one_branch_leaves_its_sibling_at_work() -> None:
    started, sibling = asyncio.Event(), asyncio.Event()
    scripts = {"go": delegates(("digger", "a"), ("digger", "b")), "a": never(started), "b": never(sibling)}
    async with open_crew(DIGGER, scripts=scripts) as crew:
        conversation = await crew.begin_with("go")
        state = await crew.until(conversation, lambda state: len(state.subagents) == 2)
        await asyncio.wait_for(asyncio.gather(started.wait(), sibling.wait()), WAIT_S)
        await crew.do(state.subagents[0].conversation, Interrupt())
        await crew.until(conversation, lambda state: state.subagents[0].status == "cancelled")
        beside = await crew.directory.state(state.subagents[1].conversation)
        above = await crew.directory.state(conversation)
        assert beside.turn is not None
        assert above.turn is not None


async def test_yielded_child_is_waited_for_until_its_process_ends() -> None:
    reports: list[Report] = []
    yielded = asyncio.Event()
    turns: list[Turn] = []

    async def waits(turn: Turn) -> AsyncIterator[KnownEvent]:
        turns.append(turn)
        yield ProcessStarted(process="p1", command="make")
        for event in answer(turn, "Waiting for make."):
            yield event
        yield TurnFinished(outcome="yielded")
        yielded.set()

    scripts = {"go": delegates((None, "build"), reports=reports), "build": waits, "make ended": says("It is built.")}
    async with open_crew(scripts=scripts) as crew:
        conversation = await crew.begin_with("go")
        child = await crew.child_of(conversation)
        await crew.until(child, lambda state: state.last_turn is not None)
        assert (await crew.directory.state(conversation)).subagents[0].status == "running"
        await turns[0].process_ended("p1", 0, "make ended")
        state = await crew.at_rest(conversation)
    assert [report.text for report in reports] == ["It is built."]
    assert state.subagents[0].status == "completed"


async def test_stop_ends_the_processes_of_a_child_that_yielded() -> None:
    async def waits(turn: Turn) -> AsyncIterator[KnownEvent]:
        yield ProcessStarted(process="p1", command="make")
        yield TurnFinished(outcome="yielded")

    async with open_crew(scripts={"go": delegates((None, "build")), "build": waits}) as crew:
        conversation = await crew.begin_with("go")
        child = await crew.child_of(conversation)
        await crew.until(child, lambda state: state.last_turn is not None)
        await crew.do(conversation, Interrupt())
        state = await crew.until(child, lambda state: not state.processes[0].running)
    assert state.processes[0].end == "stopped"


async def test_what_a_child_leaves_behind_ends_with_its_report() -> None:
    plan = Plan(summary="Beds", items=(PlanItem(title="Dig"),))

    async def plans(turn: Turn) -> AsyncIterator[KnownEvent]:
        yield ProcessStarted(process="p1", command="serve")
        yield RequestOpened(request="q1", kind="plan", plan=plan)
        yield PlanUpdated(plan=plan)
        yield TurnFinished(outcome="plan")

    reports: list[Report] = []
    async with open_crew(scripts={"go": delegates((None, "plan"), reports=reports), "plan": plans}) as crew:
        conversation = await crew.begin_with("go")
        await crew.at_rest(conversation)
        child = await crew.directory.state(await crew.child_of(conversation))
    assert (reports[0].ok, reports[0].text) == (True, "Beds\n- Dig")
    assert [process.running for process in child.processes] == [False]
    assert [request.status for request in child.requests] == ["cancelled"]


async def test_deleted_conversation_takes_its_subagents_along() -> None:
    started = asyncio.Event()
    scripts = {"go": delegates((None, "middle")), "middle": delegates((None, "deep")), "deep": never(started)}
    async with open_crew(scripts=scripts) as crew:
        conversation = await crew.begin_with("go")
        middle = await crew.child_of(conversation)
        deep = await crew.child_of(middle)
        branch = await crew.begin_with("beside")
        await crew.at_rest(branch)
        await asyncio.wait_for(started.wait(), WAIT_S)
        await crew.order(conversation, DeleteConversation())
        for one in (conversation, middle, deep):
            with pytest.raises(Gone):
                await crew.directory.state(one)
        assert not (await crew.directory.state(branch)).deleted
        await asyncio.wait_for(crew.player.at_rest.wait(), WAIT_S)


async def test_deleted_subagent_is_reported_and_only_what_is_below_it_goes() -> None:
    started, reports = asyncio.Event(), list[Report]()
    scripts = {
        "go": delegates((None, "a"), (None, "b"), reports=reports),
        "a": delegates((None, "deep")),
        "deep": never(started),
    }
    async with open_crew(scripts=scripts) as crew:
        conversation = await crew.begin_with("go")
        state = await crew.until(conversation, lambda state: len(state.subagents) == 2)
        first, second = (one.conversation for one in state.subagents)
        deep = await crew.child_of(first)
        await asyncio.wait_for(started.wait(), WAIT_S)
        await crew.order(first, DeleteConversation())
        await crew.at_rest(conversation)
        with pytest.raises(Gone):
            await crew.directory.state(deep)
        kept = await crew.directory.state(second)
    assert [report.ok for report in reports] == [False, True]
    assert "deleted" in reports[0].text
    assert not kept.deleted


async def test_copy_of_a_subagents_log_stands_for_itself() -> None:
    async with open_crew(scripts={"go": delegates((None, "Sow"))}) as crew:
        conversation = await crew.begin_with("go")
        await crew.at_rest(conversation)
        child = await crew.child_of(conversation)
        lines = tuple([msgspec.json.decode(encode_event(event)) for event in await crew.events(child)])
        wishes = Wishes(project="/usr/share", knows=lambda _: True)
        copied = await crew.directory.bring(Recorded(lines), wishes, Claim("copy-1", "hash"), None)
        await crew.order(conversation, DeleteConversation())
        kept = await crew.directory.state(copied.conversation)
    assert kept.parent is None
    assert not kept.deleted


async def test_tree_is_settled_by_the_next_server() -> None:
    log, started = MemoryLog(), asyncio.Event()
    scripts = {"go": delegates((None, "middle")), "middle": delegates((None, "deep")), "deep": never(started)}
    async with open_crew(log=log, scripts=scripts) as crew:
        conversation = await crew.begin_with("go")
        middle = await crew.child_of(conversation)
        deep = await crew.child_of(middle)
        await asyncio.wait_for(started.wait(), WAIT_S)
        # What a server that is killed at this moment leaves behind.
        left = copy.deepcopy(log)
    async with open_crew(log=left) as crew:
        states: list[State] = [await crew.at_rest(one) for one in (conversation, middle, deep)]
    assert [state.last_turn and state.last_turn.stopped for state in states] == ["restart"] * 3
    assert [one.status for state in states for one in state.subagents] == ["cancelled"] * 2


async def test_end_of_the_server_leaves_nothing_running() -> None:
    log, started = MemoryLog(), asyncio.Event()
    async with open_crew(log=log, scripts={"go": delegates((None, "deep")), "deep": never(started)}) as crew:
        conversation = await crew.begin_with("go")
        child = await crew.child_of(conversation)
        await asyncio.wait_for(started.wait(), WAIT_S)
    assert crew.directory.open_count == 0
    assert not crew.player.running
    async with open_crew(log=log) as crew:
        states = [await crew.at_rest(one) for one in (conversation, child)]
    assert [state.turn for state in states] == [None, None]
    assert states[0].subagents[0].status == "cancelled"

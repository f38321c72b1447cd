"""Delegation: an agent gives a task to a subagent, which works in a conversation of its own and reports.

Called through `colleagues.py` by the turn that runs a `task` call; works on conversations through the directory. The child's
log holds all that it says and does; the parent's holds that it began, how it ended, and its report. The call waits until the
child is done, and cancelling the call stops the child, whose own calls stop theirs: so a whole tree goes down with its root.

Must never leave a child at work that nobody waits for, or let a child do what its parent would have to ask for.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, assert_never

from palaver.agents.default_agents import DEMO
from palaver.approval.policy import Mode, as_mode
from palaver.backends.process import to_the_end
from palaver.clock import Ids
from palaver.conversation.directory import Directory
from palaver.conversation.peers import Caller, Task
from palaver.core.exchanges import answer_of
from palaver.core.params import MODES
from palaver.core.restraints import inherit_params
from palaver.core.state import open_requests
from palaver.errors import PalaverError
from palaver.journal import Journal
from palaver.schema.base import Origin
from palaver.schema.commands import DeleteConversation, Deliver, Interrupt, StopProcess, StopTurn
from palaver.schema.events import ConversationCreated, SubagentFinished, SubagentStarted
from palaver.schema.records import AgentRecord
from palaver.schema.view import Parent, Plan, State, TurnSummary
from palaver.tools.agents.task import DEEPEST, depth_of
from palaver.tools.base import Report

WIDTH = 8
"""Children of one conversation that work at once: more than that nobody follows, and no small machine carries."""
REPORT_CHARS = 48_000
"""The longest report that goes back in one piece: it is part of an event, which may hold 256 KiB."""
TASK_CHARS = 2_000
"""Of a task, in the parent's log: enough to know it again. The child's own log holds it whole."""
STOP_S = 2.0
"""For a whole tree to go down; by then no process of it may be alive."""
STOPS = 3
"""A child that had yielded may have gone on in the very moment of the stop; twice in one moment it does not."""

logger = Journal(__name__)

Ending = Literal["completed", "failed", "cancelled"]


class Agents(Protocol):
    """Who can be given a task: `agents.roster.Roster`."""

    def agent(self, agent: str, project: str | None = None) -> AgentRecord | None: ...
    def able(self, project: str | None = None) -> Sequence[AgentRecord]: ...


def describe_agents(agents: Agents, folder: str | None) -> list[tuple[str, str]]:
    """What an agent is told of the others: those that can work, and what each is for. The demo only plays a part."""
    return [(agent.id, agent.description) for agent in agents.able(folder) if agent.backend != DEMO.backend]


@dataclass(slots=True)
class _Child:
    """A subagent at work."""

    conversation: str
    agent: str
    origin: Origin
    run: str | None = None
    """The turn it is begun with; None: nobody need have been told of it yet."""
    turn: str | None = None
    """The turn it is in: another one, after it had yielded."""


class Delegation:
    def __init__(self, directory: Directory, agents: Agents, ids: Ids) -> None:
        self._directory = directory
        self._agents = agents
        self._ids = ids
        self._at_work: Counter[str] = Counter()
        """Children by their parent's conversation. Counted here: of calls that start together none is on record yet."""

    async def delegate(self, caller: Caller, task: Task) -> Report:
        here = caller.state.conversation
        folder, wanted = caller.state.project, task.agent or caller.agent_id
        record = self._agents.agent(wanted, folder)
        if record is None:
            return Report(ok=False, text=self._unknown(wanted, folder))
        if depth_of(caller.state) >= DEEPEST:
            return Report(ok=False, text=f"You are {DEEPEST} levels deep in delegation, which is the limit. {ALONE}")
        if self._at_work[here] >= WIDTH:
            return Report(ok=False, text=f"{WIDTH} subagents work for you already, which is the limit. {LATER}")
        self._at_work[here] += 1
        try:
            return await self._carry_out(caller, task, record)
        finally:
            self._at_work[here] -= 1
            self._at_work += Counter()  # Drops those that are at zero.

    def _unknown(self, wanted: str, folder: str | None) -> str:
        known = ", ".join(name for name, _ in describe_agents(self._agents, folder))
        return f"There is no agent “{wanted}”. There are: {known}. Without `agent` one like you does it."

    # -- from the beginning to the report

    async def _carry_out(self, caller: Caller, task: Task, record: AgentRecord) -> Report:
        above = caller.state.conversation
        origin = Origin(face="agents", agent=caller.agent_id, conversation=above)
        child = _Child(self._ids.new(), record.id, origin)
        try:
            await self._begin(child, caller, task, record)
            state = await self._at_rest(child)
            await self._put_away(child, state)
        except PalaverError as failure:
            await to_the_end(self._stop(child, caller))
            return await self._report(caller, child, "failed", failure.message, None)
        except BaseException:
            # A stop: the parent's own settling has recorded the end, and waits for nothing but this.
            await to_the_end(self._stop(child, caller))
            raise
        ending, text = _outcome(state)
        return await self._report(caller, child, ending, text, _cost_of(state))

    async def _begin(self, child: _Child, caller: Caller, task: Task, record: AgentRecord) -> None:
        state = caller.state
        created = ConversationCreated(
            agent=record.id,
            project=state.project,
            params=_params(caller, record_of(caller, self._agents), record),
            parent=Parent(
                kind="subagent",
                conversation=state.conversation,
                root=root_of(state),
                call=task.call,
                depth=depth_of(state) + 1,
            ),
        )
        await self._directory.begin_as(child.conversation, created, child.origin)
        run = self._ids.new()
        # Told before it begins: whoever follows both hears of the child before the child speaks.
        await caller.tell(
            SubagentStarted(
                subagent=child.conversation,
                agent=record.id,
                task=task.prompt[:TASK_CHARS],
                call=task.call or None,
                run=run,
            )
        )
        child.run = child.turn = run
        order = Deliver(
            content=task.prompt,
            trigger="task",
            # A circle of agents is one, also where a part of it is a task.
            hops=state.turn.trigger.hops if state.turn else 0,
            parent=caller.id,
            turn=run,
            client_request_id=f"task-{child.conversation}",
        )
        await self._directory.command(child.conversation, order, child.origin)

    async def _at_rest(self, child: _Child) -> State:
        """The view once it is done: an agent that yielded to wait for a process of its own goes on when that ends."""
        state = await self._directory.turn_over(child.conversation, child.turn or "")
        while _goes_on(state):
            if state.turn is None:
                state = await self._directory.wait_until_changed(child.conversation, state)
            else:
                child.turn = state.turn.id
                state = await self._directory.turn_over(child.conversation, child.turn)
        return state

    async def _report(self, caller: Caller, child: _Child, ending: Ending, text: str, cost_usd: float | None) -> Report:
        await caller.tell(
            SubagentFinished(
                subagent=child.conversation, outcome=ending, result=text, run=child.run, cost_usd=cost_usd or None
            )
        )
        return Report(ok=ending == "completed", text=text, conversation=child.conversation)

    # -- the end

    async def _put_away(self, child: _Child, state: State) -> None:
        """Nobody looks after what a subagent leaves behind: its processes end with its report, its plan is the report."""
        if state.deleted:
            return
        for process in state.processes:
            if process.running:
                await self._directory.command(child.conversation, StopProcess(process=process.id), child.origin)
        if state.turn is None and open_requests(state):
            await self._directory.command(child.conversation, Interrupt(turn=child.turn), child.origin)

    async def _stop(self, child: _Child, caller: Caller) -> None:
        # A stop may come when that it began is on record, and before we hear so.
        is_told = any(known.conversation == child.conversation for known in caller.state.subagents)
        try:
            async with asyncio.timeout(STOP_S):
                if child.run is None and not is_told:
                    # Cut off before anybody was told of it, whether or not it is there.
                    await self._directory.command(child.conversation, DeleteConversation(), child.origin)
                    return
                for _ in range(STOPS):
                    order = StopTurn(reason="parent", turn=child.turn)
                    await self._directory.stop_turn(child.conversation, order, child.origin)
                    state = await self._directory.state(child.conversation)
                    await self._put_away(child, state)
                    if not _goes_on(state):
                        return
                    child.turn = state.turn.id if state.turn else child.turn
        except PalaverError as failure:
            # Deleted, or the server is stopping and ends it itself.
            logger.debug("a subagent was not stopped", conversation=child.conversation, reason=failure.message)
        except TimeoutError:
            logger.warning("a subagent did not end in time", conversation=child.conversation, waited_s=STOP_S)


ALONE = "Do this yourself with your own tools, or report to whoever gave you the task that it should be split up."
LATER = "Wait for one of them to report, then give this task again; or do it yourself."


def root_of(state: State) -> str:
    """The conversation at the top of the tree, where a person looks."""
    return state.parent.root if state.parent and state.parent.kind == "subagent" else state.conversation


def record_of(caller: Caller, agents: Agents) -> AgentRecord:
    """The record of a caller's agent, without the limits that the server adds for a turn; those hold everywhere anyway."""
    return agents.agent(caller.agent_id, caller.state.project) or caller.agent


def _params(caller: Caller, own: AgentRecord, record: AgentRecord) -> dict[str, Any]:
    """What the parent is kept from, its child is kept from too; what the parent was allowed, it was allowed alone."""
    given = caller.state.params
    params: dict[str, Any] = {"mode": _mode(caller.mode, record), **inherit_params(given, own, record)}
    if record.id == caller.agent_id and "model" in given:
        params["model"] = given["model"]
    return params


def _mode(callers: str, record: AgentRecord) -> Mode:
    """Never bolder than the caller's; the agent's own, if that is more cautious."""
    own = [word for word in (record.mode, record.params.get("mode")) if isinstance(word, str)]
    return min(map(as_mode, (callers, *own)), key=MODES.index)


def _goes_on(state: State) -> bool:
    yielded = state.last_turn is not None and state.last_turn.outcome == "yielded"
    at_work = state.turn is not None or any(process.running for process in state.processes)
    return yielded and at_work and not state.deleted


def _cost_of(state: State) -> float:
    """Of the whole tree: what is below it told it what it cost."""
    return state.cost_usd + sum(child.cost_usd or 0.0 for child in state.subagents)


# -- what is reported


def _outcome(state: State) -> tuple[Ending, str]:
    last = state.last_turn
    if last is None:
        return "failed", "It never began."
    said = answer_of(state, last.id)
    match last.outcome:
        case "completed" | "yielded":
            return "completed", _truncate(said or "It is done, and said nothing.")
        case "task":
            return "completed", _truncate(last.summary or said or "It is done, and said nothing.")
        case "plan":
            asked = next((request.plan for request in open_requests(state) if request.plan), state.plan)
            return "completed", _truncate(said or _plan_words(asked))
        case "limited":
            why = last.error.message if last.error else "It reached a limit before it was done."
            return "failed", _truncate(_with(why, said))
        case "failed":
            why = last.error.message if last.error else "It failed, and did not say why."
            return "failed", _truncate(_with(why, said))
        case "interrupted":
            return "cancelled", _truncate(_with(_stop_words(last), said))
        case _:
            assert_never(last.outcome)


def _stop_words(last: TurnSummary) -> str:
    match last.stopped:
        case "user":
            return "A person stopped it. Do not give the task again without being asked to."
        case "deleted":
            return "A person deleted its conversation. Do not give the task again without being asked to."
        case "restart" | "shutdown" | "storage" | "backend_exit":
            return "It was cut off by a fault of the server. What it had done so far may be incomplete."
        case None:
            return f"A person declined what it wanted to do. {last.summary or ''}".strip()
        case _:
            return "It was stopped."


def _with(why: str, said: str) -> str:
    return f"{why}\n\nIt had said:\n\n{said}" if said else why


def _plan_words(plan: Plan | None) -> str:
    if plan is None:
        return "It proposed a plan without words."
    return "\n".join([plan.summary, *(f"- {item.title}" for item in plan.items)])


def _truncate(text: str) -> str:
    if len(text) <= REPORT_CHARS:
        return text
    return f"{text[:REPORT_CHARS]}\n[… {len(text) - REPORT_CHARS:,} more characters in its own conversation]"

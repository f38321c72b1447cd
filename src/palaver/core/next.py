"""What should run now: which queued messages begin a turn at rest, and which join the running one at a boundary.

Called after every change. Pure: the same state always gives the same answer. Queued commands are `decide/next_step.py`.
"""

from msgspec.structs import replace

from palaver.core.decide.facts import Facts
from palaver.core.settle import process_over, supersede
from palaver.schema.events import KnownEvent, MessageAdded, QueueRemoved, TurnStarted
from palaver.schema.view import Process, QueueItem, State, Trigger, Waking

EVENT_KINDS: dict[Waking, str] = {"callback": "agent_callback", "idle": "idle_prompt"}
"""How a message that nobody typed is known in the transcript."""


def next_items(state: State) -> list[QueueItem]:
    """What leaves the queue next: a command alone; or a message, with those that agreed to share its turn."""
    if state.turn is not None or state.deleted:
        return []
    ready = [item for item in state.queue if not item.held]
    if not ready:
        return []
    first, *rest = ready
    if first.command is not None:
        return [first]
    # A turn has one agent and one mode; a message meant for another never slips into it.
    fitting = [item for item in rest if (item.agent, item.mode) == (first.agent, first.mode)]
    if _joins_a_running_turn(first):
        # Boundary messages that found no turn to join begin one together, as they would have joined it together.
        return [first, *(item for item in fitting if _joins_a_running_turn(item))]
    taken = [first]
    for item in rest:
        if not (first.merge and item.merge and item in fitting):
            break
        taken.append(item)
    return taken


def next_turn(state: State, facts: Facts) -> list[KnownEvent]:
    """The events that begin the next turn from the queue, or nothing. A command in front of it is not for here."""
    items = next_items(state)
    if not items or items[0].command is not None:
        return []
    turn = facts.new_id()
    delivered = [event for item in items for event in delivery(item, turn)]
    first = items[0]
    trigger = Trigger(
        kind=first.trigger,
        messages=tuple(item.id for item in items),
        exchange=first.exchange,
        hops=first.hops,
    )
    return [*supersede(state), *delivered, start_turn(turn, trigger, facts, items[0].mode)]


def boundary_items(state: State) -> list[QueueItem]:
    """What joins the running turn before its next model call."""
    turn = state.turn
    if turn is None:
        return []
    return [
        item
        for item in state.queue
        if not item.held
        and _joins_a_running_turn(item)
        and item.agent in (None, turn.agent)
        and item.mode in (None, turn.mode)
    ]


def boundary_messages(state: State) -> list[KnownEvent]:
    turn = state.turn
    if turn is None:
        return []
    return [event for item in boundary_items(state) for event in delivery(item, turn.id)]


def _joins_a_running_turn(item: QueueItem) -> bool:
    # What no person sent has a turn of its own, whoever moves it forward: its end is the answer that somebody waits for.
    # And nothing changes the past of a running turn.
    by_itself = item.exchange is not None or item.trigger != "message" or item.command is not None
    return not by_itself and (item.delivery == "boundary" or item.priority)


def delivery(item: QueueItem, turn: str) -> list[KnownEvent]:
    """A queued message leaves the queue and enters the transcript in one step, under the same id.

    It keeps its client request id, by which its sender knows it again, without the hash: the command itself was answered
    when it was queued.
    """
    return [
        QueueRemoved(turn=turn, item=item.id, reason="delivered", exchange=item.exchange),
        replace(message_from(item, turn), item=item.id, client_request_id=item.client_request_id),
    ]


def message_from(item: QueueItem, turn: str) -> MessageAdded:
    """A message as the transcript has it: what an agent or the server itself said is told from a person's words."""
    return MessageAdded(
        turn=turn,
        message=item.id,
        role="event" if item.trigger == "callback" else "user",
        event_kind=EVENT_KINDS.get(item.trigger),
        content=item.content,
        origin=item.origin,
        exchange=item.exchange,
    )


def process_ended(state: State, process: Process, exit_code: int | None, text: str, facts: Facts) -> list[KnownEvent]:
    """A background process ended by itself. An agent that yielded its turn to wait for something goes on with this."""
    over = process_over(process, "exited", exit_code, text, facts.new_id())
    last = state.last_turn
    if state.turn is not None or last is None or last.outcome != "yielded" or next_items(state):
        return over
    return [*supersede(state), *over, start_turn(facts.new_id(), Trigger(kind="process"), facts, last.mode)]


def start_turn(
    turn: str, trigger: Trigger, facts: Facts, mode: str | None = None, parent: str | None = None
) -> TurnStarted:
    runner = facts.runner
    return TurnStarted(
        turn=turn,
        agent=runner.agent,
        backend=runner.backend,
        model=runner.model,
        resumable=runner.resumable,
        steerable=runner.steerable,
        trigger=trigger,
        mode=mode,
        parent=parent,
        origin=facts.origin,
    )

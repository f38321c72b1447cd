"""Exchanges: what one agent writes to another, and the answer that comes back, exactly once.

Called by a running turn (`write`), by the owner of the conversation that answered (`answered`), and at the server's start
(`running`). Talks to conversations through the directory alone. Nothing here is the only copy of anything: that a message
was sent is in the caller's log before it is delivered, that it was answered is in the target's log before anybody is told,
so a crash between any two lines is made good at the next start. Delivering and returning are idempotent; doing either
again changes nothing.

Must never stop the conversation that was written to: it goes on, whatever becomes of the one that asked.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Literal, Protocol

from palaver.agents.addressing import (
    Address,
    Addresses,
    cautious,
    escapes,
    hops_so_far,
    refusal_of,
    too_many,
    works_for_another,
)
from palaver.agents.delegation import Agents, record_of
from palaver.approval.policy import Rule
from palaver.clock import Clock, Ids
from palaver.conversation.peers import Caller
from palaver.core.exchanges import ENDS, End, find, is_open
from palaver.core.restraints import inherit_params
from palaver.errors import CallerError, Conflict, Gone, LogError, NotFound
from palaver.journal import Journal
from palaver.log.base import EventLog, lines_after
from palaver.schema.base import Origin
from palaver.schema.commands import Accepted, Deliver, Order, ReturnExchange
from palaver.schema.events import ConversationCreated, Event, ExchangeReturned, ExchangeSent, decode_event
from palaver.schema.view import Exchange, Parent, State
from palaver.tasks import running, wait_first
from palaver.tools.base import Letter, Reply

logger = Journal(__name__)

RETRY_S = 5.0
"""How often an answer that could not be recorded (disk full) is tried again."""
END_S = 5.0
"""For answers on their way when the server ends. What does not arrive by then arrives after the next start."""

Key = tuple[str, str]
"""The conversation that asked, and the exchange."""
Waiter = asyncio.Future[tuple[str, ExchangeReturned]]
"""The conversation that answered, and its answer."""


class Conversations(Protocol):
    """What is needed of the directory."""

    async def command(self, conversation: str, command: Order, origin: Origin | None) -> Accepted: ...
    async def begin_as(self, conversation: str, created: ConversationCreated, origin: Origin) -> None: ...
    async def state(self, conversation: str) -> State: ...


class Exchanges:
    def __init__(
        self,
        directory: Conversations,
        log: EventLog,
        clock: Clock,
        ids: Ids,
        roster: Agents,
        rules: Sequence[Rule] = (),
    ) -> None:
        """`rules`: those of the configuration, some of which count in one project alone."""
        self._rules = rules
        self._directory = directory
        self._log = log
        self._clock = clock
        self._roster = roster
        self._addresses = Addresses(log, ids)
        self._waiting: dict[Key, Waiter] = {}
        """Those whose call still runs: their answers are handed over, not sent."""
        self._work: set[asyncio.Task[None]] = set()
        self._closed = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Exchanges"]:
        """Entered once the conversations are recovered, left before they are closed. What a crash cut is taken up."""
        self._hold(self._take_up(), "take up open exchanges")
        try:
            yield self
        finally:
            self._closed = True
            if self._work:
                await asyncio.wait(self._work, timeout=END_S)
            left = list(self._work)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    # -- an agent writes

    async def write(self, caller: Caller, letter: Letter, call: str) -> Reply:
        """Raises only what the caller's own log raises. Cancelled: the target goes on, and its answer begins no turn."""
        state = caller.state
        here = state.conversation
        sending = (exchange for conversation, exchange in self._waiting if conversation == here)
        if words := refusal_of(state, letter, self._roster) or too_many(state, sending):
            return Reply(status="failed", response=words)
        waiting = self._waiting[here, call] = asyncio.get_running_loop().create_future()
        try:
            return await self._send(caller, letter, call, waiting)
        finally:
            unread = self._waiting.pop((here, call), None)
            if unread is not None and unread.done():
                target, answer = unread.result()
                self._return(here, target, answer)

    async def _send(self, caller: Caller, letter: Letter, call: str, waiting: Waiter) -> Reply:
        state = caller.state
        address = await self._bound(caller, letter, await self._addresses.of(state, letter))
        if address.conversation is None:
            return Reply(status="failed", response=address.words)
        origin = Origin(face="agents", agent=caller.agent_id, conversation=state.conversation)
        if address.is_new:
            # Before anybody is told of it. If the server dies right here it stays empty, and is the latest one next time.
            try:
                await self._create(caller, letter.agent, address.conversation, call, origin)
            except CallerError as refusal:
                return Reply(status="failed", response=refusal.message)
        sent = ExchangeSent(
            exchange=call,
            agent=letter.agent,
            to=address.conversation,
            content=letter.content,
            mode="sync" if letter.wait else "async",
            call=call,
            hops=hops_so_far(state) + 1,
        )
        return await self._await_reply(caller, letter, sent, waiting)

    async def _bound(self, caller: Caller, letter: Letter, address: Address) -> Address:
        """The address, if whoever answers there is held to all that the caller is held to; else another, or why there is none.

        Asking another agent is no way around a rule.
        """
        if address.conversation is None or address.is_new:
            return address
        target = await self._directory.state(address.conversation)
        record = self._roster.agent(target.agent, target.project)
        if not escapes((caller.state, record_of(caller, self._roster)), (target, record), self._rules):
            return address
        if letter.conversation == "latest-or-create":
            return self._addresses.new()
        return Address(
            words=f"Conversation {address.conversation} lacks rules that hold for you, so nothing was sent. Use session "
            f"`create` to reach {letter.agent} in one that has them."
        )

    async def _await_reply(self, caller: Caller, letter: Letter, sent: ExchangeSent, waiting: Waiter) -> Reply:
        call, to, agent = sent.exchange, sent.to, sent.agent
        await caller.tell(sent)
        if find(caller.state, call, "out") is None:
            # The turn was stopped in the same moment, and what it said then was not recorded: nothing is sent.
            return Reply(status="cancelled", response="The turn was stopped before the message was sent.")
        try:
            taken = await self._deliver(caller.state, caller.agent_id, caller.mode, sent)
        except CallerError as refusal:
            words = f"{agent} did not get the message: {refusal.message}"
            await caller.tell(ExchangeReturned(exchange=call, status="failed", response=words))
            return Reply(status="failed", response=words, conversation=to)
        # A subagent has no later turn in which an answer could reach it.
        if not letter.wait or (taken.queued and not works_for_another(caller.state)):
            return await self._later(caller, sent, queued=taken.queued)
        answer = await self._answer(waiting, letter.timeout_s)
        if answer is None:
            await caller.tell(ExchangeReturned(exchange=call, status="timeout"))
            words = (
                f"{agent} has not answered within {letter.timeout_s:g} seconds. Its turn goes on in conversation {to}; "
                "what it says will be there and will not come back by itself."
            )
            return Reply(status="timeout", response=words, conversation=to)
        del self._waiting[caller.state.conversation, call]
        await caller.tell(_event_of_return(answer))
        return Reply(
            status=_end(answer),
            response=answer.response or "",
            conversation=to,
            duration_ms=answer.duration_ms,
            tool_call_count=answer.tool_call_count,
        )

    async def _later(self, caller: Caller, sent: ExchangeSent, *, queued: bool) -> Reply:
        await caller.tell(ExchangeReturned(exchange=sent.exchange, status="queued" if queued else "started"))
        doing = "is busy; the message waits in its queue" if queued else "has begun"
        words = f"{sent.agent} {doing}. Its answer comes back as a message that begins a turn of yours: go on, or end yours."
        return Reply(status="queued" if queued else "started", response=words, conversation=sent.to)

    async def _answer(self, waiting: Waiter, timeout_s: float) -> ExchangeReturned | None:
        """None: it did not come in time."""
        async with running(self._clock.sleep(timeout_s), "wait for another agent") as timer:
            await wait_first(waiting, timer)
        return waiting.result()[1] if waiting.done() else None

    async def _deliver(self, caller: State, agent: str, mode: str, sent: ExchangeSent) -> Accepted:
        """The message in the target's log, once, whoever asks how often. Raises CallerError when it takes none."""
        to = sent.to or ""
        origin = Origin(face="agents", agent=agent, conversation=caller.conversation)
        target = await self._directory.state(to)
        usual = self._mode_of(target)
        order = Deliver(
            content=sent.content,
            exchange=sent.exchange,
            hops=sent.hops,
            # Nobody gets more done through another agent than is allowed to themselves.
            mode=mode if cautious(usual, mode) != cautious(usual, usual) else None,
            client_request_id=f"exchange-{sent.exchange}",
        )
        return await self._directory.command(to, order, origin)

    async def _create(self, caller: Caller, agent: str, conversation: str, call: str, origin: Origin) -> None:
        state = caller.state
        created = ConversationCreated(
            agent=agent,
            project=state.project,
            params={
                "mode": cautious(self._own_mode(agent, state.project), caller.mode),
                **inherit_params(
                    state.params, record_of(caller, self._roster), self._roster.agent(agent, state.project)
                ),
            },
            parent=Parent(
                conversation=state.conversation,
                kind="exchange",
                root=state.parent.root if state.parent else state.conversation,
                call=call,
            ),
        )
        await self._directory.begin_as(conversation, created, origin)

    def _mode_of(self, state: State) -> str:
        mode = state.params.get("mode")
        return mode if isinstance(mode, str) else self._own_mode(state.agent, state.project)

    def _own_mode(self, agent: str, project: str | None) -> str:
        record = self._roster.agent(agent, project)
        return (record.mode if record else None) or "ask"

    # -- an agent has answered

    def answered(self, conversation: str, exchange: Exchange, answer: ExchangeReturned) -> None:
        """Called by the owner of the conversation that answered. Returns at once."""
        if exchange.conversation is None:
            return
        waiting = self._waiting.get((exchange.conversation, exchange.id))
        if waiting is None:
            self._return(exchange.conversation, conversation, answer)
        elif not waiting.done():
            waiting.set_result((conversation, answer))

    def _return(self, caller: str, target: str, answer: ExchangeReturned) -> None:
        self._hold(self._give_back(caller, target, answer), f"return exchange {answer.exchange}")

    async def _give_back(self, caller: str, target: str, answer: ExchangeReturned) -> None:
        listing = await self._log.listing(target)
        origin = Origin(face="agents", agent=listing.agent if listing else None, conversation=target)
        order = ReturnExchange(
            exchange=answer.exchange,
            status=_end(answer),
            response=answer.response or "",
            duration_ms=answer.duration_ms,
            tool_call_count=answer.tool_call_count,
            run=answer.turn,
        )
        while True:
            try:
                await self._directory.command(caller, order, origin)
                return
            except CallerError as gone:
                # Deleted, or it knows nothing of this any more: nobody is left to be told.
                logger.debug("an answer was dropped", conversation=caller, exchange=answer.exchange, why=gone.message)
                return
            except LogError as failure:
                logger.warning("an answer waits for the log", conversation=caller, reason=failure.message)
                if self._closed:
                    return
                await self._clock.sleep(RETRY_S)

    # -- after a restart

    async def _take_up(self) -> None:
        for conversation in await self._log.unfinished():
            listing = await self._log.listing(conversation)
            if listing is None or not listing.open_exchanges or listing.deleted:
                continue
            try:
                await self._look_at(conversation)
            except (CallerError, LogError) as failure:
                logger.warning("open exchanges were not taken up", conversation=conversation, reason=failure.message)

    async def _look_at(self, conversation: str) -> None:
        state = await self._directory.state(conversation)
        for known in state.exchanges:
            live = (conversation, known.id) in self._waiting
            # One that somebody waited for ends with the turn that waited: its settling says so.
            if known.direction == "out" and is_open(known) and known.callback and not live and known.conversation:
                await self._resume(state, known, known.conversation)

    async def _resume(self, caller: State, known: Exchange, target: str) -> None:
        """It was answered meanwhile, or it still will be, or it never arrived, or it cannot any more."""
        if answer := await self._find_recorded_answer(target, known.id):
            self._return(caller.conversation, target, answer)
            return
        sent = await self._find_recorded_message(caller, known.id)
        try:
            if sent is None:
                raise NotFound("The message itself is no longer in the log.")
            # Taken before, it answers the same; and its owner is awake and goes on with it.
            await self._deliver(caller, caller.agent, self._mode_of(caller), sent)
        except Conflict:
            pass  # It has the message, from a moment when the caller was in another mode.
        except (NotFound, Gone):
            words = f"The conversation with {known.agent} is gone; the message was not read."
            self._return(caller.conversation, target, _cancel_event(known.id, "cancelled", words))
        except CallerError as refusal:
            self._return(caller.conversation, target, _cancel_event(known.id, "failed", refusal.message))

    async def _find_recorded_answer(self, target: str, exchange: str) -> ExchangeReturned | None:
        delivered = await self._log.used(target, f"exchange-{exchange}")
        if delivered is None:
            return None
        async for event in self._read(target, delivered.first - 1, b'"exchange.returned"'):
            if isinstance(event, ExchangeReturned) and event.exchange == exchange and event.status in ENDS:
                return event
        return None

    async def _find_recorded_message(self, caller: State, exchange: str) -> ExchangeSent | None:
        async for event in self._read(caller.conversation, 0, b'"exchange.sent"'):
            if isinstance(event, ExchangeSent) and event.exchange == exchange:
                return event
        return None

    async def _read(self, conversation: str, after: int, holding: bytes) -> AsyncIterator[Event]:
        """The events after a seq whose line holds a word."""
        while segments := await self._log.read(conversation, after):
            for segment in segments:
                for line in lines_after(segment, after):
                    if holding in line:
                        yield decode_event(line)
                after = segment.last

    # -- small parts

    def _hold(self, work: Coroutine[None, None, None], name: str) -> None:
        if self._closed:
            # The next start finds what is open, and does it then.
            work.close()
            return
        task = asyncio.create_task(work, name=name)
        self._work.add(task)
        task.add_done_callback(self._forget_task)

    def _forget_task(self, task: "asyncio.Task[None]") -> None:
        self._work.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            logger.error("an exchange was not gone on with", task=task.get_name(), exc_info=failure)


def _event_of_return(answer: ExchangeReturned) -> ExchangeReturned:
    """The answer as the caller's log has it."""
    return ExchangeReturned(
        exchange=answer.exchange,
        status=answer.status,
        response=answer.response,
        duration_ms=answer.duration_ms,
        tool_call_count=answer.tool_call_count,
        run=answer.turn,
    )


def _cancel_event(exchange: str, status: Literal["failed", "cancelled"], words: str) -> ExchangeReturned:
    return ExchangeReturned(exchange=exchange, status=status, response=words)


def _end(answer: ExchangeReturned) -> End:
    """Only ends are handed about here; the others are words of the caller's own log."""
    match answer.status:
        case "complete" | "failed" | "cancelled":
            return answer.status
        case _:
            return "failed"

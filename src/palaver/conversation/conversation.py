"""The owner of one conversation: the only one who decides and appends.

Everything that may change the conversation is posted to its inbox. One task takes what has gathered, decides on it in
order, appends the result in one commit, and only then moves the view on, publishes, answers and acts. So admission (a
durable write) never waits for execution, a burst costs one fsync, and a crash between any two lines here replays to the
same state.

Opened by the directory; calls core, log and feed; starts turns. Must never act on an event that is not on disk.
"""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, assert_never

import structlog
from msgspec.structs import replace

from palaver.backends.base import Backend, Background, NoBackground
from palaver.clock import Clock, Ids
from palaver.conversation.claims import Claims
from palaver.conversation.defaults import Defaults
from palaver.conversation.derived import changes_list, claims_of, documents_of, listing_of, removed_documents, runs_of
from palaver.conversation.inbox import (
    Asked,
    Barrier,
    Batch,
    Boundary,
    Ended,
    Expired,
    Inbox,
    Post,
    ProcessEnded,
    Stopping,
    Unsettled,
    Yielded,
    is_refused,
    refuse,
    refuse_post,
)
from palaver.conversation.older import Older
from palaver.conversation.others import Alone, Others
from palaver.conversation.requests import (
    OPEN_REQUESTS,
    STIRRED,
    Results,
    Waiting,
    recorded_answer,
    too_many,
    with_expiry,
)
from palaver.conversation.roster import Roster
from palaver.conversation.snapshots import Snapshots
from palaver.conversation.turn import CLEANUP_S, RunningTurn, run_turn
from palaver.core import exchanges
from palaver.core.decide import Already, Refusal, accepted, clears_context, decide
from palaver.core.evolve import fold
from palaver.core.facts import Facts, Runner
from palaver.core.going_on import going_on
from palaver.core.history import NeedsAll
from palaver.core.next import boundary_messages, next_items, process_ended
from palaver.core.settle import expire, fail, finish, reap, settle, works_for_another, yielded
from palaver.core.state import OPEN_TOOL, find_call, find_request, open_requests
from palaver.errors import (
    REFUSALS,
    CallerError,
    HeadMoved,
    LogError,
    LogUnavailable,
    NotFound,
    NotInstalled,
    PalaverError,
)
from palaver.feed.feed import Feed
from palaver.log.base import Append, EventLog
from palaver.schema.base import Origin
from palaver.schema.commands import (
    Accepted,
    Deliver,
    Interrupt,
    Order,
    SendMessage,
    StopTurn,
    UpdateConversation,
)
from palaver.schema.errors import WireError
from palaver.schema.events import (
    ConversationDeleted,
    ExchangeReturned,
    KnownEvent,
    MessageAdded,
    ProcessFinished,
    RequestOpened,
    RequestResolved,
    ToolFinished,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
    encode_event,
)
from palaver.schema.records import AgentRecord
from palaver.schema.view import Message, State, Stopped
from palaver.tools.base import Passage

logger = structlog.get_logger(__name__)

RETRY_SETTLE_S = 1.0
"""How often a turn that could not be settled (disk full) is tried again."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every conversation of a server shares."""

    log: EventLog
    feed: Feed
    clock: Clock
    ids: Ids
    roster: Roster
    home: Path
    """The folder of a conversation without a project."""
    background: Background = field(default_factory=NoBackground)
    others: Others = field(default_factory=Alone)
    """The other conversations, for agents that work together."""
    defaults: Defaults = field(default_factory=Defaults)
    """What counts where neither a conversation nor its agent says otherwise."""


class Conversation:
    """Implements `turn.Owner`. Live as long as something happens; the directory lets it go when it rests."""

    def __init__(self, state: State, snapshot_seq: int, around: Surroundings) -> None:
        self._state = state
        self._around = around
        self._snapshots = Snapshots(around.log, snapshot_seq)
        self._inbox = Inbox()
        self._waiting = Waiting(around.clock, lambda request: self._inbox.post(Expired(request)))
        self._results = Results()
        self._claims = Claims(around.log, state.conversation)
        self._older = Older(around.log, state.conversation)
        self._running: tuple[str, asyncio.Task[None]] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._unsettled: Stopped | None = None
        self._retrying: asyncio.Task[None] | None = None
        self._dropped_late = 0
        self.last_used_s = around.clock.monotonic_s()

    @property
    def id(self) -> str:
        return self._state.conversation

    @property
    def state(self) -> State:
        """The view as committed."""
        return self._state

    @property
    def closed(self) -> bool:
        """This owner takes nothing any more."""
        return self._inbox.closed

    @property
    def resting(self) -> bool:
        """Nothing would be lost by letting it go: no turn, no queue to run, nobody waiting for an answer."""
        busy = self._inbox or self._state.turn or self._running or self._waiting or self._unsettled
        at_work = any(process.running for process in self._state.processes)
        return not busy and not at_work and not next_items(self._state)

    # -- the door: faces come in here

    async def command(self, command: Order, origin: Origin | None, *, remembers: bool = False) -> Accepted:
        """On disk when it returns. Raises a CallerError or a LogError; then nothing happened."""
        self.last_used_s = self._around.clock.monotonic_s()
        try:
            answer = await self._asked(command, origin, remembers)
        except CallerError:
            if not await self._claims.look_up(command):
                raise
        else:
            if answer.applied or not await self._claims.look_up(command):
                return answer
        # It makes no sense any more because an earlier owner took it; it gets the answer that it got then.
        return await self._asked(command, origin, remembers)

    async def _asked(self, command: Order, origin: Origin | None, remembers: bool) -> Accepted:
        answer: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()
        self._inbox.post(Asked(command, origin, answer, remembers))
        return await answer

    async def stop(self, reason: Stopped) -> None:
        """Bring it to rest: the turn settled, its processes gone, a snapshot left behind."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._inbox.post(Stopping(reason, done))
        await done

    # -- the running turn comes in here

    async def record(self, turn: str, event: KnownEvent) -> None:
        await self._inbox.post_event(turn, event)

    async def recorded(self, turn: str) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._inbox.post(Barrier(done))
        await done

    async def deliver(self, turn: str) -> Sequence[Message]:
        if self._inbox.idle and not boundary_messages(self._state):
            return ()  # As the owner would say, but at once: a turn's first request waits for this.
        messages: asyncio.Future[Sequence[Message]] = asyncio.get_running_loop().create_future()
        self._inbox.post(Boundary(turn, messages))
        return await messages

    async def ask(self, turn: str, request: RequestOpened) -> RequestResolved:
        known = find_request(self._state, request.request)
        if known is not None and (answer := recorded_answer(known)):
            return answer
        if known is None and self._requests_but(request.request) >= OPEN_REQUESTS:
            return too_many(request)
        answered = self._waiting.enter(request.request)
        try:
            if known is None:
                await self.record(turn, with_expiry(request, self._params_of(turn), self._now()))
            return await answered
        finally:
            self._waiting.leave(request.request, answered)

    async def result_of(self, call: str) -> None:
        known = find_call(self._state, call)
        if known is not None and known.status in OPEN_TOOL:
            await self._results.wait(call)

    async def end_of(self, turn: str) -> State:
        """The view as it was when a turn of this conversation ended; of now, if it is long over."""
        if self._state.turn is not None and self._state.turn.id == turn:
            return await self._results.wait(turn)
        return self._state

    async def stirred(self, seen: State) -> State:
        """The view once it is no longer what somebody saw at rest: a turn began, a process ended, it was deleted."""
        return self._state if self._state.seq != seen.seq else await self._results.wait(STIRRED)

    async def calm(self) -> None:
        """Returns once all that the last turn started is gone, or its time for that is up."""
        if self._ending is not None and not self._ending.done():
            await asyncio.wait({self._ending}, timeout=CLEANUP_S)

    def ended(self, turn: str, error: WireError | None) -> None:
        self._inbox.post(Ended(turn, error))

    def process_ended(self, process: str, exit_code: int | None, text: str) -> None:
        if not self._inbox.closed:  # Else it was ended with its conversation, which is on record.
            self._inbox.post(ProcessEnded(process, exit_code, text))

    async def recall(self, query: str, limit: int) -> Sequence[Passage]:
        # Whoever works together knows from each other what they have to know; it is no knowledge from elsewhere.
        top = self._state.parent.root if works_for_another(self._state) and self._state.parent else self.id
        found = await self._around.log.recall(query, project=self._state.project, limit=limit, but=top)
        return [
            Passage(conversation=one.conversation, title=one.title, text=one.text, seq=one.seq, ts=one.ts)
            for one in found
        ]

    # -- the owner itself

    async def own(self) -> None:
        """The owner's task: everything above ends up here, one batch at a time."""
        try:
            await self._take_over()
            while not self._inbox.closed:
                await self._handle(await self._inbox.take())
                if self._snapshots.due(self._state):
                    self._state = await self._snapshots.keep(self._state)
        finally:
            self._inbox.close()
            await self._abandon()

    async def _take_over(self) -> None:
        """A turn that nobody runs was cut by a crash: settle it, then let the queue go on."""
        batch = Batch(self._state, self._state, urgent=True)
        self._number(batch, settle(self._state, "restart", now=self._now()))
        self._number(batch, reap(batch.state, self._around.ids.new))
        await self._conclude(batch)
        for request in open_requests(self._state):
            self._waiting.opened(request)

    async def _handle(self, posts: list[Post]) -> None:
        try:
            while not await self._conclude(await self._decided(posts)):
                pass
        except Exception:
            # A fault of ours. The directory opens the conversation anew from the log; nobody is left waiting here.
            for post in posts:
                refuse_post(post, LogUnavailable("This conversation is being reopened; try again in a moment."))
            raise

    async def _conclude(self, batch: Batch) -> bool:
        """False: nothing happened, for a command in it was taken by an earlier owner. That is known now; decide again."""
        await self._go_on(batch)
        try:
            await self._commit(batch)
        except LogError as failure:
            if await self._claims.were_used(failure, [asked.command for asked, _ in batch.answers]):
                return False
            await self._survive(batch, failure)
        return True

    # -- deciding

    async def _decided(self, posts: list[Post]) -> Batch:
        batch = Batch(self._state, self._state)
        for post in posts:
            if isinstance(post, Asked) and is_refused(post):
                continue
            try:
                await self._decide(batch, post)
            except PalaverError as error:
                if not isinstance(post, Asked):
                    raise
                refuse(post.answer, error)
        return batch

    async def _decide(self, batch: Batch, post: Post) -> None:
        match post:
            case Asked():
                await self._decide_command(batch, post)
            case Yielded():
                self._decide_event(batch, post)
            case Barrier():
                batch.barriers.append(post)
            case Boundary():
                active = _is_active(batch.state, post.turn)
                delivered = self._number(batch, boundary_messages(batch.state) if active else [])
                ids = frozenset(event.message for event in delivered if isinstance(event, MessageAdded))
                batch.boundaries.append((post, ids))
            case Ended():
                if _is_active(batch.state, post.turn):
                    self._number(batch, fail(batch.state, post.error or _UNFINISHED, now=self._now()))
            case Expired():
                known = find_request(batch.state, post.request)
                if known is not None and known.status == "open":
                    self._number(batch, expire(batch.state, known))
            case ProcessEnded():
                process = next((known for known in batch.state.processes if known.id == post.process), None)
                if process is not None and process.running:
                    facts = self._facts_for(batch.state, batch.state.agent, None)
                    self._number(batch, process_ended(batch.state, process, post.exit_code, post.text, facts))
            case Unsettled():
                if self._unsettled:
                    batch.urgent = True
                    self._number(batch, settle(batch.state, self._unsettled, now=self._now()))
            case Stopping():
                batch.urgent = True
                batch.stopping.append(post)
                self._number(batch, settle(batch.state, post.reason, now=self._now()))
                self._number(batch, reap(batch.state, self._around.ids.new))
            case _:
                assert_never(post)

    async def _decide_command(self, batch: Batch, post: Asked) -> None:
        command = post.command
        if used := self._claims.used(command):
            batch.answers.append((post, await self._claims.repeat(command, used, batch.events)))
            return
        self._check_agent(command)
        at_rest = batch.state.turn is None
        if (at_rest and isinstance(command, NeedsAll)) or clears_context(command):
            await self._load_whole(batch)
        decision = decide(batch.state, command, self._facts(batch.state, post))
        match decision:
            case Refusal():
                raise REFUSALS[decision.code](decision.message, **decision.details)
            case Already():
                answer = Accepted(
                    conversation=self.id, seq=batch.state.seq, applied=False, id=decision.id, note=decision.note
                )
                batch.answers.append((post, answer))
            case _:
                batch.urgent = batch.urgent or isinstance(command, Interrupt | StopTurn)
                numbered = self._number(batch, decision)
                self._claims.claim(command, numbered)
                batch.answers.append((post, accepted(self.id, numbered)))

    def _decide_event(self, batch: Batch, post: Yielded) -> None:
        if not _is_active(batch.state, post.turn):
            self._dropped_late += 1
            logger.debug("late event dropped", conversation=self.id, turn=post.turn, total=self._dropped_late)
        elif isinstance(post.event, TurnFinished):
            self._number(batch, finish(batch.state, post.event, now=self._now()))
        else:
            self._number(batch, [post.event])
            self._number(batch, yielded(batch.state, now=self._now()))

    async def _go_on(self, batch: Batch) -> None:
        """Carry out what waits until a turn runs or nothing is ready."""
        if batch.stopping or (self._unsettled and batch.state.turn):
            return
        while items := next_items(batch.state):
            if items[0].command is not None:
                await self._load_whole(batch)
            facts = self._facts_for(batch.state, items[0].agent or batch.state.agent, items[0].origin)
            self._number(batch, going_on(batch.state, facts))

    def _number(self, batch: Batch, events: Sequence[KnownEvent]) -> list[KnownEvent]:
        now, new_id, seq = self._now(), self._around.ids.new, batch.state.seq
        numbered: list[KnownEvent] = []
        for event in exchanges.stamped(batch.state, events):
            seq += 1
            numbered.append(replace(event, seq=seq, id=new_id(), ts=event.ts or now, conversation=self.id))
        if numbered:
            batch.state = fold(batch.state, numbered)
            batch.events.extend(numbered)
        return numbered

    async def _load_whole(self, batch: Batch) -> None:
        """Rewriting history needs all of it, and then all of it is stored anew."""
        batch.rewritten = True
        if batch.state.offset:
            earlier = await self._older.before(batch.state)
            self._older.forget()
            batch.state = _with_earlier(batch.state, earlier)
            batch.before = _with_earlier(batch.before, earlier)

    # -- committing, and what may only happen after it

    async def _commit(self, batch: Batch) -> None:
        if batch.events:
            lines = [encode_event(event) for event in batch.events]
            listed = changes_list(batch.events)
            await self._around.log.append(
                Append(
                    conversation=self.id,
                    after=batch.before.seq,
                    lines=lines,
                    listing=listing_of(batch.state) if listed else None,
                    documents=documents_of(batch.state, batch.events),
                    removed_documents=removed_documents(batch.before, batch.events),
                    claims=claims_of(batch.events),
                    runs=runs_of(batch.before, batch.state, batch.events) if listed else (),
                    urgent=batch.urgent,
                )
            )
            self._state = batch.state
            if self._state.turn is None:
                self._unsettled = None
            body = b"\n".join(lines) + b"\n"
            self._around.feed.publish(self.id, batch.events[0].seq, batch.events[-1].seq, body)
        # The turn first: whoever waits for its first word waits longer than whoever sent the message.
        self._reconcile_turn(closing=bool(batch.stopping))
        self._answer(batch)
        self._act_on(batch)
        if batch.rewritten and batch.events:
            self._state = await self._snapshots.keep(self._state, replace_all=True)
        if batch.stopping:
            await self._close(batch)

    def _answer(self, batch: Batch) -> None:
        for asked, answer in batch.answers:
            if not asked.answer.done():
                asked.answer.set_result(answer)
        for barrier in batch.barriers:
            if not barrier.done.done():
                barrier.done.set_result(None)
        for boundary, ids in batch.boundaries:
            if not boundary.messages.done():
                boundary.messages.set_result([known for known in self._state.messages if known.id in ids])

    def _act_on(self, batch: Batch) -> None:
        if any(isinstance(event, TurnStarted | ProcessFinished | ConversationDeleted) for event in batch.events):
            self._results.came(STIRRED, self._state)
        for event in batch.events:
            match event:
                case RequestOpened():
                    known = find_request(self._state, event.request)
                    if known is not None and known.status == "open":
                        self._waiting.opened(known)
                case RequestResolved():
                    self._waiting.resolved(event)
                case ToolFinished():
                    self._results.came(event.call, self._state)
                case TurnFinished() | TurnInterrupted():
                    self._results.came(event.turn or "", self._state)
                case ExchangeReturned():
                    answered = exchanges.find(self._state, event.exchange, "in")
                    if answered is not None and not exchanges.is_open(answered):
                        self._around.others.answered(self.id, answered, event)
                case ProcessFinished(end="stopped" | "restart"):
                    self._around.background.stop(event.process)
                case _:
                    pass

    def _reconcile_turn(self, *, closing: bool = False) -> None:
        """Make the running task agree with the log: end what the log ended, start what it started."""
        wanted = self._state.turn
        if self._running is not None and (wanted is None or wanted.id != self._running[0]):
            self._end_running()
        if wanted is not None and self._running is None and not closing:
            task = asyncio.create_task(self._run(wanted.id, wanted.agent, self._ending), name=f"turn {wanted.id}")
            self._running, self._ending = (wanted.id, task), None

    def _end_running(self) -> None:
        if self._running is not None:
            self._ending, self._running = self._running[1], None
            self._ending.cancel()

    async def _run(self, turn: str, agent: str, after: asyncio.Task[None] | None) -> None:
        record = self._around.roster.agent(agent, self._folder)
        running = RunningTurn(
            id=turn,
            owner=self,
            agent=record or AgentRecord(id=agent, name=agent, backend="none"),
            project=Path(self._folder),
            clock=self._around.clock,
            ids=self._around.ids,
            blobs=self._around.log.blobs,
            others=self._around.others,
        )

        def backend() -> Backend:
            if record is None:
                raise NotInstalled(self._around.roster.why_not(agent, self._folder))
            return self._around.roster.backend(record)

        await run_turn(running, backend, self._older.before, after)

    async def _close(self, batch: Batch) -> None:
        self._inbox.close()
        await self._abandon()
        self._state = await self._snapshots.keep(self._state)
        for stopping in batch.stopping:
            if not stopping.done.done():
                stopping.done.set_result(None)

    # -- when the log fails

    async def _survive(self, batch: Batch, failure: LogError) -> None:
        """Nothing of the batch was written. Tell everyone, and stop a turn whose events could not be kept."""
        logger.error("append failed", conversation=self.id, code=failure.code, reason=failure.message)
        interrupted = False
        for asked, _ in batch.answers:
            interrupted = interrupted or isinstance(asked.command, Interrupt)
            self._claims.withdraw(asked.command)
            refuse(asked.answer, failure)
        for barrier in batch.barriers:
            refuse(barrier.done, failure)
        for boundary, _ in batch.boundaries:
            refuse(boundary.messages, failure)
        self._end_running()
        if self._state.turn is not None and not batch.stopping:
            self._unsettled = self._unsettled or ("user" if interrupted else "storage")
            self._retrying = asyncio.create_task(self._settle_again(), name=f"settle {self.id} again")
        for stopping in batch.stopping:
            self._inbox.close()
            refuse(stopping.done, failure)
        if isinstance(failure, HeadMoved):
            # Somebody else wrote to this conversation, so this view of it is wrong for good. The next one reads anew.
            raise failure

    async def _settle_again(self) -> None:
        await self._around.clock.sleep(RETRY_SETTLE_S)
        self._retrying = None
        if not self._inbox.closed:
            self._inbox.post(Unsettled())

    async def _abandon(self) -> None:
        """End everything this owner started. Bounded: a backend that ignores its cancellation is left behind."""
        self._waiting.close()
        self._end_running()
        tasks = {task for task in (self._ending, self._retrying) if task is not None}
        self._ending = self._retrying = None
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLEANUP_S)

    # -- small parts

    @property
    def _folder(self) -> str:
        return self._state.project or str(self._around.home)

    def _now(self) -> int:
        return self._around.clock.now_ms()

    def _requests_but(self, request: str) -> int:
        waiting = {known.id for known in open_requests(self._state)} | self._waiting.asked
        return len(waiting - {request})

    def _params_of(self, turn: str) -> Mapping[str, Any]:
        active = self._state.turn
        record = self._around.roster.agent(active.agent, self._folder) if active and active.id == turn else None
        return {**self._around.defaults.params, **(record.params if record else {}), **self._state.params}

    def _check_agent(self, command: Order) -> None:
        agent = command.agent if isinstance(command, SendMessage | UpdateConversation | Deliver) else None
        if agent and self._around.roster.agent(agent, self._folder) is None:
            raise NotFound(self._around.roster.why_not(agent, self._folder), agent=agent)

    def _facts(self, state: State, asked: Asked) -> Facts:
        chosen = asked.command.agent if isinstance(asked.command, SendMessage | Deliver) else None
        facts = self._facts_for(state, chosen or state.agent, asked.origin)
        return dataclasses.replace(facts, remembers=asked.remembers)

    def _facts_for(self, state: State, agent: str, origin: Origin | None) -> Facts:
        record = self._around.roster.agent(agent, self._folder)
        runner = self._around.roster.runner(record, state.params) if record else Runner(agent=agent, backend="none")
        return Facts(now=self._now(), new_id=self._around.ids.new, runner=runner, origin=origin)


_UNFINISHED = WireError(
    code="protocol_broken", message="The agent stopped without finishing its turn. Send again to go on.", retryable=True
)


def _is_active(state: State, turn: str) -> bool:
    return state.turn is not None and state.turn.id == turn


def _with_earlier(state: State, earlier: Sequence[Message]) -> State:
    return replace(state, messages=(*earlier, *state.messages), offset=0)

"""The owner of one conversation: the only one who decides and appends.

Everything that may change the conversation is posted to its inbox: commands from faces, events from the running turn,
boundaries, expiries. One task takes what has gathered, decides on it in order, appends the result in one commit, and only
then moves the view on, publishes, answers and acts. So admission (a durable write) never waits for execution, a burst
costs one fsync, and a crash between any two lines here replays to the same state.

Opened by the directory; calls core, log and feed; starts turns. Must never act on an event that is not on disk.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from msgspec.structs import replace

from palaver.clock import Clock, Ids
from palaver.conversation.derived import changes_list, claims_of, documents_of, listing_of, removed_documents
from palaver.conversation.loading import TAIL_MESSAGES, older_messages, snapshot_of, with_tail
from palaver.conversation.roster import Roster
from palaver.conversation.turn import CLEANUP_S, RunningTurn, run_turn
from palaver.core.decide import Already, Refusal, accepted, body_hash, decide
from palaver.core.evolve import fold
from palaver.core.facts import Facts, Runner
from palaver.core.next import boundary_messages, next_items, next_turn
from palaver.core.settle import fail, finish, settle
from palaver.core.state import find_request, open_requests
from palaver.errors import REFUSALS, Conflict, LogError, LogUnavailable, PalaverError
from palaver.feed.feed import Feed
from palaver.log.base import Append, EventLog, Used
from palaver.schema.base import Origin
from palaver.schema.commands import (
    Accepted,
    Command,
    EditMessage,
    Interrupt,
    Regenerate,
    RemoveMessage,
    RetryFrom,
    SendMessage,
    TruncateMessages,
)
from palaver.schema.errors import WireError
from palaver.schema.events import (
    KnownEvent,
    MessageRemoved,
    MessageTruncated,
    RequestOpened,
    RequestResolved,
    ToolFinished,
    TurnFinished,
    decode_event,
    encode_event,
)
from palaver.schema.records import AgentRecord
from palaver.schema.view import Message, Request, State, Stopped, ToolError

logger = structlog.get_logger(__name__)

SNAPSHOT_EVENTS = 256
"""A snapshot at rest after this many events: what reopening has to fold, at most."""
SNAPSHOT_EVENTS_RUNNING = 4_096
"""The same in the middle of a turn, where a snapshot is less useful."""
TURN_BACKLOG = 512
"""Events a backend may be ahead of the disk before it has to wait."""
KEEP_CLAIMS = 1_000
"""Latest client request ids kept in memory, so that a double click never meets a read that started before it."""
REQUEST_TIMEOUT_S = 300.0
"""An unanswered request is a denial after five minutes, unless the conversation or its agent says otherwise."""
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


@dataclass(slots=True)
class _Asked:
    command: Command
    origin: Origin | None
    answer: "asyncio.Future[Accepted]"


@dataclass(slots=True)
class _Yielded:
    turn: str
    event: KnownEvent


@dataclass(slots=True)
class _Barrier:
    done: "asyncio.Future[None]"


@dataclass(slots=True)
class _Boundary:
    turn: str
    messages: "asyncio.Future[Sequence[Message]]"


@dataclass(slots=True)
class _Ended:
    turn: str
    error: WireError | None


@dataclass(slots=True)
class _Expired:
    request: str


@dataclass(slots=True)
class _Stopping:
    reason: Stopped
    done: "asyncio.Future[None]"


_Post = _Asked | _Yielded | _Barrier | _Boundary | _Ended | _Expired | _Stopping


@dataclass(slots=True)
class _Batch:
    """What one commit is made of, while it is being decided."""

    before: State
    state: State
    events: list[KnownEvent] = field(default_factory=list[KnownEvent])
    answers: list[tuple[_Asked, Accepted]] = field(default_factory=list[tuple[_Asked, Accepted]])
    boundaries: list[tuple[_Boundary, list[str]]] = field(default_factory=list[tuple[_Boundary, list[str]]])
    barriers: list[_Barrier] = field(default_factory=list[_Barrier])
    stopped: list[_Stopping] = field(default_factory=list[_Stopping])
    urgent: bool = False
    rewritten: bool = False


class Conversation:
    """Implements `turn.Owner`. Live as long as something happens; the directory lets it go when it rests."""

    def __init__(self, state: State, snapshot_seq: int, around: Surroundings) -> None:
        self._state = state
        self._snapshot_seq = snapshot_seq
        self._around = around
        self._inbox: list[_Post] = []
        self._posted = asyncio.Event()
        self._room = asyncio.Semaphore(TURN_BACKLOG)
        self._claims: OrderedDict[str, Used] = OrderedDict()
        self._waiting: dict[str, list[asyncio.Future[RequestResolved]]] = {}
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._running: tuple[str, asyncio.Task[None]] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._earlier: list[Message] = []
        self._dropped_late = 0
        self._unsettled: Stopped | None = None
        self._closed = False
        self.last_used_s = around.clock.monotonic_s()

    # -- read

    @property
    def id(self) -> str:
        return self._state.conversation

    @property
    def state(self) -> State:
        """The view as committed."""
        return self._state

    @property
    def resting(self) -> bool:
        """Nothing would be lost by letting it go: no turn, no queue to run, nobody waiting for an answer."""
        return not (
            self._inbox
            or self._state.turn
            or self._running
            or next_items(self._state)
            or any(not timer.done() for timer in self._timers.values())
        )

    # -- the door: faces come in here

    async def command(self, command: Command, origin: Origin | None) -> Accepted:
        """On disk when it returns. Raises a CallerError or a LogError; then nothing happened."""
        self.last_used_s = self._around.clock.monotonic_s()
        request_id = command.client_request_id
        if request_id and request_id not in self._claims:
            used = await self._around.log.used(self.id, request_id)
            if used is not None:
                self._remember(request_id, used)
        answer: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()
        self._post(_Asked(command, origin, answer))
        return await answer

    async def stop(self, reason: Stopped) -> None:
        """Bring it to rest for a shutdown: the turn settled, its processes gone, a snapshot left behind."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._post(_Stopping(reason, done))
        await done

    # -- the running turn comes in here

    async def record(self, turn: str, event: KnownEvent) -> None:
        await self._room.acquire()
        self._post(_Yielded(turn, event))

    async def recorded(self, turn: str) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._post(_Barrier(done))
        await done

    async def deliver(self, turn: str) -> Sequence[Message]:
        messages: asyncio.Future[Sequence[Message]] = asyncio.get_running_loop().create_future()
        self._post(_Boundary(turn, messages))
        return await messages

    async def ask(self, turn: str, request: RequestOpened) -> RequestResolved:
        known = find_request(self._state, request.request)
        if known is not None and known.resolution is not None:
            return _as_event(known)
        answered: asyncio.Future[RequestResolved] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(request.request, []).append(answered)
        try:
            if known is None:
                await self.record(turn, self._with_expiry(request))
            return await answered
        finally:
            waiters = self._waiting.get(request.request, [])
            if answered in waiters:
                waiters.remove(answered)

    def ended(self, turn: str, error: WireError | None) -> None:
        self._post(_Ended(turn, error))

    # -- the owner itself

    async def own(self) -> None:
        """The owner's task: everything above ends up here, one batch at a time."""
        try:
            await self._take_over()
            while not self._closed:
                await self._posted.wait()
                self._posted.clear()
                posts, self._inbox = self._inbox, []
                if posts:
                    await self._handle(posts)
                await self._keep_snapshot()
        finally:
            self._closed = True
            await self._abandon()

    async def _take_over(self) -> None:
        """A turn that nobody runs was cut by a crash: settle it, then let the queue go on."""
        batch = _Batch(self._state, self._state, urgent=True)
        if self._state.turn is not None:
            await self._number(batch, settle(self._state, "restart", now=self._now()))
        await self._commit_or_retry(batch)
        for request in open_requests(self._state):
            self._start_timer(request)

    async def _handle(self, posts: list[_Post]) -> None:
        batch = _Batch(self._state, self._state)
        for post in posts:
            try:
                await self._decide(batch, post)
            except PalaverError as refused:
                if isinstance(post, _Asked):
                    _refuse(post.answer, refused)
                else:
                    logger.exception("a post failed", conversation=self.id)
            if isinstance(post, _Yielded):
                self._room.release()
        await self._commit_or_retry(batch)

    async def _commit_or_retry(self, batch: _Batch) -> None:
        await self._start_next(batch)
        try:
            await self._commit(batch)
        except LogError as failure:
            await self._survive(batch, failure)

    # -- deciding

    async def _decide(self, batch: _Batch, post: _Post) -> None:
        match post:
            case _Asked():
                await self._decide_command(batch, post)
            case _Yielded(turn, event):
                await self._take(batch, turn, event)
            case _Barrier():
                batch.barriers.append(post)
            case _Boundary(turn, _):
                same = batch.state.turn is not None and batch.state.turn.id == turn
                delivered = boundary_messages(batch.state) if same else []
                numbered = await self._number(batch, delivered)
                ids = [event.message for event in numbered if event.__class__.__name__ == "MessageAdded"]  # type: ignore[union-attr]
                batch.boundaries.append((post, ids))
            case _Ended(turn, error):
                if batch.state.turn is not None and batch.state.turn.id == turn:
                    failure = error or WireError(
                        code="protocol_broken", message="The agent stopped without finishing its turn.", retryable=True
                    )
                    await self._number(batch, fail(batch.state, failure, now=self._now()))
            case _Expired(request):
                await self._expire(batch, request)
            case _Stopping(reason, _):
                batch.urgent = True
                batch.stopped.append(post)
                await self._number(batch, settle(batch.state, reason, now=self._now()))

    async def _decide_command(self, batch: _Batch, post: _Asked) -> None:
        command = post.command
        if command.client_request_id and (used := self._claims.get(command.client_request_id)):
            answer = await self._repeat(batch, command, used)
            batch.answers.append((post, answer))
            return
        if isinstance(command, EditMessage | RemoveMessage | TruncateMessages | RetryFrom | Regenerate):
            await self._load_earlier(batch)
            batch.rewritten = True
        batch.urgent = batch.urgent or isinstance(command, Interrupt)
        decision = decide(batch.state, command, self._facts(batch.state, command, post.origin))
        match decision:
            case Refusal():
                raise REFUSALS[decision.code](decision.message, **decision.details)
            case Already():
                answer = Accepted(
                    conversation=self.id, seq=batch.state.seq, applied=False, id=decision.id, note=decision.note
                )
                batch.answers.append((post, answer))
            case _:
                numbered = await self._number(batch, decision)
                if command.client_request_id:
                    used = Used(body_hash(command), numbered[0].seq, numbered[-1].seq)
                    self._remember(command.client_request_id, used)
                batch.answers.append((post, accepted(self.id, numbered)))

    async def _repeat(self, batch: _Batch, command: Command, used: Used) -> Accepted:
        """The same id again: the same answer, read off the same events; or a refusal when the body differs."""
        if used.body_hash != body_hash(command):
            raise Conflict(
                "This client_request_id was used for another command. Use a fresh id for a new command.",
                client_request_id=command.client_request_id,
            )
        pending = [event for event in batch.events if used.first <= event.seq <= used.last]
        if pending:
            return accepted(self.id, pending)
        events: list[KnownEvent] = []
        for segment in await self._around.log.read(self.id, used.first - 1, 1):
            for line in segment.body.splitlines():
                event = decode_event(line)
                if used.first <= event.seq <= used.last:
                    events.append(event)  # type: ignore[arg-type]
        return accepted(self.id, events)

    async def _take(self, batch: _Batch, turn: str, event: KnownEvent) -> None:
        active = batch.state.turn
        if active is None or active.id != turn:
            self._dropped_late += 1
            logger.info("late event dropped", conversation=self.id, turn=turn, total=self._dropped_late)
            return
        closing = isinstance(event, TurnFinished)
        await self._number(batch, finish(batch.state, event) if closing else [event])

    async def _expire(self, batch: _Batch, request: str) -> None:
        known = find_request(batch.state, request)
        if known is None or known.status != "open":
            return
        events: list[KnownEvent] = [RequestResolved(turn=known.turn, request=request, status="expired", verdict="deny")]
        if batch.state.turn is None and known.call is not None:
            # The turn that asked is gone, so nobody else will give this call its result.
            error = ToolError(code="interaction_timeout", message="Nobody answered in time; it was not run.")
            events.append(ToolFinished(turn=known.turn, call=known.call, ok=False, error=error, effect="none"))
        await self._number(batch, events)

    async def _start_next(self, batch: _Batch) -> None:
        if self._closed or batch.stopped or self._unsettled:
            return
        items = next_items(batch.state)
        if items:
            facts = self._facts_for(batch.state, items[0].agent or batch.state.agent, items[0].origin)
            await self._number(batch, next_turn(batch.state, facts))

    async def _number(self, batch: _Batch, events: Sequence[KnownEvent]) -> list[KnownEvent]:
        now, new_id, seq = self._now(), self._around.ids.new, batch.state.seq
        numbered: list[KnownEvent] = []
        for event in events:
            seq += 1
            numbered.append(replace(event, seq=seq, id=new_id(), ts=now, conversation=self.id))
        batch.state = fold(batch.state, numbered)
        batch.events.extend(numbered)
        batch.rewritten = batch.rewritten or any(isinstance(e, MessageRemoved | MessageTruncated) for e in numbered)
        return numbered

    # -- committing, and what may only happen after it

    async def _commit(self, batch: _Batch) -> None:
        if batch.events:
            lines = [encode_event(event) for event in batch.events]
            await self._around.log.append(
                Append(
                    conversation=self.id,
                    after=batch.before.seq,
                    lines=lines,
                    listing=listing_of(batch.state) if changes_list(batch.events) else None,
                    documents=documents_of(batch.events),
                    removed_documents=removed_documents(batch.before, batch.events) if batch.rewritten else (),
                    claims=claims_of(batch.events),
                    urgent=batch.urgent,
                )
            )
            self._state = batch.state
            body = b"\n".join(lines) + b"\n"
            self._around.feed.publish(self.id, batch.events[0].seq, batch.events[-1].seq, body)
        self._answer(batch)
        await self._act(batch)

    def _answer(self, batch: _Batch) -> None:
        for asked, answer in batch.answers:
            if not asked.answer.done():
                asked.answer.set_result(answer)
        for barrier in batch.barriers:
            if not barrier.done.done():
                barrier.done.set_result(None)
        for boundary, ids in batch.boundaries:
            if not boundary.messages.done():
                boundary.messages.set_result([known for known in self._state.messages if known.id in ids])

    async def _act(self, batch: _Batch) -> None:
        for event in batch.events:
            match event:
                case RequestOpened():
                    request = find_request(self._state, event.request)
                    if request is not None and request.status == "open":
                        self._start_timer(request)
                case RequestResolved():
                    self._resolve_waiters(event)
                case _:
                    pass
        self._reconcile_turn()
        if batch.rewritten:
            await self._save_snapshot(replace_all=True)
        for stopping in batch.stopped:
            await self._abandon()
            await self._save_snapshot()
            self._closed = True
            if not stopping.done.done():
                stopping.done.set_result(None)

    def _reconcile_turn(self) -> None:
        """Make the running task agree with the log: end what the log ended, start what it started."""
        wanted = self._state.turn
        if self._running is not None and (wanted is None or wanted.id != self._running[0]):
            self._ending, self._running = self._running[1], None
            self._ending.cancel()
        if wanted is not None and self._running is None and not self._closed:
            task = asyncio.create_task(self._run(wanted.id, self._ending), name=f"turn {wanted.id}")
            self._running = (wanted.id, task)
            self._ending = None

    async def _run(self, turn: str, after: "asyncio.Task[None] | None") -> None:
        active = self._state.turn
        record = self._around.roster.agent(active.agent if active else self._state.agent) or _missing(self._state.agent)
        earlier: list[Message] = []
        if self._state.offset:
            first = self._state.messages[0].seq if self._state.messages else self._state.seq + 1
            earlier = await older_messages(self._around.log, self.id, first, self._state.offset)
        running = RunningTurn(
            id=turn,
            owner=self,
            agent=record,
            project=Path(self._state.project) if self._state.project else self._around.home,
            earlier=earlier,
            clock=self._around.clock,
            ids=self._around.ids,
            blobs=self._around.log.blobs,
        )
        await run_turn(running, lambda: self._around.roster.backend(record), after)

    # -- when the log fails

    async def _survive(self, batch: _Batch, failure: LogError) -> None:
        """Nothing of the batch was written. Tell everyone, and stop a turn whose events could not be kept."""
        logger.error("append failed", conversation=self.id, code=failure.code, reason=failure.message)
        stopping = any(isinstance(asked.command, Interrupt) for asked, _ in batch.answers) or bool(batch.stopped)
        for asked, _ in batch.answers:
            request_id = asked.command.client_request_id
            if request_id:
                self._claims.pop(request_id, None)
            if not isinstance(asked.command, Interrupt):
                _refuse(asked.answer, failure)
        for barrier in batch.barriers:
            _refuse(barrier.done, failure)
        for boundary, _ in batch.boundaries:
            _refuse(boundary.messages, failure)
        if self._running is not None:
            self._ending, self._running = self._running[1], None
            self._ending.cancel()
        if self._state.turn is not None:
            self._unsettled = "user" if stopping else "storage"
            await self._settle_unsettled([asked for asked, _ in batch.answers if isinstance(asked.command, Interrupt)])
        for stopped in batch.stopped:
            self._closed = True
            _refuse(stopped.done, failure)

    async def _settle_unsettled(self, interrupts: list[_Asked]) -> None:
        reason = self._unsettled
        if reason is None:
            return
        batch = _Batch(self._state, self._state, urgent=True)
        await self._number(batch, settle(self._state, reason, now=self._now()))
        for asked in interrupts:
            batch.answers.append((asked, accepted(self.id, batch.events)))
        try:
            await self._commit(batch)
            self._unsettled = None
            self._posted.set()
        except LogError as failure:
            for asked in interrupts:
                _refuse(asked.answer, failure)
            self._timers["settle"] = asyncio.create_task(self._settle_later())

    async def _settle_later(self) -> None:
        await self._around.clock.sleep(RETRY_SETTLE_S)
        await self._settle_unsettled([])
        if self._unsettled is None:
            batch = _Batch(self._state, self._state)
            await self._commit_or_retry(batch)

    # -- small parts

    def _post(self, post: _Post) -> None:
        if self._closed:
            raise LogUnavailable("The server is shutting down; try again in a moment.")
        self._inbox.append(post)
        self._posted.set()

    def _now(self) -> int:
        return self._around.clock.now_ms()

    def _facts(self, state: State, command: Command, origin: Origin | None) -> Facts:
        agent = command.agent if isinstance(command, SendMessage) and command.agent else state.agent
        return self._facts_for(state, agent, origin)

    def _facts_for(self, state: State, agent: str, origin: Origin | None) -> Facts:
        record = self._around.roster.agent(agent)
        runner = self._around.roster.runner(record, state.params) if record else Runner(agent=agent, backend="none")
        return Facts(now=self._now(), new_id=self._around.ids.new, runner=runner, origin=origin)

    def _remember(self, request_id: str, used: Used) -> None:
        self._claims[request_id] = used
        while len(self._claims) > KEEP_CLAIMS:
            self._claims.popitem(last=False)

    def _with_expiry(self, request: RequestOpened) -> RequestOpened:
        timeout_s = self._state.params.get("request_timeout_s", REQUEST_TIMEOUT_S)
        if request.expires_at is not None or not isinstance(timeout_s, int | float) or timeout_s <= 0:
            return request
        return replace(request, expires_at=self._now() + int(timeout_s * 1000))

    def _start_timer(self, request: Request) -> None:
        if request.expires_at is not None and request.id not in self._timers:
            self._timers[request.id] = asyncio.create_task(self._expire_later(request))

    async def _expire_later(self, request: Request) -> None:
        # Waited on the monotonic clock: setting the wall clock neither hastens nor delays it while the server lives.
        assert request.expires_at is not None
        await self._around.clock.sleep(max(0.0, (request.expires_at - self._now()) / 1000))
        self._timers.pop(request.id, None)
        if not self._closed:
            self._post(_Expired(request.id))

    def _resolve_waiters(self, event: RequestResolved) -> None:
        if timer := self._timers.pop(event.request, None):
            timer.cancel()
        for waiter in self._waiting.pop(event.request, []):
            if not waiter.done():
                waiter.set_result(event)

    async def _load_earlier(self, batch: _Batch) -> None:
        """Rewriting history needs all of it."""
        state = batch.state
        if not state.offset:
            return
        first = state.messages[0].seq if state.messages else state.seq + 1
        earlier = await older_messages(self._around.log, self.id, first, state.offset)
        whole = replace(state, messages=(*earlier, *state.messages), offset=0)
        batch.state = whole
        if batch.before is state:
            batch.before = self._state = whole

    async def _keep_snapshot(self) -> None:
        due = SNAPSHOT_EVENTS if self._state.turn is None else SNAPSHOT_EVENTS_RUNNING
        if self._state.seq - self._snapshot_seq >= due:
            await self._save_snapshot()

    async def _save_snapshot(self, *, replace_all: bool = False) -> None:
        if self._state.seq == self._snapshot_seq and not replace_all:
            return
        at_rest = self._state.turn is None
        try:
            snapshot = snapshot_of(self._state, self._snapshot_seq, replace_all=replace_all)
            await self._around.log.save_snapshot(self.id, snapshot)
            self._snapshot_seq = snapshot.seq
            if at_rest:
                await self._around.log.compact(self.id, snapshot.seq)
                self._state = with_tail(self._state, 2 * TAIL_MESSAGES)
        except LogError as failure:
            # Derived data: the next snapshot tries again, and nothing depends on this one.
            logger.warning("snapshot not kept", conversation=self.id, reason=failure.message)

    async def rest(self) -> None:
        """Called by the directory before it lets go of a resting conversation."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._post(_Stopping("shutdown", done))
        await done

    async def _abandon(self) -> None:
        """End everything this owner started. Bounded: a backend that ignores its cancellation is left behind."""
        tasks = [task for task in (self._running[1] if self._running else None, self._ending) if task is not None]
        tasks.extend(self._timers.values())
        self._running = self._ending = None
        self._timers.clear()
        current = asyncio.current_task()
        tasks = [task for task in tasks if task is not current]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLEANUP_S)
        for post in self._inbox:
            if isinstance(post, _Asked):
                _refuse(post.answer, LogUnavailable("The server is shutting down; try again in a moment."))
        self._inbox.clear()


def _refuse(future: "asyncio.Future[object]", error: PalaverError) -> None:  # type: ignore[type-arg]
    if not future.done():
        future.set_exception(error)


def _missing(agent: str) -> AgentRecord:
    return AgentRecord(id=agent, name=agent, backend="none")


def _as_event(request: Request) -> RequestResolved:
    resolution = request.resolution
    assert resolution is not None
    return RequestResolved(
        turn=request.turn,
        request=request.id,
        status=resolution.status,
        verdict=resolution.verdict,
        then=resolution.then,
        scope=resolution.scope,
        answers=resolution.answers,
        text=resolution.text,
        input=resolution.input,
    )

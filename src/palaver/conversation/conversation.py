"""The owner of one conversation: the only one who decides and appends.

Everything that may change the conversation is posted to its inbox. One task takes what has gathered, decides on it in
order, appends the result in one commit, and only then moves the view on, publishes, answers and acts. So admission (a
durable write) never waits for execution, a burst costs one fsync, and a crash between any two lines here replays to the
same state.

Opened by the directory. `batch.py` says what a batch comes to, `turn_task.py` holds the turn's task. Calls log and feed.
Must never act on an event that is not on disk.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from palaver.conversation.batch import Deciding
from palaver.conversation.claims import Claims
from palaver.conversation.earlier_messages import Older
from palaver.conversation.index_rows import (
    changes_list,
    claims_of,
    documents_of,
    documents_to_remove,
    listing_of,
    runs_of,
)
from palaver.conversation.mailbox import (
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
    refuse,
    refuse_post,
)
from palaver.conversation.recovery.snapshots import Snapshots
from palaver.conversation.requests import (
    OPEN_REQUESTS,
    STIRRED,
    Results,
    Waiting,
    face_of,
    find_recorded_answer,
    too_many,
    with_expiry,
)
from palaver.conversation.services import Surroundings
from palaver.conversation.turn import CLEANUP_S
from palaver.conversation.turn_task import Running
from palaver.core import exchanges
from palaver.core.next import boundary_messages, next_items
from palaver.core.settle import reap, settle, works_for_another
from palaver.core.state import OPEN_TOOL, find_call, find_request, open_requests
from palaver.errors import CallerError, HeadMoved, LogError, LogUnavailable
from palaver.journal import Journal
from palaver.log.base import Append
from palaver.schema.base import Origin
from palaver.schema.commands import Accepted, Interrupt, Order
from palaver.schema.errors import WireError
from palaver.schema.events import (
    ConversationDeleted,
    ExchangeReturned,
    KnownEvent,
    ProcessFinished,
    RequestOpened,
    RequestResolved,
    ToolFinished,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
    encode_event,
)
from palaver.schema.view import Message, State, Stopped
from palaver.tools.base import Passage

logger = Journal(__name__)

RETRY_SETTLE_S = 1.0
"""How often a turn that could not be settled (disk full) is tried again."""


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
        self._running = Running(self, around, self._older.before)
        self._unsettled: Stopped | None = None
        self._caught_up = asyncio.Event()
        self._caught_up.set()
        self._recovered = asyncio.Event()
        self._retrying: asyncio.Task[None] | None = None
        self._deciding = Deciding(state.conversation, around, self._claims, self._older)
        self.last_used_s = around.clock.monotonic_s()

    @property
    def id(self) -> str:
        return self._state.conversation

    @property
    def state(self) -> State:
        """The view as committed."""
        return self._state

    async def view(self) -> State:
        """The view with all that a reader of the log can have seen: a commit is on disk a moment before it is in memory."""
        await self._caught_up.wait()
        return self._state

    async def wait_for_recovery(self) -> None:
        """Returns once what a crash cut off is settled, on disk where that takes anything."""
        await self._recovered.wait()

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
            answer = await self._post(command, origin, remembers)
        except CallerError:
            if not await self._claims.look_up(command):
                raise
        else:
            if answer.applied or not await self._claims.look_up(command):
                return answer
        # It makes no sense any more because an earlier owner took it; it gets the answer that it got then.
        return await self._post(command, origin, remembers)

    async def _post(self, command: Order, origin: Origin | None, remembers: bool) -> Accepted:
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
        if known is not None and (answer := find_recorded_answer(known)):
            return answer
        if known is None and self._requests_but(request.request) >= OPEN_REQUESTS:
            return too_many(request)
        answered = self._waiting.enter(request.request)
        try:
            if known is None:
                face = face_of(self._state, turn)
                await self.record(turn, with_expiry(request, self._params_of(turn), self._now(), face))
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

    async def wait_until_changed(self, seen: State) -> State:
        """The view once it is no longer what somebody saw at rest: a turn began, a process ended, it was deleted."""
        return self._state if self._state.seq != seen.seq else await self._results.wait(STIRRED)

    async def calm(self) -> None:
        """Returns once all that the last turn started is gone, or its time for that is up."""
        await self._running.calm()

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
            self._recovered.set()
            while not self._inbox.closed:
                await self._handle(await self._inbox.take())
                if self._snapshots.due(self._state):
                    self._state = await self._snapshots.keep(self._state)
        finally:
            self._recovered.set()
            self._inbox.close()
            await self._abandon()

    async def _take_over(self) -> None:
        """A turn that nobody runs was cut by a crash: settle it, then let the queue go on."""
        batch = Batch(self._state, self._state, urgent=True)
        self._deciding.number(batch, settle(self._state, "restart", now=self._now()))
        self._deciding.number(batch, reap(batch.state, self._around.ids.new))
        await self._conclude(batch)
        for request in open_requests(self._state):
            self._waiting.open(request)

    async def _handle(self, posts: list[Post]) -> None:
        try:
            while not await self._conclude(await self._deciding.decided(self._state, posts, self._unsettled)):
                pass
        except Exception:
            # A fault of ours. The directory opens the conversation anew from the log; nobody is left waiting here.
            for post in posts:
                refuse_post(post, LogUnavailable("This conversation is being reopened; try again in a moment."))
            raise

    async def _conclude(self, batch: Batch) -> bool:
        """False: nothing happened, for a command in it was taken by an earlier owner. That is known now; decide again."""
        await self._deciding.go_on(batch)
        try:
            await self._commit(batch)
        except LogError as failure:
            if await self._claims.were_used(failure, [asked.command for asked, _ in batch.answers]):
                return False
            await self._survive(batch, failure)
        return True

    # -- committing, and what may only happen after it

    async def _commit(self, batch: Batch) -> None:
        lines = [encode_event(event) for event in batch.events]
        if lines:
            await self._append(batch, lines)
            if not batch.is_unsettled:
                self._unsettled = None
        # The turn first: whoever waits for its first word waits longer than whoever sent the message, or reads along.
        # One that is still to be settled does not go on: what it did last is not on record.
        self._running.agree_with(self._state, may_start=not batch.stopping and self._unsettled is None)
        if lines:
            body = b"\n".join(lines) + b"\n"
            self._around.feed.publish(self.id, batch.events[0].seq, batch.events[-1].seq, body)
        self._answer(batch)
        self._act_on(batch)
        if batch.rewritten and lines:
            self._state = await self._snapshots.keep(self._state, replace_all=True)
        if batch.stopping:
            await self._close(batch)

    async def _append(self, batch: Batch, lines: list[bytes]) -> None:
        listed = changes_list(batch.events)
        self._caught_up.clear()
        try:
            await self._around.log.append(
                Append(
                    conversation=self.id,
                    after=batch.before.seq,
                    lines=lines,
                    listing=listing_of(batch.state) if listed else None,
                    documents=documents_of(batch.state, batch.events),
                    removed_documents=documents_to_remove(batch.before, batch.events),
                    claims=claims_of(batch.events),
                    runs=runs_of(batch.before, batch.state, batch.events) if listed else (),
                    urgent=batch.urgent,
                )
            )
            self._state = batch.state
        finally:
            self._caught_up.set()

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
                        self._waiting.open(known)
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
        self._running.end()
        if self._state.turn is not None and not batch.stopping:
            self._unsettled = self._unsettled or ("user" if interrupted else "storage")
            if self._retrying is None:
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
        """End everything this owner started."""
        self._waiting.close()
        retrying, self._retrying = self._retrying, None
        if retrying is not None:
            retrying.cancel()
            await asyncio.wait({retrying}, timeout=CLEANUP_S)
        await self._running.abandon()

    # -- small parts

    def _now(self) -> int:
        return self._around.clock.now_ms()

    def _requests_but(self, request: str) -> int:
        waiting = {known.id for known in open_requests(self._state)} | self._waiting.asked
        return len(waiting - {request})

    def _params_of(self, turn: str) -> Mapping[str, Any]:
        active = self._state.turn
        if active is None or active.id != turn:
            record = None
        else:
            record = self._around.roster.agent(active.agent, self._around.folder_of(self._state))
        return {**self._around.defaults.params, **(record.params if record else {}), **self._state.params}

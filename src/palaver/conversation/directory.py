"""All conversations of a server: opens them when somebody comes, recovers them at start, lets them rest.

Faces talk to conversations through here and never hold one. What rests is on disk only: ten thousand resting
conversations cost a server nothing but their rows.
"""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, assert_never

import msgspec
from msgspec.structs import replace

from palaver.conversation.attachments import blocks_with_blobs, with_blobs
from palaver.conversation.conversation import Conversation
from palaver.conversation.creation import Beginning, Maker, Wishes, begin_branch, beginning_of, from_log, from_messages
from palaver.conversation.descent import subagents_below
from palaver.conversation.folders import By, ProjectFolders, is_person
from palaver.conversation.project_files.transcripts import whole
from palaver.conversation.recovery.load import TAIL_MESSAGES, load_state, older_messages, with_tail
from palaver.conversation.services import Surroundings
from palaver.core.decide.authority import frees, lifts, rewrites_others
from palaver.core.decide.facts import Terms
from palaver.core.state import message_count, misses_a_call
from palaver.errors import REFUSALS, Conflict, Gone, HeadMoved, LogCorrupt, LogError, LogUnavailable, NotFound
from palaver.history.import_files import Recorded, Told
from palaver.journal import Journal
from palaver.log.base import Claim, Used
from palaver.schema.base import Origin
from palaver.schema.commands import (
    Accepted,
    CreateConversation,
    DeleteConversation,
    Deliver,
    EditMessage,
    EditQueued,
    Fill,
    Order,
    PostAnswer,
    RetryFrom,
    SendMessage,
    StopTurn,
)
from palaver.schema.events import ConversationCreated
from palaver.schema.view import Grant, Listing, Message, Request, State
from palaver.tasks import running, wait_first

logger = Journal(__name__)

IDLE_S = 60.0
"""How long a resting conversation stays in memory: long enough for the next message of a person who is reading."""
SWEEP_S = 15.0
OWNER_END_S = 10.0
"""An owner ends its turn within five seconds; one that takes longer is stuck."""
RECOVER_AT_ONCE = 16
"""Conversations settled side by side at start: enough to share commits, few enough to keep the start smooth."""
RESOLVED_KEPT_MS = 7 * 86_400_000
"""For how long a request that is over is shown among those of all conversations: a week's absence."""
ROWS_A_LOOK = 500
REOPENED_AT_MOST = 3
"""How often somebody who waits for a conversation sees its owner fail before he gives up."""


class Directory:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._open: dict[str, Conversation] = {}
        self._opening: dict[str, asyncio.Task[Conversation]] = {}
        self._owners: dict[str, asyncio.Task[None]] = {}
        self._leaving: dict[str, asyncio.Task[None]] = {}
        self._closing = False

    # -- life

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Directory"]:
        """Recovered on entry; every turn settled and every process gone on exit."""
        await self._recover()
        try:
            async with running(self._sweep(), "sweep resting conversations"):
                try:
                    yield self
                finally:
                    self._closing = True
        finally:
            await asyncio.gather(*(self._stop(known) for known in list(self._open.values())))

    async def _recover(self) -> None:
        unfinished = await self._around.log.unfinished()
        gate = asyncio.Semaphore(RECOVER_AT_ONCE)

        async def recover(conversation: str) -> None:
            async with gate:
                try:
                    opened = await self._open_owner(conversation)
                    # Else a reader of the first moment would find a turn that nobody runs still running.
                    await opened.wait_for_recovery()
                except Exception:
                    # One damaged conversation must not keep the others from starting.
                    logger.exception("could not recover a conversation", conversation=conversation)

        await asyncio.gather(*(recover(conversation) for conversation in unfinished))
        if unfinished:
            logger.info("recovered", conversations=len(unfinished))

    async def _sweep(self) -> None:
        while True:
            await self._around.clock.sleep(SWEEP_S)
            await self.let_rest(IDLE_S)

    async def let_rest(self, idle_s: float) -> int:
        """Drop from memory what has rested for a while; answers how many went."""
        now_s = self._around.clock.monotonic_s()
        idle = [known for known in self._open.values() if known.resting and now_s - known.last_used_s >= idle_s]
        await asyncio.gather(*(self._stop(known) for known in idle))
        return len(idle)

    async def _stop(self, conversation: Conversation) -> None:
        """Let go of an owner. Whoever wants the conversation meanwhile waits for that, then opens it anew."""
        self._open.pop(conversation.id, None)
        leaving = asyncio.create_task(self._end(conversation), name=f"close {conversation.id}")
        self._leaving[conversation.id] = leaving
        await asyncio.wait({leaving})

    async def _end(self, conversation: Conversation) -> None:
        try:
            await conversation.stop("shutdown")
        except LogError as failure:
            logger.warning("stopped without a snapshot", conversation=conversation.id, reason=failure.message)
        finally:
            owner = self._owners.pop(conversation.id, None)
            if owner is not None:
                owner.cancel()
                await asyncio.wait({owner}, timeout=OWNER_END_S)
            self._leaving.pop(conversation.id, None)

    def at_work(self) -> list[State]:
        """The views of conversations in which something runs or waits to run: all of them are in memory."""
        return [known.state for known in self._open.values() if known.state.turn or known.state.queue]

    @property
    def open_count(self) -> int:
        return len(self._open)

    @property
    def home(self) -> Path:
        """The folder of a conversation without a project."""
        return self._around.folders.home

    @property
    def folders(self) -> ProjectFolders:
        return self._around.folders

    async def _open_owner(self, conversation: str) -> Conversation:
        """The one owner of a conversation; concurrent callers share the opening."""
        known = self._open.get(conversation)
        if known is not None:
            return known
        if self._closing:
            # Whatever was open is being settled; what is opened now would be left behind.
            raise LogUnavailable("The server is stopping. Try again when it is back.")
        if leaving := self._leaving.get(conversation):
            await asyncio.wait({leaving})
        opening = self._opening.get(conversation)
        if opening is None:
            opening = asyncio.create_task(self._load(conversation), name=f"open {conversation}")
            self._opening[conversation] = opening
            opening.add_done_callback(lambda _: self._opening.pop(conversation, None))
        return await asyncio.shield(opening)

    async def _load(self, conversation: str) -> Conversation:
        loaded = await load_state(self._around.log, conversation)
        if loaded is not None and misses_a_call(loaded[0]):
            # Whatever comes next ends the call, and has to find it.
            loaded = await load_state(self._around.log, conversation, message_count(loaded[0]))
        if loaded is None:
            raise NotFound("No such conversation.", conversation=conversation)
        return self._adopt(*loaded)

    def _adopt(self, state: State, snapshot_seq: int) -> Conversation:
        owned = Conversation(state, snapshot_seq, self._around)
        self._open[state.conversation] = owned
        owner = asyncio.create_task(owned.own(), name=f"own {state.conversation}")
        self._owners[state.conversation] = owner
        owner.add_done_callback(lambda task: self._drop_owner(owned, task))
        return owned

    def _drop_owner(self, owned: Conversation, task: asyncio.Task[None]) -> None:
        """An owner that failed is let go of; whoever comes next opens the conversation anew from the log."""
        if self._open.get(owned.id) is owned:
            del self._open[owned.id]
            self._owners.pop(owned.id, None)
        if not task.cancelled() and (failure := task.exception()) is not None:
            logger.error("an owner failed", conversation=owned.id, exc_info=failure)

    # -- commands

    async def create(self, body: CreateConversation, origin: Origin | None, *, created_at: int = 0) -> Accepted:
        """A conversation of its own. Repeated with the same id or client request id it answers the same.

        `created_at` is the time at which it began elsewhere; 0: now.
        """
        around = self._around
        conversation = self._id_of(body.id, body.client_request_id)
        claim = Claim(body.client_request_id or conversation, _digest(replace(body, message=None)))
        maker = Maker(conversation, claim, around.clock.now_ms(), around.ids.new, origin)
        used = await around.log.used(conversation, claim.client_request_id) if body.branch else None
        if used is not None:  # The source may have gone on, or be gone, since the branch was made.
            seq = _same_again(used, claim, conversation)
        else:
            seq = await self.begin(await self._beginning(body, maker, created_at), claim, origin)
        answer = Accepted(conversation=conversation, seq=seq, id=conversation)
        if body.message is not None:
            # Derived from the conversation's id, so that a repeated creation never sends its message twice.
            first = SendMessage(content=body.message, client_request_id=f"first-{conversation}"[:128])
            sent = await self.command(conversation, first, origin)
            answer = replace(answer, seq=sent.seq, turn=sent.turn)
        return answer

    async def _beginning(self, body: CreateConversation, maker: Maker, created_at: int) -> Beginning:
        if body.branch is not None:
            source = await self.whole(body.branch.conversation)
            if body.project is not None:
                await self.folders.choose(body.project, maker.origin)
            self._check_agent(body.agent or source.agent, source.project)
            self._check_params(body.agent or source.agent, source.project, source.params, body.params, maker.origin)
            # A long history takes a while to copy, and others are served on the loop.
            branch = await asyncio.to_thread(begin_branch, source, body, maker)
            self._check_chosen(source, branch.state, maker.origin)
            return branch
        defaults, project = self._around.defaults, await self.folders.choose(body.project, maker.origin)
        agent = body.agent or defaults.agent or "default"
        self._check_agent(agent, project)
        given = defaults.params_for(self._around.roster.agent(agent, project))
        self._check_params(agent, project, given, body.params, maker.origin)
        params = {**given, **body.params}
        created = ConversationCreated(agent=agent, title=body.title or "", project=project, params=params)
        return beginning_of(maker.with_times([(maker.with_claim(created), created_at)]))

    async def bring(
        self, file: Told | Recorded, wishes: Wishes, claim: Claim, origin: Origin | None, *, dry: bool = False
    ) -> State:
        """A conversation from a file, and its view; `dry` only says what it would be. Repeating the claim is safe."""
        around = self._around
        await self.folders.choose(wishes.project, origin)
        if wishes.agent is not None:
            self._check_agent(wishes.agent, wishes.project)
        conversation = self._id_of(None, claim.client_request_id)
        maker = Maker(conversation, claim, around.clock.now_ms(), around.ids.new, origin)
        if isinstance(file, Told) and not dry:
            file = dataclasses.replace(
                file, messages=tuple([await blocks_with_blobs(message, around.log.blobs) for message in file.messages])
            )
        beginning = await asyncio.to_thread(_read_file, file, wishes, maker)
        if not dry:
            await self.begin(beginning, claim, origin)
        return beginning.state

    async def begin(
        self, beginning: Beginning, claim: Claim, origin: Origin | None, *, chosen_by: By = "person"
    ) -> int:
        """The first commit of a conversation, all or nothing; answers its last seq, also when it is repeated."""
        await self.folders.admit(beginning.state.project or str(self.home), origin, by=chosen_by)
        return await self._append_first(beginning, claim)

    async def _append_first(self, beginning: Beginning, claim: Claim) -> int:
        conversation, log = beginning.state.conversation, self._around.log
        try:
            await log.append(beginning.append(claim))
        except HeadMoved:
            used = await log.used(conversation, claim.client_request_id)
            return _same_again(used, claim, conversation)
        body = b"\n".join(beginning.lines) + b"\n"
        self._around.feed.publish(conversation, 1, len(beginning.lines), body)
        return len(beginning.lines)

    async def begin_as(self, conversation: str, created: ConversationCreated, origin: Origin) -> None:
        """A conversation that an agent begins, under an id that is used for nothing else."""
        self._check_agent(created.agent, created.project)
        claim = Claim(conversation, _digest(created))
        maker = Maker(conversation, claim, self._around.clock.now_ms(), self._around.ids.new, origin)
        # The agent works where it worked before, so nobody chooses anything. Not in a thread: of several that begin
        # together the first stays the first.
        self.folders.check(Path(created.project or self.home))
        await self._append_first(beginning_of(maker.with_times([(maker.with_claim(created), 0)])), claim)

    async def while_nobody_owns(self, conversation: str, work: Callable[[], Awaitable[None]]) -> bool:
        """For what adds to a conversation from outside. Whoever wants it meanwhile waits. False: its owner is at work."""
        while True:
            if known := self._open.get(conversation):
                if not known.resting:
                    return False
                await self._stop(known)
            elif busy := self._opening.get(conversation) or self._leaving.get(conversation):
                await asyncio.wait({busy})
            else:
                break
        alone = asyncio.create_task(self._alone(conversation, work), name=f"add to {conversation}")
        self._leaving[conversation] = alone
        await asyncio.shield(alone)
        return True

    async def _alone(self, conversation: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        finally:
            self._leaving.pop(conversation, None)

    def _id_of(self, chosen: str | None, client_request_id: str | None) -> str:
        return chosen or (id_for(client_request_id) if client_request_id else self._around.ids.new())

    def _check_agent(self, agent: str, project: str | None) -> None:
        folder = project or str(self.home)
        if self._around.roster.agent(agent, folder) is None:
            raise NotFound(self._around.roster.why_not(agent, folder), agent=agent)

    def _check_params(
        self, agent: str, project: str | None, given: Mapping[str, Any], wanted: Mapping[str, Any], who: Origin | None
    ) -> None:
        """A conversation that an agent's token begins has the limits that it would have without a word of the token's."""
        usual = self._around.usual_params(self._around.roster.agent(agent, project or str(self.home)))
        if not is_person(who) and (refusal := lifts({**usual, **given}, wanted, usual)):
            raise REFUSALS[refusal.code](refusal.message, **refusal.details)

    def _check_chosen(self, source: State, branch: State, who: Origin | None) -> None:
        """A branch that an agent's token makes is with an agent that is held to as much as the source's."""
        if is_person(who) or branch.agent == source.agent:
            return
        before, after = self._terms_of(source), self._terms_of(branch)
        if refusal := frees(before, after, source.params, branch.params):
            raise REFUSALS[refusal.code](refusal.message, **refusal.details)

    def _terms_of(self, state: State) -> Terms:
        record = self._around.roster.agent(state.agent, self._around.folder_of(state))
        return Terms(self._around.usual_params(record), record)

    async def command(
        self, conversation: str, command: Order, origin: Origin | None, *, remembers: bool = False
    ) -> Accepted:
        """On disk when it returns. `remembers`: its id is used up even if there was nothing to do."""
        await self._check_folder(command, origin)
        if isinstance(command, DeleteConversation) and not is_person(origin):
            await self._check_below(conversation, origin)
        answer = await self._take(conversation, await self.fit(command), origin, remembers)
        if isinstance(command, DeleteConversation):
            # Nobody would find them without it. A deletion that was cut off here goes on when it is repeated.
            for below in await subagents_below(self._around.log, conversation):
                await self._take(below, DeleteConversation(), origin)
        return answer

    async def _check_below(self, conversation: str, origin: Origin | None) -> None:
        """Raises before anything is deleted if a subagent's conversation, which goes along, may not be."""
        for child in await subagents_below(self._around.log, conversation):
            if refusal := rewrites_others((await self.whole(child)).messages, 0, origin):
                raise REFUSALS[refusal.code](refusal.message, **refusal.details)

    async def _take(
        self, conversation: str, command: Order, origin: Origin | None, remembers: bool = False
    ) -> Accepted:
        while True:
            owned = await self._open_owner(conversation)
            try:
                return await owned.command(command, origin, remembers=remembers)
            except LogUnavailable:
                if self._closing or not owned.closed:
                    raise
                # It was let go of between the two lines above, and took nothing. The next owner does.
                if self._open.get(conversation) is owned and (failed := self._owners.get(conversation)):
                    await asyncio.wait({failed}, timeout=OWNER_END_S)

    async def stop_turn(self, conversation: str, order: StopTurn, origin: Origin) -> None:
        """Like a command; returns once what the turn had started is gone, or its time for that is up."""
        await self.command(conversation, order, origin)
        if owned := self._open.get(conversation):
            await owned.calm()

    async def turn_over(self, conversation: str, turn: str) -> State:
        """The view as it was when a turn ended. Waits as long as that takes; a turn is always ended by somebody."""
        return await self._wait_for(conversation, lambda owned: owned.end_of(turn))

    async def wait_until_changed(self, conversation: str, seen: State) -> State:
        """The view once a conversation that was seen at rest is no longer: a turn began, a process ended, it is gone."""
        return await self._wait_for(conversation, lambda owned: owned.wait_until_changed(seen))

    async def _wait_for(self, conversation: str, wait: Callable[[Conversation], Coroutine[None, None, State]]) -> State:
        for _ in range(REOPENED_AT_MOST):
            owned = await self._open_owner(conversation)
            if (owner := self._owners.get(conversation)) is None:
                continue
            async with running(wait(owned), f"wait for {conversation}") as waiting:
                await wait_first(waiting, owner)
                if waiting.done():
                    return waiting.result()
            # The owner failed, or let go. The next one reads from the log what became of it.
        raise LogUnavailable("This conversation cannot be kept open; the server's log has the details.")

    async def fit(self, command: Order) -> Order:
        """The command as it is decided on and remembered: what is too large for an event stored beside it."""
        if (
            isinstance(command, SendMessage | EditMessage | RetryFrom | EditQueued | Deliver | PostAnswer)
            and command.content is not None
        ):
            return replace(command, content=await with_blobs(command.content, self._around.log.blobs))
        return command

    async def _check_folder(self, command: Order, origin: Origin | None) -> None:
        if isinstance(command, Fill) and command.project is not None:
            await self.folders.admit(command.project, origin, by="history")

    # -- reading

    async def state(self, conversation: str, tail: int = TAIL_MESSAGES) -> State:
        """The folded view with its last messages. Does not wake a resting conversation."""
        return with_tail(await self._view(conversation, tail), tail)

    async def _view(self, conversation: str, tail: int = TAIL_MESSAGES) -> State:
        """The folded view with as many messages as are at hand, at least `tail`."""
        owned = self._open.get(conversation)
        if owned is not None:
            state = await owned.view()
        else:
            loaded = await load_state(self._around.log, conversation, tail)
            if loaded is None:
                raise NotFound("No such conversation.", conversation=conversation)
            state = loaded[0]
        if state.deleted:
            raise Gone("This conversation was deleted.", conversation=conversation)
        return state

    async def whole(self, conversation: str) -> State:
        """The folded view with all its messages."""
        return await whole(self._around.log, conversation, lambda: self._view(conversation))

    async def snapshot(self, conversation: str) -> tuple[int, bytes]:
        state = await self.state(conversation)
        return state.seq, msgspec.json.encode(state)

    async def messages(self, conversation: str, before_seq: int, limit: int) -> list[Message]:
        """A page of history: the last `limit` messages that began before a seq, oldest first."""
        state = await self.state(conversation, tail=max(TAIL_MESSAGES, limit))
        recent = [message for message in state.messages if message.seq < before_seq]
        if len(recent) >= limit or not state.offset:
            return recent[-limit:]
        first = state.messages[0].seq if state.messages else before_seq
        older = await older_messages(self._around.log, conversation, min(first, before_seq), limit - len(recent))
        return [*older, *recent]

    async def waiting(self) -> Sequence[tuple[Listing, Request]]:
        """Everything that waits for a person, oldest first."""
        found: list[tuple[Listing, Request]] = []
        for listing in await self._around.log.waiting():
            with _skip_damaged(listing.id):
                state = await self.state(listing.id)
                found.extend((listing, request) for request in state.requests if request.status == "open")
        return sorted(found, key=lambda pair: pair[1].ts)

    async def grants(self) -> Sequence[tuple[State, Grant]]:
        """What was allowed for single conversations, the conversation that changed last first."""
        found: list[tuple[State, Grant]] = []
        cursor: str | None = None
        while True:
            page = await self._around.log.list(limit=ROWS_A_LOOK, cursor=cursor, archived=None, children=True)
            for row in page.items:
                if row.grants:
                    with _skip_damaged(row.id), suppress(Gone):  # Deleted a moment ago.
                        state = await self.state(row.id, tail=0)
                        found += [(state, grant) for grant in state.grants if grant.scope == "conversation"]
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def resolved(
        self, limit: int, wanted: Callable[[Listing], bool] = lambda _: True
    ) -> Sequence[tuple[Listing, Request]]:
        """The requests that were answered, expired or withdrawn last, newest first; of the wanted conversations alone.

        Only rows that say so are looked into, and no row that changed last before the oldest one that counts.
        """
        found: list[tuple[Listing, Request]] = []
        oldest = self._around.clock.now_ms() - RESOLVED_KEPT_MS
        cursor: str | None = None
        while limit:
            page = await self._around.log.list(limit=ROWS_A_LOOK, cursor=cursor, archived=None, children=True)
            for row in page.items:
                if row.updated_at < oldest:
                    return found
                if row.resolved_at is None or row.resolved_at < oldest or not wanted(row):
                    continue
                with _skip_damaged(row.id), suppress(Gone):  # Deleted a moment ago.
                    known = (await self.state(row.id, tail=0)).requests
                    found += [(row, one) for one in known if one.resolution and one.resolution.ts >= oldest]
                found = sorted(found, key=lambda pair: _time_of_resolution(pair[1]), reverse=True)[:limit]
                oldest = max(oldest, _time_of_resolution(found[-1][1])) if len(found) == limit else oldest
            cursor = page.next_cursor
            if cursor is None:
                break
        return found


@contextmanager
def _skip_damaged(conversation: str) -> Iterator[None]:
    """A damaged conversation costs no list of all conversations more than its own rows."""
    try:
        yield
    except LogCorrupt as damage:
        logger.warning("a damaged conversation is left out", conversation=conversation, reason=damage.message)


def _time_of_resolution(request: Request) -> int:
    return request.resolution.ts if request.resolution else 0


def _read_file(file: Told | Recorded, wishes: Wishes, maker: Maker) -> Beginning:
    match file:
        case Recorded():
            return from_log(file.events, wishes, maker)
        case Told():
            return from_messages(
                file.messages,
                wishes,
                maker,
                agent=file.agent,
                title=file.title,
                params=file.params,
                draft=file.draft,
            )
        case _:
            assert_never(file)


def _digest(body: object) -> str:
    return blake2b(msgspec.json.encode(body, order="deterministic"), digest_size=16).hexdigest()


def _same_again(used: Used | None, claim: Claim, conversation: str) -> int:
    if used is None or used.body_hash != claim.body_hash:
        raise Conflict(
            "A conversation with this id exists already. Choose another id, or leave it out.",
            conversation=conversation,
        )
    return used.last


def id_for(client_request_id: str) -> str:
    """The id of a conversation that was asked for under a client request id: the same whenever it is asked for again."""
    return blake2b(client_request_id.encode(), digest_size=16).hexdigest()

"""From what was posted to a batch of numbered events: the part of the owner that decides, and writes nothing.

Called by the owner, which commits what comes of it. Asks the pure core; looks up older messages and used ids where a decision
needs them. Everything it changes is in the batch, so a batch that could not be committed leaves nothing behind.
"""

import asyncio
import dataclasses
from collections.abc import Sequence
from itertools import islice
from typing import assert_never

from msgspec.structs import replace

from palaver.conversation.claims import Claims
from palaver.conversation.earlier_messages import Older
from palaver.conversation.mailbox import (
    Asked,
    Barrier,
    Batch,
    Boundary,
    Ended,
    Expired,
    Post,
    ProcessEnded,
    Stopping,
    Unsettled,
    Yielded,
    is_refused,
    refuse,
)
from palaver.conversation.services import Surroundings
from palaver.core import exchanges
from palaver.core.decide.decide import Already, Refusal, acceptance_of, clears_context, decide
from palaver.core.decide.facts import Facts, Runner, Terms
from palaver.core.decide.history import NeedsAll
from palaver.core.decide.next_step import continue_queue
from palaver.core.fold.evolve import fold
from palaver.core.next import boundary_messages, next_items, process_ended
from palaver.core.settle import end_yielding_turn, expire, fail, finish, reap, settle
from palaver.core.state import find_request
from palaver.errors import REFUSALS, LogUnavailable, NotFound, PalaverError
from palaver.journal import Journal
from palaver.schema.base import Origin
from palaver.schema.commands import (
    Accepted,
    DeleteConversation,
    Deliver,
    Fill,
    Interrupt,
    Order,
    SendMessage,
    StopTurn,
    UpdateConversation,
)
from palaver.schema.errors import WireError
from palaver.schema.events import (
    KnownEvent,
    MessageAdded,
    RequestResolved,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    ToolOutputDelta,
    TurnFinished,
)
from palaver.schema.view import Message, State, Stopped

logger = Journal(__name__)

POSTS_AT_ONCE = 16
"""Decided before others get their turn: each may cost a walk over the turn's messages."""
FRAGMENTS_AT_ONCE = 128
FRAGMENTS = (TextDelta, ThinkingDelta, ToolInputDelta, ToolOutputDelta)


class Deciding:
    def __init__(self, conversation: str, around: Surroundings, claims: Claims, older: Older) -> None:
        self._conversation = conversation
        self._around = around
        self._claims = claims
        self._older = older
        self._dropped_late = 0

    async def decided(self, state: State, posts: list[Post], unsettled: Stopped | None) -> Batch:
        """A batch of all that these come to, from the view as committed. `unsettled`: why a turn is still to be settled."""
        batch = Batch(state, state, unsettled=unsettled)
        at = steps = 0
        while at < len(posts):
            steps += 1
            if steps % POSTS_AT_ONCE == 0:
                # An agent may be hundreds of events ahead; nothing outside of this batch depends on when it is decided.
                await asyncio.sleep(0)
            if fragments := _fragments(batch, posts, at):
                self.number(batch, fragments)
                at += len(fragments)
                continue
            post = posts[at]
            at += 1
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
            case Barrier() if batch.is_unsettled:
                refuse(post.done, LogUnavailable("What this turn did last could not be written; it is being ended."))
            case Barrier():
                batch.barriers.append(post)
            case Boundary():
                delivered = self.number(batch, boundary_messages(batch.state) if _goes_on(batch, post.turn) else [])
                ids = frozenset(event.message for event in delivered if isinstance(event, MessageAdded))
                batch.boundaries.append((post, ids))
            case Ended():
                if _is_active(batch.state, post.turn):
                    self.number(batch, fail(batch.state, post.error or _UNFINISHED, now=self._now()))
            case Expired():
                known = find_request(batch.state, post.request)
                if known is not None and known.status == "open":
                    self.number(batch, expire(batch.state, known))
            case ProcessEnded():
                process = next((known for known in batch.state.processes if known.id == post.process), None)
                if process is not None and process.running:
                    facts = self._facts_for(batch.state, batch.state.agent, None)
                    self.number(batch, process_ended(batch.state, process, post.exit_code, post.text, facts))
            case Unsettled():
                if batch.unsettled and batch.is_unsettled:
                    batch.urgent = True
                    self.number(batch, settle(batch.state, batch.unsettled, now=self._now()))
            case Stopping():
                batch.urgent = True
                batch.stopping.append(post)
                self.number(batch, settle(batch.state, post.reason, now=self._now()))
                self.number(batch, reap(batch.state, self._around.ids.new))
            case _:
                assert_never(post)

    async def _decide_command(self, batch: Batch, post: Asked) -> None:
        command = post.command
        if used := self._claims.used(command):
            batch.answers.append((post, await self._claims.repeat(command, used, batch.events)))
            return
        self._check_agent(batch.state, command)
        at_rest = batch.state.turn is None
        deletes = isinstance(command, DeleteConversation) and post.origin is not None and post.origin.agent_token
        if (at_rest and isinstance(command, NeedsAll)) or clears_context(command) or deletes:
            await self._load_whole(batch)
        decision = decide(batch.state, command, self._facts(batch.state, post))
        match decision:
            case Refusal():
                raise REFUSALS[decision.code](decision.message, **decision.details)
            case Already():
                answer = Accepted(
                    conversation=self._conversation,
                    seq=batch.state.seq,
                    applied=False,
                    id=decision.id,
                    note=decision.note,
                )
                batch.answers.append((post, answer))
            case _:
                batch.urgent = batch.urgent or isinstance(command, Interrupt | StopTurn)
                numbered = self.number(batch, decision)
                self._claims.claim(command, numbered)
                batch.answers.append((post, acceptance_of(self._conversation, numbered)))

    def _decide_event(self, batch: Batch, post: Yielded) -> None:
        if not _goes_on(batch, post.turn) or _ends_again(batch.state, post.event):
            self._dropped_late += 1
            logger.debug(
                "late event dropped", conversation=self._conversation, turn=post.turn, total=self._dropped_late
            )
        elif isinstance(post.event, TurnFinished):
            self.number(batch, finish(batch.state, post.event, now=self._now()))
        else:
            self.number(batch, [post.event])
            self.number(batch, end_yielding_turn(batch.state, now=self._now()))

    async def go_on(self, batch: Batch) -> None:
        """Carry out what waits until a turn runs or nothing is ready."""
        if batch.stopping or batch.is_unsettled:
            return
        while items := next_items(batch.state):
            if items[0].command is not None:
                await self._load_whole(batch)
            facts = self._facts_for(batch.state, items[0].agent or batch.state.agent, items[0].origin)
            self.number(batch, continue_queue(batch.state, facts))

    def number(self, batch: Batch, events: Sequence[KnownEvent]) -> list[KnownEvent]:
        now, new_id, seq = self._now(), self._around.ids.new, batch.state.seq
        numbered: list[KnownEvent] = []
        for event in exchanges.stamp(batch.state, events):
            seq += 1
            numbered.append(replace(event, seq=seq, id=new_id(), ts=event.ts or now, conversation=self._conversation))
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

    def _check_agent(self, state: State, command: Order) -> None:
        agent = command.agent if isinstance(command, SendMessage | UpdateConversation | Deliver) else None
        if agent and self._around.roster.agent(agent, self._around.folder_of(state)) is None:
            raise NotFound(self._around.roster.why_not(agent, self._around.folder_of(state)), agent=agent)

    def _facts(self, state: State, asked: Asked) -> Facts:
        runs = asked.command.agent if isinstance(asked.command, SendMessage | Deliver) else None
        facts = self._facts_for(state, runs or state.agent, asked.origin)
        named = asked.command.agent if isinstance(asked.command, SendMessage | UpdateConversation | Fill) else None
        chosen = self._terms_of(state, named) if named and named != state.agent else None
        return dataclasses.replace(facts, remembers=asked.remembers, chosen=chosen)

    def _facts_for(self, state: State, agent: str, origin: Origin | None) -> Facts:
        """`agent` is the one that runs."""
        record = self._around.roster.agent(agent, self._around.folder_of(state))
        runner = self._around.roster.runner(record, state.params) if record else Runner(agent=agent, backend="none")
        own = self._terms_of(state, state.agent)
        return Facts(
            now=self._now(),
            new_id=self._around.ids.new,
            runner=runner,
            origin=origin,
            usual=own.usual,
            record=own.record,
        )

    def _terms_of(self, state: State, agent: str) -> Terms:
        record = self._around.roster.agent(agent, self._around.folder_of(state))
        return Terms(self._around.usual_params(record), record)

    def _now(self) -> int:
        return self._around.clock.now_ms()


def _fragments(batch: Batch, posts: Sequence[Post], start: int) -> list[KnownEvent]:
    """The run of fragments that begins here: they are folded together, for no decision lies between them."""
    turn = batch.state.turn
    if turn is None or turn.yielding or batch.is_unsettled:
        return []
    found: list[KnownEvent] = []
    for post in islice(posts, start, start + FRAGMENTS_AT_ONCE):
        if not isinstance(post, Yielded) or post.turn != turn.id or not isinstance(post.event, FRAGMENTS):
            break
        found.append(post.event)
    return found


_UNFINISHED = WireError(
    code="protocol_broken", message="The agent stopped without finishing its turn. Send again to go on.", retryable=True
)


def _is_active(state: State, turn: str) -> bool:
    return state.turn is not None and state.turn.id == turn


def _goes_on(batch: Batch, turn: str) -> bool:
    """Whether that turn is the active one, and all that it did so far is on record."""
    return _is_active(batch.state, turn) and not batch.is_unsettled


def _ends_again(state: State, event: KnownEvent) -> bool:
    """The end of a request that has one: a person was faster than the agent that no longer needs to know."""
    if not isinstance(event, RequestResolved):
        return False
    known = find_request(state, event.request)
    return known is None or known.status != "open"


def _with_earlier(state: State, earlier: Sequence[Message]) -> State:
    return replace(state, messages=(*earlier, *state.messages), offset=0)

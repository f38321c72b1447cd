"""How a conversation begins that does not begin empty: as a branch of another, from messages, or from a log.

Called by the directory, which appends the result in one commit: a branch or an import is there whole or not at all. What
comes from a file is never trusted: it grants nothing, chooses no folder, leaves nothing that would run by itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from palaver.conversation.index_rows import listing_of
from palaver.core import exchanges
from palaver.core.decide.restore import imported, restored
from palaver.core.fold.evolve import fold
from palaver.core.params import check_patch, restrictions
from palaver.core.settle import reap, settle, withdraw
from palaver.core.state import find_message
from palaver.errors import Invalid, NotFound
from palaver.history.lines import readdress
from palaver.history.parts import Json
from palaver.log.base import Append, Claim, Document
from palaver.schema.base import Origin
from palaver.schema.commands import CreateConversation
from palaver.schema.events import (
    ConversationCreated,
    ConversationUpdated,
    DraftSet,
    Event,
    GrantRemoved,
    KnownEvent,
    QueueRemoved,
    decode_event,
    encode_event,
)
from palaver.schema.view import Message, Parent, State, TextBlock

DEFAULT_AGENT = "default"
BRANCH_MARK = " (branch)"
TITLE_LIMIT_CHARS = 500
CAUTIOUS_MODES = ("plan", "ask")
"""The modes in which a person is asked before anything changes: all that a file may choose."""
NEVER_BROUGHT = frozenset({"policy", "ide_tools"})
"""Rules that would allow something, and tools that another program executes."""
PARAMS_BYTES = 64 << 10
"""As much as a conversation may hold of them."""


@dataclass(frozen=True, slots=True)
class Maker:
    """Who makes a conversation, when, and how its events get their ids."""

    conversation: str
    claim: Claim
    now: int
    new_id: Callable[[], str]
    origin: Origin | None = None

    def with_claim(self, created: ConversationCreated) -> ConversationCreated:
        """The event that shows under which client request id the conversation was asked for."""
        return replace(created, client_request_id=self.claim.client_request_id, body_hash=self.claim.body_hash)

    def with_times(self, events: Iterable[tuple[KnownEvent, int]], after: int = 0) -> list[KnownEvent]:
        """Each event with the time it was first said; 0: now."""
        return [
            replace(
                event,
                seq=seq,
                id=self.new_id(),
                ts=ts or self.now,
                conversation=self.conversation,
                origin=event.origin or self.origin,
            )
            for seq, (event, ts) in enumerate(events, after + 1)
        ]


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first events of a conversation, and the view after them."""

    lines: Sequence[bytes]
    state: State

    def append(self, claim: Claim) -> Append:
        documents = [document_of(message) for message in self.state.messages if not message.hidden]
        return Append(
            conversation=self.state.conversation,
            after=0,
            lines=self.lines,
            listing=listing_of(self.state),
            documents=[document for document in documents if document.text.strip()],
            claims=[claim],
        )


def document_of(message: Message) -> Document:
    text = "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock))
    return Document(message.id, message.seq, message.role, text, message.ts)


def beginning_of(events: Sequence[KnownEvent]) -> Beginning:
    return Beginning([encode_event(event) for event in events], fold(State(), events))


# -- a branch


@dataclass(frozen=True, slots=True)
class Copied:
    """What a branch takes along."""

    messages: tuple[Message, ...]
    title: str
    agent: str
    project: str | None
    params: dict[str, Any]
    parent: Parent


def branch_of(source: State, last: str | None) -> Copied:
    """Of a conversation that holds all its messages, up to one. Raises NotFound for one that is not among them."""
    messages = source.messages if last is None else _up_to(source, last)
    parent = Parent(
        conversation=source.conversation,
        kind="branch",
        root=source.parent.root if source.parent else source.conversation,
        message=last or (messages[-1].id if messages else None),
    )
    return Copied(messages, _branch_title(source.title), source.agent, source.project, source.params, parent)


def begin_branch(source: State, body: CreateConversation, maker: Maker) -> Beginning:
    """A conversation that says another again. Raises NotFound as above."""
    assert body.branch is not None
    copied = branch_of(source, body.branch.message)
    created = ConversationCreated(
        agent=body.agent or source.agent,
        project=body.project or source.project,
        params={**_inherit_params(source, body), **body.params},
        parent=copied.parent,
    )
    title = body.title if body.title is not None else copied.title
    # Last and now: the copied messages keep the times at which they were said, the branch is as new as it is.
    named = ConversationUpdated(title=title or None, title_source="user" if body.title else "auto") if title else None
    said = restored(copied.messages, maker.new_id)
    return beginning_of(maker.with_times([(maker.with_claim(created), 0), *said, (named or ConversationUpdated(), 0)]))


def _inherit_params(source: State, body: CreateConversation) -> dict[str, Any]:
    """What a person allowed was allowed to that agent in that folder; elsewhere it is asked for anew."""
    if (body.agent or source.agent) == source.agent and (body.project or source.project) == source.project:
        return source.params
    kept = {
        name: value for name, value in source.params.items() if name not in NEVER_BROUGHT and _is_cautious(name, value)
    }
    rules = restrictions(source.params)
    return {**kept, "policy": rules} if rules else kept


def _up_to(source: State, message: str) -> tuple[Message, ...]:
    found = find_message(source, message)
    if found is None:
        raise NotFound("There is no such message to branch from.", conversation=source.conversation)
    return source.messages[: found[0] + 1]


def _branch_title(title: str) -> str:
    if not title or title.endswith(BRANCH_MARK):
        return title
    return title[: TITLE_LIMIT_CHARS - len(BRANCH_MARK)] + BRANCH_MARK


# -- from a file


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the person who imports a file says, against which the file's own word counts for nothing."""

    project: str
    knows: Callable[[str], bool]
    """Whether an agent is known here."""
    agent: str | None = None
    title: str | None = None

    def agent_for(self, named: str | None) -> str:
        return self.agent or (named if named and self.knows(named) else DEFAULT_AGENT)


def from_messages(
    messages: Sequence[Message],
    wishes: Wishes,
    maker: Maker,
    *,
    agent: str | None = None,
    title: str = "",
    params: Mapping[str, Any] | None = None,
    draft: str = "",
) -> Beginning:
    created = ConversationCreated(
        agent=wishes.agent_for(agent), project=wishes.project, params=harmless(params or {}), source="import"
    )
    name = (wishes.title or title)[:TITLE_LIMIT_CHARS]
    named = ConversationUpdated(title=name, title_source="user") if name else ConversationUpdated()
    events: list[tuple[KnownEvent, int]] = [
        (maker.with_claim(created), 0),
        *restored(imported(messages), maker.new_id),
        (named, 0),
    ]
    if draft:
        events.append((DraftSet(text=draft), 0))
    return beginning_of(maker.with_times(events))


def harmless(params: Mapping[str, Any]) -> dict[str, Any]:
    """Of a file's parameters those that fit and allow nothing."""
    kept: dict[str, Any] = {}
    for name, value in params.items():
        fitted = check_patch({name: value})
        if name not in NEVER_BROUGHT and isinstance(fitted, dict) and _is_cautious(name, fitted[name]):
            kept |= fitted
    return kept if len(msgspec.json.encode(kept)) <= PARAMS_BYTES else {}


def _is_cautious(name: str, value: Any) -> bool:
    return name != "mode" or value in CAUTIOUS_MODES


def from_log(events: Sequence[Json], wishes: Wishes, maker: Maker) -> Beginning:
    """An exact log under a new id, then, if need be, the events that bring it to rest. Raises Invalid for a deleted one."""
    lines = readdress(events, maker.conversation, wishes.project)
    state = fold(State(), (decode_event(line) for line in lines))
    if state.deleted:
        raise Invalid("The conversation in this file was deleted.")
    closing = _Closing(state, maker)
    closing.add(settle(state, "restart", now=maker.now))
    closing.add(withdraw(closing.state))
    closing.add(exchanges.abandon(closing.state))
    closing.add(QueueRemoved(item=item.id, reason="cancelled") for item in closing.state.queue)
    closing.add(reap(closing.state, maker.new_id))
    closing.add(GrantRemoved(tool=grant.tool, match=grant.match) for grant in closing.state.grants)
    closing.add(_correct(closing.state, wishes))
    return Beginning([*lines, *(encode_event(event) for event in closing.events)], closing.state)


class _Closing:
    def __init__(self, state: State, maker: Maker) -> None:
        self.state = state
        self.events: list[KnownEvent] = []
        self._maker = maker

    def add(self, events: Iterable[KnownEvent]) -> None:
        numbered = self._maker.with_times([(event, 0) for event in events], self.state.seq)
        self.events.extend(numbered)
        known: Sequence[Event] = numbered
        self.state = fold(self.state, known)


def _correct(state: State, wishes: Wishes) -> list[KnownEvent]:
    kept = harmless(state.params)
    patch = {name: kept.get(name) for name, value in state.params.items() if kept.get(name) != value}
    agent = wishes.agent_for(state.agent)
    if not patch and agent == state.agent and wishes.title is None:
        return []
    return [ConversationUpdated(params=patch or None, agent=agent, title=wishes.title)]

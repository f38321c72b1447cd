"""The conversation itself: its title, agent, parameters, draft and grants, and its end.

Called by decide.
"""

import msgspec

from palaver.core.decide.decision import Already, Decision, Refusal
from palaver.core.decide.facts import Facts
from palaver.core.decide.queue import withdrawn
from palaver.core.params import check_patch
from palaver.core.settle import settle, withdraw
from palaver.schema.commands import RemoveGrant, SetDraft, SetParams, UpdateConversation
from palaver.schema.events import (
    ConversationDeleted,
    ConversationUpdated,
    DraftCleared,
    DraftSet,
    GrantRemoved,
    ProcessFinished,
)
from palaver.schema.view import State

TITLE_LIMIT_CHARS = 500
"""The longest title a person may give."""
DRAFT_BYTES = 256 << 10
"""What fits into an event."""
PARAMS_BYTES = 64 << 10
"""Parameters travel in every snapshot too."""


def set_params(command: SetParams) -> Decision:
    if len(msgspec.json.encode(command.patch)) > PARAMS_BYTES:
        return Refusal("too_large", f"Parameters may hold {PARAMS_BYTES // 1024} KiB.")
    fitted = check_patch(command.patch)
    return fitted if isinstance(fitted, Refusal) else [ConversationUpdated(params=fitted)]


def set_draft(state: State, command: SetDraft) -> Decision:
    if len(command.text.encode()) > DRAFT_BYTES:
        return Refusal("too_large", f"A draft may hold {DRAFT_BYTES // 1024} KiB.")
    return Already("unchanged") if command.text == state.draft else [DraftSet(text=command.text)]


def clear_draft(state: State) -> Decision:
    return [DraftCleared()] if state.draft else Already("There was no draft.")


def remove_grant(state: State, command: RemoveGrant) -> Decision:
    if not any((known.tool, known.match) == (command.tool, command.match) for known in state.grants):
        return Already("It was not allowed here.")
    return [GrantRemoved(tool=command.tool, match=command.match)]


def update(state: State, command: UpdateConversation) -> Decision:
    title = None if command.title is None else command.title.strip()
    if title is not None and not title:
        return Refusal("invalid", "A title needs at least one character.")
    if title is not None and len(title) > TITLE_LIMIT_CHARS:
        return Refusal("too_large", f"A title may hold {TITLE_LIMIT_CHARS} characters.")
    if title is None and command.agent is None and command.archived is None:
        return Refusal("invalid", "Nothing to change: give `title`, `agent` or `archived`.")
    same_title = title is None or (title == state.title and state.title_source == "user")
    if same_title and command.agent in (None, state.agent) and command.archived in (None, state.archived):
        return Already("unchanged")
    return [
        ConversationUpdated(
            title=title,
            title_source=None if title is None else "user",
            agent=command.agent,
            archived=command.archived,
        )
    ]


def delete(state: State, facts: Facts) -> Decision:
    """Everything ends with it, each with a reason: the turn, the requests, the processes, the queue."""
    if state.deleted:
        return Already("It was deleted before.")
    closed = settle(state, "deleted", now=facts.now, origin=facts.origin) if state.turn else withdraw(state)
    over = {event.process for event in closed if isinstance(event, ProcessFinished)}
    stopped = [
        ProcessFinished(process=process.id, end="stopped")
        for process in state.processes
        if process.running and process.id not in over
    ]
    taken_back = [event for item in state.queue for event in withdrawn(item)]
    return [*closed, *stopped, *taken_back, ConversationDeleted()]

"""`decide(state, command, facts) → events | refusal`: the one place that says what a command does.

Called by the owner of a conversation alone. A refusal leaves no trace, so a refused command may be repeated. What each
family of commands comes to is in `deciding/`.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import assert_never

import msgspec
from msgspec.structs import replace

from palaver.core.decide import conversation, messages, queue, requests, turn
from palaver.core.decide.admission import admission
from palaver.core.decide.authority import overreach
from palaver.core.decide.decision import MESSAGE_BYTES, Already, Decision, Refusal
from palaver.core.decide.facts import Facts
from palaver.core.decide.history import rewrite
from palaver.core.decide.requests import clears_context
from palaver.schema import commands, events
from palaver.schema.commands import Accepted, Order
from palaver.schema.content import as_content
from palaver.schema.events import KnownEvent
from palaver.schema.view import State

__all__ = ["MESSAGE_BYTES", "Already", "Decision", "Refusal", "acceptance_of", "body_hash", "clears_context", "decide"]

_SPOKEN = (
    commands.SendMessage
    | commands.EditQueued
    | commands.EditMessage
    | commands.RetryFrom
    | commands.Deliver
    | commands.PostAnswer
)
"""Commands whose words may be a text or its parts."""


def decide(state: State, command: Order, facts: Facts) -> Decision:
    if state.deleted and not isinstance(command, commands.DeleteConversation):
        return Refusal("gone", "This conversation was deleted.")
    if refusal := overreach(state, command, facts):
        return refusal
    admitted = admission(state, command)
    if admitted.word == "refused":
        return Refusal("conflict", admitted.why)
    decision = _decide(state, command, facts)
    if isinstance(decision, Already) and facts.remembers and command.client_request_id and not state.deleted:
        # An event that changes nothing keeps the id: repeated later, when there would be something to do, it does nothing.
        decision = [events.ConversationUpdated()]
    if not isinstance(decision, list) or not decision:
        return decision
    return _stamp(decision, command, facts)


def acceptance_of(conversation: str, made: Sequence[KnownEvent], client_request_id: str | None = None) -> Accepted:
    """The answer to a command, read off the events it made: the same on the first try and on every repeat.

    `client_request_id` picks the command's own events out of a stretch of the log that holds others too.
    """
    own = [event for event in made if event.client_request_id == client_request_id and event.body_hash]
    if client_request_id is None or not own:
        own = list(made)
    answer = Accepted(conversation=conversation, seq=own[-1].seq)
    for event in own:
        match event:
            case events.QueueAdded():
                answer = replace(answer, id=event.item, queued=True)
            case events.QueueEdited() | events.QueueRemoved():
                answer = replace(answer, id=event.item)
            case events.MessageAdded() if event.role == "user":
                answer = replace(answer, id=event.message)
            case events.MessageEdited() | events.MessageRemoved(turn=None):
                answer = replace(answer, id=event.message)
            case events.RequestResolved(status="answered"):
                answer = replace(answer, id=event.request, note=_note_on_scope(event) or answer.note)
            case events.TurnStarted() | events.TurnInterrupted():
                answer = replace(answer, turn=event.turn)
            case events.ConversationDeleted():
                answer = replace(answer, id=None)
            case _:
                pass
    return answer


def _note_on_scope(event: events.RequestResolved) -> str | None:
    if event.asked_scope is None:
        return None
    reach = "in this conversation" if event.scope == "conversation" else "once"
    return f"Allowed {reach}, and no further: this token may not change agents."


def body_hash(command: Order) -> str:
    """What was asked, whatever its spelling on the wire: two bodies are the same when they mean the same."""
    if isinstance(command, commands.Fill) and command.digest:
        return command.digest
    plain = replace(command, client_request_id=None)
    if isinstance(plain, _SPOKEN) and isinstance(plain.content, str):
        plain = replace(plain, content=as_content(plain.content))
    return blake2b(msgspec.json.encode(plain, order="deterministic"), digest_size=16).hexdigest()


def _stamp(made: list[KnownEvent], command: Order, facts: Facts) -> list[KnownEvent]:
    """Every event says who caused it; each also carries the command's id and hash, which is all of idempotency."""
    request_id = command.client_request_id
    digest = body_hash(command) if request_id else None
    return [
        replace(event, origin=event.origin or facts.origin, client_request_id=request_id, body_hash=digest)
        for event in made
    ]


def _decide(state: State, command: Order, facts: Facts) -> Decision:
    match command:
        case commands.SendMessage():
            return messages.send(state, command, facts)
        case commands.Deliver():
            return messages.deliver(state, command, facts)
        case commands.ReturnExchange():
            return messages.return_exchange(state, command, facts)
        case commands.PostAnswer():
            return messages.post(state, command, facts)
        case commands.EditQueued():
            return queue.edit_queued(state, command)
        case commands.RemoveQueued():
            return queue.remove_queued(state, command)
        case commands.Interrupt():
            return turn.interrupt(state, command, facts)
        case commands.StopTurn():
            return turn.stop_turn(state, command, facts)
        case commands.YieldTurn():
            return turn.yield_turn(state, command, facts)
        case commands.StopProcess():
            return turn.stop_process(state, command, facts)
        case commands.ReturnToolResult():
            return turn.return_tool_result(state, command)
        case commands.AskFirst():
            return requests.ask_first(state, command)
        case commands.ResolveRequest():
            return requests.resolve(state, command, facts)
        case commands.DecideTools():
            return requests.decide_tools(state, command, facts)
        case (
            commands.EditMessage()
            | commands.RemoveMessage()
            | commands.TruncateMessages()
            | commands.RetryFrom()
            | commands.Regenerate()
            | commands.RestoreMessages()
            | commands.Fill()
        ):
            waits = command.when_busy == "queue" and not queue.starts(state)
            return queue.let_wait(state, command, facts) if waits else rewrite(state, command, facts)
        case commands.UpdateConversation():
            return conversation.update(state, command)
        case commands.SetParams():
            return conversation.set_params(command)
        case commands.RemoveGrant():
            return conversation.remove_grant(state, command)
        case commands.SetDraft():
            return conversation.set_draft(state, command)
        case commands.ClearDraft():
            return conversation.clear_draft(state)
        case commands.DeleteConversation():
            return conversation.delete(state, facts)
        case _:
            assert_never(command)

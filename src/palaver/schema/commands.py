"""Everything a client may ask of a conversation. Imperative names; each becomes events or a refusal.

`client_request_id` makes a command idempotent for ever: the same id with the same body has one effect and the same
answer, the same id with another body is refused.
"""

from typing import Any, Literal

from msgspec import Struct

from palaver.schema.base import Delivery, Id, Scope, Then, Verdict, Wire
from palaver.schema.content import Content
from palaver.schema.view import Message, Parent, Stopped, Waking


class _Command(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    client_request_id: Id | None = None


class SendMessage(_Command, tag="send_message"):
    """Queued while a turn runs, else it starts one in the same step. `merge` items waiting together share one turn.

    `held`: it waits in the queue until it is let go (`edit_queued`), also when nothing runs.
    """

    content: str | Content
    delivery: Delivery = "turn"
    priority: bool = False
    merge: bool = False
    held: bool = False
    agent: Id | None = None
    mode: str | None = None


class EditQueued(_Command, tag="edit_queued"):
    """Change, hold or move a message that has not been delivered. `before` is another item's id; `""` means the end.

    Without an `item`: hold, or let go in their order, all that wait.
    """

    item: Id | None = None
    content: str | Content | None = None
    held: bool | None = None
    priority: bool | None = None
    before: str | None = None


class RemoveQueued(_Command, tag="remove_queued"):
    item: Id


class Interrupt(_Command, tag="interrupt"):
    """Stop the active turn and everything it started. Always accepted; the queue goes on, unless it is to be held.

    `hold_queue`: what waits is held back in the same step, also when the named `turn` had ended by then.
    """

    turn: Id | None = None
    audio_end_ms: int | None = None
    hold_queue: bool = False


class Answer(Wire):
    """One question's answer."""

    question_index: int = 0
    selected: tuple[str, ...] = ()
    custom_text: str | None = None


class ResolveRequest(_Command, tag="resolve_request"):
    """Answer an approval, a question or a plan. The first answer wins; later ones are told what was recorded."""

    request: Id
    verdict: Verdict | None = None
    then: Then = "continue"
    scope: Scope = "once"
    offer: int = 0
    """Which of the request's `offers` a yes beyond `once` takes up; the narrowest unless told."""
    answers: tuple[Answer, ...] = ()
    text: str | None = None
    input: Any = None


class ToolDecision(Wire):
    """A yes or no to one waiting call."""

    call: Id
    accepted: bool


class DecideTools(_Command, tag="decide_tools"):
    """Decide calls that wait for a person, together. Those not named stay open; an empty list means all of them, `accepted`.

    `then` says what follows a no: by default the agent goes on with the denial; `stop` lets the accepted ones run and ends
    the turn.
    """

    decisions: tuple[ToolDecision, ...] = ()
    accepted: bool = True
    then: Then = "continue"
    text: str | None = None


class StopProcess(_Command, tag="stop_process"):
    """End a background process and its children."""

    process: Id


class RemoveGrant(_Command, tag="remove_grant"):
    """Take back what was always allowed here."""

    tool: str
    match: str | None = None


class UpdateConversation(_Command, tag="update_conversation"):
    title: str | None = None
    agent: Id | None = None
    archived: bool | None = None


class SetParams(_Command, tag="set_params"):
    """Merged into the conversation's parameters; null clears one."""

    patch: dict[str, Any]


class DeleteConversation(_Command, tag="delete_conversation"):
    pass


class _Rewriting(_Command, kw_only=True):
    """Changes what was said, which is only done at rest.

    `when_busy`: while the agent works it is refused, or it waits in the queue; what waited applies to the conversation as
    it is by then, so an index counts the messages of that moment. `priority` only says where in the queue.
    """

    when_busy: Literal["refuse", "queue"] = "refuse"
    priority: bool = False


class EditMessage(_Rewriting, tag="edit_message"):
    message: Id
    content: str | Content
    regenerate: bool = False


class RemoveMessage(_Rewriting, tag="remove_message"):
    """`regenerate`: and answer the last message of a person again."""

    message: Id
    regenerate: bool = False


class TruncateMessages(_Rewriting, tag="truncate_messages"):
    """`flat`: the index counts as OpenAI-shaped clients do, each result of a tool as a message of its own."""

    from_index: int
    flat: bool = False


class RetryFrom(_Rewriting, tag="retry_from"):
    """Drop everything from `index` on, send `content` there and generate. `flat` as in truncating."""

    index: int
    content: str | Content
    flat: bool = False


class Regenerate(_Rewriting, tag="regenerate"):
    """Drop what follows the last user message and generate again."""


class ReturnToolResult(_Command, tag="return_tool_result"):
    """The result of a tool that the client itself executes (an editor's tools)."""

    call: Id
    content: str
    failed: bool = False


class RestoreMessages(_Rewriting, tag="restore_messages"):
    """Fill an empty conversation with messages from a branch source, a trajectory or an import."""

    messages: tuple[Message, ...]


class SetDraft(_Command, tag="set_draft"):
    text: str


class ClearDraft(_Command, tag="clear_draft"):
    pass


Command = (
    SendMessage
    | EditQueued
    | RemoveQueued
    | Interrupt
    | ResolveRequest
    | DecideTools
    | StopProcess
    | RemoveGrant
    | UpdateConversation
    | SetParams
    | DeleteConversation
    | EditMessage
    | RemoveMessage
    | TruncateMessages
    | RetryFrom
    | Regenerate
    | ReturnToolResult
    | RestoreMessages
    | SetDraft
    | ClearDraft
)


# -- what the server itself asks of a conversation; no client can send these


class Deliver(_Command, tag="deliver"):
    """Words that no person sent: a task for a subagent, another agent's message, an idle prompt."""

    content: str | Content
    trigger: Waking = "message"
    exchange: Id | None = None
    hops: int = 0
    agent: Id | None = None
    mode: str | None = None
    parent: Id | None = None
    """The turn of another conversation that this one works for."""
    turn: Id | None = None
    """The id of the turn that it begins, if it begins one: whoever gives the task can tell of it before."""


class ReturnExchange(_Command, tag="return_exchange"):
    """The answer to what an agent here sent to another. Only the first one counts."""

    exchange: Id
    status: Literal["complete", "failed", "cancelled"]
    response: str = ""
    duration_ms: int | None = None
    tool_call_count: int | None = None
    run: Id | None = None
    """The turn that answered."""


class Fill(_Rewriting, tag="fill"):
    """Fill an empty conversation with what was said elsewhere, at the times it was said there."""

    messages: tuple[Message, ...]
    new_ids: bool = False
    """A copy of what stays where it is: nothing in it keeps its id."""
    own: bool = False
    """They are of a conversation of this server: each keeps its origin. All others are imported."""
    title: str = ""
    agent: Id | None = None
    project: str | None = None
    params: dict[str, Any] = {}
    parent: Parent | None = None
    word: str = "restore_messages"
    """What whoever asked calls it."""
    digest: str = ""
    """Of what was asked for: what was said elsewhere may read differently when it is asked for again."""

    @property
    def is_copy(self) -> bool:
        # Fills that earlier releases let wait in a queue know only the new ids, which nothing else gets.
        return self.own or self.new_ids


class StopTurn(_Command, tag="stop_turn"):
    """Like `Interrupt`, for another reason than a person's wish."""

    reason: Stopped
    turn: Id | None = None


class PostAnswer(_Command, tag="post_answer"):
    """Words of an agent that does not run here: it speaks in the conversation without a turn of its own."""

    content: str | Content
    agent: str | None = None


class YieldTurn(_Command, tag="yield_turn"):
    """The running turn ends once its current answer and the calls of it are done."""

    turn: Id | None = None


class AskFirst(_Command, tag="ask_first"):
    """An agent that does not run here wants to call a tool of ours, and a rule says to ask a person before."""

    request: Id
    tool: str
    input: Any = None
    agent: str | None = None
    hash: str | None = None
    title: str | None = None
    preview: str | None = None
    expires_at: int | None = None


Order = Command | Deliver | ReturnExchange | Fill | StopTurn | PostAnswer | YieldTurn | AskFirst
"""All that the owner of a conversation takes."""

Rewriting = EditMessage | RemoveMessage | TruncateMessages | RetryFrom | Regenerate | RestoreMessages | Fill
"""What changes the history."""


class Accepted(Wire):
    """The answer to a command. `seq` is on disk; `applied` is false when somebody else's answer was recorded before.

    Derived from the events the command made, so a repeated command gets the same answer by construction.
    """

    conversation: Id
    seq: int
    applied: bool = True
    id: Id | None = None
    turn: Id | None = None
    queued: bool = False
    note: str | None = None


class Branch(Wire):
    """Where a branch starts: everything up to and including `message` (absent: all of it) is copied with new ids."""

    conversation: Id
    message: Id | None = None


class CreateConversation(Wire):
    """Body of `POST /api/conversations`. With a chosen `id` or a `client_request_id` it can be repeated safely."""

    id: Id | None = None
    client_request_id: Id | None = None
    title: str | None = None
    agent: Id | None = None
    project: str | None = None
    params: dict[str, Any] = {}
    message: str | Content | None = None
    branch: Branch | None = None

"""`decide(state, command, facts) → events | refusal`: the one place that says what a command does.

Called by the owner of a conversation alone. A refusal leaves no trace, so a refused command may be repeated.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import assert_never

import msgspec
from msgspec.structs import replace

from palaver.core import exchanges
from palaver.core.admission import NONE_WAITS, admission
from palaver.core.decision import MESSAGE_BYTES, Already, Decision, Refusal, content_bytes, unfit
from palaver.core.facts import Facts
from palaver.core.history import cut, rewrite
from palaver.core.next import next_items, spoken, started
from palaver.core.params import MODES, checked
from palaver.core.queue import waiting
from palaver.core.settle import finish, process_over, settle, supersede, withdraw
from palaver.core.state import (
    EDITOR_GRANT,
    OPEN_TOOL,
    between_steps,
    find_call,
    find_request,
    is_from_elsewhere,
    open_requests,
)
from palaver.schema.commands import (
    Accepted,
    AskFirst,
    ClearDraft,
    DecideTools,
    DeleteConversation,
    Deliver,
    EditMessage,
    EditQueued,
    Interrupt,
    Order,
    PostAnswer,
    Regenerate,
    RemoveGrant,
    RemoveMessage,
    RemoveQueued,
    ResolveRequest,
    RestoreMessages,
    RetryFrom,
    ReturnExchange,
    ReturnToolResult,
    SendMessage,
    SetDraft,
    SetParams,
    StopProcess,
    StopTurn,
    TruncateMessages,
    UpdateConversation,
    YieldTurn,
)
from palaver.schema.content import Content, as_content, plain_text
from palaver.schema.events import (
    ConversationDeleted,
    ConversationUpdated,
    DraftCleared,
    DraftSet,
    ExchangeReturned,
    GrantRemoved,
    KnownEvent,
    MessageAdded,
    MessageEdited,
    MessageRemoved,
    PlanUpdated,
    ProcessFinished,
    QueueAdded,
    QueueEdited,
    QueueRemoved,
    RequestOpened,
    RequestResolved,
    ToolFinished,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
    TurnStatus,
)
from palaver.schema.view import Plan, QueueItem, Request, State, ToolError, Trigger

__all__ = ["MESSAGE_BYTES", "Already", "Decision", "Refusal", "accepted", "body_hash", "decide"]

QUEUE_ITEMS = 50
"""More than anyone reads: a client that sends on and on is told to wait."""
QUEUE_BYTES = 1 << 20
"""The queue travels in every snapshot."""
TITLE_CHARS = 60
"""A row of the list."""
TITLE_LIMIT_CHARS = 500
"""The longest title a person may give."""
DRAFT_BYTES = 256 << 10
"""What fits into an event."""
PARAMS_BYTES = 64 << 10
"""Parameters travel in every snapshot too."""
ASKED_FROM_ELSEWHERE = 8
"""Calls of agents elsewhere that wait for a person at once: they leave room for those who work here."""
TOOL_RESULT_BYTES = 1 << 20
"""What an editor may send back for one call: as much as a message."""


def decide(state: State, command: Order, facts: Facts) -> Decision:
    if state.deleted and not isinstance(command, DeleteConversation):
        return Refusal("gone", "This conversation was deleted.")
    admitted = admission(state, command)
    if admitted.word == "refused":
        return Refusal("conflict", admitted.why)
    decision = _decide(state, command, facts)
    if not isinstance(decision, list) or not decision:
        return decision
    return _stamped(decision, command, facts)


def accepted(conversation: str, events: Sequence[KnownEvent], client_request_id: str | None = None) -> Accepted:
    """The answer to a command, read off the events it made: the same on the first try and on every repeat.

    `client_request_id` picks the command's own events out of a stretch of the log that holds others too.
    """
    own = [event for event in events if event.client_request_id == client_request_id and event.body_hash]
    if client_request_id is None or not own:
        own = list(events)
    answer = Accepted(conversation=conversation, seq=own[-1].seq)
    for event in own:
        match event:
            case QueueAdded():
                answer = replace(answer, id=event.item, queued=True)
            case QueueEdited() | QueueRemoved():
                answer = replace(answer, id=event.item)
            case MessageAdded() if event.role == "user":
                answer = replace(answer, id=event.message)
            case MessageEdited() | MessageRemoved(turn=None):
                answer = replace(answer, id=event.message)
            case RequestResolved(status="answered"):
                answer = replace(answer, id=event.request)
            case TurnStarted() | TurnInterrupted():
                answer = replace(answer, turn=event.turn)
            case ConversationDeleted():
                answer = replace(answer, id=None)
            case _:
                pass
    return answer


def body_hash(command: Order) -> str:
    """What was asked, whatever its spelling on the wire: two bodies are the same when they mean the same."""
    plain = replace(command, client_request_id=None)
    spoken_words = SendMessage | EditQueued | EditMessage | RetryFrom | Deliver | PostAnswer
    if isinstance(plain, spoken_words) and isinstance(plain.content, str):
        plain = replace(plain, content=as_content(plain.content))
    return blake2b(msgspec.json.encode(plain, order="deterministic"), digest_size=16).hexdigest()


def _stamped(events: list[KnownEvent], command: Order, facts: Facts) -> list[KnownEvent]:
    """Every event says who caused it; each also carries the command's id and hash, which is all of idempotency."""
    request_id = command.client_request_id
    digest = body_hash(command) if request_id else None
    return [
        replace(event, origin=event.origin or facts.origin, client_request_id=request_id, body_hash=digest)
        for event in events
    ]


def _decide(state: State, command: Order, facts: Facts) -> Decision:
    match command:
        case SendMessage():
            return _send(state, command, facts)
        case Deliver():
            return _deliver(state, command, facts)
        case ReturnExchange():
            return _return_exchange(state, command, facts)
        case EditQueued():
            return _edit_queued(state, command)
        case RemoveQueued():
            item = _queued(state, command.item)
            if item is None:
                return Refusal("not_found", "That message is not in the queue: it was delivered or removed before.")
            return _withdrawn(item)
        case Interrupt():
            return _interrupt(state, command, facts)
        case StopTurn():
            if state.turn is None or command.turn not in (None, state.turn.id):
                return Already("That turn is over.")
            return settle(state, command.reason, now=facts.now, origin=facts.origin)
        case YieldTurn():
            return _yield(state, command, facts)
        case PostAnswer():
            return _post(state, command, facts)
        case AskFirst():
            return _ask_first(state, command)
        case ResolveRequest():
            return _resolve(state, command, facts)
        case DecideTools():
            return _decide_tools(state, command, facts)
        case StopProcess():
            return _stop_process(state, command, facts)
        case RemoveGrant():
            if not any((known.tool, known.match) == (command.tool, command.match) for known in state.grants):
                return Already("It was not allowed here.")
            return [GrantRemoved(tool=command.tool, match=command.match)]
        case UpdateConversation():
            return _update(state, command)
        case SetParams():
            if len(msgspec.json.encode(command.patch)) > PARAMS_BYTES:
                return Refusal("too_large", f"Parameters may hold {PARAMS_BYTES // 1024} KiB.")
            fitted = checked(command.patch)
            return fitted if isinstance(fitted, Refusal) else [ConversationUpdated(params=fitted)]
        case DeleteConversation():
            return _delete(state, facts)
        case EditMessage() | RemoveMessage() | TruncateMessages() | RetryFrom() | Regenerate() | RestoreMessages():
            return rewrite(state, command, facts)
        case ReturnToolResult():
            return _tool_result(state, command)
        case SetDraft():
            if len(command.text.encode()) > DRAFT_BYTES:
                return Refusal("too_large", f"A draft may hold {DRAFT_BYTES // 1024} KiB.")
            return Already("unchanged") if command.text == state.draft else [DraftSet(text=command.text)]
        case ClearDraft():
            return [DraftCleared()] if state.draft else Already("There was no draft.")
        case _:
            assert_never(command)


# -- messages in


def _send(state: State, command: SendMessage, facts: Facts) -> Decision:
    added = QueueAdded(
        item=facts.new_id(),
        content=as_content(command.content),
        delivery=command.delivery,
        priority=command.priority,
        merge=command.merge,
        agent=command.agent,
        mode=command.mode,
    )
    return _unfit(state, added) or _taken(state, added, facts)


def _deliver(state: State, command: Deliver, facts: Facts) -> Decision:
    added = QueueAdded(
        item=facts.new_id(),
        content=as_content(command.content),
        agent=command.agent,
        mode=command.mode,
        trigger=command.trigger,
        exchange=command.exchange,
        hops=command.hops,
    )
    return _unfit(state, added) or _taken(state, added, facts, command.parent)


def _return_exchange(state: State, command: ReturnExchange, facts: Facts) -> Decision:
    known = exchanges.find(state, command.exchange, "out")
    if known is None:
        return Refusal("not_found", "No such exchange in this conversation.")
    if known.status in exchanges.ENDS:
        return Already("Its answer came before.", id=known.id)
    returned = ExchangeReturned(
        exchange=known.id,
        status=command.status,
        response=command.response,
        duration_ms=command.duration_ms,
        tool_call_count=command.tool_call_count,
    )
    if not known.callback:
        return [returned]
    called_back = QueueAdded(
        item=facts.new_id(),
        content=as_content(_callback_words(known.agent, command)),
        trigger="callback",
        exchange=known.id,
        hops=known.hops + 1,
    )
    # Never refused for a full queue: it is an answer, and the only one.
    return [returned, *_taken(state, called_back, facts)]


def _callback_words(agent: str, command: ReturnExchange) -> str:
    match command.status:
        case "complete":
            return f"{agent} answered:\n\n{command.response or '(without a word)'}"
        case "failed":
            return f"{agent} could not answer: {command.response or 'its turn failed.'}"
        case "cancelled":
            said = f" It had said:\n\n{command.response}" if command.response else ""
            return f"{agent} was stopped before it had answered.{said}"


def _unfit(state: State, added: QueueAdded) -> Refusal | None:
    if refusal := unfit(added.content):
        return refusal
    full = len(state.queue) >= QUEUE_ITEMS or _queue_bytes(state) + content_bytes(added.content) > QUEUE_BYTES
    return _queue_full(state) if full and not _starts(state) else None


def _starts(state: State) -> bool:
    return state.turn is None and not next_items(state)


def _taken(state: State, added: QueueAdded, facts: Facts, parent: str | None = None) -> list[KnownEvent]:
    titled = _title(state, added.content)
    if not _starts(state):
        return [*titled, added]
    # At rest: the turn begins in the same step, so that a stop right after this stops it.
    turn, item = facts.new_id(), waiting(added)
    trigger = Trigger(kind=added.trigger, messages=(item.id,), exchange=added.exchange, hops=added.hops)
    return [
        *supersede(state),
        *titled,
        spoken(item, turn),
        started(turn, trigger, facts, added.mode, parent),
    ]


def _withdrawn(item: QueueItem) -> list[KnownEvent]:
    """A queued message is taken back; an agent that sent it is told."""
    removed = QueueRemoved(item=item.id, reason="cancelled", exchange=item.exchange)
    if item.exchange is None or item.trigger != "message":
        return [removed]
    why = "The message was taken out of the queue before it was read."
    return [removed, ExchangeReturned(exchange=item.exchange, status="cancelled", response=why)]


def _queue_full(state: State) -> Refusal:
    return Refusal(
        "busy",
        f"The queue is full ({len(state.queue)} messages). Wait for the agent, or remove a queued message.",
        {"queue_size": len(state.queue)},
    )


def _queue_bytes(state: State) -> int:
    return sum(content_bytes(item.content) for item in state.queue)


def _title(state: State, content: Content) -> list[KnownEvent]:
    """The first words become the title, once; a person's own title is never overwritten."""
    if state.title_source != "none":
        return []
    first_line = next((line.strip() for line in plain_text(content).splitlines() if line.strip()), "")
    if not first_line:
        return []
    title = first_line if len(first_line) <= TITLE_CHARS else first_line[: TITLE_CHARS - 1].rstrip() + "…"
    return [ConversationUpdated(title=title, title_source="auto")]


def _queued(state: State, item: str) -> QueueItem | None:
    return next((known for known in state.queue if known.id == item), None)


def _edit_queued(state: State, command: EditQueued) -> Decision:
    item = _queued(state, command.item)
    if item is None:
        return Refusal("not_found", "That message is not in the queue: it was delivered or removed before.")
    before = None if command.before == item.id else command.before
    if before and _queued(state, before) is None:
        return Refusal("not_found", "The message to move it before is not in the queue.")
    content = None if command.content is None else as_content(command.content)
    if content is not None:
        if refusal := unfit(content):
            return refusal
        if _queue_bytes(state) - content_bytes(item.content) + content_bytes(content) > QUEUE_BYTES:
            return _queue_full(state)
    if all(change is None for change in (content, command.held, command.priority, before)):
        return Already("unchanged", id=item.id)
    return [
        QueueEdited(
            item=item.id,
            version=item.version + 1,
            content=content,
            held=command.held,
            priority=command.priority,
            before=before,
        )
    ]


# -- the running turn


def _interrupt(state: State, command: Interrupt, facts: Facts) -> Decision:
    if state.turn is None:
        asked = command.turn is None or any(known.turn == command.turn for known in open_requests(state))
        return (withdraw(state) if asked else []) or Already("Nothing was running.")
    if command.turn and command.turn != state.turn.id:
        return Already("That turn had ended before.")
    return settle(state, "user", now=facts.now, origin=facts.origin, audio_end_ms=command.audio_end_ms)


def _yield(state: State, command: YieldTurn, facts: Facts) -> Decision:
    turn = state.turn
    if turn is None or command.turn not in (None, turn.id):
        return Already("That turn is over.")
    if between_steps(state):
        return finish(state, TurnFinished(outcome="yielded"), now=facts.now)
    if turn.yielding:
        return Already("It is about to end.")
    return [TurnStatus(turn=turn.id, status=turn.activity, detail=turn.detail, retry=turn.retry, yielding=True)]


def _post(state: State, command: PostAnswer, facts: Facts) -> Decision:
    content = as_content(command.content)
    if refusal := unfit(content):
        return refusal
    turn = state.turn.id if state.turn else None
    return [
        MessageAdded(turn=turn, message=facts.new_id(), role="assistant", content=content, agent=command.agent),
    ]


def _ask_first(state: State, command: AskFirst) -> Decision:
    if find_request(state, command.request) is not None:
        return Already("It was asked before.", id=command.request)
    if sum(is_from_elsewhere(known) for known in open_requests(state)) >= ASKED_FROM_ELSEWHERE:
        return Refusal("busy", "Too many calls wait for a decision already. Wait until some are decided.")
    opened = RequestOpened(
        request=command.request,
        kind="approval",
        agent=command.agent,
        tool=command.tool,
        input=command.input,
        hash=command.hash,
        title=command.title,
        preview=command.preview,
        expires_at=command.expires_at,
    )
    return [opened]


def _resolve(state: State, command: ResolveRequest, facts: Facts) -> Decision:
    request = find_request(state, command.request)
    if request is None:
        return Refusal("not_found", "No such request in this conversation.")
    if request.status != "open":
        return Already(f"It was {request.status} before.", id=request.id)
    if refusal := _no_answer_to(request, command):
        return refusal
    # At rest, the turn that asked was ended by a restart (or by its plan): the answer begins the one that goes on.
    # Who asked from elsewhere goes on there.
    elsewhere = is_from_elsewhere(request)
    turn = None if elsewhere else state.turn.id if state.turn else facts.new_id()
    resolved = RequestResolved(
        turn=turn,
        request=request.id,
        status="answered",
        verdict=command.verdict,
        then=command.then,
        scope=command.scope,
        offer=command.offer,
        answers=command.answers,
        text=command.text,
        input=command.input,
    )
    if state.turn is not None or turn is None:
        return [resolved]
    if request.kind == "plan":
        return [resolved, *_plan_answered(state, request, command, turn, facts)]
    return [resolved, _gone_on(state, turn, request.id, facts)]


def _gone_on(state: State, turn: str, request: str, facts: Facts) -> TurnStarted:
    """The turn that goes on from where a restart cut one, in its mode."""
    cut = state.last_turn if state.last_turn and state.last_turn.outcome == "interrupted" else None
    trigger = exchanges.gone_on_by(state, Trigger(kind="request", request=request))
    return started(turn, trigger, facts, cut.mode if cut else None)


def _plan_answered(
    state: State, request: Request, command: ResolveRequest, turn: str, facts: Facts
) -> list[KnownEvent]:
    """Yes: it is carried out, out of plan mode. No with words: it is revised, in plan mode. A plain no: it is dropped."""
    plan = request.plan
    trigger = exchanges.gone_on_by(state, Trigger(kind="request", request=request.id))
    if command.verdict == "allow" and plan is not None:
        chosen = command.input.get("mode") if isinstance(command.input, dict) else None
        usual = state.params.get("mode")
        mode = next((word for word in (chosen, usual) if word in MODES and word != "plan"), "ask")
        leave = [ConversationUpdated(params={"mode": mode})] if state.params.get("mode") == "plan" else []
        forgotten = cut(state, 0) if clears_context(command) else []
        text = f"The plan was approved. Carry it out.{_remark(command)}{_in_words(plan) if forgotten else ''}"
        return [
            *leave,
            *forgotten,
            PlanUpdated(turn=turn, plan=replace(plan, status="executing")),
            _word(turn, "plan_approved", text, facts),
            started(turn, trigger, facts, mode),
        ]
    if command.text:
        text = f"The plan was not approved; revise it.{_remark(command)}"
        return [_word(turn, "plan_revised", text, facts), started(turn, trigger, facts, "plan")]
    # Nothing runs, but the agent should know of it when it is spoken to next.
    dropped = "The plan was rejected and dropped."
    return [PlanUpdated(plan=None), _word(None, "plan_rejected", dropped, facts), *exchanges.called_off(state, dropped)]


def clears_context(command: Order) -> bool:
    """A plan is to be carried out without what was said before it."""
    given = command.input if isinstance(command, ResolveRequest) and command.verdict == "allow" else None
    return isinstance(given, dict) and given.get("clear_context") is True


def _in_words(plan: Plan) -> str:
    """For an agent that is shown nothing else of it."""
    items = "\n".join(f"- {item.title}{f': {item.description}' if item.description else ''}" for item in plan.items)
    return f"\n\n{plan.summary}\n\n{plan.text or items}"


def _remark(command: ResolveRequest) -> str:
    return f" The person said: {command.text}" if command.text else ""


def _word(turn: str | None, kind: str, text: str, facts: Facts) -> MessageAdded:
    """A word to the agent that the page shows in its own way."""
    return MessageAdded(
        turn=turn, message=facts.new_id(), role="event", content=as_content(text), hidden=True, event_kind=kind
    )


def _decide_tools(state: State, command: DecideTools, facts: Facts) -> Decision:
    waiting = {known.call: known for known in open_requests(state) if known.kind == "approval" and known.call}
    if not waiting:
        return Refusal("conflict", NONE_WAITS.why)
    decisions = {decision.call: decision.accepted for decision in command.decisions}
    if not decisions:
        decisions = {call: command.accepted for call in waiting if call}
    if strange := [call for call in decisions if call not in waiting]:
        return Refusal("not_found", f"No such call waits for a decision: {', '.join(strange)}.")
    turn = state.turn.id if state.turn else facts.new_id()
    resolved: list[KnownEvent] = [
        RequestResolved(
            turn=turn,
            request=waiting[call].id,
            status="answered",
            verdict="allow" if accepted else "deny",
            then="continue" if accepted else command.then,
            text=command.text,
        )
        for call, accepted in decisions.items()
    ]
    if state.turn is not None:
        return resolved
    return [*resolved, _gone_on(state, turn, waiting[next(iter(decisions))].id, facts)]


def _stop_process(state: State, command: StopProcess, facts: Facts) -> Decision:
    process = next((known for known in state.processes if known.id == command.process), None)
    if process is None:
        return Refusal("not_found", "No such process in this conversation.")
    if not process.running:
        return Already("It was over before.", id=process.id)
    return process_over(
        process, "stopped", None, f"Process {process.id} ({process.command}) was stopped.", facts.new_id()
    )


def _no_answer_to(request: Request, command: ResolveRequest) -> Refusal | None:
    """Why this does not answer the request, if it does not."""
    if request.kind != "question":
        if command.verdict is None:
            return Refusal("invalid", 'Say `"verdict": "allow"` or `"verdict": "deny"`.')
        if command.verdict == "allow" and request.kind == "approval" and command.scope not in request.scopes:
            return Refusal("invalid", f"This request can be granted for: {', '.join(request.scopes)}.")
        if command.offer and not 0 <= command.offer < len(request.offers):
            return Refusal("invalid", "`offer` is the place of one of the request's `offers`, counted from 0.")
        return None
    if not (command.verdict or command.answers or command.text or command.input is not None):
        return Refusal("invalid", 'Give `answers` or a `text`, or say `"verdict": "deny"` to leave it unanswered.')
    if request.questions and any(not 0 <= answer.question_index < len(request.questions) for answer in command.answers):
        return Refusal("invalid", f"`question_index` lies between 0 and {len(request.questions) - 1}.")
    return None


def _tool_result(state: State, command: ReturnToolResult) -> Decision:
    tool = find_call(state, command.call)
    if tool is None:
        return Refusal("not_found", "No such tool call in this conversation.")
    if tool.grant == EDITOR_GRANT and tool.status not in OPEN_TOOL:
        return Already("It had its result before.", id=tool.call)
    if state.turn is None or tool.grant != EDITOR_GRANT or tool.status != "running":
        return Refusal("conflict", "That tool does not wait for a result from the editor.")
    if len(command.content.encode()) > TOOL_RESULT_BYTES:
        return Refusal("too_large", f"A tool's result may hold {TOOL_RESULT_BYTES >> 20} MiB.")
    return [
        ToolFinished(
            turn=state.turn.id,
            call=command.call,
            ok=not command.failed,
            output="" if command.failed else command.content,
            error=ToolError(code="tool_error", message=command.content) if command.failed else None,
        )
    ]


# -- the conversation itself


def _update(state: State, command: UpdateConversation) -> Decision:
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


def _delete(state: State, facts: Facts) -> Decision:
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
    withdrawn = [event for item in state.queue for event in _withdrawn(item)]
    return [*closed, *stopped, *withdrawn, ConversationDeleted()]

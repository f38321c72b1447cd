"""`evolve(state, event) → state`: the fold that makes a conversation out of its log.

Called by the owner of a conversation, by recovery and by every Python client; `web/src/model/fold.ts` says the same in
TypeScript, and `tests/golden` holds both to the same answers. Must never fail on an event: what it cannot place, it skips.

`fold` is the workhorse. It copies the message list once a batch, so a token in a long conversation costs what it costs
in a short one.
"""

from collections.abc import Callable, Iterable
from typing import assert_never

from msgspec.structs import replace

from palaver.core import blocks, compressions, exchanges, queue, requests
from palaver.core.state import find_request, status_of
from palaver.schema.base import Usage
from palaver.schema.events import (
    AgentOverridden,
    AnswerFinished,
    AnswerStarted,
    CitationAdded,
    ContextCompressed,
    ContextMeasured,
    ConversationCreated,
    ConversationDeleted,
    ConversationUpdated,
    DraftCleared,
    DraftSet,
    Event,
    ExchangeReturned,
    ExchangeSent,
    FilesChanged,
    GrantAdded,
    GrantRemoved,
    KnowledgeRecalled,
    LogCompacted,
    MessageAdded,
    MessageEdited,
    MessageRemoved,
    MessageTruncated,
    MissionCleared,
    MissionSet,
    MissionTriggered,
    ModelSwitched,
    PlanUpdated,
    ProcessFinished,
    ProcessStarted,
    QueueAdded,
    QueueEdited,
    QueueRemoved,
    RequestOpened,
    RequestResolved,
    SubagentFinished,
    SubagentStarted,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
    TurnStatus,
    UnknownEvent,
)
from palaver.schema.view import (
    Block,
    ContextMeter,
    FileChange,
    Grant,
    Knowledge,
    Message,
    Process,
    Progress,
    State,
    Subagent,
    Switch,
    ToolBlock,
    Turn,
    TurnSummary,
)

KEEP_LATEST = 200
"""Subagents, grants and changed files that stay in view: each list holds its latest, so a view stays small."""


def evolve(state: State, event: Event) -> State:
    return fold(state, (event,))


def fold(state: State, events: Iterable[Event]) -> State:
    draft = _Draft(state)
    for event in events:
        draft.apply(event)
    return draft.state()


class _Draft:
    """A view while a batch is folded into it. Lives for one call of `fold`."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._messages = list(state.messages)
        # An event names its message or call; both are nearly always the latest, so a search from the end is short.
        self._touched = False

    def state(self) -> State:
        state = self._state
        if self._touched:
            state = replace(state, messages=tuple(self._messages))
        status = status_of(state)
        return state if status == state.status else replace(state, status=status)

    def apply(self, event: Event) -> None:
        self._fold(event)
        self._state = replace(self._state, seq=event.seq, updated_at=event.ts)

    # -- the state's own fields

    def _set(self, **fields: object) -> None:
        self._state = replace(self._state, **fields)

    # -- messages

    def _append(self, message: Message) -> None:
        self._messages.append(message)
        self._touched = True

    def _place_of(self, message: str) -> int | None:
        for place in range(len(self._messages) - 1, -1, -1):
            if self._messages[place].id == message:
                return place
        return None

    def _change(self, message: str, seq: int, change: Callable[[Message], Message]) -> None:
        place = self._place_of(message)
        if place is None:
            return
        known = self._messages[place]
        changed = change(known)
        if changed is not known:
            self._messages[place] = replace(changed, updated_seq=seq)
            self._touched = True

    def _change_block(self, message: str, seq: int, index: int, change: Callable[[Block | None], Block]) -> None:
        def in_message(known: Message) -> Message:
            changed = blocks.with_block(known.blocks, index, change)
            return known if changed is known.blocks else replace(known, blocks=changed)

        self._change(message, seq, in_message)

    def _change_call(self, call: str, seq: int, change: Callable[[ToolBlock], ToolBlock]) -> None:
        for place in range(len(self._messages) - 1, -1, -1):
            message = self._messages[place]
            for at in range(len(message.blocks) - 1, -1, -1):
                block = message.blocks[at]
                if isinstance(block, ToolBlock) and block.call == call:
                    changed = change(block)
                    if changed is not block:
                        after = (*message.blocks[:at], changed, *message.blocks[at + 1 :])
                        self._messages[place] = replace(message, blocks=after, updated_seq=seq)
                        self._touched = True
                    return

    # -- one event

    def _fold(self, event: Event) -> None:
        state = self._state
        match event:
            # Deltas first: nine events of ten are deltas.
            case TextDelta():
                self._change_block(event.message, event.seq, event.block, lambda known: blocks.text_grown(known, event))
            case ThinkingDelta():
                self._change_block(
                    event.message, event.seq, event.block, lambda known: blocks.thinking_grown(known, event)
                )
            case ToolOutputDelta():
                self._change_call(event.call, event.seq, lambda tool: blocks.output_grown(tool, event))
            case ToolInputDelta():
                self._change_block(
                    event.message, event.seq, event.block, lambda known: blocks.input_grown(known, event)
                )

            case ConversationCreated():
                self._set(
                    conversation=event.conversation,
                    created_at=event.ts,
                    title=event.title,
                    title_source="user" if event.title else "none",
                    agent=event.agent,
                    project=event.project,
                    params=event.params,
                    parent=event.parent,
                )
            case ConversationUpdated():
                self._set(
                    title=state.title if event.title is None else event.title,
                    title_source=state.title_source if event.title is None else event.title_source or "user",
                    agent=event.agent or state.agent,
                    params=state.params if event.params is None else _merged(state.params, event.params),
                    archived=state.archived if event.archived is None else event.archived,
                    project=event.project or state.project,
                    parent=event.parent or state.parent,
                )
            case ConversationDeleted():
                self._set(deleted=True)
            case DraftSet():
                self._set(draft=event.text)
            case DraftCleared():
                self._set(draft="")

            case QueueAdded():
                self._set(queue=queue.added(state.queue, event), exchanges=exchanges.queued(state.exchanges, event))
            case QueueEdited():
                self._set(queue=queue.edited(state.queue, event))
            case QueueRemoved():
                self._set(queue=queue.removed(state.queue, event.item))

            case MessageAdded():
                self._append(_added(event))
            case MessageEdited():
                self._change(
                    event.message,
                    event.seq,
                    lambda known: replace(known, blocks=blocks.of_content(event.content), edited=True),
                )
            case MessageRemoved():
                self._remove(event)
            case MessageTruncated():
                self._truncate(event)

            case TurnStarted():
                self._set(
                    turn=Turn(
                        id=event.turn or "",
                        agent=event.agent,
                        backend=event.backend,
                        model=event.model,
                        started_at=event.ts,
                        trigger=event.trigger,
                        resumable=event.resumable,
                        steerable=event.steerable,
                        mode=event.mode,
                    ),
                    processes=tuple(process for process in state.processes if process.running),
                    exchanges=exchanges.begun(state.exchanges, event),
                )
            case TurnStatus():
                if state.turn:
                    self._set(
                        turn=replace(
                            state.turn,
                            activity=event.status,
                            detail=event.detail,
                            retry=event.retry,
                            yielding=state.turn.yielding or event.yielding,
                        )
                    )
            case TurnFinished() | TurnInterrupted():
                self._end_turn(event)

            case AnswerStarted():
                if event.replaces:
                    self._change(event.replaces, event.seq, _superseded)
                self._append(
                    Message(
                        id=event.message,
                        role="assistant",
                        seq=event.seq,
                        updated_seq=event.seq,
                        ts=event.ts,
                        status="streaming",
                        turn=event.turn,
                        agent=state.turn.agent if state.turn else None,
                        model=event.model or (state.turn.model if state.turn else None),
                        switch=state.turn.switch if state.turn else None,
                        exchange=event.exchange,
                    )
                )
                if state.turn and state.turn.switch:
                    self._set(turn=replace(state.turn, switch=None))
            case TextFinished():
                self._change_block(
                    event.message, event.seq, event.block, lambda known: blocks.text_finished(known, event)
                )
            case ThinkingFinished():
                self._change_block(
                    event.message, event.seq, event.block, lambda known: blocks.thinking_finished(known, event)
                )
            case AnswerFinished():
                self._finish_answer(event)
            case CitationAdded():
                self._change_block(event.message, event.seq, event.block, lambda known: blocks.cited(known, event))

            case ToolCalled():
                self._change_block(event.message, event.seq, event.block, lambda known: blocks.called(known, event))
            case ToolStarted():
                self._change_call(event.call, event.seq, lambda tool: blocks.tool_started(tool, event))
            case ToolFinished():
                self._change_call(event.call, event.seq, lambda tool: blocks.tool_finished(tool, event))

            case RequestOpened():
                self._open_request(event)
            case RequestResolved():
                self._resolve_request(event)

            case SubagentStarted():
                started = Subagent(
                    conversation=event.subagent,
                    agent=event.agent,
                    task=event.task,
                    call=event.call,
                    run=event.run,
                    turn=event.turn,
                    started_at=event.ts,
                )
                self._set(subagents=(*state.subagents, started)[-KEEP_LATEST:])
            case SubagentFinished():
                self._set(subagents=tuple(_subagent_ended(child, event) for child in state.subagents))
            case ExchangeSent():
                self._set(exchanges=exchanges.sent(state.exchanges, event))
            case ExchangeReturned():
                self._set(exchanges=exchanges.told(state.exchanges, event))

            case ContextMeasured():
                self._set(
                    context=ContextMeter(
                        used_tokens=event.used_tokens,
                        window_tokens=event.window_tokens,
                        estimated=event.estimated,
                        compressed=state.context.compressed if state.context else False,
                        breakdown=event.breakdown,
                    )
                )
            case ContextCompressed():
                window = state.context.window_tokens if state.context else None
                self._spend(event)
                self._set(
                    context=ContextMeter(used_tokens=event.after_tokens, window_tokens=window, compressed=True),
                    compressions=compressions.bounded((*state.compressions, compressions.compressed(event))),
                )
            case KnowledgeRecalled():
                if event.message:
                    known = Knowledge(sources=event.sources, tokens=event.tokens, text=event.text)
                    self._change(event.message, event.seq, lambda message: replace(message, knowledge=known))
            case FilesChanged():
                self._set(files=_files(state.files, event))
                if event.call:
                    self._change_call(event.call, event.seq, lambda tool: blocks.files_changed(tool, event))
            case PlanUpdated():
                self._set(plan=event.plan)
            case ProcessStarted():
                started_process = Process(
                    id=event.process,
                    command=event.command,
                    call=event.call,
                    pid=event.pid,
                    turn=event.turn,
                    started_at=event.ts,
                )
                self._set(processes=(*state.processes, started_process))
            case ProcessFinished():
                self._set(processes=tuple(_process_ended(known, event) for known in state.processes))
            case ModelSwitched():
                if state.turn:
                    switch = Switch(to_model=event.to_model, from_model=event.from_model, reason=event.reason)
                    self._set(turn=replace(state.turn, model=event.to_model, switch=switch))
            case GrantAdded():
                self._set(grants=(*_without(state.grants, event), _grant(event))[-KEEP_LATEST:])
            case GrantRemoved():
                self._set(grants=_without(state.grants, event))

            case (
                MissionSet()
                | MissionCleared()
                | MissionTriggered()
                | AgentOverridden()
                | LogCompacted()
                | UnknownEvent()
            ):
                pass  # Nothing in a conversation's view depends on these; `seq` moves on.
            case _:
                assert_never(event)

    def _remove(self, event: MessageRemoved) -> None:
        place = self._place_of(event.message)
        if place is not None:
            del self._messages[place]
            self._touched = True
        elif event.index < self._state.offset:
            self._set(offset=self._state.offset - 1)

    def _truncate(self, event: MessageTruncated) -> None:
        del self._messages[max(0, event.index - self._state.offset) :]
        self._touched = True
        if event.index < self._state.offset:
            self._set(offset=event.index)
        if event.first_seq is not None:
            kept = (known for known in self._state.compressions if known.horizon <= event.first_seq)
            self._set(compressions=tuple(kept))

    def _finish_answer(self, event: AnswerFinished) -> None:
        self._spend(event)
        self._change(
            event.message,
            event.seq,
            lambda known: replace(
                known,
                status=_ended(known, event),
                finish_reason=event.finish_reason,
                usage=event.usage,
                model=event.model or known.model,
                data=known.data if event.provider is None else event.provider,
            ),
        )

    def _spend(self, event: AnswerFinished | ContextCompressed) -> None:
        turn = self._state.turn
        if turn and (event.usage or event.cost_usd):
            usage, cost_usd = turn.usage + (event.usage or Usage()), turn.cost_usd + (event.cost_usd or 0.0)
            self._set(turn=replace(turn, usage=usage, cost_usd=cost_usd))

    def _end_turn(self, event: TurnFinished | TurnInterrupted) -> None:
        state = self._state
        if state.turn is None or state.turn.id != (event.turn or ""):
            return  # The end of a turn that is over, or was never begun, ends no other.
        finished = event if isinstance(event, TurnFinished) else None
        stopped = event if isinstance(event, TurnInterrupted) else None
        summary = TurnSummary(
            id=event.turn or "",
            outcome=finished.outcome if finished else "interrupted",
            ended_at=event.ts,
            stopped=stopped.reason if stopped else None,
            by=event.origin,
            error=finished.error if finished else None,
            summary=finished.summary if finished else None,
            duration_ms=event.duration_ms,
            mode=state.turn.mode,
        )
        self._set(
            turn=None,
            last_turn=summary,
            usage=state.usage + event.usage,
            cost_usd=state.cost_usd + (event.cost_usd or 0.0),
        )
        if summary.outcome in ("failed", "interrupted", "limited"):
            self._mark_end(summary, event.seq)

    def _mark_end(self, summary: TurnSummary, seq: int) -> None:
        for place in range(len(self._messages) - 1, -1, -1):
            message = self._messages[place]
            shown = not message.hidden and message.status != "superseded" and message.blocks
            if message.turn == summary.id and shown:
                self._messages[place] = replace(message, ended=summary, updated_seq=seq)
                self._touched = True
                return

    def _open_request(self, event: RequestOpened) -> None:
        if find_request(self._state, event.request) is not None:
            return
        self._set(requests=(*self._state.requests, requests.opened(event)))
        if event.call:
            self._change_call(event.call, event.seq, lambda tool: blocks.waiting(tool, event))

    def _resolve_request(self, event: RequestResolved) -> None:
        """The first resolution is the resolution."""
        request = find_request(self._state, event.request)
        if request is None or request.status != "open":
            return
        self._set(requests=requests.with_resolved(self._state.requests, request, event))
        if request.call:
            self._change_call(request.call, event.seq, blocks.answered)


def _superseded(message: Message) -> Message:
    return replace(message, status="superseded", blocks=tuple(blocks.superseded(block) for block in message.blocks))


def _ended(message: Message, event: AnswerFinished) -> Progress:
    if message.status == "superseded":
        return message.status
    return "interrupted" if event.interrupted else "done"


def _added(event: MessageAdded) -> Message:
    return Message(
        id=event.message,
        role=event.role,
        seq=event.seq,
        updated_seq=event.seq,
        ts=event.ts,
        blocks=blocks.of_content(event.content) if event.blocks is None else event.blocks,
        turn=event.turn,
        origin=event.origin,
        agent=event.agent,
        model=event.model,
        hidden=event.hidden,
        event_kind=event.event_kind,
        client_request_id=event.client_request_id,
        exchange=event.exchange,
        data=event.data,
    )


def _merged(params: dict[str, object], patch: dict[str, object]) -> dict[str, object]:
    merged = {**params, **patch}
    return {key: value for key, value in merged.items() if value is not None}


def _subagent_ended(known: Subagent, event: SubagentFinished) -> Subagent:
    """The first end is the end."""
    if known.conversation != event.subagent or known.status != "running":
        return known
    return replace(known, status=event.outcome, finished_at=event.ts, cost_usd=event.cost_usd)


def _process_ended(known: Process, event: ProcessFinished) -> Process:
    """The first end is the end."""
    if known.id != event.process or not known.running:
        return known
    return replace(known, running=False, exit_code=event.exit_code, finished_at=event.ts, end=event.end)


def _grant(event: GrantAdded) -> Grant:
    return Grant(
        tool=event.tool,
        scope=event.scope,
        decision=event.decision,
        match=event.match,
        agent=event.agent,
        request=event.request,
        ts=event.ts,
    )


def _without(grants: tuple[Grant, ...], event: GrantAdded | GrantRemoved) -> tuple[Grant, ...]:
    return tuple(known for known in grants if (known.tool, known.match) != (event.tool, event.match))


def _files(known: tuple[FileChange, ...], event: FilesChanged) -> tuple[FileChange, ...]:
    """The latest change of each path, latest last. A diff that its call shows is not held twice."""
    latest = {file.path: replace(file, diff=None) if event.call else file for file in event.files}
    kept = (file for file in known if file.path not in latest)
    return (*kept, *latest.values())[-KEEP_LATEST:]

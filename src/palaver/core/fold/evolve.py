"""`evolve(state, event) → state`: the fold that makes a conversation out of its log.

Called by the owner of a conversation, by recovery and by every Python client; `web/src/model/fold.ts` says the same in
TypeScript, and `tests/golden` holds both to the same answers. Must never fail on an event: what it cannot place, it skips.

`fold` is the workhorse. It copies the message list once a batch, so a token in a long conversation costs what it costs
in a short one.
"""

from collections.abc import Iterable, Iterator
from typing import assert_never

from msgspec.structs import replace

from palaver.core import exchanges, queue
from palaver.core.fold import activity, blocks, compressions, requests, transcript, turns
from palaver.core.fold.transcript import Transcript
from palaver.core.state import find_request, status_of
from palaver.schema import events
from palaver.schema.events import Event
from palaver.schema.view import ContextMeter, Knowledge, Message, State, Switch


def evolve(state: State, event: Event) -> State:
    return fold(state, (event,))


def fold(state: State, made: Iterable[Event]) -> State:
    draft = _Draft(state)
    for event in _join_fragments(made):
        draft.apply(event)
    return draft.state()


_Growing = events.TextDelta | events.ThinkingDelta | events.ToolInputDelta
_Steady = (
    _Growing
    | events.ToolOutputDelta
    | events.TextFinished
    | events.ThinkingFinished
    | events.CitationAdded
    | events.AnswerStarted
    | events.AnswerFinished
    | events.ToolCalled
    | events.FilesChanged
    | events.ContextMeasured
)
"""Events that begin and end neither a turn, nor a request, nor the run of a tool: the status word stays what it was."""


def _join_fragments(made: Iterable[Event]) -> Iterator[Event]:
    """Neighbouring fragments of one block as one. A text that grows by each of them is copied each time, and with it the
    list of its message's blocks; so a burst costs what one fragment costs."""
    run: list[_Growing] = []
    for event in made:
        if not isinstance(event, _Growing):
            yield from _as_one(run)
            run = []
            yield event
        elif run and _block_of(run[-1]) == _block_of(event):
            run.append(event)
        else:
            yield from _as_one(run)
            run = [event]
    yield from _as_one(run)


def _block_of(event: _Growing) -> tuple[type[Event], str, int, str]:
    call = event.call if isinstance(event, events.ToolInputDelta) else ""
    return type(event), event.message, event.block, call


def _as_one(run: list[_Growing]) -> Iterator[Event]:
    if run:
        # The first says what the block is called, the last when it grew.
        whole = "".join(event.text for event in run)
        yield run[0] if len(run) == 1 else replace(run[0], text=whole, seq=run[-1].seq, ts=run[-1].ts)


class _Draft:
    """A view while a batch is folded into it. Lives for one call of `fold`."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._said = Transcript(state)
        self._is_status_due = False

    def state(self) -> State:
        state = self._said.into(self._state)
        # Only when it may have changed: a turn may hold thousands of calls to look through.
        status = status_of(state) if self._is_status_due else state.status
        return state if status == state.status else replace(state, status=status)

    def apply(self, event: Event) -> None:
        self._is_status_due = self._is_status_due or not isinstance(event, _Steady)
        self._fold(event)
        self._state = replace(self._state, seq=event.seq, updated_at=event.ts)

    # -- the state's own fields

    def _set(self, **fields: object) -> None:
        self._state = replace(self._state, **fields)

    # -- one event

    def _fold(self, event: Event) -> None:
        state = self._state
        match event:
            # Deltas first: nine events of ten are deltas.
            case events.TextDelta():
                self._said.change_block(
                    event.message, event.seq, event.block, lambda known: blocks.text_grown(known, event)
                )
            case events.ThinkingDelta():
                self._said.change_block(
                    event.message, event.seq, event.block, lambda known: blocks.thinking_grown(known, event)
                )
            case events.ToolOutputDelta():
                self._said.change_call(event.call, event.seq, lambda tool: blocks.output_grown(tool, event))
            case events.ToolInputDelta():
                self._said.change_block(
                    event.message, event.seq, event.block, lambda known: blocks.input_grown(known, event)
                )

            case events.ConversationCreated():
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
            case events.ConversationUpdated():
                self._set(
                    title=state.title if event.title is None else event.title,
                    title_source=state.title_source if event.title is None else event.title_source or "user",
                    agent=event.agent or state.agent,
                    params=state.params if event.params is None else _merge(state.params, event.params),
                    archived=state.archived if event.archived is None else event.archived,
                    project=event.project or state.project,
                    parent=event.parent or state.parent,
                )
            case events.ConversationDeleted():
                self._set(deleted=True)
            case events.DraftSet():
                self._set(draft=event.text)
            case events.DraftCleared():
                self._set(draft="")

            case events.QueueAdded():
                self._set(
                    queue=queue.insert(state.queue, event), exchanges=exchanges.record_queued(state.exchanges, event)
                )
            case events.QueueEdited():
                self._set(queue=queue.edit(state.queue, event))
            case events.QueueRemoved():
                self._set(queue=queue.remove(state.queue, event.item))

            case events.MessageAdded():
                self._said.append(transcript.message_of(event))
            case events.MessageEdited():
                self._said.change(
                    event.message,
                    event.seq,
                    lambda known: replace(known, blocks=blocks.of_content(event.content), edited=True),
                )
            case events.MessageRemoved():
                end = self._end_of_last_turn()
                if not self._said.remove(event.message) and event.index < state.offset:
                    self._set(offset=state.offset - 1)
                self._forget_outcome(end)
            case events.MessageTruncated():
                end = self._end_of_last_turn()
                self._said.truncate(max(0, event.index - state.offset))
                self._set(offset=min(event.index, state.offset), compressions=compressions.before(state, event))
                self._forget_outcome(end)

            case events.TurnStarted():
                self._set(
                    turn=turns.turn_of(event),
                    processes=tuple(process for process in state.processes if process.running),
                    exchanges=exchanges.record_start(state.exchanges, event),
                )
            case events.TurnStatus():
                if state.turn:
                    self._set(turn=turns.busy_with(state.turn, event))
            case events.TurnFinished() | events.TurnInterrupted():
                self._end_turn(event)

            case events.AnswerStarted():
                if event.replaces:
                    self._said.change(event.replaces, event.seq, transcript.superseded)
                self._said.append(
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
            case events.TextFinished():
                self._said.change_block(
                    event.message, event.seq, event.block, lambda known: blocks.text_finished(known, event)
                )
            case events.ThinkingFinished():
                self._said.change_block(
                    event.message, event.seq, event.block, lambda known: blocks.thinking_finished(known, event)
                )
            case events.AnswerFinished():
                self._spend(event)
                self._said.change(event.message, event.seq, lambda known: transcript.finish(known, event))
            case events.CitationAdded():
                self._said.change_block(event.message, event.seq, event.block, lambda known: blocks.cite(known, event))

            case events.ToolCalled():
                self._said.change_block(
                    event.message, event.seq, event.block, lambda known: blocks.set_input(known, event)
                )
            case events.ToolStarted():
                self._said.change_call(event.call, event.seq, lambda tool: blocks.tool_started(tool, event))
            case events.ToolFinished():
                self._said.change_call(event.call, event.seq, lambda tool: blocks.tool_finished(tool, event))

            case events.RequestOpened():
                self._open_request(event)
            case events.RequestResolved():
                self._resolve_request(event)

            case events.SubagentStarted():
                self._set(subagents=activity.subagent_started(state.subagents, event))
            case events.SubagentFinished():
                self._set(subagents=activity.subagent_ended(state.subagents, event))
            case events.ExchangeSent():
                self._set(exchanges=exchanges.record_sent(state.exchanges, event))
            case events.ExchangeReturned():
                self._set(exchanges=exchanges.record_return(state.exchanges, event))

            case events.ContextMeasured():
                self._set(
                    context=ContextMeter(
                        used_tokens=event.used_tokens,
                        window_tokens=event.window_tokens,
                        estimated=event.estimated,
                        compressed=state.context.compressed if state.context else False,
                        breakdown=event.breakdown,
                    )
                )
            case events.ContextCompressed():
                window = state.context.window_tokens if state.context else None
                self._spend(event)
                self._set(
                    context=ContextMeter(used_tokens=event.after_tokens, window_tokens=window, compressed=True),
                    compressions=compressions.keep_latest((*state.compressions, compressions.compression_of(event))),
                )
            case events.KnowledgeRecalled():
                if event.message:
                    known = Knowledge(sources=event.sources, tokens=event.tokens, text=event.text)
                    self._said.change(event.message, event.seq, lambda message: replace(message, knowledge=known))
            case events.FilesChanged():
                self._set(files=activity.files_changed(state.files, event))
                if event.call:
                    self._said.change_call(event.call, event.seq, lambda tool: blocks.files_changed(tool, event))
            case events.PlanUpdated():
                self._set(plan=event.plan)
            case events.ProcessStarted():
                self._set(processes=activity.process_started(state.processes, event))
            case events.ProcessFinished():
                self._set(processes=activity.process_ended(state.processes, event))
            case events.ModelSwitched():
                if state.turn:
                    switch = Switch(to_model=event.to_model, from_model=event.from_model, reason=event.reason)
                    self._set(turn=replace(state.turn, model=event.to_model, switch=switch))
            case events.GrantAdded():
                self._set(grants=activity.add_grant(state.grants, event))
            case events.GrantRemoved():
                self._set(grants=activity.remove_grant(state.grants, event))

            case (
                events.MissionSet()
                | events.MissionCleared()
                | events.MissionTriggered()
                | events.AgentOverridden()
                | events.LogCompacted()
                | events.UnknownEvent()
            ):
                pass  # Nothing in a conversation's view depends on these; `seq` moves on.
            case _:
                assert_never(event)

    def _spend(self, event: events.AnswerFinished | events.ContextCompressed) -> None:
        if self._state.turn and (event.usage or event.cost_usd):
            self._set(turn=turns.add_usage(self._state.turn, event))

    def _end_turn(self, event: events.TurnFinished | events.TurnInterrupted) -> None:
        state = self._state
        if state.turn is None or state.turn.id != (event.turn or ""):
            return  # The end of a turn that is over, or was never begun, ends no other.
        summary = turns.summary_of(state.turn, event)
        self._set(
            turn=None,
            last_turn=summary,
            usage=state.usage + event.usage,
            cost_usd=state.cost_usd + (event.cost_usd or 0.0),
        )
        if summary.outcome in ("failed", "interrupted", "limited"):
            self._said.mark_end(summary, event.seq)

    def _end_of_last_turn(self) -> str | None:
        """The message at which a failed or completed task ended, while the conversation rests."""
        last = self._state.last_turn
        if self._state.turn is not None or last is None or last.outcome not in turns.SEEN_AT_REST:
            return None
        return self._said.end_of(last.id)

    def _forget_outcome(self, end: str | None) -> None:
        """If the message at which the last turn ended was taken away, the conversation is idle."""
        last = self._state.last_turn
        if last is not None and end is not None and not self._said.has(end):
            self._set(last_turn=turns.without_outcome(last))

    def _open_request(self, event: events.RequestOpened) -> None:
        if find_request(self._state, event.request) is not None:
            return
        self._set(requests=(*self._state.requests, requests.request_of(event)))
        if event.call:
            self._said.change_call(event.call, event.seq, lambda tool: blocks.waiting(tool, event))

    def _resolve_request(self, event: events.RequestResolved) -> None:
        """The first resolution is the resolution."""
        request = find_request(self._state, event.request)
        if request is None or request.status != "open":
            return
        self._set(requests=requests.with_resolved(self._state.requests, request, event))
        if request.call:
            self._said.change_call(request.call, event.seq, blocks.set_result)


def _merge(params: dict[str, object], patch: dict[str, object]) -> dict[str, object]:
    merged = {**params, **patch}
    return {key: value for key, value in merged.items() if value is not None}

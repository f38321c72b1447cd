"""Everything that may happen to a conversation, in any order: people, backends, crashes, compaction, forgetting.

A Hypothesis state machine over the model owner; after every step the promises are checked. `test_core_machine.py` runs it,
and shows that it would notice: each seeded bug must make it fail.
"""

from typing import Literal

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from palaver.core.decide.decide import Already, Refusal, decide
from palaver.core.state import find_request, is_from_elsewhere
from palaver.schema.base import Delivery, Verdict
from palaver.schema.commands import (
    Accepted,
    Answer,
    AskFirst,
    ClearDraft,
    Command,
    DecideTools,
    DeleteConversation,
    Deliver,
    EditMessage,
    EditQueued,
    Fill,
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
    Rewriting,
    SendMessage,
    SetDraft,
    SetParams,
    StopProcess,
    StopTurn,
    ToolDecision,
    TruncateMessages,
    UpdateConversation,
    YieldTurn,
)
from palaver.schema.events import AnswerStarted, ExchangeReturned, ExchangeSent, TurnFinished, TurnStarted
from palaver.schema.view import Message, TextBlock, ToolBlock
from tests.rigs.core import backend, promises
from tests.rigs.core.owner import Owner

AGENTS = st.sampled_from((None, None, None, "default", "other"))
MODES = st.sampled_from((None, None, None, "plan"))
DELIVERIES: st.SearchStrategy[Delivery] = st.sampled_from(("turn", "boundary"))
VERDICTS: st.SearchStrategy[Verdict] = st.sampled_from(("allow", "deny"))
MANNERS: st.SearchStrategy[Literal["sync", "async"]] = st.sampled_from(("sync", "async"))
SO_FAR: st.SearchStrategy[Literal["queued", "started", "timeout"] | None] = st.sampled_from(
    (None, "queued", "started", "timeout")
)
ENDS: st.SearchStrategy[Literal["complete", "failed", "cancelled"]] = st.sampled_from(
    ("complete", "failed", "cancelled")
)
NOBODY = "nobody"


class CoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.owner = Owner()
        self.snapshots: list[tuple[int, bytes]] = []
        self.answered: dict[str, tuple[Order, Accepted]] = {}
        self.sent: list[str] = []
        self.asked_for: list[str] = []

    @initialize(resumable=st.booleans(), branched=st.booleans())
    def begins(self, resumable: bool, branched: bool) -> None:
        self.owner.resumable = resumable
        if branched:
            self.owner.ask(RestoreMessages(messages=(_cut_answer(),)))

    # -- people

    @rule(
        data=st.data(),
        count=st.integers(1, 3),
        delivery=DELIVERIES,
        priority=st.booleans(),
        merge=st.booleans(),
        agent=AGENTS,
        mode=MODES,
    )
    def sends(
        self,
        data: st.DataObject,
        count: int,
        delivery: Delivery,
        priority: bool,
        merge: bool,
        agent: str | None,
        mode: str | None,
    ) -> None:
        command = SendMessage(
            content="hello", delivery=delivery, priority=priority, merge=merge, agent=agent, mode=mode
        )
        for _ in range(count):
            answer = self._ask(command, data)
            if isinstance(answer, Accepted):
                assert answer.id is not None
                self.sent.append(answer.id)
                assert answer.queued or answer.turn, "a message was accepted and went nowhere"

    def _changes_the_queue(self, data: st.DataObject) -> None:
        items = [NOBODY, *(item.id for item in self.owner.state.queue)]
        item = data.draw(st.sampled_from(items))
        commands: tuple[Command, ...] = (
            RemoveQueued(item=item),
            EditQueued(item=item, content="changed"),
            EditQueued(item=item, held=data.draw(st.booleans())),
            EditQueued(held=data.draw(st.booleans())),
            EditQueued(item=item, priority=data.draw(st.booleans())),
            EditQueued(item=item, before=data.draw(st.sampled_from(["", *items]))),
        )
        self._ask(data.draw(st.sampled_from(commands)), data)
        self._may_reach_a_boundary(data)

    def _stops(self, data: st.DataObject) -> None:
        turn = self.owner.state.turn
        wanted = data.draw(st.sampled_from((None, turn.id if turn else None, NOBODY)))
        before = turn.id if turn else None
        holding = Interrupt(turn=wanted, hold_queue=True)
        stops: tuple[Order, ...] = (Interrupt(turn=wanted), holding, StopTurn(reason="parent", turn=wanted))
        stop = data.draw(st.sampled_from(stops))
        self._ask(stop, data)
        now = self.owner.state.turn
        if before and wanted != NOBODY:
            assert now is None or now.id != before, "a stop did not stop"
        if stop is holding:
            assert all(item.held for item in self.owner.state.queue), "I11: a stop that holds the queue left some of it"
            assert now is None or now.id == before, "I11: what a stop was to hold slipped out"

    def _speaks_from_elsewhere(self, data: st.DataObject) -> None:
        orders: tuple[Order, ...] = (
            PostAnswer(content="from afar", agent="afar"),
            YieldTurn(),
            AskFirst(request=self.owner.new_id(), tool="chat_assistant_post"),
        )
        self._ask(data.draw(st.sampled_from(orders)), data)

    @rule(data=st.data())
    def does_something_else(self, data: st.DataObject) -> None:
        """One rule for many commands: were each a rule of its own, no agent would ever get to work."""
        state = self.owner.state
        possible = [self._stops, self._rewrites_history, self._rewrites_history, self._changes_the_conversation]
        possible += [self._another_agent_writes, self._writes_to_another_agent, self._another_agent_answers]
        possible += [self._speaks_from_elsewhere]
        if state.queue:
            possible += [self._changes_the_queue] * 4 + [self._stops] * 2
        if state.status == "waiting_ide" or data.draw(st.integers(0, 9)) == 0:
            possible += [self._an_editor_answers] * 4
        if state.status == "paused":
            possible += [self._decides_together] * 4
        if len(self.owner.log) > 60:
            possible.append(self._deletes)
        data.draw(st.sampled_from(possible))(data)

    # -- other agents

    def _another_agent_writes(self, data: st.DataObject) -> None:
        exchange = f"in{len(self.owner.log)}" if data.draw(st.booleans()) else None
        answer = self._ask(Deliver(content="well?", exchange=exchange, trigger="message" if exchange else "task"), data)
        if isinstance(answer, Accepted):
            assert answer.id is not None
            self.sent.append(answer.id)

    def _writes_to_another_agent(self, data: st.DataObject) -> None:
        turn = self.owner.state.turn
        if turn is None:
            return
        exchange = f"out{len(self.owner.log)}"
        mode = data.draw(MANNERS)
        self.owner.take(turn.id, ExchangeSent(exchange=exchange, agent="other", to="t", mode=mode))
        if status := data.draw(SO_FAR):
            self.owner.take(turn.id, ExchangeReturned(exchange=exchange, status=status))

    def _another_agent_answers(self, data: st.DataObject) -> None:
        known = [known.id for known in self.owner.state.exchanges if known.direction == "out"]
        exchange = data.draw(st.sampled_from([NOBODY, *known]))
        self._ask(ReturnExchange(exchange=exchange, status=data.draw(ENDS), response="so"), data)

    @precondition(lambda self: bool(self.owner.state.requests) and not self.owner.state.deleted)
    @rule(data=st.data(), deciders=st.integers(1, 8))
    def decides(self, data: st.DataObject, deciders: int) -> None:
        """Many may race for one decision: the first applies, the others are told."""
        waiting = [known.id for known in self.owner.state.requests if known.status == "open"]
        others = [NOBODY, *(known.id for known in self.owner.state.requests)]
        sensible = data.draw(st.booleans())
        request = data.draw(st.sampled_from(waiting if waiting and sensible else others))
        applied = 0
        for _ in range(deciders):
            command = ResolveRequest(
                request=request,
                verdict=data.draw(VERDICTS),
                answers=(Answer(selected=("x",)),),
                text=data.draw(st.sampled_from((None, "because"))),
            )
            answer = self._ask(command, data)
            assert request == NOBODY or isinstance(answer, Accepted | Already), f"I17: cannot be answered: {answer}"
            applied += isinstance(answer, Accepted)
        assert applied <= 1, "I16: more than one decision applied"

    def _decides_together(self, data: st.DataObject) -> None:
        calls = [NOBODY, *(known.call for known in self.owner.state.requests if known.call)]
        chosen = data.draw(st.lists(st.sampled_from(calls), unique=True, max_size=3))
        decisions = tuple(ToolDecision(call=call, accepted=data.draw(st.booleans())) for call in chosen)
        self._ask(DecideTools(decisions=decisions, accepted=data.draw(st.booleans())), data)

    def _rewrites_history(self, data: st.DataObject) -> None:
        messages = [NOBODY, *(message.id for message in self.owner.whole().messages)]
        message, index = data.draw(st.sampled_from(messages)), data.draw(st.integers(-1, len(messages)))
        commands: tuple[Rewriting, ...] = (
            EditMessage(message=message, content="edited", regenerate=data.draw(st.booleans())),
            RemoveMessage(message=message),
            TruncateMessages(from_index=index),
            RetryFrom(index=index, content="again"),
            RemoveMessage(message=message, regenerate=True),
            TruncateMessages(from_index=index, flat=True),
            RetryFrom(index=index, content="again", flat=True),
            Regenerate(),
            RestoreMessages(messages=(_cut_answer(),)),
            Fill(messages=(_cut_answer(),), new_ids=True, title="Theirs", word="branch_from_chat"),
        )
        command = data.draw(st.sampled_from(commands))
        if data.draw(st.booleans()):
            command = msgspec.structs.replace(command, when_busy="queue", priority=data.draw(st.booleans()))
        answer = self._ask(command, data, loaded=data.draw(st.booleans()))
        if isinstance(answer, Accepted) and answer.queued:
            assert answer.id is not None
            self.asked_for.append(answer.id)
            self._may_reach_a_boundary(data)

    def _changes_the_conversation(self, data: st.DataObject) -> None:
        commands: tuple[Command, ...] = (
            UpdateConversation(title="Mine"),
            UpdateConversation(agent="other"),
            SetParams(patch={"a": 1, "b": None}),
            SetDraft(text="dra"),
            ClearDraft(),
            RemoveGrant(tool="shell"),
        )
        self._ask(data.draw(st.sampled_from(commands)), data)

    def _deletes(self, data: st.DataObject) -> None:
        if data.draw(st.integers(0, 9)) == 0:
            self._ask(DeleteConversation(), data)

    def _an_editor_answers(self, data: st.DataObject) -> None:
        calls = [b.call for m in self.owner.state.messages for b in m.blocks if isinstance(b, ToolBlock)]
        call = data.draw(st.sampled_from([NOBODY, *calls]))
        self._ask(ReturnToolResult(call=call, content="done", failed=data.draw(st.booleans())), data)

    @precondition(lambda self: bool(self.answered))
    @rule(data=st.data())
    def repeats(self, data: st.DataObject) -> None:
        """The same id again: the same answer and no effect; another body under it: refused."""
        request_id = data.draw(st.sampled_from(sorted(self.answered)))
        command, answer = self.answered[request_id]
        head = len(self.owner.log)
        assert self.owner.ask(command) == answer, "I9: a repeated command was answered differently"
        other = self.owner.ask(SetDraft(text="something else", client_request_id=request_id))
        assert isinstance(other, Refusal), "I9: another body under a used id was not refused"
        assert len(self.owner.log) == head, "I9: a repeated command had an effect"

    # -- the agent

    @precondition(lambda self: not self.owner.state.deleted)
    @rule(data=st.data(), count=st.integers(1, 12))
    def the_agent_works(self, data: st.DataObject, count: int) -> None:
        turn = self._running_turn()
        for _ in range(count):
            self.owner.take(turn, backend.acts(self.owner, data))

    @precondition(lambda self: not self.owner.state.deleted)
    @rule(data=st.data(), count=st.integers(1, 4))
    def the_agent_calls_tools(self, data: st.DataObject, count: int) -> None:
        """Straight to where it gets interesting: a whole answer with calls, each of them asked about, begun or left."""
        turn = self._running_turn()
        for event in backend.answers_with_calls(self.owner, count, data):
            self.owner.take(turn, event)

    @precondition(lambda self: not self.owner.state.deleted)
    @rule(data=st.data(), count=st.integers(1, 3))
    def a_restart_cuts_what_waits(self, data: st.DataObject, count: int) -> None:
        """What can still be answered stays; an answer goes on from there."""
        self.the_agent_calls_tools(data, count)
        waiting = {known.id for known in self.owner.state.requests if known.status == "open"}
        undisturbed = self.owner.resumable and not self.owner.state.queue
        self.owner.restart()
        left = {known.id for known in self.owner.state.requests if known.status == "open"}
        calls = {known.id for known in self.owner.state.requests if known.kind == "approval"}
        assert not undisturbed or left & calls == waiting & calls, "I17: a restart lost a request that can be answered"
        answers = data.draw(st.booleans())
        if left and answers:
            request = data.draw(st.sampled_from(sorted(left)))
            verdict = data.draw(VERDICTS)
            known = find_request(self.owner.state, request)
            assert known is not None
            # Nobody here goes on with a plan that was turned down, nor with what an agent elsewhere asked for.
            dropped = is_from_elsewhere(known) or (verdict == "deny" and known.kind == "plan")
            self._ask(ResolveRequest(request=request, verdict=verdict), data)
            assert dropped or self.owner.state.turn is not None, "I17: the answer did not go on"

    @precondition(lambda self: self.owner.state.turn is not None)
    @rule(data=st.data(), what=st.sampled_from(("held", "command", "stop")))
    def what_must_wait_meets_a_boundary(self, data: st.DataObject, what: str) -> None:
        """Straight to where it gets interesting: messages on hold, a command, or a stop that holds what waits."""
        if what == "command":
            self._rewrites_history(data)
        else:
            self.sends(data, 2, "boundary", True, False, None, None)
        if what == "held":
            for item in self.owner.state.queue:
                self._ask(EditQueued(item=item.id, held=True), data)
        if what == "stop":
            self._stops(data)
        self.owner.boundary()

    @precondition(lambda self: self.owner.state.turn is not None)
    @rule(data=st.data(), how=st.sampled_from(("finish", "fail", "boundary", "cut")))
    def the_turn_moves_on(self, data: st.DataObject, how: str) -> None:
        turn = self.owner.state.turn
        assert turn is not None
        if how == "finish":
            self.owner.take(turn.id, backend.ends(data))
        elif how == "fail":
            self.owner.fail()
        elif how == "cut":
            # Stopped before the first word.
            self.owner.take(turn.id, AnswerStarted(message=self.owner.new_id()))
            self._stops(data)
        else:
            self.owner.boundary()

    @precondition(lambda self: bool(self._ended_turns()))
    @rule(data=st.data())
    def output_comes_late(self, data: st.DataObject) -> None:
        head = len(self.owner.log)
        self.owner.take(*backend.late(self.owner, self._ended_turns(), data))
        assert len(self.owner.log) == head, "I20: late output was recorded"

    @precondition(lambda self: any(process.running for process in self.owner.state.processes))
    @rule(data=st.data(), by_itself=st.booleans())
    def a_process_ends(self, data: st.DataObject, by_itself: bool) -> None:
        process = data.draw(st.sampled_from([known.id for known in self.owner.state.processes]))
        if by_itself:
            self.owner.process_ended(process)
        else:
            self._ask(StopProcess(process=process), data)

    @precondition(lambda self: any(known.status == "open" for known in self.owner.state.requests))
    @rule(data=st.data())
    def nobody_answers(self, data: st.DataObject) -> None:
        waiting = [known.id for known in self.owner.state.requests if known.status == "open"]
        self.owner.expire(data.draw(st.sampled_from(waiting)))

    # -- the server

    @rule(data=st.data())
    def the_server_goes_down(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from((self._restarts, self._crashes_after_accepting)))(data)

    def _restarts(self, data: st.DataObject) -> None:
        start = data.draw(st.sampled_from([None, *self.snapshots[-3:]]))
        self.owner.restart(promises.read(start[1]) if start else None)

    def _crashes_after_accepting(self, data: st.DataObject) -> None:
        """What was asked is on disk, and nothing came after it."""
        words = SendMessage(content="last words")
        commands: tuple[Order, ...] = (words, Regenerate(when_busy="queue"))
        command = data.draw(st.sampled_from(commands))
        answer = self.owner.ask(command, drained=False)
        self.owner.restart()
        if isinstance(answer, Accepted) and (command is words or answer.queued):
            assert answer.id is not None
            (self.sent if command is words else self.asked_for).append(answer.id)

    @rule(kept=st.integers(1, 8))
    def keeps_a_snapshot(self, kept: int) -> None:
        """And at rest only the last messages stay in memory."""
        self.snapshots.append((self.owner.state.seq, msgspec.json.encode(self.owner.state)))
        del self.snapshots[:-4]
        if self.owner.state.turn is None and kept < 5:
            self.owner.forget(kept)

    # -- what must hold

    @invariant()
    def promises_hold(self) -> None:
        log, state = self.owner.log, self.owner.state
        promises.events_are_numbered_without_gap(log)
        promises.turns_alternate(log)
        promises.messages_are_consumed_once(log)
        promises.nothing_stands_idle(state)
        promises.held_items_stay(log)
        promises.every_call_has_its_result(log, self.owner.whole())
        promises.nothing_half_done_at_rest(state)
        promises.decisions_apply_once(log, state)
        promises.open_requests_are_shown(log, state)
        promises.processes_end_once(log, state)
        promises.exchanges_end_once(log, state)
        promises.turns_say_what_they_answer(log)
        promises.settling_is_idempotent(state, self.owner.now)
        promises.settling_keeps_its_order(state, self.owner.now)
        promises.every_fold_agrees(log, state, self.snapshots)

    @invariant()
    def open_requests_can_be_answered(self) -> None:
        for known in self.owner.state.requests:
            if known.status == "open" and not self.owner.state.deleted:
                command = ResolveRequest(request=known.id, verdict="allow")
                decision = decide(self.owner.state, command, self.owner.facts())
                assert isinstance(decision, list), f"I17: cannot be answered: {decision}"

    def teardown(self) -> None:
        """Once nothing new happens, every conversation comes to rest, and no accepted message was lost."""
        owner = self.owner
        for _ in range(len(owner.state.queue) + 2):
            if owner.state.turn is not None:
                owner.take(owner.state.turn.id, TurnFinished(outcome="completed"))
        assert owner.state.turn is None, "I11: it does not come to rest"
        self.promises_hold()
        promises.accepted_messages_are_kept(owner.log, owner.state, self.sent)
        promises.queued_commands_end_once(owner.log, owner.state, self.asked_for)

    def _ask(self, command: Order, data: st.DataObject, *, loaded: bool = True) -> Accepted | Refusal | Already:
        if data.draw(st.booleans()):
            command = msgspec.structs.replace(command, client_request_id=f"r{len(self.answered)}")
        deleted, head = self.owner.state.deleted, len(self.owner.log)
        answer = self.owner.ask(command, loaded=loaded)
        if not isinstance(answer, Accepted):
            assert len(self.owner.log) == head, "a refusal left a trace"
        elif command.client_request_id:
            self.answered[command.client_request_id] = (command, answer)
        assert not (deleted and isinstance(answer, Accepted)), "a deleted conversation accepted a command"
        return answer

    def _may_reach_a_boundary(self, data: st.DataObject) -> None:
        """The agent asks what joins its turn right after somebody changed what waits."""
        if self.owner.state.turn is not None and data.draw(st.booleans()):
            self.owner.boundary()

    def _running_turn(self) -> str:
        if self.owner.state.turn is None:
            self.owner.ask(SendMessage(content="go on"))
        assert self.owner.state.turn is not None, "a message at rest began no turn"
        return self.owner.state.turn.id

    def _ended_turns(self) -> list[str]:
        active = self.owner.state.turn.id if self.owner.state.turn else None
        started = [event.turn for event in self.owner.log if isinstance(event, TurnStarted)]
        return [turn for turn in started if turn is not None and turn != active]


def _cut_answer() -> Message:
    """A message that was under way where it comes from."""
    blocks = (
        TextBlock(index=0, text="a", status="streaming"),
        ToolBlock(index=1, call="restored", name="shell", status="running", input={}),
    )
    return Message(id="old", role="assistant", seq=1, updated_seq=1, ts=1, blocks=blocks)

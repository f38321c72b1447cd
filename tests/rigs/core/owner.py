"""An owner of a conversation without disk, clock or tasks: decide → number → evolve → next_turn, and nothing else.

It mirrors what `conversation/conversation.py` does with the same pure functions, so that a rig can drive the core through
years of commands, backends and crashes in a second. Kept small on purpose: whatever it got right by itself would hide a
mistake of the core.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from palaver.core import next as coming
from palaver.core import settle as settling
from palaver.core.decide import decide as deciding
from palaver.core.decide.facts import Facts, Runner
from palaver.core.decide.history import NeedsAll
from palaver.core.decide.next_step import continue_queue
from palaver.core.exchanges import stamp
from palaver.core.fold import evolve as folding
from palaver.core.state import find_request, shorten
from palaver.schema.base import Origin
from palaver.schema.commands import Accepted, Deliver, Order, SendMessage
from palaver.schema.errors import WireError
from palaver.schema.events import (
    ConversationCreated,
    KnownEvent,
    TurnFinished,
    UnknownEvent,
    decode_event,
    encode_event,
)
from palaver.schema.view import State

Answer = Accepted | deciding.Refusal | deciding.Already


@dataclass(slots=True)
class Owner:
    resumable: bool = True
    log: list[KnownEvent] = field(default_factory=list[KnownEvent])
    state: State = field(default_factory=State)
    dropped_late: int = 0
    _ids: int = 0

    def __post_init__(self) -> None:
        self.commit([ConversationCreated()])

    # -- what comes in

    def ask(self, command: Order, *, drained: bool = True, loaded: bool = True) -> Answer:
        """One command. `drained=False`: the crash comes before the next turn could start."""
        request_id = command.client_request_id
        if request_id and (used := [event for event in self.log if _claims(event, request_id)]):
            if used[0].body_hash != deciding.body_hash(command):
                return deciding.Refusal("conflict", "used for another command")
            return deciding.acceptance_of("c", self.log[used[0].seq - 1 : used[-1].seq], request_id)
        if loaded and self.state.turn is None and isinstance(command, NeedsAll):
            self.state = self.whole()
        agent = command.agent if isinstance(command, SendMessage | Deliver) else None
        decision = deciding.decide(self.state, command, self.facts(agent))
        if not isinstance(decision, list):
            return decision
        answer = deciding.acceptance_of("c", self.commit(decision), request_id)
        if drained:
            self.drain()
        return answer

    def take(self, turn: str, event: KnownEvent) -> None:
        """What a backend yields. Late output is dropped and counted."""
        active = self.state.turn
        if active is None or active.id != turn:
            self.dropped_late += 1
            return
        event = replace(event, turn=turn)
        self.commit(settling.finish(self.state, event, now=self.now) if isinstance(event, TurnFinished) else [event])
        self.commit(settling.end_yielding_turn(self.state, now=self.now))
        self.drain()

    def boundary(self) -> None:
        self.commit(coming.boundary_messages(self.state))

    def fail(self) -> None:
        self.commit(settling.fail(self.state, WireError(code="exited", message="It is gone."), now=self.now))
        self.drain()

    def expire(self, request: str) -> None:
        known = find_request(self.state, request)
        if known is not None and known.status == "open":
            self.commit(settling.expire(self.state, known))
            self.drain()

    def process_ended(self, process: str) -> None:
        known = next((known for known in self.state.processes if known.id == process), None)
        if known is not None and known.running:
            self.commit(coming.process_ended(self.state, known, 0, "It ended.", self.facts()))
            self.drain()

    def restart(self, snapshot: State | None = None) -> None:
        """All memory is gone; what the log holds is brought back, and settled."""
        start = snapshot or State()
        self.state = folding.fold(start, (event for event in self.log if event.seq > start.seq))
        self.commit(settling.settle(self.state, "restart", now=self.now))
        self.commit(settling.reap(self.state, self.new_id))
        self.drain()

    def forget(self, kept: int) -> None:
        """Only the last messages stay in memory, as in a conversation that rests."""
        self.state = shorten(self.state, kept)

    def whole(self) -> State:
        return folding.fold(State(), self.log)

    # -- how it works

    def drain(self) -> None:
        while items := coming.next_items(self.state):
            if items[0].command is not None:
                self.state = self.whole()
            self.commit(continue_queue(self.state, self.facts(items[0].agent, items[0].origin)))

    def commit(self, events: Sequence[KnownEvent]) -> list[KnownEvent]:
        """Numbered, stored as bytes, read back: the state is what a reader of the log would see."""
        numbered: list[KnownEvent] = []
        for seq, event in enumerate(stamp(self.state, events), self.state.seq + 1):
            whole = replace(event, seq=seq, id=f"e{seq}", ts=1_000 * seq, conversation="c")
            stored = decode_event(encode_event(whole))
            assert not isinstance(stored, UnknownEvent), f"cannot be read back: {whole}"
            numbered.append(stored)
        self.log.extend(numbered)
        self.state = folding.fold(self.state, numbered)
        return numbered

    @property
    def now(self) -> int:
        return 1_000 * (self.state.seq + 1)

    def new_id(self) -> str:
        self._ids += 1
        return f"i{self._ids}"

    def facts(self, agent: str | None = None, origin: Origin | None = None) -> Facts:
        runner = Runner(agent=agent or self.state.agent, backend="model", resumable=self.resumable)
        return Facts(now=self.now, new_id=self.new_id, runner=runner, origin=origin or Origin(client="rig"))


def _claims(event: KnownEvent, request_id: str) -> bool:
    return event.client_request_id == request_id and event.body_hash is not None

"""What the projection must know of the events before: what is open, and of the active run what it said.

Used by `project` alone, for one conversation at one place of its log. It follows from the events one by one, or at once
from the folded view at that place; both give the same frames from there on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from palaver.core import queue
from palaver.core.exchanges import ENDS
from palaver.core.state import messages_of_turn, open_requests, open_tools
from palaver.schema.view import Block, Message, QueueItem, Request, State, TextBlock, ThinkingBlock, ToolBlock

Kind = Literal["text", "thinking"]
Place = tuple[str, int]
"""A block: its message and its index there."""


@dataclass(slots=True)
class Writing:
    """A block that is being written."""

    kind: Kind
    pieces: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(slots=True)
class Call:
    """A call without a result. `told`: its `tool_call_start` was said."""

    message: str
    response: str
    """The run that made it."""
    name: str
    told: bool = True
    runs: bool = False
    waits: bool = False
    """For a person. What runs or waits is not taken back by a new attempt at the answer."""
    output_chars: int = 0
    """How much of its output was streamed."""


@dataclass(slots=True)
class Memory:
    turn: str | None = None
    """The active run: the `responseId` of all its frames."""
    answers: dict[str, int] = field(default_factory=dict[str, int])
    """Answers of the active run but for those that were taken back, and the number of each one's first block in the run."""
    blocks: int = 0
    """Block numbers of the run that are used up."""
    writing: dict[Place, Writing] = field(default_factory=dict[Place, Writing])
    written: set[Place] = field(default_factory=set[Place])
    """Blocks of those answers that are whole, calls too: what comes for one of them later is too late."""
    texts: dict[Place, str] = field(default_factory=dict[Place, str])
    """Text blocks of those answers that are over."""
    cut: set[Place] = field(default_factory=set[Place])
    """Those of them that were interrupted."""
    half_told: set[str] = field(default_factory=set[str])
    """Answers whose reader has some of the fragments, while the log has no longer any."""
    said: bool = False
    """Something was told of the active run."""
    is_text_done: bool = False
    """The `text_done` of the active run was told, because it was cancelled."""
    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    requests: dict[str, Request] = field(default_factory=dict[str, Request])
    waiting: queue.Queue = ()
    exchanges: dict[str, bool] = field(default_factory=dict[str, bool])
    """Words to other agents that are not answered; true: the answer comes as a callback."""

    def begin_turn(self, turn: str | None) -> None:
        """None: the turn is over."""
        self.turn = turn
        self.answers.clear()
        self.blocks = 0
        self.writing.clear()
        self.written.clear()
        self.texts.clear()
        self.cut.clear()
        self.half_told.clear()
        self.said = self.is_text_done = False

    def begin_answer(self, message: str) -> None:
        self.answers[message] = self.blocks

    def block_number(self, place: Place) -> int:
        """Of a block that is told, among all of the run. It follows from places alone, so that a replay counts the same."""
        number = self.answers[place[0]] + place[1]
        self.blocks = max(self.blocks, number + 1)
        return number

    def text(self) -> str:
        """All that the active run said, in order."""
        unfinished = {place: writing.text for place, writing in self.writing.items() if writing.kind == "text"}
        texts = {**self.texts, **unfinished}
        places = sorted(texts, key=lambda place: self.answers[place[0]] + place[1])
        return "\n\n".join(texts[place] for place in places if texts[place])

    def forget_answer(self, message: str) -> None:
        del self.answers[message]
        self.texts = {place: text for place, text in self.texts.items() if place[0] != message}
        self.cut = {place for place in self.cut if place[0] != message}

    def place_in_queue(self, item: str) -> tuple[int, QueueItem] | None:
        """Counted from 1: the place a person would name."""
        return next(((place, known) for place, known in enumerate(self.waiting, 1) if known.id == item), None)


def memory_of(state: State, streamed_chars: Mapping[str, int] | None = None) -> Memory:
    """`streamed_chars` by call, for those whose view holds only the end of what they said (`cut_outputs`)."""
    memory = Memory(
        turn=state.turn.id if state.turn else None,
        requests={known.id: known for known in open_requests(state)},
        waiting=tuple(item for item in state.queue if item.command is None),
        exchanges={
            known.id: known.callback
            for known in state.exchanges
            if known.direction == "out" and known.status not in ENDS
        },
    )
    for message, tool in open_tools(state):
        memory.calls[tool.call] = Call(
            message.id,
            message.turn or message.id,
            tool.name,
            told=tool.status != "input",
            runs=tool.status == "running",
            waits=tool.status == "waiting",
            output_chars=(streamed_chars or {}).get(tool.call, len(tool.output)),
        )
    for message in messages_of_turn(state, state.turn.id) if state.turn else ():
        if message.role == "assistant":
            _remember_answer(memory, message)
    return memory


def begins_within_turn(state: State) -> bool:
    """Whether the view holds too few messages to say all that the active run said."""
    turn = state.turn
    if turn is None or not state.offset:
        return False
    return all(message.turn == turn.id or message.role not in ("user", "assistant") for message in state.messages)


def cut_outputs(state: State) -> dict[str, int]:
    """Open calls of whose output the view holds only the end, and where their answers begin in the log."""
    return {tool.call: message.seq for message, tool in open_tools(state) if tool.truncated}


def _remember_answer(memory: Memory, message: Message) -> None:
    memory.begin_answer(message.id)
    for block in message.blocks:
        place = (message.id, block.index)
        _count(memory, place, block)
        if message.status != "superseded":
            _remember(memory, place, block)
    if message.status == "superseded":
        memory.forget_answer(message.id)


def _count(memory: Memory, place: Place, block: Block) -> None:
    """Whatever was told of a block, also of one that was taken back."""
    match block:
        case TextBlock() | ThinkingBlock() if block.text:
            memory.said = True
            memory.block_number(place)
        case ToolBlock() if block.status != "input":
            memory.said = True
        case _:
            pass


def _remember(memory: Memory, place: Place, block: Block) -> None:
    match block:
        case TextBlock(status="streaming") | ThinkingBlock(status="streaming"):
            if block.text:
                kind: Kind = "text" if isinstance(block, TextBlock) else "thinking"
                memory.writing[place] = Writing(kind, [block.text])
        case TextBlock():
            memory.written.add(place)
            memory.texts[place] = block.text
            memory.cut |= {place} if block.status == "interrupted" else set()
        case ThinkingBlock():
            memory.written.add(place)
        case ToolBlock() if block.status != "input":
            memory.written.add(place)
        case _:
            pass

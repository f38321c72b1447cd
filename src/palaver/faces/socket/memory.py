"""What the projection must know of the events before: what is open, and nothing that is over.

Used by `project` alone, for one conversation at one place of its log. It follows from the events one by one, or at once
from the folded view at that place; both give the same frames from there on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from palaver.core import queue
from palaver.core.exchanges import ENDS
from palaver.core.state import messages_of_turn, open_requests, open_tools
from palaver.schema.view import Block, QueueItem, Request, State, TextBlock, ThinkingBlock, ToolBlock

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
    answers: set[str] = field(default_factory=set[str])
    """Of the active turn, but for those that were taken back."""
    writing: dict[Place, Writing] = field(default_factory=dict[Place, Writing])
    written: set[Place] = field(default_factory=set[Place])
    """Blocks of those answers that are whole, calls too: what comes for one of them later is too late."""
    half_told: set[str] = field(default_factory=set[str])
    """Answers whose reader has some of the fragments, while the log has no longer any."""
    said: str | None = None
    """The latest answer of the active turn of which anything was told."""
    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    requests: dict[str, Request] = field(default_factory=dict[str, Request])
    waiting: queue.Queue = ()
    exchanges: dict[str, bool] = field(default_factory=dict[str, bool])
    """Words to other agents that are not answered; true: the answer comes as a callback."""

    def begin_turn(self, turn: str | None) -> None:
        """None: the turn is over."""
        self.turn = turn
        self.answers.clear()
        self.writing.clear()
        self.written.clear()
        self.half_told.clear()
        self.said = None

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
            tool.name,
            told=tool.status != "input",
            runs=tool.status == "running",
            waits=tool.status == "waiting",
            output_chars=(streamed_chars or {}).get(tool.call, len(tool.output)),
        )
    for message in messages_of_turn(state, state.turn.id) if state.turn else ():
        if message.role != "assistant":
            continue
        if any(_was_told(block) for block in message.blocks):
            memory.said = message.id
        if message.status == "superseded":
            continue
        memory.answers.add(message.id)
        for block in message.blocks:
            _remember(memory, (message.id, block.index), block)
    return memory


def cut_outputs(state: State) -> dict[str, int]:
    """Open calls of whose output the view holds only the end, and where their answers begin in the log."""
    return {tool.call: message.seq for message, tool in open_tools(state) if tool.truncated}


def _remember(memory: Memory, place: Place, block: Block) -> None:
    match block:
        case TextBlock(status="streaming") | ThinkingBlock(status="streaming"):
            if block.text:
                kind: Kind = "text" if isinstance(block, TextBlock) else "thinking"
                memory.writing[place] = Writing(kind, [block.text])
        case TextBlock() | ThinkingBlock():
            memory.written.add(place)
        case ToolBlock() if block.status != "input":
            memory.written.add(place)
        case _:
            pass


def _was_told(block: Block) -> bool:
    match block:
        case TextBlock() | ThinkingBlock():
            return bool(block.text)
        case ToolBlock():
            return block.status != "input"
        case _:
            return False

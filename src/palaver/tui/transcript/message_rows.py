"""The rows of one message: what a person said, what an agent answered block by block, what was told in between. Pure.

Called by the row book, which keeps rows that say the same and puts them in their places.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from palaver.schema.view import (
    Block,
    Exchange,
    ImageBlock,
    Message,
    Request,
    State,
    Subagent,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
)
from palaver.tui.transcript.rows import AttemptRow, ImageRow, NoteRow, Row, TextRow, ThinkingRow, ToolRow, UserRow

TOLD = frozenset({"process_completed", "plan_approved", "plan_revised", "plan_rejected"})
"""Words to the agent that people want to see too: what became of a process or a plan."""

IDLE_PROMPT = "idle_prompt"


@dataclass(slots=True)
class Beside:
    """What stands beside the messages and belongs to one of their calls."""

    requests: dict[str, Request]
    children: dict[str, Subagent]
    exchanges: dict[str, Exchange]

    @classmethod
    def of(cls, state: State) -> "Beside":
        return cls(
            {request.call: request for request in state.requests if request.call},
            {child.call: child for child in state.subagents if child.call},
            {exchange.call: exchange for exchange in state.exchanges if exchange.call},
        )

    def changed(self, other: "Beside") -> Iterator[str]:
        for mine, theirs in (
            (self.requests, other.requests),
            (self.children, other.children),
            (self.exchanges, other.exchanges),
        ):
            for call in mine.keys() | theirs.keys():
                if mine.get(call) is not theirs.get(call):
                    yield call


def has_rows(message: Message) -> bool:
    """What is meant for the model alone is not shown, nor a message that says nothing yet."""
    if message.hidden and (message.event_kind or "") not in TOLD:
        return False
    return message.role != "assistant" or any(not _is_empty_text(block) for block in message.blocks)


def _is_empty_text(block: Block) -> bool:
    return isinstance(block, TextBlock) and block.text == ""


# -- what an agent answered


def attempt_row(message: Message) -> AttemptRow:
    texts = [block.text for block in message.blocks if isinstance(block, TextBlock | ThinkingBlock)]
    return AttemptRow(key=message.id, seq=message.seq, ts=message.ts, text="\n\n".join(texts))


def block_rows(message: Message, beside: Beside) -> Iterator[Row]:
    shown = [block for block in message.blocks if not _is_empty_text(block)]
    for at, block in enumerate(shown):
        yield _block_row(message, block, beside, is_first=at == 0, is_last=at == len(shown) - 1)


def _block_row(message: Message, block: Block, beside: Beside, *, is_first: bool, is_last: bool) -> Row:
    placed = {
        "key": f"{message.id}:{block.index}",
        "seq": message.seq,
        "ts": message.ts,
        "message_id": message.id,
        "turn": message.turn,
        "is_first": is_first,
        "agent": message.agent,
        "model": message.model,
        "message_status": message.status,
    }
    match block:
        case TextBlock():
            return TextRow(**placed, block=block, finish_reason=message.finish_reason if is_last else None)  # type: ignore[arg-type]
        case ThinkingBlock():
            return ThinkingRow(**placed, block=block)  # type: ignore[arg-type]
        case ImageBlock():
            return ImageRow(**placed, block=block)  # type: ignore[arg-type]
        case ToolBlock():
            return ToolRow(
                **placed,  # type: ignore[arg-type]
                block=block,
                request=beside.requests.get(block.call),
                child=beside.children.get(block.call),
                exchange=beside.exchanges.get(block.call),
            )


# -- what was said to it


def is_of_person(message: Message) -> bool:
    """Not what a model has to take for a person's words, and no person said."""
    return message.role == "user" and message.event_kind != IDLE_PROMPT


def user_row(message: Message, *, is_steered: bool) -> UserRow:
    return UserRow(
        key=message.id,
        seq=message.seq,
        ts=message.ts,
        message=message,
        text=_text_of(message),
        images=tuple([block.url for block in message.blocks if isinstance(block, ImageBlock)]),
        is_steered=is_steered,
    )


def note_row(message: Message, agent: str | None) -> NoteRow:
    """`agent`: who answered, when it is an answer to another agent."""
    return NoteRow(
        key=message.id,
        seq=message.seq,
        ts=message.ts,
        role="event" if message.role == "user" else message.role,
        event_kind=message.event_kind,
        message=message,
        text=_text_of(message),
        agent=agent,
    )


def _text_of(message: Message) -> str:
    return "\n".join([block.text for block in message.blocks if isinstance(block, TextBlock)])


def is_steered(messages: tuple[Message, ...], at: int) -> bool:
    """Whether a message joined a turn that was already at work. The log does not say it of a message, but where it stands
    does: a turn's own answer comes before it. Before the first that is at hand nothing is known; an older page may tell."""
    turn = messages[at].turn
    if turn is None:
        return False
    before = at - 1
    while before >= 0 and messages[before].turn == turn and messages[before].role != "assistant":
        before -= 1
    return before >= 0 and messages[before].turn == turn

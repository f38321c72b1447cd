"""A conversation as the flat list of rows the transcript draws: what a row holds. `row_book.py` makes them.

The same rows as the page's (`web/src/model/rows.ts`). A row keeps its identity as long as what it shows does not change,
so a token changes exactly one row. Data only; the words for it are in `text/words.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from palaver.core.fold.compressions import strongest
from palaver.core.text.special_blocks import SpecialBlock, markdown, parse
from palaver.schema.base import Strength
from palaver.schema.errors import WireError
from palaver.schema.view import (
    Compression,
    Exchange,
    FileChange,
    ImageBlock,
    Message,
    Progress,
    Request,
    Role,
    Stopped,
    Subagent,
    Switch,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    TurnSummary,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    key: str
    """Stable and unique within the conversation; also the key of disclosure and selection."""
    seq: int
    """Of the message it belongs to, or follows: for jumps and search hits."""
    ts: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserRow(Placed):
    message: Message
    text: str
    images: tuple[str, ...]
    is_steered: bool = False
    """It joined a turn that was already at work."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OfAgent(Placed):
    """`is_first`: the first row of an answer says who speaks; the others continue it."""

    message_id: str
    turn: str | None
    """None in copies (a branch, an import), which have no turns."""
    is_first: bool
    agent: str | None
    model: str | None
    message_status: Progress


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextRow(OfAgent):
    block: TextBlock
    finish_reason: str | None
    """Set on the last block of a message that was cut by a limit or refused."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThinkingRow(OfAgent):
    block: ThinkingBlock


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImageRow(OfAgent):
    block: ImageBlock


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolRow(OfAgent):
    block: ToolBlock
    request: Request | None = None
    """What was asked for it, and how that ended."""
    child: Subagent | None = None
    """The subagent it started."""
    exchange: Exchange | None = None
    """The word to another agent that it passed on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupRow(OfAgent):
    """A run of reading and searching calls, shown as one line until asked. Members hold the thinking between them too."""

    members: tuple["ToolRow | ThinkingRow", ...]

    @property
    def tools(self) -> list[ToolRow]:
        return [member for member in self.members if isinstance(member, ToolRow)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkRow(OfAgent):
    """The work of a turn in one line. It stands before the first row of it, and hides its rows while it is closed."""

    calls: tuple[ToolBlock, ...]
    """All of the turn."""
    members: tuple["Row", ...]
    """What stands below it when it is open, up to the last row that is hidden while it is not."""
    hidden: tuple["Row", ...]
    is_live: bool
    duration_ms: int | None
    """From its first step to the end of its last call; None while the turn runs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoteRow(Placed):
    """A message by nobody in particular: a process that ended, a summary, another agent's answer."""

    role: Role
    event_kind: str | None
    message: Message
    text: str
    agent: str | None = None
    """Whose answer it brings, where it does."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SwitchRow(Placed):
    """Before the first answer of a model that took over."""

    switch: Switch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttemptRow(Placed):
    """An answer that was cut off and made again: what came of it is kept, folded."""

    text: str


@dataclass(frozen=True, slots=True)
class CompressedRange:
    """The model is shown less of what began before `horizon`."""

    horizon: int
    strength: Strength
    before_tokens: int
    after_tokens: int
    stages: tuple[Compression, ...]
    summary: str | None

    @property
    def saved_percent(self) -> int:
        if self.before_tokens <= 0:
            return 0
        return max(0, round((1 - self.after_tokens / self.before_tokens) * 100))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompressedRow(Placed):
    range: CompressedRange


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangesRow(Placed):
    """What a turn that is over did to files."""

    changes: tuple[FileChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InterruptedRow(Placed):
    stopped: Stopped | None
    turn: TurnSummary | None
    is_last: bool
    """The latest thing in the conversation: Continue makes sense."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ErrorRow(Placed):
    error: WireError
    turn: TurnSummary
    is_last: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DayRow(Placed):
    day_ms: int
    """Midnight, local time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewRow(Placed):
    """Above what came while nobody was looking."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeRow(Placed):
    """Above the first message at hand: the start of the conversation, or that there is more to load."""

    state: Literal["start", "more", "loading", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PendingRow(Placed):
    """Words on their way to the server, shown until they come back as a message or in the queue."""

    text: str
    state: Literal["sending", "offline", "failed"]
    reason: str = ""


Row = (
    UserRow
    | TextRow
    | ThinkingRow
    | ImageRow
    | ToolRow
    | GroupRow
    | WorkRow
    | NoteRow
    | SwitchRow
    | AttemptRow
    | CompressedRow
    | ChangesRow
    | InterruptedRow
    | ErrorRow
    | DayRow
    | NewRow
    | EdgeRow
    | PendingRow
)


Fold = GroupRow | WorkRow
"""A row that hides others, which follow it when it is opened."""


def special_of(block: TextBlock) -> SpecialBlock | None:
    """The widget that a finished text stands for."""
    # Only what may be one is remembered: a long answer is not kept for its own sake.
    is_candidate = block.status == "done" and block.text[:1] in "{ \t\r\n" and block.blob is None
    return _parse(block.text) if is_candidate else None


@lru_cache(maxsize=64)
def _parse(text: str) -> SpecialBlock | None:
    return parse(text)


def text_of(row: Row) -> str:
    """What is copied of a row."""
    match row:
        case UserRow() | NoteRow():
            return row.text
        case TextRow():
            special = special_of(row.block)
            return row.block.text if special is None else markdown(special)
        case ThinkingRow():
            return row.block.text
        case ToolRow():
            return row.block.output or row.block.input_text
        case GroupRow():
            return "\n".join(text_of(member) for member in row.members)
        case WorkRow():
            return "\n".join(text_of(member) for member in row.hidden)
        case ErrorRow():
            return row.error.message
        case _:
            return ""


def ranges_of_compressions(compressions: Iterable[Compression]) -> list[CompressedRange]:
    """Of each stage only the furthest horizon counts; stages that reach equally far share a divider."""
    furthest: dict[str, Compression] = {}
    for one in compressions:
        known = furthest.get(one.stage)
        if one.horizon >= (known.horizon if known else 1):
            furthest[one.stage] = one
    by_horizon: dict[int, list[Compression]] = {}
    for one in sorted(furthest.values(), key=lambda stage: stage.seq):
        by_horizon.setdefault(one.horizon, []).append(one)
    return [_range(horizon, by_horizon[horizon]) for horizon in sorted(by_horizon)]


def _range(horizon: int, stages: list[Compression]) -> CompressedRange:
    return CompressedRange(
        horizon=horizon,
        strength=strongest(stages),
        before_tokens=max(stage.before_tokens for stage in stages),
        after_tokens=min(stage.after_tokens for stage in stages),
        stages=tuple(stages),
        summary=next((stage.summary for stage in reversed(stages) if stage.summary is not None), None),
    )

"""What the log keeps beside the events, computed from them: the row of the list, the texts that search finds, the runs.

Pure. The owner calls it for each batch and hands the result to the append, so all change in the events' own commit.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from palaver.core.exchanges import exchange_answered_by, is_open
from palaver.core.fold.evolve import evolve
from palaver.core.state import message_count, open_requests
from palaver.core.text import special_blocks
from palaver.log.base import Claim, Document, Run
from palaver.schema.content import plain_text
from palaver.schema.events import (
    AnswerStarted,
    KnownEvent,
    MessageAdded,
    MessageEdited,
    MessageRemoved,
    MessageTruncated,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ToolInputDelta,
    ToolOutputDelta,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from palaver.schema.view import Listing, State, Stopped, TextBlock, Turn

LAST_LINE_CHARS = 120

STOPPED: dict[Stopped, str] = {
    "user": "Stopped by a person.",
    "restart": "Cut by the end of the server.",
    "shutdown": "Stopped with the server.",
    "limit": "Stopped at a limit.",
    "backend_exit": "The agent's program ended.",
    "storage": "The log could not be written.",
    "deleted": "Its conversation was deleted.",
    "parent": "Stopped with the turn it worked for.",
}

# What markdown puts around words and before lines. An approximation that errs towards leaving signs in: `2 * 3 * 4` and
# `snake_case_names` are not emphasis. None may take more than a few looks at each character: this runs on the event loop.
_MARKS = (
    (re.compile(r"^ {0,3}(?:```|~~~).*$", re.MULTILINE), ""),
    (re.compile(r"^(?=[ |:-]*---)[ |:-]++$", re.MULTILINE), ""),
    (re.compile(r"^[^\S\n]*+(?:#{1,6}|>|[-*+])(?:[^\S\n]++|$)", re.MULTILINE), ""),
    (re.compile(r"!?\[([^\[\]\n]*+)\]\((?:[^()\n]|\([^()\n]*+\))*+\)"), r"\1"),
    (re.compile(r"(?<!`)(`{1,3})(?!`)([^`\n]++)\1(?!`)"), r"\2"),
    (re.compile(r"(?<![\w*])(\*{1,3})(?=\S)([^*\n]+?)(?<=\S)\1(?![\w*])"), r"\2"),
    (re.compile(r"(?<![\w_])(_{1,3})(?=\S)([^_\n]+?)(?<=\S)\1(?![\w_])"), r"\2"),
)


def listing_of(state: State) -> Listing:
    return Listing(
        id=state.conversation,
        title=state.title,
        agent=state.agent,
        project=state.project,
        status=state.status,
        created_at=state.created_at,
        updated_at=state.updated_at,
        seq=state.seq,
        last_line=_last_line(state),
        message_count=message_count(state),
        queue_size=len(state.queue),
        open_requests=len(open_requests(state)),
        turn=state.turn.id if state.turn else None,
        last_turn=state.last_turn.id if state.last_turn else None,
        archived=state.archived,
        deleted=state.deleted,
        parent=state.parent.conversation if state.parent else None,
        parent_kind=state.parent.kind if state.parent else None,
        root=state.parent.root if state.parent else None,
        open_exchanges=sum(1 for known in state.exchanges if known.direction == "out" and is_open(known)),
        cost_usd=state.cost_usd,
        grants=sum(1 for known in state.grants if known.scope == "conversation"),
        resolved_at=max((known.resolution.ts for known in state.requests if known.resolution), default=None),
    )


def _last_line(state: State) -> str:
    for message in reversed(state.messages[-8:]):
        if message.hidden or message.role not in ("user", "assistant"):
            continue
        for block in reversed(message.blocks):
            if isinstance(block, TextBlock) and block.text.strip():
                # A person's words are shown as they were typed; an agent's are markdown, or a widget's JSON.
                text = _answer_line(block) if message.role == "assistant" else block.text[: 4 * LAST_LINE_CHARS]
                return " ".join(text.split())[:LAST_LINE_CHARS]
    return ""


def _answer_line(block: TextBlock) -> str:
    special = special_blocks.parse(block.text) if block.status == "done" else None
    text = block.text if special is None else special_blocks.markdown(special)
    return _strip_markdown(text[: 4 * LAST_LINE_CHARS])


def _strip_markdown(markdown: str) -> str:
    for mark, kept in _MARKS:
        markdown = mark.sub(kept, markdown)
    return markdown


def changes_list(events: Iterable[KnownEvent]) -> bool:
    """Fragments never change a row: a streaming answer must not rewrite the list with every token."""
    return any(not isinstance(event, TextDelta | ThinkingDelta | ToolInputDelta | ToolOutputDelta) for event in events)


def documents_of(state: State, events: Iterable[KnownEvent]) -> list[Document]:
    """What these events let search find (`state` is the view after them). An edited message stays where it stands."""
    documents: list[Document] = []
    for event in events:
        match event:
            case MessageAdded() if not event.hidden:
                text = plain_text(event.content) if event.blocks is None else _block_text(event.blocks)
                documents.append(Document(event.message, event.seq, event.role, text, event.ts))
            case MessageEdited():
                seq = next((message.seq for message in state.messages if message.id == event.message), event.seq)
                documents.append(Document(event.message, seq, "user", plain_text(event.content), event.ts))
            case TextFinished():
                documents.append(Document(event.message, event.seq, "assistant", event.text, event.ts))
            case _:
                pass
    return [document for document in documents if document.text.strip()]


def _block_text(blocks: Sequence[object]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def documents_to_remove(state: State, events: Iterable[KnownEvent]) -> list[str]:
    """Messages that these events take out of the transcript (`state` is the view before them)."""
    removed: list[str] = []
    for event in events:
        match event:
            case MessageRemoved() | MessageEdited():
                removed.append(event.message)
            case MessageTruncated():
                removed.extend(message.id for message in state.messages[max(0, event.index - state.offset) :])
            case AnswerStarted() if event.replaces:
                removed.append(event.replaces)
            case _:
                pass
    return removed


def claims_of(events: Iterable[KnownEvent]) -> list[Claim]:
    claims: dict[str, Claim] = {}
    for event in events:
        if event.client_request_id and event.body_hash:
            claims[event.client_request_id] = Claim(event.client_request_id, event.body_hash)
    return list(claims.values())


def runs_of(before: State, after: State, events: Iterable[KnownEvent]) -> list[Run]:
    """The runs that these events begin or end, as they are after them."""
    runs: dict[str, Run] = {}
    for event in events:
        match event:
            case TurnStarted():
                if (turn := evolve(State(), event).turn) is not None:
                    runs[turn.id] = replace(_running(turn, after), parent=event.parent)
            case TurnFinished() | TurnInterrupted():
                known = runs.get(event.turn or "")
                if known is None and before.turn is not None and before.turn.id == event.turn:
                    known = _running(before.turn, after)
                # The end of a turn that is over ends no other.
                if known is not None and known.status == "running":
                    runs[known.run] = _end_run(known, event)
            case _:
                pass
    return list(runs.values())


def _running(turn: Turn, state: State) -> Run:
    """As it began; only the log still knows for whom."""
    return Run(
        run=turn.id,
        conversation=state.conversation,
        project=state.project,
        agent=turn.agent,
        backend=turn.backend,
        parent=None,
        trigger=turn.trigger.kind,
        exchange=exchange_answered_by(turn),
        status="running",
        detail=None,
        started_at=turn.started_at,
    )


def _end_run(run: Run, event: TurnFinished | TurnInterrupted) -> Run:
    if isinstance(event, TurnInterrupted):
        ended = replace(run, status="cancelled", detail=event.detail or STOPPED[event.reason])
    elif event.outcome == "failed":
        ended = replace(run, status="failed", detail=event.error.message if event.error else "It failed.")
    elif event.outcome == "interrupted":
        ended = replace(run, status="cancelled", detail=event.summary)
    else:
        ended = replace(run, status="completed", detail=event.error.message if event.error else None)
    return replace(
        ended,
        ended_at=event.ts,
        cost_usd=event.cost_usd,
        input_tokens=event.usage.input_tokens,
        output_tokens=event.usage.output_tokens,
    )

"""What a tool row shows when it is opened, and the tail of one that runs. Pure.

Called by `renderer.py`. Input and output come from models and programs: everything goes through `safe` on its way here.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from rich.segment import Segment

from palaver.schema.view import Exchange, ToolBlock
from palaver.tui.people import People
from palaver.tui.text import rows, words
from palaver.tui.text.answers import say_resolution
from palaver.tui.text.markdown import Line, draw, fence, ink_of, wrap_plain
from palaver.tui.text.safe import visible
from palaver.tui.theme import Palette
from palaver.tui.transcript.calls import argument, kind_of
from palaver.tui.transcript.canvas import diff_lines, faint_lines, terminal_lines
from palaver.tui.transcript.diffs import DiffLine, diff_of_call, parse_unified
from palaver.tui.transcript.rows import ToolRow

TAIL_LINES = 6
"""What is seen of a running command without opening it."""
MOST_LINES = 160
"""Of an opened output; the middle of a longer one is left out."""
MOST_INPUT_CHARACTERS = 8_000


def tail_of(block: ToolBlock, width: int, palette: Palette) -> list[Line]:
    """The last lines of a running tool. Only they are read, so that a chatty one costs little."""
    recent = block.output[-(TAIL_LINES + 1) * 400 :]
    lines = terminal_lines(recent.rstrip("\n"), width, palette) if recent else []
    return lines[-TAIL_LINES:]


def body_of(row: ToolRow, people: People, width: int, palette: Palette) -> Iterator[Line]:
    ink, block, request = ink_of(palette), row.block, row.request
    child, exchange = row.child, row.exchange
    if exchange is not None:
        yield from _exchange(block, exchange, width, palette)
    elif child is not None:
        yield from wrap_plain(child.task, width, ink.soft)
        yield from faint_lines(rows.OPENS_CONVERSATION, width, palette)
        if block.output:
            yield []
            yield from draw(_answer_text(block), width, palette)
    else:
        yield from _work(block, width, palette)
    if request is not None and request.resolution is not None:
        yield from faint_lines(say_resolution(request, people), width, palette)
    if block.started_at is not None and block.finished_at is not None:
        time = words.duration(block.finished_at - block.started_at)
        yield [Segment(rows.took(time), ink.faint)]


def _work(block: ToolBlock, width: int, palette: Palette) -> Iterator[Line]:
    kind = kind_of(block.name)
    command = argument(block.input, "command", "cmd", "script") if kind == "shell" else None
    if command is not None:
        yield from fence(f"$ {visible(command)}", "", width, palette)
        yield from _output(block, width, palette)
        return
    changed = list(_changes(block, width, palette))
    yield from changed or _input(block, width, palette)
    if not changed or block.error is not None:
        yield from _output(block, width, palette)


def _changes(block: ToolBlock, width: int, palette: Palette) -> Iterator[Line]:
    ink = ink_of(palette)
    for change in block.changes:
        stat = words.Tool.stat(change.additions, change.deletions)
        said = words.join(visible(change.path), rows.CHANGE_KINDS[change.kind], stat)
        yield [Segment(said, ink.soft)]
        if change.diff:
            yield from _limit_diff(parse_unified(change.diff), width, palette)
    if block.changes:
        return
    diff = diff_of_call(block.input) if kind_of(block.name) in ("edit", "write", "patch") else None
    if diff is not None:
        yield from _limit_diff(diff.lines, width, palette)


def _limit_diff(lines: tuple[DiffLine, ...], width: int, palette: Palette) -> Iterator[Line]:
    yield from diff_lines(lines[:MOST_LINES], width, palette)
    if len(lines) > MOST_LINES:
        more = words.join(rows.more_lines(len(lines) - MOST_LINES), rows.WHOLE_OUTPUT)
        yield [Segment(more, ink_of(palette).faint)]


def _input(block: ToolBlock, width: int, palette: Palette) -> Iterator[Line]:
    if block.input_text:
        yield from wrap_plain(block.input_text[:MOST_INPUT_CHARACTERS], width, ink_of(palette).faint)
    elif block.input not in (None, {}, ""):
        yield from fence(visible(_json(block.input)), "json", width, palette)


def _json(value: Any) -> str:
    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except (TypeError, msgspec.MsgspecError):
        text = repr(value)
    return text[:MOST_INPUT_CHARACTERS]


def _output(block: ToolBlock, width: int, palette: Palette) -> Iterator[Line]:
    ink = ink_of(palette)
    lines = terminal_lines(block.output, width, palette) if block.output else []
    if len(lines) > MOST_LINES:
        head, tail = lines[: MOST_LINES * 3 // 4], lines[-MOST_LINES // 4 :]
        left_out = len(lines) - len(head) - len(tail)
        more = words.join(rows.more_lines(left_out), rows.WHOLE_OUTPUT)
        lines = [*head, [Segment(more, ink.faint)], *tail]
    yield from lines
    if block.error is not None:
        yield from wrap_plain(block.error.message, width, ink.soft)
    elif not lines:
        yield [Segment(rows.NO_OUTPUT_YET if block.finished_at is None else rows.NO_OUTPUT, ink.faint)]
    if block.truncated:
        held = words.size(len(block.output.encode(errors="replace")))
        whole = words.size(block.total_bytes) if block.total_bytes else None
        shown = rows.showing(held, whole) if whole else rows.ONLY_ENDS
        yield [Segment(f"{shown} {rows.WHOLE_OUTPUT}" if block.blob else shown, ink.faint)]


def _exchange(block: ToolBlock, exchange: Exchange, width: int, palette: Palette) -> Iterator[Line]:
    ink = ink_of(palette)
    yield [Segment(rows.MESSAGE, ink.faint)]
    yield from wrap_plain(argument(block.input, "content", "message", "text") or "", width, ink.soft)
    answer = _answer_text(block)
    if answer:
        yield []
        yield [Segment(rows.ANSWER, ink.faint)]
        yield from draw(answer, width, palette)
        return
    waits = exchange.status in ("sent", "started", "queued")
    none = rows.ANSWER_LATER if exchange.callback and waits else rows.EXCHANGE_NONE[exchange.status]
    if none:
        yield [Segment(none, ink.faint)]


def _answer_text(block: ToolBlock) -> str:
    """What another agent answered: the result is JSON in the words of the contract, or whatever was written."""
    try:
        known = msgspec.json.decode(block.output.encode(errors="replace"))
    except msgspec.MsgspecError:
        return block.output if kind_of(block.name) == "task" else ""
    answer = argument(known, "response", "result", "summary", "text")
    return answer or (block.output if kind_of(block.name) == "task" else "")

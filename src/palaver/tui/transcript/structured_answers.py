"""Drawing of structured answers: plans, task summaries, change reports and questions that an agent wrote as JSON. Pure.

Called by the drawing of text rows. What counts as one is decided by `palaver.core.text.special_blocks` alone.
"""

from collections.abc import Iterator

from rich.segment import Segment
from rich.style import Style

from palaver.core.text.special_blocks import (
    AskUserBlock,
    ChangeReportBlock,
    FinalizeTaskBlock,
    PlanBlock,
    ReportedFile,
    SpecialBlock,
)
from palaver.schema.view import PlanItem, Question
from palaver.tui.text import docks, rows
from palaver.tui.text.markdown import Line, draw, wrap_plain
from palaver.tui.transcript.canvas import beneath, crop, diff_lines
from palaver.tui.transcript.diffs import parse_unified
from palaver.tui.transcript.style import Look


def special_lines(look: Look, block: SpecialBlock, is_open: bool) -> Iterator[Line]:
    match block:
        case PlanBlock(plan=plan):
            yield from _title_lines(look, "≡", look.palette.live, rows.PLAN, plan.summary)
            for item in plan.items:
                yield from beneath(_step(look, item), look.palette, look.column)
        case FinalizeTaskBlock():
            yield from _title_lines(look, "✓", look.palette.good, rows.TASK, block.title)
            yield from beneath(_task(look, block), look.palette, look.column)
        case ChangeReportBlock():
            yield from _title_lines(look, "±", look.palette.ink_soft, rows.REPORT, "")
            for file in block.files:
                yield from beneath(_file(look, file, is_open), look.palette, look.column)
            if block.truncated_count:
                more = [Segment(rows.more_files(block.truncated_count), look.ink.faint)]
                yield from beneath([more], look.palette, look.column)
        case AskUserBlock():
            for question in block.questions:
                yield from _question(look, question)


def is_openable(block: SpecialBlock) -> bool:
    return isinstance(block, ChangeReportBlock) and any(file.diff for file in block.files)


def _title_lines(look: Look, sign: str, colour: str, heading: str, subject: str) -> Iterator[Line]:
    lines = wrap_plain(f"{heading}: {subject}" if subject.strip() else heading, look.column - 2, look.ink.strong)
    for at, line in enumerate(lines):
        yield [Segment(f"{sign} " if at == 0 else "  ", Style(color=colour)), *line]


def _step(look: Look, item: PlanItem) -> Iterator[Line]:
    sign = docks.Plan.SIGNS[item.status]
    style = look.ink.faint if item.status == "skipped" else look.ink.plain
    for at, line in enumerate(wrap_plain(item.title, look.column - 4, style)):
        yield [Segment(f"{sign} " if at == 0 else "  ", look.ink.soft), *line]
    if item.description:
        for line in wrap_plain(item.description, look.column - 4, look.ink.faint):
            yield [Segment("  "), *line]


def _task(look: Look, block: FinalizeTaskBlock) -> Iterator[Line]:
    inner = look.column - 2
    yield from draw(block.summary, inner, look.palette)
    for section in block.sections:
        yield from wrap_plain(section.title, inner, look.ink.strong)
        for item in section.items:
            for at, line in enumerate(wrap_plain(item, inner - 2, look.ink.plain)):
                yield [Segment("• " if at == 0 else "  ", look.ink.soft), *line]


def _file(look: Look, file: ReportedFile, is_open: bool) -> Iterator[Line]:
    inner = look.column - 2
    yield from wrap_plain(file.path, inner, look.ink.plain)
    if file.summary:
        yield from wrap_plain(file.summary, inner, look.ink.faint)
    if is_open and file.diff:
        yield from diff_lines(parse_unified(file.diff), inner, look.palette)


def _question(look: Look, question: Question) -> Iterator[Line]:
    yield from _title_lines(look, "?", look.palette.wait, question.header or question.question, "")
    if question.header:
        yield from beneath(wrap_plain(question.question, look.column - 2, look.ink.plain), look.palette, look.column)
    for number, option in enumerate(question.options, start=1):
        line: Line = [Segment(f"{number} ", look.ink.soft)]
        described = f"  {option.description}" if option.description else ""
        for at, part in enumerate(wrap_plain(f"{option.label}{described}", look.column - 5, look.ink.plain)):
            yield from beneath(
                [crop([*(line if at == 0 else [Segment("  ")]), *part], look.column - 2)], look.palette, look.column
            )

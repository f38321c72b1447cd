"""Rows as lines: what each kind of row looks like, closed and open. Pure but for the growing texts it keeps.

Called by the transcript for rows that come into sight. The look: the text is the page, tools are one line until asked,
colour says what is alive, waits or failed, and a sign says it too.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import assert_never

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from palaver.core.state import OPEN_TOOL
from palaver.schema.view import TextBlock, ToolBlock, ToolStatus
from palaver.tui.people import face_of
from palaver.tui.text import rows, words
from palaver.tui.text.markdown import Line, draw, wrap_plain
from palaver.tui.text.safe import one_line, visible
from palaver.tui.transcript import dividers
from palaver.tui.transcript.calls import argument, is_unanswered, kind_of, object_text, result_of, verb_of
from palaver.tui.transcript.canvas import (
    beneath,
    crop,
    cut,
    diff_lines,
    divider,
    faint_lines,
    on_one_line,
    on_panel,
    sides,
    width_of,
)
from palaver.tui.transcript.citations import Source, sources_of
from palaver.tui.transcript.diffs import by_file, parse_unified
from palaver.tui.transcript.live_turn import GrowingText
from palaver.tui.transcript.rows import (
    AttemptRow,
    ChangesRow,
    CompressedRow,
    DayRow,
    EdgeRow,
    ErrorRow,
    GroupRow,
    ImageRow,
    InterruptedRow,
    NewRow,
    NoteRow,
    OfAgent,
    PendingRow,
    Row,
    SwitchRow,
    TextRow,
    ThinkingRow,
    ToolRow,
    UserRow,
    WorkRow,
    special_of,
)
from palaver.tui.transcript.structured_answers import special_lines
from palaver.tui.transcript.style import LONG_LINES, Look
from palaver.tui.transcript.tool_bodies import body_of, tail_of
from palaver.tui.transcript.work_summary import summary_of

THINKING_LINES = 3
"""The latest of what is being thought, while it is."""

PULSE = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""The mark of what is under way, as it turns; lines are drawn with the first."""
TEXT_CURSOR = "▍"
"""At the end of a text that is being written."""

_PENDING = PULSE[0]
_SIGNS: dict[ToolStatus, str] = {
    "input": _PENDING,
    "called": _PENDING,
    "waiting": "◆",
    "running": _PENDING,
    "ok": "✓",
    "error": "✗",
    "denied": "⊘",
    "interrupted": "◇",
}


@dataclass(slots=True)
class Drawing(Look):
    """Draws for one width and one theme; a change of them is a new one."""

    _growing: dict[str, GrowingText] = field(default_factory=dict[str, GrowingText])

    def draw(self, row: Row, *, is_open: bool, heads: bool) -> list[Line]:
        """`heads`: whether it begins an answer and says whose it is."""
        heading = [self._heading(row)] if heads and isinstance(row, OfAgent) else []
        return [crop(on_one_line(line), self.width) for line in (*heading, *self._lines(row, is_open))]

    def _lines(self, row: Row, is_open: bool) -> Iterable[Line]:
        match row:
            case UserRow():
                return self._user(row, is_open)
            case TextRow():
                return self._text(row, is_open)
            case ThinkingRow():
                return self._thinking(row, is_open)
            case ImageRow():
                return [[Segment(f"▣ {rows.IMAGE}", self.ink.faint)]]
            case ToolRow():
                return self._tool(row, is_open)
            case GroupRow():
                return self._group(row, is_open)
            case WorkRow():
                return [self._work(row, is_open)]
            case NoteRow():
                return dividers.note(self, row, is_open)
            case SwitchRow():
                switch = row.switch
                return [dividers.rule(self, rows.took_over(switch.to_model, switch.from_model, switch.reason))]
            case AttemptRow():
                return dividers.render_foldable(self, rows.ATTEMPT, row.text, is_open)
            case CompressedRow():
                return dividers.render_compression(self, row, is_open)
            case ChangesRow():
                return self._changes(row, is_open)
            case InterruptedRow():
                return dividers.render_interruption(self, row)
            case ErrorRow():
                return dividers.error(self, row, is_open)
            case DayRow():
                return [dividers.rule(self, words.day(row.day_ms, self.now_ms))]
            case NewRow():
                style = Style(color=self.palette.live, bold=True)
                return [divider(rows.NEW, self.column, self.palette, style)]
            case EdgeRow():
                return dividers.edge(self, row)
            case PendingRow():
                return self._pending(row)
            case _:
                assert_never(row)

    # -- who speaks

    def _heading(self, row: OfAgent) -> Line:
        left = [Segment(self.name_of(row.agent), Style(color=self.palette.live, bold=True))]
        if row.model:
            left.append(Segment(f" · {visible(row.model)}", self.ink.faint))
        return sides(left, [Segment(words.clock(row.ts), self.ink.faint)], self.column)

    def _user(self, row: UserRow, is_open: bool) -> Iterator[Line]:
        message, origin = row.message, row.message.origin
        who = self.name_of(origin.agent) if origin and origin.agent else rows.YOU
        if origin and not origin.agent and self.people.is_anothers(origin):
            who = visible(origin.user or "")
        face = face_of(origin)
        aside = words.join(
            words.via(face) if face else None,
            rows.STEERED if row.is_steered else None,
            rows.EDITED if message.edited else None,
        )
        left = [Segment(who, self.ink.strong), *([Segment(f" · {aside}", self.ink.faint)] if aside else [])]
        head = sides(left, [Segment(words.clock(row.ts), self.ink.faint)], self.column - 2)
        text = wrap_plain(row.text, self.column - 2, self.ink.plain) if row.text else []
        if len(text) > LONG_LINES and not is_open:
            left_out = len(text) - LONG_LINES
            text = [*text[:LONG_LINES], [Segment(rows.more_lines(left_out), self.ink.faint)]]
        images: list[Line] = [[Segment(f"▣ {rows.IMAGE}", self.ink.faint)] for _ in row.images]
        blobs = [block.blob for block in message.blocks if isinstance(block, TextBlock) and block.blob]
        whole = rows.whole_text(words.size(blobs[0].size)) if blobs else ""
        note: list[Line] = faint_lines(whole, self.column - 2, self.palette) if whole else []
        yield from on_panel([head, *text, *images, *note], self.column, self.palette.panel)
        if message.knowledge is not None:
            kinds = [source.kind for source in message.knowledge.sources]
            said = rows.recalled(kinds.count("note"), kinds.count("conversation"), kinds.count("file"))
            spent = rows.in_tokens(message.knowledge.tokens) if message.knowledge.tokens else None
            yield [Segment(f"◈ {words.join(said, spent)}", self.ink.faint)]
            if is_open:
                lines = wrap_plain(message.knowledge.text, self.column - 2, self.ink.soft)
                yield from beneath(lines, self.palette, self.column)

    def _pending(self, row: PendingRow) -> Iterator[Line]:
        states = {"sending": rows.SENDING, "offline": rows.WILL_SEND, "failed": rows.NOT_SENT}
        style = Style(color=self.palette.bad if row.state == "failed" else self.palette.wait)
        state = words.join(states[row.state], visible(row.reason))
        head = sides([Segment(rows.YOU, self.ink.strong)], [Segment(state, style)], self.column - 2)
        text = wrap_plain(row.text, self.column - 2, self.ink.soft)
        yield from on_panel([head, *text[:LONG_LINES]], self.column, self.palette.panel)

    # -- what agents say

    def _text(self, row: TextRow, is_open: bool) -> Iterator[Line]:
        block = row.block
        if block.status == "streaming":
            growing = self._growing.setdefault(row.key, GrowingText(self.column, self.palette))
            yield from self._with_cursor(growing.draw(block.text))
        else:
            self._growing.pop(row.key, None)
            special = special_of(block)
            if special is None:
                yield from draw(block.text, self.column, self.palette)
            else:
                yield from special_lines(self, special, is_open)
        if block.blob is not None:
            yield from faint_lines(rows.whole_text(words.size(block.blob.size)), self.column, self.palette)
        mark = _mark_of(row)
        if mark:
            yield from wrap_plain(mark, self.column, Style(color=self.palette.wait))
        if sources := sources_of(block.citations):
            yield [Segment(f"◈ {rows.cited(len(sources))}", self.ink.faint)]
            for source in sources if is_open else ():
                yield from beneath(self._source(source), self.palette, self.column)

    def _with_cursor(self, lines: list[Line]) -> list[Line]:
        cursor = Segment(TEXT_CURSOR, Style(color=self.palette.live))
        last = lines[-1] if lines else []
        return [*lines[:-1], [*last, cursor]] if width_of(last) < self.column else [*lines, [cursor]]

    def _source(self, source: Source) -> Iterator[Line]:
        """Nothing is linked here: the address stands where it can be read."""
        yield from wrap_plain(source.title, self.column - 2, self.ink.plain)
        if source.url is not None and source.url != source.title:
            yield from faint_lines(source.url, self.column - 2, self.palette)
        for quote in source.quotes:
            yield from wrap_plain(f"“{quote}”", self.column - 2, self.ink.soft)

    def _thinking(self, row: ThinkingRow, is_open: bool) -> Iterator[Line]:
        block = row.block
        if block.status == "streaming":
            yield [Segment(f"{_PENDING} ", Style(color=self.palette.live)), Segment(rows.THINKING, self.ink.soft)]
            # Only the end of it is looked at while it comes in.
            lines = wrap_plain(block.text[-THINKING_LINES * 240 :].strip(), self.column - 2, self.ink.faint)
            yield from beneath(lines if is_open else lines[-THINKING_LINES:], self.palette, self.column)
            return
        said = rows.THOUGHT
        if block.redacted:
            said = rows.THOUGHT_IN_PRIVATE
        elif block.status == "interrupted":
            said = rows.THINKING_CUT
        elif block.duration_ms is not None:
            said = rows.thought_for(words.duration(block.duration_ms))
        yield [Segment(f"◌ {said}", self.ink.faint)]
        if is_open:
            text = rows.THOUGHT_IN_PRIVATE_BODY if block.redacted else block.text.strip()
            yield from beneath(wrap_plain(text, self.column - 2, self.ink.soft), self.palette, self.column)

    # -- tools

    def _tool(self, row: ToolRow, is_open: bool) -> Iterator[Line]:
        block = row.block
        yield self._tool_line(row)
        inner = self.column - 2
        if is_open:
            lines = body_of(row, self.people, inner, self.palette)
            yield from beneath(lines, self.palette, self.column)
        elif block.status == "running" and block.output:
            yield from beneath(tail_of(block, inner, self.palette), self.palette, self.column)
        elif summary := _task_summary(block):
            yield from beneath(draw(summary, inner, self.palette), self.palette, self.column)

    def _tool_line(self, row: ToolRow) -> Line:
        block = row.block
        status: ToolStatus = "denied" if is_unanswered(block) else block.status
        sign = Segment(f"{_SIGNS[status]} ", self._sign_style(status))
        verb, said, result = verb_of(block), " ".join(object_text(block).split()), self._result(row)
        if row.child is not None or row.exchange is not None:
            agent = row.child.agent if row.child else row.exchange.agent if row.exchange else None
            said = self.name_of(agent)
        aside = one_line(row.child.task) if row.child else ""
        # A long reason gives way before the thing it is about; both are whole when the row is opened.
        result = cut(result, max(self.column // 3, self.column - len(verb) - cell_len(said) - 6))
        end: Line = [Segment(f" · {result}", self._result_style(status))] if result else []
        if block.truncated:
            end.append(Segment(f" · {rows.TRUNCATED}", Style(color=self.palette.wait)))
        room = self.column - 2 - len(verb) - width_of(end)
        # Words between agents have a colour of their own.
        object_style = Style(color=self.palette.gold if row.exchange is not None else self.palette.ink)
        line = [sign, Segment(verb, self.ink.soft)]
        if said:
            line.append(Segment(f" {cut(said, max(8, room - 1))}", object_style))
        if aside:
            left = self.column - width_of(line) - width_of(end) - 3
            line.append(Segment(f" · {cut(aside, max(0, left))}" if left > 8 else "", self.ink.faint))
        return crop([*line, *end], self.column)

    def _result(self, row: ToolRow) -> str:
        child, exchange = row.child, row.exchange
        if child is not None:
            waits = row.block.status == "waiting"
            state = "waiting" if waits else child.status if child.status != "running" else "running"
            over = child.started_at is not None and child.finished_at is not None
            time = words.duration((child.finished_at or 0) - (child.started_at or 0)) if over else None
            cost = words.money(child.cost_usd) if child.cost_usd else None
            return words.join(rows.SUBAGENT_STATES[state], time, cost)
        if exchange is not None:
            at_work = exchange.status == "started" and exchange.mode == "async"
            return rows.AT_WORK_ON_IT if at_work else rows.EXCHANGE_STATES[exchange.status]
        return result_of(row.block)

    def _sign_style(self, status: ToolStatus) -> Style:
        palette = self.palette
        colours: dict[ToolStatus, str] = {
            "input": palette.ink_faint,
            "called": palette.ink_faint,
            "waiting": palette.wait,
            "running": palette.ink_faint,
            "ok": palette.good,
            "error": palette.bad,
            "denied": palette.bad,
            "interrupted": palette.wait,
        }
        return Style(color=colours[status], bold=status == "waiting" or None)

    def _result_style(self, status: ToolStatus) -> Style:
        if status in ("error", "denied"):
            return Style(color=self.palette.bad)
        return Style(color=self.palette.wait) if status in ("waiting", "interrupted") else self.ink.faint

    def _group(self, row: GroupRow, is_open: bool) -> Iterator[Line]:
        blocks = [tool.block for tool in row.tools]
        is_live = any(block.status in OPEN_TOOL for block in blocks)
        was_cut = any(block.status == "interrupted" for block in blocks)
        sign = _PENDING if is_live else "◇" if was_cut else "✓"
        colour = self.palette.ink_faint if is_live else self.palette.wait if was_cut else self.palette.good
        line = [Segment(f"{sign} ", Style(color=colour)), Segment(_exploration_text(blocks, is_live), self.ink.soft)]
        failed = sum(block.status in ("error", "denied") for block in blocks)
        if failed:
            line.append(Segment(f" · {words.Tool.failures(failed)}", Style(color=self.palette.bad)))
        yield crop(line, self.column)
        for tool in () if is_open else row.tools:
            # A failure is never hidden, nor what waits for the reader. In an open group it stands among the others.
            if tool.block.status in ("error", "denied", "waiting", "interrupted"):
                yield from beneath(self._tool(tool, False), self.palette, self.column)

    def _work(self, row: WorkRow, is_open: bool) -> Line:
        summary, palette = summary_of(row), self.palette
        colours = {"bad": palette.bad, "wait": palette.wait, "faint": palette.ink_faint}
        sign = _PENDING if row.is_live else "▾" if is_open else "▸"
        statuses = {call.status for call in row.calls}
        waits = row.is_live and "waiting" in statuses and "running" not in statuses
        mark = Segment("◆ ", Style(color=palette.wait, bold=True)) if waits else Segment(f"{sign} ", self.ink.faint)
        end: Line = [Segment(f" · {said}", Style(color=colours[tone])) for said, tone in summary.trouble]
        end.append(Segment(f" · {summary.size}", self.ink.faint))
        done = Segment(cut(summary.done, max(8, self.column - 2 - width_of(end))), self.ink.soft)
        return crop([mark, done, *end], self.column)

    def _changes(self, row: ChangesRow, is_open: bool) -> Iterator[Line]:
        files = by_file(row.changes)
        added, removed = sum(file.additions for file in files), sum(file.deletions for file in files)
        said = rows.changed_files(len(files))
        yield [Segment("± ", self.ink.soft), Segment(said, self.ink.soft), *self._stat(added, removed)]
        inner = self.column - 2
        for file in files if is_open else files[:LONG_LINES]:
            kind = rows.CHANGE_KINDS[file.kind]
            name = [Segment(visible(file.path), self.ink.plain), Segment(f" · {kind}" if kind else "", self.ink.faint)]
            lines: list[Line] = [[*name, *self._stat(file.additions, file.deletions)]]
            if is_open:
                for part in file.parts:
                    lines += diff_lines(parse_unified(part.diff or ""), inner, self.palette)
            yield from beneath(lines, self.palette, self.column)
        if not is_open and len(files) > LONG_LINES:
            more = [Segment(f"… {words.Tool.files(len(files) - LONG_LINES)}", self.ink.faint)]
            yield from beneath([more], self.palette, self.column)

    def _stat(self, added: int, removed: int) -> Line:
        line: Line = []
        if added:
            line.append(Segment(f" {words.Tool.stat(added, 0)}", Style(color=self.palette.good)))
        if removed:
            line.append(Segment(f" {words.Tool.stat(0, removed)}", Style(color=self.palette.bad)))
        return line


def _task_summary(block: ToolBlock) -> str | None:
    """What an agent said when it finished its task."""
    is_done = block.status == "ok" and kind_of(block.name) == "finish"
    return argument(block.input, "summary") if is_done else None


def _mark_of(row: TextRow) -> str:
    if row.block.status == "interrupted":
        return rows.CUT_HERE
    if row.finish_reason in ("length", "max_tokens"):
        return rows.CUT_BY_LIMIT
    return rows.REFUSED if row.finish_reason in ("refusal", "content_filter") else ""


def _exploration_text(blocks: list[ToolBlock], is_live: bool) -> str:
    """ "Explored · 3 files, 2 searches": distinct files, all searches."""
    kinds = [kind_of(block.name) for block in blocks]
    names = ("path", "file_path", "filename", "file", "notebook_path")
    read = (block for block, kind in zip(blocks, kinds, strict=True) if kind == "read")
    files = {argument(block.input, *names) or block.call for block in read}
    lists = kinds.count("list")
    searches = len(kinds) - kinds.count("read") - lists
    what = [
        *([words.Tool.files(len(files))] if files else []),
        *([words.Tool.searches(searches)] if searches else []),
        *([words.Tool.listings(lists)] if lists else []),
    ]
    return words.join(words.Tool.EXPLORING if is_live else words.Tool.EXPLORED, ", ".join(what))


def gap_before(previous: Row | None, row: Row) -> int:
    """Empty lines above a row: calls stand together, everything else has air."""
    if previous is None:
        return 0
    compact = (ToolRow, GroupRow, ThinkingRow, WorkRow)
    return 0 if isinstance(row, compact) and isinstance(previous, compact) else 1


def heads_answer(previous: Row | None, row: Row) -> bool:
    """Whether a row begins what an agent says, after somebody else or another agent."""
    if not isinstance(row, OfAgent):
        return False
    return not isinstance(previous, OfAgent) or (previous.agent, previous.model) != (row.agent, row.model)

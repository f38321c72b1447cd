"""What stands between messages: days, interruptions, failures, what came together, notes by nobody in particular. Pure.

Called by `renderer.py`, which does the rest.
"""

from collections.abc import Iterator
from typing import Any

from rich.segment import Segment
from rich.style import Style

from palaver.tui.people import face_of
from palaver.tui.text import docks, rows, words
from palaver.tui.text.markdown import Line, draw, wrap_plain
from palaver.tui.text.safe import one_line, visible
from palaver.tui.transcript.canvas import beneath, crop, divider, faint_lines, on_panel
from palaver.tui.transcript.rows import CompressedRow, EdgeRow, ErrorRow, InterruptedRow, NoteRow
from palaver.tui.transcript.style import Look


def rule(look: Look, said: str) -> Line:
    return divider(visible(said), look.column, look.palette)


def edge(look: Look, row: EdgeRow) -> list[Line]:
    said = {
        "start": rows.START,
        "more": rows.OLDER,
        "loading": rows.LOADING_OLDER,
        "failed": rows.OLDER_FAILED,
    }[row.state]
    return [rule(look, said)]


def note(look: Look, row: NoteRow, is_open: bool) -> Iterator[Line]:
    if row.event_kind == "process_completed":
        yield from _process(look, row, is_open)
        return
    heading = rows.TOLD.get(row.event_kind or "")
    origin = row.message.origin
    if row.event_kind == "agent_callback":
        agent = row.agent or (origin.agent if origin else None)
        heading = rows.answer_of(look.name_of(agent)) if agent else rows.ANSWER_OF_ANOTHER
    elif heading is None:
        by_role = {"system": rows.SYSTEM, "summary": rows.SUMMARY, "plan": rows.PLAN}
        heading = by_role.get(row.role) or rows.event(row.event_kind)
    if row.event_kind == "agent_callback":
        gold = Style(color=look.palette.gold, bold=True)
        yield from render_foldable(look, visible(heading), row.text, is_open, sign="↩", style=gold)
    else:
        yield from render_foldable(look, visible(heading), row.text, is_open, sign="◦")


def _process(look: Look, row: NoteRow, is_open: bool) -> Iterator[Line]:
    """The end of a background process. Its words are for the agent; a person knows it by its command."""
    data: Any = row.message.data if isinstance(row.message.data, dict) else {}
    was_stopped = data.get("end") == "stopped"
    heading = rows.PROCESS_STOPPED if was_stopped else rows.PROCESS_ENDED
    ended = rows.WITH_THE_SERVER if data.get("end") == "restart" else rows.process_end(data.get("exit_code"))
    command = " ".join(str(data.get("command") or one_line(row.text)).split())
    summary = words.join(command, None if was_stopped else ended)
    yield from render_foldable(look, heading, row.text, is_open, sign="◦", summary=summary)


def render_foldable(
    look: Look,
    heading: str,
    text: str,
    is_open: bool,
    sign: str = "◌",
    summary: str | None = None,
    style: Style | None = None,
) -> Iterator[Line]:
    """`summary` stands beside the heading while the text is folded; without one, the text's own beginning."""
    line = [Segment(f"{sign} {heading}", style or look.ink.soft)]
    if not is_open and (said := summary or text):
        line.append(Segment(f" · {one_line(said)}", look.ink.faint))
    yield crop(line, look.column)
    if is_open:
        yield from beneath(draw(text, look.column - 2, look.palette), look.palette, look.column)


def render_compression(look: Look, row: CompressedRow, is_open: bool) -> Iterator[Line]:
    reach = row.range
    yield rule(look, rows.compressed(reach.saved_percent, reach.strength))
    if not is_open:
        return
    lines: list[Line] = [[Segment(rows.COMPRESSED_LEAD, look.ink.soft)]]
    for stage in reach.stages:
        change = rows.from_to_tokens(stage.before_tokens, stage.after_tokens)
        lines.append([Segment(f"• {rows.STAGES[stage.stage]} · {change}", look.ink.faint)])
    if reach.summary:
        lines += [[], *draw(reach.summary, look.column - 2, look.palette)]
    yield from beneath(lines, look.palette, look.column)


def render_interruption(look: Look, row: InterruptedRow) -> Iterator[Line]:
    said = rows.INTERRUPTED
    if row.stopped is not None:
        reason = _who_stopped(look, row) if row.stopped == "user" else rows.STOPPED[row.stopped]
        said = rows.interrupted(reason, words.clock(row.ts))
    line = [Segment("⚠ ", Style(color=look.palette.wait)), Segment(said, look.ink.soft)]
    if row.is_last and look.people.may_write:
        line.append(Segment(f" · {rows.CONTINUE}", look.ink.faint))
    yield crop(line, look.column)


def _who_stopped(look: Look, row: InterruptedRow) -> str:
    by, people = row.turn.by if row.turn else None, look.people
    if by is None or people.is_here(by):
        return rows.STOPPED["user"]
    if people.is_anothers(by):
        return docks.Answered.by(visible(by.user or ""))
    face = face_of(by)
    return words.via(face) if face else rows.STOPPED_ELSEWHERE


def error(look: Look, row: ErrorRow, is_open: bool) -> Iterator[Line]:
    error = row.error
    heading = rows.ERROR_HEADINGS.get(error.code, rows.ERROR_OTHER)
    inner = look.column - 4
    lines: list[Line] = [[Segment(f"✗ {heading}", Style(color=look.palette.bad, bold=True))]]
    lines += wrap_plain(words.in_typographic_quotes(error.message), inner, look.ink.plain)
    advice = rows.ERROR_ADVICE.get(error.code, rows.ERROR_OTHER_ADVICE)
    lines += wrap_plain(advice, inner, look.ink.soft)
    hint = words.join(
        rows.TRY_AGAIN if row.is_last and look.people.may_write else None,
        rows.DETAILS if error.details and not is_open else None,
        visible(error.code),
    )
    lines += faint_lines(hint, inner, look.palette)
    if is_open and error.details:
        details = "\n".join(f"{name}: {value}" for name, value in error.details.items())
        lines += wrap_plain(details, inner, look.ink.soft)
    bar = Segment("▎", Style(color=look.palette.bad))
    for line in on_panel(lines, look.column - 1, look.palette.bad_soft):
        yield [bar, *line]

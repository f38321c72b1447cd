"""What stands between messages: days, interruptions, failures, what came together, notes by nobody in particular. Pure.

Called by `drawing.py`, which does the rest.
"""

from collections.abc import Iterator
from typing import Any

from rich.segment import Segment
from rich.style import Style

from palaver.tui import row_words, words, words_docks
from palaver.tui.canvas import beneath, cropped, divider, faint_lines, on_panel
from palaver.tui.look import Look
from palaver.tui.markdown import Line, draw, wrap_plain
from palaver.tui.people import face_of
from palaver.tui.rows import CompressedRow, EdgeRow, ErrorRow, InterruptedRow, NoteRow
from palaver.tui.safe import one_line, visible


def rule(look: Look, said: str) -> Line:
    return divider(visible(said), look.column, look.palette)


def edge(look: Look, row: EdgeRow) -> list[Line]:
    said = {
        "start": row_words.START,
        "more": row_words.OLDER,
        "loading": row_words.LOADING_OLDER,
        "failed": row_words.OLDER_FAILED,
    }[row.state]
    return [rule(look, said)]


def note(look: Look, row: NoteRow, is_open: bool) -> Iterator[Line]:
    if row.event_kind == "process_completed":
        yield from _process(look, row, is_open)
        return
    heading = row_words.TOLD.get(row.event_kind or "")
    origin = row.message.origin
    if row.event_kind == "agent_callback":
        agent = row.agent or (origin.agent if origin else None)
        heading = row_words.answer_of(look.name_of(agent)) if agent else row_words.ANSWER_OF_ANOTHER
    elif heading is None:
        by_role = {"system": row_words.SYSTEM, "summary": row_words.SUMMARY, "plan": row_words.PLAN}
        heading = by_role.get(row.role) or row_words.event(row.event_kind)
    if row.event_kind == "agent_callback":
        gold = Style(color=look.palette.gold, bold=True)
        yield from folded_text(look, visible(heading), row.text, is_open, sign="↩", style=gold)
    else:
        yield from folded_text(look, visible(heading), row.text, is_open, sign="◦")


def _process(look: Look, row: NoteRow, is_open: bool) -> Iterator[Line]:
    """The end of a background process. Its words are for the agent; a person knows it by its command."""
    data: Any = row.message.data if isinstance(row.message.data, dict) else {}
    was_stopped = data.get("end") == "stopped"
    heading = row_words.PROCESS_STOPPED if was_stopped else row_words.PROCESS_ENDED
    ended = row_words.WITH_THE_SERVER if data.get("end") == "restart" else row_words.process_end(data.get("exit_code"))
    command = " ".join(str(data.get("command") or one_line(row.text)).split())
    summary = words.join(command, None if was_stopped else ended)
    yield from folded_text(look, heading, row.text, is_open, sign="◦", summary=summary)


def folded_text(
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
    yield cropped(line, look.column)
    if is_open:
        yield from beneath(draw(text, look.column - 2, look.palette), look.palette, look.column)


def compressed(look: Look, row: CompressedRow, is_open: bool) -> Iterator[Line]:
    reach = row.range
    yield rule(look, row_words.compressed(reach.saved_percent, reach.strength))
    if not is_open:
        return
    lines: list[Line] = [[Segment(row_words.COMPRESSED_LEAD, look.ink.soft)]]
    for stage in reach.stages:
        change = row_words.from_to_tokens(stage.before_tokens, stage.after_tokens)
        lines.append([Segment(f"• {row_words.STAGES[stage.stage]} · {change}", look.ink.faint)])
    if reach.summary:
        lines += [[], *draw(reach.summary, look.column - 2, look.palette)]
    yield from beneath(lines, look.palette, look.column)


def interrupted(look: Look, row: InterruptedRow) -> Iterator[Line]:
    said = row_words.INTERRUPTED
    if row.stopped is not None:
        reason = _who_stopped(look, row) if row.stopped == "user" else row_words.STOPPED[row.stopped]
        said = row_words.interrupted(reason, words.clock(row.ts))
    line = [Segment("⚠ ", Style(color=look.palette.wait)), Segment(said, look.ink.soft)]
    if row.is_last and look.people.may_write:
        line.append(Segment(f" · {row_words.CONTINUE}", look.ink.faint))
    yield cropped(line, look.column)


def _who_stopped(look: Look, row: InterruptedRow) -> str:
    by, people = row.turn.by if row.turn else None, look.people
    if by is None or people.is_here(by):
        return row_words.STOPPED["user"]
    if people.is_anothers(by):
        return words_docks.Answered.by(visible(by.user or ""))
    face = face_of(by)
    return words.via(face) if face else row_words.STOPPED_ELSEWHERE


def error(look: Look, row: ErrorRow, is_open: bool) -> Iterator[Line]:
    error = row.error
    heading = row_words.ERROR_HEADINGS.get(error.code, row_words.ERROR_OTHER)
    inner = look.column - 4
    lines: list[Line] = [[Segment(f"✗ {heading}", Style(color=look.palette.bad, bold=True))]]
    lines += wrap_plain(words.said(error.message), inner, look.ink.plain)
    advice = row_words.ERROR_ADVICE.get(error.code, row_words.ERROR_OTHER_ADVICE)
    lines += wrap_plain(advice, inner, look.ink.soft)
    hint = words.join(
        row_words.TRY_AGAIN if row.is_last and look.people.may_write else None,
        row_words.DETAILS if error.details and not is_open else None,
        visible(error.code),
    )
    lines += faint_lines(hint, inner, look.palette)
    if is_open and error.details:
        details = "\n".join(f"{name}: {value}" for name, value in error.details.items())
        lines += wrap_plain(details, inner, look.ink.soft)
    bar = Segment("▎", Style(color=look.palette.bad))
    for line in on_panel(lines, look.column - 1, look.palette.bad_soft):
        yield [bar, *line]

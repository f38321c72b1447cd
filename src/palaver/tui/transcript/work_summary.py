"""One-line summary of a turn's work: what was done, what went wrong, how many tool calls, how long it took. Pure.

Called by the drawing of work rows. The same words as the page's (`web/src/view/tools/sayWork.ts`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from palaver.core.state import OPEN_TOOL
from palaver.schema.view import ToolBlock
from palaver.tui.text import words
from palaver.tui.text.rows import Work
from palaver.tui.transcript.calls import argument, is_unanswered, kind_of
from palaver.tui.transcript.rows import WorkRow

Tone = Literal["bad", "wait", "faint"]


@dataclass(frozen=True, slots=True)
class WorkSummary:
    done: str
    """ "Read 3 files, edited 1 file, ran 2 commands"."""
    trouble: tuple[tuple[str, Tone], ...]
    """ "1 failed", "1 interrupted"; empty when all went well."""
    size: str
    """ "7 tool calls · 12 s"."""


def summary_of(row: WorkRow) -> WorkSummary:
    done = ", ".join(_deeds(row.calls))
    if row.is_live:
        done = f"{Work.WORKING}: {done}" if done else Work.WORKING
    else:
        done = f"{done[:1].upper()}{done[1:]}" or Work.WORKED
    time = None if row.duration_ms is None else words.duration(row.duration_ms)
    return WorkSummary(done, tuple(_troubles(row)), words.join(Work.calls(len(row.calls)), time))


def _troubles(row: WorkRow) -> Iterator[tuple[str, Tone]]:
    calls = [call for call in row.calls if not is_unanswered(call)]
    if failed := sum(call.status == "error" for call in calls):
        yield Work.failed(failed), "bad"
    if denied := sum(call.status == "denied" for call in calls):
        yield Work.denied(denied), "bad"
    if interrupted := sum(call.status == "interrupted" for call in calls):
        yield Work.interrupted(interrupted), "wait"
    if waiting := sum(call.status == "waiting" for call in calls):
        yield Work.waiting(waiting), "wait"
    # While the turn runs that is what it does.
    if not row.is_live and (left := sum(call.status in OPEN_TOOL for call in calls) - waiting):
        yield Work.open(left), "faint"


def _deeds(calls: Sequence[ToolBlock]) -> Iterator[str]:
    """What was begun, each kind once: distinct files, all commands."""
    begun = [(kind_of(call.name), call) for call in calls if _was_begun(call)]
    kinds = [kind for kind, _ in begun]
    read = {_read_path(call) for kind, call in begun if kind == "read"}
    edited = {path for kind, call in begun if kind in ("edit", "write", "patch") for path in _paths_edited_by(call)}
    if read:
        yield Work.read(len(read))
    if searched := sum(kind in ("glob", "grep", "search") for kind in kinds):
        yield Work.searched(searched)
    if listed := kinds.count("list"):
        yield Work.listed(listed)
    if fetched := kinds.count("fetch"):
        yield Work.fetched(fetched)
    if edited:
        yield Work.edited(len(edited))
    if ran := kinds.count("shell"):
        yield Work.ran(ran)
    if "plan" in kinds:
        yield Work.PLANNED
    if asked := kinds.count("ask"):
        yield Work.asked(asked)
    if delegated := kinds.count("task"):
        yield Work.delegated(delegated)
    if wrote := kinds.count("message"):
        yield Work.wrote(wrote)
    if others := kinds.count("other"):
        yield Work.others(others)


def _was_begun(call: ToolBlock) -> bool:
    return call.status == "ok" or (call.started_at is not None and call.status != "denied")


def _read_path(call: ToolBlock) -> str:
    return argument(call.input, "path", "file_path", "filename", "file", "notebook_path") or call.call


def _paths_edited_by(call: ToolBlock) -> list[str]:
    """Of a call that told what it changed those files, else the one it was asked to change."""
    if call.changes:
        return [change.path for change in call.changes]
    return [argument(call.input, "path", "file_path", "notebook_path") or call.call] if call.status == "ok" else []

"""What happens beside the words of a conversation, in the view: subagents, processes, grants, changed files.

Called by evolve alone. Pure.
"""

from msgspec.structs import replace

from palaver.schema.events import (
    FilesChanged,
    GrantAdded,
    GrantRemoved,
    ProcessFinished,
    ProcessStarted,
    SubagentFinished,
    SubagentStarted,
)
from palaver.schema.view import FileChange, Grant, Process, Subagent

KEEP_LATEST = 200
"""Subagents, grants and changed files that stay in view: each list holds its latest, so a view stays small."""


def subagent_started(known: tuple[Subagent, ...], event: SubagentStarted) -> tuple[Subagent, ...]:
    started = Subagent(
        conversation=event.subagent,
        agent=event.agent,
        task=event.task,
        call=event.call,
        run=event.run,
        turn=event.turn,
        started_at=event.ts,
    )
    return (*known, started)[-KEEP_LATEST:]


def subagent_ended(known: tuple[Subagent, ...], event: SubagentFinished) -> tuple[Subagent, ...]:
    """The first end is the end."""
    return tuple(
        replace(child, status=event.outcome, finished_at=event.ts, cost_usd=event.cost_usd)
        if child.conversation == event.subagent and child.status == "running"
        else child
        for child in known
    )


def process_started(known: tuple[Process, ...], event: ProcessStarted) -> tuple[Process, ...]:
    started = Process(
        id=event.process,
        command=event.command,
        call=event.call,
        pid=event.pid,
        turn=event.turn,
        started_at=event.ts,
    )
    return (*known, started)


def process_ended(known: tuple[Process, ...], event: ProcessFinished) -> tuple[Process, ...]:
    """The first end is the end."""
    return tuple(
        replace(process, running=False, exit_code=event.exit_code, finished_at=event.ts, end=event.end)
        if process.id == event.process and process.running
        else process
        for process in known
    )


def add_grant(known: tuple[Grant, ...], event: GrantAdded) -> tuple[Grant, ...]:
    grant = Grant(
        tool=event.tool,
        scope=event.scope,
        decision=event.decision,
        match=event.match,
        agent=event.agent,
        request=event.request,
        ts=event.ts,
    )
    return (*remove_grant(known, event), grant)[-KEEP_LATEST:]


def remove_grant(known: tuple[Grant, ...], event: GrantAdded | GrantRemoved) -> tuple[Grant, ...]:
    return tuple(grant for grant in known if (grant.tool, grant.match) != (event.tool, event.match))


def files_changed(known: tuple[FileChange, ...], event: FilesChanged) -> tuple[FileChange, ...]:
    """What became of each path, last changed last. A call tells of its own change alone, and shows the diff itself; what
    is told without a call is all that there is to tell of a file."""
    files = {file.path: file for file in known}
    for file in event.files:
        before = files.pop(file.path, None)
        files[file.path] = _with_earlier(before, file) if event.call else file
    return tuple(files.values())[-KEEP_LATEST:]


def _with_earlier(before: FileChange | None, change: FileChange) -> FileChange:
    if before is None:
        return replace(change, diff=None)
    # A file that was made and then changed was made.
    keeps_kind = change.kind != "deleted" and before.kind in ("created", "renamed")
    return replace(
        change,
        kind=before.kind if keeps_kind else change.kind,
        additions=before.additions + change.additions,
        deletions=before.deletions + change.deletions,
        diff=None,
    )

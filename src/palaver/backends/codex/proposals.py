"""What Codex asks leave for, in the terms of our policy: rules and standing grants hold for it as for our own tools."""

from msgspec.structs import replace

from palaver.approval.policy import offers
from palaver.approval.program_calls import Judged, Judging, may_edit
from palaver.backends.base import Turn
from palaver.backends.codex.approvals import Asked
from palaver.backends.codex.items import COMMAND, PATCH, relative
from palaver.installation import places_in
from palaver.tools.base import Proposal, ToolSpec
from palaver.tools.files.file_names import file_names


def judge_question(judging: Judging, turn: Turn, question: Asked, *, leaves_sandbox: bool) -> Judged | None:
    """None for what only a person can answer."""
    opened = question.opened
    if question.match is None or opened.tool not in (COMMAND, PATCH):
        return None
    here = bool(question.paths) and all(may_edit(turn.project, path) for path in question.paths)
    spec = ToolSpec(
        name=opened.tool,
        description="",
        parameters={},
        edits_only=opened.tool == PATCH and here,
        # Codex's own sandbox lets a command change what this server runs, where that lies in the project.
        outside=(leaves_sandbox or bool(places_in(turn.project))) and not here,
    )
    proposal = Proposal(
        title=opened.title or opened.tool,
        hash=opened.hash or "",
        preview=opened.preview or "",
        match=question.match,
        writes=tuple(relative(path, turn.project) for path in question.paths) or None,
        paths=file_names(turn.project, question.paths),
    )
    return judging.judge(turn, spec, proposal)


def with_scopes(judging: Judging, turn: Turn, question: Asked, verdict: Judged) -> Asked:
    """With what a lasting yes may cover, and for how long."""
    lasting = offers(verdict.spec, verdict.proposal)
    opened = replace(
        question.opened,
        risk=question.opened.risk or verdict.verdict.why,
        offers=lasting,
        scopes=judging.grants.scopes(turn) if lasting else ("once",),
    )
    return question.with_(opened)

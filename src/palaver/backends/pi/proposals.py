"""What a tool call of Pi would do, in the terms of our policy. Pi asks nobody itself, so every call comes here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palaver.approval.policy import offers
from palaver.approval.program_calls import Judged, Judging, inside, may_edit, proposal_of
from palaver.backends.base import Turn
from palaver.backends.pi.events import Call
from palaver.schema.events import RequestOpened
from palaver.tools.base import Proposal, ToolSpec

READS = frozenset({"read", "ls", "grep", "find"})
EDITS = frozenset({"write", "edit"})
OURS = {"bash": "shell", "powershell": "shell", "ls": "list", "find": "glob"}


def describe(name: str, given: Mapping[str, Any], project: Path) -> tuple[ToolSpec, Proposal]:
    told = given.get("path")
    path = told if isinstance(told, str) else None
    here = inside(project, path) if path is not None else told is None
    reads, edits = name in READS and here, name in EDITS and path is not None and may_edit(project, path)
    spec = ToolSpec(
        name=OURS.get(name, name),
        description="",
        parameters={},
        reads_only=reads,
        edits_only=edits,
        # No sandbox of ours holds this program.
        outside=not (reads or edits),
    )
    return spec, proposal_of("pi", name, given, project, path=path, edits=name in EDITS, reads=reads)


def request_of(judging: Judging, turn: Turn, call: Call, judged: Judged) -> RequestOpened:
    proposal = judged.proposal
    offered = offers(judged.spec, proposal)
    return RequestOpened(
        request=turn.new_id(),
        kind="approval",
        call=call.id,
        agent=turn.agent.id,
        tool=call.name,
        input=call.input,
        hash=proposal.hash,
        title=proposal.title,
        preview=proposal.preview,
        risk=judged.verdict.why,
        scopes=judging.grants.scopes(turn) if offered else ("once",),
        offers=offered,
    )

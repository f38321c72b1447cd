"""What Claude Code asks leave for, in the terms of our policy: rules, grants and modes hold for it as for our own tools."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palaver.approval.policy import OUR_TOOLS
from palaver.approval.program_calls import Judged, Judging, inside, may_edit, proposal_of
from palaver.backends.base import Turn
from palaver.tools.base import Proposal, ToolSpec

READS = frozenset({"Read", "Glob", "Grep", "LS", "NotebookRead"})
EDITS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})


def judge_call(judging: Judging, turn: Turn, tool: str, given: Mapping[str, Any]) -> Judged:
    return judging.judge(turn, *describe(tool, given, turn.project))


def describe(tool: str, given: Mapping[str, Any], project: Path) -> tuple[ToolSpec, Proposal]:
    told = next((given[name] for name in ("file_path", "path", "notebook_path", "url") if name in given), None)
    path = told if isinstance(told, str) else None
    here = path is None or (tool != "WebFetch" and inside(project, path))
    reads, edits = tool in READS and here, tool in EDITS and path is not None and may_edit(project, path)
    spec = ToolSpec(
        name=OUR_TOOLS.get(tool, tool),
        description="",
        parameters={},
        reads_only=reads,
        edits_only=edits,
        # No sandbox of ours holds this program: what mode `auto` lets run inside one is asked for here.
        outside=not (reads or edits),
    )
    return spec, proposal_of("claude", tool, given, project, path=path, edits=tool in EDITS, reads=reads)

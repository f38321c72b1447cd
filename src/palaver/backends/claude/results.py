"""What the program's tools gave back, and how a turn of it ended, in our words. Pure; used by `translate` and `backend`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from palaver.backends.claude.installation import HOW_TO_LOG_IN
from palaver.errors import AgentError, NotLoggedIn, ProviderRefused, ProviderUnavailable
from palaver.schema.events import ToolFinished
from palaver.schema.view import FileChange, ToolError
from palaver.tools.proposal import shortened

EXIT_CODE = re.compile(r"^Exit code (\d+)\n?")
MESSAGE_CHARS = 2_000
"""Of an error in its one line; the output holds all of it."""
LOGIN = frozenset({"authentication_failed", "oauth_org_not_allowed"})
BUSY = frozenset({408, 429, 529})


@dataclass(frozen=True, slots=True)
class Result:
    """How the program says that its turn ended."""

    reason: str
    """`completed`, `aborted_streaming`, `aborted_tools`, `api_error`, …"""
    failed: bool
    text: str
    status: int | None
    own: bool
    """It started by itself, not by a message of ours."""

    @staticmethod
    def of(line: Mapping[str, Any]) -> "Result":
        errors = line.get("errors")
        said = line.get("result") or "; ".join(map(str, errors if isinstance(errors, list) else ()))
        origin = line.get("origin")
        status = line.get("api_error_status")
        return Result(
            reason=str(line.get("terminal_reason") or line.get("subtype") or ""),
            failed=bool(line.get("is_error")),
            text=str(said),
            status=status if isinstance(status, int) else None,
            own=isinstance(origin, dict) and origin.get("kind") not in (None, "human"),
        )

    def error(self, kind: str | None) -> AgentError:
        """Why the turn failed, for a person."""
        if kind in LOGIN or self.status in (401, 403):
            return NotLoggedIn(f"Claude Code could not log in: {self.text} {HOW_TO_LOG_IN}")
        said = f"Claude Code gave up: {self.text or self.reason}"
        if self.status is None or self.status >= 500 or self.status in BUSY:
            return ProviderUnavailable(said, status=self.status)
        return ProviderRefused(said, status=self.status)


def finished(
    call: str, name: str, block: Mapping[str, Any], line: Mapping[str, Any], *, denied: bool = False
) -> ToolFinished:
    """The one result of a call. Whether it ran at all the program tells beside it; a person's no is known here."""
    output = text_of(block.get("content"))
    if not block.get("is_error"):
        return ToolFinished(call=call, ok=True, output=output, exit_code=0 if name == "Bash" else None)
    kind = _non_execution(str(block.get("tool_use_id")), line)
    if kind is not None or denied:
        code = "tool_interrupted" if kind == "user-rejected" and not denied else "tool_denied"
        return ToolFinished(call=call, ok=False, error=ToolError(code=code, message=output), effect="none")
    exited = EXIT_CODE.match(output)
    return ToolFinished(
        call=call,
        ok=False,
        output=output,
        error=ToolError(code="tool_error", message=output[:MESSAGE_CHARS] or f"{name} failed."),
        exit_code=int(exited[1]) if exited else None,
    )


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return "\n".join(str(part.get("text")) if part.get("type") == "text" else f"[{part.get('type')}]" for part in parts)


def files_changed(result: Any) -> tuple[FileChange, ...]:
    """What an edit did, from the patch that the program tells beside its result."""
    if not isinstance(result, dict) or not isinstance(result.get("filePath"), str):
        return ()
    hunks = result.get("structuredPatch")
    created = result.get("type") == "create"
    if not isinstance(hunks, list) or not (hunks or created):
        return ()
    path = result["filePath"]
    lines = [line for hunk in hunks if isinstance(hunk, dict) for line in _hunk(hunk)]
    if created and not lines:
        lines = [f"+{line}" for line in str(result.get("content") or "").splitlines()]
    kind: Literal["created", "modified"] = "created" if created else "modified"
    diff = "\n".join((f"--- {'/dev/null' if created else path}", f"+++ {path}", *lines, ""))
    return (
        FileChange(
            path=path,
            kind=kind,
            additions=sum(line.startswith("+") for line in lines),
            deletions=sum(line.startswith("-") for line in lines),
            diff=shortened(diff),
        ),
    )


def _hunk(hunk: Mapping[str, Any]) -> list[str]:
    head = f"@@ -{hunk.get('oldStart')},{hunk.get('oldLines')} +{hunk.get('newStart')},{hunk.get('newLines')} @@"
    lines = hunk.get("lines")
    return [head, *map(str, lines if isinstance(lines, list) else ())]


def _non_execution(theirs: str, line: Mapping[str, Any]) -> str | None:
    metas = line.get("tool_result_meta")
    for meta in metas if isinstance(metas, list) else ():
        if isinstance(meta, dict) and meta.get("id") == theirs and meta.get("non_execution_kind"):
            return str(meta["non_execution_kind"])
    return None

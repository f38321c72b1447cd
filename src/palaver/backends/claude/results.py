"""What the program's tools gave back, and how a turn of it ended, in our words. Pure.

Used by `translate`, `conduct` and `program`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

from msgspec.structs import replace

from palaver.backends.claude.installation import HOW_TO_LOG_IN
from palaver.errors import AgentError, NotLoggedIn, ProviderRefused, ProviderUnavailable
from palaver.schema.base import Usage
from palaver.schema.events import ContextMeasured, KnownEvent, ToolFinished, ToolOutputDelta, TurnStatus
from palaver.schema.view import FileChange, Retry, ToolError
from palaver.tools.proposal import shorten
from palaver.tools.redact import Redactor

EXIT_CODE = re.compile(r"^Exit code (\d{1,9})\n?")
MESSAGE_CHARS = 2_000
"""Of an error in its one line; the output holds all of it."""
LOGIN = frozenset({"authentication_failed", "oauth_org_not_allowed"})
BUSY = frozenset({408, 429, 529})
NOTHING_SPENT = Usage()


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

    @property
    def limited(self) -> bool:
        """It met a limit that somebody set: of steps, or of money."""
        return self.failed and self.reason.removeprefix("error_").startswith(("max_turns", "max_budget"))

    def error(self, kind: str | None) -> AgentError:
        """Why the turn failed, for a person."""
        if kind in LOGIN or self.status in (401, 403):
            return NotLoggedIn(f"Claude Code could not log in: {self.text} {HOW_TO_LOG_IN}")
        said = f"Claude Code gave up: {self.text or self.reason}"
        if self.status is None or self.status >= 500 or self.status in BUSY:
            return ProviderUnavailable(said, status=self.status)
        return ProviderRefused(said, status=self.status)


def finish_call(
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


def files_changed(result: Any, root: Path | None = None) -> tuple[FileChange, ...]:
    """What an edit did, from the patch that the program tells beside its result."""
    if not isinstance(result, dict) or not isinstance(result.get("filePath"), str):
        return ()
    hunks = result.get("structuredPatch")
    created = result.get("type") == "create"
    if not isinstance(hunks, list) or not (hunks or created):
        return ()
    path = result["filePath"]
    if root is not None and PurePath(path).is_relative_to(root):
        path = str(PurePath(path).relative_to(root))
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
            diff=shorten(diff),
        ),
    )


def usage_of(usage: Mapping[str, Any], before: Usage = NOTHING_SPENT) -> Usage:
    """Tokens of one answer. What is not said again stays as it was."""
    cached = int(usage.get("cache_read_input_tokens") or 0)
    fresh = usage.get("input_tokens")
    written = int(usage.get("cache_creation_input_tokens") or 0)
    thought = _dict(usage.get("output_tokens_details")).get("thinking_tokens")
    return Usage(
        input_tokens=int(fresh) + cached + written if fresh is not None else before.input_tokens,
        output_tokens=int(usage.get("output_tokens") or before.output_tokens),
        cached_tokens=cached if fresh is not None else before.cached_tokens,
        reasoning_tokens=int(thought or before.reasoning_tokens),
    )


def exit_code_of(line: Mapping[str, Any]) -> int | None:
    _, _, rest = str(line.get("summary") or "").rpartition("(exit code ")
    number = rest.rstrip(")")
    return int(number) if number.isdigit() else None


def task_finished(call: str, line: Mapping[str, Any]) -> ToolFinished:
    """The end of a subagent that worked in the background: its report is the call's result."""
    report = str(line.get("summary") or "")
    return finish_call(
        call, "Agent", {"content": report, "is_error": line.get("status") != "completed"}, {"tool_use_result": None}
    )


def retry_of(line: Mapping[str, Any]) -> TurnStatus:
    reason = str(line.get("error") or "the service did not answer")
    if line.get("error_status"):
        reason = f"{reason} ({line['error_status']})"
    retry = Retry(
        attempt=int(line.get("attempt") or 1),
        of=int(line.get("max_retries") or 1),
        after_s=float(line.get("retry_delay_ms") or 0) / 1000,
        reason=reason,
    )
    return TurnStatus(status="thinking", detail=f"trying again: {reason}", retry=retry)


def context_events(line: Mapping[str, Any], model: str | None, used: Usage) -> list[ContextMeasured]:
    """How full the program's window is, by its last answer."""
    window = _dict(_dict(line.get("modelUsage")).get(model or "")).get("contextWindow")
    if not isinstance(window, int) or used == NOTHING_SPENT:
        return []
    return [ContextMeasured(used_tokens=used.input_tokens + used.output_tokens, window_tokens=window, estimated=False)]


def redacted(event: KnownEvent, redactor: Redactor) -> KnownEvent:
    """What tools say, without the secrets that the program was given."""
    match event:
        case ToolOutputDelta():
            return replace(event, text=redactor.redact(event.text))
        case ToolFinished():
            error = event.error and replace(event.error, message=redactor.redact(event.error.message))
            return replace(event, output=redactor.redact(event.output), error=error)
        case _:
            return event


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


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}

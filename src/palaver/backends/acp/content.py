"""The contents of ACP's updates, read as tolerantly as agents write them. Pure; what is unknown is left out."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from palaver.schema.view import FileChange, Plan, PlanItem
from palaver.tools.proposal import Change

PLAN_STATUS: dict[str, Literal["pending", "in_progress", "done"]] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "completed": "done",
}


def text_of(block: Any) -> str:
    """Of one content block. What is not text is named where it can be."""
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource_link", "uri": str(uri)}:
            return uri
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "image" | "audio" as kind}:
            return f"[{kind}]"
        case _:
            return ""


def output_of(update: Mapping[str, Any]) -> str:
    """All that a tool said so far: `content` replaces what came before; some agents tell it only as raw output."""
    content = update.get("content")
    said = "\n".join(text for part in (content if isinstance(content, list) else ()) if (text := _text_of(part)))
    return said or _raw(update.get("rawOutput")) or _aside(update.get("_meta"))


def exit_code(update: Mapping[str, Any]) -> int | None:
    match update.get("_meta"):
        case {"terminal_exit": {"exit_code": int(code)}}:
            return code
        case _:
            pass
    match update.get("rawOutput"):
        case {"metadata": {"exit": int(code)}} | {"exit_code": int(code)} | {"exitCode": int(code)}:
            return code
        case _:
            return None


def paths_of(locations: list[Any]) -> tuple[str, ...]:
    return tuple(one["path"] for one in locations if isinstance(one, Mapping) and isinstance(one.get("path"), str))


def changes(content: list[Any]) -> tuple[FileChange, ...]:
    return tuple(change.file_change() for change in _diffs(content))


def preview_of(content: list[Any]) -> str:
    return "".join(change.preview() for change in _diffs(content))


def plan_of(entries: Any) -> Plan | None:
    """Each update tells the whole plan; an empty one takes it back."""
    items = tuple(
        PlanItem(title=entry["content"], status=PLAN_STATUS.get(str(entry.get("status")), "pending"))
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("content"), str)
    )
    if not items:
        return None
    done = all(item.status == "done" for item in items)
    return Plan(summary=items[0].title, items=items, status="completed" if done else "executing")


def _text_of(part: Any) -> str:
    return text_of(part.get("content")) if isinstance(part, Mapping) and part.get("type") == "content" else ""


def _diffs(content: list[Any]) -> Iterator[Change]:
    for part in content:
        match part:
            case {"type": "diff", "path": str(path), "newText": str(new)}:
                old = part.get("oldText")
                yield Change(path, old.encode() if isinstance(old, str) else None, new.encode())
            case _:
                pass


def _raw(raw: Any) -> str:
    match raw:
        case str():
            return raw
        case {"output": str(text)} | {"error": str(text)} | {"message": str(text)} | {"formatted_output": str(text)}:
            return text
        case {"stdout": str(out), "stderr": str(err)}:
            return out + err
        case dict() | list() if raw:
            return msgspec.json.encode(raw).decode()
        case _:
            return ""


def _aside(meta: Any) -> str:
    match meta:
        case {"terminal_output": {"data": str(text)}}:
            return text
        case _:
            return ""

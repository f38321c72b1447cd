"""What Codex calls an item, as a tool call: its name, its input, its result, and what it did to files. Pure.

Used by the translation and by what is asked of a person. Commands and patches carry the names of our own tools, so that a
page shows them alike and a standing yes to a command holds whoever runs it. A type that this release does not know is no
tool call.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from palaver.schema.view import FileChange
from palaver.tools.proposal import Change, name_in_diff, shorten
from palaver.tools.shell.command_line import command_lines

Item = Mapping[str, Any]

COMMAND = "shell"
PATCH = "apply_patch"

_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_DIFF_HEADER_LINES = 2


@dataclass(frozen=True, slots=True)
class Tool:
    """A call as a person sees it."""

    name: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    status: Literal["ok", "failed", "declined"]
    output: str
    exit_code: int | None = None
    duration_ms: int | None = None


def tool_of(item: Item, project: Path) -> Tool | None:
    """None for what is no tool: text, thoughts, the person's own words, and what is not known yet."""
    match item.get("type"):
        case "commandExecution":
            return Tool(COMMAND, _command_input(item, project))
        case "fileChange":
            changes = file_changes(item, project)
            return Tool(PATCH, {"files": [{"path": change.path, "kind": change.kind} for change in changes]})
        case "mcpToolCall":
            return Tool(f"mcp__{item.get('server')}__{item.get('tool')}", _arguments(item))
        case "dynamicToolCall" | "collabAgentToolCall":
            more = _arguments(item) if "arguments" in item else {"prompt": item.get("prompt")}
            return Tool(str(item.get("tool") or "tool"), more)
        case "webSearch":
            return Tool("web_search", {"query": item.get("query") or ""})
        case "imageView":
            return Tool("view_image", {"path": relative(str(item.get("path")), project)})
        case "imageGeneration":
            return Tool("image_generation", {"prompt": item.get("revisedPrompt") or ""})
        case _:
            return None


def result_of(item: Item) -> Result:
    duration = item.get("durationMs")
    duration_ms = duration if isinstance(duration, int) else None
    status = item.get("status")
    if status == "declined":
        return Result("declined", "")
    match item.get("type"):
        case "commandExecution":
            code = item.get("exitCode")
            ok = status == "completed" and code in (0, None)
            output = str(item.get("aggregatedOutput") or "")
            return Result("ok" if ok else "failed", output, code if isinstance(code, int) else None, duration_ms)
        case "fileChange":
            return Result("failed" if status == "failed" else "ok", _patch_output(item), duration_ms=duration_ms)
        case "mcpToolCall":
            return Result("failed" if status == "failed" else "ok", _mcp_output(item), duration_ms=duration_ms)
        case "dynamicToolCall":
            failed = status == "failed" or item.get("success") is False
            return Result("failed" if failed else "ok", _texts(item.get("contentItems")), duration_ms=duration_ms)
        case _:
            return Result("failed" if status == "failed" else "ok", "", duration_ms=duration_ms)


def is_running(item: Item) -> bool:
    """A command that needs no yes has a process from the start; one that will be asked about has none yet."""
    return item.get("type") != "commandExecution" or item.get("processId") is not None


def plain_command(command: str) -> str:
    """What was asked for, without the shell that Codex wraps around it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    match words:
        case [shell, "-lc" | "-c", script] if Path(shell).name in _SHELLS:
            return script
        case _:
            return command


def relative(path: str, project: Path) -> str:
    try:
        return str(Path(path).relative_to(project))
    except ValueError:
        return path


def file_changes(item: Item, project: Path) -> tuple[FileChange, ...]:
    changes = item.get("changes")
    if not isinstance(changes, list):
        return ()
    return tuple(_file_change(change, project) for change in changes if isinstance(change, dict))


def _file_change(change: Item, project: Path) -> FileChange:
    path, diff = relative(str(change.get("path")), project), str(change.get("diff") or "")
    match change.get("kind"):
        case {"type": "add"}:
            # Here and for a file that goes, the "diff" is the whole file.
            return Change(path, None, diff.encode()).file_change()
        case {"type": "delete"}:
            return Change(path, diff.encode(), None).file_change()
        case {"type": "update", "move_path": str(target)}:
            # Codex says the move once more in words, at the end of the diff.
            return _update_of(relative(target, project), path, diff.rpartition("\n\nMoved to: ")[0] or diff, "renamed")
        case _:
            return _update_of(path, path, diff, "modified")


def _update_of(path: str, source: str, diff: str, kind: Literal["modified", "renamed"]) -> FileChange:
    lines = diff.splitlines()
    head = f"--- {name_in_diff(source, 'a')}\n+++ {name_in_diff(path, 'b')}\n"
    whole = f"{head}{diff}" if not diff.startswith("--- ") else diff
    counted = lines if not diff.startswith("--- ") else lines[_DIFF_HEADER_LINES:]
    return FileChange(
        path=path,
        kind=kind,
        additions=sum(line.startswith("+") for line in counted),
        deletions=sum(line.startswith("-") for line in counted),
        diff=shorten(whole if whole.endswith("\n") else whole + "\n"),
    )


def _command_input(item: Item, project: Path) -> dict[str, Any]:
    # A string, and an argv in older releases.
    command = next(iter(command_lines({"command": item.get("command")})), "")
    asked: dict[str, Any] = {"command": plain_command(command)}
    cwd = item.get("cwd")
    if isinstance(cwd, str) and Path(cwd) != project:
        asked["cwd"] = relative(cwd, project)
    return asked


def _arguments(item: Item) -> dict[str, Any]:
    arguments = item.get("arguments")
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}


def _patch_output(item: Item) -> str:
    changes = item.get("changes")
    count = len(changes) if isinstance(changes, list) else 0
    return f"{count} {'file' if count == 1 else 'files'} changed." if item.get("status") == "completed" else ""


def _mcp_output(item: Item) -> str:
    match item:
        case {"error": {"message": str(message)}}:
            return message
        case {"result": {"content": list(content)}}:
            return _texts(content)
        case _:
            return ""


def _texts(content: object) -> str:
    if not isinstance(content, list):
        return ""
    return "\n".join(
        part["text"]
        if isinstance(part, dict) and isinstance(part.get("text"), str)
        else msgspec.json.encode(part).decode()
        for part in content
    )

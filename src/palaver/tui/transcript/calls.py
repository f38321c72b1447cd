"""How a tool call is said in one line: verb, object, result. One call has one name everywhere. Pure.

Called by rows, the approval dock and the activity line. Agents bring their own tools: names of the known programs are mapped
to what they do, everything else keeps its name. The same table as the page's (`web/src/model/toolkind.ts`), said with the
same words (`web/src/view/tools/say.ts`).
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from palaver.schema.view import FileChange, ToolBlock
from palaver.tui.text import words
from palaver.tui.text.safe import visible
from palaver.tui.transcript.diffs import diff_of_call, stat_of

ToolKind = Literal[
    "read",
    "list",
    "glob",
    "grep",
    "edit",
    "write",
    "patch",
    "shell",
    "fetch",
    "search",
    "plan",
    "ask",
    "task",
    "message",
    "yield",
    "finish",
    "other",
]

NAMES: Final[Mapping[ToolKind, str]] = {
    "read": "read read_file read_many_files view cat notebookread readfile",
    "list": "list ls list_dir list_directory",
    "glob": "glob find find_files file_search",
    "grep": "grep search grep_search search_files search_file_content ripgrep",
    "edit": "edit multiedit str_replace edit_file notebookedit replace",
    "write": "write write_file create_file create",
    "patch": "patch apply_patch applypatch",
    "shell": "shell bash exec exec_command run_command local_shell command_execution execute run_shell_command terminal",
    "fetch": "fetch webfetch web_fetch",
    "search": "websearch web_search google_web_search",
    "plan": "plan todowrite update_plan exitplanmode",
    "ask": "ask_user askuserquestion",
    "task": "task agent",
    "message": "agents_message",
    "yield": "loop_yield_turn",
    "finish": "finish_task",
}
_KINDS: Final[Mapping[str, ToolKind]] = {name: kind for kind, names in NAMES.items() for name in names.split()}
_EXPLORING: Final[frozenset[ToolKind]] = frozenset({"read", "list", "glob", "grep"})

_OBJECTS: Final[Mapping[ToolKind, tuple[str, ...]]] = {
    "read": ("path", "file_path", "filename", "file", "notebook_path"),
    "list": ("path", "dir_path", "directory"),
    "glob": ("pattern", "glob", "query", "name"),
    "grep": ("pattern", "query", "regex"),
    "edit": ("path", "file_path", "notebook_path"),
    "write": ("path", "file_path"),
    "patch": ("path", "file_path"),
    "shell": ("command", "cmd", "script"),
    "fetch": ("url",),
    "search": ("query", "q"),
    "plan": ("summary", "title"),
    "ask": ("question",),
    "task": ("agent", "subagent_type", "description", "prompt"),
    "message": ("agentId", "agent", "to"),
    "yield": (),
    "finish": (),
    "other": ("path", "file_path", "command", "query", "pattern", "url", "name", "title", "id"),
}
"""The argument that says what a call is about; the first one present is taken."""

_STREAMED = re.compile(r'"(?:path|file_path|command|cmd|pattern|query|url)"\s*:\s*"((?:[^"\\]|\\.)*)')
_PATCHED = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(.+)$", re.MULTILINE)
_ENDED: Final = ("ok", "error", "interrupted")


def kind_of(name: str) -> ToolKind:
    if known := _KINDS.get(name.lower()):
        return known
    # Tools of MCP servers come as "mcp__server__tool".
    return _KINDS.get(re.split(r"__|\.", name)[-1].lower(), "other")


def is_exploring(name: str) -> bool:
    """Whether it only looks."""
    return kind_of(name) in _EXPLORING


def argument(given: Any, *names: str) -> str | None:
    """An argument of a call as text. Arguments come from models: anything may be missing or of another type."""
    if not isinstance(given, dict):
        return None
    for name in names:
        value = given.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list | tuple) and value and all(isinstance(part, str) for part in value):
            return " ".join(value)
    return None


def short_path(path: str, keep: int = 4) -> str:
    """Long paths keep their end, which is what tells them apart."""
    parts = path.split("/")
    return f"…/{'/'.join(parts[-keep:])}" if len(parts) > keep + 1 else path


def object_of(name: str, given: Any, streamed: str = "") -> str:
    """What a call is about, as it was given: not yet safe for a terminal."""
    kind = kind_of(name)
    value = argument(given, *_OBJECTS[kind]) or (_partial_object(streamed) if streamed else "")
    match kind:
        case "read" | "edit" | "write":
            return short_path(value)
        case "list":
            return short_path(value or ".")
        case "patch":
            return value or _files_of_patch(argument(given, "patch", "input", "diff") or "")
        case "grep":
            place = argument(given, "path", "include")
            return f"{value} {words.Tool.placed(short_path(place))}" if place else value
        case "ask":
            return _first_line(value or _first_question(given))
        case "other":
            return words.join(name, _first_line(value))
        case _:
            return _first_line(value)


def doing(block: ToolBlock) -> str:
    """What a running call does: "Running pytest -q"."""
    return f"{words.Tool.VERBS[kind_of(block.name)][1]} {object_text(block)}".strip()


def object_text(block: ToolBlock) -> str:
    """A command must look like what it is, also in one line."""
    return visible(object_of(block.name, block.input, block.input_text))


def verb_of(block: ToolBlock) -> str:
    """Only what ran is said to have run."""
    before, during, after = words.Tool.VERBS[kind_of(block.name)]
    if block.status == "running":
        return during
    return after if block.status in _ENDED and block.started_at is not None else before


def is_unanswered(block: ToolBlock) -> bool:
    """A question that a person skipped, or that nobody came to answer: an outcome, not a failure."""
    if kind_of(block.name) != "ask":
        return False
    code = block.error.code if block.error else None
    return block.status == "denied" or (block.status == "error" and code in ("no_answer", "interaction_timeout"))


def result_of(block: ToolBlock) -> str:
    """What came of it; empty while nothing did."""
    if is_unanswered(block):
        return words.Tool.UNANSWERED
    match block.status:
        case "input":
            return words.Tool.PREPARING
        case "called":
            return words.Tool.CALLED
        case "waiting":
            return words.Tool.WAITING
        case "running":
            return ""
        case "denied":
            return words.Tool.DENIED
        case "interrupted":
            return words.Tool.INTERRUPTED
        case "error":
            if block.exit_code is not None:
                return words.Tool.exit(block.exit_code)
            return words.join(words.Tool.FAILED, visible(_first_line(block.error.message)) if block.error else None)
        case "ok":
            return _outcome(block)


def _outcome(block: ToolBlock) -> str:
    match kind_of(block.name):
        case "read" | "list":
            return words.Tool.lines(_total_lines(block))
        case "glob" | "grep":
            found = _total_lines(block)
            return words.Tool.matches(found) if found else words.Tool.NOTHING
        case "edit" | "write" | "patch":
            if block.changes:
                return changes_of(block)
            diff = diff_of_call(block.input)
            return words.Tool.stat(*stat_of(diff.lines)) if diff else ""
        case "shell":
            code = block.exit_code
            return words.join(words.Tool.exit(code) if code else None, changes_of(block))
        case _:
            return changes_of(block)


def changes_of(block: ToolBlock) -> str:
    """ "+12 -4" of one file, "3 files +12 -4" of several."""
    if not block.changes:
        return ""
    files = len({change.path for change in block.changes})
    many = files > 1 or kind_of(block.name) == "shell"
    return " ".join([words.Tool.files(files)] * many + [words.Tool.stat(*total(block.changes))])


def total(changes: tuple[FileChange, ...]) -> tuple[int, int]:
    """Lines added and removed."""
    return sum(change.additions for change in changes), sum(change.deletions for change in changes)


def _total_lines(block: ToolBlock) -> int:
    if block.total_lines is not None:
        return block.total_lines
    trimmed = block.output.removesuffix("\n")
    return trimmed.count("\n") + 1 if trimmed else 0


def _first_line(value: str) -> str:
    line, *rest = value.strip().split("\n")
    return f"{line} …" if rest else line


def _first_question(given: Any) -> str:
    questions = given.get("questions") if isinstance(given, dict) else None
    asked = [argument(one, "question") for one in questions] if isinstance(questions, list) else []
    return next((question for question in asked if question), "")


def _partial_object(streamed: str) -> str:
    """While arguments stream in they are half a JSON text; the first string in it is usually what the call is about."""
    found = _STREAMED.search(streamed)
    return found[1].replace("\\n", " ").replace('\\"', '"').replace("\\\\", "\\") if found else ""


def _files_of_patch(patch: str) -> str:
    files = _PATCHED.findall(patch)
    return "" if not files else short_path(files[0]) if len(files) == 1 else words.Tool.files(len(files))

"""Parser of structured answers: a finished text block whose whole text is one JSON object with a known `type`.

Clients show such a block as a widget (a plan, a task summary, a change report, questions) instead of as text; the exports
write it out as markdown or HTML. Everything else, JSON or not, stays text: an unknown `type`, a field of the wrong type,
an object with nothing to show, or a text beyond the size limit gives None. Unknown fields are ignored and null counts as
absent. Pure. `web/src/model/special.ts` is the same parser for the page; `tests/golden/texts/special-blocks.json` holds both to
the same answers.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from palaver.schema.base import Shown
from palaver.schema.view import Plan, PlanItem, Question, QuestionOption

LIMIT_CHARS = 262_144
"""A longer text is no answer for a widget, and parsing it would hold up whoever draws it."""

_BACKTICKS = re.compile("`+")

Object: TypeAlias = Mapping[str, Any]


class PlanBlock(Shown, tag="plan", tag_field="type"):
    plan: Plan


class TaskSection(Shown):
    """A named list of a task summary, such as its acceptance criteria."""

    title: str
    items: tuple[str, ...]


class FinalizeTaskBlock(Shown, tag="finalize_task", tag_field="type"):
    title: str = ""
    summary: str = ""
    sections: tuple[TaskSection, ...] = ()


class ReportedFile(Shown):
    path: str
    summary: str | None = None
    diff: str | None = None


class ChangeReportBlock(Shown, tag="change_report", tag_field="type"):
    files: tuple[ReportedFile, ...]
    truncated_count: int = 0
    """How many more files changed than are listed."""


class AskUserBlock(Shown, tag="ask_user", tag_field="type"):
    questions: tuple[Question, ...]
    question_id: str | None = None


SpecialBlock = PlanBlock | FinalizeTaskBlock | ChangeReportBlock | AskUserBlock


class _Malformed(Exception):
    """A known field holds something it cannot hold: the block is shown as text."""


def parse(text: str) -> SpecialBlock | None:
    """The widget a finished text block stands for, or None when it is to be shown as text."""
    text = text.strip(" \t\r\n")
    if not (text.startswith("{") and text.endswith("}") and len(text) <= LIMIT_CHARS):
        return None
    try:
        fields = msgspec.json.decode(text)
        match fields.get("type"):
            case "plan":
                return _plan(fields)
            case "finalize_task":
                return _task(fields)
            case "change_report":
                return _report(fields)
            case "ask_user":
                return _questions(fields)
            case _:
                return None
    except (msgspec.DecodeError, UnicodeError, RecursionError, _Malformed):
        return None


def answer_text(questions: Sequence[Question], answers: Sequence[Sequence[str]]) -> str:
    """The message that answers an `ask_user` block, readable by itself: one line a question that was answered."""
    lines = [
        (question.question, ", ".join(chosen))
        for question, chosen in zip(questions, answers, strict=False)
        if any(chosen)
    ]
    if len(questions) == 1:
        return lines[0][1] if lines else ""
    return "\n".join(f"{_line(question)} {answer}" for question, answer in lines)


# -- reading


def _plan(fields: Object) -> PlanBlock | None:
    # Some agents put the plan into a field of its own.
    body = _object(fields, "plan") or fields
    items = tuple(_item(item) for item in _list(body, "items"))
    summary = _text(body, "summary") or ""
    if not items and not summary.strip():
        return None
    return PlanBlock(plan=Plan(summary=summary, items=items, status=_plan_status(_text(body, "status"))))


def _item(item: Any) -> PlanItem:
    fields = _entry_of(item, "title")
    return PlanItem(
        title=_require(fields, "title"),
        description=_text(fields, "description"),
        status=_item_status(_text(fields, "status")),
    )


def _item_status(word: str | None) -> Literal["pending", "in_progress", "done", "skipped"]:
    match word:
        case "done" | "complete" | "completed":
            return "done"
        case "in_progress" | "active" | "running":
            return "in_progress"
        case "skipped" | "cancelled" | "canceled":
            return "skipped"
        case _:
            return "pending"


def _plan_status(word: str | None) -> Literal["planned", "approved", "executing", "completed"]:
    match word:
        case "approved" | "executing" | "completed":
            return word
        case _:
            return "planned"


def _task(fields: Object) -> FinalizeTaskBlock | None:
    packet = fields.get("packet")
    if isinstance(packet, str):
        fields = {**fields, "summary": packet}
    body = packet if isinstance(packet, dict) else fields
    title, summary = _text(body, "title") or "", _text(body, "summary") or _text(fields, "summary") or ""
    sections = tuple(
        TaskSection(title=_heading(name), items=items)
        for name, value in body.items()
        if name not in {"type", "title", "summary", "packet"} and (items := _sentences(value))
    )
    if not (title.strip() or summary.strip() or sections):
        return None
    return FinalizeTaskBlock(title=title, summary=summary, sections=sections)


def _sentences(value: Any) -> tuple[str, ...]:
    """The items of a section; nothing for a value that is neither a text nor a list of texts."""
    texts = value if isinstance(value, list) else [value]
    return tuple(text for text in texts if text.strip()) if all(isinstance(text, str) for text in texts) else ()


def _heading(name: str) -> str:
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def _report(fields: Object) -> ChangeReportBlock | None:
    files = tuple(_file(file) for file in _list(fields, "files"))
    return ChangeReportBlock(files=files, truncated_count=_count(fields, "truncated_count")) if files else None


def _file(file: Any) -> ReportedFile:
    fields = _entry_of(file, "path")
    return ReportedFile(path=_require(fields, "path"), summary=_text(fields, "summary"), diff=_text(fields, "diff"))


def _questions(fields: Object) -> AskUserBlock | None:
    asked = _list(fields, "questions") or ([fields] if fields.get("question") is not None else [])
    questions = tuple(_question(question) for question in asked)
    return AskUserBlock(questions=questions, question_id=_text(fields, "question_id")) if questions else None


def _question(question: Any) -> Question:
    fields = _entry_of(question, "question")
    return Question(
        question=_require(fields, "question"),
        header=_text(fields, "header") or "",
        options=tuple(_option(option) for option in _list(fields, "options")),
        multi_select=_flag(fields, "multi_select") or _flag(fields, "multiSelect"),
    )


def _option(option: Any) -> QuestionOption:
    fields = _entry_of(option, "label")
    return QuestionOption(
        label=_require(fields, "label"), description=_text(fields, "description"), preview=_text(fields, "preview")
    )


# -- fields


def _entry_of(value: Any, name: str) -> Object:
    """An entry of a list: an object, or a text that stands for an object with only that field."""
    if isinstance(value, str):
        return {name: value}
    if not isinstance(value, dict):
        raise _Malformed
    return value


def _object(fields: Object, name: str) -> Object | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, dict):
        raise _Malformed
    return value


def _text(fields: Object, name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise _Malformed
    return value


def _require(fields: Object, name: str) -> str:
    value = _text(fields, name)
    if value is None or not value.strip():
        raise _Malformed
    return value


def _list(fields: Object, name: str) -> list[Any]:
    value = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _Malformed
    return value


def _flag(fields: Object, name: str) -> bool:
    value = fields.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise _Malformed
    return value


def _count(fields: Object, name: str) -> int:
    value = fields.get(name)
    if value is None:
        return 0
    # JavaScript reads 2 and 2.0 as the same number.
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value != int(value):
        raise _Malformed
    return int(value)


# -- markdown


def markdown(block: SpecialBlock) -> str:
    """The block written out for readers without a widget: the markdown export, and a terminal."""
    match block:
        case PlanBlock(plan=plan):
            return _paragraphs([_title("Plan", plan.summary), "\n".join(_item_line(item) for item in plan.items)])
        case FinalizeTaskBlock():
            sections = [
                _paragraphs([f"**{_line(section.title)}**", "\n".join(f"- {_line(item)}" for item in section.items)])
                for section in block.sections
            ]
            return _paragraphs([_title("Task summary", block.title), block.summary.strip(), *sections])
        case ChangeReportBlock():
            more = f"…and {block.truncated_count} more" if block.truncated_count else ""
            return _paragraphs(["**Changed files**", *(_file_lines(file) for file in block.files), more])
        case AskUserBlock():
            return _paragraphs([_question_lines(question) for question in block.questions])


def _title(word: str, subject: str) -> str:
    return f"**{word}: {_line(subject)}**" if subject.strip() else f"**{word}**"


def _item_line(item: PlanItem) -> str:
    box = "x" if item.status == "done" else " "
    note = {"in_progress": " (in progress)", "skipped": " (skipped)"}.get(item.status, "")
    detail = f": {_line(item.description)}" if item.description and item.description.strip() else ""
    return f"- [{box}] {_line(item.title)}{note}{detail}"


def _file_lines(file: ReportedFile) -> str:
    head = f"- `{_line(file.path)}`" + (f": {_line(file.summary)}" if file.summary and file.summary.strip() else "")
    if not (file.diff and file.diff.strip()):
        return head
    fence = "`" * max(3, 1 + max((len(run) for run in _BACKTICKS.findall(file.diff)), default=0))
    return f"{head}\n\n{fence}diff\n{file.diff.rstrip()}\n{fence}"


def _question_lines(question: Question) -> str:
    head = f"**{_line(question.header)}:** " if question.header.strip() else ""
    options = [
        f"- {_line(option.label)}" + (f": {_line(option.description)}" if option.description else "")
        for option in question.options
    ]
    return _paragraphs([f"{head}{_line(question.question)}", "\n".join(options)])


def _paragraphs(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part)


def _line(text: str) -> str:
    return " ".join(text.split())
